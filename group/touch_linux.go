package group

import (
	"io/fs"
	"syscall"
)

func touchOf(info fs.FileInfo) touch {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return touch{}
	}
	return touch{s.Ino, int64(s.Ctim.Sec), int64(s.Ctim.Nsec)}
}
