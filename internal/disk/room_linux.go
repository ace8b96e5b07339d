package disk

import (
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

func (d *osDir) Room(name string) (free, block int64, err error) {
	fullPath := filepath.Join(d.path, filepath.FromSlash(name))
	if free, _, err = Room(fullPath); err != nil {
		return 0, 0, err
	}
	var s unix.Statfs_t
	if err := unix.Statfs(fullPath, &s); err != nil {
		return 0, 0, &os.PathError{Op: "statfs", Path: fullPath, Err: err}
	}
	// Others keep short files with their names, or compress them.
	if slices.Contains([]int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.TMPFS_MAGIC}, int64(s.Type)) {
		return free, max(1, int64(s.Frsize)), nil
	}
	return free, 1, nil
}
