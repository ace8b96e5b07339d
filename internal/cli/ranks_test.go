package cli

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"volley/coded/manifest"
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

// alike runs the ranks, and fails the test unless they end alike.
func (x *rankRun) alike() result {
	x.t.Helper()
	codes, text := x.do()
	if !allAre(codes, codes[0]) {
		x.t.Errorf("exit codes %v: %s", codes, text)
	}
	return result{codes[0], text, text}
}

func allAre(codes []int, code int) bool {
	return !slices.ContainsFunc(codes, func(c int) bool { return c != code })
}

// A several runs so many processes with the arguments, and one more with those after each ":". It returns the exit code of
// all and what they print.
type several func(t *testing.T, n int, args ...string) (code int, text string)

// overTCP has ranks for processes, which meet on loopback. A build with MPI has overMPI.
func overTCP(t *testing.T, n int, args ...string) (code int, text string) {
	t.Helper()
	lists := [][]string{nil}
	for _, arg := range args {
		if arg == ":" {
			lists = append(lists, nil)
			continue
		}
		lists[len(lists)-1] = append(lists[len(lists)-1], arg)
	}
	r := newRanks(t, n+len(lists)-1, func(r int, c *exec.Cmd) {
		if r >= n {
			own := lists[r-n+1]
			c.Args = slices.Concat(c.Args[:len(c.Args)-len(lists[0])+1], own[1:])
			c.Args[1] = own[0]
		}
	}, lists[0]...).alike()
	return r.code, r.stdout
}

// each returns the arguments with which each process has a directory of its own.
func each(dirs []string, args ...string) (list []string) {
	for i, dir := range dirs {
		if i > 0 {
			list = append(list, ":")
		}
		list = append(append(list, args...), dir)
	}
	return list
}

// lay writes a file, and makes the folders in which it lies.
func lay(t *testing.T, path string, text []byte, mode os.FileMode) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, text, mode))
}

// writeNumbered writes n packets of about size bytes and returns the pattern of their names.
func writeNumbered(t *testing.T, n, size int) string {
	t.Helper()
	dir := t.TempDir()
	random := rand.NewChaCha8([32]byte{1})
	for k := range n {
		data := make([]byte, size+k)
		random.Read(data)
		rewrite(t, filepath.Join(dir, fmt.Sprintf("ckpt.%d", k)), data)
	}
	return filepath.Join(dir, "ckpt.{rank}")
}

// numbered is the packet of a pattern.
func numbered(pattern string, k int) string {
	return strings.ReplaceAll(pattern, "{rank}", fmt.Sprint(k))
}

// A filesRun is packets that several processes encode, and decode once some are lost.
type filesRun struct {
	ranks, processors int
	args              []string // of encode
	lost              []int    // inputs and their coded files
	inputs            []int    // inputs that are lost, too
	decoders          int
	own               bool // directories of their own have what is left
}

// TestRanksFiles compares what several processes encode with one process, to the byte, and has as many, fewer or one decode.
func TestRanksFiles(t *testing.T) { t.Parallel(); testFiles(t, overTCP) }

func testFiles(t *testing.T, run several) {
	for _, c := range []filesRun{
		{ranks: 1, processors: 1, inputs: []int{0}, decoders: 1},
		{ranks: 5, processors: 5, lost: []int{1, 3}, decoders: 5, own: true},
		{ranks: 16, processors: 16, inputs: []int{2, 3}, decoders: 3},
		{ranks: 4, processors: 16, inputs: []int{4}, decoders: 1},
		{ranks: 3, processors: 7, inputs: []int{0, 1, 2, 3, 4, 5, 6}, decoders: 7, own: true},
		{ranks: 6, processors: 6, args: []string{"--sinks", "2", "--model", "paper", "-p", "2"}, inputs: []int{0, 5}, decoders: 2, own: true},
		{ranks: 8, processors: 6, args: []string{"--sinks", "2", "--separate"}, inputs: []int{1}, decoders: 6},
		{ranks: 5, processors: 5, args: []string{"--field", "257", "--matrix", "random:3"}, lost: []int{0}, inputs: []int{4}, decoders: 2},
		{ranks: 4, processors: 4, args: []string{"--field", "2^16", "--memory", "64KiB"}, inputs: []int{0, 1, 2, 3}, decoders: 4, own: true},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			pattern := writeNumbered(t, c.processors, 40_000)
			want := filesOf(t, filepath.Dir(pattern))
			coded := c.encode(t, run, pattern)
			back := filepath.Join(t.TempDir(), "back")
			args := []string{"decode", "-o", back}
			if i := slices.Index(c.args, "--memory"); i >= 0 {
				args = append(args, c.args[i:i+2]...)
			}
			code, text := run(t, c.decoders, append(args, c.lose(t, coded, pattern), pattern)...)
			if code != exit.OK || strings.Count(text, "verified by") != 1 {
				t.Fatalf("exit code %d: %s", code, text)
			}
			equal(t, filesOf(t, back), want)
		})
	}
}

