package disktest

import (
	"os"
	"syscall"
)

// InMemory lets the temporary directories of tests lie in memory, unless the environment names a
// place or there is little room: most tests sync often, and need no disk for that.
func InMemory() {
	const shared, noexec, room = "/dev/shm", 8, 1 << 30
	var s syscall.Statfs_t
	if os.Getenv("TMPDIR") == "" && syscall.Statfs(shared, &s) == nil && s.Flags&noexec == 0 && s.Bavail*uint64(s.Bsize) >= room {
		os.Setenv("TMPDIR", shared)
	}
}
