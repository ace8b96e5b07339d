package disktest

import (
	"io/fs"
	"syscall"
	"time"
)

func (i *info) sys() any {
	s := &syscall.Stat_t{Dev: uint64(i.device), Ino: uint64(i.number), Size: i.size, Uid: uint32(i.uid), Gid: uint32(i.gid), Blocks: i.blocks}
	set(&s.Nlink, int64(i.links))
	setTime(&s.Mtim, i.mtime)
	setTime(&s.Ctim, i.ctime)
	s.Atim = s.Mtim
	s.Mode = uint32(i.mode.Perm())
	switch {
	case i.mode.IsDir():
		s.Mode |= syscall.S_IFDIR
	case i.mode&fs.ModeSymlink != 0:
		s.Mode |= syscall.S_IFLNK
	default:
		s.Mode |= syscall.S_IFREG
	}
	if i.mode&fs.ModeSetuid != 0 {
		s.Mode |= syscall.S_ISUID
	}
	if i.mode&fs.ModeSetgid != 0 {
		s.Mode |= syscall.S_ISGID
	}
	if i.mode&fs.ModeSticky != 0 {
		s.Mode |= syscall.S_ISVTX
	}
	return s
}

func setTime(target *syscall.Timespec, t time.Time) {
	set(&target.Sec, t.Unix())
	set(&target.Nsec, int64(t.Nanosecond()))
}

// set sets a field whose type depends on the machine.
func set[T int32 | int64 | uint32 | uint64](field *T, n int64) { *field = T(n) }
