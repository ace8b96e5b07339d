package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"volley/internal/launch"
)

var hosts = flag.Bool("hosts", false, "run TestForcedCommand, TestHostFaults, TestOperations and TestSnapshotDisks: they need root, openssh-server, and bench/network/lab to itself")

// A farm is hosts like machines of their own: each has a network namespace, an sshd, a host name, and a tree of files in
// which only the programs of this machine are shared. /data is a disk of its own, in memory. They know each other's names.
// The last one is the operator's, with volley and a key for the others.
type farm struct {
	*testing.T
	script string // that makes the network
	base   string // of keys, trees and a binary
	names  []string
	sshd   map[string]*exec.Cmd // it is in all namespaces of its host
}

// The script that makes the tree of a host and starts its sshd: $1 is the tree, $2 the name, $3 the folder of the keys.
const hostScript = `set -e
cd "$1"
for name in bin sbin lib lib32 lib64 libx32; do
	if [ -L /$name ]; then cp -P /$name .; elif [ -d /$name ]; then mkdir $name; mount --rbind /$name $name; fi
done
mkdir -p usr dev proc sys etc var/empty var/lib/volley root/.ssh run/sshd data tmp
for name in usr dev proc sys; do mount --rbind /$name $name; done
cat /proc/sys/kernel/random/uuid >boot && mount --bind boot proc/sys/kernel/random/boot_id
mkdir -p local/bin && mount --bind local/bin usr/local/bin
mount -t tmpfs -o size=64m data data
cp -a /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.* /etc/alternatives etc/
echo 'root:*:1::::::' >etc/shadow # a password that nobody has, where that of this machine may be locked
cp "$3/hosts" etc/hosts
chmod 700 root root/.ssh && cp "$3/user.pub" root/.ssh/authorized_keys
hostname "$2"
exec chroot . /usr/sbin/sshd -D -f none -h /etc/host -o 'Subsystem=sftp internal-sftp' -o UsePAM=no -o PidFile=none -o StrictModes=no`

// newFarm makes hosts with links of that rate.
func newFarm(t *testing.T, rate string, names ...string) *farm {
	t.Helper()
	if !*hosts {
		t.Skip("without -hosts")
	}
	script, _ := filepath.Abs("../../bench/network/lab")
	base, err := os.MkdirTemp("/tmp", "hosts") // where sshd lets everybody in the way be
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(base) })
	f := &farm{t, script, base, names, map[string]*exec.Cmd{}}
	f.do("go", "build", "-o", filepath.Join(base, "volley"), "../../cmd/volley")
	known := "127.0.0.1 localhost\n"
	for k, name := range names {
		known += fmt.Sprintf("10.78.0.%d %s\n", k+1, name)
	}
	lay(t, filepath.Join(base, "hosts"), []byte(known), 0o644)
	for _, key := range []string{"host", "user"} {
		f.do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(base, key))
	}
	f.do(script, "up", fmt.Sprint(len(names)), rate, "0")
	t.Cleanup(func() { f.do(script, "down") })
	for _, name := range names {
		f.start(name)
	}
	admin := names[len(names)-1]
	copyFile(t, filepath.Join(base, "volley"), f.path(admin, "usr/local/bin/volley"), 0o755)
	copyFile(t, filepath.Join(base, "user"), f.path(admin, "root/.ssh/id_ed25519"), 0o600)
	lay(t, f.path(admin, "root/.ssh/config"), []byte("Host *\n\tStrictHostKeyChecking accept-new\n\tLogLevel ERROR\n"), 0o600)
	lay(t, f.path(admin, "etc/volley/here"), nil, 0o600)
	return f
}

func (f *farm) do(name string, args ...string) {
	f.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		f.Fatalf("%s %s: %v: %s", name, args, err, out)
	}
}

// start gives a host its tree and its sshd.
func (f *farm) start(name string) {
	f.Helper()
	tree, k := filepath.Join(f.base, name), slices.Index(f.names, name)
	copyFile(f.T, filepath.Join(f.base, "host"), filepath.Join(tree, "etc", "host"), 0o600)
	c := exec.Command(f.script, "exec", fmt.Sprint(k), "unshare", "--mount", "--uts", "sh", "-c", hostScript, "sh", tree, name, f.base)
	if err := c.Start(); err != nil {
		f.Fatal(err)
	}
	f.sshd[name] = c // ip, unshare, sh and chroot each become the next one
	f.Cleanup(func() { f.stop(name) })
	f.do(f.script, "exec", fmt.Sprint(k), "timeout", "30", "bash", "-c", fmt.Sprintf("until (: >/dev/tcp/10.78.0.%d/22) 2>/dev/null; do sleep 0.02; done", k+1))
}

// stop ends a host: nothing of it answers any more.
func (f *farm) stop(name string) {
	f.sshd[name].Process.Kill()
	f.sshd[name].Wait()
}

// path is where a file of a host lies for this process.
func (f *farm) path(host, name string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", f.sshd[host].Process.Pid), name)
}

// in returns a command that runs at a host, in /etc/volley of the operator's.
func (f *farm) in(ctx context.Context, host string, args ...string) *exec.Cmd {
	pid := fmt.Sprint(f.sshd[host].Process.Pid)
	line := []string{"--target", pid, "--mount", "--uts", "--net", "--root"}
	if host == f.names[len(f.names)-1] {
		line = append(line, "--wd=/proc/"+pid+"/root/etc/volley")
	}
	c := exec.CommandContext(ctx, "nsenter", append(line, args...)...)
	c.Env = append(os.Environ(), "HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	return c
}

// run runs a command of the operator's, as root.
func (f *farm) run(command string) result {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 2*time.Minute)
	defer cancel()
	c := f.in(ctx, f.names[len(f.names)-1], "bash", "-c", command)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		f.Fatalf("%s: %v", command, err)
	}
	f.ended()
	return result{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// ranks returns the ranks that run at any host.
func (f *farm) ranks() (ids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range all {
		line, err := os.ReadFile(name)
		if err == nil && strings.HasSuffix(string(line), "volley\x00"+launch.Verb+"\x00") {
			var pid int
			fmt.Sscanf(name, "/proc/%d/", &pid)
			ids = append(ids, pid)
		}
	}
	return ids
}

func (f *farm) ended() {
	f.Helper()
	for begun := time.Now(); len(f.ranks()) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 90*time.Second {
			f.Fatalf("ranks %v are left", f.ranks())
		}
	}
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	text, err := os.ReadFile(from)
	must(t, err)
	lay(t, to, text, mode)
}

func parentOf(t *testing.T, pid int) (parent int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	_, rest, _ := strings.Cut(string(text), "\nPPid:")
	fmt.Sscan(rest, &parent)
	return parent
}
