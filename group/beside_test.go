package group

import (
	"fmt"
	"strings"
	"testing"

	"volley/group/protection"
	"volley/internal/disk/disktest"
	"volley/internal/verifyall"
)

// TestStatusBeside runs status while protect goes on by some calls between any two of its own, at all moments of the
// commit: what status says is so before the commit, or after it, and no mixture of both.
func TestStatusBeside(t *testing.T) {
	t.Parallel()
	first := newWorld(4, 1)
	must(t, first.protect())
	change(first, "/n1")
	protect := &pairVerbs[0]
	begin, end := lockedAt(t, first, protect)
	begin, seen := max(begin, end-250), map[int64]int{}
	for _, pace := range []struct{ steps, of int }{{1, 16}, {1, 4}, {1, 1}, {5, 1}, {20, 1}} { // steps for so many calls
		for from := begin; from < end; from += verifyall.Pick(21, 7) {
			w := first.clone()
			w.ranks = 1 + 3*(from%2)
			p, q := w.Process(), w.Process()
			steps, stopped, ended := make(chan struct{}), make(chan struct{}), make(chan error)
			p.Hook = func(c disktest.Call) error {
				if c.N == from {
					close(stopped)
				}
				if c.N >= from {
					<-steps
				}
				return nil
			}
			over := make(chan struct{})
			go func() {
				err := protect.run(w, p)
				close(over)
				ended <- err
			}()
			select {
			case <-stopped:
			case <-over: // it had fewer calls at so many ranks
			}
			q.Hook = func(c disktest.Call) error {
				if c.N%pace.of > 0 {
					return nil
				}
				for range pace.steps {
					select {
					case steps <- struct{}{}:
					case <-over:
						return nil
					}
				}
				return nil
			}
			r, err := w.statusBy(q)
			close(steps)
			must(t, <-ended)
			what := fmt.Sprintf("%d calls for %d of status, from %d", pace.steps, pace.of, from)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			seen[r.Generation]++
			for _, n := range r.Nodes {
				was := r.Generation == 1 && n.Dir == "/n1" && n.Status == Changed
				if !was && (n.Status != Intact || len(n.Findings) > 0) {
					t.Errorf("%s: generation %d: %s is %s: %v", what, r.Generation, n.Dir, n.Status, n.Findings)
				}
			}
			for _, note := range r.Notes {
				if !strings.Contains(note, "read beside another run") {
					t.Errorf("%s: %s", what, note)
				}
			}
		}
	}
	if seen[1] == 0 || seen[2] == 0 {
		t.Errorf("generations %v", seen)
	}
}

// TestStatusBesideSnapshot has status look at roots while the next snapshot is protected, and while the last one is
// protected anew: it answers for the newest one that is in force.
func TestStatusBesideSnapshot(t *testing.T) {
	t.Parallel()
	for _, step := range []int64{1, 2} {
		w := newRoots(t, 3, 1, 1)
		_, err := w.protectStep(w.Process(), 1, 0)
		must(t, err)
		w.save(2)
		protect := pairVerb{"protect", false, func(x *world, p *disktest.Process) error {
			_, err := (&roots{x, nil}).protectStep(p, step, 0)
			return err
		}}
		begin, end := lockedAt(t, w.world, &protect)
		p := w.Process()
		p.CallAt((begin+end)/2, func() {
			r, err := w.with(protection.Settings{Roots: true, Step: Latest}).statusBy(w.Process())
			if err != nil || !r.Protected || !r.Intact || *r.Step != 1 {
				t.Errorf("beside protect of step-%d: %v: %+v", step, err, r)
			}
			if busy := err == nil && r.Nodes[0].Busy != nil; busy != (step == 1) {
				t.Errorf("beside protect of step-%d: busy %v, %+v", step, busy, r)
			}
		})
		must(t, protect.run(w.world, p))
	}
}
