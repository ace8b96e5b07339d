package coded

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/coded/manifest"
	"volley/executor"
	"volley/field/fieldtest"
	"volley/internal/disk"
	"volley/internal/disk/disktest"
	"volley/internal/verifyall"
	"volley/matrix/matrices"
	"volley/transport"
	"volley/transport/local"
)

var (
	mostCalls = flag.Int("coded.calls", verifyall.Pick(4, 0), "calls of encode and decode at which TestSweep interrupts them, in each way; 0: all")
	callSeed  = flag.Uint64("coded.seed", 1, "which calls these are")
)

// out is the directory of a result in a machine in memory.
const out = "/a/out"

// packetNames are those of the packets of a coding.
var packetNames = []string{"a", strings.Repeat("b", disk.LongestName), "c\xe9\n"}

// A coding is packets of one text in a directory, and what encode has made of them in another.
type coding struct {
	t               *testing.T
	text, in, coded string
}

// newCoding writes packets, and encodes them.
func newCoding(t *testing.T, text string) *coding {
	t.Helper()
	c := &coding{t, text, t.TempDir(), filepath.Join(t.TempDir(), "coded")}
	for _, name := range packetNames {
		writeText(t, filepath.Join(c.in, name), text)
	}
	if err := c.encode(disk.OS, 1, Options{Dir: c.coded}); err != nil {
		t.Fatal(err)
	}
	return c
}

// encode encodes the packets at that many ranks.
func (c *coding) encode(on disk.Disk, ranks int, o Options) error {
	return local.Run(c.t.Context(), ranks, func(ctx context.Context, tr transport.Transport) error {
		o := o
		o.disk, o.Dir = on, strings.ReplaceAll(o.Dir, rankWord, fmt.Sprint(tr.Rank()))
		_, err := Encode(ctx, tr, Encoding{Options: o, Field: fieldtest.Parse(c.t, "2^8"), Matrix: matrices.Spec{Family: "cauchy"}, Files: []string{c.in}, Processors: len(packetNames)})
		return err
	})
}

// decode decodes the packets from coded ones, or from the survivors.
func (c *coding) decode(on disk.Disk, ranks int, o Options, coded string, survivors ...string) error {
	o.disk = twoDisks{on}
	return local.Run(c.t.Context(), ranks, func(ctx context.Context, tr transport.Transport) error {
		_, err := Decode(ctx, tr, Decoding{Options: o, Coded: coded, Survivors: survivors})
		return err
	})
}

// twoDisks has the directory of results in memory, and others on the disk of this machine.
type twoDisks struct{ memory disk.Disk }

func (d twoDisks) Open(path string) (disk.Dir, error) {
	if strings.HasPrefix(path, "/a") || path == "/" {
		return d.memory.Open(path)
	}
	return disk.OS.Open(path)
}

