//go:build mpi

package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
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
	"volley/coded/manifest"
	"volley/internal/exit"
	"volley/transport/transporttest"
)

// A job is a run under mpirun.
type job struct {
	*exec.Cmd
	out bytes.Buffer
}

// newJob returns a job of n processes, each with the arguments, and more such groups
// after ":".
func newJob(t *testing.T, n int, args ...string) *job {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(own) })
	j := &job{Cmd: exec.CommandContext(ctx, "mpirun", line...)}
	j.Env = append(os.Environ(), asCommand+"=1", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "TMPDIR="+own)
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

// writeNumbered writes n packets of about size bytes and returns the pattern of their
// names.
func writeNumbered(t *testing.T, n, size int) string {
	t.Helper()
	dir := t.TempDir()
	random := rand.NewChaCha8([32]byte{1})
	for k := range n {
		data := make([]byte, size+k)
		random.Read(data)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("ckpt.%d", k)), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "ckpt.{rank}")
}

// tree returns the digests of all files below a directory.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = fmt.Sprintf("%x", sha256.Sum256(data))
	}
	return files
}

// TestJobs compares jobs with runs in one process, to the byte.
func TestJobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ranks, processors int
		args              []string
	}{
		{1, 1, nil},
		{2, 2, nil},
		{5, 5, nil},
		{16, 16, nil},
		{17, 17, nil},
		{4, 16, []string{"--per-rank", "4"}},
		{3, 7, []string{"-k", "7"}},
		{6, 6, []string{"--sinks", "2", "--model", "paper", "-p", "2"}},
		{8, 6, []string{"--sinks", "2", "--separate"}},
		{5, 5, []string{"--field", "257", "--matrix", "random:3"}},
		{4, 4, []string{"--memory", "64KiB", "--field", "2^16"}},
	} {
		t.Run(fmt.Sprintf("%d processes %s", c.ranks, strings.Join(c.args, " ")), func(t *testing.T) {
			pattern := writeNumbered(t, c.processors, 40_000)
			there, here := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "out")
			if !slices.Contains(c.args, "paper") { // else one process plans for itself
				c.args = append(slices.Clone(c.args), "--network", "10gbit/20us")
			}
			args := slices.Concat([]string{"encode", "-o", there, "--comm", "mpi"}, c.args, []string{pattern})
			j := newJob(t, c.ranks, args...)
			if code, _ := j.do(t); code != 0 {
				t.Fatalf("exit code %d: %s", code, &j.out)
			}
			if n := strings.Count(j.out.String(), "verified by"); n != 1 {
				t.Errorf("%d reports: %s", n, &j.out)
			}
			alone := slices.DeleteFunc(slices.Clone(c.args), func(a string) bool { return a == "--per-rank" || a == "4" && c.args[0] == "--per-rank" })
			if !slices.Contains(alone, "-k") {
				alone = append(alone, "-k", fmt.Sprint(c.processors))
			}
			var out bytes.Buffer
			if code := run(t.Context(), slices.Concat([]string{"encode", "-o", here}, alone, []string{pattern}), &out, &out); code != 0 {
				t.Fatalf("exit code %d: %s", code, &out)
			}
			want, got := tree(t, here), tree(t, there)
			for name := range want {
				if got[name] != want[name] {
					t.Errorf("%s is another file", name)
				}
			}
			if len(got) != len(want) {
				t.Errorf("files %v, want %v", got, want)
			}
		})
	}
}

// TestJobModes checks that no process gives its coded file more than the input of any other one allows.
func TestJobModes(t *testing.T) {
	t.Parallel()
	const ranks = 4
	pattern := writeNumbered(t, ranks, 1000)
	for k, mode := range []os.FileMode{0o644, 0o644, 0o640, 0o604} {
		if err := os.Chmod(strings.ReplaceAll(pattern, "{rank}", fmt.Sprint(k)), mode); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	j := newJob(t, ranks, "encode", "--comm", "mpi", "-o", filepath.Join(dir, "coded"), pattern)
	if code, lines := j.do(t); code != 0 {
		t.Fatalf("exit %d: %v", code, lines)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(files) < ranks {
		t.Fatalf("%v, %v", files, err)
	}
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s is %v, %v", name, info.Mode(), err)
		}
	}
}

