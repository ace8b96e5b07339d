package deploy

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	flags "flag"
)

var slurm = flags.Bool("slurm", false, "run TestSlurmCluster: it needs root, slurm-wlm, munge, and bench/network/lab to itself")

// A cluster of Slurm is hosts in network namespaces, node0 and so on, with a slurmd each, and slurmctld at node0.
// All have a folder of the same name, which is another at each host.
type slurmCluster struct {
	base, bin, local string
	lab              string
}

const slurmHosts = 5

// host enters the namespaces of host $1, and has the rest of its arguments run there.
const host = `#!/bin/sh
export SLURM_CONF=BASE/slurm.conf PATH=BIN:$PATH k=$1
shift
exec unshare --mount --uts nsenter --net=/run/netns/volleybench$k sh -ec '
	echo node$k >/proc/sys/kernel/hostname
	mount --bind BASE/hosts /etc/hosts
	mount --bind BASE/local.$k BASE/local
	unset k
	exec "$@"' sh "$@"
`

func newSlurm(t *testing.T) *slurmCluster {
	t.Helper()
	lab, err := filepath.Abs("../bench/network/lab")
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	open(t, base, 0o755)
	c := &slurmCluster{base: base, bin: binary(t), local: filepath.Join(base, "local"), lab: lab}
	if out, err := exec.Command(lab, "up", fmt.Sprint(slurmHosts), "200mbit", "0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { exec.Command(lab, "down").Run() })

	at := func(name string) string { return filepath.Join(base, name) }
	conf := []string{"ClusterName=lab", "SlurmctldHost=node0", "SlurmUser=root", "AuthType=auth/munge", "AuthInfo=socket=" + at("munge"),
		"StateSaveLocation=" + at("state"), "SlurmctldPidFile=" + at("slurmctld.pid"), "SlurmdSpoolDir=" + at("spool.%n"), "SlurmdPidFile=" + at("%n.pid"),
		"ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "JobAcctGatherType=jobacct_gather/none", "MpiDefault=none",
		"ReturnToService=2", "SelectType=select/cons_tres", "SchedulerType=sched/builtin",
		"SchedulerParameters=batch_sched_delay=0,sched_interval=1"}
	names := "127.0.0.1 localhost\n"
	for _, dir := range []string{"state", "local"} {
		mkdir(t, at(dir))
	}
	for k := range slurmHosts {
		mkdir(t, at(fmt.Sprint("spool.node", k)))
		mkdir(t, c.at(k))
		names += fmt.Sprintf("10.78.0.%d node%d\n", k+1, k)
		conf = append(conf, fmt.Sprintf("NodeName=node%d CPUs=2", k))
	}
	conf = append(conf, "PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:16", "")
	key := make([]byte, 128)
	rand.Read(key)
	write(t, at("munge.key"), string(key), 0o600)
	write(t, at("hosts"), names, 0o644)
	write(t, at("slurm.conf"), strings.Join(conf, "\n"), 0o644)
	cgroup := "CgroupAutomount=no\n"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil { // also where version 2 is mounted beside 1
		cgroup += "CgroupPlugin=cgroup/v1\n"
	}
	write(t, at("cgroup.conf"), cgroup, 0o644)
	write(t, at("host"), strings.NewReplacer("BASE", base, "BIN", c.bin).Replace(host), 0o755)

	c.daemon(t, exec.Command("munged", "--foreground", "--force", "--socket="+at("munge"), "--key-file="+at("munge.key"),
		"--pid-file="+at("munged.pid"), "--seed-file="+at("munged.seed"), "--log-file="+at("munged.log")))
	c.daemon(t, c.on(t, 0, "slurmctld", "-D"))
	for k := range slurmHosts {
		c.daemon(t, c.on(t, k, "slurmd", "-D", "-N", fmt.Sprint("node", k)))
	}
	var out []byte
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(100 * time.Millisecond) {
		out, _ = c.on(t, 0, "sinfo", "-h", "-o", "%D %t").CombinedOutput()
		if string(out) == fmt.Sprintln(slurmHosts, "idle") {
			return c
		}
	}
	t.Fatalf("the hosts of Slurm: %s", out)
	return nil
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

// at returns what the folder of the same name is at a host.
func (c *slurmCluster) at(k int, path ...string) string {
	return filepath.Join(append([]string{c.base, fmt.Sprint("local.", k)}, path...)...)
}

func (c *slurmCluster) on(t *testing.T, k int, args ...string) *exec.Cmd {
	return exec.CommandContext(limited(t), filepath.Join(c.base, "host"), append([]string{fmt.Sprint(k)}, args...)...)
}

// daemon starts a command that ends with the test, and prints what it said if the test fails.
func (c *slurmCluster) daemon(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	d := exec.Command(cmd.Path, cmd.Args[1:]...) // not limited
	d.Stdout, d.Stderr = &out, &out
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Process.Kill()
		d.Wait()
		if t.Failed() && testing.Verbose() {
			t.Logf("%s: %s", cmd.Args, out.String())
		}
	})
}

