//go:build !linux

package ranks

import (
	"os/exec"
	"time"
)

// endWithParent does nothing: this system does not tell a command that its parent was killed.
func endWithParent(*exec.Cmd) (release func()) { return func() {} }

// endRest does nothing: this system does not tell which processes a command has left.
func endRest(*exec.Cmd, time.Duration) {}
