package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"volley/group/internal/tree"

	"volley/internal/disk"
)

// examine compares a node with the manifest. Quickly is without reading files; they are not read either where
// something has read them. Changed files are to come back too if revert is set.
func (s *session) examine(ctx context.Context, n *node, quickly, revert bool, read *reading) (*condition, error) {
	m := s.manifest
	x := s.members[n.index]
	st := s.states[n.index]
	c := &condition{Lost: st.Lost, Failing: st.Failing, Unreachable: st.Unreachable, Touched: make([][]int, m.DataChunks)}
	if c.Failing == "" && !c.Lost {
		s.examineMeta(n, c)
		var err error
		c.listing, err = tree.Scan(n.dir, false, m.Exclude)
		for g, unread := range n.unread {
			if err == nil && st.of(s.current) == nil && g < s.generation { // nobody knows which files are stale
				err = unread
			}
		}
		if err != nil {
			c.Failing = err.Error()
		}
	}
	if x == nil { // nothing says what was there
		c.note(tree.Name(n.generation(s.generation).path(recordFileName)), Missing, nil)
		c.Data, c.Parity = all(m, m.DataChunks), all(m, m.ParityChunks)
		return c, nil
	}
	c.Torn = x.torn()
	if c.Failing != "" || c.Lost {
		if c.Data, c.Parity, c.remake = m.lostRows(x), all(m, m.ParityChunks), true; c.Lost && c.Failing == "" {
			c.restore, c.Touched = slices.Clone(x.Entries), c.Data
		}
		return c, nil
	}
	is := &compared{files: map[tree.Name]bool{}}
	var old *compared // with what the node had before, where it was left behind
	var before *Member
	if read == nil {
		if err := m.findSources(ctx, n.dir, c.listing, x, !quickly); err != nil {
			return nil, err
		}
	}
	if !quickly {
		var err error
		if read != nil {
			is = read.data.result()
		} else {
			d := newData(n.dir, x.Entries, true)
			defer d.close()
			if is, err = m.compare(ctx, d, x, s.read); err != nil {
				return nil, err
			}
		}
		old, before, err = s.compareStale(ctx, n)
		if disk.Failed(err) { // nobody knows which files are stale
			st.Failing = err.Error()
			return s.examine(ctx, n, quickly, revert, read)
		}
		if err != nil {
			return nil, err
		}
	}
	c.Data = is.blocks
	moved := map[tree.Name]tree.Name{}
	if st.of(s.current) != nil { // else its files are to have the names of the generation in force
		moved = x.moves(c.listing, is.files)
	}
	compareEntries(x, c, is, old, before, moved, revert)
	s.foreign(n, x, c, is)
	if quickly {
		parity := n.generation(s.generation).path(parityFile)
		if info, err := n.dir.Lstat(parity); err != nil || info.Size() != m.parityBytes() {
			c.note(tree.Name(parity), Damaged, err)
		}
		return c, nil
	}
	touched := tree.ExtentsOf(filesOf(x, c.restore))
	for chunk, rows := range c.Data {
		for _, row := range rows {
			_, length := m.block(row)
			at := m.offsetOf(row, chunk, m.DataChunks)
			if first := touched.From(at); first < len(touched) && touched[first].Offset < at+length {
				c.Touched[chunk] = append(c.Touched[chunk], row)
			}
		}
	}
	return c, s.examineParity(ctx, n, x, c, read)
}

func (s *session) examineMeta(n *node, c *condition) {
	st := s.states[n.index]
	h := st.of(s.current)
	l := n.generation(s.generation)
	if h == nil {
		c.note(tree.Name(l.path(manifestFile)), Damaged, n.unread[s.generation])
		return
	}
	if !l.named {
		c.note(tree.Name(l.path(nodeFile)), Damaged, nil)
	}
	if h.Node < 0 {
		return
	}
	files := s.manifest.recordFilesAt(h.Node)
	c.Manifest = l.named && len(h.Records) == len(files)
	for i, f := range files {
		if !slices.Contains(h.Records, i) {
			_, err := disk.SumText(n.dir, l.path(f.name), f.stored())
			if !disk.Failed(err) { // it is there, and another
				err = nil
			}
			c.note(tree.Name(l.path(f.name)), Damaged, err)
		}
	}
}

// lostRows returns, by chunk, the rows in which a node has data.
func (m *Manifest) lostRows(x *Member) [][]int {
	list := make([][]int, m.DataChunks)
	for _, g := range m.segments(tree.ExtentsOf(x.Entries)) {
		if rows := list[g.chunk]; len(rows) == 0 || rows[len(rows)-1] != g.row {
			list[g.chunk] = append(rows, g.row)
		}
	}
	return list
}

