package content

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path"
	"slices"
	"sort"
	"sync"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
)

// Chosen says of a file of a record whether it is one of those.
type Chosen func(*tree.Entry) bool

// AllFiles chooses all.
func AllFiles(*tree.Entry) bool { return true }

// NoFiles chooses none.
func NoFiles(*tree.Entry) bool { return false }

// FindSources finds out where a file still holds what was protected: its bytes are read by that name. Where it has
// several names they are compared by their digests or, without reading them, by their times: a name gets no bytes that
// were not protected under it. Where none of its own names holds them, the file may have moved. Read says which files may be
// read.
func FindSources(ctx context.Context, m *store.Manifest, dir disk.Dir, l *tree.Listing, x *store.Record, read Chosen) error {
	links := linksOf(x)
	x.Copies = map[tree.Name][]tree.Name{}
	moved := newStrays(l, x)
	list := sync.OnceValue(func() []store.FilePart { return m.FilePartsOf(tree.ExtentsOf(x.Entries)) })
	for _, e := range x.Entries {
		if e.Type != tree.TypeFile {
			continue
		}
		e.Source = ""
		named := false
		if links[e.Path] != nil {
			var err error
			if named, err = findName(ctx, m, dir, l, x, list, e, links[e.Path], read(e)); err != nil {
				return err
			}
		}
		if !named {
			if err := findMoved(ctx, m, dir, l, x, list, e, moved, read(e)); err != nil {
				return err
			}
		}
	}
	return nil
}

// findName finds out which of the names of a file hold what was protected, and reports whether any does.
func findName(ctx context.Context, m *store.Manifest, dir disk.Dir, l *tree.Listing, x *store.Record, list func() []store.FilePart, e *tree.Entry, links []tree.Name, read bool) (bool, error) {
	type other struct {
		path tree.Name
		fs.FileInfo
	}
	var found []other // one name of each inode
	for _, p := range slices.Concat([]tree.Name{e.Path}, links) {
		info, err := dir.Lstat(string(p))
		if err != nil || l.Unreadable(p) != nil || !info.Mode().IsRegular() || info.Size() != e.Size {
			continue
		}
		if !slices.ContainsFunc(found, func(o other) bool { return disk.Linked(o) != disk.FileID{} && disk.Linked(o) == disk.Linked(info) }) {
			found = append(found, other{p, info})
		}
	}
	sameTime := func(o other) bool { return tree.Seen(o.path, o).SameTime(e) }
	var holding []tree.Name
	for _, o := range found {
		same := sameTime(o)
		if read && (len(found) > 1 || !same) { // else it is found out when it is read
			var err error
			if same, err = HoldsFile(ctx, m, dir, o.path, x, list(), e); err != nil && ctx.Err() != nil {
				return false, err
			}
		}
		if same {
			holding = append(holding, o.path)
		}
	}
	switch i := slices.IndexFunc(found, sameTime); {
	case holding != nil:
		e.Source, x.Copies[e.Path] = holding[0], holding[1:]
	case i >= 0: // it has rotted; most of its bytes may be right
		e.Source = found[i].path
	case read && len(found) > 0: // it was written to; some of its bytes may be right
		e.Source = found[0].path
	}
	return holding != nil, nil
}

// findMoved finds a file that has neither name any more among those that have its length and time, as a rename keeps
// both, and compares their digests. Without reading, each is taken for one file at most.
func findMoved(ctx context.Context, m *store.Manifest, dir disk.Dir, l *tree.Listing, x *store.Record, list func() []store.FilePart, e *tree.Entry, moved *strays, read bool) error {
	at := l.Find(e.ReadAs())
	there := unmoved(at, e)
	if there && (!read || e.Nanoseconds == 0) || l.Unreadable(e.Path) != nil {
		return nil
	}
	tries := moved.like(e)
	if len(tries) > 0 && read && IsFile(at) && at.Size == e.Size {
		if same, err := HoldsFile(ctx, m, dir, at.Path, x, list(), e); same || ctx.Err() != nil {
			return err
		}
	}
	var rotten *tree.Entry
	for _, o := range tries {
		same := !moved.taken[o.Path]
		if read {
			var err error
			if same, err = HoldsFile(ctx, m, dir, o.Path, x, list(), e); err != nil {
				if ctx.Err() != nil {
					return err
				}
				continue
			}
		}
		if same {
			e.Source = o.Path
			moved.take(o)
			return nil
		}
		if rotten == nil && !moved.taken[o.Path] {
			rotten = o
		}
	}
	if read && rotten != nil && !IsFile(at) { // most of its bytes may be right
		e.Source = rotten.Path
	}
	return nil
}

// Strays are the files of a listing that are not what a record has under their names: others may have moved there.
type strays struct {
	of    map[strayKey][]*tree.Entry // by base name, and all
	taken map[tree.Name]bool         // those that are known to be a file
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
			c.of[key] = append(c.of[key], e)
		}
	}
	return c
}