// encode returns the directory of coded files.
func (c *filesRun) encode(t *testing.T, run several, pattern string) string {
	t.Helper()
	together, alone := filepath.Join(t.TempDir(), "coded"), filepath.Join(t.TempDir(), "coded")
	args := c.args
	if !slices.Contains(args, "paper") { // else one process plans for itself
		args = append(slices.Clone(args), "--network", "10gbit/20us")
	}
	k := []string{"-k", fmt.Sprint(c.processors)}
	several := slices.Clone(args)
	if c.ranks < c.processors {
		several = append(several, k...)
	}
	code, text := run(t, c.ranks, slices.Concat([]string{"encode", "-o", together}, several, []string{pattern})...)
	if code != exit.OK || strings.Count(text, "verified by") != 1 {
		t.Fatalf("exit code %d: %s", code, text)
	}
	mustRun(t, slices.Concat([]string{"encode", "-o", alone}, k, args, []string{pattern})...)
	equal(t, filesOf(t, together), filesOf(t, alone))
	return together
}

// lose returns where the rest is: of own directories the last one has the manifest, and coded files are anywhere.
func (c *filesRun) lose(t *testing.T, coded, pattern string) string {
	t.Helper()
	for _, n := range append(slices.Clone(c.lost), c.inputs...) {
		remove(t, numbered(pattern, n))
	}
	for _, n := range c.lost {
		remove(t, coded, fmt.Sprint("coded.", n))
	}
	if !c.own {
		return coded
	}
	for i, name := range listDir(t, coded) {
		rank := i % c.decoders
		if strings.Contains(name, "manifest") {
			rank = c.decoders - 1
		}
		dir := fmt.Sprint(coded, ".", rank)
		must(t, cmp.Or(os.MkdirAll(dir, 0o777), os.Rename(filepath.Join(coded, name), filepath.Join(dir, name))))
	}
	return coded + ".{rank}"
}

// TestJobModes checks that no process gives its coded file more than the input of any other one allows.
func TestJobModes(t *testing.T) {
	t.Parallel()
	pattern, dir := writeNumbered(t, 4, 1000), filepath.Join(t.TempDir(), "coded")
	for k, mode := range []os.FileMode{0o644, 0o644, 0o640, 0o604} {
		must(t, os.Chmod(numbered(pattern, k), mode))
	}
	if code, text := overTCP(t, 4, "encode", "-o", dir, pattern); code != exit.OK {
		t.Fatalf("exit %d: %s", code, text)
	}
	for _, name := range listDir(t, dir) {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s is %v, %v", name, info.Mode(), err)
		}
	}
}

// TestRanksOrder starts the processes of a group in other orders, loses what may be lost, and more.
func TestRanksOrder(t *testing.T) { t.Parallel(); testOrder(t, overTCP, true) }

func testOrder(t *testing.T, run several, other bool) {
	dirs := writeNodes(t, 4, 100_000)
	before := contents(t, dirs)
	do := func(order [4]int, code int, want string, args ...string) {
		t.Helper()
		list := slices.Clone(dirs)
		for i, n := range order {
			if other {
				list[i] = dirs[n]
			}
		}
		got, text := run(t, 1, each(list, args...)...)
		if n := len(regexp.MustCompile(want).FindAllString(text, -1)); got != code || n != 1 {
			t.Fatalf("%v in the order %v: exit code %d and %d times %s: %s", args, order, got, n, want, text)
		}
	}
	do([4]int{0, 1, 2, 3}, exit.OK, "protected, generation 1", "protect", "--tolerate", "2")
	do([4]int{2, 0, 3, 1}, exit.OK, "whole: 4 nodes", "verify")
	removeAll(t, dirs[1], dirs[3])
	do([4]int{2, 0, 3, 1}, exit.Wrong, "not whole: .*node.3 .lost", "verify")
	do([4]int{1, 3, 2, 0}, exit.OK, "(?s)recovered node 1: .*recovered node 3: ", "recover")
	do([4]int{3, 2, 1, 0}, exit.OK, "protected, generation", "protect", "--tolerate", "2")
	mustRun(t, append([]string{"verify"}, dirs...)...) // as in one process
	have(t, dirs, before)
	removeAll(t, dirs[0], dirs[1], dirs[2])
	do([4]int{0, 1, 2, 3}, exit.Usage, "too much is lost|3 nodes are lost", "recover")
}

// A wrongRun is several processes of which something is wrong, in a directory {out}.
type wrongRun struct {
	name string
	n    int
	args []string
	code int
	want string // matches one line of all that volley says
}

// TestRanksErrors checks that what is wrong is said once, with the ranks where it is, and ends all, and that nothing is written.
func TestRanksErrors(t *testing.T) { t.Parallel(); testErrors(t, overTCP, wrongRuns(t)...) }

// wrongRuns are those that differ in nothing but how the processes talk.
func wrongRuns(t *testing.T) []wrongRun {
	pattern, missing := writeNumbered(t, 4, 1000), writeNumbered(t, 4, 1000)
	remove(t, numbered(missing, 3))
	nodes := writeNodes(t, 3, 1000)
	encode := func(args ...string) []string { return append([]string{"encode", "-o", "{out}"}, args...) }
	protect := func(n int, flags ...string) []string {
		return slices.Concat([]string{"protect", "--tolerate", "1"}, flags, nodes[n:n+1])
	}
	with := func(first []string, last ...string) []string { return slices.Concat(first, []string{":"}, last) }
	return append(wrongDecodings(t, pattern), []wrongRun{
		{"one file missing", 4, encode(missing), exit.Usage, `^volley: rank 3: stat .*ckpt\.3: no such file or directory$`},
		{"an unknown flag", 3, encode("--memroy", "3"), exit.Usage, `^volley: unknown flag: --memroy: see volley encode --help$`},
		{"too many processes", 4, encode("-k", "3", pattern), exit.Usage, `^volley: 4 processes for 3 processors: start no more of them$`},
		{"too little memory", 2, encode("--memory", "1B", pattern), exit.Usage, `^volley: 1 bytes of memory: `},
		{"another matrix", 3, with(encode(pattern), encode("--matrix", "random:1", pattern)...), exit.Usage, `^volley: rank 3 differs from rank 0 in matrix \(random:1, not .*\): give all the same$`},
		{"protect and encode", 2, with(encode(pattern), protect(2)...), exit.Usage, `^volley: rank 2 runs protect, rank 0 runs encode: run the same at all ranks$`},
		{"verify and recover", 2, with([]string{"verify", nodes[0]}, "recover", nodes[2]), exit.Usage, `^volley: rank 2 runs recover, rank 0 runs verify: run the same at all ranks$`},
		{"a dry run", 2, with(encode(pattern), encode("--dry-run", pattern)...), exit.Usage, `^volley: rank 2 runs encode --dry-run, rank 0 runs encode: run the same at all ranks$`},
		{"one node for all", 1, with(protect(0), protect(0)...), exit.Usage, `^volley: (rank [01]: )?ranks 0 and 1 have one directory, .*: give each its own$`},
		{"a flag of one rank", 2, with(protect(0), protect(1, "--nonsense")...), exit.Usage, `--nonsense`},
		{"no such node", 1, with(protect(0), "protect", "--tolerate", "1", "/dev/null"), exit.Usage, `/dev/null`},
	}...)
}

