//go:build unix

package group

import "golang.org/x/sys/unix"

// setLinkTime sets the time of a symbolic link itself.
func setLinkTime(path string, ns int64) error {
	t := unix.NsecToTimespec(ns)
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{t, t}, unix.AT_SYMLINK_NOFOLLOW)
}