// TestOwnDirectories lets each process have its packet, and its result, in a directory of
// its own, and another by the name of all.
func TestOwnDirectories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for k := range 3 {
		if err := os.MkdirAll(filepath.Join(dir, fmt.Sprint("node", k)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("node", k), "packet"), bytes.Repeat([]byte{byte(k)}, 100+k), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{filepath.Join(dir, "node{rank}")},
		{filepath.Join(dir, "node0"), filepath.Join(dir, "node1"), filepath.Join(dir, "node2")},
	} {
		j := newJob(t, 3, append([]string{"encode", "-o", filepath.Join(t.TempDir(), "out"), "--comm", "mpi"}, args...)...)
		if code, _ := j.do(t); code != 0 {
			t.Errorf("%v: exit code %d: %s", args, code, &j.out)
		}
	}
}

// TestJobErrors checks that errors come out once, with the ranks where they are, and end
// all.
func TestJobErrors(t *testing.T) {
	t.Parallel()
	pattern := writeNumbered(t, 4, 1000)
	missing := writeNumbered(t, 4, 1000)
	if err := os.Remove(strings.ReplaceAll(missing, "{rank}", "3")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		n    int
		args []string
		code int
		want string
	}{
		{"a missing file", 5, []string{missing, "-k", "5"}, exit.Usage, `^volley: rank 3: stat .*ckpt\.3: no such file or directory$|^volley: rank 4: .*$`},
		{"one file missing", 4, []string{missing}, exit.Usage, `^volley: rank 3: stat .*ckpt\.3: no such file or directory$`},
		{"an unknown flag", 3, []string{"--memroy", "3"}, exit.Usage, `^volley: unknown flag: --memroy: see volley encode --help$`},
		{"too many processes", 4, []string{"-k", "3", pattern}, exit.Usage, `^volley: 4 processes for 3 processors: start no more of them$`},
		{"a wrong --per-rank", 2, []string{"-k", "3", "--per-rank", "2", pattern}, exit.Usage, `^volley: --per-rank 2: 2 processes for 3 processors$`},
		{"another matrix", 3, []string{pattern, ":", "encode", "--comm", "mpi", "-o", "{out}", "--matrix", "random:1", pattern}, exit.Usage,
			`^volley: rank 3 differs from rank 0 in matrix \(random:1, not .*\): give all the same$`},
		{"too little memory", 2, []string{"--memory", "1B", pattern}, exit.Usage, `^volley: 1 bytes of memory: `},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			args := []string{"encode", "--comm", "mpi", "-o", out}
			for _, arg := range c.args {
				args = append(args, strings.ReplaceAll(arg, "{out}", out))
			}
			j := newJob(t, c.n, args...)
			code, lines := j.do(t)
			if code != c.code || len(lines) == 0 {
				t.Fatalf("exit code %d, want %d: %s", code, c.code, &j.out)
			}
			for _, line := range lines {
				if !regexp.MustCompile(c.want).MatchString(line) {
					t.Errorf("%s; want %s", line, c.want)
				}
			}
			if c.name != "a missing file" && len(lines) > 1 {
				t.Errorf("it is said more than once: %s", strings.Join(lines, "\n"))
			}
			checkUnfinished(t, out)
		})
	}
}

