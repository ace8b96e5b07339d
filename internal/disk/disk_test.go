package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"volley/files"
	"volley/internal/disk"
	"volley/internal/disk/disktest"
)

// quick is the file system for tests that wait until a lock is refused.
var quick = disk.System{HolderTime: time.Millisecond}

func open(t *testing.T, path string) disk.Dir {
	t.Helper()
	return openOn(t, disk.OS, path)
}

func openOn(t *testing.T, on disk.Disk, path string) disk.Dir {
	t.Helper()
	d, err := on.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestLock checks who gets a lock, and what the others are told, on disks of both kinds.
func TestLock(t *testing.T) {
	t.Parallel()
	m := disktest.NewMachine()
	m.MkdirAll("/d", 0o755)
	for path, on := range map[string]func() disk.Disk{t.TempDir(): func() disk.Disk { return quick }, "/d": func() disk.Disk { return m.Process() }} {
		d, other := openOn(t, on(), path), openOn(t, on(), path)
		mine := disk.HolderOf("protect", "run")
		lock := func(d disk.Dir, shared bool, holder files.Holder) func(remove bool) {
			t.Helper()
			unlock, err := d.Lock("lock", shared, holder)
			if err != nil {
				t.Fatal(err)
			}
			return unlock
		}
		there := func(want bool, when string) {
			t.Helper()
			if _, err := d.Lstat("lock"); want != (err == nil) {
				t.Errorf("%s: the lock's file: %v", when, err)
			}
		}
		unlock := lock(d, false, mine)
		for _, shared := range []bool{false, true} {
			_, err := other.Lock("lock", shared, disk.HolderOf("recover", "other"))
			busy := new(files.BusyError)
			if !errors.As(err, &busy) || busy.Path != d.Path() || busy.Holder.PID != os.Getpid() || busy.Holder.Verb != "protect" || busy.Holder.Run != "run" || !busy.Holder.Since.Equal(mine.Since) {
				t.Errorf("shared %v: %+v", shared, err)
			}
		}
		// A lock that names this very rank is one that it has given back: whose it is now is not known.
		busy := new(files.BusyError)
		if _, err := other.Lock("lock", false, mine); path != "/d" && (!errors.As(err, &busy) || busy.Holder != (files.Holder{})) {
			t.Errorf("its own name: %+v", err)
		}
		unlock(false)
		one, two := lock(d, true, disk.HolderOf("verify", "a")), lock(other, true, disk.HolderOf("verify", "b"))
		if _, err := d.Lock("lock", false, mine); !errors.As(err, new(*files.BusyError)) {
			t.Errorf("exclusive beside two shared: %v", err)
		}
		one(true)
		there(true, "another still has it")
		two(true)
		there(false, "shared by nobody")
		lock(d, false, mine)(true)
		there(false, "given back")
	}
}

// TestLockRemoved has many take a lock whose file each of them removes: of those that have it alone never two have it, and
// whoever does not have it is told that another does.
func TestLockRemoved(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		path := t.TempDir()
		var in, got atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			d := openOn(t, quick, path)
			all.Go(func() {
				for got.Load() < 100 {
					unlock, err := d.Lock("lock", shared, files.Holder{PID: 1})
					if err != nil {
						if !errors.As(err, new(*files.BusyError)) {
							t.Error(err)
						}
						continue
					}
					if in.Add(1) != 1 && !shared {
						t.Error("two have the lock")
					}
					got.Add(1)
					runtime.Gosched() // to one that took it too
					in.Add(-1)
					unlock(true)
				}
			})
		}
		all.Wait()
	}
}

// TestWhole checks that errors have whole paths, and that no name leads out.
func TestWhole(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	d := open(t, path)
	_, err := d.Lstat("none")
	if e := new(fs.PathError); !errors.As(err, &e) || e.Path != filepath.Join(d.Path(), "none") || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if err := os.Symlink("/", filepath.Join(path, "out")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../x", "out/tmp", "/etc"} {
		if _, err := d.Lstat(name); err == nil {
			t.Errorf("%s can be reached", name)
		}
	}
}

// TestUnmake has a file where a directory was to be made: only directories go.
func TestUnmake(t *testing.T) {
	t.Parallel()
	m := disktest.NewMachine()
	m.MkdirAll("/a", 0o755)
	m.WriteFile("/a/file", nil, 0o644)
	p := m.Process()
	fromFile, undo := disk.Unmake(p, "/a/file/out"), disk.Unmake(p, "/a/b/c/d")
	if _, err := disk.Make(p, "/a/file/out", 0o755); err == nil {
		t.Error("a directory was made in a file")
	}
	m.MkdirAll("/a/b/c", 0o755)
	m.WriteFile("/a/b/c/d", nil, 0o644)
	fromFile()
	undo()
	for _, name := range []string{"/a/file", "/a/b/c/d"} {
		if !m.Exists(name) {
			t.Errorf("%s is gone", name)
		}
	}
	m.Remove("/a/b/c/d")
	if undo(); m.Exists("/a/b") {
		t.Error("an empty directory is left")
	}
}

// TestLockLinks puts links in the place of the file of a lock, before and after it is taken: what is
// behind them stays as it is.
func TestLockLinks(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	secret, lock := filepath.Join(path, "secret"), filepath.Join(path, "lock")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := disk.OS.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	unlock, err := d.Lock("lock", false, files.Holder{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(lock), os.Symlink(secret, lock)); err != nil {
		t.Skip(err)
	}
	if _, err := d.Lock("lock", false, files.Holder{}); err == nil {
		t.Error("a link is locked")
	}
	unlock(false)
	if text, err := os.ReadFile(secret); string(text) != "secret" {
		t.Errorf("behind the link is %q, %v", text, err)
	}
}
