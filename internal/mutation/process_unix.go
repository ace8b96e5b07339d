//go:build unix

package main

import (
	"os/exec"
	"strconv"
	"syscall"
)

// bounded returns a command in a process group of its own, with at most so many bytes
// of memory, and what ends the whole group.
func bounded(memory int64, name string, args ...string) (cmd *exec.Cmd, kill func() error) {
	cmd = exec.Command("sh", append([]string{"-c", `ulimit -v "$0" && exec "$@"`, strconv.FormatInt(memory>>10, 10), name}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
