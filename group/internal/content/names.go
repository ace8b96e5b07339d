package content

import (
	"cmp"
	"context"
	"os"
	"path"
	"slices"
	"sort"
	"sync"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
)

// Chosen reports whether a file of a record is chosen.
type Chosen func(*tree.Entry) bool

// Part reports whether a part of a file is chosen, as the file is.
func (c Chosen) Part(e *tree.Entry, _ store.FilePart) bool { return c(e) }

// AllFiles chooses every file.
func AllFiles(*tree.Entry) bool { return true }

// FindSources finds the name under which each file still holds what was protected, and sets it as its source. It compares
// several names by their digests or, without reading, by their times: no name gets bytes that were not protected under
// it. If none of its names holds the file, it may have moved. Read says which files may be read.
func FindSources(ctx context.Context, m *store.Manifest, dir disk.Dir, listing *tree.Listing, record *store.Record, read Chosen) error {
	links := linksOf(record)
	record.Copies = map[tree.Name][]tree.Name{}
	moved := newStrays(listing, record)
	list := sync.OnceValue(func() []store.FilePart { return m.FilePartsOf(tree.ExtentsOf(record.Entries)) })
	for _, e := range record.Entries {
		if e.Type != tree.TypeFile {
			continue
		}
		e.Source = ""
		named := false
		if links[e.Path] != nil {
			var err error
			if named, err = findName(ctx, m, dir, listing, record, list, e, links[e.Path], read(e)); err != nil {
				return err
			}
		}
		if !named {
			if err := findMoved(ctx, m, dir, listing, record, list, e, moved, read(e)); err != nil {
				return err
			}
		}
	}
	return nil
}

// findName finds out which of the names of a file hold what was protected, and reports whether any does.
func findName(ctx context.Context, m *store.Manifest, dir disk.Dir, listing *tree.Listing, record *store.Record, list func() []store.FilePart, e *tree.Entry, links []tree.Name, read bool) (bool, error) {
	var found []*tree.Entry // one name of each inode
	for _, p := range slices.Concat([]tree.Name{e.Path}, links) {
		listed := listing.Find(p)
		if !IsFile(listed) || listing.Unreadable(p) != nil || listed.Size != e.Size {
			continue
		}
		if !slices.ContainsFunc(found, func(o *tree.Entry) bool { return listing.Linked(o.Path, p) }) {
			found = append(found, listed)
		}
	}
	var holding []tree.Name
	for _, o := range found {
		holds := o.SameTime(e)
		if read && (len(found) > 1 || !holds) { // else a later reading tells
			var err error
			if holds, err = HoldsFile(ctx, m, dir, o.Path, record, list(), e); err != nil && ctx.Err() != nil {
				return false, err
			}
		}
		if holds {
			holding = append(holding, o.Path)
		}
	}
	switch i := slices.IndexFunc(found, e.SameTime); {
	case holding != nil:
		e.Source, record.Copies[e.Path] = holding[0], holding[1:]
	case i >= 0: // it has rotted; most of its bytes may be right
		e.Source = found[i].Path
	case read && len(found) > 0: // it was written to; some of its bytes may be right
		e.Source = found[0].Path
	}
	return holding != nil, nil
}

// findMoved finds a file that has lost its names among the files with its length and time, as a rename keeps both, and
// compares their digests. Without reading, it takes each candidate for one file at most.
func findMoved(ctx context.Context, m *store.Manifest, dir disk.Dir, listing *tree.Listing, record *store.Record, list func() []store.FilePart, e *tree.Entry, moved *strays, read bool) error {
	listed := listing.Find(e.ReadAs())
	unchanged := unmoved(listed, e)
	if unchanged && (!read || e.Nanoseconds == 0) || listing.Unreadable(e.Path) != nil {
		return nil
	}
	tries := moved.similar(e)
	if len(tries) > 0 && read && IsFile(listed) && listed.Size == e.Size {
		if holds, err := HoldsFile(ctx, m, dir, listed.Path, record, list(), e); holds || ctx.Err() != nil {
			return err
		}
	}
	var rotten *tree.Entry
	for _, o := range tries {
		holds := !moved.taken[o.Path]
		if read {
			var err error
			if holds, err = HoldsFile(ctx, m, dir, o.Path, record, list(), e); err != nil {
				if ctx.Err() != nil {
					return err
				}
				continue
			}
		}
		if holds {
			e.Source = o.Path
			moved.take(o)
			return nil
		}
		if rotten == nil && !moved.taken[o.Path] {
			rotten = o
		}
	}
	if read && rotten != nil && !IsFile(listed) { // most of its bytes may be right
		e.Source = rotten.Path
	}
	return nil
}

