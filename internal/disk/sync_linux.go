package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func syncAll(f *os.File) error {
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return &os.PathError{Op: "syncfs", Path: f.Name(), Err: err}
	}
	return nil
}

// writeBack writes pages, and leaves out what only makes them last.
func writeBack(f *os.File, wait bool) error {
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &system); err != nil {
		return &os.PathError{Op: "fstatfs", Path: f.Name(), Err: err}
	}
	flags := unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE
	if wait {
		flags |= unix.SYNC_FILE_RANGE_WAIT_AFTER
	}
	switch int64(system.Type) {
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.HUGETLBFS_MAGIC:
		return errors.ErrUnsupported
	case unix.OVERLAYFS_SUPER_MAGIC: // whose files have their pages elsewhere
	default:
		if unix.SyncFileRange(int(f.Fd()), 0, 0, flags) == nil {
			return nil
		}
	}
	return f.Sync()
}
