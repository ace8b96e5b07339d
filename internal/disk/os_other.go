//go:build !unix

package disk

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const nonblock, nofollow = 0, 0

// setTime leaves the time of a symbolic link as it is: there is no portable call.
func setTime(dir *opened, name string, modified time.Time) error {
	if info, err := dir.Lstat(name); err != nil || info.Mode()&fs.ModeSymlink != 0 {
		return err
	}
	return dir.Chtimes(name, modified, modified)
}

// rename gives the whole names, which withParent has found to lead through no links.
func (d *osDir) rename(source *opened, old string, target *opened, name string) error {
	return d.root.Rename(d.nameBelow(source, old), d.nameBelow(target, name))
}

func (d *osDir) link(source *opened, old string, target *opened, name string) error {
	return d.root.Link(d.nameBelow(source, old), d.nameBelow(target, name))
}

// nameBelow returns a name in a directory below d as one in d.
func (d *osDir) nameBelow(dir *opened, name string) string {
	rel, err := filepath.Rel(d.root.Name(), filepath.Join(dir.Name(), name))
	if err != nil {
		return name
	}
	return rel
}

// Owner knows nothing.
func Owner(fs.FileInfo) (uid, gid int64, ok bool) { return 0, 0, false }

// Inode knows nothing.
func Inode(fs.FileInfo) uint64 { return 0 }

// Identity knows nothing.
func Identity(fs.FileInfo) FileID { return FileID{} }

// Linked knows nothing.
func Linked(fs.FileInfo) FileID { return FileID{} }

// Sparse knows nothing.
func Sparse(fs.FileInfo) bool { return false }

// Changed returns the time at which a file or what is known of it changed: here that of its content.
func Changed(info fs.FileInfo) time.Time { return info.ModTime() }

// syncDir does nothing where directories cannot be synced.
func syncDir(f *os.File, err error) error {
	if err == nil {
		f.Close()
	}
	return nil
}

// running says yes: there is no portable way to tell.
func running(int) bool { return true }

// syncAll does nothing: files and directories are synced by themselves.
func syncAll(*os.File) error { return nil }

// writeBack does nothing: what maps files there moves their times by itself.
func writeBack(*os.File, bool) error { return nil }

// Allocated returns the length of a file: nothing else is known.
func Allocated(info fs.FileInfo) int64 { return info.Size() }

// Permissions returns what files that this process makes of a file may allow.
func Permissions(info fs.FileInfo) fs.FileMode { return info.Mode().Perm() }

// Private says yes: modes do not tell.
func Private(fs.FileInfo) bool { return true }

// Device knows nothing.
func Device(fs.FileInfo) string { return "" }
