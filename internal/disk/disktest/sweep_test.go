package disktest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/files"
)

// A replacement puts a text in the place of that of /d/x, and may do so wrongly.
type replacement struct {
	inPlace, unsynced, leaves, shares, stops bool
}

func (r replacement) run(p *Process) error { return r.put(p, "the new text") }

func (r replacement) put(p *Process, text string) error {
	d, err := p.Open("/d")
	if err != nil {
		return err
	}
	unlock, err := d.Lock("lock", r.shares, files.Holder{Verb: "replace"})
	if err != nil {
		return err
	}
	defer unlock(true)
	tmp := "tmp"
	if r.inPlace {
		tmp = "x"
	}
	if _, err := d.Lstat(tmp); r.stops && err == nil {
		return errors.New("there is something")
	}
	f, err := d.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	if err == nil && !r.unsynced {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil && !r.inPlace {
		err = d.Rename(tmp, "x")
	}
	if err == nil {
		err = d.SyncDir(".")
	}
	if err != nil && !r.leaves && !r.inPlace {
		d.Remove(tmp)
	}
	return err
}

// row is the replacement as a row of the sweep.
func (r replacement) row() *Committer {
	m := NewMachine()
	m.MkdirAll("/d", 0o755)
	m.WriteFile("/d/x", []byte("old"), 0o644)
	return &Committer{
		Name: "replace a text", Machine: m, Run: r.run, Undoes: true,
		Holds: func(x *Interrupted) (string, error) {
			text, err := x.Machine.ReadFile("/d/x")
			return string(text), err
		},
		Tidy: func(m *Machine) error {
			if m.Exists("/d/tmp") {
				return errors.New("tmp is left")
			}
			return nil
		},
		Seconds: []Second{{Name: "another", Run: func(p *Process) error { return r.put(p, "another") }}},
	}
}

// A report is a test that is told what is wrong.
type report struct {
	testing.TB
	wrong []string
}

func (r *report) Helper() {}
func (r *report) Errorf(format string, a ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, a...))
}

// TestCommitter sweeps what commits well, and what does not: each fault is told.
func TestCommitter(t *testing.T) {
	t.Parallel()
	for want, x := range map[string]replacement{
		"":                         {},
		`it has ""`:                {inPlace: true},
		"after a power cut":        {unsynced: true},
		"tmp is left":              {leaves: true},
		"once more: there is some": {stops: true, leaves: true},
		"with a lock true":         {shares: true},
	} {
		c, told := x.row(), &report{TB: t}
		func() {
			defer func() { recover() }()
			c.Test(fatal{told}, Interruptions(), 0, nil)
		}()
		if all := strings.Join(told.wrong, "\n"); (want == "") != (all == "") || !strings.Contains(all, want) {
			t.Errorf("%+v: %s: want %q", x, all, want)
		}
		if tree(c.Machine, "/d") != "x=old" {
			t.Error("the machine has changed")
		}
	}
}

// fatal is a report of which the first fatal fault is the last.
type fatal struct{ *report }

func (f fatal) Fatalf(format string, a ...any) { f.Errorf(format, a...); panic("fatal") }
func (f fatal) Fatal(a ...any)                 { f.Errorf("%v", a); panic("fatal") }

// TestSweep looks at which calls each interruption has its turn, and has a run that does not come so far.
func TestSweep(t *testing.T) {
	t.Parallel()
	seen, total := map[string][]string{}, 0
	m := replacement{}.row().Machine
	sweep := Sweep{Machine: m, Run: replacement{}.run, Check: func(x *Interrupted) error {
		seen[x.Name] = append(seen[x.Name], x.Call.Op)
		return nil
	}}
	n := sweep.Test(t)
	for name, want := range map[string]string{
		"killed": "[lock create write sync rename syncdir unlock]", "EIO": "[opendir lock lstat create write sync close rename syncdir]", "EXDEV": "[rename]",
	} {
		if got := fmt.Sprint(seen[name]); got != want {
			t.Errorf("%s at %s, want %s", name, got, want)
		}
	}
	for _, x := range Interruptions() {
		total += len(seen[x.Name])
	}
	if total != n || len(seen[""]) != 1 {
		t.Errorf("%d runs of %d are counted", n, total)
	}
	sweep.Tries = 1
	if n := sweep.Test(t); n < 12 || n > len(Interruptions()) {
		t.Errorf("%d runs at one call each", n)
	}
	first, told := true, &report{TB: t}
	sweep = Sweep{Machine: m, Interruptions: []Interruption{CutAll}, Check: func(*Interrupted) error { return nil }, Run: func(p *Process) error {
		if !first {
			return nil
		}
		first = false
		return replacement{}.run(p)
	}}
	if sweep.Test(told); !strings.Contains(fmt.Sprint(told.wrong), "did not come so far") {
		t.Errorf("%q", told.wrong)
	}
}

// TestInterruptions checks what each leaves of a run, and that it ends with it.
func TestInterruptions(t *testing.T) {
	t.Parallel()
	m := NewMachine()
	m.MkdirAll("/d", 0o755)
	m.MkdirAll("/other", 0o755)
	m.Mount("/d", Mount{})
	run := func(p *Process) error {
		d, err := p.Open("/d")
		if err != nil {
			return err
		}
		err = errors.Join(d.Mkdir("a", 0o755), d.Mkdir("b", 0o755), d.Remove("a"), d.Chmod("b", 0o700))
		if d, err2 := p.Open("/other"); err2 == nil {
			err = errors.Join(err, d.Mkdir("c", 0o755))
		}
		return err
	}
	for name, want := range map[string]string{
		Kill.Name: "d d/a other", CutAll.Name: "d other", FullDisk.Name: "d other other/c", TurnReadOnly.Name: "d d/a other other/c",
		"ENOSPC": "d other other/c", "EIO": "d other other/c", "ESTALE": "d other other/c",
	} {
		all := Interruptions()
		x := all[slices.IndexFunc(all, func(x Interruption) bool { return x.Name == name })]
		c := m.Clone()
		p := c.Process()
		x.Set(p, 2, rand.New(rand.NewPCG(1, 1))) // the second directory
		if err := run(p); err == nil {
			t.Errorf("%s: no error", name)
		}
		p.Kill()
		if got := tree(c, "/"); got != want {
			t.Errorf("%s leaves %s, want %s", name, got, want)
		}
		if err := open(t, c.Process(), "/d").Mkdir("after", 0o755); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
}

// TestPartly checks that of what is written where a run is interrupted any part may be there.
func TestPartly(t *testing.T) {
	t.Parallel()
	got := map[string]bool{}
	for seed := range uint64(100) {
		for _, x := range []Interruption{Kill, {Name: "EIO", Strike: Failing(syscall.EIO)}} {
			m := NewMachine()
			p := m.Process()
			x.Set(p, 2, rand.New(rand.NewPCG(seed, 1)))
			d, err := p.Open("/")
			must(t, err)
			f, err := d.OpenFile("f", os.O_WRONLY|os.O_CREATE, 0o644)
			must(t, err)
			if _, err := f.Write([]byte("abc")); err == nil {
				t.Errorf("%s: no error", x.Name)
			}
			text, _ := m.ReadFile("/f")
			got[x.Name+" "+string(text)] = true
		}
	}
	if len(got) != 8 {
		t.Errorf("%v: want all beginnings", got)
	}
}