// Strays are the files of a listing that differ from what the record has under their names: others may have moved there.
type strays struct {
	byKey map[strayKey][]*tree.Entry // by base name, and by none
	taken map[tree.Name]bool         // strays known to be a moved file
}

type strayKey struct {
	base          tree.Name // "": any
	size, seconds int64
}

func keysOf(e *tree.Entry) [2]strayKey {
	return [2]strayKey{{base(e.Path), e.Size, e.Seconds}, {"", e.Size, e.Seconds}}
}

func newStrays(l *tree.Listing, x *store.Record) *strays {
	c := &strays{map[strayKey][]*tree.Entry{}, map[tree.Name]bool{}}
	for _, e := range unclaimed(x, l) {
		for _, key := range keysOf(e) {
			c.byKey[key] = append(c.byKey[key], e)
		}
	}
	return c
}

// similar returns some strays with the length and time of a file: those with its base name first, taken ones last.
func (c *strays) similar(e *tree.Entry) (list []*tree.Entry) {
	for _, key := range keysOf(e) {
		candidates := c.byKey[key]
		for _, o := range candidates[:min(len(candidates), MostAlike)] {
			if o.SameTime(e) && !slices.Contains(list, o) {
				list = append(list, o)
			}
		}
	}
	return list
}

func (c *strays) take(e *tree.Entry) {
	c.taken[e.Path] = true
	for _, key := range keysOf(e) {
		i := slices.Index(c.byKey[key], e)
		c.byKey[key] = append(slices.Delete(c.byKey[key], i, i+1), e)
	}
}

// unclaimed returns the files of a listing, but for those that have the length and time that was protected under their
// names.
func unclaimed(x *store.Record, l *tree.Listing) (list []*tree.Entry) {
	for e, listed := range tree.Pairs(x.Entries, l.Entries) {
		if f := FileOf(x, e); IsFile(listed) && (f == nil || !unmoved(listed, f)) {
			list = append(list, listed)
		}
	}
	return list
}

// FileOf returns the file that an entry of a record is, or is another name of, or nil.
func FileOf(x *store.Record, e *tree.Entry) *tree.Entry {
	if e == nil || e.Type == tree.TypeFile {
		return e
	}
	return tree.Find(x.Entries, e.FileOf())
}

func IsFile(listed *tree.Entry) bool {
	return listed != nil && (listed.Type == tree.TypeFile || listed.Type == tree.TypeLink)
}

// unmoved reports whether an entry of a listing is a file of the length and time of another.
func unmoved(listed, f *tree.Entry) bool {
	return IsFile(listed) && listed.Size == f.Size && listed.SameTime(f)
}

