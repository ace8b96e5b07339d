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
)

// Files are the files to which a recovery is limited.
type Files struct {
	Patterns tree.Excludes // that match the files
	Export   bool          // to write the files to another directory, whatever their nodes hold
	chosen   []*wanted     // of the nodes here, set by FilesOfAll; nil: the node has no record
}

// A wanted lists what patterns match in a record.
type wanted struct {
	entries map[tree.Name]bool
	files   map[tree.Name]bool // the matched files, and those of matched links
}

func matchEntries(x *store.Record, patterns tree.Excludes) *wanted {
	c := &wanted{map[tree.Name]bool{}, map[tree.Name]bool{}}
	for _, e := range x.Entries {
		if patterns.Entry(e) {
			c.entries[e.Path] = true
			c.files[e.FileOf()] = true
		}
	}
	return c
}

func (c *wanted) file(e *tree.Entry) bool { return c.files[e.Path] }

// withParents returns the entries that come back, and the directories above them that are missing.
func (c *wanted) withParents(x *store.Record, comes func(*tree.Entry) bool, isPresent func(tree.Name) bool) (list []*tree.Entry) {
	need := map[tree.Name]bool{}
	for _, e := range x.Entries {
		if !c.entries[e.Path] || !comes(e) {
			continue
		}
		need[e.Path] = true
		for dir := path.Dir(string(e.Path)); !need[tree.Name(dir)] && !isPresent(tree.Name(dir)); dir = path.Dir(dir) {
			if need[tree.Name(dir)] = true; dir == "." {
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

// FilesOfAll returns, by node, how many entries of its record match. It returns an error that names a pattern which
// matches nothing at any node.
func FilesOfAll(ctx context.Context, s *session.Session, files *Files) ([]int, error) {
	type matches struct {
		Entries int
		Matched []bool `json:"Of"` // by pattern
	}
	files.chosen = make([]*wanted, len(s.Nodes))
	nodeMatches, err := session.Collect(ctx, s, func(_ context.Context, nodeIndex int, n *store.Node) (matches, error) {
		f := matches{Matched: make([]bool, len(files.Patterns))}
		x := s.RecordOf[n.Index]
		if x == nil {
			return f, nil
		}
		files.chosen[nodeIndex] = matchEntries(x, files.Patterns)
		f.Entries = len(files.chosen[nodeIndex].entries)
		for i := range files.Patterns {
			f.Matched[i] = slices.ContainsFunc(x.Entries, files.Patterns[i:i+1].Entry)
		}
		return f, nil
	})
	if err != nil {
		return nil, err
	}
	counts, largest := make([]int, s.K), 0
	for n, f := range nodeMatches {
		counts[n], largest = f.Entries, max(largest, f.Entries)
	}
	for i, p := range files.Patterns {
		if !strings.HasPrefix(p, "!") && !slices.ContainsFunc(nodeMatches, func(f matches) bool { return i < len(f.Matched) && f.Matched[i] }) {
			return nil, s.SharedError(ctx, store.Inputf("%q fits nothing that is protected at any node: name files as they lie below a node's directory, or with a pattern as in .gitignore", p))
		}
	}
	if largest == 0 {
		return nil, s.SharedError(ctx, store.Inputf("%q together fit nothing that is protected at any node", []string(files.Patterns)))
	}
	return counts, nil
}

// TakeFiles finds out what nodes lack of the files that FilesOfAll has found. It reads these files, and of all else only
// the blocks that repairs need. It replaces a block that turns out to be wrong by others.
func TakeFiles(ctx context.Context, s *session.Session, files *Files, edits protection.Edits) (*Survey, error) {
	var err error
	found := &Survey{Rows: map[int]bool{}}
	if found.Conditions, err = ConditionsOf(ctx, s, func(ctx context.Context, nodeIndex int, n *store.Node) (*content.Condition, error) {
		chosen := files.chosen[nodeIndex]
		c, err := examineFiles(ctx, s, n, edits, files, chosen)
		if err == nil && chosen != nil {
			c.Chosen = slices.DeleteFunc(slices.Clone(c.Findings), func(f protection.Finding) bool { return !chosen.entries[f.Path] })
		}
		return c, err
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
	for foundWrong := true; foundWrong; {
		if found.Repairs, found.Beyond, err = PlanRepairs(ctx, s, found.Conditions, false); err != nil {
			return nil, s.SharedError(ctx, err)
		}
		if foundWrong, err = checkSources(ctx, s, found, sources); err != nil {
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
func examineFiles(ctx context.Context, s *session.Session, n *store.Node, edits protection.Edits, files *Files, chosen *wanted) (*content.Condition, error) {
	x := s.RecordOf[n.Index]
	if x == nil {
		c, _ := listNode(s, n)
		return c, nil
	}
	c, comparable, err := compareFiles(ctx, s, n, edits, chosen.file, files.Patterns, nil)
	if err != nil {
		return nil, err
	}
	c.Remake = false
	always := func(*tree.Entry) bool { return true }
	if files.Export && c.Failing != "" {
		c.Lost, c.Failing, c.Unreachable = true, "", false
	}
	if !comparable {
		c.Restore, c.Touched = nil, nil
		if c.Failing == "" {
			c.Restore = chosen.withParents(x, always, func(p tree.Name) bool { return p == "." && !files.Export })
			c.Touched = rowsOf(s.Manifest, content.FilesOf(x, c.Restore))
		}
		return c, nil
	}
	if files.Export {
		c.Restore = chosen.withParents(x, always, func(tree.Name) bool { return false })
	} else {
		coming := tree.ByPath(c.Restore)
		c.Restore = chosen.withParents(x, func(e *tree.Entry) bool { return coming[e.Path] != nil }, func(p tree.Name) bool { return c.Listing.Find(p) != nil })
	}
	markTouched(s.Manifest, x, c)
	return c, nil
}

// A source is what a node can give for repairs, compared block by block as repairs ask for it.
type source struct {
	data   *content.Data
	sums   *content.Sums
	parity *content.Parity
	known  map[lostBlock]bool // blocks that were compared
	buffer []byte
}

func newSource(s *session.Session, n *store.Node) *source {
	d := content.NewData(n.Dir, s.RecordOf[n.Index].Entries, true)
	m := s.Manifest
	return &source{d, content.NewSums(m, d.Extents), content.ParityOf(n, m), map[lostBlock]bool{}, make([]byte, min(m.BlockBytes, m.ChunkBytes))}
}

func (x *source) close() {
	if x != nil {
		x.data.Close()
		x.parity.Close()
	}
}

// isIntact reports whether a block is as it was protected.
func (x *source) isIntact(m *store.Manifest, record *store.Record, b lostBlock) bool {
	_, n := m.Block(b.row)
	block := x.buffer[:n]
	if b.Parity {
		return content.ReadParity(m, x.parity, record, b.row, b.Index, block)
	}
	offset := m.OffsetOf(b.row, b.Index, m.DataChunks)
	x.data.ReadAt(block, offset) // what cannot be read is zeros
	return x.sums.FirstWrongFile(record, offset, block) == nil
}

// checkSources compares the blocks that repairs read. It adds wrong blocks to the conditions, and reports whether it
// found any.
func checkSources(ctx context.Context, s *session.Session, found *Survey, sources []*source) (foundWrong bool, err error) {
	type wrong struct{ Data, Parity [][]int }
	m := s.Manifest
	wrongBlocks, err := session.Collect(ctx, s, func(ctx context.Context, i int, n *store.Node) (wrong, error) {
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
					if sources[i].isIntact(m, s.RecordOf[n.Index], b) {
						continue
					}
					lists := w.Data
					if x.Parity {
						lists = w.Parity
					}
					lists[x.Index] = append(lists[x.Index], row)
				}
			}
		}
		return w, nil
	})
	if err != nil {
		return false, err
	}
	for n, w := range wrongBlocks {
		c := found.Conditions[n]
		earlier := c.Blocks()
		c.Data, c.Parity = mergeRows(c.Data, w.Data), mergeRows(c.Parity, w.Parity)
		foundWrong = foundWrong || c.Blocks() > earlier
	}
	return foundWrong, nil
}

// mergeRows returns the rows of two lists by chunk.
func mergeRows(a, b [][]int) [][]int {
	list := make([][]int, max(len(a), len(b)))
	for chunk := range list {
		for _, lists := range [][][]int{a, b} {
			if chunk < len(lists) {
				list[chunk] = append(list[chunk], lists[chunk]...)
			}
		}
		slices.Sort(list[chunk])
		list[chunk] = slices.Compact(list[chunk])
	}
	return list
}

// Lacking returns the entries, but for directories, that a node's new directory lacks or holds otherwise.
func Lacking(ctx context.Context, m *store.Manifest, target *store.Node, l *tree.Listing, x *store.Record, list []*tree.Entry) (lacks []*tree.Entry, err error) {
	parts := m.FilePartsOf(tree.ExtentsOf(x.Entries))
	for _, e := range list {
		listed, f := l.Find(e.Path), content.FileOf(x, e)
		unchanged := false
		switch {
		case listed == nil:
		case f == nil:
			unchanged = e.Type == tree.TypeSymlink && listed.Type == e.Type && listed.Target == e.Target
		case content.IsFile(listed) && listed.Size == f.Size && listed.SameTime(f):
			if unchanged, err = content.HoldsFile(ctx, m, target.Dir, e.Path, x, parts, f); err != nil && ctx.Err() != nil {
				return nil, err
			}
		}
		if !unchanged {
			lacks = append(lacks, e)
		}
	}
	return lacks, nil
}
