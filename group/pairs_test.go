package group

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"volley/files"
	"volley/internal/disk/disktest"
)

// A pairVerb is a verb that meets others, with what happens to the group before.
type pairVerb struct {
	name  string // begins with that of the verb
	reads bool   // and does not write
	run   func(w *world, p *disktest.Process) error
}

var pairVerbs = []pairVerb{
	{"protect", false, func(w *world, p *disktest.Process) error { _, err := w.protectBy(p, ProtectOptions{}); return err }},
	{"protect changed", false, func(w *world, p *disktest.Process) error { _, err := w.protectBy(p, ProtectOptions{}); return err }},
	{"protect --dry-run", true, func(w *world, p *disktest.Process) error {
		_, err := w.protectBy(p, ProtectOptions{DryRun: true})
		return err
	}},
	{"verify", true, func(w *world, p *disktest.Process) error { _, err := w.verifyBy(p); return err }},
	{"recover lost", false, func(w *world, p *disktest.Process) error { _, err := w.recoverBy(p, RecoverOptions{}); return err }},
	{"recover damaged", false, func(w *world, p *disktest.Process) error { _, err := w.recoverBy(p, RecoverOptions{}); return err }},
	{"recover --dry-run", true, func(w *world, p *disktest.Process) error {
		_, err := w.recoverBy(p, RecoverOptions{DryRun: true})
		return err
	}},
	{"recover lost --to", true, func(w *world, p *disktest.Process) error {
		_, err := w.recoverBy(p, RecoverOptions{OutDir: fmt.Sprintf("/out.%p", p)})
		return err
	}},
	{"status", true, func(w *world, p *disktest.Process) error {
		r, err := w.statusBy(p)
		if err == nil && slices.ContainsFunc(r.Nodes, func(n NodeReport) bool { return n.Busy != nil }) {
			err = besideError{r}
		}
		return err
	}},
}

// A besideError is the report of a status that has answered beside another run.
type besideError struct{ *VerifyReport }

func (e besideError) Error() string { return strings.Join(e.Notes, "; ") }

// answered reports whether status has said who writes to each node, and of the nodes what is so.
func answered(err error, verb string, lost bool) bool {
	e := besideError{}
	if !errors.As(err, &e) || !e.Protected || e.MayLose < 1 || e.Intact && lost {
		return false
	}
	for _, n := range e.Nodes {
		if n.Busy == nil || n.Busy.Verb != verb || n.Busy.PID == 0 || !slices.ContainsFunc(e.Notes, func(text string) bool {
			return strings.Contains(text, n.Dir+" was read beside another run: volley "+verb+" has used it since ")
		}) {
			return false
		}
	}
	return true
}

// verb returns its name alone.
func (v *pairVerb) verb() string {
	name, _, _ := strings.Cut(v.name, " ")
	return name
}

// refuses reports whether an error is that of a protect that finds a node lost.
func (v *pairVerb) refuses(err error, lost bool) bool {
	return lost && v.verb() == "protect" && IsInputError(err) && !isBusy(err)
}

// TestPairs stops each verb at calls while it has its locks: any other one is refused then and says by whom, or succeeds
// where both only read. The one that was stopped ends as if nothing had been, and any two nodes may be lost.
func TestPairs(t *testing.T) {
	for _, a := range pairVerbs {
		t.Run(a.name, func(t *testing.T) {
			first := newWorld(4, 2)
			must(t, first.protect())
			want := first.trees()
			lost := strings.Contains(a.name, "lost")
			switch {
			case strings.Contains(a.name, "changed"):
				change(first, "/n1")
				want = first.trees()
			case lost:
				first.lose(1, 0)
			case strings.Contains(a.name, "damaged"):
				damage(first)
			}
			begin, end := lockedAt(t, first, &a)
			stops := []int{begin, (begin + end) / 2, end}
			if *mostCalls == 0 {
				stops = nil
				for n := begin; n <= end; n++ {
					stops = append(stops, n)
				}
			}
			for _, n := range stops {
				w := first.clone()
				p, stopped := w.Process(), false
				p.CallAt(n, func() {
					stopped = true
					// Who reads last has its name in the lock: those that write come before.
					list := slices.SortedStableFunc(slices.Values(pairVerbs), func(x, y pairVerb) int { return strings.Compare(fmt.Sprint(x.reads), fmt.Sprint(y.reads)) })
					for _, b := range list {
						err := b.run(w, w.Process())
						switch busy := new(files.BusyError); {
						case b.name == "status" && !a.reads && answered(err, a.verb(), lost && !w.Exists("/n0")):
						case a.reads && b.reads && (err == nil || b.refuses(err, lost)):
						case b.refuses(err, lost) && !w.Exists("/n0"):
						case a.reads && b.reads, !errors.As(err, &busy), busy.Holder.Verb != a.verb():
							t.Errorf("call %d: %s: %v", n, b.name, err)
						}
					}
				})
				if err := a.run(w, p); err != nil || !stopped {
					t.Errorf("call %d: it ends with %v, stopped %v", n, err, stopped)
				}
				must(t, w.recover())
				for i := range w.dirs {
					must(t, diff(a.name, want[i], w.tree(i)))
				}
				must(t, w.protect())
				w.lose(0, rand.Perm(4)[:2]...)
				must(t, w.recover(), w.whole())
				for i := range w.dirs {
					must(t, diff(a.name, want[i], w.tree(i)))
				}
			}
		})
	}
}

// TestPlacedMeanwhile protects nodes in another order at each call of protect before it has its locks: the order in which
// it was given them counts no more, and it ends well.
func TestPlacedMeanwhile(t *testing.T) {
	t.Parallel()
	first := newWorld(4, 2).ordered()
	_, end := lockedAt(t, first, &pairVerbs[0])
	reversed := first.clone()
	slices.Reverse(reversed.dirs)
	for n, busy := 0, false; !busy; n++ {
		w, other := first.clone(), *reversed
		other.Machine = w.Machine
		p := w.Process()
		p.CallAt(n, func() { busy = isBusy(other.protect()) })
		if err := pairVerbs[0].run(w, p); err != nil || n > end {
			t.Fatalf("call %d: %v", n, err)
		}
		must(t, w.whole(), other.whole())
	}
}

// lockedAt returns the first and the last call of a verb at which it has all of its locks.
func lockedAt(t *testing.T, w *world, v *pairVerb) (begin, end int) {
	t.Helper()
	for _, c := range w.Calls(func(p *disktest.Process) {
		c := w.clone()
		c.Machine = nil // which is that of the process
		must(t, v.run(c, p))
	}) {
		switch {
		case c.Op == "lock" && end == 0:
			begin = c.N + 1
		case c.Op == "unlock" && end == 0:
			end = c.N
		}
	}
	if begin == 0 || end <= begin {
		t.Fatalf("it has its locks from call %d to %d", begin, end)
	}
	return begin, end
}
