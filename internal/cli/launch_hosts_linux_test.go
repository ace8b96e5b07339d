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
	"regexp"
	"strings"
	"testing"
	"time"

	"volley/internal/exit"
	"volley/internal/launch"
)

var hosts = flag.Bool("hosts", false, "run TestForcedCommand, TestLaunchHosts, TestHostFaults and TestOperations: they need root, openssh-server, and bench/network/lab to itself")

// A lab is hosts in network namespaces, of which the last one runs the launches.
type lab struct {
	script, volley string
	flags          []string
	sshd           []*exec.Cmd
}

const labHosts = 4

// newLab makes a lab whose hosts have sshd, but for the last one, and the files of this machine.
func newLab(t *testing.T, rate, delay string) *lab {
	t.Helper()
	l := newNetwork(t, labHosts+1, rate, delay)
	l.sshd = make([]*exec.Cmd, labHosts)
	for k := range labHosts {
		l.serve(t, k)
		t.Cleanup(func() { l.sshd[k].Process.Kill(); l.sshd[k].Wait() })
	}
	base := filepath.Dir(l.volley)
	ssh := fmt.Sprintf("ssh -F none -i %s -o IdentitiesOnly=yes -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=%s",
		filepath.Join(base, "user"), filepath.Join(base, "known"))
	l.flags = []string{"--ssh", ssh, "--remote-path", l.volley}
	return l
}

// newNetwork makes a lab of so many hosts without sshd, a binary, and keys for ssh beside it.
func newNetwork(t *testing.T, hosts int, rate, delay string) *lab {
	t.Helper()
	script, err := filepath.Abs("../../bench/network/lab")
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.MkdirTemp("/tmp", "hosts") // where sshd lets everybody in the way be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	l := &lab{script: script, volley: filepath.Join(base, "volley")}
	do := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v: %s", name, args, err, out)
		}
	}
	do("go", "build", "-o", l.volley, "../../cmd/volley")
	for _, key := range []string{"host", "user"} {
		do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(base, key))
	}
	do("mkdir", "-p", "/run/sshd")
	do(script, "up", fmt.Sprint(hosts), rate, delay)
	t.Cleanup(func() { do(script, "down") })
	return l
}

// serve starts the sshd of a host.
func (l *lab) serve(t *testing.T, host int) {
	t.Helper()
	base := filepath.Dir(l.volley)
	c := exec.Command(l.script, "exec", fmt.Sprint(host), "/usr/sbin/sshd", "-D", "-f", "/dev/null", "-h", filepath.Join(base, "host"),
		"-o", "AuthorizedKeysFile="+filepath.Join(base, "user.pub"), "-o", "StrictModes=no", "-o", "UsePAM=no", "-o", "PidFile=none",
		"-o", "SetEnv=SHLVL=2") // bash then reads no ~/.bashrc, which may take long
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	l.sshd[host] = c
	up := fmt.Sprintf("until (: >/dev/tcp/10.78.0.%d/22) 2>/dev/null; do sleep 0.02; done", host+1)
	if out, err := exec.CommandContext(t.Context(), l.script, "exec", fmt.Sprint(host), "bash", "-c", up).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// command returns a launch, each directory at the host of its number.
func (l *lab) command(t *testing.T, verb []string, dirs ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	args := append([]string{"exec", fmt.Sprint(labHosts), l.volley, verb[0]}, append(l.flags, verb[1:]...)...)
	return exec.CommandContext(ctx, l.script, append(args, dirs...)...)
}

func (l *lab) run(t *testing.T, verb []string, dirs ...string) result {
	t.Helper()
	c := l.command(t, verb, dirs...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	l.ended(t)
	return result{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// ranks returns the ranks that run at any host.
func (l *lab) ranks() (ids []int) {
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

func (l *lab) ended(t *testing.T) {
	t.Helper()
	for begun := time.Now(); len(l.ranks()) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 90*time.Second {
			t.Fatalf("ranks %v are left", l.ranks())
		}
	}
}

// TestLaunchHosts has hosts of a network drop what others send to any port but that of ssh: in one direction that is no
// harm, and in both the ranks name the firewall.
func TestLaunchHosts(t *testing.T) {
	if !*hosts {
		t.Skip("without -hosts")
	}
	l := newLab(t, "200mbit", "1ms")
	var names []string
	for k, dir := range writeNodes(t, labHosts, 1_000_000) {
		names = append(names, fmt.Sprintf("10.78.0.%d:%s", k+1, dir))
	}
	must := func(verb []string, dirs ...string) {
		t.Helper()
		if r := l.run(t, verb, dirs...); r.code != exit.OK {
			t.Fatalf("%s: %+v", verb, r)
		}
	}
	protect := []string{"protect", "--force", "--tolerate", "2"}
	must(protect, names...)
	must([]string{"verify", "--remote-path", "copy"}, names[2], names[0], names[3], names[1])
	deaf := func(do string, host int, from string) {
		line := []string{"exec", fmt.Sprint(host), "iptables", "-w", do, "INPUT", "-s", from, "-p", "tcp", "--syn", "!", "--dport", "22", "-j", "DROP"}
		if out, err := exec.Command(l.script, line...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	deaf("-A", 2, "10.78.0.1")
	must(protect, names...)
	deaf("-A", 0, "10.78.0.3")
	begun := time.Now()
	r := l.run(t, protect, names...)
	t.Logf("the ranks had named the firewall after %v", time.Since(begun))
	deaf("-D", 2, "10.78.0.1")
	deaf("-D", 0, "10.78.0.3")
	unreached := regexp.MustCompile(`rank \d \(10\.78\.0\.3\), at 10\.78\.0\.3:\d+, is gone or cannot be reached from rank \d \(10\.78\.0\.1\), .*; if it runs, open TCP port \d+ of 10\.78\.0\.3 for 10\.78\.0\.1; with --port 7000-7063 `)
	if r.code != exit.Failed || !unreached.MatchString(r.stderr) {
		t.Errorf("%+v", r)
	}
	must(protect, names...)
}

func kill(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func parentOf(t *testing.T, pid int) (parent int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nPPid:")
	fmt.Sscan(rest, &parent)
	return parent
}
