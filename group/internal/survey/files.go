package survey

import (
	"context"
	"path"
	"slices"
	"strings"

	"volley/group/internal/content"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
)

// Files are those that alone come back.
type Files struct {
	Patterns tree.Excludes // that fit them
	Out      bool          // they are written elsewhere, whatever they are like at their nodes
	chosen   []*wanted     // at the nodes here, as FilesOfAll finds them; nil: the node has no record
}

// A wanted is what patterns want back of a record.
type wanted struct {
	entries map[tree.Name]bool
	files   map[tree.Name]bool // that they are, or are other names of
}

func choose(x *store.Record, of tree.Excludes) *wanted {
	c := &wanted{map[tree.Name]bool{}, map[tree.Name]bool{}}
	for _, e := range x.Entries {
		if of.Entry(e) {
			c.entries[e.Path] = true
			c.files[e.FileOf()] = true
		}
	}
	return c
}

func (c *wanted) file(e *tree.Entry) bool { return c.files[e.Path] }

// with returns the entries that are to come back, and the directories above them that are not there.
func (c *wanted) with(x *store.Record, comes func(*tree.Entry) bool, there func(tree.Name) bool) (list []*tree.Entry) {
	need := map[tree.Name]bool{}
	for _, e := range x.Entries {
		if !c.entries[e.Path] || !comes(e) {
			continue
		}
		need[e.Path] = true
		for up := path.Dir(string(e.Path)); !need[tree.Name(up)] && !there(tree.Name(up)); up = path.Dir(up) {
			if need[tree.Name(up)] = true; up == "." {
				break
			}
		}
	}
	for _, e := range x.Entries {
		if need[e.Path] {
			list = append(list, e)
		}
	}
	return list
}

// FilesOfAll returns, by node, how many entries of its record the files are. It returns an error that names a pattern which
// fits nothing at any node.
func FilesOfAll(ctx context.Context, s *session.Session, files *Files) ([]int, error) {
	type fits struct {
		Entries int
		Of      []bool // by pattern
	}
	files.chosen = make([]*wanted, len(s.Nodes))
	all, err := session.Collect(ctx, s, func(_ context.Context, here int, n *store.Node) (fits, error) {
		f := fits{Of: make([]bool, len(files.Patterns))}
		x := s.RecordOf[n.Index]
		if x == nil {
			return f, nil
		}
		files.chosen[here] = choose(x, files.Patterns)
		f.Entries = len(files.chosen[here].entries)
		for i := range files.Patterns {
			f.Of[i] = slices.ContainsFunc(x.Entries, files.Patterns[i:i+1].Entry)
		}
		return f, nil
	})
	if err != nil {
		return nil, err
	}
	counts, most := make([]int, s.K), 0
	for n, f := range all {
		counts[n], most = f.Entries, max(most, f.Entries)
	}
	for i, p := range files.Patterns {
		if !strings.HasPrefix(p, "!") && !slices.ContainsFunc(all, func(f fits) bool { return i < len(f.Of) && f.Of[i] }) {
			return nil, s.SharedError(ctx, store.Inputf("%q fits nothing that is protected at any node: name files as they lie below a node's directory, or with a pattern as in .gitignore", p))
		}
	}
	if most == 0 {
		return nil, s.SharedError(ctx, store.Inputf("%q together fit nothing that is protected at any node", []string(files.Patterns)))
	}
	return counts, nil
}

