package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"volley/internal/exit"
)

// A commandedGroup is nodes with commands, at hosts or here. Each command appends to the log of its node what it hears.
type commandedGroup struct {
	dirs []string
	log  string // directory
	at   func(n int) string
}

// file writes a group file. Commands of node n are those of pre and post, after the line that logs.
func (g *commandedGroup) file(t *testing.T, pre, post func(n int) string, options ...string) string {
	t.Helper()
	text := strings.Join(append(options, "tolerate: 1", "members:\n"), "\n")
	for n, dir := range g.dirs {
		log := fmt.Sprintf(`echo "$VOLLEY_COMMAND $VOLLEY_VERB${VOLLEY_RESULT:+ $VOLLEY_RESULT}" >>%s/%d; `, g.log, n)
		text += fmt.Sprintf("  - dir: %s\n    pre: |-\n      %s\n    post: |-\n      %s\n", g.at(n)+dir, log+pre(n), log+post(n))
	}
	name := filepath.Join(t.TempDir(), "group.yaml")
	must(t, cmp.Or(os.WriteFile(name, []byte(text), 0o600), os.Chmod(filepath.Dir(name), 0o700)))
	return name
}

// logs returns what the commands of each node have heard, and forgets it.
func (g *commandedGroup) logs(t *testing.T) (list []string) {
	t.Helper()
	for n := range g.dirs {
		name := filepath.Join(g.log, fmt.Sprint(n))
		text, err := os.ReadFile(name)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		list = append(list, strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", ", "))
		os.Remove(name)
	}
	return list
}

func nothing(int) string { return "true" }

func only(node int, command string) func(int) string {
	return func(n int) string {
		if n == node {
			return command
		}
		return "true"
	}
}

// eachReach runs a test over ssh, and in one process.
func eachReach(t *testing.T, test func(t *testing.T, g *commandedGroup, f *fleet)) {
	for _, remote := range []bool{false, true} {
		t.Run(fmt.Sprintf("ssh %v", remote), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			g := &commandedGroup{dirs: writeNodes(t, 3, 20_000), log: t.TempDir(), at: func(int) string { return "" }}
			if remote {
				g.at = func(n int) string { return fmt.Sprintf("host%d:", n) }
			} else {
				f.flags = nil
			}
			test(t, g, f)
			f.ended(t)
		})
	}
}

// TestCommands runs what comes before and after protect: where it succeeds and fails, and where a command does.
func TestCommands(t *testing.T) {
	t.Parallel()
	eachReach(t, func(t *testing.T, g *commandedGroup, f *fleet) {
		all := func(what string) string { return fmt.Sprint([]string{what, what, what}) }
		check := func(what string, code int, logs string, parts []string, args ...string) result {
			t.Helper()
			r := f.run(append(args, f.flags...)...)
			if got := fmt.Sprint(g.logs(t)); r.code != code || logs != "" && got != logs {
				t.Errorf("%s: %+v, logs %s: want exit code %d, %s", what, r, got, code, logs)
			}
			wants(t, r.stderr+r.stdout, parts...)
			return r
		}
		fresh := func(n int) string { return `echo "$VOLLEY_NODE" >"$VOLLEY_DIR/fresh"; echo "made it"` }
		file := g.file(t, fresh, nothing)
		check("a dry run", exit.OK, all(""), nil, "protect", "--group", file, "--dry-run")
		check("protect", exit.OK, all("pre protect, post protect ok"), []string{g.dirs[1] + ": pre: made it", "protected, generation 1"}, "protect", "--group", file)
		for n, dir := range g.dirs { // each has what pre has made, and it is protected
			if text := string(readFile(t, dir, "fresh")); text != g.at(n)+dir+"\n" {
				t.Errorf("%q", text)
			}
		}
		for _, verb := range []string{"verify", "status", "recover"} {
			check(verb, exit.OK, all(""), nil, verb, "--group", file)
		}
		if r := check("quiet", exit.OK, all("pre protect, post protect ok"), nil, "protect", "--group", file, "-q"); strings.Contains(r.stderr, "made it") {
			t.Errorf("%+v", r)
		}

		failing := g.file(t, only(1, "echo one; echo two >&2; exit 5"), nothing)
		r := f.run(append([]string{"protect", "--group", failing}, f.flags...)...)
		wants(t, r.stderr, "pre of "+g.at(1)+g.dirs[1]+" failed: ", "exit status 5: one; two")
		for n, got := range g.logs(t) {
			if r.code != exit.Failed || got != "pre protect, post protect failed" && (n == 1 || got != "" && got != "post protect failed") { // others may not have begun, or not come to their first word
				t.Errorf("node %d: %s: %+v", n, got, r)
			}
		}
		check("nothing was written", exit.OK, all(""), []string{"generation 2, protected"}, "status", "--group", file)

		late := g.file(t, only(1, "sleep 1000"), nothing, "command-timeout: 1s")
		check("pre takes long", exit.Failed, "", []string{"it took longer than 1s, which command-timeout of the group file sets"}, "protect", "--group", late)
		failing = g.file(t, nothing, only(2, "echo no space; exit 3"))
		check("post fails", exit.Failed, all("pre protect, post protect ok"), []string{"protected, generation 3", "post of " + g.at(2) + g.dirs[2] + " failed: ", "exit status 3: no space"}, "protect", "--group", failing)
		refused := g.file(t, only(0, `rm "$VOLLEY_DIR"/*kpt "$VOLLEY_DIR"/sub/* "$VOLLEY_DIR"/fresh "$VOLLEY_DIR"/empty`), nothing)
		check("protect refuses", exit.Usage, all("pre protect, post protect failed"), []string{"looks like an accident"}, "protect", "--group", refused)
		check("it changed nothing", exit.OK, all(""), nil, "recover", "--revert", "deleted", "--group", file)
	})
}

