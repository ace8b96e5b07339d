package disk

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// byDescriptor names a file by the descriptor of its directory, as extended attributes have
// no calls that take one.
func byDescriptor(fd int, name string) string { return fmt.Sprintf("/proc/self/fd/%d/%s", fd, name) }

// mostAttributes bounds the bytes of a value, and those of all names: Linux has no longer ones.
const mostAttributes = 64 << 10

// attributes returns the extended attributes of what has a name, of a symbolic link its own.
// A file system that has none has an empty list.
func attributes(dir *os.Root, name string) (map[string]string, error) {
	list := map[string]string{}
	return list, at(dir, "listxattr", name, func(fd int) error {
		file := byDescriptor(fd, name)
		var few [512]byte
		names := few[:]
		n, err := unix.Llistxattr(file, names)
		if errors.Is(err, unix.ERANGE) {
			names = make([]byte, mostAttributes)
			n, err = unix.Llistxattr(file, names)
		}
		if errors.Is(err, unix.ENOENT) && unix.Fstatat(fd, name, &unix.Stat_t{}, unix.AT_SYMLINK_NOFOLLOW) == nil {
			return nil // /proc is not mounted
		}
		if errors.Is(err, unix.ENOTSUP) || n <= 0 && err == nil {
			return nil
		}
		if err != nil {
			return err
		}
		value := make([]byte, mostAttributes)
		for attribute := range strings.SplitSeq(strings.TrimSuffix(string(names[:n]), "\x00"), "\x00") {
			n, err := unix.Lgetxattr(file, attribute, value)
			switch {
			case errors.Is(err, unix.ENODATA), errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOTSUP):
				continue // it has gone, or is not for this user
			case err != nil:
				return err
			}
			list[attribute] = string(value[:n])
		}
		return nil
	})
}

func removeAttribute(dir *os.Root, name, attribute string) error {
	return at(dir, "removexattr", name, func(fd int) error {
		return unix.Lremovexattr(byDescriptor(fd, name), attribute)
	})
}

func setAttribute(dir *os.Root, name, attribute, value string) error {
	return at(dir, "setxattr", name, func(fd int) error {
		return unix.Lsetxattr(byDescriptor(fd, name), attribute, []byte(value), 0)
	})
}
