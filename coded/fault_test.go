package coded

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"volley/internal/disk"
	"volley/internal/fuzzlimit"
)

// A fault is a disk of which one call fails, or on which nothing happens from one call on,
// as when the process is killed.
type fault struct {
	disk.Disk
	mu     sync.Mutex
	at     int   // of which call, from 1 on; 0: of none
	err    error // what it returns; nil: the process is killed
	calls  int
	killed bool
	unlock []func() // locks of the process
}

var errKilled = errors.New("killed")

// next returns what is to go wrong with the call that is to come.
func (f *fault) next() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	switch {
	case f.killed:
		return errKilled
	case f.calls != f.at:
		return nil
	case f.err == nil:
		f.killed = true
		return errKilled
	}
	return f.err
}

// end lets the kernel drop the locks of the process.
func (f *fault) end() {
	for _, unlock := range f.unlock {
		unlock()
	}
}

func (f *fault) Open(path string) (disk.Dir, error) {
	d, err := f.Disk.Open(path)
	return &faultDir{d, f}, err
}

type faultDir struct {
	disk.Dir
	f *fault
}

func (d *faultDir) do(name string, call func() error) error {
	if err := d.f.next(); err != nil {
		return &fs.PathError{Op: "do", Path: name, Err: err}
	}
	return call()
}

func (d *faultDir) OpenFile(name string, flag int, perm fs.FileMode) (file disk.File, err error) {
	if flag == 0 {
		return d.Dir.OpenFile(name, flag, perm)
	}
	err = d.do(name, func() (err error) { file, err = d.Dir.OpenFile(name, flag, perm); return err })
	return &faultFile{file, d.f}, err
}

func (d *faultDir) Rename(old, name string) error {
	return d.do(name, func() error { return d.Dir.Rename(old, name) })
}

func (d *faultDir) Remove(name string) error {
	return d.do(name, func() error { return d.Dir.Remove(name) })
}

func (d *faultDir) SyncDir(name string) error {
	return d.do(name, func() error { return nil }) // no power is cut here
}

func (d *faultDir) Lock(name string, shared bool, holder disk.Holder) (unlock func(bool), err error) {
	err = d.do(name, func() (err error) { unlock, err = d.Dir.Lock(name, shared, holder); return err })
	if err != nil {
		return nil, err
	}
	let, held := unlock, true
	end := func(remove bool) {
		if held {
			held = false
			let(remove)
		}
	}
	d.f.unlock = append(d.f.unlock, func() { end(false) })
	return func(remove bool) { end(remove && d.f.next() == nil) }, nil
}

type faultFile struct {
	disk.File
	f *fault
}

// Write writes half of what it cannot write all of.
func (f *faultFile) Write(p []byte) (int, error) {
	if err := f.f.next(); err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, &fs.PathError{Op: "write", Path: f.Name(), Err: err}
	}
	return f.File.Write(p)
}

func (f *faultFile) Sync() error {
	if err := f.f.next(); err != nil {
		return &fs.PathError{Op: "sync", Path: f.Name(), Err: err}
	}
	return nil
}

func (f *faultFile) Close() error {
	f.File.Close()
	return f.f.next()
}

