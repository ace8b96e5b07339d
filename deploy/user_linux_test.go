package deploy

import (
	"os"
	"os/exec"
	"syscall"
)

// unprivileged runs a command of root as nobody.
func unprivileged(c *exec.Cmd) {
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
}
