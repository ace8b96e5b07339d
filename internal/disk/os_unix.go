//go:build unix

package disk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const nonblock, nofollow = unix.O_NONBLOCK, unix.O_NOFOLLOW

// withDescriptor calls f with the descriptor of a directory.
func withDescriptor(dir *opened, op, name string, f func(fd int) error) error {
	fd, err := dir.descriptor()
	if err != nil {
		return err
	}
	if err := f(fd); err != nil {
		return &os.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// setTime goes by the directory, as a symbolic link cannot be opened.
func setTime(dir *opened, name string, modified time.Time) error {
	t, err := unix.TimeToTimespec(modified)
	if err != nil {
		return &os.PathError{Op: "utimensat", Path: name, Err: err}
	}
	return withDescriptor(dir, "utimensat", name, func(fd int) error {
		return unix.UtimesNanoAt(fd, name, []unix.Timespec{t, t}, unix.AT_SYMLINK_NOFOLLOW)
	})
}

// two calls f with the descriptors of two directories.
func two(op string, source, target *opened, f func(source, target int) error) error {
	err := withDescriptor(source, op, "", func(a int) error {
		return withDescriptor(target, op, "", func(b int) error { return f(a, b) })
	})
	if number := unix.Errno(0); errors.As(err, &number) {
		return &os.LinkError{Op: op, Err: number}
	}
	return err
}

func (d *osDir) rename(source *opened, old string, target *opened, name string) error {
	return two("rename", source, target, func(a, b int) error { return unix.Renameat(a, old, b, name) })
}

func (d *osDir) link(source *opened, old string, target *opened, name string) error {
	return two("link", source, target, func(a, b int) error { return unix.Linkat(a, old, b, name, 0) })
}

// Changed returns the time at which a file or what is known of it changed, which nobody can set.
func Changed(info fs.FileInfo) time.Time {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return changeTime(s)
	}
	return info.ModTime()
}

// syncDir syncs a directory that was opened, with all else on its file system where that syncs no directories.
func syncDir(f *os.File, err error) error {
	if err != nil {
		return err
	}
	if err = f.Sync(); errors.Is(err, unix.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = syncAll(f)
	}
	return errors.Join(err, f.Close())
}

// running reports whether there is a process of this machine.
func running(pid int) bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

// Owner returns the user and the group that a file belongs to.
func Owner(info fs.FileInfo) (uid, gid int64, ok bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int64(s.Uid), int64(s.Gid), true
}

// Inode returns the number of a file in its file system.
func Inode(info fs.FileInfo) uint64 {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return uint64(s.Ino)
}

// Identity returns what tells a file or directory from all others, by whatever way it was reached; zero: nobody knows.
func Identity(info fs.FileInfo) FileID {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return FileID{}
	}
	return FileID{uint64(s.Dev), uint64(s.Ino)}
}

// Linked returns what all names of a file share, and zero where it has one name only.
func Linked(info fs.FileInfo) FileID {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() || s.Nlink < 2 {
		return FileID{}
	}
	return Identity(info)
}

// Sparse reports whether a file takes less room than it has bytes.
func Sparse(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(s.Blocks) < info.Size()/blockUnit
}

// Allocated returns the bytes that a file takes on its disk.
func Allocated(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(s.Blocks) * blockUnit
	}
	return info.Size()
}

// blockUnit is the bytes of what stat counts as a block.
const blockUnit = 512

// Permissions returns what files that this process makes of a file may allow: group rights only of the same group.
func Permissions(info fs.FileInfo) fs.FileMode {
	if _, gid, ok := Owner(info); ok && gid != int64(os.Getegid()) {
		return info.Mode().Perm() &^ 0o070
	}
	return info.Mode().Perm()
}

// Private reports whether nobody but its owner can read or write what has this mode.
func Private(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }
