package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/engine"
	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/transport/transporttest"
)

// A rankRun is several ranks that meet on loopback.
type rankRun struct {
	t         *testing.T
	commands  []*exec.Cmd
	processes bool // of their own; else a rank is a session that finds what its command has
	contexts  []context.Context
	stop      []context.CancelCauseFunc
	codes     []chan int
}

// newRanks returns ranks with the arguments, in which {RANK} is replaced; edit may change those of a rank.
func newRanks(t *testing.T, n int, edit func(rank int, c *exec.Cmd), args ...string) *rankRun {
	t.Helper()
	meet := transporttest.Free(t)
	secret, _ := engine.NewSecret().MarshalText()
	all, cancel := context.WithTimeout(t.Context(), 3*transporttest.Limit)
	t.Cleanup(cancel)
	run := &rankRun{t: t}
	for r := range n {
		// Ports of the kernel's choice, as other tests may run.
		line := append([]string{args[0], "--rank", fmt.Sprint(r), "--size", fmt.Sprint(n), "--meet", meet, "--port", "", "--timeout", "1m"}, args[1:]...)
		for i := range line {
			line[i] = strings.ReplaceAll(line[i], "{RANK}", fmt.Sprint(r))
		}
		ctx, stop := context.WithCancelCause(all)
		c, out := command(ctx, t, line...), new(shared)
		c.Env = append(c.Env, engine.SecretVariable+"="+string(secret))
		c.Stdout, c.Stderr, c.WaitDelay = out, out, transporttest.Limit
		c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
		if edit != nil {
			edit(r, c)
		}
		run.commands, run.codes = append(run.commands, c), append(run.codes, make(chan int, 1))
		run.contexts, run.stop = append(run.contexts, ctx), append(run.stop, stop)
	}
	return run
}

// newRankProcesses returns ranks as processes of their own.
func newRankProcesses(t *testing.T, n int, edit func(rank int, c *exec.Cmd), args ...string) *rankRun {
	t.Helper()
	run := newRanks(t, n, edit, args...)
	run.processes = true
	return run
}

// do runs the ranks and returns their exit codes and all that they print.
func (x *rankRun) do() (codes []int, text string) {
	x.t.Helper()
	x.start()
	return x.wait()
}

func (x *rankRun) start() {
	x.t.Helper()
	for r, c := range x.commands {
		if !x.processes {
			s, args := x.session(r)
			go func() { x.codes[r] <- execute(x.contexts[r], s, args, c.Stdout, c.Stderr) }()
			continue
		}
		if err := c.Start(); err != nil {
			x.t.Fatal(err)
		}
		go func() {
			c.Wait()
			x.codes[r] <- c.ProcessState.ExitCode()
		}()
	}
}

// session returns the session of a rank, and its arguments: the secret, which a process removes from its environment, is
// in a file.
func (x *rankRun) session(rank int) (*session.Invocation, []string) {
	x.t.Helper()
	c := x.commands[rank]
	s, file := session.New(), filepath.Join(x.t.TempDir(), "secret")
	s.Environ = c.Env
	if err := os.WriteFile(file, []byte(s.Getenv(engine.SecretVariable)), 0o600); err != nil {
		x.t.Fatal(err)
	}
	return s, slices.Concat(c.Args[1:2], []string{"--secret", file}, c.Args[2:])
}

// endAfter interrupts all ranks once one of them has ended.
func (x *rankRun) endAfter(rank int) {
	code := <-x.codes[rank]
	for _, stop := range x.stop {
		stop(exit.ErrInterrupted)
	}
	x.codes[rank] <- code
}

func (x *rankRun) wait() (codes []int, text string) {
	for r, c := range x.commands {
		codes = append(codes, <-x.codes[r])
		text += c.Stdout.(*shared).String()
	}
	return codes, text
}

func allAre(codes []int, code int) bool {
	return !slices.ContainsFunc(codes, func(c int) bool { return c != code })
}

// TestRanksEncode compares ranks with a run in one process, to the byte.
func TestRanksEncode(t *testing.T) {
	t.Parallel()
	in, _ := writePackets(t, 70_000, 70_001, 69_000, 5, 70_002)
	alone, together := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "out")
	mustRun(t, "encode", in, "-o", alone, "--network", "10gbit/20us")
	codes, text := newRanks(t, 5, nil, "encode", in, "-o", together, "--network", "10gbit/20us").do()
	if !allAre(codes, exit.OK) || strings.Count(text, "verified") != 1 {
		t.Fatalf("exit codes %v: %s", codes, text)
	}
	if one, other := filesOf(t, alone), filesOf(t, together); !reflect.DeepEqual(one, other) {
		t.Errorf("alone %v, together %v", one, other)
	}
}

