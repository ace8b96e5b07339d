//go:build !unix

package main

import "os/exec"

// bounded returns a command and what ends it. There is no bound on its memory here, and
// processes that it starts stay.
func bounded(_ int64, name string, args ...string) (cmd *exec.Cmd, kill func() error) {
	cmd = exec.Command(name, args...)
	return cmd, func() error { return cmd.Process.Kill() }
}
