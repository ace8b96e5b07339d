package disk

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"volley/files"
)

// Mounted returns a directory in which a name is that of another directory, wherever that lies, as if it was mounted
// there; nil: one that is missing, for who only reads. What cannot be done across a mount, such as a rename, fails with
// syscall.EXDEV. Close closes both.
func Mounted(dir Dir, name string, source Dir) Dir { return &mounted{dir, name, source} }

type mounted struct {
	Dir
	name   string
	source Dir
}

// resolve returns the directory that has a name, and its name there.
func (m *mounted) resolve(name string) (Dir, string) {
	if m.source == nil && (name == m.name || strings.HasPrefix(name, m.name+"/")) {
		return missing{}, name
	}
	if name == m.name {
		return m.source, "."
	}
	if rest, ok := strings.CutPrefix(name, m.name+"/"); ok {
		return m.source, rest
	}
	return m.Dir, name
}

// both returns the directory that has two names, and what they are there.
func (m *mounted) both(op, a, b string) (Dir, string, string, error) {
	oldDir, old := m.resolve(a)
	newDir, name := m.resolve(b)
	if oldDir != newDir {
		return nil, "", "", &fs.PathError{Op: op, Path: filepath.Join(m.Path(), filepath.FromSlash(b)), Err: syscall.EXDEV}
	}
	return oldDir, old, name, nil
}

func (m *mounted) Sub(name string) (Dir, error) {
	d, name := m.resolve(name)
	return d.Sub(name)
}

func (m *mounted) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	d, name := m.resolve(name)
	return d.OpenFile(name, flag, perm)
}

func (m *mounted) Mkdir(name string, perm fs.FileMode) error {
	if name == m.name {
		return &fs.PathError{Op: "mkdir", Path: m.source.Path(), Err: syscall.EEXIST}
	}
	d, name := m.resolve(name)
	return d.Mkdir(name, perm)
}

func (m *mounted) Lstat(name string) (fs.FileInfo, error) {
	d, name := m.resolve(name)
	return d.Lstat(name)
}

func (m *mounted) ReadDir(name string) ([]fs.DirEntry, error) {
	d, name := m.resolve(name)
	return d.ReadDir(name)
}

func (m *mounted) Readlink(name string) (string, error) {
	d, name := m.resolve(name)
	return d.Readlink(name)
}

func (m *mounted) Symlink(target, name string) error {
	d, name := m.resolve(name)
	return d.Symlink(target, name)
}

func (m *mounted) Link(old, name string) error {
	d, old, name, err := m.both("link", old, name)
	if err != nil {
		return err
	}
	return d.Link(old, name)
}

func (m *mounted) Rename(old, name string) error {
	d, old, name, err := m.both("rename", old, name)
	if err != nil {
		return err
	}
	return d.Rename(old, name)
}

func (m *mounted) Exchange(first, second string) error {
	d, first, second, err := m.both("exchange", first, second)
	if err != nil {
		return err
	}
	return d.Exchange(first, second)
}

func (m *mounted) Remove(name string) error {
	if name == m.name {
		return &fs.PathError{Op: "remove", Path: m.source.Path(), Err: syscall.EBUSY}
	}
	d, name := m.resolve(name)
	return d.Remove(name)
}

func (m *mounted) Chmod(name string, mode fs.FileMode) error {
	d, name := m.resolve(name)
	return d.Chmod(name, mode)
}

func (m *mounted) Chown(name string, uid, gid int) error {
	d, name := m.resolve(name)
	return d.Chown(name, uid, gid)
}

func (m *mounted) Attributes(name string) (map[string]string, error) {
	d, name := m.resolve(name)
	return d.Attributes(name)
}

func (m *mounted) SetAttribute(name, attribute, value string) error {
	d, name := m.resolve(name)
	return d.SetAttribute(name, attribute, value)
}

func (m *mounted) RemoveAttribute(name, attribute string) error {
	d, name := m.resolve(name)
	return d.RemoveAttribute(name, attribute)
}

func (m *mounted) SetTime(name string, modified time.Time) error {
	d, name := m.resolve(name)
	return d.SetTime(name, modified)
}

func (m *mounted) SyncDir(name string) error {
	d, name := m.resolve(name)
	return d.SyncDir(name)
}

func (m *mounted) SyncAll() error {
	if err := m.source.SyncAll(); err != nil {
		return err
	}
	return m.Dir.SyncAll()
}

func (m *mounted) Lock(name string, shared bool, holder files.Holder) (func(remove bool), error) {
	d, name := m.resolve(name)
	return d.Lock(name, shared, holder)
}

func (m *mounted) Room(name string) (free, block int64, err error) {
	d, name := m.resolve(name)
	return d.Room(name)
}

func (m *mounted) Close() error {
	if m.source == nil {
		return m.Dir.Close()
	}
	return cmp.Or(m.source.Close(), m.Dir.Close())
}

// missing is a directory that is not there.
type missing struct{ Dir }

func (missing) Sub(name string) (Dir, error) { return nil, missingError("open", name) }

func (missing) OpenFile(name string, _ int, _ fs.FileMode) (File, error) {
	return nil, missingError("open", name)
}

func (missing) Lstat(name string) (fs.FileInfo, error) { return nil, missingError("lstat", name) }

func (missing) ReadDir(name string) ([]fs.DirEntry, error) { return nil, missingError("readdir", name) }

func missingError(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: syscall.ENOENT}
}