// TestRanksProtect loses what may be lost and brings it back.
func TestRanksProtect(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 4, 100_000)
	pattern := strings.TrimSuffix(dirs[0], "0") + "{RANK}"
	want := [][]string{}
	for _, dir := range dirs {
		want = append(want, []string{dir, fmt.Sprint(filesOf(t, dir))})
	}
	for _, step := range [][]string{{"protect", "--tolerate", "2", pattern}, {"recover", pattern}, {"verify", pattern}} {
		if step[0] == "recover" {
			for _, r := range []int{1, 3} {
				if err := os.RemoveAll(dirs[r]); err != nil {
					t.Fatal(err)
				}
			}
		}
		if codes, text := newRanks(t, 4, nil, step...).do(); !allAre(codes, exit.OK) {
			t.Fatalf("%v: exit codes %v: %s", step, codes, text)
		}
	}
	for i, dir := range dirs {
		if got := fmt.Sprint(filesOf(t, dir)); got != want[i][1] {
			t.Errorf("%s: got %s, want %s", dir, got, want[i][1])
		}
	}
}

// TestRanksOrder starts the processes of a group in other orders, one of them with an empty directory.
func TestRanksOrder(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 4, 100_000)
	want := fmt.Sprint(filesOf(t, dirs[1]))
	for _, step := range []struct {
		order []int
		args  []string
	}{
		{[]int{0, 1, 2, 3}, []string{"protect", "--tolerate", "1"}},
		{[]int{2, 0, 3, 1}, []string{"verify"}},
		{[]int{1, 3, 2, 0}, []string{"recover"}},
		{[]int{3, 2, 1, 0}, []string{"protect", "--tolerate", "1"}},
	} {
		if step.args[0] == "recover" {
			if err := os.RemoveAll(dirs[1]); err != nil {
				t.Fatal(err)
			}
		}
		place := func(r int, c *exec.Cmd) { c.Args = append(c.Args, dirs[step.order[r]]) }
		if codes, text := newRanks(t, 4, place, step.args...).do(); !allAre(codes, exit.OK) {
			t.Fatalf("%v in the order %v: exit codes %v: %s", step.args, step.order, codes, text)
		}
	}
	if got := fmt.Sprint(filesOf(t, dirs[1])); got != want {
		t.Errorf("%s: got %s, want %s", dirs[1], got, want)
	}
}

// TestRanksErrors checks that what is wrong at one rank is said once, and ends all.
func TestRanksErrors(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 3, 1000)
	pattern := strings.TrimSuffix(dirs[0], "0") + "{RANK}"
	set := func(rank int, change func(c *exec.Cmd)) func(int, *exec.Cmd) {
		return func(r int, c *exec.Cmd) {
			if r == rank {
				change(c)
			}
		}
	}
	for name, c := range map[string]struct {
		edit  func(int, *exec.Cmd)
		codes []int // -1: not looked at, as it waits for rank 1
		want  string
		once  bool
	}{
		"another verb":   {set(1, func(c *exec.Cmd) { c.Args[1] = "recover" }), []int{exit.Usage, exit.Usage, exit.Usage}, "recover", false},
		"a bad flag":     {set(2, func(c *exec.Cmd) { c.Args = append(c.Args, "--nonsense") }), []int{exit.Usage, exit.Usage, exit.Usage}, "--nonsense", true},
		"no such node":   {set(2, func(c *exec.Cmd) { c.Args[len(c.Args)-1] = "/dev/null" }), []int{exit.Usage, exit.Usage, exit.Usage}, "/dev/null", true},
		"another secret": {set(1, func(c *exec.Cmd) { c.Env = append(c.Env, engine.SecretVariable+"="+strings.Repeat("ab", 32)) }), []int{-1, exit.Failed, -1}, "does not have the secret of this run", false},
		"no secret": {set(1, func(c *exec.Cmd) {
			c.Env = append(c.Env, engine.SecretVariable+"=")
			c.Args = append(c.Args, "--bind", "0.0.0.0")
		}), []int{-1, exit.Usage, -1}, "64 hexadecimal digits", false},
		"no such machine": {set(1, func(c *exec.Cmd) { c.Args = append(c.Args, "--advertise", "127.0.0.1:1") }), []int{exit.Failed, exit.Failed, exit.Failed}, "127.0.0.1:1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := newRanks(t, 3, c.edit, "protect", "--tolerate", "1", pattern)
			run.processes = name == "no secret" // in the variable
			run.start()
			if c.codes[0] < 0 {
				run.endAfter(1)
			}
			codes, text := run.wait()
			for r, code := range c.codes {
				if code >= 0 && codes[r] != code {
					t.Errorf("rank %d: exit code %d, want %d", r, codes[r], code)
				}
			}
			if n := strings.Count(text, c.want); n == 0 || c.once && n != 1 {
				t.Errorf("%d times %q in %s", n, c.want, text)
			}
			for _, dir := range dirs {
				if list, _ := filepath.Glob(filepath.Join(dir, ".volley/*.*")); list != nil {
					t.Errorf("%s was protected: %v", dir, list)
				}
			}
		})
	}
}

// TestRanksKilled kills a rank where no time ends anything: the others end and name it. With sets the other set goes on.
func TestRanksKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		victim int
		flags  []string
	}{{1, nil}, {0, nil}, {2, []string{"--group-size", "3"}}, {0, []string{"--group-size", "3"}}} {
		dirs := writeNodes(t, 6, 600_000)
		run := newRankProcesses(t, 6, nil, slices.Concat([]string{"protect", "--tolerate", "1", "--comm", "tcp", "--timeout", "0", "--limit-rate", "1MiB"}, c.flags, []string{strings.TrimSuffix(dirs[0], "0") + "{RANK}"})...)
		run.start()
		for begun := time.Now(); time.Since(begun) < transporttest.Limit; {
			if list, _ := filepath.Glob(filepath.Join(dirs[c.victim], ".volley/*")); list != nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		run.commands[c.victim].Process.Kill()
		codes, text := run.wait()
		if codes[c.victim] != -1 {
			t.Logf("%+v: it had ended already", c)
			continue
		}
		if slices.Contains(codes, exit.OK) || !strings.Contains(text, "is gone or cannot be reached") {
			t.Errorf("%+v: exit codes %v: %s", c, codes, text)
		}
		if c.flags != nil && strings.Count(text, "protected, generation 1") != 1 {
			t.Errorf("%+v: the other set does not go on: %s", c, text)
		}
	}
}

// TestRanksSlurm has the place of each process in the variables of a Slurm step.
func TestRanksSlurm(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 3, 1000)
	run := newRankProcesses(t, 3, func(r int, c *exec.Cmd) {
		c.Args = slices.Concat(c.Args[:2], []string{"--tolerate", "1", dirs[r]})
		c.Env = append(c.Env, "SLURM_STEP_NUM_TASKS=3", fmt.Sprintf("SLURM_PROCID=%d", r), "SLURM_STEP_NODELIST=localhost", fmt.Sprintf("SLURM_JOB_ID=%d", os.Getpid()))
	}, "protect")
	if codes, text := run.do(); !allAre(codes, exit.OK) || strings.Count(text, "protected, generation 1") != 1 {
		t.Errorf("exit codes %v: %s", codes, text)
	}
}

// TestRanksSets has ranks with a directory each go apart into sets. One set that fails, and a rank that is killed, hold
// up no other set.
func TestRanksSets(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 6, 30_000)
	before := contents(t, dirs)
	do := func(args ...string) (codes []int, text string) {
		place := func(r int, c *exec.Cmd) { c.Args = append(c.Args, "--group-size", "3", dirs[r]) }
		return newRanks(t, 6, place, args...).do()
	}
	if codes, text := do("protect", "--tolerate", "1"); !allAre(codes, exit.OK) || strings.Count(text, "protected, generation 1") != 2 {
		t.Fatalf("protect: exit codes %v: %s", codes, text)
	}
	removeAll(t, dirs[1], dirs[4])
	slices.Reverse(dirs)
	if codes, text := do("recover"); !allAre(codes, exit.OK) || strings.Count(text, "recovered ") != 2 {
		t.Fatalf("recover: exit codes %v: %s", codes, text)
	}
	if got := contents(t, dirs); !slices.Equal(got, before) {
		t.Errorf("%q, want %q", got, before)
	}
	removeAll(t, dirs[0], dirs[1], dirs[3])
	if codes, text := do("recover"); !allAre(codes, exit.Usage) || strings.Count(text, "volley: set ") != 1 || strings.Count(text, "recovered ") != 1 {
		t.Errorf("more than may be lost of one set: exit codes %v: %s", codes, text)
	}
}
