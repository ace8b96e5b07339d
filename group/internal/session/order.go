package session

import (
	"slices"

	"volley/group/internal/store"
)

// Order returns, by node of the group, which of the directories is its: those that say which node they
// are keep their places. The others take the free places of their names, and then those that are left, in their order. Where
// directories contradict each other, which the verbs report, it is the order in which they are given. What the newest
// snapshot of a root says counts for more than what older ones do, which may have had other nodes.
func Order(ids []store.Identity) []int {
	order := make([]int, len(ids))
	given := slices.Clone(order)
	newest := int64(0)
	for i, id := range ids {
		order[i], given[i] = -1, i
		if id.Node >= 0 {
			newest = max(newest, id.Step)
		}
	}
	group := ""
	for i, id := range ids {
		n := store.PlaceIn(store.Place{Node: id.Node, Nodes: id.Nodes}, id.Next, len(ids))
		switch {
		case n < 0 || id.Step < newest:
			continue
		case n >= len(ids) || order[n] >= 0 || group != "" && id.Group != group:
			return given
		}
		order[n], group = i, id.Group
	}
	for i, id := range ids {
		if id.Step < newest && id.Node >= 0 && id.Nodes == len(ids) && order[id.Node] < 0 {
			order[id.Node] = i
		}
	}
	for i, id := range ids {
		if n := named(ids, id, order); n >= 0 {
			order[n] = i
		}
	}
	for i := range ids {
		if !slices.Contains(order, i) {
			order[slices.Index(order, -1)] = i
		}
	}
	return order
}

// named returns the free place that most directories know by the name of one that does not say which node it is; -1:
// there is none.
func named(ids []store.Identity, of store.Identity, order []int) int {
	best, votes := -1, make([]int, len(ids))
	for _, id := range ids {
		n := slices.Index(id.Names, of.Name)
		if of.Node >= 0 || len(id.Names) != len(ids) || n < 0 || order[n] >= 0 || slices.Contains(id.Names[n+1:], of.Name) {
			continue
		}
		if votes[n]++; best < 0 || votes[n] > votes[best] {
			best = n
		}
	}
	return best
}