func wrongDecodings(t *testing.T, pattern string) []wrongRun {
	dir := t.TempDir()
	coded, other, full := filepath.Join(dir, "coded"), filepath.Join(dir, "other"), filepath.Join(dir, "full")
	mustRun(t, "encode", "-o", coded, "-k", "4", pattern)
	mustRun(t, "encode", "-o", other, "-k", "4", "--matrix", "random:1", pattern)
	lost := func(names ...string) string { // a copy of coded without these
		to := filepath.Join(t.TempDir(), "x")
		must(t, os.CopyFS(to, os.DirFS(coded)))
		for _, name := range names {
			remove(t, to, name)
		}
		return to
	}
	wrong := lost()
	editManifest(t, wrong, func(m *manifest.Manifest) { m.Inputs[2].SHA256 = strings.Repeat("0", 64) })
	lay(t, filepath.Join(full, "ckpt.3"), []byte("x"), 0o666)
	t.Cleanup(func() {
		if data := readFile(t, full, "ckpt.3"); string(data) != "x" {
			t.Error("a file that was there is another one")
		}
	})
	decode := func(args ...string) []string { return append([]string{"decode", "-o", "{out}"}, args...) }
	return []wrongRun{
		{"no manifest", 3, decode(lost("manifest.json", "manifest.copy.json"), pattern), exit.Usage, `no rank has a manifest: .*manifest\.json: no such file or directory: want a directory that volley encode -o has made$`},
		{"no directory", 3, decode(filepath.Join(dir, "none"), pattern), exit.Usage, `no rank has a manifest: .*: want a directory that`},
		{"two manifests", 1, append(append(decode(coded, pattern), ":"), decode(other, pattern)...), exit.Usage, `ranks 0 and 1 have manifests of different runs`},
		{"too few", 4, decode(lost("coded.1"), "none"), exit.Usage, `1 more input or coded file is needed\. Unknown inputs: .*Coded files left out: coded\.1 \(missing\)`},
		{"no survivor", 2, decode(coded, coded), exit.Usage, `cannot use any survivor`},
		{"too many to decode", 5, decode(coded, pattern), exit.Usage, `5 processes for 4 processors: start no more of them`},
		{"there already", 3, []string{"decode", "-o", full, coded, pattern}, exit.Usage, `full/ckpt\.3 is there already; choose another directory, or --force to replace it`},
		{"a wrong manifest", 3, decode(wrong), exit.Wrong, `ckpt\.2: what is decoded is not what was encoded`},
		{"nothing named", 2, decode(), exit.Usage, `no directory of coded files`},
	}
}

func testErrors(t *testing.T, run several, all ...wrongRun) {
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			args := slices.Clone(c.args)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "{out}", out)
			}
			code, text := run(t, c.n, args...)
			lines, said := 0, 0
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, "volley: ") && !strings.Contains(line, " is left out: ") {
					lines++
					if regexp.MustCompile(c.want).MatchString(strings.TrimSpace(line)) {
						said++
					}
				}
			}
			if code != c.code || said != 1 || lines != 1 {
				t.Errorf("exit code %d, want %d, and once %s: %s", code, c.code, c.want, text)
			}
			if left, _ := filepath.Glob(filepath.Join(out, "[^.]*")); left != nil {
				t.Errorf("files are left: %v", left)
			}
			for _, arg := range args {
				if written, _ := filepath.Glob(filepath.Join(arg, ".volley/*.*")); written != nil {
					t.Errorf("%s was written: %v", arg, written)
				}
			}
		})
	}
}

// TestRanksStrangers has a rank with another secret, with none, or with an address that is none.
func TestRanksStrangers(t *testing.T) {
	t.Parallel()
	pattern := strings.TrimSuffix(writeNodes(t, 3, 1000)[0], "0") + "{RANK}"
	for name, c := range map[string]struct {
		change func(c *exec.Cmd) // of rank 1
		code   int
		want   string
	}{
		"another secret": {func(c *exec.Cmd) { c.Env = append(c.Env, engine.SecretVariable+"="+strings.Repeat("ab", 32)) }, exit.Failed, "does not have the secret of this run"},
		"no secret": {func(c *exec.Cmd) {
			c.Env = append(c.Env, engine.SecretVariable+"=")
			c.Args = append(c.Args, "--bind", "0.0.0.0")
		}, exit.Usage, "64 hexadecimal digits"},
		"no such machine": {func(c *exec.Cmd) { c.Args = append(c.Args, "--advertise", "127.0.0.1:1") }, exit.Failed, "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := newRanks(t, 3, func(r int, x *exec.Cmd) {
				if r == 1 {
					c.change(x)
				}
			}, "protect", "--tolerate", "1", pattern)
			run.processes = name == "no secret" // in the variable
			run.start()
			if name != "no such machine" { // the others wait for rank 1
				run.endAfter(1)
			}
			codes, text := run.wait()
			if codes[1] != c.code || slices.Contains(codes, exit.OK) || !strings.Contains(text, c.want) {
				t.Errorf("exit codes %v, want %d: %s", codes, c.code, text)
			}
		})
	}
}
