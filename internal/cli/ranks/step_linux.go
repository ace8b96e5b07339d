package ranks

import (
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// endWithParent has the kernel end the command when this process is killed, and gives the command a session and a
// process group of its own; endRest ends the group. What it returns is called when the command has ended: until then
// the thread that starts the command stays.
func endWithParent(c *exec.Cmd) (release func()) {
	runtime.LockOSThread()
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setsid: true}
	return runtime.UnlockOSThread
}

// endRest ends the processes of its group that a command has left: after the limit, by force.
func endRest(c *exec.Cmd, limit time.Duration) {
	if c.Process == nil {
		return
	}
	signal := syscall.SIGTERM
	for begun := time.Now(); syscall.Kill(-c.Process.Pid, signal) == nil; time.Sleep(10 * time.Millisecond) {
		signal = 0 // is any left?
		if time.Since(begun) > limit {
			syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
			return
		}
	}
}
