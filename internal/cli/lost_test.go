//go:build unix

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"volley/internal/cli/ranks"
	"volley/internal/cli/session"

	codedpkg "volley/coded"
	"volley/coded/manifest"
	"volley/internal/disk"
	"volley/internal/exit"
)

// killTime is how long the tests with kills at random moments go on: longer where the
// environment says so.
func killTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("VOLLEY_TEST_KILLS")
	if text == "" {
		return 300 * time.Millisecond
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// filled writes packets of that many bytes, all of one value, and returns the directory.
func filled(t *testing.T, packets, size int, value byte) string {
	t.Helper()
	in := t.TempDir()
	for k := range packets {
		write(t, filepath.Join(in, fmt.Sprint("packet.", k)), string(bytes.Repeat([]byte{value + byte(k)}, size+k)))
	}
	return in
}

// same reports whether a directory has the packets of another, and nothing else.
func same(t *testing.T, a, b string) bool {
	t.Helper()
	names := listDir(t, a)
	if strings.Join(names, " ") != strings.Join(listDir(t, b), " ") {
		return false
	}
	for _, name := range names {
		if !bytes.Equal(readFile(t, a, name), readFile(t, b, name)) {
			return false
		}
	}
	return true
}

// TestBusy finds a directory in which another run has the lock: to write there is refused, and
// so is to read it, with exit code 1 and who it is.
func TestBusy(t *testing.T) {
	t.Parallel()
	in := filled(t, 3, 100, 1)
	coded, back := filepath.Join(t.TempDir(), "coded"), filepath.Join(t.TempDir(), "back")
	mustRun(t, "encode", "-o", coded, in)
	mustRun(t, "decode", coded, "-o", back)
	for _, path := range []string{coded, back} {
		dir, err := disk.OS.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		unlock, err := dir.Lock(codedpkg.LockName, false, disk.HolderOf("encode", "other"))
		if err != nil {
			t.Fatal(err)
		}
		before := strings.Join(listDir(t, path), " ")
		for _, args := range [][]string{{"encode", "--force", "-o", coded, in}, {"decode", "--force", coded, "-o", back}} {
			if path == back && args[0] == "encode" {
				continue
			}
			r := volleyRun(args...)
			if r.code != exit.Failed || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("%v: exit %d: %s", args, r.code, r.stderr)
			}
			wants(t, r.stderr, path+" is busy: volley encode has used it since ", fmt.Sprintf("(process %d on ", os.Getpid()))
			if !strings.Contains(r.stderr, fmt.Sprintf(", or end it: kill %d on ", os.Getpid())) {
				t.Errorf("%q", r.stderr)
			}
		}
		if now := strings.Join(listDir(t, path), " "); now != before {
			t.Errorf("then there are %s, before %s", now, before)
		}
		unlock(true)
		dir.Close()
	}
	mustRun(t, "decode", "--force", coded, "-o", coded) // its own lock is not in its way
	if hidden, _ := filepath.Glob(filepath.Join(coded, ".volley-*")); len(hidden) > 0 {
		t.Errorf("left: %v", hidden)
	}
}

// killAtRandom starts a command over and over and kills it at random moments. It calls check
// after each.
func killAtRandom(t *testing.T, check func(), command func(i int) *exec.Cmd) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	begun := time.Now()
	if err := command(0).Run(); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begun)
	check()
	kills, times := 0, 0
	for end := time.Now().Add(killTime(t)); time.Now().Before(end) && !t.Failed(); times++ {
		cmd := command(times + 1)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Most kills come late, when names change.
		time.Sleep(took - time.Duration(float64(took)*random.Float64()*random.Float64()))
		cmd.Process.Kill()
		if cmd.Wait() != nil {
			kills++
		}
		check()
	}
	t.Logf("seed %d: %d of %d were killed", seed, kills, times)
}

// TestEncodeKilled kills encode --force: decode gives the old inputs or the new ones.
func TestEncodeKilled(t *testing.T) {
	t.Parallel()
	in := []string{filled(t, 5, 20_000, 1), filled(t, 5, 20_000, 101)}
	out := filepath.Join(t.TempDir(), "out")
	mustRun(t, "encode", "-o", out, in[0])
	check := func() {
		t.Helper()
		back := filepath.Join(t.TempDir(), "back")
		r := volleyRun("decode", out, "-o", back)
		if r.code != exit.OK || r.stderr != "" || !same(t, back, in[0]) && !same(t, back, in[1]) {
			t.Errorf("exit %d: %s; the directory holds %v", r.code, r.stderr, listDir(t, out))
		}
	}
	killAtRandom(t, check, func(i int) *exec.Cmd { return command(t.Context(), t, "encode", "--force", "-o", out, in[i%2]) })
	mustRun(t, "encode", "--force", "-o", out, in[0])
	if names := listDir(t, out); len(names) != 7 {
		t.Errorf("the next run leaves %v", names)
	}
}

