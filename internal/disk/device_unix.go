//go:build unix && !linux

package disk

import (
	"fmt"
	"io/fs"
	"syscall"
)

// Device returns the file system that something lies on.
func Device(info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprint(s.Dev)
}
