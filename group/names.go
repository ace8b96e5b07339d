package group

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"slices"
	"sort"
	"volley/group/internal/tree"

	"volley/internal/disk"
)

// findSources finds out under which of its names a file still holds what was protected: its bytes are read by that one,
// and a name gets no others. Where all names are one file there is nothing to find out. Where they are several they are
// compared by their digests or, without reading them, by their times.
func (m *Manifest) findSources(ctx context.Context, dir disk.Dir, l *tree.Listing, x *Member, read bool) error {
	links := linksOf(x)
	x.copies = map[tree.Name][]tree.Name{}
	var list []segment
	if len(links) > 0 && read {
		list = m.segments(tree.ExtentsOf(x.Entries))
	}
	for _, e := range x.Entries {
		if links[e.Path] == nil {
			continue
		}
		e.Source = ""
		type other struct {
			path tree.Name
			fs.FileInfo
		}
		var found []other // one name of each inode
		for _, p := range slices.Concat([]tree.Name{e.Path}, links[e.Path]) {
			info, err := dir.Lstat(string(p))
			if err != nil || l.Unreadable(p) != nil || !info.Mode().IsRegular() || info.Size() != e.Size {
				continue
			}
			if !slices.ContainsFunc(found, func(o other) bool { return disk.Linked(o) != disk.FileID{} && disk.Linked(o) == disk.Linked(info) }) {
				found = append(found, other{p, info})
			}
		}
		if len(found) == 0 {
			continue
		}
		sameTime := func(o other) bool { return tree.Seen(o.path, o).SameTime(e) }
		var holding []tree.Name
		for _, o := range found {
			same := sameTime(o)
			if read && len(found) == 1 {
				same = true // which is found out when it is read
			} else if read {
				var err error
				if same, err = m.holds(ctx, dir, o.path, x, list, e); err != nil && ctx.Err() != nil {
					return err
				}
			}
			if same {
				holding = append(holding, o.path)
			}
		}
		switch i := slices.IndexFunc(found, sameTime); {
		case holding != nil:
			e.Source, x.copies[e.Path] = holding[0], holding[1:]
		case i >= 0: // it has rotted; most of its bytes may be right
			e.Source = found[i].path
		}
	}
	return nil
}

// linksOf returns the further names of files, by file.
func linksOf(x *Member) map[tree.Name][]tree.Name {
	links := map[tree.Name][]tree.Name{}
	for _, e := range x.Entries {
		if e.Type == tree.TypeLink {
			links[e.Target] = append(links[e.Target], e.Path)
		}
	}
	return links
}

// holds reports whether what has a name holds what a file of a record, whose segments are listed, did.
func (m *Manifest) holds(ctx context.Context, dir disk.Dir, p tree.Name, x *Member, list []segment, was *tree.Entry) (bool, error) {
	f, err := dir.OpenFile(string(p), os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	block := make([]byte, min(m.BlockBytes, m.ChunkBytes))
	first := sort.Search(len(list), func(j int) bool { return list[j].at >= was.Offset })
	for j := first; j < len(list) && list[j].at < was.Offset+was.Size; j++ {
		g := list[j]
		if _, err := f.ReadAt(block[:g.n], g.at-was.Offset); err != nil || ctx.Err() != nil {
			return false, cmp.Or(context.Cause(ctx), err)
		}
		if !m.sameDigest(block[:g.n], x.Segments, j) {
			return false, nil
		}
	}
	return true, nil
}