// TestDecodeKilled kills decode --force: each file is the old input or the new one, and the next run has all.
func TestDecodeKilled(t *testing.T) {
	t.Parallel()
	in := []string{filled(t, 5, 20_000, 1), filled(t, 5, 20_000, 101)}
	var coded []string
	for n := range in {
		coded = append(coded, filepath.Join(t.TempDir(), "coded"))
		mustRun(t, "encode", "-o", coded[n], in[n])
	}
	back := filepath.Join(t.TempDir(), "back")
	mustRun(t, "decode", coded[0], "-o", back)
	check := func() {
		t.Helper()
		for _, name := range listDir(t, in[0]) {
			if text := readFile(t, back, name); !bytes.Equal(text, readFile(t, in[0], name)) && !bytes.Equal(text, readFile(t, in[1], name)) {
				t.Errorf("%s is neither the old input nor the new one", name)
			}
		}
	}
	killAtRandom(t, check, func(i int) *exec.Cmd { return command(t.Context(), t, "decode", "--force", coded[i%2], "-o", back) })
	mustRun(t, "decode", "--force", coded[1], "-o", back)
	if !same(t, back, in[1]) {
		t.Errorf("the next run leaves %v", listDir(t, back))
	}
}

// TestManifestDamaged decodes by the copy of the manifest, and says so.
func TestManifestDamaged(t *testing.T) {
	t.Parallel()
	coded, _, packets := encoded(t, []int{50, 60, 70})
	for _, damage := range []func(path string){
		func(path string) { write(t, path, strings.Replace(string(readFile(t, path)), "cauchy", "cauchx", 1)) },
		func(path string) { write(t, path, "") },
		func(path string) { remove(t, path) },
	} {
		damage(filepath.Join(coded, manifest.FileName))
		back := filepath.Join(t.TempDir(), "back")
		r := volleyRun("decode", coded, "-o", back)
		if r.code != exit.OK {
			t.Fatalf("exit %d: %s", r.code, r.stderr)
		}
		checkDecoded(t, back, packets)
		wants(t, r.stderr, manifest.FileName, "its copy manifest.copy.json is used")
	}
	in, _ := writePackets(t, 1)
	wants(t, volleyRun("encode", "-o", coded, in).stderr, "holds a manifest.json already")
}

