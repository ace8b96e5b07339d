package store

import (
	"errors"
	"io/fs"

	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
)

// Identify returns what a directory says. A verb reads it anew, once it has the lock.
func Identify(d disk.Disk, dir string) (is protection.Identity) {
	at, err := d.Open(dir)
	defer func() { is.Name = tree.WholePath(dir) }()
	if err != nil {
		return protection.Identity{Node: -1, Empty: errors.Is(err, fs.ErrNotExist)}
	}
	defer at.Close()
	files, own, failed := contents(at)
	is = protection.Identity{Node: -1, Empty: failed == nil && !files && empty(own)}
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
			is.SetIndex = id.SetIndex
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
