package sim_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"volley/sim"
)

// TestFront compares with the definition, on small numbers, so that many are equal.
func TestFront(t *testing.T) {
	type entry struct{ number, c1, c2, pieces int }
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		list := make([]entry, rng.IntN(8))
		for i := range list {
			list[i] = entry{i, rng.IntN(4), rng.IntN(6), rng.IntN(3)}
		}
		costOf := func(e entry) sim.Cost { return sim.Cost{C1: e.c1, C2: e.c2, Pieces: e.pieces} }
		var want []entry
		for _, e := range list {
			c := costOf(e)
			if !slices.ContainsFunc(list, func(o entry) bool {
				d := costOf(o)
				same := c.C1 == d.C1 && c.PacketC2() == d.PacketC2()
				return same && o.number < e.number || !same && d.C1 <= c.C1 && d.PacketC2() <= c.PacketC2()
			}) {
				want = append(want, e)
			}
		}
		slices.SortFunc(want, func(a, b entry) int { return a.c1 - b.c1 })
		asked := 0
		got := sim.Front(list, func(e entry) sim.Cost { asked++; return costOf(e) })
		if !slices.Equal(got, want) || asked != len(list) {
			t.Fatalf("of %v: %v after %d questions, want %v", list, got, asked, want)
		}
	}
}
