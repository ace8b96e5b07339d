package disktest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"volley/internal/disk"
	_ "volley/internal/rapidseed"
)

// TestDiskConformance does the same on the memory disk and on that of the machine, and compares
// what each operation returns and what is there after it.
func TestDiskConformance(t *testing.T) {
	top, n := t.TempDir(), 0
	old := syscall.Umask(0o022)
	defer syscall.Umask(old)
	rapid.Check(t, func(t *rapid.T) {
		n++
		path := filepath.Join(top, fmt.Sprint(n))
		m := NewMachine()
		m.uid, m.gid = os.Geteuid(), os.Getegid()
		m.MkdirAll(path, 0o755)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(path)
		conform(t, m, path, kinds, []string{"a", "b", "c", "d", "a/a", "a/b", "b/a", "a/a/a", "b/a/b", ".", strings.Repeat("n", 256)}, nil)
	})
}

// conform does the same on both disks. Now and then it remounts.
func conform(t *rapid.T, m *Machine, path string, kinds, paths []string, remount func()) {
	sides := make([]*side, 2)
	for i, d := range []disk.Disk{disk.OS, m.Process()} {
		dir, err := d.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		sides[i] = &side{dir: dir}
		defer dir.Close()
		defer sides[i].close()
	}
	names := rapid.SampledFrom(paths)
	for range rapid.IntRange(1, 30).Draw(t, "length") {
		o := op{
			kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
			name: names.Draw(t, "name"),
			to:   names.Draw(t, "to"),
			flag: rapid.SampledFrom([]int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR}).Draw(t, "access"),
			n:    rapid.IntRange(0, 20).Draw(t, "n"),
			mode: rapid.SampledFrom([]fs.FileMode{0o600, 0o644, 0o755, 0o777, 0o700 | fs.ModeSetuid, 0o750 | fs.ModeSticky}).Draw(t, "mode"),
		}
		for _, flag := range []int{os.O_CREATE, os.O_EXCL, os.O_TRUNC, os.O_APPEND} {
			if rapid.Bool().Draw(t, "flag") {
				o.flag |= flag
			}
		}
		if o.flag&os.O_CREATE == 0 {
			o.flag &^= os.O_EXCL // means nothing then
		}
		if o.flag&(os.O_WRONLY|os.O_RDWR) == 0 {
			o.flag &^= os.O_TRUNC // not specified
		}
		if o.kind == "remount" {
			for _, s := range sides {
				s.close()
			}
			remount()
			continue
		}
		var got [2]string
		for i, s := range sides {
			got[i] = s.do(o) + "\n" + s.list(".")
		}
		if got[0] != got[1] {
			t.Fatalf("%+v:\nmemory disk: %s\n         OS: %s", o, got[1], got[0])
		}
	}

}

var kinds = []string{"open", "open", "open", "read", "readat", "write", "write", "writeat", "truncate", "stat", "close", "mkdir", "mkdir", "lstat", "readdir", "readlink", "symlink", "link", "rename", "rename", "rename", "exchange", "exchange", "remove", "chmod", "settime", "chown", "attribute"}

type op struct {
	kind     string
	name, to string
	flag, n  int
	mode     fs.FileMode
}

// A side is a directory, and the file that was opened last.
type side struct {
	dir  disk.Dir
	file disk.File
}

// mountKinds are the operations where a file system is mounted.
var mountKinds = append(slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return kind == "attribute" }), "fill", "fill", "fill", "remount")

// TestMountConformance does the same on a machine in memory and on that of the machine, with a small file system that is
// mounted below and becomes read-only.
func TestMountConformance(t *testing.T) {
	top, n := t.TempDir(), 0
	ownMounts(t)
	old := syscall.Umask(0o022)
	defer syscall.Umask(old)
	rapid.Check(t, func(t *rapid.T) {
		n++
		path := filepath.Join(top, fmt.Sprint(n))
		at := path + "/m"
		m := NewMachine()
		m.MkdirAll(at, 0o755)
		m.WriteFile(at+"/hidden", nil, 0o644)
		m.Mount(at, Mount{Bytes: 5 * block})
		err := errors.Join(os.MkdirAll(at, 0o755), os.WriteFile(at+"/hidden", nil, 0o644),
			unix.Mount("none", at, "tmpfs", 0, "size=20k,mode=755"))
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(path)
		defer unix.Unmount(at, unix.MNT_DETACH)
		readOnly := false
		conform(t, m, path, mountKinds, []string{"a", "a/a", "m", "m/a", "m/b", "m/a/a", "m/a/b", "m/c", "."}, func() {
			readOnly = !readOnly
			m.Remount(at, func(o *Mount) { o.ReadOnly = readOnly })
			flags := uintptr(unix.MS_REMOUNT)
			if readOnly {
				m.SyncAll()
				flags |= unix.MS_RDONLY
			}
			if err := unix.Mount("none", at, "tmpfs", flags, "size=20k,mode=755"); err != nil {
				t.Fatal(err)
			}
		})
		m.Unmount(at)
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		for _, d := range []disk.Disk{disk.OS, m.Process()} {
			dir, err := d.Open(at)
			if err != nil {
				t.Fatal(err)
			}
			if list, err := dir.ReadDir("."); err != nil || len(list) != 1 || list[0].Name() != "hidden" {
				t.Errorf("what was hidden: %v, %v", list, err)
			}
			dir.Close()
		}
	})
}

