//go:build unix

package groups

import (
	"fmt"
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

// mapSpans maps parts of files, each file once: the system bounds the number of mappings. They stay mapped until the process
// ends: others may be reading yet.
func mapSpans(spans []span, write bool) (list [][]byte, err error) {
	access := syscall.PROT_READ
	if write {
		access |= syscall.PROT_WRITE
	}
	files := map[int][]byte{}
	for i, s := range spans {
		memory, mapped := files[s.FD]
		if !mapped {
			var stat syscall.Stat_t
			if err := syscall.Fstat(s.FD, &stat); err != nil {
				return nil, fmt.Errorf("part %d: descriptor %d: %w", i, s.FD, err)
			}
			memory = []byte{}
			if stat.Size > 0 {
				if memory, err = syscall.Mmap(s.FD, 0, int(stat.Size), access, syscall.MAP_SHARED); err != nil {
					return nil, fmt.Errorf("descriptor %d: not mapped: %w", s.FD, err)
				}
			}
			files[s.FD] = memory
		}
		size := int64(len(memory))
		if s.Offset < 0 || s.Bytes < 0 || s.Offset > size || s.Bytes > size-s.Offset {
			return nil, fmt.Errorf("part %d: %d bytes at %d of descriptor %d, which has %d", i, s.Bytes, s.Offset, s.FD, size)
		}
		end := s.Offset + s.Bytes
		list = append(list, memory[s.Offset:end:end])
	}
	return list, nil
}