// TakeFiles finds out what nodes lack of the files that FilesOfAll has found. It reads these, and of all else the blocks from which what they lack
// comes back. Of a block that turns out to be wrong nothing is used, and others serve in its place.
func TakeFiles(ctx context.Context, s *session.Session, files *Files, back protection.Edits) (*Survey, error) {
	var err error
	found := &Survey{Rows: map[int]bool{}}
	if found.Conditions, err = ConditionsOf(ctx, s, func(ctx context.Context, here int, n *store.Node) (*content.Condition, error) {
		return examineFiles(ctx, s, n, back, files, files.chosen[here])
	}); err != nil {
		return nil, err
	}
	if err := Recoverable(s, found.Conditions); err != nil {
		return nil, s.SharedError(ctx, lossOf(s, found.Conditions, err))
	}
	sources := make([]*source, len(s.Nodes))
	defer func() {
		for _, x := range sources {
			x.close()
		}
	}()
	for i, n := range s.Nodes {
		sources[i] = newSource(s, n)
	}
	for more := true; more; {
		if found.Repairs, found.Beyond, err = PlanRepairs(ctx, s, found.Conditions, false); err != nil {
			return nil, s.SharedError(ctx, err)
		}
		if more, err = checkSources(ctx, s, found, sources); err != nil {
			return nil, err
		}
	}
	for _, x := range found.Repairs {
		for _, row := range x.blocks.Rows {
			found.Rows[row] = true
		}
	}
	return found, nil
}

// examineFiles is examine for some files.
func examineFiles(ctx context.Context, s *session.Session, n *store.Node, back protection.Edits, files *Files, chosen *wanted) (*content.Condition, error) {
	m, x, st := s.Manifest, s.RecordOf[n.Index], s.States[n.Index]
	c, more := begin(s, n)
	c.Remake = false
	if x == nil {
		return c, nil
	}
	all := func(*tree.Entry) bool { return true }
	if files.Out && c.Failing != "" {
		c.Lost, c.Failing, c.Unreachable = true, "", false
	}
	if !more {
		c.Restore, c.Touched = nil, nil
		if c.Failing == "" {
			c.Restore = chosen.with(x, all, func(p tree.Name) bool { return p == "." && !files.Out })
			c.Touched = rowsOf(m, content.FilesOf(x, c.Restore))
		}
		return c, nil
	}
	if err := content.FindSources(ctx, m, n.Dir, c.Listing, x, chosen.file); err != nil {
		return nil, err
	}
	bytes := int64(0)
	for _, e := range x.Entries {
		if chosen.file(e) {
			bytes += e.Size
		}
	}
	s.Tell(0, bytes)
	d := content.NewData(n.Dir, x.Entries, true)
	defer d.Close()
	is, err := content.CompareFiles(ctx, m, d, x, chosen.file, s.Read)
	if err != nil {
		return nil, err
	}
	old, before, err := CompareStale(ctx, s, n, files.Patterns)
	if disk.Failed(err) { // nobody knows which files are stale
		st.Failing = err.Error()
		return examineFiles(ctx, s, n, back, files, chosen)
	}
	if err != nil {
		return nil, err
	}
	compareNode(s, n, c, is, old, before, back, chosen.file)
	if files.Out {
		c.Restore = chosen.with(x, all, func(tree.Name) bool { return false })
	} else {
		coming := tree.ByPath(c.Restore)
		c.Restore = chosen.with(x, func(e *tree.Entry) bool { return coming[e.Path] != nil }, func(p tree.Name) bool { return c.Listing.Find(p) != nil })
	}
	touch(m, x, c)
	return c, nil
}

// FindingsOf returns, by node, what is the matter with the files.
func FindingsOf(ctx context.Context, s *session.Session, files *Files, conditions []*content.Condition) ([][]protection.Finding, error) {
	return session.Collect(ctx, s, func(_ context.Context, here int, n *store.Node) ([]protection.Finding, error) {
		chosen := files.chosen[here]
		if chosen == nil {
			return nil, nil
		}
		return slices.DeleteFunc(slices.Clone(conditions[n.Index].Findings), func(f protection.Finding) bool { return !chosen.entries[f.Path] }), nil
	})
}

// A source is what a node can give for repairs, compared block by block as repairs ask for it.
type source struct {
	data   *content.Data
	sums   *content.Sums
	parity content.ParityReader
	known  map[lostBlock]bool // blocks that were compared
	buffer []byte
}

