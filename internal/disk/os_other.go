//go:build !unix

package disk

import (
	"io/fs"
	"os"
	"time"
)

const nonblock, nofollow = 0, 0

// setTime leaves the time of a symbolic link as it is: there is no portable call.
func (d *osDir) setTime(name string, at time.Time) error {
	if info, err := d.root.Lstat(name); err != nil || info.Mode()&fs.ModeSymlink != 0 {
		return err
	}
	return d.root.Chtimes(name, at, at)
}

// Changed returns the time at which a file or what is known of it changed: here that of its
// content.
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
