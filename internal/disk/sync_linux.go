package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

func syncAll(f *os.File) error {
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return &os.PathError{Op: "syncfs", Path: f.Name(), Err: err}
	}
	return nil
}
