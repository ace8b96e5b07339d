package cli

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"volley/internal/exit"
)

var (
	hostTrials = flag.Int("hosts.trials", 1, "how often TestHostFaults tries each fault")
	hostSeed   = flag.Uint64("hosts.seed", 0, "what TestHostFaults draws from (default: the time)")
)

const (
	trialTimeout = 3 * time.Second
	trialRate    = "200mbit"
	trialBytes   = 2_000_000 // of a host, about
)

// A trial is a run between hosts a to d to which something happens.
type trial struct {
	*farm
	rng  *rand.Rand
	host int // to which it happens
	run  *exec.Cmd
	done chan struct{} // the run has ended
}

// A hostFault is what happens to a host, at a random moment of the run, or before. It returns what ends it, or nil.
type hostFault struct {
	name     string
	begin    func(x *trial) (end func())
	before   bool
	lasts    time.Duration // at most; 0: as long as the run
	want     string        // an error of the run matches it; HOST: the host
	survives bool          // the run does not fail
}

var hostFaults = []hostFault{
	{name: "none", survives: true, begin: func(*trial) func() { return nil }},
	{name: "a rank is killed", want: "HOST", begin: func(x *trial) func() { return x.signal(x.rank(), syscall.SIGKILL) }},
	{name: "the launch is killed", begin: func(x *trial) func() { return x.signal(x.run.Process.Pid, syscall.SIGKILL) }},
	{name: "the launch is interrupted", want: "interrupted", begin: func(x *trial) func() { return x.signal(x.run.Process.Pid, syscall.SIGINT) }},
	{name: "a session is killed", want: "HOST", begin: func(x *trial) func() {
		if pid := x.rank(); pid > 0 {
			x.signal(parentOf(x.T, pid), syscall.SIGKILL)
		}
		return nil
	}},
	{name: "a rank is stopped, and goes on", want: "HOST", lasts: 3 * trialTimeout, begin: func(x *trial) func() {
		pid := x.rank()
		x.signal(pid, syscall.SIGSTOP)
		return func() { x.signal(pid, syscall.SIGCONT) }
	}},
	{name: "a host is cut off from the others", want: "HOST", lasts: 3 * trialTimeout, begin: func(x *trial) func() { return x.cut(4, true, true) }},
	{name: "a host is cut off from the others and the launch", want: "HOST", lasts: 3 * trialTimeout, begin: func(x *trial) func() { return x.cut(5, true, true) }},
	{name: "a host is cut off in one direction", want: "HOST", lasts: 3 * trialTimeout, begin: func(x *trial) func() {
		out := x.rng.IntN(2) == 0
		return x.cut(4+x.rng.IntN(2), out, !out)
	}},
	{name: "a link is slow", survives: true, begin: func(x *trial) func() {
		rate := func(rate string) {
			x.at(x.host, "tc", "qdisc", "replace", "dev", "eth0", "root", "handle", "1:", "tbf", "rate", rate, "burst", "25000", "limit", "33554432")
		}
		rate("20mbit")
		return func() { rate(trialRate) }
	}},
	{name: "a disk is full", before: true, want: "HOST", begin: func(x *trial) func() {
		var disk syscall.Statfs_t
		syscall.Statfs(x.dir(x.host), &disk)
		size := func(bytes int64) { x.at(x.host, "mount", "-o", fmt.Sprint("remount,size=", bytes), "/data") }
		size(int64(disk.Blocks-disk.Bfree)*int64(disk.Bsize) + x.rng.Int64N(trialBytes))
		return func() { size(64 << 20) }
	}},
	{name: "a firewall drops packets in one direction", before: true, survives: true, begin: func(x *trial) func() { return x.deaf(2, 0) }},
	{name: "a firewall drops packets", before: true, want: `rank \d \((a|c)\), at 10\.78\.0\.\d:\d+, is gone or cannot be reached from rank \d \((a|c)\), .*; if it runs, open TCP port \d+ of 10\.78\.0\.\d for 10\.78\.0\.\d; with --port 7000-7063 `, begin: func(x *trial) func() {
		first, second := x.deaf(2, 0), x.deaf(0, 2)
		return func() { first(); second() }
	}},
}

