//go:build unix

package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/internal/cli/ranks"
	"volley/internal/cli/session"

	codedpkg "volley/coded"
	"volley/internal/disk"
	"volley/internal/exit"
)

// TestBusy finds a directory in which another run has the lock: to write there is refused, and
// so is to read it, with exit code 1 and who it is.
func TestBusy(t *testing.T) {
	t.Parallel()
	coded, in, _ := encoded(t, []int{100, 101, 102})
	other, _, _ := encoded(t, []int{1})
	back := filepath.Join(t.TempDir(), "back")
	dir, err := disk.OS.Open(coded)
	must(t, err)
	unlock, err := dir.Lock(codedpkg.LockName, false, disk.HolderOf("encode", "other"))
	must(t, err)
	before := strings.Join(listDir(t, coded), " ")
	for _, args := range [][]string{{"encode", "--force", "-o", coded, in}, {"decode", "--force", coded, "-o", back}, {"decode", "--force", other, "-o", coded}} {
		r := volleyRun(args...)
		if r.code != exit.Failed || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%v: exit %d: %s", args, r.code, r.stderr)
		}
		wants(t, r.stderr, coded+" is busy: volley encode has used it since ", fmt.Sprintf("(process %d on ", os.Getpid()), fmt.Sprintf(", or end it: kill %d on ", os.Getpid()))
	}
	equal(t, strings.Join(listDir(t, coded), " "), before)
	unlock(true)
	dir.Close()
	mustRun(t, "decode", "--force", coded, "-o", coded) // its own lock is not in its way
	if hidden, _ := filepath.Glob(filepath.Join(coded, ".volley-*")); len(hidden) > 0 {
		t.Errorf("left: %v", hidden)
	}
}

// TestCopies starts verbs as one of several tasks of a launcher that does not make them one run.
func TestCopies(t *testing.T) {
	t.Parallel()
	in, _ := writePackets(t, 10, 20)
	dirs := writeNodes(t, 2, 100)
	for _, c := range []struct{ variable, way string }{ // that the error tells, unless it is no error
		{"OMPI_COMM_WORLD_SIZE=4", "--comm mpi"}, {"PMI_SIZE=2", "--comm mpi"},
		{"SLURM_STEP_NUM_TASKS=3", "--secret FILE, or VOLLEY_SECRET"}, {"JOB_COMPLETION_INDEX=0", "--meet HOST:PORT and --size K"},
		{"OMPI_COMM_WORLD_SIZE=1", ""}, {"PMI_SIZE=", ""}, {"SLURM_NTASKS=4", ""}, {"WORLD_SIZE=8", ""},
	} {
		if c.way == "--comm mpi" && slices.Contains(ranks.Names(), "mpi") {
			continue // they are one run then
		}
		out := filepath.Join(t.TempDir(), "out")
		for _, args := range [][]string{{"encode", "-o", out, in}, append([]string{"protect", "--tolerate", "1"}, dirs...), append([]string{"verify"}, dirs...)} {
			s := session.New()
			s.Environ = append(s.Environ, c.variable)
			r := resultIn(t.Context(), s, args...)
			if (c.way != "") != (r.code == exit.Usage) {
				t.Errorf("%s: %v: %+v", c.variable, args, r)
			}
			if c.way == "" {
				continue
			}
			wants(t, r.stderr, c.variable, c.way, "--comm local")
			if _, err := os.Lstat(out); args[0] == "encode" && err == nil {
				t.Errorf("%s: %s is there", c.variable, out)
			}
			resultIn(t.Context(), s, append(args, "--comm", "local")...).is(t, exit.OK)
		}
	}
}

// A stalled command writes something at any time, and stops when nobody reads it: what happens meanwhile happens in the
// middle of its run.
type stalled struct {
	*exec.Cmd
	stderr *os.File
}

// stall starts an encode of packets into a directory, and waits until it has written some of the result.
func stall(t *testing.T, out string, nohup bool) *stalled {
	t.Helper()
	in := t.TempDir()
	for k := range 4 { // sparse: nothing to read from the disk
		path := filepath.Join(in, fmt.Sprint("packet.", k))
		write(t, path, "")
		must(t, os.Truncate(path, 16<<20))
	}
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	must(t, err)
	must(t, syscall.SetsockoptInt(ends[1], syscall.SOL_SOCKET, syscall.SO_SNDBUF, 1)) // the least that there is
	to := os.NewFile(uintptr(ends[1]), "stderr")
	x := &stalled{command(t.Context(), t, "encode", "-o", out, "--memory", "64KiB", "--progress", "1ns", in), os.NewFile(uintptr(ends[0]), "stderr")}
	x.Stderr = to
	t.Cleanup(func() { x.stderr.Close() })
	if nohup {
		c := exec.CommandContext(t.Context(), "nohup", x.Args...)
		c.Env, c.Stderr = x.Env, x.Stderr
		x.Cmd = c
	}
	must(t, x.Start())
	to.Close()
	for line := ""; !strings.Contains(line, "\n"); { // a byte at a time, or it could go on
		var b [1]byte
		if _, err := x.stderr.Read(b[:]); err != nil {
			t.Fatal(err)
		}
		line += string(b[:])
	}
	return x
}

// end lets it go on, and returns the exit code and what it has said.
func (x *stalled) end(t *testing.T) (code int, text string) {
	t.Helper()
	said, err := io.ReadAll(x.stderr)
	if err != nil {
		t.Error(err)
	}
	x.Wait()
	return x.ProcessState.ExitCode(), string(said)
}

// TestInterrupt stops a run in the middle, by each signal: it exits with 130
// and leaves nothing behind. As nohup has it, SIGHUP is ignored.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		signal  os.Signal
		ignored bool
	}{"INT": {os.Interrupt, false}, "TERM": {syscall.SIGTERM, false}, "HUP": {syscall.SIGHUP, false}, "HUP, under nohup": {syscall.SIGHUP, true}} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			run := stall(t, out, c.ignored)
			if there, _ := filepath.Glob(filepath.Join(out, ".volley-*-coded.0")); len(there) != 1 {
				t.Errorf("there is %v in the middle of the run", there)
			}
			must(t, run.Process.Signal(c.signal))
			code, text := run.end(t)
			_, err := os.Lstat(out)
			if c.ignored || c.signal == syscall.SIGHUP && signal.Ignored(c.signal) { // these tests run under nohup
				if code != exit.OK || err != nil {
					t.Errorf("exit %d: %.1000s; %v", code, text, err)
				}
			} else if code != exit.Interrupted || !strings.HasSuffix(text, "\nvolley: interrupted\n") || err == nil {
				t.Errorf("exit %d, want 130: %.1000s; %v", code, text, err)
			}
		})
	}
}
