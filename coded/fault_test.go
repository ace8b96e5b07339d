package coded

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/coded/manifest"
	"volley/executor"
	"volley/field/fieldtest"
	"volley/files"
	"volley/internal/disk"
	"volley/internal/disk/disktest"
	"volley/matrix/matrices"
	"volley/transport"
	"volley/transport/local"
)

var mostCalls = flag.Int("coded.calls", 2, "calls of encode at which TestEncodeInterrupted interrupts it, in each way; 0: all")

// out is the directory of a result in a machine in memory.
const out = "/a/out"

// replace puts a result of that many files in the place of another.
func replace(on disk.Disk, processors int, text string) error {
	d, err := open(on, out, nil, true)
	if err != nil {
		return err
	}
	defer d.Discard()
	number, err := d.next()
	if err != nil {
		return err
	}
	m := &manifest.Manifest{Processors: processors}
	for k := range processors {
		file, err := d.Create(manifest.CodedName(k, processors, number))
		if err != nil {
			return err
		}
		if _, err := file.WriteAt([]byte(fmt.Sprint(text, k)), 0); err != nil {
			return err
		}
		size, sum := file.Sum()
		m.Files = append(m.Files, manifest.CodedFile{Name: files.Name(file.name), Processor: k, Bytes: size, SHA256: sum})
	}
	return d.Commit(m, 0o666)
}

// machine returns one whose directory holds a result, unless that has no files.
func machine(t *testing.T, processors int, text string) *disktest.Machine {
	t.Helper()
	m := disktest.NewMachine()
	if processors > 0 {
		if err := replace(m.Process(), processors, text); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// result returns the manifest of the result that the directory holds as a whole, nil where it holds none, and its files.
func result(m *disktest.Machine) (*manifest.Manifest, []string, error) {
	r, err := readStored(m.Process(), out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if r.Damage != nil && !errors.Is(r.Damage, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("the manifest: %w", r.Damage)
	}
	var files []string
	for _, f := range r.Manifest.Files {
		data, err := m.ReadFile(r.File(f.Name))
		if err != nil || f.SHA256 != sum(data) {
			return nil, nil, fmt.Errorf("%s is %q, %v", r.File(f.Name), data, err)
		}
		files = append(files, string(data))
	}
	return r.Manifest, files, nil
}

// holds returns the text that replace has given to the result, "" where there is none.
func holds(m *disktest.Machine) (text string, err error) {
	_, files, err := result(m)
	for k, data := range files {
		text = strings.TrimSuffix(data, fmt.Sprint(k))
	}
	return text, err
}

func sum(data []byte) string {
	f := newFile{digest: sha256.New()}
	f.digest.Write(data)
	_, sum := f.Sum()
	return sum
}

// nextRun lets the next run that writes begin, and end.
func nextRun(m *disktest.Machine, files []string) error {
	d, err := open(m.Process(), out, files, true)
	if err == nil {
		d.Discard()
	}
	return err
}

// tidy returns an error unless the directory has the files that its manifests list, as these say, and no others.
func tidy(m *disktest.Machine) error {
	dir, err := m.Process().Open(out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	want := map[string]bool{}
	for _, name := range manifests {
		list, err := readManifest(dir, "", name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		want[name] = true
		for _, f := range list.Files {
			want[string(f.Name)] = true
			if data, err := m.ReadFile(out + "/" + string(f.Name)); err != nil || f.SHA256 != sum(data) {
				return fmt.Errorf("%s lists %s, which is %q, %v", name, f.Name, data, err)
			}
		}
	}
	entries, err := dir.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !want[e.Name()] && e.Name() != LockName {
			return fmt.Errorf("%s is left, and in no manifest", e.Name())
		}
	}
	return nil
}

// cut returns what a power cut leaves that loses all that may be lost.
func cut(m *disktest.Machine) *disktest.Machine {
	m = m.Clone()
	m.PowerCut(nil)
	return m
}

// tidies reports whether a run that ended with an error has had to remove what it wrote.
func tidies(x *disktest.Interrupted) bool {
	return x.Err != nil && !x.Ends && x.Name != disktest.TurnReadOnly.Name
}

// TestFaultyReplace replaces a result, larger or smaller or none, on a disk that fails at any call or whose power is cut
// there, or with a process that is killed: the old or the new one is whole, and the next run has a directory without
// leftovers. The new one lasts when the run has ended well.
func TestFaultyReplace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		old    int
		copied bool
	}{{0, false}, {1, true}, {1, false}, {11, true}} {
		t.Run(fmt.Sprintf("%d, a copy %v", c.old, c.copied), func(t *testing.T) {
			t.Parallel()
			was := strings.Repeat("old", min(c.old, 1))
			m := machine(t, c.old, "old")
			if !c.copied && c.old > 0 {
				m.Remove(out + "/" + manifest.CopyName)
			}
			sweep := disktest.Sweep{
				Machine: m,
				Run:     func(p *disktest.Process) error { return replace(p, 3, "new") },
				Check: func(x *disktest.Interrupted) error {
					got, err := holds(x.Machine)
					if err != nil {
						return err
					}
					if got != "new" && (got != was || x.Err == nil) {
						return fmt.Errorf("it holds %q: want %q or new", got, was)
					}
					if x.Err == nil {
						if lasts, err := holds(cut(x.Machine)); err != nil || lasts != "new" {
							return fmt.Errorf("after a power cut it holds %q, %v", lasts, err)
						}
					}
					if err := tidy(x.Machine); err != nil && tidies(x) && got == was {
						return err
					}
					if err := nextRun(x.Machine, nil); err != nil {
						return fmt.Errorf("the next run: %w", err)
					}
					for when, m := range map[string]*disktest.Machine{"the next run": x.Machine, "the next run and a power cut": cut(x.Machine)} {
						if now, err := holds(m); err != nil || now != got {
							return fmt.Errorf("%s: it holds %q, not %q: %v", when, now, got, err)
						}
					}
					if err := tidy(x.Machine); err != nil {
						return fmt.Errorf("the next run: %w", err)
					}
					if err := replace(x.Machine.Process(), 2, "again"); err != nil {
						return fmt.Errorf("again: %w", err)
					}
					if now, err := holds(cut(x.Machine)); err != nil || now != "again" {
						return fmt.Errorf("again: it holds %q, %v", now, err)
					}
					return tidy(x.Machine)
				},
			}
			t.Logf("%d runs were interrupted", sweep.Test(t))
		})
	}
}

// TestCopyOfInterrupted damages the manifest that an interrupted run has left: its copy, that of the earlier result or
// of this one, lists files that are there.
func TestCopyOfInterrupted(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	sweep := disktest.Sweep{
		Machine: machine(t, 3, "old"),
		Run:     func(p *disktest.Process) error { return replace(p, 2, "new") },
		Check: func(x *disktest.Interrupted) error {
			x.Machine.WriteFile(out+"/"+manifest.FileName, []byte("{"), 0o644)
			for range 2 {
				r, err := readStored(x.Machine.Process(), out)
				if err != nil {
					return err
				}
				for _, f := range r.Manifest.Files {
					if data, err := x.Machine.ReadFile(r.File(f.Name)); err != nil || f.SHA256 != sum(data) {
						return fmt.Errorf("%s is %q, %v", f.Name, data, err)
					}
				}
				seen[string(r.Manifest.Files[0].Name)]++
				if err := nextRun(x.Machine, nil); err != nil { // it cannot know what the manifest has listed
					return err
				}
			}
			return nil
		},
	}
	sweep.Test(t)
	if seen["coded.0"] == 0 || seen["coded.0.1"] == 0 {
		t.Errorf("%v: want copies of both results", seen)
	}
}

// TestFaultyFiles is [TestFaultyReplace] for files without a manifest: each is the old or the new one.
func TestFaultyFiles(t *testing.T) {
	t.Parallel()
	names := []string{"a", strings.Repeat("b", disk.LongestName), "c\xe9\n"}
	write := func(on disk.Disk, text string) error {
		d, err := open(on, out, names, true)
		if err != nil {
			return err
		}
		defer d.Discard()
		for _, name := range names {
			file, err := d.Create(name)
			if err != nil {
				return err
			}
			if _, err := file.Write([]byte(text)); err != nil {
				return err
			}
		}
		return d.Commit(nil, 0o666)
	}
	check := func(m *disktest.Machine, allowed ...string) error {
		for _, name := range names {
			data, err := m.ReadFile(out + "/" + name)
			if text := string(data); err != nil || !slices.Contains(allowed, text) {
				return fmt.Errorf("%.5q is %q, %v: want one of %q", name, text, err, allowed)
			}
		}
		return nil
	}
	m := machine(t, 0, "")
	if err := write(m.Process(), "old"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"theirs", "coded.7"} {
		m.WriteFile(out+"/"+name, []byte("theirs"), 0o644)
	}
	sweep := disktest.Sweep{
		Machine: m,
		Run:     func(p *disktest.Process) error { return write(p, "new") },
		Check: func(x *disktest.Interrupted) error {
			if x.Err == nil {
				if err := errors.Join(check(x.Machine, "new"), check(cut(x.Machine), "new")); err != nil {
					return err
				}
			}
			if err := errors.Join(check(x.Machine, "old", "new"), check(cut(x.Machine), "old", "new")); err != nil {
				return err
			}
			if !x.Ends && x.Name != disktest.TurnReadOnly.Name && strings.Contains(x.Machine.Tree(out), hidden) && x.Call.Op != "remove" {
				return fmt.Errorf("left: %s", x.Machine.Tree(out))
			}
			if err := write(x.Machine.Process(), "again"); err != nil {
				return fmt.Errorf("again: %w", err)
			}
			if err := check(cut(x.Machine), "again"); err != nil {
				return fmt.Errorf("again: %w", err)
			}
			if got, err := listingOn(x.Machine.Process(), out); err != nil || got != "a "+names[1]+" coded.7 "+names[2]+" theirs" {
				return fmt.Errorf("again: %s, %v", got, err)
			}
			return nil
		},
	}
	t.Logf("%d runs were interrupted", sweep.Test(t))
}

// A coding is packets in a directory, and what encode has made of them in another.
type coding struct {
	t         *testing.T
	k         int
	in, coded string
}

// newCoding writes k packets, and encodes them.
func newCoding(t *testing.T, k int) *coding {
	t.Helper()
	c := &coding{t, k, t.TempDir(), filepath.Join(t.TempDir(), "coded")}
	for n := range k {
		writeText(t, filepath.Join(c.in, fmt.Sprint("packet.", n)), packetText)
	}
	if err := c.encode(disk.OS, 1, Options{Dir: c.coded}); err != nil {
		t.Fatal(err)
	}
	return c
}

const packetText = "0123456789"

// encode encodes the packets at that many ranks.
func (c *coding) encode(on disk.Disk, ranks int, o Options) error {
	o.disk = on
	return local.Run(c.t.Context(), ranks, func(ctx context.Context, tr transport.Transport) error {
		_, err := Encode(ctx, tr, Encoding{Options: o, Field: fieldtest.Parse(c.t, "2^8"), Matrix: matrices.Spec{Family: "cauchy"}, Files: []string{c.in}, Processors: c.k})
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

// decoded returns an error unless the packets are in a directory of a machine, each as decoded or of another text.
func (c *coding) decoded(m *disktest.Machine, dir, other string) error {
	for n := range c.k {
		if data, err := m.ReadFile(fmt.Sprint(dir, "/packet.", n)); string(data) != packetText && string(data) != other {
			return fmt.Errorf("packet.%d is %q, %v", n, data, err)
		}
	}
	return nil
}

// twoDisks has the directory of results in memory, and others on the disk of this machine.
type twoDisks struct{ memory disk.Disk }

func (d twoDisks) Open(path string) (disk.Dir, error) {
	if strings.HasPrefix(path, "/a") || path == "/" {
		return d.memory.Open(path)
	}
	return disk.OS.Open(path)
}

// TestEncodeInterrupted is [TestFaultyReplace] for all of Encode, at one rank and at two of one process.
func TestEncodeInterrupted(t *testing.T) {
	t.Parallel()
	const k = 3
	c := newCoding(t, k)
	for _, ranks := range []int{1, 2} {
		encode := func(p *disktest.Process) error { return c.encode(p, ranks, Options{Dir: out, Replace: true}) }
		sweep := disktest.Sweep{
			Machine: machine(t, 5, "old"),
			Run:     encode,
			Tries:   *mostCalls, Concurrent: ranks > 1,
			Check: func(x *disktest.Interrupted) error {
				was, _, err := result(x.Machine)
				if err != nil || was == nil || was.Processors != k && (was.Processors != 5 || x.Err == nil) {
					return fmt.Errorf("it holds %+v, %v", was, err)
				}
				if err := nextRun(x.Machine, nil); err != nil {
					return fmt.Errorf("the next run: %w", err)
				}
				is, _, err := result(cut(x.Machine))
				if err != nil || is == nil || is.Processors != was.Processors {
					return fmt.Errorf("after the next run and a power cut it holds %+v, %v", is, err)
				}
				if err := tidy(x.Machine); err != nil {
					return fmt.Errorf("the next run: %w", err)
				}
				if err := encode(x.Machine.Process()); err != nil {
					return fmt.Errorf("again: %w", err)
				}
				return tidy(x.Machine)
			},
		}
		t.Logf("%d ranks: %d runs were interrupted", ranks, sweep.Test(t))
	}
}

// TestOwnDirectories interrupts an encode of two ranks with a directory each: the manifest that decode finds at both is
// that of the old result or of the new one, and all that it lists is there.
func TestOwnDirectories(t *testing.T) {
	t.Parallel()
	const k = 3
	f := fieldtest.Parse(t, "2^8")
	dir := func(rank int) string { return fmt.Sprint(out, rank) }
	encode := func(on disk.Disk, text string) error {
		in := t.TempDir()
		for n := range k {
			writeText(t, filepath.Join(in, fmt.Sprint("packet.", n)), text)
		}
		return local.Run(t.Context(), 2, func(ctx context.Context, tr transport.Transport) error {
			_, err := Encode(ctx, tr, Encoding{
				Options: Options{Dir: dir(tr.Rank()), Replace: true, disk: on}, Field: f, Matrix: matrices.Spec{Family: "cauchy"}, Files: []string{in}, Processors: k,
			})
			return err
		})
	}
	// found returns what the result is of, by the length of its packets.
	found := func(m *disktest.Machine) (int64, error) {
		var packet int64
		return packet, local.Run(t.Context(), 2, func(ctx context.Context, tr transport.Transport) error {
			j := &filesAtHand{run: newRun(ctx, tr, Options{disk: m.Process()}, "decode"), d: Decoding{Coded: out + rankWord}}
			defer j.close()
			if err := j.fail(j.openManifest()); err != nil {
				return err
			}
			first, end := executor.Hosted(k, tr.Rank(), 2)
			for _, file := range j.stored.Manifest.Files[first:end] {
				if data, err := m.ReadFile(j.stored.File(file.Name)); err != nil || file.SHA256 != sum(data) {
					return fmt.Errorf("%s is %q, %v", j.stored.File(file.Name), data, err)
				}
			}
			if tr.Rank() == 0 {
				packet = j.stored.Manifest.SymbolsPerPacket
			}
			return nil
		})
	}
	m := disktest.NewMachine()
	if err := encode(m.Process(), "old"); err != nil {
		t.Fatal(err)
	}
	seen := map[int64]bool{}
	mixed := 0
	sweep := disktest.Sweep{
		Machine: m,
		Run:     func(p *disktest.Process) error { return encode(p, "newer") },
		Tries:   *mostCalls, Concurrent: true,
		Interruptions: append(slices.Repeat([]disktest.Interruption{disktest.Kill}, 20), disktest.Interruptions()...),
		Check: func(x *disktest.Interrupted) error {
			for _, m := range []*disktest.Machine{x.Machine, cut(x.Machine)} {
				packet, err := found(m)
				if err != nil || packet != 5 && (packet != 3 || x.Err == nil) {
					return fmt.Errorf("%d symbols, %v", packet, err)
				}
				seen[packet] = true
			}
			manifest := func(rank int) string {
				text, _ := x.Machine.ReadFile(dir(rank) + "/" + manifest.FileName)
				return string(text)
			}
			if manifest(0) != manifest(1) {
				mixed++
			}
			return encode(x.Machine.Process(), "again")
		},
	}
	t.Logf("%d runs were interrupted, and %d when one rank had come further", sweep.Test(t), mixed)
	if len(seen) != 2 {
		t.Errorf("%v: want both results", seen)
	}
}

// TestDecodeInterrupted interrupts all of Decode: each file is as it was or right, and a repeated run has all.
func TestDecodeInterrupted(t *testing.T) {
	t.Parallel()
	const k = 3
	c := newCoding(t, k)
	for _, old := range []bool{false, true} {
		for _, ranks := range []int{1, 2} {
			decode := func(p *disktest.Process) error { return c.decode(p, ranks, Options{Dir: out, Replace: true}, c.coded) }
			m := disktest.NewMachine()
			if old {
				m.MkdirAll(out, 0o755)
				for n := range k {
					m.WriteFile(fmt.Sprint(out, "/packet.", n), []byte("old"), 0o644)
				}
			}
			sweep := disktest.Sweep{
				Machine: m,
				Run:     decode,
				Tries:   *mostCalls, Concurrent: ranks > 1,
				Check: func(x *disktest.Interrupted) error {
					earlier := map[bool]string{true: "old"}[old]
					if x.Err == nil {
						earlier = packetText
					}
					if err := errors.Join(c.decoded(x.Machine, out, earlier), c.decoded(cut(x.Machine), out, earlier)); err != nil {
						return err
					}
					if err := decode(x.Machine.Process()); err != nil {
						return fmt.Errorf("again: %w", err)
					}
					if got, err := listingOn(x.Machine.Process(), out); err != nil || got != "packet.0 packet.1 packet.2" {
						return fmt.Errorf("again: %s, %v", got, err)
					}
					return c.decoded(cut(x.Machine), out, packetText)
				},
			}
			t.Logf("old %v, %d ranks: %d runs were interrupted", old, ranks, sweep.Test(t))
		}
	}
}

// TestManifestCopy damages every byte of the manifest, and cuts it everywhere: the copy takes
// its place.
func TestManifestCopy(t *testing.T) {
	t.Parallel()
	m := machine(t, 2, "x")
	const name, other = out + "/" + manifest.FileName, out + "/" + manifest.CopyName
	good, err := m.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := m.ReadFile(other); err != nil || string(text) != string(good) {
		t.Errorf("the copy is %q, %v", text, err)
	}
	read := func(text string) {
		t.Helper()
		m.WriteFile(name, []byte(text), 0o644)
		r, err := readStored(m.Process(), out)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if r.Damage == nil {
			t.Errorf("%q: no damage", text)
		} else if !strings.HasPrefix(r.Damage.Error(), name) {
			t.Errorf("%v: want an error that begins with the path", r.Damage)
		}
		if r.Manifest.Processors != 2 {
			t.Errorf("%q: %+v", text, r.Manifest)
		}
	}
	for i := range good {
		for _, bit := range []byte{1, 0x20} {
			bad := []byte(string(good))
			bad[i] ^= bit
			if strings.TrimSpace(string(bad)) != strings.TrimSpace(string(good)) {
				read(string(bad))
			}
		}
		if i < len(good)-2 {
			read(string(good[:i]))
		}
	}
	m.Remove(name)
	if r, err := readStored(m.Process(), out); err != nil || !errors.Is(r.Damage, fs.ErrNotExist) {
		t.Errorf("without the manifest: %v", err)
	}
	if err := func() error { _, err := open(m.Process(), out, nil, false); return err }(); !errors.Is(err, ErrExists) {
		t.Errorf("only the copy: %v", err)
	}
	m.WriteFile(name, []byte("{"), 0o644)
	m.WriteFile(other, []byte("{"), 0o644)
	if _, err := readStored(m.Process(), out); err == nil || !strings.Contains(err.Error(), manifest.FileName) || !strings.Contains(err.Error(), manifest.CopyName) {
		t.Errorf("both damaged: %v", err)
	}
}

// readStored is [openStored] without a lock.
func readStored(on disk.Disk, path string) (*stored, error) {
	dir, err := on.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return read(dir, path)
}
