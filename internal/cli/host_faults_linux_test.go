package cli

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
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

// A trial is a run between hosts to which something happens.
type trial struct {
	*lab
	rng   *rand.Rand
	verb  string
	limit time.Duration // that a run takes
	dirs  []string      // of the members, each on a small disk of its own
	host  int           // to which it happens
	other int           // another one
	cmd   *exec.Cmd
	done  chan struct{} // the run has ended
	code  int

	changed int  // which of both is new, or is lost
	stale   bool // the other one has an old generation
}

// A hostFault is what happens to a host. Those of begin come at a random moment of the run, and those of
// before are there when it begins. Both return what ends them, or nil.
type hostFault struct {
	name          string
	before, begin func(t *testing.T, x *trial) (end func())
	lasts         time.Duration // at most; 0: as long as the run
	names         bool          // an error of the run names the host
	survives      bool          // the run does not fail
}

var hostFaults = []hostFault{
	{name: "a rank is killed", names: true, begin: func(t *testing.T, x *trial) func() {
		if pid := x.rank(x.host); pid > 0 {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		return nil
	}},
	{name: "the launch is killed", begin: func(t *testing.T, x *trial) func() {
		x.cmd.Process.Kill()
		return nil
	}},
	{name: "the launch is interrupted", begin: func(t *testing.T, x *trial) func() {
		x.cmd.Process.Signal(os.Interrupt)
		return nil
	}},
	{name: "an sshd is killed", names: true, begin: func(t *testing.T, x *trial) func() {
		if pid := x.rank(x.host); pid > 0 {
			syscall.Kill(parentOf(t, pid), syscall.SIGKILL)
		}
		x.sshd[x.host].Process.Kill()
		x.sshd[x.host].Wait()
		return func() { x.serve(t, x.host) }
	}},
	{name: "a rank is stopped, and goes on", names: true, lasts: 3 * trialTimeout, begin: func(t *testing.T, x *trial) func() {
		pid := x.rank(x.host)
		if pid == 0 {
			return nil
		}
		syscall.Kill(pid, syscall.SIGSTOP)
		return func() { syscall.Kill(pid, syscall.SIGCONT) }
	}},
	{name: "a host is cut off from the others", names: true, lasts: 3 * trialTimeout, begin: func(t *testing.T, x *trial) func() {
		return x.cut(t, labHosts, true, true)
	}},
	{name: "a host is cut off from the others and the launch", names: true, lasts: 3 * trialTimeout, begin: func(t *testing.T, x *trial) func() {
		return x.cut(t, labHosts+1, true, true)
	}},
	{name: "a host is cut off in one direction", names: true, lasts: 3 * trialTimeout, begin: func(t *testing.T, x *trial) func() {
		out := x.rng.IntN(2) == 0
		return x.cut(t, labHosts+x.rng.IntN(2), out, !out)
	}},
	{name: "a link is slow", survives: true, begin: func(t *testing.T, x *trial) func() {
		rate := func(rate string) {
			x.in(t, x.host, "tc", "qdisc", "replace", "dev", "eth0", "root", "handle", "1:", "tbf", "rate", rate, "burst", "25000", "limit", "33554432")
		}
		rate("20mbit")
		return func() { rate(trialRate) }
	}},
	{name: "a disk is full", names: true, before: func(t *testing.T, x *trial) func() {
		disk := filepath.Dir(x.dirs[x.host])
		var is syscall.Statfs_t
		if err := syscall.Statfs(disk, &is); err != nil {
			t.Fatal(err)
		}
		size := func(bytes int64) {
			if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT, fmt.Sprint("size=", bytes)); err != nil {
				t.Error(err)
			}
		}
		size(int64(is.Blocks-is.Bfree)*int64(is.Bsize) + x.rng.Int64N(trialSize))
		return func() { size(trialDisk) }
	}},
}

const (
	trialTimeout = 3 * time.Second
	trialRate    = "200mbit"
	trialSize    = 2_000_000 // of a member, about
	trialDisk    = 64 << 20
)

