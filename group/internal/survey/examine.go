package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"volley/group/internal/content"
	"volley/group/internal/pass"
	"volley/group/internal/scrub"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
)

// examine compares a node with the manifest. Files are not read where something has read them.
func examine(ctx context.Context, s *session.Session, n *store.Node, back protection.Edits, read *reading) (*content.Condition, error) {
	m, x, st := s.Manifest, s.RecordOf[n.Index], s.States[n.Index]
	c, more := begin(s, n)
	if !more {
		return c, nil
	}
	var is *content.Compared
	var err error
	if read != nil {
		is = read.data.Result()
	} else {
		if err := content.FindSources(ctx, m, n.Dir, c.Listing, x, content.AllFiles); err != nil {
			return nil, err
		}
		d := content.NewData(n.Dir, x.Entries, true)
		defer d.Close()
		if is, err = content.Compare(ctx, m, d, x, s.Read); err != nil {
			return nil, err
		}
	}
	old, before, err := CompareStale(ctx, s, n, nil) // with what the node had before, where it was left behind
	if disk.Failed(err) {                            // nobody knows which files are stale
		st.Failing = err.Error()
		return examine(ctx, s, n, back, read)
	}
	if err != nil {
		return nil, err
	}
	compareNode(s, n, c, is, old, before, back, content.AllFiles)
	touch(m, x, c)
	return c, examineParity(ctx, s, n, x, c, read)
}

// glance compares a node with the manifest by names, lengths, times and modes. It reads a part of it.
func glance(ctx context.Context, s *session.Session, n *store.Node, part scrub.Part) (*content.Condition, error) {
	m, x := s.Manifest, s.RecordOf[n.Index]
	c, more := begin(s, n)
	if !more {
		return c, nil
	}
	if err := content.FindSources(ctx, m, n.Dir, c.Listing, x, content.NoFiles); err != nil {
		return nil, err
	}
	is := &content.Compared{Files: map[tree.Name]bool{}}
	if part.Parts > 0 {
		s.Tell(0, part.Bytes(m, x))
		d := content.NewData(n.Dir, x.Entries, true)
		defer d.Close()
		var err error
		if is, err = content.CompareFileParts(ctx, m, d, x, func(g store.FilePart) bool { return part.HasFile(m, d.Extents[g.File], g) }, s.Read); err != nil {
			return nil, err
		}
	}
	compareNode(s, n, c, is, nil, nil, protection.Edits{}, content.NoFiles)
	parity := tree.Name(n.Generation(s.Generation).Path(store.ParityFile))
	if info, err := n.Dir.Lstat(string(parity)); err != nil || info.Size() != m.ParityBytes() {
		c.Note(parity, content.Damaged, err)
		c.Parity = content.All(m, m.ParityChunks)
	} else if part.Parts > 0 {
		f := content.ParityOf(n, s.Generation)
		defer f.Close()
		if c.Parity, err = content.CompareParity(ctx, m, f, x, func(row, chunk int) bool { return part.HasParity(m, row, chunk) }, s.Read); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(c.Parity, func(rows []int) bool { return len(rows) > 0 }) {
			c.Note(parity, content.Damaged, nil)
		}
	}
	rotten := c.Rotten(is)
	all := slices.DeleteFunc(content.FilesOf(x, c.Differing(x)), func(e *tree.Entry) bool { return c.Like[e.Path] != nil || rotten[e.Path] })
	c.Data = joined(is.Blocks, rowsOf(m, all)) // of what has rotted only what was read is known
	return c, nil
}

