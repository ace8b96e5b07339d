//go:build unix

package group

import (
	"io/fs"
	"syscall"
)

// ownerOf returns the user whose file it is.
func ownerOf(info fs.FileInfo) (uid int, ok bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(s.Uid), true
}
