package coded

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"volley/field/fieldtest"
	"volley/internal/disk"
	"volley/internal/disk/disktest"
	"volley/internal/fuzzlimit"
	"volley/matrix"
	"volley/transport"
	"volley/transport/local"
)

var mostCalls = flag.Int("coded.calls", 2, "calls of encode at which TestEncodeInterrupted interrupts it, in each way; 0: all")

// out is the directory of a result in a machine in memory.
const out = "/a/out"

// replace puts a result of that many files in the place of another.
func replace(on disk.Disk, processors int, text string) error {
	d, err := create(place{Disk: on, Path: out}, manifests, ErrExists, true)
	if err != nil {
		return err
	}
	defer d.Discard()
	m := &Manifest{Format: Format, Version: Version, Processors: processors}
	for k := range processors {
		file, err := d.Create(CodedName(k, processors))
		if err != nil {
			return err
		}
		if _, err := file.WriteAt([]byte(fmt.Sprint(text, k)), 0); err != nil {
			return err
		}
		size, sum := file.Sum()
		m.Files = append(m.Files, Entry{Name: CodedName(k, processors), Processor: k, Bytes: size, SHA256: sum})
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
func result(m *disktest.Machine) (*Manifest, []string, error) {
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
func nextRun(m *disktest.Machine, names []string, exists error) error {
	return begin(m.Process(), names, exists)
}

func begin(on disk.Disk, names []string, exists error) error {
	d, err := create(place{Disk: on, Path: out}, names, exists, true)
	if err == nil {
		d.Discard()
	}
	return err
}

// listed returns an error unless that is what the directory has.
func listed(m *disktest.Machine, when, want string) error {
	names, err := listingOn(m.Process(), out)
	if err == nil && names != want {
		err = fmt.Errorf("%s: %s, want %s", when, names, want)
	}
	return err
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

// TestFaultyReplace replaces a result, larger or smaller or none, on a disk that fails at any
// call or whose power is cut there, or with a process that is killed: the old or the new one is
// whole, and the next run has a directory without leftovers. The new one lasts when the run has
// ended well.
func TestFaultyReplace(t *testing.T) {
	t.Parallel()
	for old, files := range map[int]string{
		0: "", 1: "coded.0 ",
		11: "coded.00 coded.01 coded.02 coded.03 coded.04 coded.05 coded.06 coded.07 coded.08 coded.09 coded.10 ",
	} {
		t.Run(fmt.Sprint(old), func(t *testing.T) {
			t.Parallel()
			was := strings.Repeat("old", min(old, 1))
			sweep := disktest.Sweep{
				Machine: machine(t, old, "old"),
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
					if names, err := listingOn(x.Machine.Process(), out); err != nil || tidies(x) && got == was && strings.Contains(names, hidden) {
						return fmt.Errorf("left: %s, %v", names, err)
					}
					if err := nextRun(x.Machine, manifests, ErrExists); err != nil {
						return fmt.Errorf("the next run: %w", err)
					}
					for when, m := range map[string]*disktest.Machine{"the next run": x.Machine, "the next run and a power cut": cut(x.Machine)} {
						if now, err := holds(m); err != nil || now != got {
							return fmt.Errorf("%s: it holds %q, not %q: %v", when, now, got, err)
						}
					}
					want := map[string]string{"old": files + "manifest.copy.json manifest.json", "new": "coded.0 coded.1 coded.2 manifest.copy.json manifest.json"}[got]
					if names, err := listingOn(x.Machine.Process(), out); err != nil || names != want && !(got == "" && names == "none") {
						return fmt.Errorf("after the next run: %s, want %s: %v", names, want, err)
					}
					if err := replace(x.Machine.Process(), 2, "again"); err != nil {
						return fmt.Errorf("again: %w", err)
					}
					if now, err := holds(cut(x.Machine)); err != nil || now != "again" {
						return fmt.Errorf("again: it holds %q, %v", now, err)
					}
					return nil
				},
			}
			t.Logf("%d runs were interrupted", sweep.Test(t))
		})
	}
}

// TestFaultyFiles is [TestFaultyReplace] for files without a manifest.
func TestFaultyFiles(t *testing.T) {
	t.Parallel()
	names := []string{"a", strings.Repeat("b", longestName), "c"}
	write := func(on disk.Disk, text string) error {
		d, err := create(place{Disk: on, Path: out}, names, ErrFileExists, true)
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
		return d.CommitFiles(0o666)
	}
	texts := func(m *disktest.Machine) string {
		var all []string
		for _, name := range names {
			data, _ := m.ReadFile(out + "/" + name)
			all = append(all, string(data))
		}
		return strings.Join(all, " ")
	}
	whole := func(text string) bool { return text == "old old old" || text == "new new new" }
	m := machine(t, 0, "")
	if err := write(m.Process(), "old"); err != nil {
		t.Fatal(err)
	}
	m.WriteFile(out+"/theirs", []byte("theirs"), 0o644)
	sweep := disktest.Sweep{
		Machine: m,
		Run:     func(p *disktest.Process) error { return write(p, "new") },
		Check: func(x *disktest.Interrupted) error {
			got := texts(x.Machine)
			if x.Err == nil && (got != "new new new" || texts(cut(x.Machine)) != got) {
				return fmt.Errorf("%s, after a power cut %s", got, texts(cut(x.Machine)))
			}
			committed := x.Machine.Exists(out + "/" + journalName)
			if !whole(got) && !committed {
				return fmt.Errorf("%s, and no journal", got)
			}
			if err := nextRun(x.Machine, nil, ErrFileExists); err != nil {
				return fmt.Errorf("the next run: %w", err)
			}
			if now := texts(x.Machine); !whole(now) || committed && now != "new new new" || !committed && now != got || texts(cut(x.Machine)) != now {
				return fmt.Errorf("the next run leaves %s of %s, after a power cut %s", now, got, texts(cut(x.Machine)))
			}
			return listed(x.Machine, "the next run", "a "+names[1]+" c theirs")
		},
	}
	t.Logf("%d runs were interrupted", sweep.Test(t))
}

// TestEncodeInterrupted is [TestFaultyReplace] for all of Encode, at one rank and at two of one process.
func TestEncodeInterrupted(t *testing.T) {
	t.Parallel()
	const k = 3
	in, field := t.TempDir(), fieldtest.Parse(t, "2^8")
	for n := range k {
		writeText(t, filepath.Join(in, fmt.Sprint("packet.", n)), "0123456789")
	}
	encode := func(on disk.Disk, ranks int) error {
		return local.Run(t.Context(), ranks, func(ctx context.Context, tr transport.Transport) error {
			_, err := Encode(ctx, tr, Encoding{
				Options: Options{Dir: out, Replace: true, disk: on}, Field: field, Matrix: matrix.Spec{Family: "cauchy"}, Files: []string{in}, Processors: k,
			})
			return err
		})
	}
	for _, ranks := range []int{1, 2} {
		sweep := disktest.Sweep{
			Machine: machine(t, 5, "old"),
			Run:     func(p *disktest.Process) error { return encode(p, ranks) },
			Some:    *mostCalls, Concurrent: ranks > 1,
			Check: func(x *disktest.Interrupted) error {
				was, _, err := result(x.Machine)
				if err != nil || was == nil || was.Processors != k && (was.Processors != 5 || x.Err == nil) {
					return fmt.Errorf("it holds %+v, %v", was, err)
				}
				if err := nextRun(x.Machine, manifests, ErrExists); err != nil {
					return fmt.Errorf("the next run: %w", err)
				}
				is, _, err := result(cut(x.Machine))
				if err != nil || is == nil || is.Processors != was.Processors {
					return fmt.Errorf("after the next run and a power cut it holds %+v, %v", is, err)
				}
				if err := encode(x.Machine.Process(), ranks); err != nil {
					return fmt.Errorf("again: %w", err)
				}
				return listed(x.Machine, "again", "coded.0 coded.1 coded.2 manifest.copy.json manifest.json")
			},
		}
		t.Logf("%d ranks: %d runs were interrupted", ranks, sweep.Test(t))
	}
}

// committed returns a machine whose journal a killed run has left, of a smaller result in the place of another. The
// journal may be lost with a power cut.
func committed(t *testing.T) *disktest.Machine {
	t.Helper()
	m := machine(t, 3, "old")
	for n := 0; !m.Exists(out + "/" + journalName); n++ {
		if n == 1000 {
			t.Fatal("no kill leaves a journal")
		}
		p := m.Process()
		p.KillAt(n)
		replace(p, 1, "new")
	}
	return m
}

// TestFinishInterrupted interrupts the run that finds the journal of a killed one: the old result or the new one is whole.
func TestFinishInterrupted(t *testing.T) {
	t.Parallel()
	m := committed(t)
	if got, err := holds(cut(m)); got != "old" || err != nil {
		t.Fatalf("the journal lasts: %q, %v", got, err)
	}
	sweep := disktest.Sweep{
		Machine: m,
		Run:     func(p *disktest.Process) error { return begin(p, manifests, ErrExists) },
		Check: func(x *disktest.Interrupted) error {
			got, err := holds(x.Machine)
			if err != nil || got != "new" && (got != "old" || x.Err == nil || !x.Ends) {
				return fmt.Errorf("it holds %q, %v", got, err)
			}
			if err := nextRun(x.Machine, manifests, ErrExists); err != nil {
				return fmt.Errorf("the next run: %w", err)
			}
			if now, err := holds(cut(x.Machine)); err != nil || now != got {
				return fmt.Errorf("the next run: it holds %q, not %q, %v", now, got, err)
			}
			return nil
		},
	}
	t.Logf("%d runs were interrupted", sweep.Test(t))
}

// TestOpenPending reads a directory whose journal a killed run has left: the reader takes the files that it
// lists, and leaves them to the next run that writes.
func TestOpenPending(t *testing.T) {
	t.Parallel()
	m := committed(t)
	pending := func() bool { return m.Exists(out + "/" + journalName) }
	if err := check(m.Process(), out, manifests, ErrExists, false); !errors.Is(err, ErrExists) {
		t.Errorf("check: %v", err)
	}
	var replaced []string
	for _, p := range replaces(m.Process(), out, nil, true) {
		replaced = append(replaced, filepath.Base(p))
	}
	if got := strings.Join(replaced, " "); !strings.Contains(got, "coded.2") {
		t.Errorf("replaces %s, without what the journal removes", got)
	}
	reader := m.Process()
	busy := takeLock(t, m) // another run: the reader leaves the journal to it
	if _, err := openStored(reader, out, disk.HolderOf("decode", "")); !errors.As(err, new(*disk.BusyError)) {
		t.Errorf("read while another run writes: %v", err)
	}
	busy(true)
	if got, err := holds(m); got != "new" || err != nil {
		t.Errorf("it holds %q, %v", got, err)
	}
	r, err := openStored(reader, out, disk.HolderOf("decode", ""))
	if err != nil || len(r.Manifest.Files) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if text, err := m.ReadFile(r.File("coded.0")); err != nil || !strings.Contains(string(text), "new") {
		t.Errorf("coded.0 is %q, %v", text, err)
	}
	if err := nextRun(m, manifests, ErrExists); !errors.As(err, new(*disk.BusyError)) {
		t.Errorf("written while it is read: %v", err)
	}
	r.Close()
	r.Close()
	if !pending() {
		t.Error("the reader has changed the directory")
	}
	d, err := create(place{Disk: m.Process(), Path: out}, manifests, ErrExists, true)
	if err != nil || !d.Finished {
		t.Fatalf("%+v, %v", d, err)
	}
	d.Discard()
	if err := listed(m, "written", "coded.0 manifest.copy.json manifest.json"); err != nil {
		t.Error(err)
	}
	if m.Exists(out + "/" + LockName) {
		t.Error("the lock is left")
	}
}

// takeLock takes the lock as another run does.
func takeLock(t *testing.T, m *disktest.Machine) func(bool) {
	t.Helper()
	dir, err := m.Process().Open(out)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := dir.Lock(LockName, false, disk.HolderOf("encode", "other"))
	if err != nil {
		t.Fatal(err)
	}
	return unlock
}

// TestDamagedJournal has a run find a journal that is damaged: it changes nothing.
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	m := machine(t, 3, "old")
	m.WriteFile(out+"/"+hidden+"x", nil, 0o644)
	for _, text := range []string{"", "{}", "{}\n{}\n", `{"format":"volley-commit","version":1,"files":[{"from":"../x","to":"a"}]}`} {
		m.WriteFile(out+"/"+journalName, []byte(text), 0o644)
		before, err := listingOn(m.Process(), out)
		if err != nil {
			t.Fatal(err)
		}
		if err := nextRun(m, manifests, ErrExists); err == nil || !strings.Contains(err.Error(), journalName) {
			t.Errorf("%q: %v, want an error that names it", text, err)
		}
		if err := listed(m, text, before); err != nil {
			t.Error(err)
		}
		if got, err := holds(m); got != "old" || err != nil {
			t.Errorf("the old result cannot be read: %q, %v", got, err)
		}
	}
}

// FuzzJournal checks that no journal names a file outside the directory.
func FuzzJournal(f *testing.F) {
	dir, err := disktest.NewMachine().Process().Open("/")
	if err != nil {
		f.Fatal(err)
	}
	j := journal{Files: []renamed{{hidden + "x-a", "a"}}, Remove: []string{"coded.1"}}
	if err := j.write(dir, 0o666); err != nil {
		f.Fatal(err)
	}
	text, err := disk.ReadText(dir, journalName, mostText)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		defer fuzzlimit.Hold(t, len(text))()
		j, err := parseJournal(text)
		if err != nil {
			return
		}
		names := j.Remove
		for _, f := range j.Files {
			names = append(names, f.From, f.To)
		}
		for _, name := range names {
			if !filepath.IsLocal(name) || filepath.Base(name) != name {
				t.Errorf("name %q", name)
			}
		}
	})
}

// TestManifestCopy damages every byte of the manifest, and cuts it everywhere: the copy takes
// its place.
func TestManifestCopy(t *testing.T) {
	t.Parallel()
	m := machine(t, 2, "x")
	const name, other = out + "/" + ManifestName, out + "/" + CopyName
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
	if err := check(m.Process(), out, manifests, ErrExists, false); !errors.Is(err, ErrExists) {
		t.Errorf("only the copy: %v", err)
	}
	m.WriteFile(name, []byte("{"), 0o644)
	m.WriteFile(other, []byte("{"), 0o644)
	if _, err := readStored(m.Process(), out); err == nil || !strings.Contains(err.Error(), ManifestName) || !strings.Contains(err.Error(), CopyName) {
		t.Errorf("both damaged: %v", err)
	}
}
