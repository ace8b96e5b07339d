//go:build unix

package launch

import (
	"os"
	"os/exec"
	"syscall"
)

// inGroup has a command and what it starts be a group of processes: a terminal does not interrupt it, and it ends as a
// whole. The function that it returns kills what is left of it.
func inGroup(x *exec.Cmd) (kill func()) {
	x.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	x.Cancel = func() error {
		if err := syscall.Kill(-x.Process.Pid, syscall.SIGTERM); err != nil {
			return os.ErrProcessDone
		}
		return nil
	}
	return func() {
		if x.Process != nil {
			syscall.Kill(-x.Process.Pid, syscall.SIGKILL)
		}
	}
}
