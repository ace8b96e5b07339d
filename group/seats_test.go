package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"volley/group/internal/session"
	"volley/group/internal/tree"
	"volley/group/protection"
)

// copies returns how often each tree of a snapshot is there, in roots and spares.
func (w *roots) copies(step int64) map[string]int {
	list := map[string]int{}
	for n, root := range w.dirs {
		for _, name := range append(w.names(n), ".") {
			if dir := fmt.Sprintf("%s/%s/%s", root, name, session.StepName(step)); w.Exists(dir) && (name == "." || strings.HasPrefix(name, session.SparePrefix)) {
				list[w.Tree(dir, tree.MetaName)]++
			}
		}
	}
	return list
}

// TestSeats restarts a job of four nodes with more roots and with fewer, in another order, on any number of ranks. All data is
// there once, also when more is lost then, the job saves on, and nothing is left of the other number.
func TestSeats(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		r     int
		roots []string // of which 4 and up are new, and a gap is a node that is lost
	}{
		{1, []string{"/r3", "/r1", "/r0"}}, {1, []string{"/r2", "/r0", "/r3", "/r1"}}, {1, []string{"/r4", "/r3", "/r1", "/r0"}},
		{1, []string{"/r0", "/r1", "/r2", "/r3", "/r4", "/r5"}}, {2, []string{"/r3", "/r1"}}, {2, []string{"/r6", "/r5", "/r4", "/r1", "/r0"}},
	} {
		for _, ranks := range []int{1, 2, len(x.roots)} {
			name := fmt.Sprintf("R=%d, roots %q, %d ranks", x.r, x.roots, ranks)
			w := newRoots(t, 4, x.r, 10, 20)
			w.save(30) // which is never protected
			w.RemoveAll("/r1/step-30")
			w.MkdirAll("/r1/step-15.draft/sub", 0o755)
			w.dirs, w.ranks = x.roots, ranks
			want := map[string]int{}
			for _, tree := range w.was[20] {
				want[tree]++
			}
			for _, lost := range []int{0, 1} { // of those that have come back
				if x.r > lost && lost > 0 {
					w.lose(0, 0)
				}
				r, err := w.latest(w.Process())
				if err != nil || *r.Step != 20 || lost == 0 && !strings.Contains(strings.Join(r.Notes, ""), "step-30 is passed over: it is not protected") {
					t.Fatalf("%s: %+v, %v", name, r, err)
				}
				if is := w.copies(20); !maps.Equal(is, want) {
					t.Fatalf("%s: there is %v: want %v", name, is, want)
				}
				if len(w.copies(30)) > 0 {
					t.Fatalf("%s: step-30 is not set aside", name)
				}
			}
			w.r = 1 // which as many as two nodes may have
			v, err := w.with(protection.Settings{Roots: true, Step: 20}).verifyBy(w.Process())
			if err != nil || !v.Intact || len(v.Nodes) != 4 {
				t.Fatalf("%s: %+v, %v", name, v, err)
			}
			for i, step := range []int64{30, 40} {
				w.save(step)
				p, err := w.protectStep(w.Process(), step, 2)
				must(t, err)
				if removed := [][]int64{{10}, {20}}[i]; !slices.Equal(p.Removed, removed) {
					t.Fatalf("%s: step %d removes %d: want %d", name, step, p.Removed, removed)
				}
			}
			for n := range w.dirs {
				if is := w.names(n); !slices.Equal(is, []string{"step-30", "step-40"}) {
					t.Fatalf("%s: %s has %q", name, w.dirs[n], is)
				}
			}
		}
	}
}

// TestSeatsStale has a node come back that was lost before a snapshot was in force, which the others have made anew since.
func TestSeatsStale(t *testing.T) {
	t.Parallel()
	for _, ranks := range []int{1, 4} {
		w := newRoots(t, 4, 1, 10)
		all, want := w.dirs, map[string]int{}
		w.save(20)
		w.dirs = all[:3]
		_, err := w.latest(w.Process())
		w.save(20)
		for _, tree := range w.was[20] {
			want[tree]++
		}
		_, failed := w.protectStep(w.Process(), 20, 0)
		must(t, err, failed)
		w.dirs, w.ranks = all, ranks
		r, err := w.latest(w.Process())
		if is := w.copies(20); err != nil || *r.Step != 20 || !maps.Equal(is, want) {
			t.Errorf("%d ranks: %+v, %v, there is %v: want %v", ranks, r, err, is, want)
		}
	}
}

// TestSeatsBegun goes on where a run had begun with the second one of two spares: each has the node of its name.
func TestSeatsBegun(t *testing.T) {
	t.Parallel()
	w := newRoots(t, 4, 2, 10)
	w.dirs = w.dirs[:2]
	w.MkdirAll("/r1/.spare-3/step-10", 0o755)
	_, err := w.latest(w.Process())
	must(t, err)
	for n, dir := range map[int]string{2: "/r0/.spare-2/step-10", 3: "/r1/.spare-3/step-10"} {
		if !w.Exists(dir) || w.Tree(dir, tree.MetaName) != w.was[10][n] {
			t.Errorf("%s has not what node %d had", dir, n)
		}
	}
}