// compareStale compares a node that was left behind, with an earlier generation, with what it had then.
func (s *session) compareStale(ctx context.Context, n *node) (*compared, *Member, error) {
	st := s.states[n.index]
	if st.of(s.current) != nil {
		return nil, nil, nil
	}
	var last *loaded
	for _, h := range st.Held {
		if h.Committed && h.Generation < s.generation && (last == nil || h.Generation > last.manifest.Generation) {
			last = n.held[h.Generation]
		}
	}
	if last == nil || last.node < 0 {
		return nil, nil, nil
	}
	_, text, err := n.read(last, last.manifest.recordFilesAt(last.node)[0])
	if disk.Failed(err) {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, nil
	}
	x, err := last.manifest.decodeMember(text)
	if err != nil {
		return nil, nil, nil
	}
	d := newData(n.dir, x.Entries, true)
	defer d.close()
	is, err := last.manifest.compare(ctx, d, x, nil)
	return is, x, err
}

// compareEntries adds what is the matter with files, and which of them are to come back.
func compareEntries(x *Member, c *condition, is, old *compared, before *Member, moved map[tree.Name]tree.Name, revert bool) {
	then := map[tree.Name]*tree.Entry{}
	if before != nil {
		for _, e := range before.Entries {
			then[e.Path] = e
		}
	}
	files := filesByPath(x)
	known, right := map[*tree.Entry]bool{}, map[tree.Name]bool{}
	for _, is := range moved {
		known[c.listing.Find(is)] = true
	}
	for _, e := range x.Entries {
		now := c.listing.Find(e.Path)
		if is, ok := moved[e.Path]; ok {
			c.Findings = append(c.Findings, Finding{Path: e.Path, What: Moved, To: is})
			if revert {
				c.restore = append(c.restore, e)
			}
			continue
		}
		if now == nil {
			what, why := Missing, c.listing.Unreadable(e.Path)
			if why != nil {
				what = Damaged
			}
			c.note(e.Path, what, why)
			if c.listing.Hides(e.Path) {
				c.hidden = append(c.hidden, e.Path)
				continue
			}
			c.restore = append(c.restore, e)
			continue
		}
		known[now] = true
		f := cmp.Or(files[e.FileOf()], e)
		same := func(p tree.Name) bool { return p == e.Path || c.listing.Linked(p, e.Path) }
		file := isFile(e) && isFile(now)
		right[e.Path] = file && (now.Size == f.Size && same(f.ReadAs()) && !is.files[f.Path] || slices.ContainsFunc(x.copies[f.Path], same))
		what, why := "", error(nil)
		o := then[e.Path]
		stale := o != nil && o.Type == now.Type && o.Target == now.Target && o.Size == now.Size && !old.files[o.FileOf()]
		switch {
		case e.Type == tree.TypeLink && same(e.Target): // it is what that is
		case !file && (now.Type != e.Type || now.Target != e.Target):
			if what = Changed; stale {
				what = Stale
			}
		case file && !right[e.Path]:
			if same(f.ReadAs()) {
				why = is.failing[f.Path]
			}
			if why == nil && old != nil {
				why = old.failing[e.Path]
			}
			switch {
			case why != nil && !errors.Is(why, fs.ErrPermission): // who knows what it is
				what = Damaged
			case stale:
				what = Stale
			case !now.SameTime(f) || f.Torn:
				what = Changed
			default:
				what = Damaged
			}
		case e.Type == tree.TypeLink:
			if c.listing.Find(e.Target) != nil {
				what, why = Metadata, fmt.Errorf("it is no longer another name of %q", string(e.Target))
			}
		case !now.SameMeta(e) || file && !now.SameTime(e):
			what = Metadata
		}
		if what == "" {
			continue
		}
		c.note(e.Path, what, why)
		if what != Metadata && (what != Changed || revert) {
			c.restore = append(c.restore, e)
		}
	}
	compareLinks(x, c, right)
	for _, e := range c.listing.Entries {
		if !known[e] && e.Path != "." {
			c.note(e.Path, New, nil)
		}
	}
	slices.SortStableFunc(c.Findings, func(a, b Finding) int { return strings.Compare(string(a.Path), string(b.Path)) })
}

// compareLinks has names of files come back that are to come back themselves, and finds what they can be names of again.
func compareLinks(x *Member, c *condition, right map[tree.Name]bool) {
	what := map[tree.Name]string{}
	for _, f := range c.Findings {
		what[f.Path] = f.What
	}
	coming := map[tree.Name]bool{}
	for _, e := range c.restore {
		coming[e.Path] = true
	}
	for _, e := range x.Entries {
		if e.Type == tree.TypeLink && coming[e.Target] && !coming[e.Path] && c.listing.Linked(e.Path, e.Target) {
			coming[e.Path] = true
			c.note(e.Path, what[e.Target], nil)
			c.restore = append(c.restore, e)
		}
	}
	c.like = map[tree.Name]*tree.Entry{}
	for _, e := range x.Entries {
		if file := e.FileOf(); file != "" && right[e.Path] && !coming[e.Path] && c.like[file] == nil {
			c.like[file] = c.listing.Find(e.Path)
		}
	}
}

