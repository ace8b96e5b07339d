//go:build !linux

package disk

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
)

// What only Linux has: for elsewhere there is no portable call.

// attributes finds none.
func attributes(*opened, string) (map[string]string, error) { return nil, nil }

func removeAttribute(_ *opened, name, _ string) error {
	return &fs.PathError{Op: "removexattr", Path: name, Err: syscall.ENOTSUP}
}

func setAttribute(_ *opened, name, _, _ string) error {
	return &fs.PathError{Op: "setxattr", Path: name, Err: syscall.ENOTSUP}
}

// Hole knows none.
func (f osFile) Hole(int64, int64) bool { return false }

// exchange swaps nothing.
func exchange(*opened, string, *opened, string) error { return errors.ErrUnsupported }

// stopped says no: nothing tells.
func stopped(int) bool { return false }

func (d *osDir) Room(name string) (free, block int64, err error) {
	free, _, err = Room(filepath.Join(d.path, filepath.FromSlash(name)))
	return free, 1, err
}