// TestJobDiffers starts processes of one job that are not alike: all end at once, with exit code 2,
// one line says which rank differs, and nothing is written.
func TestJobDiffers(t *testing.T) {
	t.Parallel()
	other := filepath.Join(t.TempDir(), "other")
	build := exec.Command("go", "build", "-tags", "mpi", "-ldflags", "-X "+reflect.TypeFor[volley.Report]().PkgPath()+".Version=9.9.9", "-o", other, "../../cmd/volley")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	pattern := writeNumbered(t, 3, 1000)
	nodes := writeNodes(t, 3, 1000)
	for _, c := range []struct {
		name  string
		first []string // at ranks 0 and 1
		last  []string // at rank 2
		other bool     // that of another version
		want  string
	}{
		{"versions", []string{"encode", pattern}, []string{"encode", pattern}, true, `^volley: rank 2 \(\S+\) runs volley 9\.9\.9, rank 0 \(\S+\) runs volley [0-9.]+(-dev\S*)?: install the same version at all ranks$`},
		{"protect and encode", []string{"encode", pattern}, []string{"protect", "--tolerate", "1", nodes[2]}, false, `^volley: rank 2 runs protect, rank 0 runs encode: run the same at all ranks$`},
		{"verify and recover", []string{"verify", nodes[0]}, []string{"recover", nodes[2]}, false, `^volley: rank 2 runs recover, rank 0 runs verify: run the same at all ranks$`},
		{"a dry run", []string{"encode", pattern}, []string{"encode", "--dry-run", pattern}, false, `^volley: rank 2 runs encode --dry-run, rank 0 runs encode: run the same at all ranks$`},
		{"one node for all", []string{"protect", "--tolerate", "1", nodes[0]}, []string{"protect", "--tolerate", "1", nodes[0]}, false,
			`^volley: (ranks? [012, ]+: )?ranks [01] and [12] have one directory, .*: give each its own$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			complete := func(args []string) []string {
				args = append(slices.Clone(args), "--comm", "mpi")
				if args[0] == "encode" {
					args = append(args, "-o", out)
				}
				return args
			}
			j := newJob(t, 2, append(append(complete(c.first), ":"), complete(c.last)...)...)
			if c.other {
				j.Args[slices.Index(j.Args, ":")+3] = other
			}
			code, lines := j.do(t)
			if code != exit.Usage || len(lines) == 0 {
				t.Fatalf("exit code %d: %s", code, &j.out)
			}
			for _, line := range lines {
				if !regexp.MustCompile(c.want).MatchString(line) {
					t.Errorf("%s; want %s", line, c.want)
				}
			}
			if _, err := os.Lstat(out); err == nil {
				t.Error("the directory was made")
			}
			for _, dir := range nodes {
				if _, err := os.Lstat(filepath.Join(dir, ".volley")); err == nil {
					t.Errorf("%s was written", dir)
				}
			}
		})
	}
}

// TestJobMissing has rank 2 not come to MPI_Init: the others say that they wait.
func TestJobMissing(t *testing.T) {
	t.Parallel()
	j := newJob(t, 2, "verify", "--comm", "mpi", "--timeout", "2s", t.TempDir(), ":", "30")
	j.Args[len(j.Args)-2] = "sleep"
	if code, lines := j.do(t); code != exit.Failed || len(lines) < 2 ||
		!strings.Contains(j.out.String(), "within 2s: rank 0 waits on ") || !strings.Contains(j.out.String(), "within 2s: rank 1 waits on ") {
		t.Errorf("exit code %d: %s", code, &j.out)
	}
}

// TestTwoJobs starts two jobs with different packets into one directory at once: all processes
// of one write it, and the other says so.
func TestTwoJobs(t *testing.T) {
	t.Parallel()
	for range 3 {
		out := filepath.Join(t.TempDir(), "out")
		var jobs []*job
		var inputs []string
		for n := range 2 {
			pattern := writeNumbered(t, 4, 100_000+n)
			inputs = append(inputs, filepath.Dir(pattern))
			jobs = append(jobs, newJob(t, 4, "encode", "--comm", "mpi", "--force", "-o", out, pattern))
			if err := jobs[n].Start(); err != nil {
				t.Fatal(err)
			}
		}
		var succeeded []int
		for n, j := range jobs {
			j.Wait()
			switch code := j.ProcessState.ExitCode(); {
			case code == 0:
				succeeded = append(succeeded, n)
			case code != exit.Failed || !strings.Contains(j.out.String(), "is busy: volley encode has used it since"):
				t.Errorf("exit code %d: %s", code, &j.out)
			}
		}
		back := filepath.Join(t.TempDir(), "back")
		mustRun(t, "decode", out, "-o", back)
		if got := tree(t, back); !slices.ContainsFunc(succeeded, func(n int) bool { return maps.Equal(got, tree(t, inputs[n])) }) {
			t.Errorf("%v have succeeded, and none of their inputs comes back", succeeded)
		}
		if files := tree(t, out); len(files) != 6 {
			t.Errorf("the directory holds %v", files)
		}
	}
}

// TestJobAuto leaves --comm out.
func TestJobAuto(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	j := newJob(t, 3, "encode", "-o", out, writeNumbered(t, 3, 100), "-k", "3")
	if code, _ := j.do(t); code != exit.OK {
		t.Errorf("exit code %d: %s", code, &j.out)
	}
	if files := tree(t, out); len(files) != 5 {
		t.Errorf("the directory holds %v", files)
	}
}

// checkUnfinished fails where a result appeared.
func checkUnfinished(t *testing.T, out string) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(out, "manifest.json")); err == nil {
		t.Error("there is a manifest")
	}
}

// processesOf returns the ids of the job's processes, by rank; 0 where one is not there.
func (j *job) processesOf(n int) []int {
	ids := make([]int, n)
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range all {
		var pid, rank int
		fmt.Sscanf(name, "/proc/%d/", &pid)
		data, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(data, []byte("VOLLEY_TEST_JOB="+j.id())) {
			continue
		}
		for entry := range bytes.SplitSeq(data, []byte{0}) {
			if value, ok := bytes.CutPrefix(entry, []byte("OMPI_COMM_WORLD_RANK=")); ok {
				if _, err := fmt.Sscan(string(value), &rank); err == nil {
					ids[rank] = pid
				}
			}
		}
	}
	return ids
}

// id tells the processes of this job from others.
func (j *job) id() string {
	for _, entry := range j.Env {
		if value, ok := strings.CutPrefix(entry, "VOLLEY_TEST_JOB="); ok {
			return value
		}
	}
	id := fmt.Sprint(os.Getpid(), "-", rand.Uint64())
	j.Env = append(j.Env, "VOLLEY_TEST_JOB="+id)
	return id
}

// strike starts a job of n processes and, a while after all are there and so is a path,
// sends a signal to one. It returns once the job has ended.
func strike(t *testing.T, n, victim int, there string, after time.Duration, sig syscall.Signal, args ...string) *job {
	t.Helper()
	j := newJob(t, n, args...)
	j.id()
	if err := j.Start(); err != nil {
		t.Fatal(err)
	}
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

// TestKilled kills a process at random moments: the job fails in time, no result appears
// that is not whole, nothing goes on, and the next run removes what is left.
func TestKilled(t *testing.T) {
	t.Parallel()
	testStruck(t, syscall.SIGKILL, 12, "1m", regexp.MustCompile(`process rank 2 .* exited on signal 9`))
}

// TestStopped stops one: the others name it.
func TestStopped(t *testing.T) {
	t.Parallel()
	testStruck(t, syscall.SIGSTOP, 4, "5s", regexp.MustCompile(`rank 2 does not answer|a process does not end|MPI did not bring all processes together within 5s: rank . waits`))
}

func testStruck(t *testing.T, sig syscall.Signal, times int, timeout string, names *regexp.Regexp) {
	const n = 5
	pattern := writeNumbered(t, n, 16<<20)
	out := filepath.Join(t.TempDir(), "out")
	args := []string{"encode", "--comm", "mpi", "--force", "--timeout", timeout, "--memory", "256KiB", "-o", out, pattern}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	struck := 0
	for i := 0; i < times; i++ {
		os.RemoveAll(out)
		there, after := out, time.Duration(random.IntN(200))*time.Millisecond
		if i%4 == 3 { // while they come together
			there = "/"
		}
		j := strike(t, n, 2, there, after, sig, args...)
		code := j.ProcessState.ExitCode()
		if code == 0 {
			continue // it had ended
		}
		struck++
		whole := false
		if _, err := os.Lstat(filepath.Join(out, "manifest.json")); err == nil {
			whole = true // the victim had written its part
			for k := range n {
				if info, err := os.Stat(filepath.Join(out, fmt.Sprintf("coded.%d", k))); err != nil || info.Size() == 0 {
					t.Errorf("after %v: a manifest, and %v", after, err)
				}
			}
		}
		if !names.MatchString(j.out.String()) && !(whole && sig == syscall.SIGSTOP) {
			t.Errorf("after %v: nobody names rank 2: %s", after, &j.out)
		}
		if i == 0 { // what is left goes
			j := newJob(t, n, append(args, "--timeout", "1m")...)
			if code, _ := j.do(t); code != 0 {
				t.Fatalf("the next run: exit code %d: %s", code, &j.out)
			}
			if files := tree(t, out); len(files) != n+2 {
				t.Errorf("after the next run there are %v", files)
			}
		}
	}
	if struck < times/3 {
		t.Errorf("only %d of %d runs were struck: the packets are too short", struck, times)
	}
}

// TestGroupJob protects 8 nodes at 8 processes, loses three, and recovers them; and says
// once what is wrong.
func TestGroupJob(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 8, 300_000)
	pattern := filepath.Join(filepath.Dir(dirs[0]), "node.{rank}")
	do := func(want int, args ...string) string {
		t.Helper()
		j := newJob(t, 8, append(args, "--comm", "mpi", "--timeout", "1m", pattern)...)
		if code, _ := j.do(t); code != want {
			t.Fatalf("%s: exit code %d, want %d: %s", args, code, want, &j.out)
		}
		return j.out.String()
	}
	if out := do(0, "protect", "--tolerate", "3"); strings.Count(out, "protected, generation") != 1 {
		t.Error(out)
	}
	var before []string
	for _, dir := range dirs {
		before = append(before, dataOf(t, dir))
	}
	do(0, "verify")
	for _, n := range []int{1, 4, 6} {
		if err := os.RemoveAll(dirs[n]); err != nil {
			t.Fatal(err)
		}
	}
	if out := do(3, "verify"); strings.Count(out, "not whole: ") != 1 || !strings.Contains(out, "node.4 (lost)") {
		t.Error(out)
	}
	do(0, "recover")
	for n, dir := range dirs {
		if now := dataOf(t, dir); now != before[n] {
			t.Errorf("node %d was\n%s\nand is\n%s", n, before[n], now)
		}
	}
	mustRun(t, append([]string{"verify"}, dirs...)...) // the same in one process
	for _, n := range []int{0, 2, 3, 7} {
		if err := os.Rename(dirs[n], dirs[n]+".away"); err != nil {
			t.Fatal(err)
		}
	}
	if out := do(2, "recover"); strings.Count(out, "too much is lost")+strings.Count(out, "4 nodes are lost") != 1 {
		t.Error(out)
	}
}

// TestDecodeJobs loses inputs and coded files and decodes in as many processes, fewer, or one, which
// share directories or have their own.
func TestDecodeJobs(t *testing.T) {
	t.Parallel()
	const k = 5
	for _, c := range []struct {
		ranks int
		lost  []int // inputs and their coded files
		more  []int // inputs
		own   bool
		args  []string
	}{
		{k, nil, nil, false, nil},
		{k, []int{1, 3}, nil, false, nil},
		{k, []int{1, 3}, nil, true, nil},
		{k, nil, []int{0, 1, 2, 3, 4}, true, []string{"--field", "2^16", "--memory", "64KiB"}},
		{2, []int{0}, []int{4}, false, []string{"--field", "257", "--matrix", "random:3"}},
		{3, []int{2}, []int{3}, true, nil},
		{1, []int{4}, nil, false, nil},
	} {
		t.Run(fmt.Sprintf("%d processes, lost %v and inputs %v, own %v", c.ranks, c.lost, c.more, c.own), func(t *testing.T) {
			pattern := writeNumbered(t, k, 400_000)
			want := tree(t, filepath.Dir(pattern))
			dir := t.TempDir()
			out, back := filepath.Join(dir, "coded"), filepath.Join(dir, "back")
			mustRun(t, slices.Concat([]string{"encode", "-o", out, "-k", fmt.Sprint(k)}, c.args, []string{pattern})...)
			for _, n := range append(slices.Clone(c.lost), c.more...) {
				remove(t, strings.ReplaceAll(pattern, "{rank}", fmt.Sprint(n)))
			}
			for _, n := range c.lost {
				remove(t, filepath.Join(out, fmt.Sprint("coded.", n)))
			}
			if c.own { // the manifest is at the last rank only, and coded files are anywhere
				for rank := range c.ranks {
					if err := os.Mkdir(fmt.Sprint(out, ".", rank), 0o777); err != nil {
						t.Fatal(err)
					}
				}
				files, _ := filepath.Glob(filepath.Join(out, "*"))
				for i, name := range files {
					rank := i % c.ranks
					if strings.Contains(name, "manifest") {
						rank = c.ranks - 1
					}
					if err := os.Rename(name, filepath.Join(fmt.Sprint(out, ".", rank), filepath.Base(name))); err != nil {
						t.Fatal(err)
					}
				}
				out += ".{rank}"
			}
			args := []string{"decode", "--comm", "mpi", "-o", back}
			if i := slices.Index(c.args, "--memory"); i >= 0 {
				args = append(args, c.args[i:i+2]...)
			}
			j := newJob(t, c.ranks, append(args, out, pattern)...)
			if code, _ := j.do(t); code != 0 {
				t.Fatalf("exit code %d: %s", code, &j.out)
			}
			if n := strings.Count(j.out.String(), "verified by"); n != 1 {
				t.Errorf("%d reports: %s", n, &j.out)
			}
			if got := tree(t, back); !maps.Equal(got, want) {
				t.Errorf("files %v, want %v", got, want)
			}
		})
	}
}

// TestDecodeJobErrors checks that errors come out once, end all, and leave no file with a name.
func TestDecodeJobErrors(t *testing.T) {
	t.Parallel()
	const k = 4
	pattern := writeNumbered(t, k, 3000)
	dir := t.TempDir()
	coded, other := filepath.Join(dir, "coded"), filepath.Join(dir, "other")
	mustRun(t, "encode", "-o", coded, "-k", fmt.Sprint(k), pattern)
	mustRun(t, "encode", "-o", other, "-k", fmt.Sprint(k), "--matrix", "random:1", pattern)
	lost := func(names ...string) string { // a copy of coded without these
		to, err := os.MkdirTemp(dir, "lost")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(to, "x"), os.DirFS(coded)); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			remove(t, filepath.Join(to, "x", name))
		}
		return filepath.Join(to, "x")
	}
	wrong := lost()
	editManifest(t, wrong, func(m *manifest.Manifest) { m.Inputs[2].SHA256 = strings.Repeat("0", 64) })
	two := filepath.Join(dir, "two.{rank}")
	for rank, name := range []string{coded, other} {
		if err := os.Symlink(name, strings.ReplaceAll(two, "{rank}", fmt.Sprint(rank))); err != nil {
			t.Fatal(err)
		}
	}
	full := filepath.Join(dir, "full")
	if err := os.Mkdir(full, 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(full, "ckpt.3"), "x")
	for _, c := range []struct {
		name string
		n    int
		args []string
		code int
		want string
	}{
		{"no manifest", 3, []string{lost("manifest.json", "manifest.copy.json"), pattern}, exit.Usage, `no rank has a manifest: .*manifest\.json: no such file or directory: want a directory that volley encode -o has made$`},
		{"no directory", 3, []string{filepath.Join(dir, "none"), pattern}, exit.Usage, `no rank has a manifest: .*: want a directory that`},
		{"two manifests", 2, []string{two, pattern}, exit.Usage, `ranks 0 and 1 have manifests of different runs`},
		{"too few", 4, []string{lost("coded.1"), "none"}, exit.Usage, `1 more input or coded file is needed\. Unknown inputs: .*Coded files left out: coded\.1 \(missing\)`},
		{"no survivor", 2, []string{coded, coded}, exit.Usage, `cannot use any survivor`},
		{"too many processes", 5, []string{coded, pattern}, exit.Usage, `5 processes for 4 processors: start no more of them`},
		{"a wrong --per-rank", 2, []string{"--per-rank", "1", coded, pattern}, exit.Usage, `--per-rank 1: 2 processes for 4 processors`},
		{"there already", 3, []string{"-o", full, coded, pattern}, exit.Usage, `full/ckpt\.3 is there already; choose another directory, or --force to replace it`},
		{"a wrong manifest", 3, []string{wrong}, exit.Wrong, `ckpt\.2: what is decoded is not what was encoded`},
		{"nothing named", 2, nil, exit.Usage, `no directory of coded files`},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			j := newJob(t, c.n, append([]string{"decode", "--comm", "mpi", "-o", out}, c.args...)...)
			code, lines := j.do(t)
			said := 0
			for _, line := range lines {
				if regexp.MustCompile(c.want).MatchString(line) {
					said++
				}
			}
			if code != c.code || said != 1 {
				t.Fatalf("exit code %d, want %d, and once %s: %s", code, c.code, c.want, &j.out)
			}
			if files, _ := os.ReadDir(out); len(files) > 0 {
				t.Errorf("files are left: %v", files)
			}
		})
	}
	if data := readFile(t, full, "ckpt.3"); string(data) != "x" {
		t.Error("a file that was there is another one")
	}
}

// TestDecodeJobKilled kills a process at random moments: what has the name of an input is that, and the next run has all.
func TestDecodeJobKilled(t *testing.T) {
	t.Parallel()
	const n = 4
	pattern := writeNumbered(t, n, 8<<20)
	want := tree(t, filepath.Dir(pattern))
	dir := t.TempDir()
	coded, back := filepath.Join(dir, "coded"), filepath.Join(dir, "back")
	mustRun(t, "encode", "-o", coded, "-k", fmt.Sprint(n), pattern)
	for _, k := range []int{1, 2} {
		remove(t, strings.ReplaceAll(pattern, "{rank}", fmt.Sprint(k)))
	}
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	args := []string{"decode", "--comm", "mpi", "--force", "--timeout", "1m", "--memory", "256KiB", "-o", back, coded, pattern}
	for range 8 {
		os.RemoveAll(back)
		after := time.Duration(random.IntN(200)) * time.Millisecond
		j := strike(t, n, 2, back, after, syscall.SIGKILL, args...)
		if j.ProcessState.ExitCode() == 0 {
			continue // it had ended
		}
		if _, err := os.Lstat(back); err != nil {
			continue
		}
		for name, text := range tree(t, back) {
			if !strings.HasPrefix(name, ".volley-") && text != want[name] {
				t.Errorf("after %v: %s is not the input", after, name)
			}
		}
	}
	j := newJob(t, n, args...)
	if code, _ := j.do(t); code != 0 {
		t.Fatalf("exit code %d: %s", code, &j.out)
	}
	if got := tree(t, back); !maps.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
}

// TestSetsJob has MPI processes with a directory each go apart into sets. One that fails holds up no other.
func TestSetsJob(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 6, 30_000)
	before := contents(t, dirs)
	do := func(want int, args ...string) string {
		t.Helper()
		var line []string
		for i, dir := range dirs {
			if i > 0 {
				line = append(line, ":")
			}
			line = append(append(line, args...), "--comm", "mpi", "--timeout", "1m", "--group-size", "3", dir)
		}
		j := newJob(t, 1, line...)
		if code, _ := j.do(t); code != want {
			t.Fatalf("%s: exit code %d, want %d: %s", args, code, want, &j.out)
		}
		return j.out.String()
	}
	at := filepath.Join(t.TempDir(), "volley.prom")
	if out := do(exit.OK, "protect", "--tolerate", "1", "--metrics", at); strings.Count(out, "protected, generation 1") != 2 || strings.Count(out, "set 1 of 2: ") != 1 {
		t.Fatal(out)
	}
	if got := metricsOf(t, at, "protect"); got["nodes"] != 6 {
		t.Errorf("metrics of two sets: %v", got)
	}
	removeAll(t, dirs[1], dirs[4]) // one of each: hosts are dealt out, here one
	do(exit.OK, "recover")
	slices.Reverse(dirs)
	do(exit.OK, "verify")
	if got := contents(t, dirs); !slices.Equal(got, before) {
		t.Errorf("%q, want %q", got, before)
	}
	j := newJob(t, 6, "verify", "--comm", "mpi", "--timeout", "1m", "--group", writeGroup(t, dirs, nil, "group-size: 3"))
	if code, _ := j.do(t); code != exit.OK || strings.Count(j.out.String(), "whole: 3 nodes") != 2 {
		t.Errorf("by a group file: exit code %d: %s", code, &j.out)
	}
	removeAll(t, dirs[0], dirs[1], dirs[3])
	if out := do(exit.Usage, "recover"); strings.Count(out, "volley: set ") != 1 || strings.Count(out, "recovered ") != 1 {
		t.Error(out)
	}
	dirs = append(dirs, dirs[5])
	if out := do(exit.Usage, "verify"); strings.Count(out, "volley: ") != 1 || !strings.Contains(out, "both say that they are node") {
		t.Error(out)
	}
}

// TestResizeJob adds a process with its node to those of a group, and then removes another.
func TestResizeJob(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 4, 30_000)
	before := contents(t, dirs)
	pattern := strings.TrimSuffix(dirs[0], "0") + "{rank}"
	do := func(n int, want string, args ...string) {
		t.Helper()
		j := newJob(t, n, args...)
		if code, _ := j.do(t); code != 0 || !strings.Contains(j.out.String(), want) {
			t.Fatalf("%v: exit code %d: %s", args, code, &j.out)
		}
	}
	do(3, "protected, generation 1", "protect", "--comm", "mpi", "--tolerate", "1", pattern)
	do(3, "protected, generation 2", "resize", "--comm", "mpi", pattern, ":", "resize", "--comm", "mpi", "--add", pattern)
	do(4, "whole: 4 nodes", "verify", "--comm", "mpi", pattern)
	do(4, "protected, generation 3", "resize", "--comm", "mpi", "--remove", "0", pattern)
	removeAll(t, dirs[2])
	mustRun(t, append([]string{"recover"}, dirs[1:]...)...)
	mustRun(t, append([]string{"verify"}, dirs[1:]...)...)
	if got := contents(t, dirs); !slices.Equal(got, before) {
		t.Errorf("%q, want %q", got, before)
	}
}
