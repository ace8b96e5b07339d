package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// exchange swaps two names. A file system that cannot says that the flag is invalid.
func exchange(a *opened, first string, b *opened, second string) error {
	return two("exchange", a, b, func(a, b int) error {
		err := unix.Renameat2(a, first, b, second, unix.RENAME_EXCHANGE)
		if errors.Is(err, unix.EINVAL) {
			return unix.ENOTSUP
		}
		return err
	})
}
