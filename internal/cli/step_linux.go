package cli

import (
	"os/exec"
	"runtime"
	"syscall"
)

// endWithParent has the kernel end the command when this process is killed. What it returns is called when the command
// has ended: until then the thread that starts the command stays.
func endWithParent(c *exec.Cmd) (release func()) {
	runtime.LockOSThread()
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return runtime.UnlockOSThread
}
