package survey

import (
	"context"
	"fmt"
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
	Patterns tree.Excludes // that match the files, at all nodes or, where they begin with its directory, at one
	Export   bool          // to write the files to another directory, whatever their nodes hold
}

// patternsAt returns what patterns say of a node: those that begin with its directory say it below that, and those that
// begin with another node's say nothing.
func patternsAt(s *session.Session, node int, patterns tree.Excludes) tree.Excludes {
	list := tree.Excludes{}
	for _, p := range patterns {
		names := func(x *store.State) bool { return below(x.Dir, p) != "" }
		if !slices.ContainsFunc(s.States, names) {
			list = append(list, p)
		} else if names(s.States[node]) {
			list = append(list, below(s.States[node].Dir, p))
		}
	}
	return list
}

// below returns a pattern that begins with a directory, as the user has named it, without that; "": it begins otherwise. The
// user of a host may be left out.
func below(dir, pattern string) string {
	includes := ""
	if strings.HasPrefix(pattern, "!") {
		includes, pattern = "!", pattern[1:]
	}
	names := []string{dir}
	if user, host, found := strings.Cut(dir, "@"); found && !strings.Contains(user, "/") {
		names = append(names, host)
	}
	for _, name := range names {
		if rest, found := strings.CutPrefix(pattern, strings.TrimSuffix(name, "/")); found && len(rest) > 1 && rest[0] == '/' {
			return includes + rest
		}
	}
	return ""
}

// matches returns what patterns match in a record: entries, and their files.
func matches(x *store.Record, patterns tree.Excludes) (entries, files map[tree.Name]bool) {
	entries, files = map[tree.Name]bool{}, map[tree.Name]bool{}
	for _, e := range x.Entries {
		if patterns.Entry(e) {
			entries[e.Path], files[e.FileOf()] = true, true
		}
	}
	return entries, files
}

// FilesOfAll returns, by node, how many entries of its record match, and notes of files that are meant at one node, and are
// at several. It returns an error that names a pattern which matches nothing at any node.
func FilesOfAll(ctx context.Context, s *session.Session, files *Files) (counts []int, notes []string, err error) {
	type matched struct {
		Entries int
		Matched []bool `json:"Of"` // by pattern
	}
	nodes, err := session.Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) (matched, error) {
		f := matched{Matched: make([]bool, len(files.Patterns))}
		if x := s.RecordOf[n.Index]; x != nil {
			entries, _ := matches(x, patternsAt(s, n.Index, files.Patterns))
			f.Entries = len(entries)
			for i := range files.Patterns {
				f.Matched[i] = slices.ContainsFunc(x.Entries, patternsAt(s, n.Index, files.Patterns[i:i+1]).Entry)
			}
		}
		return f, nil
	})
	if err != nil {
		return nil, nil, err
	}
	largest := 0
	for _, f := range nodes {
		counts, largest = append(counts, f.Entries), max(largest, f.Entries)
	}
	for i, p := range files.Patterns {
		var names []string
		for n, f := range nodes {
			if i < len(f.Matched) && f.Matched[i] {
				names = append(names, s.Name(n))
			}
		}
		switch {
		case names == nil && !strings.HasPrefix(p, "!"):
			return nil, nil, s.SharedError(ctx, store.Inputf("%q fits nothing that is protected at any node: name files as they lie below a node's directory, with that for one node alone, or with a pattern as in .gitignore", p))
		case len(names) > 1 && !strings.ContainsAny(p, "*?["):
			notes = append(notes, fmt.Sprintf("%q is at %s: begin with the directory of one for that alone", p, strings.Join(names, ", ")))
		}
	}
	if largest == 0 {
		return nil, nil, s.SharedError(ctx, store.Inputf("%q together fit nothing that is protected at any node", []string(files.Patterns)))
	}
	return counts, notes, nil
}