// Moves returns the new paths of moved entries by their old paths. No name holds all of the wrong files. A directory has
// moved if everything in it has: to "" if its entries are scattered.
func Moves(record *store.Record, listing *tree.Listing, wrong map[tree.Name]bool) map[tree.Name]tree.Name {
	inode := func(e *tree.Entry) tree.Name { return cmp.Or(e.Target, e.Path) }
	movedTo, movedDirs := map[tree.Name]tree.Name{}, map[tree.Name]tree.Name{}
	taken := map[tree.Name]bool{} // names whose bytes are read as another file
	for _, f := range record.Entries {
		if source := f.ReadAs(); f.Type == tree.TypeFile && source != f.Path && FileOf(record, tree.Find(record.Entries, source)) != f {
			taken[source] = true
		}
	}
	var missing []*tree.Entry
	kept := map[tree.Name]bool{} // names that still hold their file, and not one with its length and time
	for e, listed := range tree.Pairs(record.Entries, listing.Entries) {
		f := FileOf(record, e)
		if f == nil || unmoved(listed, f) || listing.Unreadable(e.Path) != nil {
			continue
		}
		source := listing.Find(f.ReadAs())
		read := listed != nil && source != nil && !taken[e.Path] && (listed == source || listing.Linked(listed.Path, source.Path))
		switch {
		case read || slices.Contains(record.Copies[f.Path], e.Path):
			kept[e.Path] = true
		case source != nil && !wrong[f.Path]:
			missing = append(missing, e)
		}
	}
	free := map[tree.Name][]tree.Name{} // by the first name of the inode
	for _, e := range unclaimed(record, listing) {
		if !kept[e.Path] {
			free[inode(e)] = append(free[inode(e)], e.Path)
		}
	}
	for _, e := range missing {
		source := listing.Find(FileOf(record, e).ReadAs())
		if len(free[inode(source)]) == 0 {
			continue
		}
		newPath := free[inode(source)][0]
		movedTo[e.Path], free[inode(source)] = newPath, free[inode(source)][1:]
		for oldPath := e.Path; base(oldPath) == base(newPath) && Parent(oldPath) != "."; {
			oldPath, newPath = Parent(oldPath), Parent(newPath)
			if _, ok := movedDirs[oldPath]; !ok {
				movedDirs[oldPath] = newPath
			}
		}
	}
	if len(movedTo) == 0 {
		return nil
	}
	moved, stays := map[tree.Name]bool{}, map[tree.Name]bool{} // directories that entries have left, and where some stay
	for _, e := range slices.Backward(record.Entries) {
		if FileOf(record, e) == nil && listing.Find(e.Path) == nil && listing.Unreadable(e.Path) == nil && !stays[e.Path] {
			movedParent, ok := movedDirs[Parent(e.Path)]
			movedDir := listing.Find(tree.Name(path.Join(string(movedParent), string(base(e.Path)))))
			switch {
			case moved[e.Path]:
				movedTo[e.Path] = movedDirs[e.Path]
			case ok && movedDir != nil && movedDir.Type == e.Type && movedDir.Target == e.Target: // an entry without data
				movedTo[e.Path] = movedDir.Path
			}
		}
		if _, ok := movedTo[e.Path]; ok {
			moved[Parent(e.Path)] = true
		} else {
			stays[Parent(e.Path)] = true
		}
	}
	return movedTo
}

func base(p tree.Name) tree.Name { return tree.Name(path.Base(string(p))) }

func Parent(p tree.Name) tree.Name { return tree.Name(path.Dir(string(p))) }

// linksOf returns the further names of files, by file.
func linksOf(x *store.Record) map[tree.Name][]tree.Name {
	links := map[tree.Name][]tree.Name{}
	for _, e := range x.Entries {
		if e.Type == tree.TypeLink {
			links[e.Target] = append(links[e.Target], e.Path)
		}
	}
	return links
}

// HoldsFile reports whether the file at p holds what a file of a record did. The list has the record's file parts.
func HoldsFile(ctx context.Context, m *store.Manifest, dir disk.Dir, p tree.Name, x *store.Record, list []store.FilePart, recorded *tree.Entry) (bool, error) {
	f, err := dir.OpenFile(string(p), os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	block := make([]byte, min(m.BlockBytes, m.ChunkBytes))
	first := sort.Search(len(list), func(j int) bool { return list[j].Offset >= recorded.Offset })
	for j := first; j < len(list) && list[j].Offset < recorded.Offset+recorded.Size; j++ {
		g := list[j]
		if _, err := f.ReadAt(block[:g.N], g.Offset-recorded.Offset); err != nil || ctx.Err() != nil {
			return false, cmp.Or(context.Cause(ctx), err)
		}
		if !m.SameDigest(block[:g.N], x.FileDigests, j) {
			return false, nil
		}
	}
	return true, nil
}

// MostAlike is how many files of one length and time are told apart by what they hold.
const MostAlike = 100
