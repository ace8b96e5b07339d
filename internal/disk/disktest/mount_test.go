package disktest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"volley/files"
	"volley/internal/disk"
)

// is returns an error unless that is the one that was got.
func is(what string, got error, want syscall.Errno) error {
	if want == 0 && got != nil || want != 0 && !errors.Is(got, want) {
		return fmt.Errorf("%s: %v, want %v", what, got, want)
	}
	return nil
}

// TestMount works on two file systems, of which one is mounted in the other.
func TestMount(t *testing.T) {
	t.Parallel()
	m := NewMachine()
	m.MkdirAll("/d/m/below", 0o755)
	m.MkdirAll("/d/a", 0o755)
	m.WriteFile("/d/x", []byte("X"), 0o644)
	m.Mount("/d/m", Mount{})
	if got := tree(m, "/d"); got != "a m x=X" {
		t.Errorf("mounted: %s", got)
	}
	p := m.Process()
	d := open(t, p, "/d")
	write(t, d, "m/y", "Y", false)
	must(t, is("rename", d.Rename("x", "m/x"), syscall.EXDEV), is("rename back", d.Rename("m/y", "y"), syscall.EXDEV),
		is("link", d.Link("x", "m/x"), syscall.EXDEV), is("remove", d.Remove("m"), syscall.EBUSY),
		is("rename the mount point", d.Rename("m", "a/m"), syscall.EBUSY), is("rename what it is in", open(t, p, "/").Rename("d", "e"), 0))
	if got := tree(m, "/e"); got != "a m m/y=Y x=X" {
		t.Errorf("renamed: %s", got)
	}
	if at := m.Mountpoint("/e/m/none/z"); at != "/e/m" || m.Mountpoint("/e/x") != "/" {
		t.Errorf("mounted at %s", at)
	}
	if up := open(t, p, "/e/m/../x/.."); up.Path() != "/e" {
		t.Errorf("above it is %s", up.Path())
	}
	must(t, is("rename back", open(t, p, "/").Rename("e", "d"), 0))

	// SyncAll reaches one file system.
	must(t, d.Mkdir("new", 0o755))
	inner, err := d.Sub("m")
	must(t, err)
	for _, c := range []struct {
		dir  disk.Dir
		want string
	}{{inner, "a m m/y=Y x=X"}, {d, "a m new x=X"}} {
		cut := m.Clone()
		q := cut.Process()
		dir := open(t, q, c.dir.Path())
		must(t, dir.SyncAll())
		if cut.PowerCut(nil); tree(cut, "/d") != c.want {
			t.Errorf("synced at %s: %s, want %s", c.dir.Path(), tree(cut, "/d"), c.want)
		}
	}

	m.Unmount("/d/m")
	if got := tree(m, "/d"); got != "a m m/below new x=X" {
		t.Errorf("unmounted: %s", got)
	}
	m.Remount("/d/m", func(*Mount) {})
	if got := tree(m, "/d"); got != "a m m/y=Y new x=X" {
		t.Errorf("mounted again: %s", got)
	}
	if m.PowerCut(nil); tree(m, "/d") != "a m x=X" {
		t.Errorf("after a power cut: %s", tree(m, "/d"))
	}
}

// TestMountCannot checks what file systems refuse that cannot do all.
func TestMountCannot(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 9)
	for _, c := range []struct {
		name string
		o    Mount
		do   func(d disk.Dir) error
		want syscall.Errno
	}{
		{"symbolic link", Mount{}, func(d disk.Dir) error { return d.Symlink("x", "new") }, 0},
		{"no symbolic links", Mount{NoSymlinks: true}, func(d disk.Dir) error { return d.Symlink("x", "new") }, syscall.EPERM},
		{"no symbolic links, and it is there", Mount{NoSymlinks: true}, func(d disk.Dir) error { return d.Symlink("x", "x") }, syscall.EEXIST},
		{"no links", Mount{Links: 1}, func(d disk.Dir) error { return d.Link("x", "new") }, syscall.EPERM},
		{"two links", Mount{Links: 2}, func(d disk.Dir) error { return d.Link("x", "new") }, 0},
		{"a third link", Mount{Links: 2}, func(d disk.Dir) error { return errors.Join(d.Link("x", "new"), d.Link("x", "third")) }, syscall.EMLINK},
		{"a link of a directory", Mount{}, func(d disk.Dir) error { return d.Link("dir", "new") }, syscall.EPERM},
		{"an exchange", Mount{}, func(d disk.Dir) error { return d.Exchange("x", "dir") }, 0},
		{"no exchange", Mount{NoExchange: true}, func(d disk.Dir) error { return d.Exchange("x", "dir") }, syscall.ENOTSUP},
		{"no exchange with nothing", Mount{NoExchange: true}, func(d disk.Dir) error { return d.Exchange("x", "none") }, syscall.ENOENT},
		{"a long name", Mount{}, func(d disk.Dir) error { return d.Mkdir(long, 0o755) }, 0},
		{"a name too long", Mount{NameBytes: 8}, func(d disk.Dir) error { return d.Mkdir(long, 0o755) }, syscall.ENAMETOOLONG},
		{"the longest name", Mount{NameBytes: 9}, func(d disk.Dir) error { return d.Mkdir(long, 0o755) }, 0},
		{"a name too long for any", Mount{}, func(d disk.Dir) error { return d.Mkdir(strings.Repeat("n", 256), 0o755) }, syscall.ENAMETOOLONG},
		{"below one too long", Mount{NameBytes: 8}, func(d disk.Dir) error { return d.Mkdir(long+"/x", 0o755) }, syscall.ENAMETOOLONG},
		{"rename to one too long", Mount{NameBytes: 8}, func(d disk.Dir) error { return d.Rename("x", long) }, syscall.ENAMETOOLONG},
		{"writing where only reading is", Mount{ReadOnly: true}, func(d disk.Dir) error { return d.Mkdir("new", 0o755) }, syscall.EROFS},
		{"a lock there", Mount{ReadOnly: true}, func(d disk.Dir) error {
			_, err := d.Lock("x", false, files.Holder{})
			return err
		}, syscall.EROFS},
		{"a shared lock there", Mount{ReadOnly: true}, func(d disk.Dir) error {
			_, err := d.Lock("x", true, files.Holder{})
			return err
		}, 0},
		{"opening to write there", Mount{ReadOnly: true}, func(d disk.Dir) error {
			_, err := d.OpenFile("x", os.O_WRONLY, 0)
			return err
		}, syscall.EROFS},
	} {
		for _, at := range []string{"/", "/m"} { // the first one can be limited as any other
			m := NewMachine()
			m.MkdirAll("/m", 0o755)
			m.Mount("/m", Mount{})
			m.WriteFile(at+"/x", []byte("X"), 0o644)
			m.MkdirAll(at+"/dir", 0o755)
			m.Remount(at, func(o *Mount) { *o = c.o })
			if err := is(c.name, c.do(open(t, m.Process(), at)), c.want); err != nil {
				t.Errorf("at %s: %v", at, err)
			}
			other := map[string]string{"/": "/m", "/m": "/"}[at]
			if err := open(t, m.Process(), other).Symlink("x", "new"); err != nil {
				t.Errorf("%s: at %s: %v", c.name, other, err)
			}
		}
	}
}

