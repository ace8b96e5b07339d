//go:build mpi

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"volley"
	"volley/internal/exit"
	"volley/transport/transporttest"
)

// A job is a run under mpirun.
type job struct {
	*exec.Cmd
	out  bytes.Buffer
	mark string // in the environment of every process of it
}

// newJob returns a job of n processes, each with the arguments, and more such groups after ":".
func newJob(t *testing.T, n int, args ...string) *job {
	t.Helper()
	path, err := os.Executable()
	must(t, err)
	line := []string{"--oversubscribe", "-n", fmt.Sprint(n), path}
	for _, arg := range args {
		line = append(line, arg)
		if arg == ":" {
			line = append(line, "-n", "1", path)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*transporttest.Limit)
	t.Cleanup(cancel)
	own, err := os.MkdirTemp("", "volley") // or Open MPI fails, as two jobs make a directory
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(own) })
	j := &job{Cmd: exec.CommandContext(ctx, "mpirun", line...), mark: newMark()}
	j.Env = append(os.Environ(), j.mark, asCommand+"=1", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "TMPDIR="+own)
	j.Stdout, j.Stderr = &j.out, &j.out
	j.WaitDelay = time.Second
	return j
}

// do runs the job and returns the exit code and the lines that Volley printed.
func (j *job) do(t *testing.T) (code int, lines []string) {
	t.Helper()
	err := j.Run()
	if ended := new(exec.ExitError); err != nil && !errors.As(err, &ended) {
		t.Fatalf("%v: is Open MPI installed? %s", err, &j.out)
	}
	return j.ProcessState.ExitCode(), j.lines()
}

