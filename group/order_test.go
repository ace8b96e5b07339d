package group

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOrder recovers groups whose directories are given in another order, lost ones in others' places, or under the names that they
// had: those get their own files.
func TestOrder(t *testing.T) {
	t.Parallel()
	start := newWorld(5, 2)
	must(t, start.protect())
	before := start.trees()
	for seed := range uint64(12) {
		w, rng := start.clone(), rand.New(rand.NewPCG(seed, 2))
		anew := seed%2 == 0
		is := map[string]int{} // numbers of directories; of those at other places, in the order in which these are given
		lost := rng.Perm(5)[:2]
		for _, n := range lost {
			if w.RemoveAll(w.dirs[n]); anew {
				w.dirs[n] = fmt.Sprint("/new", n)
			}
		}
		for n, dir := range w.dirs {
			is[dir] = n
		}
		rng.Shuffle(5, func(i, j int) { w.dirs[i], w.dirs[j] = w.dirs[j], w.dirs[i] })
		r, err := w.recoverBy(w.Process(), RecoverOptions{})
		must(t, err)
		last := -1
		for n, x := range r.Nodes {
			if node := is[x.Dir]; n != node && !(anew && (n == lost[0] || n == lost[1])) {
				t.Errorf("seed %d: node %d is %s", seed, n, x.Dir)
			} else if at := slices.Index(w.dirs, x.Dir); anew && (n == lost[0] || n == lost[1]) {
				if at < last {
					t.Errorf("seed %d: places are not taken in their order: %v", seed, r.Nodes)
				}
				last = at
			}
			must(t, diff(x.Dir, before[n], w.Tree(x.Dir, ".volley")))
		}
		must(t, w.whole())
	}
}