// ownMounts gives the thread of a test mounts of its own, if it may have some.
func ownMounts(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // and not unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Skip("mounts need root: ", err)
	}
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Skip("mounts: ", err)
	}
}

func (s *side) close() {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
}

// text says what an error is.
func (s *side) text(err error) string {
	if err == nil || err == io.EOF {
		return fmt.Sprint(err)
	}
	no := syscall.Errno(0)
	if errors.Is(err, syscall.ENOTDIR) { // the one names the part of the path
		return "no directory"
	}
	switch p, l := new(fs.PathError), new(os.LinkError); {
	case errors.As(err, &p):
		errors.As(err, &no)
		return fmt.Sprintf("path %s: %d", filepath.Clean(p.Path), no)
	case errors.As(err, &l):
		errors.As(err, &no)
		return fmt.Sprintf("link %s: %d", l.New, no)
	}
	return "other"
}

// stamp is the time that all have before an operation.
var stamp = time.Unix(1_000_000_000, 7)

// do does an operation and says what it returned.
func (s *side) do(o op) string {
	s.stamp(".")
	if len(o.name) > 255 && slices.Contains([]string{"link", "rename", "exchange"}, o.kind) {
		o.name = "a" // of two errors each disk gives another
	}
	data := []byte(strings.Repeat("x", o.n))
	switch o.kind {
	case "open":
		f, err := s.dir.OpenFile(o.name, o.flag, o.mode&0o777)
		if err != nil {
			return s.text(err)
		}
		if s.file != nil {
			s.file.Close()
		}
		s.file = f
		return f.Name()
	case "mkdir":
		return s.text(s.dir.Mkdir(o.name, o.mode&0o777|0o700))
	case "lstat":
		i, err := s.dir.Lstat(o.name)
		return fmt.Sprint(s.info(i, err))
	case "readdir":
		list, err := s.dir.ReadDir(o.name)
		return fmt.Sprint(list, s.text(err))
	case "readlink":
		target, err := s.dir.Readlink(o.name)
		return target + s.text(err)
	case "symlink":
		return s.text(s.dir.Symlink(o.to, o.name))
	case "link":
		return s.text(s.dir.Link(o.name, o.to))
	case "rename":
		if o.name == "." || o.to == "." {
			return "" // kernels differ
		}
		return s.text(s.dir.Rename(o.name, o.to))
	case "exchange":
		if o.name == "." || o.to == "." {
			return ""
		}
		return s.text(s.dir.Exchange(o.name, o.to))
	case "remove":
		if o.name == "." {
			return ""
		}
		return s.text(s.dir.Remove(o.name))
	case "chmod":
		if i, err := s.dir.Lstat(o.name); err == nil && i.IsDir() {
			o.mode |= 0o700
		}
		return s.text(s.dir.Chmod(o.name, o.mode))
	case "chown":
		return s.text(s.dir.Chown(o.name, 1000+o.n, o.n))
	case "attribute":
		if i, err := s.dir.Lstat(o.name); err == nil && i.Mode()&fs.ModeSymlink != 0 {
			return "" // they have no such attributes
		}
		err := s.dir.SetAttribute(o.name, "user.test", o.to)
		list, err2 := s.dir.Attributes(o.name)
		return fmt.Sprint(s.text(err), list, s.text(err2))
	case "settime":
		if i, err := s.dir.Lstat(filepath.Dir(o.name)); err != nil || !i.IsDir() {
			return "" // the error of disk.OS has the path of the directory
		}
		return s.text(s.dir.SetTime(o.name, time.Unix(10_000_000_000, int64(o.n))))
	}
	if s.file == nil {
		return "no file"
	}
	switch o.kind {
	case "read":
		n, err := s.file.Read(data)
		return fmt.Sprintf("%q %s", data[:n], s.text(err))
	case "readat":
		data = append(data, 0) // to read or write nothing at a place is no operation
		n, err := s.file.ReadAt(data, int64(len(o.name)))
		return fmt.Sprintf("%q %s", data[:n], s.text(err))
	case "write":
		n, err := s.file.Write(data)
		return fmt.Sprint(n, s.text(err))
	case "fill":
		n, err := s.file.Write([]byte(strings.Repeat("full", 500*o.n)))
		return fmt.Sprint(n, s.text(err))
	case "writeat":
		data = append(data, 'y')
		n, err := s.file.WriteAt(data, 5*int64(len(o.name)))
		return fmt.Sprint(n, s.text(err))
	case "truncate":
		return s.text(s.file.Truncate(int64(o.n) - 2))
	case "stat":
		i, err := s.file.Stat()
		return s.info(i, err)
	case "close":
		return s.text(s.file.Close())
	}
	return "no such operation"
}

