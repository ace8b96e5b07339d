//go:build unix && !linux

package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

func syncAll(*os.File) error { return unix.Sync() }
