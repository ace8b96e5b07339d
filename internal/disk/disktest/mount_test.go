package disktest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

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
		{"no symbolic links", Mount{NoSymlinks: true}, func(d disk.Dir) error { return d.Symlink("x", "new") }, syscall.EPERM},
		{"no links", Mount{Links: 1}, func(d disk.Dir) error { return d.Link("x", "new") }, syscall.EPERM},
		{"two links", Mount{Links: 2}, func(d disk.Dir) error { return d.Link("x", "new") }, 0},
		{"a third link", Mount{Links: 2}, func(d disk.Dir) error { return errors.Join(d.Link("x", "new"), d.Link("x", "third")) }, syscall.EMLINK},
		{"a link of a directory", Mount{}, func(d disk.Dir) error { return d.Link("dir", "new") }, syscall.EPERM},
		{"no exchange", Mount{NoExchange: true}, func(d disk.Dir) error { return d.Exchange("x", "dir") }, syscall.ENOTSUP},
		{"a name too long", Mount{NameBytes: 8}, func(d disk.Dir) error { return d.Mkdir(long, 0o755) }, syscall.ENAMETOOLONG},
		{"the longest name", Mount{NameBytes: 9}, func(d disk.Dir) error { return d.Mkdir(long, 0o755) }, 0},
		{"writing where only reading is", Mount{ReadOnly: true}, func(d disk.Dir) error { return d.Mkdir("new", 0o755) }, syscall.EROFS},
		{"a lock there", Mount{ReadOnly: true}, func(d disk.Dir) error {
			_, err := d.Lock("x", false, files.Holder{})
			return err
		}, syscall.EROFS},
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