// TakeFiles finds out what nodes lack of the files. It reads these files, and of all else only the blocks that repairs
// need. It replaces a block that turns out to be wrong by others.
func TakeFiles(ctx context.Context, s *session.Session, files *Files, edits protection.Edits) (*Survey, error) {
	conditions, err := ConditionsOf(ctx, s, func(ctx context.Context, _ int, n *store.Node) (*content.Condition, error) {
		return files.examine(ctx, newExamination(s, n, scope{patterns: patternsAt(s, n.Index, files.Patterns)}, edits))
	})
	if err != nil {
		return nil, err
	}
	found := &Survey{Conditions: conditions, Rows: map[int]bool{}}
	if err := Recoverable(s, conditions); err != nil {
		return nil, s.SharedError(ctx, lossOf(s, conditions, err))
	}
	checked := map[lostBlock]bool{}
	for foundWrong := true; foundWrong; {
		if err := found.plan(ctx, s, false); err != nil {
			return nil, err
		}
		if foundWrong, err = checkSources(ctx, s, found, checked); err != nil {
			return nil, err
		}
	}
	found.addRows(found.Repairs)
	return found, nil
}

// examine finds the condition of a node as far as the files matter: what comes back, with missing directories above it.
func (f *Files) examine(ctx context.Context, x *examination) (*content.Condition, error) {
	if c, err := x.run(ctx); err != nil || x.record == nil {
		return c, err
	}
	x.Remake = false
	if f.Export && x.Failing != "" {
		x.Lost, x.Failing, x.Unreachable = true, "", false
	}
	entries, _ := matches(x.record, x.scope.patterns)
	coming := tree.ByPath(x.Restore)
	x.Restore = slices.DeleteFunc(slices.Clone(x.record.Entries), func(e *tree.Entry) bool {
		return !entries[e.Path] || !f.Export && coming[e.Path] == nil
	})
	x.addParents(func(p tree.Name) bool { return !f.Export && x.holds(p) })
	x.Chosen = slices.DeleteFunc(slices.Clone(x.Findings), func(g protection.Finding) bool { return !entries[g.Path] })
	x.markTouched()
	x.markHoles()
	return x.Condition, nil
}

// checkSources compares the blocks that repairs read, but for those checked before. It adds wrong blocks to the conditions,
// and reports whether it found any.
func checkSources(ctx context.Context, s *session.Session, found *Survey, checked map[lostBlock]bool) (foundWrong bool, err error) {
	type wrong struct{ Data, Parity [][]int }
	inputs := map[lostBlock]bool{}
	for _, r := range found.Repairs {
		for _, x := range slices.Concat(r.Inputs...) {
			for _, row := range r.rows {
				b := lostBlock{x, row}
				inputs[b], checked[b] = !checked[b], true
			}
		}
	}
	nodes, err := session.Collect(ctx, s, func(ctx context.Context, _ int, n *store.Node) (w wrong, err error) {
		w.Data, w.Parity, err = compareBlocks(ctx, s, n, inputs)
		return w, err
	})
	for n, w := range nodes {
		c := found.Conditions[n]
		earlier := c.Blocks()
		c.Data, c.Parity = mergeRows(c.Data, w.Data), mergeRows(c.Parity, w.Parity)
		foundWrong = foundWrong || c.Blocks() > earlier
	}
	return foundWrong, err
}

// compareBlocks returns which of some blocks differ from the record of a node.
func compareBlocks(ctx context.Context, s *session.Session, n *store.Node, blocks map[lostBlock]bool) (data, parity [][]int, err error) {
	m, record := s.Manifest, s.RecordOf[n.Index]
	d, f := content.NewData(n.Dir, record.Entries, true), content.ParityOf(n, m)
	defer d.Close()
	defer f.Close()
	compared, err := content.Compare(ctx, m, d, record, func(_ *tree.Entry, g store.FilePart) bool {
		return blocks[lostBlock{content.Symbol{Node: n.Index, Index: g.Chunk}, g.Row}]
	}, nil)
	if err != nil {
		return nil, nil, err
	}
	parity, err = content.CompareParity(ctx, m, f, record, func(row, chunk int) bool {
		return blocks[lostBlock{content.Symbol{Node: n.Index, Parity: true, Index: chunk}, row}]
	}, nil)
	return compared.Blocks, parity, err
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