func (s *side) info(i fs.FileInfo, err error) string {
	if err != nil {
		return s.text(err)
	}
	st := i.Sys().(*syscall.Stat_t)
	size, links, blocks := i.Size(), uint64(st.Nlink), int64(0)
	if i.IsDir() {
		size, links = 0, 0 // file systems differ
	}
	top, err := s.dir.Lstat(".")
	if err != nil {
		return s.text(err)
	}
	mounted := st.Dev != top.Sys().(*syscall.Stat_t).Dev
	if mounted && i.Mode().IsRegular() {
		blocks = st.Blocks
	}
	return fmt.Sprint(i.Name(), i.Mode(), size, links, st.Uid, st.Gid, i.ModTime().Equal(stamp), mounted, blocks)
}

// stamp sets the time of all that is there.
func (s *side) stamp(name string) {
	s.each(name, func(name string, _ fs.FileInfo) {
		if err := s.dir.SetTime(name, stamp); err != nil && !errors.Is(err, syscall.EROFS) {
			panic(err)
		}
	})
}

// list says what is there.
func (s *side) list(name string) string {
	var all strings.Builder
	s.each(name, func(name string, i fs.FileInfo) {
		fmt.Fprintf(&all, "  %s: %s", name, s.info(i, nil))
		switch {
		case i.Mode().IsRegular():
			var data []byte
			f, err := s.dir.OpenFile(name, os.O_RDONLY, 0)
			if err == nil {
				data, err = io.ReadAll(f)
				f.Close()
			}
			fmt.Fprintf(&all, " %.50q %x %v", data, hash(data), err)
		case i.Mode()&fs.ModeSymlink != 0:
			target, err := s.dir.Readlink(name)
			fmt.Fprintf(&all, " %s %v", target, err)
		}
		all.WriteByte('\n')
	})
	return all.String()
}

func (s *side) each(name string, f func(string, fs.FileInfo)) {
	i, err := s.dir.Lstat(name)
	if err != nil {
		panic(err)
	}
	f(name, i)
	if !i.IsDir() {
		return
	}
	list, err := s.dir.ReadDir(name)
	if err != nil {
		panic(err)
	}
	for _, e := range list {
		s.each(filepath.Join(name, e.Name()), f)
	}
}

// TestDiskTimes checks that each write is seen by ctime, also where it sets the time back. Rot is not, nor are writes to a
// mapping that follow another one, or lie in memory.
func TestDiskTimes(t *testing.T) {
	t.Parallel()
	m := NewMachine()
	m.WriteFile("/x", []byte("abc"), 0o644)
	was, err := m.Lstat("/x")
	must(t, err)
	d := open(t, m.Process(), "/")
	for _, x := range []struct {
		what string
		do   func()
		seen bool
	}{
		{"rot", func() { m.Overwrite("/x", 0, []byte("A"), true) }, false},
		{"a time set back", func() { m.Overwrite("/x", 0, []byte("A"), false); m.SetTime("/x", was.ModTime()) }, true},
		{"mapped", func() { m.WriteMapped("/x", 0, []byte("B")); m.SetTime("/x", was.ModTime()) }, true},
		{"mapped, and again", func() { m.WriteMapped("/x", 0, []byte("C")) }, false},
		{"written back", func() { must(t, d.WriteBack("x", false)); m.WriteMapped("/x", 0, []byte("D")) }, false},
		{"and waited for", func() {
			must(t, d.WriteBack("x", true))
			m.WriteMapped("/x", 0, []byte("E"))
			m.SetTime("/x", was.ModTime())
		}, true},
		{"in memory", func() {
			m.Remount("/", func(o *Mount) { o.InMemory = true })
			if err := d.WriteBack("x", true); !errors.Is(err, errors.ErrUnsupported) {
				t.Error(err)
			}
			m.WriteMapped("/x", 0, []byte("F"))
		}, false},
	} {
		before, err := m.Lstat("/x")
		must(t, err)
		x.do()
		after, err := m.Lstat("/x")
		must(t, err)
		a, b := before.Sys().(*syscall.Stat_t), after.Sys().(*syscall.Stat_t)
		if seen := time.Unix(a.Ctim.Unix()).Before(time.Unix(b.Ctim.Unix())); seen != x.seen || a.Ino != b.Ino || !after.ModTime().Equal(was.ModTime()) || after.Size() != 3 {
			t.Errorf("%s: %+v, was %+v", x.what, b, a)
		}
	}
}
