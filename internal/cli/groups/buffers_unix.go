//go:build unix

package groups

import (
	"fmt"
	"os"
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

// mapSpans maps parts of files, each file once. They stay mapped until the process ends: others may be reading yet.
func mapSpans(spans []span, write bool) (list [][]byte, err error) {
	type extent struct{ start, end int64 }
	files := map[int]extent{}
	page := int64(os.Getpagesize())
	for i, s := range spans {
		var stat syscall.Stat_t
		if err := syscall.Fstat(s.FD, &stat); err != nil {
			return nil, fmt.Errorf("part %d: descriptor %d: %w", i, s.FD, err)
		}
		if s.Offset < 0 || s.Bytes < 0 || s.Offset > stat.Size || s.Bytes > stat.Size-s.Offset {
			return nil, fmt.Errorf("part %d: %d bytes at %d of descriptor %d, which has %d", i, s.Bytes, s.Offset, s.FD, stat.Size)
		}
		if s.Bytes == 0 {
			continue
		}
		x, known := files[s.FD]
		if start := s.Offset / page * page; !known || start < x.start {
			x.start = start
		}
		x.end = max(x.end, s.Offset+s.Bytes)
		files[s.FD] = x
	}
	access := syscall.PROT_READ
	if write {
		access |= syscall.PROT_WRITE
	}
	memory := map[int][]byte{}
	for fd, x := range files {
		if memory[fd], err = syscall.Mmap(fd, x.start, int(x.end-x.start), access, syscall.MAP_SHARED); err != nil {
			return nil, fmt.Errorf("descriptor %d: not mapped: %w", fd, err)
		}
	}
	for _, s := range spans {
		part := []byte{}
		if s.Bytes > 0 {
			offset := s.Offset - files[s.FD].start
			part = memory[s.FD][offset : offset+s.Bytes : offset+s.Bytes]
		}
		list = append(list, part)
	}
	return list, nil
}
