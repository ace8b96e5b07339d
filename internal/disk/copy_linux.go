package disk

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// copyRange has the file system copy, and returns how many bytes it has copied: fewer where it cannot copy between the two.
func copyRange(to, from *os.File, offset, n int64) (done int64, err error) {
	for done < n {
		read, write := offset+done, offset+done
		got, err := unix.CopyFileRange(int(from.Fd()), &read, int(to.Fd()), &write, int(min(n-done, 1<<30)), 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case slices.Contains([]error{unix.EXDEV, unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP}, err):
			return done, nil
		case err != nil:
			return done, err
		case got == 0: // the file ends, as who reads it finds
			return done, nil
		}
		done += int64(got)
	}
	return done, nil
}