// begin lists a node. It reports whether there is something to compare.
func begin(s *session.Session, n *store.Node) (c *content.Condition, more bool) {
	m, x, st := s.Manifest, s.RecordOf[n.Index], s.States[n.Index]
	c = &content.Condition{Lost: st.Lost, Failing: st.Failing, Unreachable: st.Unreachable, Touched: make([][]int, m.DataChunks)}
	if c.Failing == "" && !c.Lost {
		examineMeta(s, n, c)
		var err error
		c.Listing, err = tree.Scan(n.Dir, false, m.Rules())
		for g, unread := range n.Unread {
			if err == nil && st.Holding(s.Current) == nil && g < s.Generation { // nobody knows which files are stale
				err = unread
			}
		}
		if err != nil {
			c.Failing = err.Error()
		}
	}
	if x == nil { // nothing says what was there
		c.Note(tree.Name(n.Generation(s.Generation).Path(store.RecordFileName)), content.Missing, nil)
		c.Data, c.Parity = content.All(m, m.DataChunks), content.All(m, m.ParityChunks)
		return c, false
	}
	c.Torn = pass.Torn(x)
	if c.Failing == "" && !c.Lost {
		return c, true
	}
	if c.Data, c.Parity, c.Remake = LostRows(m, x), content.All(m, m.ParityChunks), true; c.Lost && c.Failing == "" {
		c.Restore, c.Touched = slices.Clone(x.Entries), c.Data
	}
	return c, false
}

// compareNode finds what is the matter with a node by how its data compares with the record. What is not as it was is
// judged by a list made after it was read: a program may have written to it since the one before, and that is no damage.
func compareNode(s *session.Session, n *store.Node, c *content.Condition, is, old *content.Compared, before *store.Record, back protection.Edits, read content.Chosen) {
	x := s.RecordOf[n.Index]
	c.Data = is.Blocks
	if len(is.Files) > 0 && !s.States[n.Index].Unlocked { // else it has to stay as it was listed
		if l, err := tree.Scan(n.Dir, false, s.Manifest.Rules()); err == nil {
			c.Listing = l
		}
	}
	moved, gone := map[tree.Name]tree.Name{}, map[tree.Name]bool{}
	if s.States[n.Index].Holding(s.Current) != nil { // else its files are to have the names of the generation in force
		if moved = content.Moves(x, c.Listing, is.Files); !s.Roots { // nobody changes a snapshot
			gone = deleted(x, c.Listing, moved, func(p tree.Name) bool {
				_, err := n.Dir.Lstat(string(p))
				return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
			})
		}
	}
	compareEntries(x, c, is, old, before, moved, gone, back, read)
	if all := len(x.Entries); len(c.Listing.Entries) == 1 && (all > 1 || all == 1 && n.Created()) && !slices.Contains(c.Restore, x.Entries[0]) {
		c.Restore = slices.Insert(c.Restore, 0, x.Entries[0]) // nothing in the directory says that somebody wants its mode as it is
	}
	FindForeign(s, n, x, c, is)
}

// touch finds the blocks that are to come back: those that are not as they were, and have something of what comes back.
func touch(m *store.Manifest, x *store.Record, c *content.Condition) {
	touched := tree.ExtentsOf(content.FilesOf(x, c.Restore))
	for chunk, rows := range c.Data {
		for _, row := range rows {
			_, length := m.Block(row)
			at := m.OffsetOf(row, chunk, m.DataChunks)
			if first := touched.FirstAfter(at); first < len(touched) && touched[first].Offset < at+length {
				c.Touched[chunk] = append(c.Touched[chunk], row)
			}
		}
	}
}

func examineMeta(s *session.Session, n *store.Node, c *content.Condition) {
	st := s.States[n.Index]
	h := st.Holding(s.Current)
	l := n.Generation(s.Generation)
	if h == nil {
		c.Note(tree.Name(l.Path(store.ManifestFile)), content.Damaged, n.Unread[s.Generation])
		return
	}
	if !l.Named {
		c.Note(tree.Name(l.Path(store.NodeFile)), content.Damaged, nil)
	}
	if h.Node < 0 {
		return
	}
	files := s.Manifest.RecordFilesAt(h.Node)
	c.Manifest = l.Named && len(h.Records) == len(files)
	for i, f := range files {
		if !slices.Contains(h.Records, i) {
			_, err := disk.SumText(n.Dir, l.Path(f.Name), f.Stored())
			if !disk.Failed(err) { // it is there, and another
				err = nil
			}
			c.Note(tree.Name(l.Path(f.Name)), content.Damaged, err)
		}
	}
}

// LostRows returns, by chunk, the rows in which a node has data.
func LostRows(m *store.Manifest, x *store.Record) [][]int { return rowsOf(m, x.Entries) }

