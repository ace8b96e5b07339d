package store

import (
	"errors"
	"io/fs"

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
	Nodes int    `json:"nodes"`          // of the group; 0: not known
	Step  int64  `json:"step,omitempty"` // of the snapshot that says so, of a root
	Part
	Next  Place `json:"next,omitzero"`   // in the group that it is resized to
	Held  bool  `json:"held,omitempty"`  // there is a manifest, so that a protect has come that far
	Empty bool  `json:"empty,omitempty"` // there is no directory, or nothing in it: a node that is it is lost

	Name   tree.Name   `json:"name,omitempty"`   // of the directory, by which its group knows it: its whole path, or as Options.Names has it
	Names  []tree.Name `json:"names,omitempty"`  // of the directories of the group when it was last protected, by node
	Before []tree.Name `json:"before,omitempty"` // of those of the epoch before, where the group has been resized
}

// Identify returns what a directory says. A verb reads it anew, once it has the lock.
func Identify(d disk.Disk, dir string) (is Identity) {
	at, err := d.Open(dir)
	defer func() { is.Name = tree.WholePath(dir) }()
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

// NewestManifest returns that of the newest generation which a node has committed, whoever made it; nil: there is none.
func NewestManifest(d disk.Dir) (m *Manifest) {
	_, own, _ := contents(d)
	for _, e := range own {
		kind, g, ok := NameOf(e.Name())
		if !ok || kind != GenerationName || m != nil && g < m.Generation {
			continue
		}
		if l, _, err, _ := readGeneration(d, e.Name(), g); err == nil {
			m = l.Manifest
		}
	}
	return m
}
