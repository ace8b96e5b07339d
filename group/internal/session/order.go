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
	unchanged := slices.Clone(order)
	newest := int64(0)
	for i, id := range ids {
		order[i], unchanged[i] = -1, i
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
			return unchanged
		}
		order[n], group = i, id.Group
	}
	for i, id := range ids {
		if id.Step < newest && id.Node >= 0 && id.Nodes == len(ids) && order[id.Node] < 0 {
			order[id.Node] = i
		}
	}
	for i, id := range ids {
		if n := freePlace(ids, id, order); n >= 0 {
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

// freePlace returns the free place to which most directories give the name of a directory that does not say its node; -1:
// there is none.
func freePlace(ids []protection.Identity, unnamed protection.Identity, order []int) int {
	best, votes := -1, make([]int, len(ids))
	for _, id := range ids {
		n := slices.Index(id.Names, unnamed.Name)
		if unnamed.Node >= 0 || len(id.Names) != len(ids) || n < 0 || order[n] >= 0 || slices.Contains(id.Names[n+1:], unnamed.Name) {
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
	var former []int // directories of the group as it was
	var old []protection.Identity
	for i := range names {
		if !added[i] {
			former, old = append(former, i), append(old, ids[i])
		}
	}
	k, formerNodes := len(names)-len(remove), len(former)
	if k < 2 || k == formerNodes {
		return nil, store.Inputf("a group of %d nodes, and %d are added and %d removed: want another number of nodes, 2 or more. To move a node, recover into an empty directory in its place", formerNodes, len(names)-formerNodes, len(remove))
	}
	var removed []int
	for _, name := range remove {
		i := slices.Index(names, name)
		if i >= 0 && slices.Contains(names[i+1:], name) {
			return nil, store.Inputf("%q is the directory of several nodes: name the node by its number, from 0", name)
		}
		if n, err := strconv.Atoi(name); i < 0 && err == nil && n >= 0 {
			if list := formerNames(ids, k); n < len(list) { // it is repeated
				i = slices.IndexFunc(ids, func(id protection.Identity) bool { return id.Name == list[n] })
			} else if list == nil && n < formerNodes {
				i = former[Order(old)[n]]
			}
		}
		if !slices.Contains(former, i) || slices.Contains(removed, i) {
			return nil, store.Inputf("%q is to be removed, and is no node of the group, or named twice: name its directory, or its number, 0 to %d", name, formerNodes-1)
		}
		removed = append(removed, i)
	}
	order := slices.Repeat([]int{-1}, k)
	take := func(i, n int) {
		if n >= 0 && n < k && order[n] < 0 && !slices.Contains(removed, i) && !slices.Contains(order, i) {
			order[n] = i
		}
	}
	for i, id := range ids {
		if id.Nodes == k || id.Next.Nodes == k {
			take(i, store.PlaceIn(protection.Place{Node: id.Node, Nodes: id.Nodes}, id.Next, k))
		}
	}
	for _, i := range former {
		take(i, ids[i].Node)
	}
	for i := range names {
		take(i, slices.Index(order, -1))
	}
	return append(order, removed...), nil
}

// formerNames returns the names of the directories of the epoch before, by node, where the group has so many nodes already.
func formerNames(ids []protection.Identity, nodes int) []tree.Name {
	for _, id := range ids {
		if id.Nodes == nodes && id.FormerNames != nil {
			return id.FormerNames
		}
	}
	return nil
}
