//go:build verifyall

package group_test

import (
	"math/rand/v2"
	"testing"
)

// TestVerifyAllLosses loses every set of 1 to 4 of 16 nodes with small trees, and a random 50
// with big ones.
func TestVerifyAllLosses(t *testing.T) {
	t.Parallel()
	var all [][]int
	subsets(16, 4, func(set []int) { all = append(all, set) })
	rng := rand.New(rand.NewPCG(1, 1))
	var some, eight [][]int
	for range 50 {
		some = append(some, all[rng.IntN(len(all))])
		eight = append(eight, rng.Perm(16)[:8])
	}
	t.Run("small", func(t *testing.T) { losses(t, 4, 8, 4000, all) })
	t.Run("big", func(t *testing.T) { losses(t, 4, 20, 2<<20, some) })
	t.Run("small, R = 8", func(t *testing.T) { losses(t, 8, 8, 4000, eight) })
}
