package disktest

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/internal/disk"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func open(t *testing.T, d disk.Disk, path string) disk.Dir {
	t.Helper()
	dir, err := d.Open(path)
	must(t, err)
	return dir
}

// write writes a file as a program does.
func write(t *testing.T, d disk.Dir, name, text string, sync bool) {
	t.Helper()
	f, err := d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	must(t, err)
	_, err = f.Write([]byte(text))
	must(t, err)
	if sync {
		must(t, f.Sync())
	}
	must(t, f.Close())
}

// tree returns the names and contents of the files below a path, and the empty directories.
func tree(m *Machine, path string) string {
	var list []string
	for line := range strings.Lines(m.Tree(path)) {
		name, _, _ := strings.Cut(line, " ")
		i, err := m.Lstat(path + "/" + name)
		if err == nil && i.Mode().IsRegular() {
			data, _ := m.ReadFile(path + "/" + name)
			list = append(list, name+"="+string(data))
		} else if name != "." {
			list = append(list, name)
		}
	}
	return strings.Join(list, " ")
}

// TestDiskPowerCut checks what a power cut leaves of what a program has done.
func TestDiskPowerCut(t *testing.T) {
	t.Parallel()
	all := func(string) bool { return true }
	only := func(names ...string) func(string) bool {
		return func(path string) bool { return slices.Contains(names, path) }
	}
	for _, c := range []struct {
		name string
		do   func(t *testing.T, d disk.Dir)
		lose func(string) bool
		want string
	}{
		{"nothing", func(t *testing.T, d disk.Dir) {}, all, "a a/x=X b b/y=Y"},
		{"write", func(t *testing.T, d disk.Dir) { write(t, d, "new", "N", false) }, all, "a a/x=X b b/y=Y"},
		{"write, sync", func(t *testing.T, d disk.Dir) { write(t, d, "new", "N", true) }, all, "a a/x=X b b/y=Y"},
		{"write, syncdir", func(t *testing.T, d disk.Dir) { write(t, d, "new", "N", false); must(t, d.SyncDir(".")) }, all, "a a/x=X b b/y=Y new="},
		{"write, sync, syncdir", func(t *testing.T, d disk.Dir) { write(t, d, "new", "N", true); must(t, d.SyncDir(".")) }, all, "a a/x=X b b/y=Y new=N"},
		{"overwrite, sync", func(t *testing.T, d disk.Dir) { write(t, d, "a/x", "NEW", true) }, all, "a a/x=NEW b b/y=Y"},
		{"remove", func(t *testing.T, d disk.Dir) { must(t, d.Remove("a/x")) }, all, "a a/x=X b b/y=Y"},
		{"remove, syncdir", func(t *testing.T, d disk.Dir) { must(t, d.Remove("a/x"), d.SyncDir("a")) }, all, "a b b/y=Y"},
		{"link", func(t *testing.T, d disk.Dir) { must(t, d.Link("a/x", "b/x"), d.Remove("a/x"), d.SyncDir("a")) }, all, "a b b/y=Y"},
		{"mkdir, syncdir above", func(t *testing.T, d disk.Dir) {
			must(t, d.Mkdir("c", 0o700))
			write(t, d, "c/z", "Z", true)
			must(t, d.SyncDir("."))
		}, all, "a a/x=X b b/y=Y c"},
		{"mkdirall", func(t *testing.T, d disk.Dir) { must(t, disk.MkdirAll(d, "c/d", 0o700)) }, all, "a a/x=X b b/y=Y c c/d"},
		{"replace, syncdir", func(t *testing.T, d disk.Dir) {
			write(t, d, "a/tmp", "NEW", true)
			must(t, d.Rename("a/tmp", "a/x"), d.SyncDir("a"))
		}, all, "a a/x=NEW b b/y=Y"},
		{"replace, unsynced", func(t *testing.T, d disk.Dir) {
			write(t, d, "a/tmp", "NEW", false)
			must(t, d.Rename("a/tmp", "a/x"), d.SyncDir("a"))
		}, all, "a a/x= b b/y=Y"},
		{"move", func(t *testing.T, d disk.Dir) { must(t, d.Rename("a/x", "b/y")) }, all, "a a/x=X b b/y=Y"},
		{"move, kept", func(t *testing.T, d disk.Dir) { must(t, d.Rename("a/x", "b/y")) }, only("/d/a/x"), "a b b/y=X"},
		{"move, syncdir of the new", func(t *testing.T, d disk.Dir) { must(t, d.Rename("a/x", "b/y"), d.SyncDir("b")) }, all, "a b b/y=X"},
		{"move, syncdir of the old", func(t *testing.T, d disk.Dir) { must(t, d.Rename("a/x", "b/y"), d.SyncDir("a")) }, all, "a a/x=X b b/y=Y"},
		{"move, the old name in use", func(t *testing.T, d disk.Dir) {
			must(t, d.Rename("a/x", "b/y"))
			write(t, d, "a/x", "NEW", true)
			must(t, d.SyncDir("a"))
		}, all, "a a/x=NEW b b/y=X"},
		{"move twice, syncdir", func(t *testing.T, d disk.Dir) {
			must(t, d.Rename("a/x", "tmp"), d.Rename("tmp", "b/x"), d.SyncDir("b"))
		}, all, "a b b/x=X b/y=Y"},
		{"one name for two moves", func(t *testing.T, d disk.Dir) {
			write(t, d, "tmp", "1", true)
			must(t, d.Rename("tmp", "a/x"))
			write(t, d, "tmp", "2", true)
			must(t, d.Rename("tmp", "b/y"))
		}, only("/d/a/x"), "a a/x=X b b/y=2"},
		{"exchange", func(t *testing.T, d disk.Dir) { must(t, d.Exchange("a/x", "b/y")) }, all, "a a/x=X b b/y=Y"},
		{"exchange, syncdir", func(t *testing.T, d disk.Dir) { must(t, d.Exchange("a/x", "b/y"), d.SyncDir("a")) }, all, "a a/x=Y b b/y=X"},
		{"exchange of what was moved, syncdir", func(t *testing.T, d disk.Dir) {
			must(t, d.Rename("a/x", "tmp"), d.Exchange("tmp", "b/y"), d.SyncDir("."))
		}, all, "a b b/y=X tmp=Y"},
		{"directory, syncdir", func(t *testing.T, d disk.Dir) { must(t, d.Rename("a", "b/a"), d.SyncDir("b")) }, all, "b b/a b/a/x=X b/y=Y"},
		{"open and removed", func(t *testing.T, d disk.Dir) {
			f, err := d.OpenFile("a/x", os.O_RDWR, 0)
			must(t, err, d.Remove("a/x"))
			_, err = f.WriteAt([]byte("gone"), 0)
			must(t, err, f.Sync(), d.SyncDir("a"))
		}, all, "a b b/y=Y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewMachine()
			m.MkdirAll("/d/a", 0o755)
			m.MkdirAll("/d/b", 0o755)
			m.WriteFile("/d/a/x", []byte("X"), 0o644)
			m.WriteFile("/d/b/y", []byte("Y"), 0o644)
			p := m.Process()
			d := open(t, p, "/d")
			c.do(t, d)
			before := m.Tree("/")
			kept := m.Clone()
			m.PowerCut(c.lose)
			if got := tree(m, "/d"); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			if _, err := d.Lstat("."); !errors.Is(err, ErrKilled) {
				t.Errorf("the process lives: %v", err)
			}
			after := m.Tree("/")
			if m.PowerCut(nil); m.Tree("/") != after {
				t.Error("a second cut loses more")
			}
			if kept.Tree("/") != before {
				t.Error("the clone has changed")
			}
			synced := kept.Clone()
			if kept.PowerCut(c.lose); kept.Tree("/") != after {
				t.Error("the clone has something else made last")
			}
			synced.SyncAll()
			if synced.PowerCut(nil); synced.Tree("/") != before {
				t.Error("SyncAll does not make all last")
			}
		})
	}
}

