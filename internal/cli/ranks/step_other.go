//go:build !linux

package ranks

import (
	"errors"
	"os/exec"
	"time"
)

// endWithParent does nothing: this system does not tell a command that its parent was killed.
func endWithParent(*exec.Cmd) (release func()) { return func() {} }

// endRest does nothing: this system does not tell which processes a command has left.
func endRest(*exec.Cmd, time.Duration) {}

// lowerPriority does nothing: only Linux has a priority for each thread, and nice starts a process with one.
func lowerPriority(int) error {
	return errors.New("--nice: this system needs the command nice in front of volley")
}
