package ranks

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
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

// mostNice is the lowest priority.
const mostNice = 19

// lowerPriority lowers that of all threads of this process, and of those that they start. That for disks follows.
func lowerPriority(by int) error {
	niceOf := func(thread int) (int, error) {
		n, err := syscall.Getpriority(syscall.PRIO_PROCESS, thread)
		return 20 - n, err // as the kernel has it
	}
	want, err := niceOf(os.Getpid())
	if err != nil {
		return err
	}
	want = min(want+by, mostNice)
	for again := true; again; { // a thread may start others before its turn
		again = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, entry := range threads {
			thread, _ := strconv.Atoi(entry.Name())
			if now, err := niceOf(thread); err != nil || now >= want { // it has ended, or is done
				continue
			}
			if err := syscall.Setpriority(syscall.PRIO_PROCESS, thread, want); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
			again = true
		}
	}
	return nil
}