// volleys returns the processes of volley at any host.
func (c *slurmCluster) volleys() (ids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, name := range all {
		if to, err := os.Readlink(name); err == nil && to == filepath.Join(c.bin, "volley") {
			ids = append(ids, name)
		}
	}
	return ids
}

// TestSlurmCluster protects, recovers, verifies and encodes the folders of hosts by srun and by sbatch, as
// tasks in another order than before, cancels a step, and does the same with Slurm's variables alone, and with flags alone.
func TestSlurmCluster(t *testing.T) {
	if !*slurm {
		t.Skip("without -slurm")
	}
	c := newSlurm(t)
	data := func(k int) string { return c.at(k, "ckpt", "packet") }
	fill := func(k int, text string) {
		t.Helper()
		if err := os.MkdirAll(c.at(k, "ckpt"), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, data(k), strings.Repeat(fmt.Sprintln(text, k), 1_000_000), 0o644)
	}
	lose := func(k int) {
		t.Helper()
		if err := os.RemoveAll(c.at(k, "ckpt")); err != nil {
			t.Fatal(err)
		}
	}
	key := secret()
	// srun has tasks at hosts, in this order.
	srun := func(hosts []string, args ...string) *exec.Cmd {
		n := fmt.Sprint(len(hosts))
		line := []string{"srun", "-N" + n, "-n" + n, "-w", strings.Join(hosts, ",")}
		env := append(os.Environ(), "VOLLEY_SECRET="+key)
		if !slices.IsSorted(hosts) {
			list := filepath.Join(c.base, "hostfile")
			write(t, list, strings.Join(hosts, "\n")+"\n", 0o644)
			line, env = []string{"srun", "-N" + n, "-n" + n, "-m", "arbitrary"}, append(env, "SLURM_HOSTFILE="+list)
			args = append(args, "--meet", hosts[0]+":7077")
		}
		cmd := c.on(t, 0, append(line, args...)...)
		cmd.Env = env
		return cmd
	}
	// want runs commands at once, and returns what they print.
	want := func(code int, commands ...*exec.Cmd) string {
		t.Helper()
		codes, text := together(t, commands)
		if len(codes) != 1 || codes[0] != code {
			t.Fatalf("%s: exit codes %v, want %d: %s", commands[0].Args, codes, code, text)
		}
		if left := c.volleys(); left != nil {
			t.Fatalf("%s: %s are left", commands[0].Args, left)
		}
		return text
	}
	same := func(k int, text string) {
		t.Helper()
		if read(t, data(k)) != text {
			t.Errorf("the packet of node%d is another one", k)
		}
	}
	ckpt := filepath.Join(c.local, "ckpt")
	first := []string{"node0", "node1", "node2", "node3"}
	protect := []string{"volley", "protect", "--tolerate", "2", ckpt}
	for k := range first {
		fill(k, "first")
	}
	if text := want(exitOK, srun(first, protect...)); strings.Count(text, "protected, generation 1") != 1 {
		t.Errorf("want one report: %s", text)
	}

	// Node 1 is lost, another host comes in its place, and the tasks have another order.
	was := read(t, data(1))
	lose(1)
	later := []string{"node3", "node4", "node0", "node2"}
	want(exitOK, srun(later, "volley", "recover", ckpt))
	same(4, was)
	if text := want(exitOK, srun(later, "volley", "verify", ckpt)); strings.Count(text, "whole: 4 nodes") != 1 {
		t.Errorf("want four whole nodes: %s", text)
	}

	// A step is cancelled half-way.
	fill(0, "second")
	cut := srun(later, append([]string{"--job-name=cut"}, protect...)...)
	done := make(chan string)
	go func() {
		codes, text := together(t, []*exec.Cmd{cut})
		done <- fmt.Sprint(codes, text)
	}()
	for begun := time.Now(); len(c.volleys()) < len(later); time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("%d tasks have begun", len(c.volleys()))
		}
	}
	time.Sleep(200 * time.Millisecond)
	if out, err := c.on(t, 0, "scancel", "--name=cut").CombinedOutput(); err != nil {
		t.Fatalf("scancel: %v: %s", err, out)
	}
	if text := <-done; strings.HasPrefix(text, "[0]") {
		t.Errorf("a cancelled step succeeds: %s", text)
	} else {
		t.Log(text)
	}
	for begun := time.Now(); c.volleys() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("%s are left", c.volleys())
		}
	}
	was = read(t, data(2))
	lose(2)
	want(exitOK, srun(later, "volley", "recover", ckpt))
	same(2, was)
	want(exitOK, srun(later, protect...))

	// The scripts, as they are.
	batch := func(script string, args ...string) {
		t.Helper()
		name, err := filepath.Abs("slurm/" + script)
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(c.base, script+".out")
		codes, text := together(t, []*exec.Cmd{c.on(t, 0, append([]string{"sbatch", "--wait", "-o", out, "--nodes", "4", "-w", strings.Join(later, ","), name}, args...)...)})
		if codes[0] != exitOK {
			t.Fatalf("%s: exit code %d: %s%s", script, codes[0], text, read(t, out))
		}
	}
	fill(3, "third")
	batch("protect.sbatch", ckpt, "2")
	was = read(t, data(3))
	lose(3)
	batch("recover.sbatch", ckpt)
	same(3, was)

	want(exitOK, srun(later, "volley", "encode", "-o", filepath.Join(c.local, "coded"), filepath.Join(ckpt, "packet")))
	was = read(t, data(4))
	lose(4)
	if err := os.RemoveAll(c.at(4, "coded")); err != nil {
		t.Fatal(err)
	}
	want(exitOK, srun(later, "volley", "decode", "-o", filepath.Join(c.local, "back"), filepath.Join(c.local, "coded"), filepath.Join(ckpt, "packet")))
	if read(t, c.at(4, "back", "input.1")) != was { // all of the inputs have one name
		t.Error("another packet is decoded")
	}

	// Without Slurm: by its variables, and by flags.
	by := func(env func(rank int) []string, flags func(rank int) []string, args ...string) (list []*exec.Cmd) {
		for rank, k := range []int{2, 0, 3, 1} {
			cmd := c.on(t, k, append(append([]string{"volley"}, args...), append(flags(rank), ckpt)...)...)
			cmd.Env = append(os.Environ(), append(env(rank), "VOLLEY_SECRET="+key)...)
			list = append(list, cmd)
		}
		return list
	}
	none := func(int) []string { return nil }
	variables := func(rank int) []string {
		return []string{fmt.Sprint("SLURM_PROCID=", rank), "SLURM_STEP_NUM_TASKS=4", "SLURM_STEP_NODELIST=node[2,0,3,1]", "SLURM_JOB_ID=77", "SLURM_STEP_ID=0"}
	}
	numbers := func(rank int) []string {
		return []string{"--rank", fmt.Sprint(rank), "--size", "4", "--meet", "node2:7077"}
	}
	for _, way := range []struct{ env, flags func(int) []string }{{variables, none}, {none, numbers}} {
		for k := range first {
			lose(k)
			fill(k, "fourth")
		}
		want(exitOK, by(way.env, way.flags, protect[1:4]...)...)
		was = read(t, data(1))
		lose(1)
		want(exitOK, by(way.env, way.flags, "recover")...)
		same(1, was)
		want(exitOK, by(way.env, way.flags, "verify")...)
	}

	// Two sets, of which each loses a host.
	for k := range first {
		lose(k)
		fill(k, "fifth")
	}
	sets := []string{"--group-size", "2", ckpt}
	_, text, _ := strings.Cut(want(exitOK, srun(first, append([]string{"volley", "protect", "--tolerate", "1"}, sets...)...)), "set 0 of 2: ")
	text, _, _ = strings.Cut(text, "\n")
	lost := []int{-1, -1} // of each set
	for k := range first {
		set := 1
		if strings.Contains(text, fmt.Sprintf("node%d:", k)) {
			set = 0
		}
		lost[set] = k
	}
	var were []string
	for _, k := range lost {
		were = append(were, read(t, data(k)))
		lose(k)
	}
	slices.Reverse(first)
	want(exitOK, srun(first, append([]string{"volley", "recover"}, sets...)...))
	for i, k := range lost {
		same(k, were[i])
	}
}
