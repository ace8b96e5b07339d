//go:build unix

package cli

import (
	"bytes"
	"errors"
	"fmt"
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

// A pairGroup is a group that is brought back to how it was once and again.
type pairGroup struct {
	dirs  []string
	base  string
	saved string
	whole []string // what is at the nodes
}

// with returns arguments with the directories of the group.
func (g *pairGroup) with(args ...string) []string { return slices.Concat(args, g.dirs) }

// restore brings the group back to how it was at first.
func (g *pairGroup) restore(t *testing.T) {
	t.Helper()
	removeAll(t, g.base)
	copyTree(t, g.saved, g.base)
}

// check fails unless the nodes have what they are to have.
func (g *pairGroup) check(t *testing.T, when string) {
	t.Helper()
	for n, is := range dataOfAll(t, g.dirs) {
		if is != g.whole[n] {
			t.Fatalf("%s: node %d is\n%s\nwant\n%s", when, n, is, g.whole[n])
		}
	}
}

// checkLeft fails where a run that was interrupted has left something at a node after another one that was not.
func checkLeft(t *testing.T, when, dir string) {
	t.Helper()
	names := slices.DeleteFunc(listDir(t, filepath.Join(dir, ".volley")), func(name string) bool {
		return slices.Contains([]string{"replaced", "lock", "scrub"}, name)
	})
	if len(names) != 1 || !strings.HasPrefix(names[0], "generation.") {
		t.Errorf("%s: there are %v in %s", when, names, dir)
	}
}

// TestGroupBusy stops verbs while they hold their locks: others are refused then and say by whom, or succeed where both only
// read. Status answers. The one that was stopped ends as if nothing had been. In package group all verbs meet all.
func TestGroupBusy(t *testing.T) {
	t.Parallel()
	g := &pairGroup{dirs: writeNodes(t, 4, 1_000_000)}
	g.whole = dataOfAll(t, g.dirs)
	mustRun(t, g.with("protect", "--tolerate", "2")...)
	host, _ := os.Hostname()
	for _, verb := range []string{"protect --full", "verify"} {
		p := g.stopped(t, strings.Fields(verb)...)
		name, _, _ := strings.Cut(verb, " ")
		who := fmt.Sprintf(`volley %s has used it since [0-9-]+ [0-9:]+ \S+ \(process %d on %s, user [^,)]+(, stopped)?\)`, name, p.Process.Pid, regexp.QuoteMeta(host))
		for _, other := range []string{"protect", "recover", "verify", "status"} { // who only reads comes last: it says of itself that it is there
			reads, code := verb == "verify" && (other == "verify" || other == "status"), exit.Failed
			if reads || other == "status" {
				code = exit.OK
			}
			r := volleyRun(g.with(other)...)
			said := regexp.MustCompile(who).FindStringSubmatch(r.stdout + r.stderr)
			busy := said != nil && (said[1] != "" || runtime.GOOS != "linux") && strings.Contains(r.stderr, " is busy: ") == (other != "status")
			if r.code != code || !reads && !busy || code != exit.OK && r.stdout != "" {
				t.Errorf("%s with %s that is stopped: %+v: want exit code %d and %s", other, verb, r, code, who)
			}
		}
		must(t, p.Process.Signal(syscall.SIGCONT))
		p.end(t).is(t, exit.OK)
		mustRun(t, g.with("verify")...)
		g.check(t, verb)
	}
}

// stopped returns a run of a verb that is stopped while it has its locks.
func (g *pairGroup) stopped(t *testing.T, args ...string) *program {
	t.Helper()
	lock := filepath.Join(g.dirs[3], ".volley/lock")
	for range 100 {
		must(t, os.Truncate(lock, 0))
		p := newProgram(t, g.with(args...)...)
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
	t.Fatalf("%s always ends before it is stopped", args)
	return nil
}
