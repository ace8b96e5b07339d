//go:build unix

package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"volley/internal/exit"
	"volley/transport/transporttest"
)

var groupPairs = flag.Int("group.pairs", 1, "how often pairs of verbs are run at once on one group, as jobs; more than once: all that there are")

// A program is a run of the command line as a process of its own.
type program struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
}

// newProgram returns a run of this program, as the command, that has not begun.
func newProgram(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{Cmd: command(t.Context(), t, args...)}
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	return p
}

// end waits for it and returns its result.
func (p *program) end(t *testing.T) result {
	t.Helper()
	err := p.Wait()
	if ended := new(exec.ExitError); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return result{p.ProcessState.ExitCode(), p.stdout.String(), p.stderr.String()}
}

// A pairVerb is a verb of a pair, with what happens to the group before.
type pairVerb struct {
	name  string
	args  []string
	reads bool  // and does not write
	codes []int // that it exits with alone, whatever the other one has done or will do
}

// protects reports whether a run with that result has protected the group as it is.
func (v *pairVerb) protects(r result) bool {
	return v.args[0] == "protect" && !v.reads && r.code == exit.OK
}

const (
	toChange = "changed" // in the names of verbs, what happened to the group
	toLose   = "lost"
	toDamage = "damaged"

	anew = "ANEW" // in arguments, a directory that is not there
)

var pairVerbs = []pairVerb{
	{name: "protect", args: []string{"protect", "--tolerate", "2"}, codes: []int{0, 2}},
	{name: "protect changed", args: []string{"protect", "--tolerate", "2"}, codes: []int{0, 2}},
	{name: "protect --dry-run", args: []string{"protect", "--tolerate", "2", "--dry-run"}, reads: true, codes: []int{0, 2}},
	{name: "verify", args: []string{"verify"}, reads: true, codes: []int{0, 3}},
	{name: "recover lost", args: []string{"recover"}, codes: []int{0}},
	{name: "recover damaged", args: []string{"recover"}, codes: []int{0}},
	{name: "recover --dry-run", args: []string{"recover", "--dry-run"}, reads: true, codes: []int{0}},
	{name: "recover lost --to", args: []string{"recover", "--to", anew}, reads: true, codes: []int{0}},
	{name: "status", args: []string{"status"}, reads: true, codes: []int{0, 3}},
}

// A pairGroup is a group of 4 nodes, any two of which may be lost, that is brought back to
// how it was once and again.
type pairGroup struct {
	dirs  []string
	base  string
	saved string
	whole []string // what is at the nodes
	outs  []string // where lost nodes were copied to
}

func newPairGroup(t *testing.T, size int, protected bool) *pairGroup {
	t.Helper()
	g := &pairGroup{dirs: writeNodes(t, 4, size)}
	g.base = filepath.Dir(g.dirs[0])
	g.saved = filepath.Join(t.TempDir(), "saved")
	if protected {
		mustRun(t, g.with("protect", "--tolerate", "2")...)
	}
	copyTree(t, g.base, g.saved)
	g.whole = g.data(t)
	return g
}

// with returns arguments with the directories of the group.
func (g *pairGroup) with(args ...string) []string {
	list := append(slices.Clone(args), g.dirs...)
	if i := slices.Index(list, anew); i >= 0 {
		g.outs = append(g.outs, fmt.Sprint(g.saved, ".", len(g.outs)))
		list[i] = g.outs[len(g.outs)-1]
	}
	return list
}

func (g *pairGroup) data(t *testing.T) (list []string) {
	t.Helper()
	for _, dir := range g.dirs {
		list = append(list, dataOf(t, dir))
	}
	return list
}

// restore brings the group back to how it was at first.
func (g *pairGroup) restore(t *testing.T) {
	t.Helper()
	must(t, os.RemoveAll(g.base))
	copyTree(t, g.saved, g.base)
}

// befall does to the group what the names of verbs say, and returns the data that it is to
// have in the end.
func (g *pairGroup) befall(t *testing.T, names string) []string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		must(t, err)
	}
	want := slices.Clone(g.whole)
	if strings.Contains(names, toChange) {
		must(os.WriteFile(filepath.Join(g.dirs[1], "sub/b"), bytes.Repeat([]byte("new"), 100_000), 0o644))
		must(os.WriteFile(filepath.Join(g.dirs[1], "more"), []byte("not there before"), 0o644))
		want[1] = dataOf(t, g.dirs[1])
	}
	if strings.Contains(names, toLose) {
		must(os.RemoveAll(g.dirs[0]))
	}
	if strings.Contains(names, toDamage) {
		vanish(t, filepath.Join(g.dirs[2], "ckpt"))
	}
	return want
}

// check fails unless the nodes have what they are to have.
func (g *pairGroup) check(t *testing.T, when string, want []string) {
	t.Helper()
	for n, is := range g.data(t) {
		if is != want[n] {
			t.Fatalf("%s: node %d is\n%s\nwant\n%s", when, n, is, want[n])
		}
	}
	for _, out := range g.outs { // a copy of node 0, unless recover was faster
		dir := filepath.Join(out, "node.0")
		if _, err := os.Stat(dir); err == nil {
			if is := dataOf(t, dir); is != want[0] {
				t.Fatalf("%s: the copy of node 0 is\n%s\nwant\n%s", when, is, want[0])
			}
		}
	}
}

