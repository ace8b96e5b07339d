package sim

import (
	"cmp"
	"slices"
)

// Front returns the Pareto front of a list by C1 and C2 in packets, the fewest rounds first: every entry but those that
// another one beats in one of the two and at least equals in the other. Of entries that cost the same Front returns the
// first. It asks for the cost of an entry once.
func Front[T any](list []T, costOf func(T) Cost) []T {
	type costed struct {
		entry  T
		rounds int
		c2     float64 // packets
	}
	sorted := make([]costed, len(list))
	for i, x := range list {
		c := costOf(x)
		sorted[i] = costed{x, c.C1, c.PacketC2()}
	}
	slices.SortStableFunc(sorted, func(a, b costed) int {
		return cmp.Or(cmp.Compare(a.rounds, b.rounds), cmp.Compare(a.c2, b.c2))
	})
	var front []T
	least := 0.0 // C2 of the last
	for _, x := range sorted {
		if len(front) == 0 || x.c2 < least {
			front, least = append(front, x.entry), x.c2
		}
	}
	return front
}