// like returns some of the strays that have the length and time of a file: those of its base name first, and those
// that are taken last.
func (c *strays) like(e *tree.Entry) (list []*tree.Entry) {
	for _, key := range keysOf(e) {
		of := c.of[key]
		for _, o := range of[:min(len(of), MostAlike)] {
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
		i := slices.Index(c.of[key], e)
		c.of[key] = append(slices.Delete(c.of[key], i, i+1), e)
	}
}

// unclaimed returns the files of a listing, but for those that have the length and time that was protected under their
// names.
func unclaimed(x *store.Record, l *tree.Listing) (list []*tree.Entry) {
	claimed, files := map[*tree.Entry]bool{}, FilesByPath(x)
	for _, e := range x.Entries {
		if f := files[e.FileOf()]; f != nil {
			if now := l.Find(e.Path); unmoved(now, f) {
				claimed[now] = true
			}
		}
	}
	for _, e := range l.Entries {
		if IsFile(e) && !claimed[e] {
			list = append(list, e)
		}
	}
	return list
}

func FilesByPath(x *store.Record) map[tree.Name]*tree.Entry {
	files := map[tree.Name]*tree.Entry{}
	for _, e := range x.Entries {
		if e.Type == tree.TypeFile {
			files[e.Path] = e
		}
	}
	return files
}

func IsFile(now *tree.Entry) bool {
	return now != nil && (now.Type == tree.TypeFile || now.Type == tree.TypeLink)
}

// unmoved reports whether an entry of a listing is a file of the length and time of another.
func unmoved(now, f *tree.Entry) bool { return IsFile(now) && now.Size == f.Size && now.SameTime(f) }

// Moves returns where what had a name lies now, by that name. Wrong are the files of which no name holds all. A directory
// has moved where all that was in it has: to "" where that lies scattered.
func Moves(x *store.Record, l *tree.Listing, wrong map[tree.Name]bool) map[tree.Name]tree.Name {
	inode := func(e *tree.Entry) tree.Name { return cmp.Or(e.Target, e.Path) }
	to, dirs, files := map[tree.Name]tree.Name{}, map[tree.Name]tree.Name{}, FilesByPath(x)
	names := map[tree.Name]*tree.Entry{} // files, by each of their names
	for _, e := range x.Entries {
		names[e.Path] = files[e.FileOf()]
	}
	taken := map[tree.Name]bool{} // by other files
	for _, f := range files {
		if at := f.ReadAs(); names[at] != f {
			taken[at] = true
		}
	}
	var gone []*tree.Entry
	own := map[tree.Name]bool{} // names that have what was protected under them, or what is as long and old
	for _, e := range x.Entries {
		f := names[e.Path]
		if f == nil || l.Unreadable(e.Path) != nil {
			continue
		}
		now, source := l.Find(e.Path), l.Find(f.ReadAs())
		read := now != nil && source != nil && !taken[e.Path] && (now == source || l.Linked(now.Path, source.Path))
		switch {
		case read || unmoved(now, f) || slices.Contains(x.Copies[f.Path], e.Path):
			own[e.Path] = true
		case source != nil && !wrong[f.Path]:
			gone = append(gone, e)
		}
	}
	free := map[tree.Name][]tree.Name{} // by the first name of the inode
	for _, e := range unclaimed(x, l) {
		if !own[e.Path] {
			free[inode(e)] = append(free[inode(e)], e.Path)
		}
	}
	for _, e := range gone {
		source := l.Find(names[e.Path].ReadAs())
		if len(free[inode(source)]) == 0 {
			continue
		}
		is := free[inode(source)][0]
		to[e.Path], free[inode(source)] = is, free[inode(source)][1:]
		for was := e.Path; base(was) == base(is) && Above(was) != "."; {
			was, is = Above(was), Above(is)
			if _, ok := dirs[was]; !ok {
				dirs[was] = is
			}
		}
	}
	moved, stays := map[tree.Name]bool{}, map[tree.Name]bool{} // directories that something has moved from, and not
	for _, e := range slices.Backward(x.Entries) {
		if names[e.Path] == nil && l.Find(e.Path) == nil && l.Unreadable(e.Path) == nil && !stays[e.Path] {
			beside, ok := dirs[Above(e.Path)]
			is := l.Find(tree.Name(path.Join(string(beside), string(base(e.Path)))))
			switch {
			case moved[e.Path]:
				to[e.Path] = dirs[e.Path]
			case ok && is != nil && is.Type == e.Type && is.Target == e.Target: // it holds nothing itself
				to[e.Path] = is.Path
			}
		}
		if _, ok := to[e.Path]; ok {
			moved[Above(e.Path)] = true
		} else {
			stays[Above(e.Path)] = true
		}
	}
	return to
}

func base(p tree.Name) tree.Name { return tree.Name(path.Base(string(p))) }

func Above(p tree.Name) tree.Name { return tree.Name(path.Dir(string(p))) }

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

// HoldsFile reports whether what has a name holds what a file of a record, whose file parts are listed, did.
func HoldsFile(ctx context.Context, m *store.Manifest, dir disk.Dir, p tree.Name, x *store.Record, list []store.FilePart, was *tree.Entry) (bool, error) {
	f, err := dir.OpenFile(string(p), os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	block := make([]byte, min(m.BlockBytes, m.ChunkBytes))
	first := sort.Search(len(list), func(j int) bool { return list[j].Offset >= was.Offset })
	for j := first; j < len(list) && list[j].Offset < was.Offset+was.Size; j++ {
		g := list[j]
		if _, err := f.ReadAt(block[:g.N], g.Offset-was.Offset); err != nil || ctx.Err() != nil {
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
