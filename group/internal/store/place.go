package store

import (
	"errors"
	"io/fs"

	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
)

// Identify returns what a directory says. A verb reads it anew, once it has the lock.
func Identify(d disk.Disk, dir string) (id protection.Identity) {
	opened, err := d.Open(dir)
	defer func() { id.Name = tree.WholePath(dir) }()
	if err != nil {
		return protection.Identity{Node: -1, Empty: errors.Is(err, fs.ErrNotExist)}
	}
	defer opened.Close()
	files, entries, failed := contents(opened)
	id = protection.Identity{Node: -1, Empty: failed == nil && !files && isUnused(entries)}
	var s State
	var newest Held
	for _, e := range entries {
		kind, g, ok := NameOf(e.Name())
		if !ok {
			continue
		}
		l, parsed, err, _ := readGeneration(opened, e.Name(), g)
		h := Held{Generation: g, Group: parsed.Group, Node: l.Node, Nodes: parsed.Nodes, Committed: kind == GenerationName}
		if l.Node >= 0 {
			id.SetIndex = parsed.SetIndex
		}
		if err == nil {
			h.Epoch, id.Held = l.Manifest.Epoch, true
			if h.Committed && (h.Epoch > newest.Epoch || h.Epoch == newest.Epoch && g > newest.Generation) {
				id.Names, id.FormerNames, newest = l.Manifest.Names, nil, h
				if r := l.Manifest.Replaces; r != nil {
					id.FormerNames = r.Names
				}
			}
		}
		s.Held = append(s.Held, h)
	}
	s.Node = -1
	s.Say()
	id.Group, id.Node, id.Nodes, id.Next = s.Group, s.Node, s.Claimed.Nodes, s.Next
	return id
}
