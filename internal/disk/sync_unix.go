//go:build unix && !linux

package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

func syncAll(*os.File) error { return unix.Sync() }

func writeBack(f *os.File, _ bool) error { return f.Sync() }
