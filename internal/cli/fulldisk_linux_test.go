package cli

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestFullDisk encodes onto a disk of 1 MiB that cannot hold the result: exit code 1, a message that says so, and nothing
// left on the disk.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk, in := t.TempDir(), t.TempDir()
	stdout, stderr := withMounts(t, `mount -t tmpfs -o size=1m none "$0" && for n in 1 2 3 4 5; do head -c 300000 /dev/zero >"$2/$n"; done
		"$1" encode -o "$0/out" "$2"; echo "exit $?"; ls -A "$0"`, disk, in)
	if got := stdout.String(); got != "exit 1\n" {
		t.Errorf("printed %q, want exit code 1 and an empty disk", got)
	}
	if !strings.Contains(stderr.String(), "no space left") || !strings.Contains(stderr.String(), "coded.") {
		t.Errorf("%q does not say which file did not fit", stderr.String())
	}
}

// withMounts runs a script that may mount: $0 is a directory, $1 the command, and others follow. Where the system does not
// allow that, the test is skipped, but not in CI.
func withMounts(t *testing.T, script, dir string, others ...string) (stdout, stderr *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command("unshare", append([]string{"-rm", "sh", "-c", script, dir, thisProgram(t)}, others...)...)
	cmd.Env = forCommands()
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Run(); err != nil {
		if os.Getenv("CI") != "" || !strings.Contains(stderr.String(), "unshare") {
			t.Fatalf("%v: %s", err, stderr)
		}
		t.Skipf("no mounts: %v: %s", err, stderr)
	}
	return stdout, stderr
}

// TestGroupFullDisk changes and protects a group again when there is no room for the new parity
// at a node: exit code 1, and the old one still brings a lost node back.
func TestGroupFullDisk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	stdout, stderr := withMounts(t, `mount -t tmpfs -o size=2m none "$0" && mkdir "$0/a" "$0/b" "$0/c" &&
		head -c 600000 /dev/urandom >"$0/a/x" && head -c 5000 /dev/urandom >"$0/b/x" && head -c 5000 /dev/urandom >"$0/c/x" &&
		"$1" protect --tolerate 1 "$0/a" "$0/b" "$0/c" >/dev/null && cp "$0/b/x" "$0/x" &&
		head -c 60000 /dev/urandom >>"$0/a/x"; head -c 2m /dev/zero >"$0/filler" 2>/dev/null; truncate -s -8k "$0/filler"
		"$1" protect --tolerate 1 "$0/a" "$0/b" "$0/c"; echo "exit $?"; rm -r "$0/b" "$0/filler"
		"$1" recover "$0/a" "$0/b" "$0/c" >/dev/null; echo "exit $?"; cmp "$0/x" "$0/b/x" && echo same; ls "$0/a/.volley"`, disk)
	if got := stdout.String(); got != "exit 1\nexit 0\nsame\ngeneration.1\nlock\n" {
		t.Errorf("printed %q: %s", got, stderr)
	}
	if !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("%q does not say why", stderr.String())
	}
}

// TestGroupFullToTheLastByte recovers another node where a whole one has no room for a single byte, and verifies.
func TestGroupFullToTheLastByte(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	stdout, stderr := withMounts(t, `mkdir "$0/a" "$0/b" "$0/c" && mount -t tmpfs -o size=1m none "$0/a" && mkdir "$0/a/n" &&
		for n in a/n b c; do head -c 5000 /dev/urandom >"$0/$n/x"; done && cp "$0/b/x" "$0/x" &&
		"$1" protect --quiet --tolerate 1 "$0/a/n" "$0/b" "$0/c" && { head -c 2000000 /dev/zero >"$0/a/filler"; rm -r "$0/b"; } 2>/dev/null
		"$1" recover --quiet "$0/a/n" "$0/b" "$0/c"; echo "exit $?"; cmp "$0/x" "$0/b/x" && echo same
		"$1" verify --quiet "$0/a/n" "$0/b" "$0/c"; echo "exit $?"; "$1" protect --tolerate 1 "$0/a/n" "$0/b" "$0/c"; echo "exit $?"`, disk)
	if got := stdout.String(); got != "exit 0\nsame\nexit 0\nexit 1\n" || strings.Contains(stderr.String(), "cannot be read") || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("printed %q: %s", got, stderr)
	}
}

// TestGroupHiding protects a file that has data and says that its length is 0.
func TestGroupHiding(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	stdout, stderr := withMounts(t, `mkdir "$0/a" "$0/b" && touch "$0/a/x" && mount --bind /proc/version "$0/a/x" &&
		"$1" protect --tolerate 1 "$0/a" "$0/b"; echo "exit $?"; ls -A "$0/b"`, base)
	if got := stdout.String(); got != "exit 2\n" || !strings.Contains(stderr.String(), "a/x has data, and says that its length is 0") {
		t.Errorf("printed %q: %s", got, stderr)
	}
}
