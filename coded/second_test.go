package coded

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"volley/files"
	"volley/internal/disk"
	"volley/internal/disk/disktest"
)

// A verb is a run that writes to the directory out, or decodes from it into another one.
type verb struct {
	name string // encode, decode, or decode from it
	Options
}

func (v verb) run(c *coding, on disk.Disk) error {
	switch v.name {
	case "encode":
		return c.encode(on, 1, v.Options)
	case "decode":
		return c.decode(on, 1, v.Options, c.coded)
	}
	return c.decode(on, 1, v.Options, out, c.in)
}

// left returns what is wrong with what a run that succeeded has left.
func (v verb) left(c *coding, m *disktest.Machine) error {
	switch v.name {
	case "encode":
		is, _, err := result(m)
		if err == nil && (is == nil || is.Processors != c.k) {
			err = fmt.Errorf("it holds the result %+v", is)
		}
		return err
	case "decode":
		return c.decoded(m, out, packetText)
	}
	return (&coding{k: fewest}).decoded(m, v.Dir, packetText) // all have so many, whoever has encoded them
}

// fewest is the packets of the run that has fewer.
const fewest = 1

// TestSecondRun has a second run begin and end at each call of a first one. While the first has the lock, the second is
// told so. Else it ends as before the first run or after it. What has succeeded is whole.
func TestSecondRun(t *testing.T) {
	t.Parallel()
	firsts := []verb{
		{"encode", Options{Dir: out}}, {"decode", Options{Dir: out}},
		{"encode", Options{Dir: out, Replace: true}}, {"decode", Options{Dir: out, Replace: true}}, {"decode from it", Options{Dir: "/a/first", Replace: true}},
	}
	seconds := append(slices.Clone(firsts[:4]), verb{"encode", Options{Dir: out, DryRun: true}}, verb{"decode", Options{Dir: out, DryRun: true}},
		verb{"decode from it", Options{Dir: "/a/second", Replace: true}})
	one, other := newCoding(t, fewest+1), newCoding(t, fewest)
	for _, first := range firsts {
		m := disktest.NewMachine()
		if first.Replace {
			if err := errors.Join(one.encode(m.Process(), 1, Options{Dir: out}), one.decode(m.Process(), 1, Options{Dir: out}, one.coded)); err != nil {
				t.Fatal(err)
			}
		}
		for _, second := range seconds {
			t.Run(fmt.Sprintf("%s %v, %s %v %v", first.name, first.Replace, second.name, second.Replace, second.DryRun), func(t *testing.T) {
				t.Parallel()
				before, after := m.Clone(), m.Clone()
				if err := first.run(one, after.Process()); err != nil {
					t.Fatal(err)
				}
				allowed := []string{kind(second.run(other, before.Process())), kind(second.run(other, after.Process()))}
				refusal := kind(first.run(one, before.Process()))
				err := errors.New("it has not run")
				sweep := disktest.Sweep{
					Machine: m,
					Run:     func(p *disktest.Process) error { return first.run(one, p) },
					Interruptions: []disktest.Interruption{{Name: "another run", Matters: func(disktest.Call) bool { return true }, Strike: func(p *disktest.Process, c disktest.Call, _ *rand.Rand) error {
						read, written := locked(p.Machine(), false), locked(p.Machine(), true)
						err = second.run(other, p.Machine().Process())
						switch is := kind(err); {
						case read && is == busy, second.DryRun && is == "":
						case written, !slices.Contains(allowed, is):
							t.Errorf("at %v: %v", c, err)
						}
						return nil
					}}},
					Check: func(x *disktest.Interrupted) error {
						if x.Err != nil && (err != nil || kind(x.Err) != refusal) {
							return fmt.Errorf("the other run ends with %v", err)
						}
						if strings.Contains(x.Machine.Tree("/a"), hidden) {
							return fmt.Errorf("left: %s", x.Machine.Tree("/a"))
						}
						var wrong []error
						if x.Err == nil {
							wrong = append(wrong, first.left(one, x.Machine))
						}
						if err == nil && !second.DryRun {
							wrong = append(wrong, second.left(other, x.Machine))
						}
						if second.name == first.name && second.Dir == first.Dir && slices.Contains(wrong, nil) {
							return nil // one has replaced what the other has left
						}
						return errors.Join(wrong...)
					},
				}
				sweep.Test(t)
			})
		}
	}
}

// locked reports whether a run has the lock of out, or no other can share it.
func locked(m *disktest.Machine, shared bool) bool {
	dir, err := m.Process().Open(out)
	if err != nil {
		return false
	}
	defer dir.Close()
	unlock, err := dir.Lock(LockName, shared, files.Holder{})
	if err == nil {
		unlock(true)
	}
	return err != nil
}

const busy = "busy"

// kind says how a run has ended, but for the names of files.
func kind(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.As(err, new(*files.BusyError)):
		return busy
	}
	for _, known := range []error{ErrExists, ErrFileExists, fs.ErrNotExist} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return err.Error()
}