func (x *trial) signal(pid int, s syscall.Signal) func() {
	if pid > 0 {
		syscall.Kill(pid, s)
	}
	return nil
}

// rank returns the process of the rank at the host, for which it waits, or 0 if the run ends before.
func (x *trial) rank() int {
	for {
		for _, pid := range x.ranks() {
			env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if bytes.Contains(env, fmt.Appendf(nil, " 10.78.0.%d 22\x00", x.host+1)) { // SSH_CONNECTION
				return pid
			}
		}
		select {
		case <-x.done:
			return 0
		case <-time.After(time.Millisecond):
		}
	}
}

func (x *trial) dir(host int) string { return x.path(x.names[host], "data") }

// at runs a command at a host.
func (x *trial) at(host int, args ...string) {
	x.Helper()
	if out, err := x.in(context.Background(), x.names[host], args...).CombinedOutput(); err != nil {
		x.Errorf("%s: %v: %s", args, err, out)
	}
}

// cut has what the host sends to the first n others, or what these send to it, go to nobody.
func (x *trial) cut(n int, out, in bool) (end func()) {
	set := func(address string) {
		way := func(from, to int) {
			x.at(from, "ip", "neigh", "replace", fmt.Sprintf("10.78.0.%d", to+1), "lladdr", fmt.Sprintf(address, to), "dev", "eth0", "nud", "permanent")
		}
		for k := range n {
			if k != x.host && out {
				way(x.host, k)
			}
			if k != x.host && in {
				way(k, x.host)
			}
		}
	}
	set("02:00:00:00:ff:%02x")
	return func() { set("02:00:00:00:00:%02x") } // the lab's
}

// deaf has a host drop what another one sends to any port but that of ssh.
func (x *trial) deaf(host, from int) (end func()) {
	rule := func(do string) {
		x.at(host, "iptables", "-w", do, "INPUT", "-s", fmt.Sprintf("10.78.0.%d", from+1), "-p", "tcp", "--syn", "!", "--dport", "22", "-j", "DROP")
	}
	rule("-A")
	return func() { rule("-D") }
}

// fill gives a host a file of its own.
func (x *trial) fill(host int, name string) {
	content := make([]byte, trialBytes/2+host*7)
	rand.NewChaCha8([32]byte{byte(x.rng.Uint32()), byte(x.rng.Uint32())}).Read(content)
	lay(x.T, filepath.Join(x.dir(host), name), content, 0o644)
}

// lose empties the disk of a host.
func (x *trial) lose(host int) {
	for _, name := range listDir(x.T, x.dir(host)) {
		removeAll(x.T, filepath.Join(x.dir(host), name))
	}
}

// volley returns the command line of a verb, with the hosts in any order.
func (x *trial) volley(verb string, flags ...string) string {
	line := append([]string{"exec", "volley", verb}, flags...)
	for _, k := range x.rng.Perm(4) {
		line = append(line, x.names[k]+":/data")
	}
	return strings.Join(line, " ")
}

// TestHostFaults has faults at random moments of protect, recover and verify between hosts. After each nothing
// is left running, the group has its old or its new generation, whatever may be lost comes back, an error
// has named the host, and the next run works.
func TestHostFaults(t *testing.T) {
	f := newFarm(t, trialRate, "a", "b", "c", "d", "admin")
	for _, name := range f.names[:4] {
		copyFile(t, filepath.Join(f.base, "volley"), f.path(name, "usr/local/bin/volley"), 0o755)
	}
	seed := cmp.Or(*hostSeed, uint64(time.Now().UnixNano()))
	t.Logf("-hosts.seed %d", seed)
	limit := time.Second // that a run takes
	for i, fault := range hostFaults {
		t.Run(fault.name, func(t *testing.T) {
			for n := range *hostTrials {
				x := &trial{farm: f, rng: rand.New(rand.NewPCG(seed, uint64(i)<<32+uint64(n)))}
				x.host = x.rng.IntN(4)
				verb := []string{"protect", "protect", "recover", "recover", "verify"}[x.rng.IntN(5)]
				if strings.Contains(fault.name, "firewall") { // as long as no rank has the other's connection
					verb = "protect"
				}
				begun := time.Now()
				x.try(t, fault, verb, limit)
				if fault.name == "none" {
					limit = time.Since(begun) / 2
				}
			}
		})
	}
}