// foreign finds out whether a directory in which nothing says whose node it is has other files than the node had.
func (s *session) foreign(n *node, x *Member, c *condition, is *compared) {
	st := s.states[n.index]
	if st.Node >= 0 || len(st.Held) > 0 || !st.Files {
		return
	}
	there, match := 0, 0
	for _, e := range c.listing.Entries {
		if e.Type == tree.TypeFile {
			there++
		}
	}
	for _, e := range x.Entries {
		if now := c.listing.Find(e.Path); e.Type == tree.TypeFile && now != nil && now.Size == e.Size && !is.files[e.Path] {
			match++
		}
	}
	c.Foreign = 2*match < there
}

func (s *session) examineParity(ctx context.Context, n *node, x *Member, c *condition, read *reading) error {
	m, at := s.manifest, tree.Name(n.generation(s.generation).path(parityFile))
	f, err := n.openParity(s.generation)
	var info fs.FileInfo
	if err == nil {
		defer f.Close()
		info, err = f.Stat()
	}
	if err != nil {
		what := Damaged
		if errors.Is(err, fs.ErrNotExist) {
			what, err = Missing, nil
		}
		c.Parity, c.remake, c.earlier = all(m, m.ParityChunks), true, err != nil
		c.note(at, what, err)
		return nil
	}
	from := &noting{parityReader: f}
	if read != nil {
		from, c.Parity = read.parity, read.badParity
	} else if c.Parity, err = m.compareParity(ctx, from, x, s.read); err != nil {
		return err
	}
	c.earlier = true
	c.remake = info.Size() != m.parityBytes() || slices.ContainsFunc(c.Parity, func(rows []int) bool { return len(rows) > 0 })
	if c.remake {
		c.note(at, Damaged, from.err)
	}
	return nil
}

// examineAll returns what is found of the nodes from number from on, and nothing bad of those before. The fields that
// are not exported are those of nodes here.
func (s *session) examineAll(ctx context.Context, from int, quickly, revert bool) ([]*condition, error) {
	for _, n := range s.nodes {
		if x, st := s.members[n.index], s.states[n.index]; n.index >= from && !quickly && x != nil && !st.Lost && st.Failing == "" {
			s.progress(0, x.Bytes+s.manifest.parityBytes())
		}
	}
	return s.conditions(ctx, func(ctx context.Context, _ int, n *node) (*condition, error) {
		if n.index < from {
			return &condition{Manifest: true}, nil
		}
		c, err := s.examine(ctx, n, quickly, revert, nil)
		if err == nil {
			slog.DebugContext(ctx, "compared", "node", n.given, "status", c.status())
		}
		return c, err
	})
}

func (s *session) read(n int64) { s.progress(n, 0) }

// conditions gives what every node is found to be like to all.
func (s *session) conditions(ctx context.Context, of func(context.Context, int, *node) (*condition, error)) ([]*condition, error) {
	mine := make([]*condition, len(s.nodes))
	all, err := collect(ctx, s, func(ctx context.Context, i int, n *node) (_ *condition, err error) {
		mine[i], err = of(ctx, i, n)
		return mine[i], err
	})
	if err != nil {
		return nil, err
	}
	for i, n := range s.nodes {
		all[n.index] = mine[i]
	}
	return all, nil
}

// notes tells what is the matter with files of Volley's, and what runs have left behind.
func (s *session) notes() []string {
	var list []string
	for _, x := range s.states {
		if x.Failing != "" {
			how := "read"
			if x.Unreachable {
				how = "reached"
			}
			list = append(list, fmt.Sprintf("%s cannot be %s: %s. To recover its data elsewhere, give another, empty directory in its place", x.Dir, how, x.Failing))
		}
		if x.Open {
			list = append(list, fmt.Sprintf("%s can be read by others, who learn from parity what is in the files of other nodes: protect and recover make it private where they are run by its owner", tree.JoinPath(x.Dir, tree.MetaName)))
		}
		list = append(list, x.Bad...)
		left := slices.Clone(x.Left)
		for _, h := range x.Held {
			switch {
			case h.Generation < s.generation && x.of(s.current) == nil:
				list = append(list, fmt.Sprintf("%s has generation %d, and the group is at generation %d", x.Dir, h.Generation, s.generation))
			case !h.Committed && (h.Generation != s.generation || h.Root != s.root):
				left = append(left, pendingDir(h.Generation))
			}
		}
		if left != nil {
			list = append(list, fmt.Sprintf("%s: an interrupted run has left %s in its %s, which the next protect or recover removes", x.Dir, strings.Join(left, ", "), tree.MetaName))
		}
	}
	return list
}
