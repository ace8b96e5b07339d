package disktest

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestInMemory ends processes by signals: what they had in memory goes, also what may not be listed.
func TestInMemory(t *testing.T) {
	const killed = "VOLLEY_TEST_KILLED"
	if os.Getenv(killed) != "" {
		InMemory()
		dir, err := os.MkdirTemp("", "")
		must(t, err, os.MkdirAll(dir+"/sub/sub", 0o755), os.WriteFile(dir+"/sub/sub/x", make([]byte, 1<<20), 0o600), os.Chmod(dir+"/sub", 0))
		fmt.Println(dir)
		select {}
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGKILL} {
		c := exec.Command(os.Args[0], "-test.run", "^TestInMemory$")
		c.Env = append(os.Environ(), killed+"=1", "TMPDIR=")
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		out, err := c.StdoutPipe()
		must(t, err, c.Start())
		dir, err := bufio.NewReader(out).ReadString('\n')
		must(t, err, syscall.Kill(-c.Process.Pid, signal))
		c.Wait()
		dir = strings.TrimSpace(dir)
		if !strings.HasPrefix(dir, "/dev/shm/") { // which has no room here
			must(t, os.Chmod(dir+"/sub", 0o700), os.RemoveAll(dir))
		}
		for err == nil { // until the test's own timeout
			_, err = os.Lstat(dir)
			time.Sleep(time.Millisecond)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v leaves %s: %v", signal, dir, err)
		}
	}
}
