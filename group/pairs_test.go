package group

import (
	"fmt"
	"slices"
	"testing"

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
	{"protect --dry-run", true, func(w *world, p *disktest.Process) error {
		_, err := w.protectBy(p, ProtectOptions{DryRun: true})
		return err
	}},
	{"verify", true, func(w *world, p *disktest.Process) error { _, err := w.verifyBy(p); return err }},
	{"recover", false, func(w *world, p *disktest.Process) error { _, err := w.recoverBy(p, RecoverOptions{}); return err }},
	{"recover --dry-run", true, func(w *world, p *disktest.Process) error {
		_, err := w.recoverBy(p, RecoverOptions{DryRun: true})
		return err
	}},
	{"recover --to", true, func(w *world, p *disktest.Process) error {
		_, err := w.recoverBy(p, RecoverOptions{Files: []string{"*"}, OutDir: fmt.Sprintf("/out.%p", p)})
		return err
	}},
	{"status", true, func(w *world, p *disktest.Process) error { _, err := w.statusBy(p); return err }},
}

// seconds are those verbs, as runs of others beside one on a group.
func seconds(w *world) (list []disktest.Second) {
	for _, v := range pairVerbs {
		list = append(list, disktest.Second{
			Name: v.name, Reads: v.reads, Locked: true, Answers: v.name == "status",
			Run: func(p *disktest.Process) error { return v.run(w.on(p.Machine()), p) },
		})
	}
	return list
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