func (j *job) lines() (lines []string) {
	for line := range strings.SplitSeq(j.out.String(), "\n") {
		if strings.HasPrefix(line, "volley: ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// overMPI is a [several] with processes of MPI.
func overMPI(t *testing.T, n int, args ...string) (code int, text string) {
	t.Helper()
	var line []string
	for i, arg := range args {
		if line = append(line, arg); i == 0 || args[i-1] == ":" { // a verb
			line = append(line, "--comm", "mpi", "--timeout", "1m")
		}
	}
	j := newJob(t, n, line...)
	code, _ = j.do(t)
	return code, j.out.String()
}

func TestJobs(t *testing.T) { t.Parallel(); testFiles(t, overMPI) }

func TestGroupJob(t *testing.T) { t.Parallel(); testOrder(t, overMPI, false) }

// TestJobErrors starts processes of one job that are not alike, or cannot do what they are to.
func TestJobErrors(t *testing.T) {
	t.Parallel()
	testErrors(t, overMPI, wrongRuns(t)...)
	version := "-X " + reflect.TypeFor[volley.Report]().PkgPath() + ".Version=9.9.9"
	testErrors(t, func(t *testing.T, n int, args ...string) (int, string) {
		j := newJob(t, n, args...)
		j.Args[slices.Index(j.Args, ":")+3] = filepath.Join(t.TempDir(), "other")
		if text, err := exec.Command("go", "build", "-tags", "mpi", "-ldflags", version, "-o", j.Args[slices.Index(j.Args, ":")+3], "../../cmd/volley").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		code, _ := j.do(t)
		return code, j.out.String()
	}, wrongRun{"versions", 2, []string{"encode", "--comm", "mpi", "-o", "{out}", writeNumbered(t, 3, 1000), ":", "encode", "--comm", "mpi", "-o", "{out}", "x"}, exit.Usage,
		`^volley: rank 2 \(\S+\) runs volley 9\.9\.9, rank 0 \(\S+\) runs volley [0-9.]+(-dev\S*)?: install the same version at all ranks$`})
}

// TestJobMissing has rank 2 not come to MPI_Init: the others say that they wait.
func TestJobMissing(t *testing.T) {
	t.Parallel()
	j := newJob(t, 2, "verify", "--comm", "mpi", "--timeout", "2s", t.TempDir(), ":", "30")
	j.Args[len(j.Args)-2] = "sleep"
	if code, _ := j.do(t); code != exit.Failed || !strings.Contains(j.out.String(), "within 2s: rank 0 waits on ") || !strings.Contains(j.out.String(), "within 2s: rank 1 waits on ") {
		t.Errorf("exit code %d: %s", code, &j.out)
	}
}

// TestJobAuto leaves --comm out.
func TestJobAuto(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	j := newJob(t, 3, "encode", "-o", out, writeNumbered(t, 3, 100), "-k", "3")
	if code, _ := j.do(t); code != exit.OK || len(listDir(t, out)) != 5 {
		t.Errorf("exit code %d: %s", code, &j.out)
	}
}

// processesOf returns the ids of the job's processes, by rank; 0 where one is not there.
func (j *job) processesOf(n int) []int {
	ids := make([]int, n)
	for pid, environ := range marked(j.mark) {
		var rank int
		_, value, _ := strings.Cut("\x00"+environ, "\x00OMPI_COMM_WORLD_RANK=")
		if _, err := fmt.Sscan(value, &rank); err == nil {
			ids[rank] = pid
		}
	}
	return ids
}

// strike starts a job of n processes and, a while after all are there and so is a path,
// sends a signal to one. It returns once the job has ended.
func strike(t *testing.T, n, victim int, there string, after time.Duration, sig syscall.Signal, args ...string) *job {
	t.Helper()
	j := newJob(t, n, args...)
	must(t, j.Start())
	var ids []int
	for begun := time.Now(); time.Since(begun) < transporttest.Limit; time.Sleep(5 * time.Millisecond) {
		if ids = j.processesOf(n); !slices.Contains(ids, 0) {
			if _, err := os.Lstat(there); err == nil {
				break
			}
		}
	}
	time.Sleep(after)
	if ids[victim] != 0 {
		syscall.Kill(ids[victim], sig)
		if sig == syscall.SIGSTOP { // where it had done its part, the others end and mpirun waits for it for ever
			awake := time.AfterFunc(time.Minute/2, func() { syscall.Kill(ids[victim], syscall.SIGCONT) })
			defer awake.Stop()
		}
	}
	j.wait(n)
	j.ended(t, n)
	return j
}

// wait waits for mpirun, and ends it where it stays when its ranks have gone: after one is killed, that of Open MPI 4.1 may
// wait for a lock of PMIx for ever.
func (j *job) wait(n int) error {
	over := make(chan struct{})
	defer close(over)
	go func() {
		for seen, gone := false, 0; gone < 20; gone++ {
			select {
			case <-over:
				return
			case <-time.After(time.Second):
			}
			there := slices.ContainsFunc(j.processesOf(n), func(pid int) bool { return pid != 0 })
			if seen = seen || there; there || !seen {
				gone = 0
			}
		}
		j.Process.Kill()
	}()
	return j.Wait()
}

// ended waits until no process is left: mpirun does not wait for those that it has told to end.
func (j *job) ended(t *testing.T, n int) {
	some := func(pid int) bool { return pid != 0 }
	left := j.processesOf(n)
	for begun := time.Now(); slices.ContainsFunc(left, some) && time.Since(begun) < transporttest.Limit; left = j.processesOf(n) {
		time.Sleep(20 * time.Millisecond)
	}
	for _, pid := range left {
		if pid != 0 {
			t.Errorf("process %d is left", pid)
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// TestJobsStruck kills or stops a process at random moments: the job fails in time, what has its name is whole, nothing goes
// on, and the next run has all and removes what is left.
func TestJobsStruck(t *testing.T) {
	t.Parallel()
	const n = 5
	pattern, dir := writeNumbered(t, n, 16<<20), t.TempDir()
	coded, back := filepath.Join(dir, "coded"), filepath.Join(dir, "back")
	mustRun(t, "encode", "-o", coded, "-k", fmt.Sprint(n), pattern)
	killed := regexp.MustCompile(`process rank 2 .* exited on signal 9`)
	for _, c := range []struct {
		verb    []string // which writes into the last argument
		sig     syscall.Signal
		times   int
		timeout string
		says    *regexp.Regexp
		want    map[string]string
	}{
		{[]string{"encode", pattern, "-o", filepath.Join(dir, "out")}, syscall.SIGKILL, 8, "1m", killed, filesOf(t, coded)},
		{[]string{"decode", coded, "-o", back}, syscall.SIGKILL, 4, "1m", killed, filesOf(t, filepath.Dir(pattern))},
		{[]string{"encode", pattern, "-o", filepath.Join(dir, "out")}, syscall.SIGSTOP, 3, "5s", regexp.MustCompile(`rank 2 does not answer|a process does not end|MPI did not bring all processes together within 5s: rank . waits`), filesOf(t, coded)},
	} {
		out := c.verb[len(c.verb)-1]
		args := func(timeout string) []string {
			return append([]string{c.verb[0], "--comm", "mpi", "--force", "--timeout", timeout, "--memory", "256KiB"}, c.verb[1:]...)
		}
		struck := 0
		for i := range c.times {
			os.RemoveAll(out)
			there, after := out, time.Duration(rand.IntN(200))*time.Millisecond
			if i%4 == 3 { // while they come together
				there = "/"
			}
			j := strike(t, n, 2, there, after, c.sig, args(c.timeout)...)
			if j.ProcessState.ExitCode() == exit.OK {
				continue // it had ended
			}
			struck++
			got := filesOf(t, out)
			whole := got["manifest.json"] != "" // the victim had written its part
			for name, text := range c.want {
				if there := got[name]; whole && there == "" || c.verb[0] == "decode" && there != "" && there != text {
					t.Errorf("%s %v: %s is not whole", c.verb[0], c.sig, name)
				}
			}
			if !c.says.MatchString(j.out.String()) && !(whole && c.sig == syscall.SIGSTOP) {
				t.Errorf("%s %v: nobody names rank 2: %s", c.verb[0], c.sig, &j.out)
			}
		}
		if struck < c.times/3 {
			t.Errorf("%s %v: only %d of %d runs were struck: the packets are too short", c.verb[0], c.sig, struck, c.times)
		}
		j := newJob(t, n, args("1m")...)
		if code, _ := j.do(t); code != exit.OK || len(listDir(t, out)) != len(c.want) {
			t.Errorf("%s, the next run: exit code %d: %s", c.verb[0], code, &j.out)
		}
	}
}

// TestGroupJobKilled kills one process of a job on a group, or all, at random moments.
func TestGroupJobKilled(t *testing.T) {
	t.Parallel()
	const n = 5
	testKilled(t, *groupKills, 200_000, func(t *testing.T, rng *rand.Rand, limit time.Duration, args []string) bool {
		begun := time.Now()
		j := newJob(t, n, append(slices.Clone(args), "--comm", "mpi", "--timeout", "1m")...)
		must(t, j.Start())
		if limit > 0 {
			moment := time.Duration(rng.Int64N(int64(limit)))
			for slices.Contains(j.processesOf(n), 0) && time.Since(begun) < limit {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(moment/2 - time.Since(begun)/4)
			ids := j.processesOf(n)
			victim := rng.IntN(n + 1) // n are all
			for rank, pid := range ids {
				if pid != 0 && (victim == n || victim == rank) {
					syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
		err := j.wait(n)
		if ended := new(exec.ExitError); err != nil && !errors.As(err, &ended) {
			t.Fatalf("%v: %s", err, &j.out)
		}
		j.ended(t, n)
		if code := j.ProcessState.ExitCode(); limit == 0 && code != exit.OK {
			t.Fatalf("%s: %d: %s", args, code, &j.out)
		}
		return err != nil
	})
}
