package group

import (
	"errors"
	"io/fs"
	"slices"

	"volley/internal/disk"
)

// A Part says which of several groups a group is that were chosen together, as package sets does. The zero one
// says nothing.
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
}

// Identify returns what a directory says. A verb reads it anew, once it has the lock.
func Identify(dir string) Identity { return identify(disk.OS, dir) }

func identify(d disk.Disk, dir string) Identity {
	at, err := d.Open(dir)
	if err != nil {
		return Identity{Node: -1, Empty: errors.Is(err, fs.ErrNotExist)}
	}
	defer at.Close()
	id, err := readIdentity(at)
	files, own, failed := contents(at)
	is := Identity{Group: id.Group, Node: id.Node, Nodes: id.Nodes, Part: id.Part, Next: id.Next}
	if err != nil {
		is = Identity{Node: -1, Empty: failed == nil && !files && empty(own)}
	}
	for _, e := range own {
		kind, _, ok := nameOf(e.Name())
		if !ok || kind != manifestName && kind != pendingName {
			continue
		}
		if is.Held = true; is.Nodes > 0 {
			continue
		}
		text, _ := disk.ReadText(at, metaPath(e.Name()), mostManifest)
		if m, wrong := DecodeManifest(text); wrong == nil {
			if n := m.whose(at); n >= 0 {
				is = Identity{Group: m.Group, Node: n, Nodes: m.Nodes, Part: m.Part, Held: true}
			}
		}
	}
	return is
}

// whose returns the node whose own record a directory without a good node.json has; -1: none, or several have the same.
func (m *Manifest) whose(dir disk.Dir) int {
	is, err := disk.SumText(dir, recordPath(m.Generation), mostRecord)
	same := func(r Record) bool { return err == nil && r.SHA256 == is }
	n := slices.IndexFunc(m.Records, same)
	if n >= 0 && slices.ContainsFunc(m.Records[n+1:], same) {
		return -1
	}
	return n
}

// Order returns, by node of the group, which of the directories is its: those that say which node they
// are keep their places, and the others take the places that are free, in their order. Where
// directories contradict each other, which the verbs report, it is the order in which they are given.
func Order(ids []Identity) []int {
	order := make([]int, len(ids))
	given := slices.Clone(order)
	for i := range ids {
		order[i], given[i] = -1, i
	}
	group := ""
	for i, id := range ids {
		n := placeIn(Place{id.Node, id.Nodes}, id.Next, len(ids))
		switch {
		case n < 0:
			continue
		case n >= len(ids) || order[n] >= 0 || group != "" && id.Group != group:
			return given
		}
		order[n], group = i, id.Group
	}
	for i, id := range ids {
		if id.Node < 0 {
			order[slices.Index(order, -1)] = i
		}
	}
	return order
}
