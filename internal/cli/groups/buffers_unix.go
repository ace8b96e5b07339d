//go:build unix

package groups

import (
	"fmt"
	"os"
	"slices"
	"syscall"
)

// duplicate returns another descriptor of the same file.
func duplicate(fd int) (int, error) {
	copied, err := syscall.Dup(fd)
	if err == nil {
		syscall.CloseOnExec(copied)
	}
	return copied, err
}

// grow makes a file so long.
func grow(fd int, bytes int64) error {
	if err := syscall.Ftruncate(fd, bytes); err != nil {
		return fmt.Errorf("no room for parity, %d bytes in descriptor %d: %w", bytes, fd, err)
	}
	return nil
}

// mapSpans maps parts of files. They stay mapped until the process ends: others may be reading yet.
func mapSpans(spans []span, write bool) (list [][]byte, err error) {
	access := syscall.PROT_READ
	if write {
		access |= syscall.PROT_WRITE
	}
	for i, s := range spans {
		var stat syscall.Stat_t
		if err := syscall.Fstat(s.FD, &stat); err != nil {
			return nil, fmt.Errorf("part %d: descriptor %d: %w", i, s.FD, err)
		}
		if s.Offset < 0 || s.Bytes < 0 || s.Offset > stat.Size || s.Bytes > stat.Size-s.Offset {
			return nil, fmt.Errorf("part %d: %d bytes at %d of descriptor %d, which has %d", i, s.Bytes, s.Offset, s.FD, stat.Size)
		}
		memory, skipped := []byte{}, s.Offset%int64(os.Getpagesize())
		if s.Bytes > 0 {
			if memory, err = syscall.Mmap(s.FD, s.Offset-skipped, int(skipped+s.Bytes), access, syscall.MAP_SHARED); err != nil {
				return nil, fmt.Errorf("part %d: descriptor %d: not mapped: %w", i, s.FD, err)
			}
			memory = memory[skipped:]
		}
		list = append(list, slices.Clip(memory))
	}
	return list, nil
}
