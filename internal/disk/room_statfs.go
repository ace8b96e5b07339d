//go:build linux || darwin || freebsd

package disk

import (
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// Room returns how many bytes a file system has free for this user, and how many are in use.
func Room(path string) (free, used int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, 0, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	bytes := func(blocks uint64) int64 { return int64(min(float64(blocks)*float64(s.Bsize), math.MaxInt64/2)) }
	return bytes(uint64(max(0, int64(s.Bavail)))), bytes(s.Blocks - uint64(s.Bfree)), nil
}