// TestDiskPowerCutModes checks modes and times after a power cut.
func TestDiskPowerCutModes(t *testing.T) {
	t.Parallel()
	m := NewMachine()
	m.MkdirAll("/d", 0o755)
	m.WriteFile("/d/x", []byte("X"), 0o600)
	at := time.Unix(10_000_000_000, 5)
	m.SetTime("/d/x", at)
	d := open(t, m.Process(), "/d")
	must(t, d.Symlink("x", "link"), d.SetTime("link", at), d.SyncAll(), d.SetTime("link", time.Unix(1, 0)))
	must(t, d.Symlink("x", "unsynced"), d.SetTime("unsynced", at), d.SyncDir("."))
	f, err := d.OpenFile("x", os.O_RDWR, 0)
	must(t, err, d.Chmod("x", 0o640), f.Sync(), d.Chmod("x", 0o755|fs.ModeSetuid), d.SetTime("x", time.Unix(1, 0)))
	must(t, d.Chmod(".", 0o700), d.SyncDir("."), d.Chmod(".", 0o711))
	must(t, d.SyncDir("."))
	if i, err := m.Lstat("/d/x"); err != nil || i.Mode() != 0o755|fs.ModeSetuid || i.ModTime() != time.Unix(1, 0) {
		t.Errorf("before: %v, %v, %v", i.Mode(), i.ModTime(), err)
	}
	m.PowerCut(nil)
	if i, err := m.Lstat("/d/unsynced"); err != nil || i.ModTime().Equal(at) {
		t.Errorf("a symbolic link that was never synced: %v", err)
	}
	for name, mode := range map[string]fs.FileMode{"/d/x": 0o640, "/d": fs.ModeDir | 0o711, "/d/link": fs.ModeSymlink | 0o777} {
		i, err := m.Lstat(name)
		if err != nil || i.Mode() != mode || name != "/d" && !i.ModTime().Equal(at) {
			t.Errorf("%s: %v, %v, %v", name, i.Mode(), i.ModTime(), err)
		}
	}
}
