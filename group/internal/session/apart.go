package session

import (
	"path/filepath"
	"slices"
	"strings"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
)

// Apart returns an error where one of the directories here is, or lies in, another. It makes and changes none of them.
func Apart(o Setup, dirs []string) error {
	nodes, err := nodesAt(&o.Settings, dirs, 0)
	if err != nil {
		return err
	}
	return nodesApart(Defaulted(o).Disk, nodes, o.Meta)
}

// Apart is the function Apart for the nodes at this rank, wherever they are by now, and for additional ones.
func (s *Session) Apart(additional ...*store.Node) error {
	return nodesApart(s.Disk, slices.Concat(s.Nodes, additional), s.Meta)
}

func nodesApart(d disk.Disk, nodes []*store.Node, meta string) error {
	var dirs, names []string
	for _, n := range nodes {
		if n.Absent == "" {
			dirs, names = append(dirs, n.DirPath), append(names, n.DirName)
		}
	}
	if meta != "" { // or the next run would protect it
		dirs, names = append(dirs, meta), append(names, meta)
	}
	paths, above := make([]string, len(dirs)), make([][]disk.FileID, len(dirs))
	for i, dir := range dirs {
		if paths[i], _ = disk.RealPath(d, dir); paths[i] != "" { // one that cannot be opened is failing
			above[i] = disk.Above(d, paths[i])
		}
	}
	for i, a := range paths {
		for j, b := range paths {
			if i == j || a == "" || b == "" {
				continue
			}
			rel, err := filepath.Rel(a, b)
			below := err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
			height := -1 // how far above b a is, whatever its path
			if above[i][0] != (disk.FileID{}) {
				height = slices.Index(above[j], above[i][0])
			}
			switch {
			case rel == ".", height == 0:
				return store.Inputf("%s and %s are the same directory: give every node its own", names[i], names[j])
			case below, height > 0:
				return store.Inputf("%s lies in %s: give directories that lie apart", names[j], names[i])
			}
		}
	}
	return nil
}

// Nested returns an error where another directory here lies in what a node has, as one that is mounted there does, or one
// that is a mount of a part of it: its paths do not tell.
func (s *Session) Nested(n *store.Node, l *tree.Listing) error {
	for _, o := range s.Nodes {
		if o == n || o.Dir == nil {
			continue
		}
		info, err := o.Dir.Lstat(".")
		if err != nil {
			return err
		}
		if p := l.Directory(disk.Identity(info)); p != "" {
			return store.Inputf("%s is %s, too: give directories that lie apart", o.DirName, n.Path(p))
		}
	}
	return nil
}
