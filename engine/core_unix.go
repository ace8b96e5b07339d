//go:build unix

package engine

import "golang.org/x/sys/unix"

// forbidCore has the kernel write no core file, with the secret in it. A limit of 1 keeps Linux from piping one, too.
func forbidCore() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		return err
	}
	limit.Cur = min(1, limit.Max)
	return unix.Setrlimit(unix.RLIMIT_CORE, &limit)
}