func newSource(s *session.Session, n *store.Node) *source {
	d := content.NewData(n.Dir, s.RecordOf[n.Index].Entries, true)
	m := s.Manifest
	return &source{d, content.NewSums(m, d.Extents), content.ParityOf(n, s.Generation), map[lostBlock]bool{}, make([]byte, min(m.BlockBytes, m.ChunkBytes))}
}

func (x *source) close() {
	if x != nil {
		x.data.Close()
		x.parity.Close()
	}
}

// right reports whether a block is as it was protected.
func (x *source) right(m *store.Manifest, of *store.Record, b lostBlock) bool {
	_, n := m.Block(b.row)
	block := x.buffer[:n]
	if b.Parity {
		return content.ReadParity(m, x.parity, of, b.row, b.Index, block)
	}
	at := m.OffsetOf(b.row, b.Index, m.DataChunks)
	x.data.ReadAt(block, at) // what cannot be read is zeros
	return x.sums.Wrong(of, at, block) == nil
}

// checkSources compares the blocks from which repairs make others. It adds those that are not right to the conditions, and
// reports whether there are any.
func checkSources(ctx context.Context, s *session.Session, found *Survey, sources []*source) (more bool, err error) {
	type wrong struct{ Data, Parity [][]int }
	m := s.Manifest
	all, err := session.Collect(ctx, s, func(ctx context.Context, i int, n *store.Node) (wrong, error) {
		w := wrong{make([][]int, m.DataChunks), make([][]int, m.ParityChunks)}
		for _, r := range found.Repairs {
			for _, x := range r.Inputs[n.Index] {
				for _, row := range r.blocks.Rows {
					b := lostBlock{x, row}
					if sources[i].known[b] {
						continue
					}
					if ctx.Err() != nil {
						return w, context.Cause(ctx)
					}
					sources[i].known[b] = true
					if sources[i].right(m, s.RecordOf[n.Index], b) {
						continue
					}
					of := w.Data
					if x.Parity {
						of = w.Parity
					}
					of[x.Index] = append(of[x.Index], row)
				}
			}
		}
		return w, nil
	})
	if err != nil {
		return false, err
	}
	for n, w := range all {
		c := found.Conditions[n]
		were := c.Blocks()
		c.Data, c.Parity = joined(c.Data, w.Data), joined(c.Parity, w.Parity)
		more = more || c.Blocks() > were
	}
	return more, nil
}

// joined returns the rows of two lists by chunk.
func joined(a, b [][]int) [][]int {
	list := make([][]int, max(len(a), len(b)))
	for chunk := range list {
		for _, of := range [][][]int{a, b} {
			if chunk < len(of) {
				list[chunk] = append(list[chunk], of[chunk]...)
			}
		}
		slices.Sort(list[chunk])
		list[chunk] = slices.Compact(list[chunk])
	}
	return list
}

// Lacking returns which entries, but for directories, are not in a node's new directory as they were.
func Lacking(ctx context.Context, m *store.Manifest, out *store.Node, l *tree.Listing, x *store.Record, list []*tree.Entry) (lacks []*tree.Entry, err error) {
	files := content.FilesByPath(x)
	parts := m.FilePartsOf(tree.ExtentsOf(x.Entries))
	for _, e := range list {
		now, f := l.Find(e.Path), files[e.FileOf()]
		same := false
		switch {
		case now == nil:
		case f == nil:
			same = e.Type == tree.TypeSymlink && now.Type == e.Type && now.Target == e.Target
		case content.IsFile(now) && now.Size == f.Size && now.SameTime(f):
			if same, err = content.HoldsFile(ctx, m, out.Dir, e.Path, x, parts, f); err != nil && ctx.Err() != nil {
				return nil, err
			}
		}
		if !same {
			lacks = append(lacks, e)
		}
	}
	return lacks, nil
}
