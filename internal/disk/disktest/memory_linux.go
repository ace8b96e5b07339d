package disktest

import (
	"os"
	"syscall"
)

// InMemory lets tests' temporary directories lie in memory, if there is room and the environment names no place.
func InMemory() {
	const shared, noexec, room = "/dev/shm", 8, 1 << 30
	var s syscall.Statfs_t
	if os.Getenv("TMPDIR") == "" && syscall.Statfs(shared, &s) == nil && s.Flags&noexec == 0 && s.Bavail*uint64(s.Bsize) >= room {
		os.Setenv("TMPDIR", shared)
	}
}
