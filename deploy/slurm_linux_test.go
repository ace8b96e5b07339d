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
	key              string // of the runs
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
	must(t, err)
	base := t.TempDir()
	open(t, base, 0o755)
	c := &slurmCluster{base: base, bin: binary(t), local: filepath.Join(base, "local"), key: secret()}
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
	dirs := []string{at("state"), at("local")}
	for k := range slurmHosts {
		dirs = append(dirs, at(fmt.Sprint("spool.node", k)), c.at(k))
		names += fmt.Sprintf("10.78.0.%d node%d\n", k+1, k)
		conf = append(conf, fmt.Sprintf("NodeName=node%d CPUs=2", k))
	}
	for _, dir := range dirs {
		must(t, os.Mkdir(dir, 0o755))
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
	must(t, d.Start())
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

// data is the packet of a host.
func (c *slurmCluster) data(k int) string { return c.at(k, "ckpt", "packet") }

func (c *slurmCluster) fill(t *testing.T, k int, text string) {
	t.Helper()
	must(t, os.MkdirAll(c.at(k, "ckpt"), 0o755))
	write(t, c.data(k), strings.Repeat(fmt.Sprintln(text, k), 1_000_000), 0o644)
}

// lose removes what a host has, and returns its packet.
func (c *slurmCluster) lose(t *testing.T, k int) string {
	t.Helper()
	was := read(t, c.data(k))
	must(t, os.RemoveAll(c.at(k, "ckpt")))
	return was
}

// srun returns a step with a task at each host, in that order.
func (c *slurmCluster) srun(t *testing.T, hosts []string, args ...string) *exec.Cmd {
	t.Helper()
	n := fmt.Sprint(len(hosts))
	line, env := []string{"srun", "-N" + n, "-n" + n, "-w", strings.Join(hosts, ",")}, append(os.Environ(), "VOLLEY_SECRET="+c.key)
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

// succeeds runs a command, and returns what it prints.
func (c *slurmCluster) succeeds(t *testing.T, cmd *exec.Cmd, want string) {
	t.Helper()
	codes, text := together(t, []*exec.Cmd{cmd})
	if codes[0] != exitOK || strings.Count(text, want) != 1 && want != "" {
		t.Fatalf("%s: exit code %d, want one %q: %s", cmd.Args, codes[0], want, text)
	}
	if left := c.volleys(); left != nil {
		t.Fatalf("%s: %s are left", cmd.Args, left)
	}
}

func (c *slurmCluster) same(t *testing.T, k int, text string) {
	t.Helper()
	if read(t, c.data(k)) != text {
		t.Errorf("the packet of node%d is another one", k)
	}
}

// TestSlurmCluster protects, recovers and verifies the folders of hosts by srun and by sbatch, as tasks in another order
// than before, and cancels a step.
func TestSlurmCluster(t *testing.T) {
	if !*slurm {
		t.Skip("without -slurm")
	}
	c := newSlurm(t)
	ckpt := filepath.Join(c.local, "ckpt")
	first, later := []string{"node0", "node1", "node2", "node3"}, []string{"node3", "node4", "node0", "node2"}
	protect := []string{"volley", "protect", "--tolerate", "2", ckpt}
	for k := range first {
		c.fill(t, k, "first")
	}
	c.succeeds(t, c.srun(t, first, protect...), "protected, generation 1")

	// Node 1 is lost, another host comes in its place, and the tasks have another order.
	was := c.lose(t, 1)
	c.succeeds(t, c.srun(t, later, "volley", "recover", ckpt), "")
	c.same(t, 4, was)
	c.succeeds(t, c.srun(t, later, "volley", "verify", ckpt), "whole: 4 nodes")

	// A step is cancelled half-way.
	c.fill(t, 0, "second")
	c.cancel(t, c.srun(t, later, append([]string{"--job-name=cut"}, protect...)...), len(later))
	was = c.lose(t, 2)
	c.succeeds(t, c.srun(t, later, "volley", "recover", ckpt), "")
	c.same(t, 2, was)
	c.succeeds(t, c.srun(t, later, protect...), "")

	// The scripts, as they are.
	batch := func(script string, args ...string) {
		t.Helper()
		name, err := filepath.Abs("slurm/" + script)
		must(t, err)
		line := []string{"sbatch", "--wait", "-o", filepath.Join(c.base, script+".out"), "--nodes", "4", "-w", strings.Join(later, ","), name}
		c.succeeds(t, c.on(t, 0, append(line, args...)...), "")
	}
	c.fill(t, 3, "third")
	batch("protect.sbatch", ckpt, "2")
	was = c.lose(t, 3)
	batch("recover.sbatch", ckpt)
	c.same(t, 3, was)
}

// cancel starts a step named cut, and ends it once so many tasks have begun.
func (c *slurmCluster) cancel(t *testing.T, step *exec.Cmd, tasks int) {
	t.Helper()
	done := make(chan string)
	go func() {
		codes, text := together(t, []*exec.Cmd{step})
		done <- fmt.Sprint(codes, text)
	}()
	until := func(n int) {
		t.Helper()
		for begun := time.Now(); len(c.volleys()) != n; time.Sleep(time.Millisecond) {
			if time.Since(begun) > time.Minute {
				t.Fatalf("there are %d tasks, not %d", len(c.volleys()), n)
			}
		}
	}
	until(tasks)
	time.Sleep(200 * time.Millisecond)
	if out, err := c.on(t, 0, "scancel", "--name=cut").CombinedOutput(); err != nil {
		t.Fatalf("scancel: %v: %s", err, out)
	}
	if text := <-done; strings.HasPrefix(text, "[0]") {
		t.Errorf("a cancelled step succeeds: %s", text)
	}
	until(0)
}