// TestCommandsInterrupted ends the run, and loses its connections, while a command runs: post runs, and what pre has
// started is gone.
func TestCommandsInterrupted(t *testing.T) {
	t.Parallel()
	eachReach(t, func(t *testing.T, g *commandedGroup, f *fleet) {
		for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			if f.flags == nil && s == syscall.SIGKILL { // nobody is left who could run it
				continue
			}
			began := filepath.Join(g.log, "began.")
			file := g.file(t, func(n int) string { return fmt.Sprintf("sleep 1000 & touch %s%d; wait", began, n) }, nothing)
			p := f.command(t, append([]string{"protect", "--group", file}, f.flags...)...)
			must(t, p.Start())
			var list []string
			for ; len(list) < 3; time.Sleep(5 * time.Millisecond) {
				list, _ = filepath.Glob(began + "*")
			}
			p.Process.Signal(s)
			r := p.end(t)
			f.ended(t)
			removeAll(t, list...)
			if got := fmt.Sprint(g.logs(t)); r.code == exit.OK || got != "[pre protect, post protect failed pre protect, post protect failed pre protect, post protect failed]" {
				t.Errorf("%v: %+v, %s", s, r, got)
			}
		}
	})
}

// TestCommandsRefused gives times that are none, and commands where each process has a node of its own.
func TestCommandsRefused(t *testing.T) {
	t.Parallel()
	g := &commandedGroup{dirs: writeNodes(t, 2, 100), log: t.TempDir(), at: func(int) string { return "" }}
	for _, limit := range []string{"0s", "soon"} {
		volleyRun("protect", "--group", g.file(t, nothing, nothing, "command-timeout: "+limit)).is(t, exit.Usage, "group.yaml:1: command-timeout: want a time above 0, such as 10m")
	}
	codes, text := newRanks(t, 2, nil, "protect", "--group", g.file(t, nothing, nothing)).do()
	if fmt.Sprint(codes) != "[2 2]" || !strings.Contains(text, "pre and post of a member run over ssh") || fmt.Sprint(g.logs(t)) != "[ ]" {
		t.Errorf("%v, %s", codes, text)
	}
}

// TestCommandsOfDead kills a rank while protect runs: the others run post, and know that nothing new is in force, or that
// they do not know it.
func TestCommandsOfDead(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	g := &commandedGroup{dirs: writeNodes(t, 3, 2_000_000), log: t.TempDir(), at: func(n int) string { return fmt.Sprintf("host%d:", n) }}
	file := g.file(t, func(n int) string { return fmt.Sprintf("echo $PPID >%s/rank.%d", g.log, n) }, nothing)
	p := f.command(t, append([]string{"protect", "--limit-rate", "1MiB", "--group", file}, f.flags...)...)
	must(t, p.Start())
	for pending := ""; pending == ""; time.Sleep(5 * time.Millisecond) {
		if list, _ := filepath.Glob(filepath.Join(g.dirs[1], ".volley/pending.*")); list != nil {
			pending = list[0]
		}
	}
	var pid int
	fmt.Sscan(string(readFile(t, filepath.Join(g.log, "rank.1"))), &pid)
	kill(t, pid)
	r := p.end(t)
	f.ended(t)
	logs := g.logs(t)
	if r.code != exit.Failed || logs[1] != "pre protect" {
		t.Errorf("%+v, %q", r, logs)
	}
	for _, n := range []int{0, 2} {
		if logs[n] != "pre protect, post protect failed" && logs[n] != "pre protect, post protect unknown" {
			t.Errorf("node %d: %s", n, logs[n])
		}
	}
}