// machine returns one that has a result of the coding, if that is given, and a user's file beside it.
func machine(t *testing.T, c *coding) *disktest.Machine {
	t.Helper()
	m := disktest.NewMachine()
	m.MkdirAll(out, 0o755)
	m.WriteFile(out+"/theirs", []byte("theirs"), 0o644)
	if c != nil {
		if err := c.encode(m.Process(), 1, Options{Dir: out}); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// result names the result that a directory holds as a whole, by the length of its packets. Whatever happens to its
// manifest, the copy lists files that are there, and so does the manifest after a run that begins and ends.
func result(m *disktest.Machine) (string, error) {
	is, err := wholeResult(m)
	if err != nil || is == "" {
		return is, err
	}
	broken, begun := m.Clone(), m.Clone()
	broken.WriteFile(out+"/"+manifest.FileName, []byte("{"), 0o644)
	if _, err := wholeResult(broken); err != nil && m.Exists(out+"/"+manifest.CopyName) {
		return "", fmt.Errorf("by the copy: %w", err)
	}
	d, err := open(begun.Process(), out, nil, true)
	if err != nil {
		return "", fmt.Errorf("a next run: %w", err)
	}
	d.Discard()
	if now, err := wholeResult(begun); err != nil || now != is {
		return "", fmt.Errorf("after a run that begins and ends: %s, %w", now, err)
	}
	return is, tidy(begun)
}

func wholeResult(m *disktest.Machine) (string, error) {
	r, err := readStored(m.Process(), out)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprint(r.Manifest.SymbolsPerPacket), listed(m, r, r.Manifest.Files)
}

// listed returns an error unless files are there as a manifest lists them.
func listed(m *disktest.Machine, r *stored, list []manifest.CodedFile) error {
	for _, f := range list {
		if data, err := m.ReadFile(r.File(f.Name)); err != nil || f.SHA256 != sum(data) {
			return fmt.Errorf("%s is %q, %v", r.File(f.Name), data, err)
		}
	}
	return nil
}

func sum(data []byte) string { return disk.Sum(data) }

// readStored is [openStored] without a lock.
func readStored(on disk.Disk, path string) (*stored, error) {
	dir, err := on.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return read(dir, path)
}

// tidy returns an error unless the directory has the user's file, those that its manifests list, as these say, packets, and
// no others.
func tidy(m *disktest.Machine) error {
	dir, err := m.Process().Open(out)
	if err != nil {
		return err
	}
	defer dir.Close()
	want := append([]string{"theirs", LockName}, packetNames...)
	for _, name := range manifests {
		switch list, err := readManifest(dir, "", name); {
		case err == nil:
			want = append(want, name)
			for _, f := range list.Files {
				want = append(want, string(f.Name))
			}
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	entries, err := dir.ReadDir(".")
	for _, e := range entries {
		if !slices.Contains(want, e.Name()) {
			return fmt.Errorf("%q is left, and in no manifest", e.Name())
		}
	}
	if text, _ := m.ReadFile(out + "/theirs"); string(text) != "theirs" {
		return fmt.Errorf("the user's file is %q", text)
	}
	return err
}

// decoded names the text that all packets in a directory have, or the earlier one where each has one of those that there may be.
func decoded(m *disktest.Machine, dir, earlier string, texts ...string) (string, error) {
	var seen []string
	for _, name := range packetNames {
		data, err := m.ReadFile(dir + "/" + name)
		if text := string(data); text != earlier && !slices.Contains(texts, text) || err != nil && (earlier != "" || !errors.Is(err, fs.ErrNotExist)) {
			return "", fmt.Errorf("%.5q is %q, %w", name, text, err)
		}
		seen = append(seen, string(data))
	}
	if seen = slices.Compact(seen); len(seen) == 1 {
		return seen[0], nil
	}
	return earlier, nil
}

// ownDirectories names the result that decode finds in the directories of two ranks.
func ownDirectories(x *disktest.Interrupted) (string, error) {
	var found string
	err := local.Run(context.Background(), 2, func(ctx context.Context, tr transport.Transport) error {
		j := &filesAtHand{run: newRun(ctx, tr, Options{disk: x.Machine.Process()}, "decode"), d: Decoding{Coded: out + rankWord}}
		defer j.close()
		if err := j.fail(j.openManifest()); err != nil {
			return err
		}
		first, end := executor.Hosted(len(packetNames), tr.Rank(), 2)
		if tr.Rank() == 0 {
			found = fmt.Sprint(j.stored.Manifest.SymbolsPerPacket)
		}
		return listed(x.Machine, j.stored, j.stored.Manifest.Files[first:end])
	})
	return found, err
}

// TestSweep interrupts encode and decode, each over nothing and over what was there, at one rank and at two: see [disktest.Committer].
func TestSweep(t *testing.T) {
	t.Parallel()
	was, is, other := newCoding(t, "old"), newCoding(t, "newer"), newCoding(t, "another")
	withoutCopy, apart := machine(t, was), disktest.NewMachine()
	withoutCopy.Remove(out + "/" + manifest.CopyName)
	withPackets := machine(t, was)
	for _, name := range packetNames {
		withPackets.WriteFile(out+"/"+name, []byte(was.text), 0o644)
	}
	if err := was.encode(apart.Process(), 2, Options{Dir: out + rankWord}); err != nil {
		t.Fatal(err)
	}
	encode := func(c *coding, ranks int, o Options) func(*disktest.Process) error {
		return func(p *disktest.Process) error { return c.encode(p, ranks, o) }
	}
	decode := func(c *coding, ranks int, o Options) func(*disktest.Process) error {
		return func(p *disktest.Process) error { return c.decode(p, ranks, o, c.coded) }
	}
	// from decodes what is in the directory, whoever has encoded it.
	from := func(dir string) func(*disktest.Process) error {
		return func(p *disktest.Process) error {
			err := was.decode(p, 1, Options{Dir: dir, Replace: true}, out, was.in, is.in, other.in)
			if err == nil {
				_, err = decoded(p.Machine(), dir, was.text, is.text, other.text)
			}
			return err
		}
	}
	anew, over, dry := Options{Dir: out}, Options{Dir: out, Replace: true}, Options{Dir: out, DryRun: true}
	results := func(x *disktest.Interrupted) (string, error) { return result(x.Machine) }
	packets := func(dir, earlier string) func(x *disktest.Interrupted) (string, error) {
		return func(x *disktest.Interrupted) (string, error) {
			return decoded(x.Machine, dir, earlier, is.text, other.text)
		}
	}
	seconds := []disktest.Second{
		{Name: "encode", Run: encode(other, 1, anew), Below: out}, {Name: "encode over it", Run: encode(other, 1, over), Below: out},
		{Name: "encode dry", Run: encode(other, 1, dry), Answers: true}, {Name: "decode dry", Run: decode(other, 1, dry), Answers: true},
		{Name: "decode", Run: decode(other, 1, anew), Below: out}, {Name: "decode over it", Run: decode(other, 1, over), Below: out},
		{Name: "decode from it", Run: from("/a/second"), Below: out, Reads: true},
	}
	for i, c := range []*disktest.Committer{
		{Name: "encode", Machine: machine(t, nil), Run: encode(is, 1, anew), Again: encode(is, 1, over), Holds: results, Seconds: seconds},
		{Name: "encode over a result", Machine: machine(t, was), Run: encode(is, 1, over), Holds: results, Seconds: seconds},
		{Name: "encode over a result without a copy", Machine: withoutCopy, Run: encode(is, 1, over), Holds: results},
		{Name: "encode at two ranks", Machine: machine(t, was), Run: encode(is, 2, over), Holds: results, Concurrent: true},
		{Name: "encode into two directories", Machine: apart, Run: encode(is, 2, Options{Dir: out + rankWord, Replace: true}), Holds: ownDirectories, Concurrent: true},
		{Name: "decode", Machine: machine(t, nil), Run: decode(is, 1, anew), Again: decode(is, 1, over), Holds: packets(out, ""), Seconds: seconds},
		{Name: "decode over packets", Machine: withPackets, Run: decode(is, 1, over), Holds: packets(out, was.text), Seconds: seconds},
		{Name: "decode at two ranks", Machine: withPackets, Run: decode(is, 2, over), Holds: packets(out, was.text), Concurrent: true},
		{Name: "decode from it", Machine: machine(t, is), Run: from("/a/first"), Holds: packets("/a/first", ""), Seconds: seconds},
	} {
		rng := rand.New(rand.NewPCG(*callSeed, uint64(i)))
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if c.Machine != apart {
				c.Undoes, c.Tidy = true, tidy
			}
			t.Logf("%d runs were interrupted", c.Test(t, disktest.Interruptions(), *mostCalls, rng))
		})
	}
}