// TestMountTimes checks the times of a file system that has whole seconds.
func TestMountTimes(t *testing.T) {
	t.Parallel()
	m := NewMachine()
	m.Remount("/", func(o *Mount) { o.Granularity = time.Second })
	d := open(t, m.Process(), "/")
	for _, want := range []time.Time{m.Now().Truncate(time.Second), time.Unix(7, 0)} {
		if write(t, d, "x", "X", false); want.Unix() == 7 {
			must(t, d.SetTime("x", time.Unix(7, 999_999_999)))
		}
		info, err := m.Lstat("/x")
		must(t, err)
		if !info.ModTime().Equal(want) || disk.Changed(info).Nanosecond() != 0 {
			t.Errorf("%v, %v: want %v", info.ModTime(), disk.Changed(info), want)
		}
	}
}

// TestMountCase works where large and small letters are the same: names stay as they were given.
func TestMountCase(t *testing.T) {
	t.Parallel()
	m := NewMachine()
	m.Remount("/", func(o *Mount) { o.IgnoreCase = true })
	m.MkdirAll("/Dir", 0o755)
	p := m.Process()
	d := open(t, p, "/dIR")
	if d.Path() != "/Dir" {
		t.Errorf("opened %s", d.Path())
	}
	write(t, d, "Straße", "1", true)
	write(t, d, "STRASSE", "2", true) // another name
	write(t, d, "Ä", "3", true)
	write(t, d, "ä", "4", true)
	must(t, is("create", d.Mkdir("ä", 0o755), syscall.EEXIST), is("link", d.Link("ä", "Ä"), syscall.EEXIST), d.SyncDir("."))
	if got := tree(m, "/dir"); got != "STRASSE=2 Straße=1 Ä=4" {
		t.Errorf("%s", got)
	}
	must(t, d.Rename("ä", "ä"))
	if got := tree(m, "/dir"); got != "STRASSE=2 Straße=1 ä=4" {
		t.Errorf("renamed to itself: %s", got)
	}
	must(t, d.Rename("strasse", "Ä"))
	if got := tree(m, "/dir"); got != "Straße=1 ä=2" {
		t.Errorf("in its place: %s", got)
	}
	must(t, d.Remove("ä"))
	if _, err := d.Lstat("Ä"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestDeny has a path give errors until that is lifted.
func TestDeny(t *testing.T) {
	t.Parallel()
	m := NewMachine()
	m.MkdirAll("/d/a", 0o755)
	m.MkdirAll("/d/ab", 0o755)
	m.WriteFile("/d/a/x", []byte("X"), 0o644)
	p := m.Process()
	d := open(t, p, "/d")
	m.Deny("/d/a", syscall.EACCES)
	m.Deny("/d/ab", syscall.EIO, "readdir", "mkdir")
	all := func(d disk.Dir, a, ab syscall.Errno) {
		t.Helper()
		_, lstat := d.Lstat("a/x")
		_, list := d.ReadDir("ab")
		_, there := d.Lstat("ab")
		must(t, is("lstat", lstat, a), is("rename", d.Rename("ab", "a/y"), a), is("readdir", list, ab), is("another op", there, 0))
		if a == 0 {
			must(t, d.Rename("a/y", "ab"))
		}
	}
	all(d, syscall.EACCES, syscall.EIO)
	all(open(t, m.Clone().Process(), "/d"), syscall.EACCES, syscall.EIO)
	m.WriteFile("/d/a/x", []byte("user"), 0o644) // who may
	m.Lift("/d/a")
	all(d, 0, syscall.EIO)
	m.Lift("/d/ab")
	all(d, 0, 0)
	p.Deny("/", syscall.ESTALE)
	_, err := d.Lstat(".")
	must(t, is("the process", err, syscall.ESTALE))
	all(open(t, m.Process(), "/d"), 0, 0)
}
