package disk

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// copyRange has the file system copy, and returns how many bytes it has copied: fewer where it cannot copy between the two.
func copyRange(target, source *os.File, offset, n int64) (copied int64, err error) {
	for copied < n {
		read, write := offset+copied, offset+copied
		got, err := unix.CopyFileRange(int(source.Fd()), &read, int(target.Fd()), &write, int(min(n-copied, 1<<30)), 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case slices.Contains([]error{unix.EXDEV, unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP}, err):
			return copied, nil
		case err != nil:
			return copied, err
		case got == 0: // the file ends, as who reads it finds
			return copied, nil
		}
		copied += int64(got)
	}
	return copied, nil
}