// try makes a group, runs the verb with the fault, and checks what comes of it.
func (x *trial) try(t *testing.T, fault hostFault, verb string, limit time.Duration) {
	t.Helper()
	var dirs []string
	for k := range 4 {
		x.lose(k)
		x.fill(k, "ckpt")
		x.fill(k, "sub/b")
		dirs = append(dirs, x.dir(k))
	}
	x.farm.run(x.volley("protect", "--tolerate", "2")).is(t, exit.OK)
	was := filesOf(t, dirs[x.host])
	switch verb {
	case "protect":
		x.fill(x.host, "ckpt")
	case "recover":
		x.lose(x.host)
	}
	var want []map[string]string
	for _, dir := range dirs {
		want = append(want, filesOf(t, dir))
	}
	if verb == "recover" {
		want[x.host] = was
	}
	flags := map[string][]string{"protect": {"--tolerate", "2"}}[verb]
	if !strings.Contains(fault.name, "firewall") { // which the kernel takes longer to tell
		flags = append(flags, "--timeout", trialTimeout.String())
	}
	code, said := x.strike(t, fault, x.volley(verb, flags...), limit)
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s at host %s: exit code %d: %s\n%s", verb, x.names[x.host], code, fmt.Sprintf(format, args...), said)
	}
	match := regexp.MustCompile(strings.ReplaceAll(fault.want, "HOST", `\b`+x.names[x.host]+`\b`))
	if code != exit.OK && (fault.survives || !match.MatchString(said)) || code == exit.OK && strings.Contains(fault.name, "firewall") && !fault.survives {
		fail("want success: %v, or %v", fault.survives, match)
	}
	x.lose((x.host + 1) % 4)
	if r := x.farm.run(x.volley("recover", "--revert", "changed")); r.code != exit.OK {
		fail("another host is lost, and recover: %+v", r)
	}
	for k, dir := range dirs {
		old := verb == "protect" && k == x.host && code != exit.OK && maps.Equal(filesOf(t, dir), was)
		if got := filesOf(t, dir); !maps.Equal(got, want[k]) && !old {
			fail("host %s has %v, want %v", x.names[k], got, want[k])
		}
	}
	if r := x.farm.run(x.volley("protect", "--tolerate", "2")); r.code != exit.OK {
		fail("the next run: %+v", r)
	}
}

// strike runs the operator's command with the fault, within the limit.
func (x *trial) strike(t *testing.T, fault hostFault, command string, limit time.Duration) (code int, said string) {
	t.Helper()
	end := func() {}
	begin := func() {
		if undo := fault.begin(x); undo != nil {
			end = sync.OnceFunc(undo)
		}
	}
	if fault.before {
		begin()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	x.run, x.done = x.in(ctx, "admin", "bash", "-c", command), make(chan struct{})
	var text bytes.Buffer
	x.run.Stdout, x.run.Stderr = &text, &text
	must(t, x.run.Start())
	go func() { x.run.Wait(); close(x.done) }()
	if !fault.before {
		if x.rng.IntN(2) == 0 { // not while ssh logs in
			x.rank()
			limit /= 3
		}
		time.Sleep(time.Duration(x.rng.Int64N(int64(limit))))
		begin()
	}
	if fault.lasts > 0 {
		select {
		case <-x.done:
		case <-time.After(time.Duration(x.rng.Int64N(int64(fault.lasts)))):
		}
		end()
	}
	<-x.done
	end()
	x.ended()
	return x.run.ProcessState.ExitCode(), text.String()
}
