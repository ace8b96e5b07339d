//go:build unix && !darwin && !freebsd && !netbsd

package disk

import (
	"syscall"
	"time"
)

func changeTime(s *syscall.Stat_t) time.Time { return time.Unix(int64(s.Ctim.Sec), int64(s.Ctim.Nsec)) }