// replace puts a result of that many files in the place of another, on a disk.
func replace(f *fault, path string, processors int, text string) error {
	d, err := create(place{Disk: f, Path: path}, manifests, ErrExists, true)
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

// holds returns the text of the result that a directory holds as a whole, "" where it holds
// none.
func holds(t *testing.T, path string) string {
	t.Helper()
	r, err := readStored(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		t.Error(err)
		return "damaged"
	}
	if r.Damage != nil && !errors.Is(r.Damage, fs.ErrNotExist) {
		t.Errorf("the manifest: %v", r.Damage)
	}
	text := ""
	for k, f := range r.Manifest.Files {
		data, err := os.ReadFile(r.File(f.Name))
		if err != nil || f.SHA256 != sum(data) {
			t.Errorf("%s is %q, %v", r.File(f.Name), data, err)
		}
		text = strings.TrimSuffix(string(data), fmt.Sprint(k))
	}
	return text
}

func sum(data []byte) string {
	f := newFile{digest: sha256.New()}
	f.digest.Write(data)
	_, sum := f.Sum()
	return sum
}

// faults runs something once without fault and then with every call as the place where
// the process is killed or the call fails.
func faults(t *testing.T, run func(t *testing.T, f *fault)) {
	whole := &fault{Disk: disk.OS}
	run(t, whole)
	if whole.calls < 20 {
		t.Fatalf("%d calls: the faults are not on the way", whole.calls)
	}
	t.Logf("%d calls", whole.calls)
	for at := 1; at <= whole.calls; at++ {
		for _, err := range []error{nil, []error{syscall.EIO, syscall.ENOSPC}[at%2]} {
			t.Run(fmt.Sprint(at, err), func(t *testing.T) { run(t, &fault{Disk: disk.OS, at: at, err: err}) })
		}
	}
}

// TestFaultyReplace replaces a result, larger or smaller or none, on a disk that fails at any
// point or with a process that is killed there: the old or the new one is whole, and the next
// run has a directory without leftovers.
func TestFaultyReplace(t *testing.T) {
	for _, old := range []int{0, 1, 11} {
		t.Run(fmt.Sprint(old), func(t *testing.T) {
			faults(t, func(t *testing.T, f *fault) {
				root := t.TempDir()
				path, was := filepath.Join(root, "a", "out"), ""
				if old > 0 {
					if err := replace(&fault{Disk: disk.OS}, path, old, "old"); err != nil {
						t.Fatal(err)
					}
					was = "old"
				}
				err := replace(f, path, 3, "new")
				f.end()
				got := holds(t, path)
				if got != "new" && (got != was || err == nil) || err != nil && f.at == 0 {
					t.Fatalf("%v, and it holds %q: want %q or new", err, got, was)
				}
				if names := listing(t, path); err != nil && got == was && f.err != nil && f.calls > f.at && strings.Contains(names, hidden) && !errors.Is(err, errKilled) {
					t.Errorf("%v: left: %s", err, names)
				}
				if d, err := create(place{Path: path}, manifests, ErrExists, true); err != nil {
					t.Error(err)
				} else {
					d.Discard()
				}
				if now := holds(t, path); now != got {
					t.Errorf("the next run makes it hold %q, not %q", now, got)
				}
				want := map[string]string{
					"": "none", "old": "coded.0 manifest.copy.json manifest.json",
					"new": "coded.0 coded.1 coded.2 manifest.copy.json manifest.json",
				}[got]
				if got == "old" && old == 11 {
					want = "coded.00 coded.01 coded.02 coded.03 coded.04 coded.05 coded.06 coded.07 coded.08 coded.09 coded.10 manifest.copy.json manifest.json"
				}
				if names := listing(t, path); names != want && !(got == "" && names == "") {
					t.Errorf("after the next run: %s, want %s", names, want)
				}
				if err := replace(&fault{Disk: disk.OS}, path, 2, "again"); err != nil || holds(t, path) != "again" {
					t.Errorf("again: %v", err)
				}
			})
		})
	}
}

// TestFaultyFiles is [TestFaultyReplace] for files without a manifest.
func TestFaultyFiles(t *testing.T) {
	names := []string{"a", strings.Repeat("b", longestName), "c"}
	write := func(f *fault, path, text string) error {
		d, err := create(place{Disk: f, Path: path}, names, ErrFileExists, true)
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
	texts := func(path string) string {
		var all []string
		for _, name := range names {
			data, err := os.ReadFile(filepath.Join(path, name))
			if err != nil {
				data = nil
			}
			all = append(all, string(data))
		}
		return strings.Join(all, " ")
	}
	faults(t, func(t *testing.T, f *fault) {
		path := t.TempDir()
		if err := write(&fault{Disk: disk.OS}, path, "old"); err != nil {
			t.Fatal(err)
		}
		put(t, "theirs", path, "theirs")
		err := write(f, path, "new")
		f.end()
		if got := texts(path); err == nil && got != "new new new" || err != nil && f.at == 0 {
			t.Fatalf("%v: %s", err, got)
		}
		if got := texts(path); got != "old old old" && got != "new new new" {
			if _, err := os.Lstat(filepath.Join(path, journalName)); err != nil {
				t.Errorf("%s, and no journal: %v", got, err)
			}
		}
		d, err2 := create(place{Path: path}, nil, ErrFileExists, true)
		if err2 != nil {
			t.Fatal(err2)
		}
		d.Discard()
		if got := texts(path); got != "old old old" && got != "new new new" {
			t.Errorf("%v: the next run leaves %s", err, got)
		}
		if got := listing(t, path); got != "a "+names[1]+" c theirs" {
			t.Errorf("the next run leaves %s", got)
		}
	})
}

// TestOpenPending reads a directory whose journal a killed run has left: the reader takes the files that it
// lists, and leaves them to the next run that writes.
func TestOpenPending(t *testing.T) {
	path := t.TempDir()
	fill(t, path, 3, "old")
	f := &fault{Disk: disk.OS}
	for at := 1; !pending(path); at++ {
		if at == 1000 {
			t.Fatal("no kill leaves a journal")
		}
		f = &fault{Disk: disk.OS, at: at}
		replace(f, path, 1, "new")
		f.end()
	}
	if err := check(disk.OS, path, manifests, ErrExists, false); !errors.Is(err, ErrExists) {
		t.Errorf("check: %v", err)
	}
	var replaced []string
	for _, p := range replaces(path, nil, true) {
		replaced = append(replaced, filepath.Base(p))
	}
	if got := strings.Join(replaced, " "); !strings.Contains(got, "coded.2") {
		t.Errorf("replaces %s, without what the journal removes", got)
	}
	busy := takeLock(t, path) // another run: the reader leaves the journal to it
	if _, err := openStored(path, disk.HolderOf("decode", "")); !errors.As(err, new(*disk.BusyError)) {
		t.Errorf("read while another run writes: %v", err)
	}
	busy(true)
	if got := holds(t, path); got != "new" {
		t.Errorf("it holds %q", got)
	}
	r, err := openStored(path, disk.HolderOf("decode", ""))
	if err != nil || len(r.Manifest.Files) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if text, err := os.ReadFile(r.File("coded.0")); err != nil || !strings.Contains(string(text), "new") {
		t.Errorf("coded.0 is %q, %v", text, err)
	}
	if _, err := create(place{Path: path}, manifests, ErrExists, true); !errors.As(err, new(*disk.BusyError)) {
		t.Errorf("written while it is read: %v", err)
	}
	r.Close()
	r.Close()
	if !pending(path) {
		t.Error("the reader has changed the directory")
	}
	d, err := create(place{Path: path}, manifests, ErrExists, true)
	if err != nil || !d.Finished {
		t.Fatalf("%+v, %v", d, err)
	}
	d.Discard()
	if names, _ := filepath.Glob(filepath.Join(path, hidden+"*")); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
	if got := listing(t, path); got != "coded.0 manifest.copy.json manifest.json" {
		t.Errorf("%s", got)
	}
}

// takeLock takes the lock as another run does.
func takeLock(t *testing.T, path string) func(bool) {
	t.Helper()
	dir, err := disk.OS.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := dir.Lock(LockName, false, disk.HolderOf("encode", "other"))
	if err != nil {
		t.Fatal(err)
	}
	return unlock
}

func pending(path string) bool {
	_, err := os.Lstat(filepath.Join(path, journalName))
	return err == nil
}

// TestDamagedJournal has a run find a journal that is damaged: it changes nothing.
func TestDamagedJournal(t *testing.T) {
	path := t.TempDir()
	fill(t, path, 3, "old")
	put(t, "", path, hidden+"x")
	for _, text := range []string{"", "{}", "{}\n{}\n", `{"format":"volley-commit","version":1,"files":[{"from":"../x","to":"a"}]}`} {
		put(t, text, path, journalName)
		before := listing(t, path)
		if _, err := create(place{Path: path}, manifests, ErrExists, true); err == nil || !strings.Contains(err.Error(), journalName) {
			t.Errorf("%q: %v, want an error that names it", text, err)
		}
		if got := listing(t, path); got != before {
			t.Errorf("%q: left %s", text, got)
		}
		if holds(t, path) != "old" {
			t.Error("the old result cannot be read")
		}
	}
}

// FuzzJournal checks that no journal names a file outside the directory.
func FuzzJournal(f *testing.F) {
	dir, err := disk.OS.Open(f.TempDir())
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
	path := t.TempDir()
	fill(t, path, 2, "x")
	name := filepath.Join(path, ManifestName)
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := os.ReadFile(filepath.Join(path, CopyName)); err != nil || string(other) != string(good) {
		t.Errorf("the copy is %q, %v", other, err)
	}
	read := func(text string) {
		t.Helper()
		put(t, text, name)
		r, err := readStored(path)
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
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if r, err := readStored(path); err != nil || !errors.Is(r.Damage, fs.ErrNotExist) {
		t.Errorf("without the manifest: %v", err)
	}
	if err := check(disk.OS, path, manifests, ErrExists, false); !errors.Is(err, ErrExists) {
		t.Errorf("only the copy: %v", err)
	}
	put(t, "{", path, ManifestName)
	put(t, "{", path, CopyName)
	if _, err := readStored(path); err == nil || !strings.Contains(err.Error(), ManifestName) || !strings.Contains(err.Error(), CopyName) {
		t.Errorf("both damaged: %v", err)
	}
}