// rank returns the process of the rank at a host, for which it waits, or 0 if the run ends before.
func (x *trial) rank(host int) int {
	for {
		for _, pid := range x.ranks() {
			env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if bytes.Contains(env, fmt.Appendf(nil, " 10.78.0.%d 22\x00", host+1)) { // SSH_CONNECTION
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

// in runs a command in a host.
func (x *trial) in(t *testing.T, host int, args ...string) {
	t.Helper()
	if out, err := exec.Command(x.script, append([]string{"exec", fmt.Sprint(host)}, args...)...).CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", args, err, out)
	}
}

// cut has what the host sends to the first n others, or what these send to it, go to nobody.
func (x *trial) cut(t *testing.T, n int, out, in bool) (end func()) {
	set := func(address string) {
		way := func(from, to int, mac string) {
			x.in(t, from, "ip", "neigh", "replace", fmt.Sprintf("10.78.0.%d", to+1), "lladdr", mac, "dev", "eth0", "nud", "permanent")
		}
		for k := range n {
			if k != x.host && out {
				way(x.host, k, fmt.Sprintf(address, k))
			}
			if k != x.host && in {
				way(k, x.host, fmt.Sprintf(address, x.host))
			}
		}
	}
	set("02:00:00:00:ff:%02x")
	return func() { set("02:00:00:00:00:%02x") } // the lab's
}

// fill gives a member a file of its own.
func (x *trial) fill(t *testing.T, k int, name string) {
	t.Helper()
	content := make([]byte, trialSize/2+k*7)
	rand.NewChaCha8([32]byte{byte(x.rng.Uint32()), byte(x.rng.Uint32())}).Read(content)
	lay(t, filepath.Join(x.dirs[k], name), content, 0o644)
}

func (x *trial) files(t *testing.T) (list []map[string]string) {
	for _, dir := range x.dirs {
		list = append(list, filesOf(t, dir))
	}
	return list
}

// arguments returns a verb and its flags.
func arguments(verb string) []string {
	args := []string{verb, "--timeout", fmt.Sprint(trialTimeout)}
	if verb == "protect" {
		args = append(args, "--tolerate", "2")
	}
	return args
}

// TestHostFaults has faults at random moments of protect, recover and verify between hosts. After each nothing
// is left running, the group has its old or its new generation, whatever may be lost comes back, an error
// has named the host, and the next run works.
func TestHostFaults(t *testing.T) {
	if !*hosts {
		t.Skip("without -hosts")
	}
	seed := *hostSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-hosts.seed %d", seed)
	base := t.TempDir()
	var dirs []string
	for k := range labHosts {
		disk := filepath.Join(base, fmt.Sprint("disk.", k))
		if err := cmp.Or(os.Mkdir(disk, 0o755), syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprint("size=", trialDisk))); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { syscall.Unmount(disk, 0) })
		dirs = append(dirs, filepath.Join(disk, "node"))
	}
	l := newLab(t, trialRate, "0")
	limits := map[string]time.Duration{} // how long a run takes
	for i, f := range append([]hostFault{{name: "none", survives: true}}, hostFaults...) {
		t.Run(f.name, func(t *testing.T) {
			runs, failed := 0, 0
			for n := range *hostTrials {
				verbs := []string{"protect", "recover", "verify"}
				rng := rand.New(rand.NewPCG(seed, uint64(i)<<32+uint64(n)))
				if f.name != "none" {
					verbs = verbs[rng.IntN(5)/2:][:1]
				} else if n > 0 {
					break
				}
				for _, verb := range verbs {
					x := &trial{lab: l, rng: rng, dirs: dirs, verb: verb, limit: limits[verb]}
					took := x.run(t, f)
					if runs++; x.code != exit.OK {
						failed++
					}
					if f.name == "none" {
						limits[verb] = took
					}
				}
			}
			t.Logf("of %d runs %d failed", runs, failed)
		})
	}
}

// run makes a group, runs the verb with the fault, and checks what comes of it. It returns how long the run took.
func (x *trial) run(t *testing.T, f hostFault) (took time.Duration) {
	t.Helper()
	want, was := x.prepare(t)
	var names []string
	for k, dir := range x.dirs {
		names = append(names, fmt.Sprintf("10.78.0.%d:%s", k+1, dir))
	}
	x.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	begun := time.Now()
	said := x.strike(t, f, names)
	took = time.Since(begun)
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s at host 10.78.0.%d, changed 10.78.0.%d, stale %v: exit code %d after %v: %s\n%s",
			x.verb, x.host+1, x.changed+1, x.stale, x.code, took, fmt.Sprintf(format, args...), said)
	}
	if x.code != exit.OK && f.survives {
		fail("want success")
	}
	if x.code != exit.OK && f.names && !strings.Contains(said, fmt.Sprintf("10.78.0.%d", x.host+1)) {
		fail("the host is not named")
	}
	lose := []int{x.other}
	switch {
	case x.verb == "verify":
		lose = []int{x.host, x.other}
	case x.stale:
		lose = nil
	case x.changed == x.other:
		lose = []int{x.host}
	}
	for _, k := range lose {
		removeAll(t, x.dirs[k])
	}
	if r := volleyRun(append([]string{"recover", "--revert", "changed"}, x.dirs...)...); r.code != exit.OK {
		fail("lost %v, and recover: %+v", lose, r)
	}
	for k, got := range x.files(t) {
		old := x.verb == "protect" && x.code != exit.OK && k == x.changed && maps.Equal(got, was) // the old generation
		if !maps.Equal(got, want[k]) && !old {
			fail("lost %v: host 10.78.0.%d has other files", lose, k+1)
		}
	}
	if next := x.lab.run(t, arguments("protect"), names...); next.code != exit.OK {
		fail("the next run: %+v", next)
	}
	return took
}

