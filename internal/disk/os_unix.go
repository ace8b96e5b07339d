//go:build unix

package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const nonblock, nofollow = unix.O_NONBLOCK, unix.O_NOFOLLOW

// setTime goes by the directory, as a symbolic link cannot be opened.
func (d *osDir) setTime(name string, at time.Time) error {
	dir, err := d.root.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	t, err := unix.TimeToTimespec(at)
	if err != nil {
		return &os.PathError{Op: "utimensat", Path: name, Err: err}
	}
	if err := unix.UtimesNanoAt(int(dir.Fd()), filepath.Base(name), []unix.Timespec{t, t}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "utimensat", Path: name, Err: err}
	}
	return nil
}

// Changed returns the time at which a file or what is known of it changed, which nobody can
// set.
func Changed(info fs.FileInfo) time.Time {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return changeTime(s)
	}
	return info.ModTime()
}

// syncDir syncs a directory that was opened.
func syncDir(f *os.File, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// running reports whether there is a process of this machine.
func running(pid int) bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }
