package session

import (
	"slices"
	"strconv"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
)

// Order returns, by node of the group, which of the directories is its: those that say which node they
// are keep their places. The others take the free places of their names, and then those that are left, in their order. Where
// directories contradict each other, which the verbs report, it is the order in which they are given. What the newest
// snapshot of a root says counts for more than what older ones do, which may have had other nodes.
func Order(ids []protection.Identity) []int {
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
		n := store.PlaceIn(protection.Place{Node: id.Node, Nodes: id.Nodes}, id.Next, len(ids))
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
func named(ids []protection.Identity, of protection.Identity, order []int) int {
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

// Resized returns the order of directories in a run that resizes their group: those that it is to have, by node, and
// then those that are removed. Nodes keep their numbers as far as there are as many. remove has names of directories, or
// numbers of nodes of the group as it was.
func Resized(names []string, ids []protection.Identity, added []bool, remove []string) ([]int, error) {
	var were []int // directories of the group as it was
	var old []protection.Identity
	for i := range names {
		if !added[i] {
			were, old = append(were, i), append(old, ids[i])
		}
	}
	k, before := len(names)-len(remove), len(were)
	if k < 2 || k == before {
		return nil, store.Inputf("a group of %d nodes, and %d are added and %d removed: want another number of nodes, 2 or more. To move a node, recover into an empty directory in its place", before, len(names)-before, len(remove))
	}
	var gone []int
	for _, name := range remove {
		i := slices.Index(names, name)
		if i >= 0 && slices.Contains(names[i+1:], name) {
			return nil, store.Inputf("%q is the directory of several nodes: name the node by its number, from 0", name)
		}
		if n, err := strconv.Atoi(name); i < 0 && err == nil && n >= 0 {
			if list := replaced(ids, k); n < len(list) { // it is repeated
				i = slices.IndexFunc(ids, func(id protection.Identity) bool { return id.Name == list[n] })
			} else if list == nil && n < before {
				i = were[Order(old)[n]]
			}
		}
		if !slices.Contains(were, i) || slices.Contains(gone, i) {
			return nil, store.Inputf("%q is to be removed, and is no node of the group, or named twice: name its directory, or its number, 0 to %d", name, before-1)
		}
		gone = append(gone, i)
	}
	order := slices.Repeat([]int{-1}, k)
	take := func(i, n int) {
		if n >= 0 && n < k && order[n] < 0 && !slices.Contains(gone, i) && !slices.Contains(order, i) {
			order[n] = i
		}
	}
	for i, id := range ids {
		if id.Nodes == k || id.Next.Nodes == k {
			take(i, store.PlaceIn(protection.Place{Node: id.Node, Nodes: id.Nodes}, id.Next, k))
		}
	}
	for _, i := range were {
		take(i, ids[i].Node)
	}
	for i := range names {
		take(i, slices.Index(order, -1))
	}
	return append(order, gone...), nil
}

// replaced returns the names of the directories of the epoch before, by node, where the group has so many nodes already.
func replaced(ids []protection.Identity, nodes int) []tree.Name {
	for _, id := range ids {
		if id.Nodes == nodes && id.Before != nil {
			return id.Before
		}
	}
	return nil
}
