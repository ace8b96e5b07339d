package store

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"volley/group/internal/tree"
	"volley/internal/disk"
)

// A Part says which of several groups, chosen together by package sets, a group is. The zero one says nothing.
type Part struct {
	Set  int `json:"set,omitempty"` // from 0
	Sets int `json:"sets,omitempty"`
}

const mostSets = 1 << 12

// Valid reports whether there may be such a part.
func (p Part) Valid() bool {
	return p == Part{} || 0 <= p.Set && p.Set < p.Sets && p.Sets <= mostSets
}

// An Identity is which node of which group a directory says that it is. Node is -1 where it says nothing.
type Identity struct {
	Group string `json:"group"`
	Node  int    `json:"node"`
	Nodes int    `json:"nodes"` // of the group; 0: not known
	Part
	Next  Place `json:"next,omitzero"`   // in the group that it is resized to
	Held  bool  `json:"held,omitempty"`  // there is a manifest, so that a protect has come that far
	Empty bool  `json:"empty,omitempty"` // there is no directory, or nothing in it: a node that is it is lost

	Name   tree.Name   `json:"name,omitempty"`   // of the directory, by which its group knows it: its whole path, or as Options.Names has it
	Names  []tree.Name `json:"names,omitempty"`  // of the directories of the group when it was last protected, by node
	Before []tree.Name `json:"before,omitempty"` // of those of the epoch before, where the group has been resized
}

func Whole(dir string) tree.Name {
	if path, err := filepath.Abs(dir); err == nil {
		dir = path
	}
	return tree.Name(dir)
}

// Identify returns what a directory says. A verb reads it anew, once it has the lock.
func Identify(d disk.Disk, dir string) (is Identity) {
	at, err := d.Open(dir)
	defer func() { is.Name = Whole(dir) }()
	if err != nil {
		return Identity{Node: -1, Empty: errors.Is(err, fs.ErrNotExist)}
	}
	defer at.Close()
	files, own, failed := contents(at)
	is = Identity{Node: -1, Empty: failed == nil && !files && empty(own)}
	var s State
	var newest Held
	for _, e := range own {
		kind, g, ok := NameOf(e.Name())
		if !ok {
			continue
		}
		l, id, err, _ := readGeneration(at, e.Name(), g)
		h := Held{Generation: g, Group: id.Group, Node: l.Node, Nodes: id.Nodes, Committed: kind == GenerationName}
		if l.Node >= 0 {
			is.Part = id.Part
		}
		if err == nil {
			h.Epoch, is.Held = l.Manifest.Epoch, true
			if h.Committed && (h.Epoch > newest.Epoch || h.Epoch == newest.Epoch && g > newest.Generation) {
				is.Names, is.Before, newest = l.Manifest.Names, nil, h
				if r := l.Manifest.Replaces; r != nil {
					is.Before = r.Names
				}
			}
		}
		s.Held = append(s.Held, h)
	}
	s.Node = -1
	s.Say()
	is.Group, is.Node, is.Nodes, is.Next = s.Group, s.Node, s.Said.Nodes, s.Next
	return is
}

// Order returns, by node of the group, which of the directories is its: those that say which node they
// are keep their places. The others take the free places of their names, and then those that are left, in their order. Where
// directories contradict each other, which the verbs report, it is the order in which they are given.
func Order(ids []Identity) []int {
	order := make([]int, len(ids))
	given := slices.Clone(order)
	for i := range ids {
		order[i], given[i] = -1, i
	}
	group := ""
	for i, id := range ids {
		n := PlaceIn(Place{id.Node, id.Nodes}, id.Next, len(ids))
		switch {
		case n < 0:
			continue
		case n >= len(ids) || order[n] >= 0 || group != "" && id.Group != group:
			return given
		}
		order[n], group = i, id.Group
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
func named(ids []Identity, of Identity, order []int) int {
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
