package group

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"volley/group/internal/tree"
	"volley/internal/disk/disktest"
)

// newLong returns a group of 4 nodes of which any 2 may be lost, whose data takes many windows.
func newLong(t *testing.T) *world {
	w := newWorld(4, 2)
	rng := rand.New(rand.NewPCG(4, 2))
	for _, dir := range w.dirs {
		for i := range 4 {
			w.WriteFile(fmt.Sprint(dir, "/long", i), random(rng, 300_000+rng.IntN(100_000)), 0o600)
		}
	}
	must(t, w.protect())
	return w
}

// readsOf counts what a verb reads of the data and parity of nodes, by file.
func readsOf(w *world, nodes []int, run func(p *disktest.Process)) map[string]int {
	count := map[string]int{}
	for _, c := range w.Calls(run) {
		data := !strings.Contains(c.Path, tree.MetaName) || strings.HasSuffix(c.Path, "/parity")
		if c.Op == "read" && data && slices.ContainsFunc(nodes, func(n int) bool { return strings.HasPrefix(c.Path, w.dirs[n]+"/") }) {
			count[c.Path]++
		}
	}
	return count
}

// TestRecoverReadsOnce checks that recover reads what the nodes that are not lost have as often as verify does: once.
// It does so too where one of them lacks a record file.
func TestRecoverReadsOnce(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name string
		w    *world
		file string // what node 0 lacks
	}{
		{"whole", newLong(t), ""},
		{"without a record", newLong(t), "generation.1/record"},
		{"without a copy of a record", newLong(t), "generation.1/record.3"},
	} {
		w := x.w
		want := readsOf(w, []int{0, 3}, func(p *disktest.Process) {
			_, err := w.verifyBy(p)
			must(t, err)
		})
		was := w.stored()
		for _, lost := range [][]int{{1, 2}, {1}} {
			w.lose(0, lost...)
			if x.file != "" {
				w.Remove("/n0/.volley/" + x.file)
			}
			is := readsOf(w, []int{0, 3}, func(p *disktest.Process) {
				_, err := w.recoverBy(p, RecoverOptions{})
				must(t, err)
			})
			if len(want) < 3 || !maps.Equal(is, want) {
				t.Errorf("%s, %v lost: recover reads %v, and verify %v", x.name, lost, is, want)
			}
			must(t, w.recover())
			must(t, diff(x.name, was, w.stored()))
		}
	}
}

// TestRebuildTooMuch has more damaged in a block than may be: all other files of the lost node come back.
func TestRebuildTooMuch(t *testing.T) {
	t.Parallel()
	w := newLong(t)
	was := contentOf(w, "/n1/long3")
	w.lose(0, 1)
	for n := range 4 {
		if n != 1 {
			w.Overwrite(fmt.Sprintf("/n%d/long0", n), 1000, slices.Repeat([]byte("rotten"), 200_000/6), true)
		}
	}
	dry, err := w.recoverBy(w.Process(), RecoverOptions{DryRun: true})
	must(t, err)
	r, err := w.recoverBy(w.Process(), RecoverOptions{})
	must(t, err)
	if r.Blocks != dry.Blocks {
		t.Errorf("it says that %d blocks come back, and has brought back %d", dry.Blocks, r.Blocks)
	}
	if r.Incomplete() == nil || !strings.Contains(fmt.Sprint(r.Unrecovered), "long0: too many nodes are lost, damaged or changed") || strings.Contains(fmt.Sprint(r.Unrecovered), "long3") {
		t.Errorf("%q", r.Unrecovered)
	}
	if contentOf(w, "/n1/long3") != was {
		t.Errorf("a file that could come back has not")
	}
}

// TestPartParity has a node lost while users have taken away what another one had, and then put it back. What recover could
// not make of the lost node's parity it names, and no glance calls the node whole. Protect makes it, or recover does. Then
// another node may be lost.
func TestPartParity(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"protect", "recover"} {
		w := newWorld(4, 1)
		rng := rand.New(rand.NewPCG(4, 1))
		for _, n := range []int{0, 2} {
			w.WriteFile(fmt.Sprintf("/n%d/long", n), random(rng, 400_000), 0o600)
		}
		for _, name := range []string{"plain", "big", "sub", "twin", "closed", "odd \xff"} { // node 1 has no data, and all of its entries come back
			w.RemoveAll("/n1/" + name)
		}
		w.deletes = true
		must(t, w.protect())
		was := w.trees()
		w.MkdirAll("/away", 0o755)
		w.Rename("/n2/long", "/away/long")
		w.lose(0, 1)
		r, err := w.recoverBy(w.Process(), RecoverOptions{})
		must(t, err)
		if left := fmt.Sprint(r.Unrecovered); r.Incomplete() == nil || !strings.Contains(left, "/n1/.volley/generation.1/parity") || !strings.Contains(left, "protect") {
			t.Errorf("%s: %q", verb, r.Unrecovered)
		}
		must(t, diff("node 1", was[1], w.tree(1)))
		again, err := w.recoverBy(w.Process(), RecoverOptions{})
		must(t, err)
		if again.Incomplete() == nil {
			t.Errorf("%s: another recover says that all is back", verb)
		}
		w.Rename("/away/long", "/n2/long")
		for _, glance := range []bool{true, false} {
			v, err := w.examineBy(w.Process(), glance)
			must(t, err)
			if v.Nodes[1].Status != Damaged || v.Intact || v.MayLose > 0 {
				t.Errorf("%s: glance %v: %+v", verb, glance, v)
			}
		}
		if verb == "protect" {
			must(t, w.protect())
		} else {
			must(t, w.recover())
		}
		must(t, w.whole())
		v, err := w.statusBy(w.Process())
		must(t, err)
		if !v.Intact || v.MayLose != 1 {
			t.Errorf("after %s: %+v", verb, v)
		}
		w.lose(0, 0)
		must(t, w.recover())
		must(t, diff("node 0 after "+verb, was[0], w.tree(0)))
	}
}
