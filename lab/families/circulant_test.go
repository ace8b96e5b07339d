package families

import (
	"slices"
	"testing"

	"volley/algo/schedule"
)

// TestCirculant checks the broadcasts in blocks on up to 200 positions: every position
// receives each block once, and sends only what it has.
func TestCirculant(t *testing.T) {
	for n := 2; n <= 200; n++ {
		c := newCirculant(n)
		for _, blocks := range []int{1, 2, 3, 7, 8, 9, 20} {
			if got, want := blocks-1+c.q(), blocks-1+schedule.Clog(n, 1); got != want {
				t.Fatalf("n=%d, %d blocks: %d rounds, want %d", n, blocks, got, want)
			}
			all := make([]transfers, n)
			for r := range all {
				all[r] = c.transfers(r, blocks)
			}
			for r, x := range all {
				since := make([]int, blocks) // the round after which it has a block
				for block := range since {
					since[block] = len(x.receives)
					if r == 0 {
						since[block] = -1
					}
				}
				for round, block := range x.receives {
					if block < 0 {
						continue
					}
					if since[block] < len(x.receives) {
						t.Fatalf("n=%d, %d blocks: position %d receives block %d again in round %d", n, blocks, r, block, round)
					}
					since[block] = round
					if from := all[x.from[round]]; from.sends[round] != block || from.to[round] != r {
						t.Fatalf("n=%d, %d blocks: position %d receives block %d in round %d, which %d does not send", n, blocks, r, block, round, x.from[round])
					}
				}
				for round, block := range x.sends {
					if block >= 0 && since[block] >= round {
						t.Fatalf("n=%d, %d blocks: position %d sends block %d in round %d, which it has not", n, blocks, r, block, round)
					}
				}
				if slices.Contains(since, len(x.receives)) {
					t.Fatalf("n=%d, %d blocks: position %d has not all: %v", n, blocks, r, since)
				}
			}
		}
	}
}