// complete brings the group to the end: whatever has happened, recover succeeds, and protect
// where it has not, and then any two nodes may be lost.
func (g *pairGroup) complete(t *testing.T, when string, rng *rand.Rand, want []string, protected bool) {
	t.Helper()
	run := func(args ...string) {
		t.Helper()
		if r := volleyRun(g.with(args...)...); r.code != exit.OK {
			t.Fatalf("%s: then %s: %+v", when, args, r)
		}
	}
	refused := []int{exit.Absent, exit.Usage} // nothing is there, or what a run that was cut off has begun
	if r := volleyRun(g.with("recover")...); slices.Contains(refused, r.code) && !protected && strings.Contains(r.stderr, "not protected") {
		run("protect", "--tolerate", "2")
	} else if r.code != exit.OK {
		t.Fatalf("%s: then recover: %+v", when, r)
	}
	g.check(t, when+", then recover", want)
	if !protected {
		run("protect", "--tolerate", "2")
	}
	lost := rng.Perm(len(g.dirs))[:2]
	for _, n := range lost {
		must(t, os.RemoveAll(g.dirs[n]))
	}
	run("recover")
	g.check(t, fmt.Sprintf("%s, nodes %v lost", when, lost), want)
	run("verify")
	for _, dir := range g.dirs {
		checkLeft(t, when, dir)
	}
}

// checkLeft fails where a run that was interrupted has left something at a node after another
// one that was not.
func checkLeft(t *testing.T, when, dir string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, ".volley"))
	must(t, err)
	var names []string
	for _, e := range entries {
		if !slices.Contains([]string{"replaced", "lock", "scrub"}, e.Name()) {
			names = append(names, e.Name())
		}
	}
	if len(names) != 1 || !strings.HasPrefix(names[0], "generation.") {
		t.Errorf("%s: there are %v in %s", when, names, dir)
	}
}

// saysWho fits what says that a run uses a node.
func saysWho(other pairVerb, pid int) *regexp.Regexp {
	host, _ := os.Hostname()
	return regexp.MustCompile(fmt.Sprintf(`volley %s has used it since [0-9-]+ [0-9:]+ \S+ \(process %d on %s, user [^,)]+(, stopped)?\)`, other.args[0], pid, regexp.QuoteMeta(host)))
}

// isBusy reports whether a run was refused because of another one, and fails unless it says
// by whom.
func isBusy(t *testing.T, when string, r result, other pairVerb, pid int) bool {
	t.Helper()
	if !strings.Contains(r.stderr, " is busy: ") {
		return false
	}
	want := saysWho(other, pid)
	if r.code != exit.Failed || r.stdout != "" || !want.MatchString(r.stderr) {
		t.Errorf("%s: it does not say who is busy: %+v: want exit 1 and %s", when, r, want)
	}
	return true
}

// TestGroupBusy stops verbs while they hold their locks: others are refused then and say by whom, or succeed where both only
// read. Status answers. The one that was stopped ends as if nothing had been. With the flag all verbs meet all.
func TestGroupBusy(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	g := newPairGroup(t, 300_000, true)
	some := func(v pairVerb, names ...string) bool { return *groupPairs > 1 || slices.Contains(names, v.name) }
	for _, a := range pairVerbs {
		if !some(a, "protect changed", "verify", "recover lost") {
			continue
		}
		g.restore(t)
		want := g.befall(t, a.name)
		p := g.stopped(t, a)
		pid := p.Process.Pid
		for _, b := range pairVerbs {
			when := fmt.Sprintf("%s with %s that is stopped", b.name, a.name)
			if !some(b, "protect", "verify", "status") || strings.Contains(b.name, " ") && !b.reads {
				continue
			}
			other := newProgram(t, g.with(b.args...)...)
			must(t, other.Start())
			r := other.end(t)
			ok := slices.Contains(b.codes, r.code)
			switch {
			case a.reads && b.reads:
			case b.name == "status":
				who := saysWho(a, pid).FindStringSubmatch(r.stdout)
				ok = ok && who != nil && (who[1] != "" || runtime.GOOS != "linux")
			default:
				ok = isBusy(t, when, r, a, pid) || b.args[0] == "protect" && strings.Contains(r.stderr, "node.0: no such directory")
			}
			if !ok {
				t.Errorf("%s: %+v", when, r)
			}
		}
		must(t, p.Process.Signal(syscall.SIGCONT))
		r := p.end(t)
		if !slices.Contains(a.codes, r.code) {
			t.Fatalf("%s, stopped and continued: %+v", a.name, r)
		}
		g.complete(t, a.name+", stopped and continued", rng, want, !strings.Contains(a.name, toChange) || a.protects(r))
	}
}

// stopped returns a run of a verb that is stopped while it has its locks.
func (g *pairGroup) stopped(t *testing.T, v pairVerb) *program {
	t.Helper()
	lock := filepath.Join(g.dirs[3], ".volley/lock")
	for range 100 {
		must(t, os.Truncate(lock, 0))
		p := newProgram(t, g.with(v.args...)...)
		must(t, p.Start())
		pid := []byte(fmt.Sprintf(`"pid":%d,`, p.Process.Pid))
		for begun := time.Now(); time.Since(begun) < transporttest.Limit; {
			if text, _ := os.ReadFile(lock); bytes.Contains(text, pid) {
				break
			}
		}
		p.Process.Signal(syscall.SIGSTOP)
		for { // until it has stopped, or ended
			is, _ := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(p.Process.Pid)).Output()
			if len(is) == 0 || bytes.ContainsAny(is, "TZ") {
				break
			}
		}
		f, err := os.Open(lock)
		must(t, err)
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		f.Close()
		if err != nil {
			return p
		}
		p.Process.Signal(syscall.SIGCONT)
		p.end(t)
	}
	t.Fatalf("%s always ends before it is stopped", v.name)
	return nil
}
