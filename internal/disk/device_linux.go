package disk

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Device returns the disk that something lies on: of partitions the whole one. Names of two machines have nothing to do
// with each other.
func Device(info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	number := fmt.Sprintf("%d:%d", unix.Major(s.Dev), unix.Minor(s.Dev))
	block, err := filepath.EvalSymlinks("/sys/dev/block/" + number)
	if err != nil {
		return number // of a network, of memory, or of a file system with several disks
	}
	if _, err := os.Stat(filepath.Join(block, "partition")); err == nil {
		block = filepath.Dir(block)
	}
	return filepath.Base(block)
}