// prepare makes a group of which the verb is run. It returns what the hosts are to have, and what the one had that has changed.
func (x *trial) prepare(t *testing.T) (want []map[string]string, was map[string]string) {
	t.Helper()
	x.host = x.rng.IntN(labHosts)
	x.other = (x.host + 1 + x.rng.IntN(labHosts-1)) % labHosts
	x.changed = []int{x.host, x.other}[x.rng.IntN(2)]
	x.stale = x.verb == "recover" && x.changed == x.host && x.rng.IntN(2) == 0
	for k, dir := range x.dirs {
		removeAll(t, dir)
		x.fill(t, k, "ckpt")
		x.fill(t, k, "sub/b")
	}
	protect := append([]string{"protect", "--tolerate", "2"}, x.dirs...)
	mustRun(t, protect...)
	if other := x.dirs[x.other]; x.stale {
		copyTree(t, other, other+".old")
		x.fill(t, x.host, "ckpt")
		mustRun(t, protect...)
		removeAll(t, other)
		if err := os.Rename(other+".old", other); err != nil {
			t.Fatal(err)
		}
	}
	want = x.files(t)
	was = want[x.changed]
	switch x.verb {
	case "protect":
		x.fill(t, x.changed, "ckpt")
		want = x.files(t)
	case "recover":
		removeAll(t, x.dirs[x.changed])
	}
	return want, was
}

// strike runs the verb with the fault, before its limit, and returns what the run says.
func (x *trial) strike(t *testing.T, f hostFault, names []string) string {
	t.Helper()
	end := func() {}
	set := func(undo func()) {
		if undo != nil {
			end = sync.OnceFunc(undo)
		}
	}
	defer func() { end() }()
	if f.before != nil {
		set(f.before(t, x))
	}
	x.cmd, x.done = x.command(t, arguments(x.verb), names...), make(chan struct{})
	var said bytes.Buffer
	x.cmd.Stdout, x.cmd.Stderr = &said, &said
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { x.cmd.Wait(); close(x.done) }()
	if f.begin != nil {
		most := x.limit * 3 / 4
		if x.rng.IntN(2) == 0 { // not while ssh logs in
			x.rank(x.host)
			most = x.limit / 4
		}
		time.Sleep(time.Duration(x.rng.Int64N(int64(most))))
		set(f.begin(t, x))
		if f.lasts > 0 {
			select {
			case <-x.done:
			case <-time.After(time.Duration(x.rng.Int64N(int64(f.lasts)))):
			}
			end()
		}
	}
	<-x.done
	end()
	x.ended(t)
	x.code = x.cmd.ProcessState.ExitCode()
	return said.String()
}