// rowsOf returns, by chunk, the rows in which files lie.
func rowsOf(m *store.Manifest, files []*tree.Entry) [][]int {
	list := make([][]int, m.DataChunks)
	for _, g := range m.FilePartsOf(tree.ExtentsOf(files)) {
		if rows := list[g.Chunk]; len(rows) == 0 || rows[len(rows)-1] != g.Row {
			list[g.Chunk] = append(rows, g.Row)
		}
	}
	return list
}

// CompareStale compares a node that was left behind, with an earlier generation, with what it had then: all of it, or what
// the patterns fit.
func CompareStale(ctx context.Context, s *session.Session, n *store.Node, of tree.Excludes) (*content.Compared, *store.Record, error) {
	st := s.States[n.Index]
	if st.Holding(s.Current) != nil {
		return nil, nil, nil
	}
	var last *store.Loaded
	for _, h := range st.Held {
		if h.Committed && h.Generation < s.Generation && (last == nil || h.Generation > last.Manifest.Generation) {
			last = n.Held[h.Generation]
		}
	}
	if last == nil || last.Node < 0 {
		return nil, nil, nil
	}
	_, text, err := n.Read(last, last.Manifest.RecordFilesAt(last.Node)[0])
	if disk.Failed(err) {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, nil
	}
	x, err := last.Manifest.DecodeRecord(text)
	if err != nil {
		return nil, nil, nil
	}
	d := content.NewData(n.Dir, x.Entries, true)
	defer d.Close()
	if of != nil {
		is, err := content.CompareFiles(ctx, last.Manifest, d, x, choose(x, of).file, nil)
		return is, x, err
	}
	is, err := content.Compare(ctx, last.Manifest, d, x, nil)
	return is, x, err
}

// compareEntries adds what is the matter with files, and which of them are to come back. A file that is not one of those
// read, and has another time, has changed for all that anybody knows.
func compareEntries(x *store.Record, c *content.Condition, is, old *content.Compared, before *store.Record, moved map[tree.Name]tree.Name, gone map[tree.Name]bool, back protection.Edits, read content.Chosen) {
	var then map[tree.Name]*tree.Entry
	if before != nil {
		then = tree.ByPath(before.Entries)
	}
	files := content.FilesByPath(x)
	known, right := map[*tree.Entry]bool{}, map[tree.Name]bool{}
	for _, is := range moved {
		known[c.Listing.Find(is)] = true
	}
	for _, e := range x.Entries {
		now := c.Listing.Find(e.Path)
		if is, ok := moved[e.Path]; ok {
			c.Findings = append(c.Findings, protection.Finding{Path: e.Path, Kind: content.Moved, Target: is})
			if back.Changed {
				c.Restore = append(c.Restore, e)
			}
			continue
		}
		if now == nil {
			what, why := content.Missing, c.Listing.Unreadable(e.Path)
			switch {
			case why != nil:
				what = content.Damaged
			case gone[e.Path]:
				what = content.Deleted
			}
			c.Note(e.Path, what, why)
			if c.Listing.Hides(e.Path) {
				c.Hidden = append(c.Hidden, e.Path)
				continue
			}
			if what != content.Deleted || back.Deleted {
				c.Restore = append(c.Restore, e)
			}
			continue
		}
		known[now] = true
		f := cmp.Or(files[e.FileOf()], e)
		same := func(p tree.Name) bool { return p == e.Path || c.Listing.Linked(p, e.Path) }
		file := content.IsFile(e) && content.IsFile(now)
		right[e.Path] = file && (now.Size == f.Size && (read(f) || now.SameTime(f)) && same(f.ReadAs()) && !is.Files[f.Path] || slices.ContainsFunc(x.Copies[f.Path], same))
		what, why := "", error(nil)
		o := then[e.Path]
		stale := o != nil && o.Type == now.Type && o.Target == now.Target && o.Size == now.Size && !old.Files[o.FileOf()]
		switch {
		case e.Type == tree.TypeLink && same(e.Target): // it is what that is
		case !file && (now.Type != e.Type || now.Target != e.Target):
			if what = content.Changed; stale {
				what = content.Stale
			}
		case file && !right[e.Path]:
			if same(f.ReadAs()) {
				why = is.Failing[f.Path]
			}
			if why == nil && old != nil {
				why = old.Failing[e.Path]
			}
			switch {
			case why != nil && !errors.Is(why, fs.ErrPermission): // who knows what it is
				what = content.Damaged
			case stale:
				what = content.Stale
			case !now.SameTime(f) || f.Torn:
				what = content.Changed
			default:
				what = content.Damaged
			}
		case e.Type == tree.TypeLink:
			if c.Listing.Find(e.Target) != nil {
				what, why = content.Metadata, fmt.Errorf("it is no longer another name of %q", string(e.Target))
			}
		case !now.SameMeta(e) || file && !now.SameTime(e):
			what = content.Metadata
		}
		if what == "" {
			continue
		}
		c.Note(e.Path, what, why)
		if why != nil && what == content.Damaged && errors.Is(why, fs.ErrPermission) { // it may be as it was
			c.Hidden = append(c.Hidden, e.Path)
			continue
		}
		if what != content.Metadata && (what != content.Changed || back.Changed) {
			c.Restore = append(c.Restore, e)
		}
	}
	compareLinks(x, c, right)
	addAbove(x, c)
	for _, e := range c.Listing.Entries {
		if !known[e] && e.Path != "." && !e.Special() {
			c.Note(e.Path, content.New, nil)
		}
	}
	slices.SortStableFunc(c.Findings, func(a, b protection.Finding) int { return strings.Compare(string(a.Path), string(b.Path)) })
}

