package cli

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestFullDisk encodes onto a disk of 1 MiB that cannot hold the result: exit
// code 1, a message that says so, and nothing left on the disk. The disk is a
// tmpfs in a mount namespace of its own; where the system does not allow that,
// the test is skipped, but not in CI.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	script := func(commands string, args ...string) *exec.Cmd {
		mount := `mount -t tmpfs -o size=1m none "$0" && `
		return exec.Command("unshare", append([]string{"-rm", "sh", "-c", mount + commands, disk}, args...)...)
	}
	if out, err := script("true").CombinedOutput(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("no tmpfs: %v: %s", err, out)
		}
		t.Skipf("no tmpfs: %v: %s", err, out)
	}
	in, _ := writePackets(t, 300_000, 300_000, 300_000, 300_000, 300_000)
	cmd := script(`{ "$1" encode -o "$0/out" "$2"; echo "exit $?"; ls -A "$0"; }`, build(t), in)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if got := stdout.String(); got != "exit 1\n" {
		t.Errorf("printed %q, want exit code 1 and an empty disk", got)
	}
	if !strings.Contains(stderr.String(), "no space left") || !strings.Contains(stderr.String(), "coded.") {
		t.Errorf("%q does not say which file did not fit", stderr.String())
	}
}
