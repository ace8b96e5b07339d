package disk

import (
	"errors"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// byDescriptor names a file by the descriptor of its directory, as extended attributes have no calls that take one.
func byDescriptor(fd int, name string) string {
	return "/proc/self/fd/" + strconv.Itoa(fd) + "/" + name
}

// attributes returns the extended attributes of a name, of a symbolic link its own, if the file system has such.
func attributes(dir *opened, name string) (map[string]string, error) {
	var list map[string]string
	err := withDescriptor(dir, "listxattr", name, func(fd int) error {
		file := byDescriptor(fd, name)
		names, err := filled(func(buffer []byte) (int, error) { return unix.Llistxattr(file, buffer) })
		if errors.Is(err, unix.ENOENT) && unix.Fstatat(fd, name, &unix.Stat_t{}, unix.AT_SYMLINK_NOFOLLOW) == nil {
			return nil // /proc is not mounted
		}
		if errors.Is(err, unix.ENOTSUP) || names == "" && err == nil {
			return nil
		}
		if err != nil {
			return err
		}
		for attribute := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
			value, err := filled(func(buffer []byte) (int, error) { return unix.Lgetxattr(file, attribute, buffer) })
			switch {
			case errors.Is(err, unix.ENODATA), errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOTSUP):
				continue // it has gone, or is not for this user
			case err != nil:
				return err
			}
			if list == nil {
				list = map[string]string{}
			}
			list[attribute] = value
		}
		return nil
	})
	return list, err
}

// filled returns what a call writes into a buffer. Without one the call tells how long it has to be.
func filled(call func(buffer []byte) (int, error)) (string, error) {
	for {
		n, err := call(nil)
		if n <= 0 || err != nil {
			return "", err
		}
		buffer := make([]byte, n)
		if n, err = call(buffer); !errors.Is(err, unix.ERANGE) { // it has not become longer meanwhile
			return string(buffer[:max(n, 0)]), err
		}
	}
}

func removeAttribute(dir *opened, name, attribute string) error {
	return withDescriptor(dir, "removexattr", name, func(fd int) error {
		return unix.Lremovexattr(byDescriptor(fd, name), attribute)
	})
}

func setAttribute(dir *opened, name, attribute, value string) error {
	return withDescriptor(dir, "setxattr", name, func(fd int) error {
		return unix.Lsetxattr(byDescriptor(fd, name), attribute, []byte(value), 0)
	})
}