// addAbove has directories come back in which something is to come back, and that users have moved or deleted.
func addAbove(x *store.Record, c *content.Condition) {
	comes, above := tree.ByPath(c.Restore), map[tree.Name]bool{}
	for _, e := range c.Restore {
		for up := content.Above(e.Path); up != "." && comes[up] == nil && !above[up] && c.Listing.Find(up) == nil; up = content.Above(up) {
			above[up] = true
		}
	}
	var list []*tree.Entry
	for _, e := range x.Entries {
		if above[e.Path] {
			list = append(list, e)
		}
	}
	c.Restore = append(list, c.Restore...)
}

// deleted returns what users have deleted: the directory that it lay in, or the nearest that is left, has another time now.
// A file that has moved, and has rotted there, was not deleted, and neither was one in whose place something lies that is
// not listed. Where more of the files than [content.AccidentShare] is
// gone, it looks like an accident, and is lost.
func deleted(x *store.Record, l *tree.Listing, moved map[tree.Name]tree.Name, there func(tree.Name) bool) map[tree.Name]bool {
	taken := content.TakenFrom(x.Entries, l)
	known := map[tree.Name]bool{}
	for _, e := range x.Entries {
		known[e.Path], known[moved[e.Path]] = true, true
	}
	came := content.Came(l, func(p tree.Name) bool { return known[p] })
	gone := map[tree.Name]bool{}
	files, were := 0, 0
	for _, e := range x.Entries {
		if content.IsFile(e) {
			were++
		}
		if _, has := moved[e.Path]; has || l.Find(e.Path) != nil || l.Unreadable(e.Path) != nil || l.Hides(e.Path) || came(e) {
			continue
		}
		if by, sure := taken(e.Path); !by || !sure || there(e.Path) {
			continue
		}
		if gone[e.Path] = true; content.IsFile(e) {
			files++
		}
	}
	if float64(files) > content.AccidentShare*float64(were) {
		return nil
	}
	return gone
}

// compareLinks has names of files come back that are to come back themselves, and finds what they can be names of again.
func compareLinks(x *store.Record, c *content.Condition, right map[tree.Name]bool) {
	what, coming := content.WhatOf(c.Findings), tree.ByPath(c.Restore)
	for _, e := range x.Entries {
		if e.Type == tree.TypeLink && coming[e.Target] != nil && coming[e.Path] == nil && c.Listing.Linked(e.Path, e.Target) {
			coming[e.Path] = e
			c.Note(e.Path, what[e.Target], nil)
			c.Restore = append(c.Restore, e)
		}
	}
	c.Like = map[tree.Name]*tree.Entry{}
	for _, e := range x.Entries {
		if file := e.FileOf(); file != "" && right[e.Path] && coming[e.Path] == nil && c.Like[file] == nil {
			c.Like[file] = c.Listing.Find(e.Path)
		}
	}
}

// FindForeign finds out whether a directory in which nothing says whose node it is has other files than the node had.
func FindForeign(s *session.Session, n *store.Node, x *store.Record, c *content.Condition, is *content.Compared) {
	st := s.States[n.Index]
	if st.Node >= 0 || len(st.Held) > 0 || !st.Files {
		return
	}
	there, match := 0, 0
	for _, e := range c.Listing.Entries {
		if e.Type == tree.TypeFile {
			there++
		}
	}
	for _, e := range x.Entries {
		if now := c.Listing.Find(e.Path); e.Type == tree.TypeFile && now != nil && now.Size == e.Size && !is.Files[e.Path] {
			match++
		}
	}
	c.Foreign = 2*match < there
}

func examineParity(ctx context.Context, s *session.Session, n *store.Node, x *store.Record, c *content.Condition, read *reading) error {
	m, at := s.Manifest, tree.Name(n.Generation(s.Generation).Path(store.ParityFile))
	f, err := n.OpenParity(s.Generation)
	var info fs.FileInfo
	if err == nil {
		defer f.Close()
		info, err = f.Stat()
	}
	if err != nil {
		what := content.Damaged
		if errors.Is(err, fs.ErrNotExist) {
			what, err = content.Missing, nil
		}
		c.Parity, c.Remake, c.Earlier = content.All(m, m.ParityChunks), true, err != nil
		c.Note(at, what, err)
		return nil
	}
	from := &noting{ParityReader: f}
	if read != nil {
		from, c.Parity = read.parity, read.badParity
	} else if c.Parity, err = content.CompareParity(ctx, m, from, x, nil, s.Read); err != nil {
		return err
	}
	c.Earlier = true
	c.Remake = info.Size() != m.ParityBytes() || slices.ContainsFunc(c.Parity, func(rows []int) bool { return len(rows) > 0 })
	if c.Remake {
		c.Note(at, content.Damaged, from.err)
	}
	return nil
}

// ExamineAll returns what is found of the nodes from number from on, and nothing bad of those before. The fields that
// are not exported are those of nodes here.
func ExamineAll(ctx context.Context, s *session.Session, from int, back protection.Edits) ([]*content.Condition, error) {
	for _, n := range s.Nodes {
		if x, st := s.RecordOf[n.Index], s.States[n.Index]; n.Index >= from && x != nil && !st.Lost && st.Failing == "" {
			s.Tell(0, x.Bytes+s.Manifest.ParityBytes())
		}
	}
	return ConditionsOf(ctx, s, func(ctx context.Context, _ int, n *store.Node) (*content.Condition, error) {
		if n.Index < from {
			return &content.Condition{Manifest: true}, nil
		}
		return compared(ctx, s, n)(examine(ctx, s, n, back, nil))
	})
}

// GlanceAll is [ExamineAll] that reads a part of the nodes, and of the rest names, lengths, times and modes.
func GlanceAll(ctx context.Context, s *session.Session, from int, part scrub.Part) ([]*content.Condition, error) {
	return ConditionsOf(ctx, s, func(ctx context.Context, _ int, n *store.Node) (*content.Condition, error) {
		if n.Index < from {
			return &content.Condition{Manifest: true}, nil
		}
		return compared(ctx, s, n)(glance(ctx, s, n, part))
	})
}

// compared logs what a node is found to be like.
func compared(ctx context.Context, s *session.Session, n *store.Node) func(*content.Condition, error) (*content.Condition, error) {
	return func(c *content.Condition, err error) (*content.Condition, error) {
		if err == nil {
			s.Log.DebugContext(ctx, "compared", "node", n.DirName, "status", c.Status())
		}
		return c, err
	}
}

// ConditionsOf gives what every node is found to be like to all.
func ConditionsOf(ctx context.Context, s *session.Session, of func(context.Context, int, *store.Node) (*content.Condition, error)) ([]*content.Condition, error) {
	mine := make([]*content.Condition, len(s.Nodes))
	all, err := session.Collect(ctx, s, func(ctx context.Context, i int, n *store.Node) (_ *content.Condition, err error) {
		mine[i], err = of(ctx, i, n)
		return mine[i], err
	})
	if err != nil {
		return nil, err
	}
	for i, n := range s.Nodes {
		all[n.Index] = mine[i]
	}
	return all, nil
}
