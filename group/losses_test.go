package group_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"volley/group"
	"volley/internal/verifyall"
)

// subsets calls f for all sets of 1 to most of n numbers.
func subsets(n, most int, f func([]int)) {
	var extend func(set []int, from int)
	extend = func(set []int, from int) {
		if len(set) > 0 {
			f(append([]int{}, set...))
		}
		if len(set) == most {
			return
		}
		for i := from; i < n; i++ {
			extend(append(set, i), i+1)
		}
	}
	extend(nil, 0)
}

// losses protects 16 nodes, loses sets of them, and recovers each.
func losses(t *testing.T, r, files, most int, sets [][]int) {
	dirs := trees(t, 16, files, most, uint64(r))
	_, err := protect(1, dirs, group.ProtectOptions{Tolerate: r})
	must(t, err)
	before := listings(t, dirs)
	for _, nodes := range sets {
		lose(t, dirs, nodes)
		if _, err := recoverAll(1, dirs); err != nil {
			t.Fatalf("lost %v: %v", nodes, err)
		}
		for _, n := range nodes { // the others are compared at the end
			compare(t, fmt.Sprint("lost ", nodes), before[n:n+1], listings(t, dirs[n:n+1]))
		}
	}
	compare(t, "in the end", before, listings(t, dirs))
	whole(t, 1, dirs)
}

// TestLosses16 loses a seeded dozen of all sets of 1 to 4 of 16 nodes, and some of 8. make verify-all loses more, and then all of them.
func TestLosses16(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(16, 4))
	var all [][]int
	subsets(16, 4, func(set []int) { all = append(all, set) })
	if len(all) != 16+120+560+1820 {
		t.Fatalf("%d sets", len(all))
	}
	t.Run("R = 4", func(t *testing.T) {
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		losses(t, 4, 8, 4000, all[:verifyall.Pick(12, 60)])
	})
	t.Run("R = 8", func(t *testing.T) {
		var sets [][]int
		for range verifyall.Pick(4, 10) {
			sets = append(sets, rng.Perm(16)[:8])
		}
		losses(t, 8, 8, 4000, sets)
	})
}