// TestOddInputs names inputs that hide their length, or that would wait: they are refused.
func TestOddInputs(t *testing.T) {
	t.Parallel()
	in, _ := writePackets(t, 10, 20)
	out := filepath.Join(t.TempDir(), "out")
	if _, err := os.Stat("/proc/version"); err == nil {
		r := volleyRun("encode", "-o", out, "/proc/version", in)
		if r.code != exit.Usage {
			t.Errorf("exit %d: %s", r.code, r.stderr)
		}
		wants(t, r.stderr, "packet /proc/version: its length is said to be 0 and it has data")
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	if f, _, err := disk.OpenInput(fifo); err == nil {
		f.Close()
		t.Error("a pipe was opened as a file")
	}
	coded, _, _ := encoded(t, []int{5, 6})
	for _, name := range []string{"coded.0", manifest.FileName} {
		remove(t, coded, name)
		if err := syscall.Mkfifo(filepath.Join(coded, name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	r := volleyRun("decode", coded, "-o", out)
	if r.code != exit.Usage {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	wants(t, r.stderr, "not a regular file", "1 more input")
}

// TestCopies starts verbs as one of several tasks of a launcher that does not make them one run.
func TestCopies(t *testing.T) {
	t.Parallel()
	in, _ := writePackets(t, 10, 20)
	coded, _, _ := encoded(t, []int{5, 6})
	for _, c := range []struct {
		variable string
		refused  bool
		way      string // that the error tells
	}{
		{"OMPI_COMM_WORLD_SIZE=4", true, "--comm mpi"}, {"PMI_SIZE=2", true, "--comm mpi"},
		{"SLURM_STEP_NUM_TASKS=3", true, "--secret FILE, or VOLLEY_SECRET"}, {"JOB_COMPLETION_INDEX=0", true, "--meet HOST:PORT and --size K"},
		{"OMPI_COMM_WORLD_SIZE=1", false, ""}, {"PMI_SIZE=", false, ""}, {"SLURM_NTASKS=4", false, ""}, {"WORLD_SIZE=8", false, ""},
	} {
		if c.way == "--comm mpi" && slices.Contains(ranks.Names(), "mpi") {
			continue // they are one run then
		}
		t.Run(c.variable, func(t *testing.T) {
			volley := func(args ...string) result {
				s := session.New()
				s.Environ = append(s.Environ, c.variable)
				return resultIn(t.Context(), s, args...)
			}
			for _, args := range [][]string{{"encode", in}, {"decode", coded}} {
				out := filepath.Join(t.TempDir(), "out")
				args = append(args, "-o", out)
				r := volley(args...)
				_, err := os.Lstat(out)
				if c.refused != (r.code == exit.Usage) || c.refused == (err == nil) {
					t.Errorf("%v: exit %d: %s", args, r.code, r.stderr)
				}
				if c.refused {
					wants(t, r.stderr, c.variable, c.way, "--comm local")
				}
				if r := volley(append(args, "--comm", "local", "--force")...); r.code != exit.OK {
					t.Errorf("%v, on its own: %+v", args, r)
				}
			}
		})
	}
}

// A stalled command writes something at any time, and stops when nobody reads it: what happens meanwhile happens in the
// middle of its run.
type stalled struct {
	*exec.Cmd
	stderr *os.File
}

// stall starts an encode of packets into a directory, and waits until it has written some of the result.
func stall(t *testing.T, out string, edit func(c *exec.Cmd)) *stalled {
	t.Helper()
	in := t.TempDir()
	for k := range 4 { // sparse: nothing to read from the disk
		path := filepath.Join(in, fmt.Sprint("packet.", k))
		write(t, path, "")
		if err := os.Truncate(path, 16<<20); err != nil {
			t.Fatal(err)
		}
	}
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.SetsockoptInt(ends[1], syscall.SOL_SOCKET, syscall.SO_SNDBUF, 1); err != nil { // the least that there is
		t.Fatal(err)
	}
	to := os.NewFile(uintptr(ends[1]), "stderr")
	x := &stalled{command(t.Context(), t, "encode", "-o", out, "--memory", "64KiB", "--progress", "1ns", in), os.NewFile(uintptr(ends[0]), "stderr")}
	x.Stderr = to
	t.Cleanup(func() { x.stderr.Close() })
	if edit != nil {
		edit(x.Cmd)
	}
	if err := x.Start(); err != nil {
		t.Fatal(err)
	}
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

// TestHangUp ends a run by SIGHUP as by others, and not where that is ignored.
func TestHangUp(t *testing.T) {
	t.Parallel()
	for _, ignored := range []bool{false, true} {
		if !ignored && signal.Ignored(syscall.SIGHUP) {
			t.Log("these tests run under nohup, as their children do: only that is tested")
			continue
		}
		out := filepath.Join(t.TempDir(), "out")
		run := stall(t, out, func(c *exec.Cmd) {
			if ignored {
				c.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`}, c.Args...)
				c.Path = "/bin/sh"
			}
		})
		run.Process.Signal(syscall.SIGHUP)
		code, text := run.end(t)
		_, err := os.Lstat(out)
		if want := map[bool]int{false: exit.Interrupted, true: exit.OK}[ignored]; code != want || ignored != (err == nil) {
			t.Errorf("ignored %v: exit %d, want %d: %.1000s; %v", ignored, code, want, text, err)
		}
	}
}

// TestInterrupt stops a run in the middle, by either signal: it exits with 130
// and leaves nothing behind.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		out := filepath.Join(t.TempDir(), "out")
		run := stall(t, out, nil)
		if there, _ := filepath.Glob(filepath.Join(out, ".volley-*-coded.0")); len(there) != 1 {
			t.Errorf("%v: there is %v in the middle of the run", signal, there)
		}
		if err := run.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if code, text := run.end(t); code != exit.Interrupted || !strings.HasSuffix(text, "\nvolley: interrupted\n") {
			t.Errorf("%v: exit %d, want 130: %.1000s", signal, code, text)
		}
		if _, err := os.Lstat(out); err == nil {
			t.Errorf("%v: the directory is there, with %v in it", signal, listDir(t, out))
		}
	}
}

// TestLatestUnclear damages all that says that the newest snapshot is protected: no older one takes its place, unless
// the command line names it.
func TestLatestUnclear(t *testing.T) {
	t.Parallel()
	var roots []string
	for range 2 {
		roots = append(roots, t.TempDir())
	}
	for _, step := range []string{"step-1", "step-2"} {
		for _, root := range roots {
			if err := errors.Join(os.Mkdir(filepath.Join(root, step), 0o777), os.WriteFile(filepath.Join(root, step, "data"), []byte(step), 0o666)); err != nil {
				t.Fatal(err)
			}
		}
		mustRun(t, append([]string{"protect", "--step", "latest", "--tolerate", "1"}, roots...)...)
	}
	for _, root := range roots {
		if err := os.Truncate(filepath.Join(root, "step-2/.volley/generation.1/manifest.json"), 20); err != nil {
			t.Fatal(err)
		}
	}
	r := volleyRun(append([]string{"recover", "--step", "latest"}, roots...)...)
	if r.code != exit.Usage {
		t.Errorf("%+v", r)
	}
	wants(t, r.stderr, "step-2: ", "generation.1/manifest.json", "no older snapshot takes its place", "--step N")
	wants(t, mustRun(t, append([]string{"snapshots"}, roots...)...), "unclear: ", "in force")
	mustRun(t, append([]string{"recover", "--step", "1"}, roots...)...)
	for _, root := range roots {
		if _, err := os.Lstat(filepath.Join(root, "step-2", "data")); err != nil {
			t.Error(err)
		}
	}
}
