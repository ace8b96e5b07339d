//go:build !linux

package disk

import (
	"io/fs"
	"os"
	"syscall"
)

// attributes finds none: there is no portable call.
func attributes(*os.Root, string) (map[string]string, error) { return nil, nil }

func removeAttribute(_ *os.Root, name, _ string) error {
	return &fs.PathError{Op: "removexattr", Path: name, Err: syscall.ENOTSUP}
}

func setAttribute(_ *os.Root, name, _, _ string) error {
	return &fs.PathError{Op: "setxattr", Path: name, Err: syscall.ENOTSUP}
}
