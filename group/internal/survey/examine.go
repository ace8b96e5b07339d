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
func examine(ctx context.Context, s *session.Session, n *store.Node, edits protection.Edits, read *reading) (*content.Condition, error) {
	condition, comparable, err := compareFiles(ctx, s, n, edits, content.AllFiles, nil, read)
	if err != nil || !comparable {
		return condition, err
	}
	markTouched(s.Manifest, s.RecordOf[n.Index], condition)
	return condition, examineParity(ctx, s, n, s.RecordOf[n.Index], condition, read)
}

// compareFiles compares the chosen files of a node with the manifest. These are what the patterns match, or all files if
// patterns is nil. It reports whether there was something to compare.
func compareFiles(ctx context.Context, s *session.Session, n *store.Node, edits protection.Edits, chosen content.Chosen, patterns tree.Excludes, read *reading) (condition *content.Condition, comparable bool, err error) {
	m, record, st := s.Manifest, s.RecordOf[n.Index], s.States[n.Index]
	if condition, comparable = listNode(s, n); !comparable {
		return condition, false, nil
	}
	if patterns != nil {
		s.Tell(0, content.FileBytes(record, chosen))
	}
	var compared *content.Compared
	if read != nil {
		compared = read.data.Result()
	} else {
		if err := content.FindSources(ctx, m, n.Dir, condition.Listing, record, chosen); err != nil {
			return nil, false, err
		}
		d := content.NewData(n.Dir, record.Entries, true)
		defer d.Close()
		if compared, err = content.Compare(ctx, m, d, record, chosen.Part, s.Read); err != nil {
			return nil, false, err
		}
	}
	staleCompared, staleRecord, err := CompareStale(ctx, s, n, patterns) // if the node is at an earlier generation
	if disk.Failed(err) {                                                // nobody knows which files are stale
		st.Failing = err.Error()
		return compareFiles(ctx, s, n, edits, chosen, patterns, read)
	}
	if err != nil {
		return nil, false, err
	}
	compareNode(s, n, condition, compared, staleCompared, staleRecord, edits, chosen)
	return condition, true, nil
}

// glance compares a node with the manifest by names, lengths, times and modes. It reads a part of it.
func glance(ctx context.Context, s *session.Session, n *store.Node, part scrub.Part) (*content.Condition, error) {
	m, record := s.Manifest, s.RecordOf[n.Index]
	condition, comparable := listNode(s, n)
	if !comparable {
		return condition, nil
	}
	if err := content.FindSources(ctx, m, n.Dir, condition.Listing, record, content.NoFiles); err != nil {
		return nil, err
	}
	compared := &content.Compared{Files: map[tree.Name]bool{}}
	if part.Parts > 0 {
		s.Tell(0, part.Bytes(m, record))
		d := content.NewData(n.Dir, record.Entries, true)
		defer d.Close()
		var err error
		if compared, err = content.Compare(ctx, m, d, record, func(e *tree.Entry, g store.FilePart) bool { return part.HasFile(m, e, g) }, s.Read); err != nil {
			return nil, err
		}
	}
	compareNode(s, n, condition, compared, nil, nil, protection.Edits{}, content.NoFiles)
	parity := tree.Name(n.Generation(s.Generation).Path(store.ParityFile))
	f := content.ParityOf(n, m)
	defer f.Close()
	if f.Wrong != nil {
		condition.Note(parity, content.Damaged, f.Wrong)
		condition.Parity = content.AllRowsByChunk(m, m.ParityChunks)
	} else if part.Parts > 0 {
		var err error
		if condition.Parity, err = content.CompareParity(ctx, m, f, record, func(row, chunk int) bool { return part.HasParity(m, row, chunk) }, s.Read); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(condition.Parity, func(rows []int) bool { return len(rows) > 0 }) {
			condition.Note(parity, content.Damaged, nil)
		}
	}
	rotten := condition.Rotten(compared)
	notRead := slices.DeleteFunc(content.FilesOf(record, condition.Differing(record)), func(e *tree.Entry) bool { return condition.IntactNames[e.Path] != nil || rotten[e.Path] })
	condition.Data = mergeRows(compared.Blocks, rowsOf(m, notRead)) // of rotten files only the parts read are known
	return condition, nil
}

// listNode lists a node. It reports whether there is something to compare.
func listNode(s *session.Session, n *store.Node) (condition *content.Condition, comparable bool) {
	m, record, st := s.Manifest, s.RecordOf[n.Index], s.States[n.Index]
	condition = &content.Condition{Rots: s.Roots || st.Interrupted(), Lost: st.Lost, Failing: st.Failing, Unreachable: st.Unreachable, Touched: make([][]int, m.DataChunks)}
	if condition.Failing == "" && !condition.Lost {
		examineMeta(s, n, condition)
		var err error
		condition.Listing, err = tree.Scan(n.Dir, false, m.Rules())
		for g, unread := range n.Unread {
			if err == nil && st.Holding(s.Current) == nil && g < s.Generation { // nobody knows which files are stale
				err = unread
			}
		}
		if err != nil {
			condition.Failing = err.Error()
		}
	}
	if record == nil { // no record of the node exists
		condition.Note(tree.Name(n.Generation(s.Generation).Path(store.RecordFileName)), content.Missing, nil)
		condition.Data, condition.Parity = content.AllRowsByChunk(m, m.DataChunks), content.AllRowsByChunk(m, m.ParityChunks)
		return condition, false
	}
	condition.Torn = pass.TornFiles(record)
	if condition.Failing == "" && !condition.Lost {
		return condition, true
	}
	if condition.Data, condition.Parity, condition.Remake = LostRows(m, record), content.AllRowsByChunk(m, m.ParityChunks), true; condition.Lost && condition.Failing == "" {
		condition.Restore, condition.Touched = slices.Clone(record.Entries), condition.Data
	}
	return condition, false
}

// compareNode finds what is the matter with a node. It lists the node again after the data was read: a program may have
// written since the first listing, and a new time shows that as a change, not as damage.
func compareNode(s *session.Session, n *store.Node, condition *content.Condition, compared, staleCompared *content.Compared, staleRecord *store.Record, edits protection.Edits, isRead content.Chosen) {
	record := s.RecordOf[n.Index]
	condition.Data = compared.Blocks
	if len(compared.Files) > 0 && !s.States[n.Index].Unlocked { // a node without a lock stays as it was listed
		if l, err := tree.Scan(n.Dir, false, s.Manifest.Rules()); err == nil {
			condition.Listing = l
		}
	}
	moved, deletedNames := map[tree.Name]tree.Name{}, map[tree.Name]bool{}
	if s.States[n.Index].Holding(s.Current) != nil { // moves count only at the current generation
		if moved = content.Moves(record, condition.Listing, compared.Files); !s.Roots { // nobody changes a snapshot
			deletedNames = deletedByUsers(record, condition.Listing, moved, func(p tree.Name) bool {
				_, err := n.Dir.Lstat(string(p))
				return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
			})
		}
	}
	compareEntries(record, condition, compared, staleCompared, staleRecord, moved, deletedNames, edits, isRead)
	if count := len(record.Entries); len(condition.Listing.Entries) == 1 && (count > 1 || count == 1 && n.Created()) && !slices.Contains(condition.Restore, record.Entries[0]) {
		condition.Restore = slices.Insert(condition.Restore, 0, record.Entries[0]) // nobody has chosen the mode of an empty directory
	}
	FindForeign(s, n, record, condition, compared)
}

// markTouched notes the blocks to restore: they differ from the record, and hold a part of a file that comes back.
func markTouched(m *store.Manifest, x *store.Record, c *content.Condition) {
	touched := tree.ExtentsOf(content.FilesOf(x, c.Restore))
	for chunk, rows := range c.Data {
		for _, row := range rows {
			_, length := m.Block(row)
			offset := m.OffsetOf(row, chunk, m.DataChunks)
			if first := touched.FirstAfter(offset); first < len(touched) && touched[first].Offset < offset+length {
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
			_, err := n.Read(l, f)
			if !disk.Failed(err) { // the file exists, with other content
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

// CompareStale compares a node that is at an earlier generation with its record of that generation: all files, or those
// that the patterns match.
func CompareStale(ctx context.Context, s *session.Session, n *store.Node, patterns tree.Excludes) (*content.Compared, *store.Record, error) {
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
	text, err := n.Read(last, last.Manifest.RecordFilesAt(last.Node)[0])
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
	chosen := content.Chosen(content.AllFiles)
	if patterns != nil {
		chosen = matchEntries(x, patterns).file
	}
	compared, err := content.Compare(ctx, last.Manifest, d, x, chosen.Part, nil)
	return compared, x, err
}

// compareEntries adds the findings of files, and the entries that come back. A file that isRead does not name was not
// read: if its time differs, it counts as changed.
func compareEntries(record *store.Record, condition *content.Condition, compared, staleCompared *content.Compared, staleRecord *store.Record, moved map[tree.Name]tree.Name, deletedNames map[tree.Name]bool, edits protection.Edits, isRead content.Chosen) {
	var staleEntries map[tree.Name]*tree.Entry
	if staleRecord != nil {
		staleEntries = tree.ByPath(staleRecord.Entries)
	}
	files := content.FilesByPath(record)
	known, intact := map[*tree.Entry]bool{}, map[tree.Name]bool{}
	for _, newName := range moved {
		known[condition.Listing.Find(newName)] = true
	}
	for _, e := range record.Entries {
		listed := condition.Listing.Find(e.Path)
		if newName, ok := moved[e.Path]; ok {
			condition.Findings = append(condition.Findings, protection.Finding{Path: e.Path, Kind: content.Moved, Target: newName})
			if edits.Changed {
				condition.Restore = append(condition.Restore, e)
			}
			continue
		}
		if listed == nil {
			kind, reason := content.Missing, condition.Listing.Unreadable(e.Path)
			switch {
			case reason != nil:
				kind = content.Damaged
			case deletedNames[e.Path]:
				kind = content.Deleted
			}
			condition.Note(e.Path, kind, reason)
			if condition.Listing.Hides(e.Path) {
				condition.Hidden = append(condition.Hidden, e.Path)
				continue
			}
			if kind != content.Deleted || edits.Deleted {
				condition.Restore = append(condition.Restore, e)
			}
			continue
		}
		known[listed] = true
		recordedFile := cmp.Or(files[e.FileOf()], e)
		sameInode := func(p tree.Name) bool { return p == e.Path || condition.Listing.Linked(p, e.Path) }
		isFile := content.IsFile(e) && content.IsFile(listed)
		intact[e.Path] = isFile && (listed.Size == recordedFile.Size && (isRead(recordedFile) || listed.SameTime(recordedFile)) && sameInode(recordedFile.ReadAs()) && !compared.Files[recordedFile.Path] || slices.ContainsFunc(record.Copies[recordedFile.Path], sameInode))
		if intact[e.Path] && e.Type == tree.TypeFile && !isRead(e) && e.Changed != 0 && !listed.Untouched(e) && !condition.Rots {
			condition.Unsure++
			condition.FirstUnsure = cmp.Or(condition.FirstUnsure, e.Path)
		}
		kind, reason := "", error(nil)
		staleEntry := staleEntries[e.Path]
		stale := staleEntry != nil && staleEntry.Type == listed.Type && staleEntry.Target == listed.Target && staleEntry.Size == listed.Size && !staleCompared.Files[staleEntry.FileOf()]
		switch {
		case e.Type == tree.TypeLink && sameInode(e.Target): // it is still another name of its target
		case !isFile && (listed.Type != e.Type || listed.Target != e.Target):
			if kind = content.Changed; stale {
				kind = content.Stale
			}
		case isFile && !intact[e.Path]:
			if sameInode(recordedFile.ReadAs()) {
				reason = compared.Failing[recordedFile.Path]
			}
			if reason == nil && staleCompared != nil {
				reason = staleCompared.Failing[e.Path]
			}
			switch {
			case reason != nil && !errors.Is(reason, fs.ErrPermission): // nobody knows what it holds
				kind = content.Damaged
			case stale:
				kind = content.Stale
			case !listed.SameTime(recordedFile) || recordedFile.Torn:
				kind = content.Changed
			case listed.Untouched(recordedFile) || condition.Rots:
				kind = content.Damaged
			default:
				kind, reason = content.Changed, errDoubtful
			}
		case e.Type == tree.TypeLink:
			if condition.Listing.Find(e.Target) != nil {
				kind, reason = content.Metadata, fmt.Errorf("it is no longer another name of %q", string(e.Target))
			}
		case !listed.SameMeta(e) || isFile && !listed.SameTime(e):
			kind = content.Metadata
		}
		if kind == "" {
			continue
		}
		condition.Note(e.Path, kind, reason)
		if reason != nil && kind == content.Damaged && errors.Is(reason, fs.ErrPermission) { // it may be intact
			condition.Hidden = append(condition.Hidden, e.Path)
			continue
		}
		if kind != content.Metadata && (kind != content.Changed || edits.Changed) {
			condition.Restore = append(condition.Restore, e)
		}
	}
	compareLinks(record, condition, intact)
	restoreParents(record, condition)
	for _, e := range condition.Listing.Entries {
		if !known[e] && e.Path != "." && !e.Special() {
			condition.Note(e.Path, content.New, nil)
		}
	}
	slices.SortStableFunc(condition.Findings, func(a, b protection.Finding) int { return strings.Compare(string(a.Path), string(b.Path)) })
}

// errDoubtful is why a file is changed that has its time.
var errDoubtful = errors.New("somebody has set its time back, or it has rotted")

// restoreParents adds directories that users have moved or deleted, if an entry below them comes back.
func restoreParents(x *store.Record, c *content.Condition) {
	comes, parents := tree.ByPath(c.Restore), map[tree.Name]bool{}
	for _, e := range c.Restore {
		for dir := content.Parent(e.Path); dir != "." && comes[dir] == nil && !parents[dir] && c.Listing.Find(dir) == nil; dir = content.Parent(dir) {
			parents[dir] = true
		}
	}
	var list []*tree.Entry
	for _, e := range x.Entries {
		if parents[e.Path] {
			list = append(list, e)
		}
	}
	c.Restore = append(list, c.Restore...)
}

// deletedByUsers returns the entries that users have deleted: their parent, or the nearest ancestor that exists, has
// another time now. An entry does not count if a file like it has arrived, or if something unlisted has its name. If more
// of the files than [content.AccidentShare] are missing, it looks like an accident, and they count as lost.
func deletedByUsers(record *store.Record, listing *tree.Listing, moved map[tree.Name]tree.Name, isPresent func(tree.Name) bool) map[tree.Name]bool {
	isRemoved := content.RemovalTest(record.Entries, listing)
	known := map[tree.Name]bool{}
	for _, e := range record.Entries {
		known[e.Path], known[moved[e.Path]] = true, true
	}
	arrived := content.ArrivalTest(listing, func(p tree.Name) bool { return known[p] })
	deletedNames := map[tree.Name]bool{}
	files, recorded := 0, 0
	for _, e := range record.Entries {
		if content.IsFile(e) {
			recorded++
		}
		if _, hasMoved := moved[e.Path]; hasMoved || listing.Find(e.Path) != nil || listing.Unreadable(e.Path) != nil || listing.Hides(e.Path) || arrived(e) {
			continue
		}
		if removed, sure := isRemoved(e.Path); !removed || !sure || isPresent(e.Path) {
			continue
		}
		if deletedNames[e.Path] = true; content.IsFile(e) {
			files++
		}
	}
	if float64(files) > content.AccidentShare*float64(recorded) {
		return nil
	}
	return deletedNames
}

// compareLinks adds the names of files that come back, and finds for each file an intact name that others can link to.
func compareLinks(record *store.Record, condition *content.Condition, intact map[tree.Name]bool) {
	kinds, coming := content.FindingKinds(condition.Findings), tree.ByPath(condition.Restore)
	for _, e := range record.Entries {
		if e.Type == tree.TypeLink && coming[e.Target] != nil && coming[e.Path] == nil && condition.Listing.Linked(e.Path, e.Target) {
			coming[e.Path] = e
			condition.Note(e.Path, kinds[e.Target], nil)
			condition.Restore = append(condition.Restore, e)
		}
	}
	condition.IntactNames = map[tree.Name]*tree.Entry{}
	for _, e := range record.Entries {
		if file := e.FileOf(); file != "" && intact[e.Path] && coming[e.Path] == nil && condition.IntactNames[file] == nil {
			condition.IntactNames[file] = condition.Listing.Find(e.Path)
		}
	}
}

// FindForeign finds out whether a directory that names no node, and has no record of it, holds other files than the node had.
func FindForeign(s *session.Session, n *store.Node, record *store.Record, condition *content.Condition, compared *content.Compared) {
	st := s.States[n.Index]
	if st.Node >= 0 || len(st.Held) > 0 || !st.Files || st.Numbers != nil && s.Manifest.RecordOwner(n.Dir, store.GenerationDir(s.Generation)) == n.Index {
		return
	}
	listedFiles, match := 0, 0
	for _, e := range condition.Listing.Entries {
		if e.Type == tree.TypeFile {
			listedFiles++
		}
	}
	for _, e := range record.Entries {
		if listed := condition.Listing.Find(e.Path); e.Type == tree.TypeFile && listed != nil && listed.Size == e.Size && !compared.Files[e.Path] {
			match++
		}
	}
	condition.Foreign = 2*match < listedFiles
}

func examineParity(ctx context.Context, s *session.Session, n *store.Node, x *store.Record, c *content.Condition, read *reading) error {
	m, parityPath := s.Manifest, tree.Name(n.Generation(s.Generation).Path(store.ParityFile))
	parity := content.ParityOf(n, m)
	defer parity.Close()
	wrong, kind := parity.Wrong, content.Damaged
	if c.Earlier = true; errors.Is(wrong, fs.ErrNotExist) {
		c.Earlier, kind = len(parity.Changes.Files) > 0, content.Missing
	}
	if read != nil {
		parity, c.Parity = read.parity, read.badParity
	} else {
		var err error
		if c.Parity, err = content.CompareParity(ctx, m, parity, x, nil, s.Read); err != nil {
			return err
		}
	}
	c.Remake = wrong != nil || slices.ContainsFunc(c.Parity, func(rows []int) bool { return len(rows) > 0 })
	if c.Remake {
		c.Note(parityPath, kind, parity.Failing)
	}
	return nil
}

// ExamineAll returns the conditions of the nodes from number first on, and clean ones for those before. Only nodes here
// have the fields without JSON.
func ExamineAll(ctx context.Context, s *session.Session, first int, edits protection.Edits) ([]*content.Condition, error) {
	for _, n := range s.Nodes {
		if x, st := s.RecordOf[n.Index], s.States[n.Index]; n.Index >= first && x != nil && !st.Lost && st.Failing == "" {
			s.Tell(0, content.FileBytes(x, content.AllFiles)+s.Manifest.ParityBytes())
		}
	}
	return compareNodes(ctx, s, first, func(ctx context.Context, n *store.Node) (*content.Condition, error) {
		return examine(ctx, s, n, edits, nil)
	})
}

// GlanceAll is [ExamineAll] that reads one part of the nodes, and compares the rest by names, lengths, times and modes.
func GlanceAll(ctx context.Context, s *session.Session, first int, part scrub.Part) ([]*content.Condition, error) {
	return compareNodes(ctx, s, first, func(ctx context.Context, n *store.Node) (*content.Condition, error) {
		return glance(ctx, s, n, part)
	})
}

// compareNodes compares the nodes from number first on, and logs what they are like.
func compareNodes(ctx context.Context, s *session.Session, first int, compare func(context.Context, *store.Node) (*content.Condition, error)) ([]*content.Condition, error) {
	return ConditionsOf(ctx, s, func(ctx context.Context, _ int, n *store.Node) (*content.Condition, error) {
		if n.Index < first {
			return &content.Condition{Manifest: true}, nil
		}
		c, err := compare(ctx, n)
		if err == nil {
			s.Log.DebugContext(ctx, "compared", "node", n.DirName, "status", c.Status())
		}
		return c, err
	})
}

// ConditionsOf takes the condition of each node here, and returns those of all nodes to all ranks.
func ConditionsOf(ctx context.Context, s *session.Session, conditionOf func(context.Context, int, *store.Node) (*content.Condition, error)) ([]*content.Condition, error) {
	localConditions := make([]*content.Condition, len(s.Nodes))
	conditions, err := session.Collect(ctx, s, func(ctx context.Context, i int, n *store.Node) (_ *content.Condition, err error) {
		localConditions[i], err = conditionOf(ctx, i, n)
		return localConditions[i], err
	})
	if err != nil {
		return nil, err
	}
	for i, n := range s.Nodes {
		conditions[n.Index] = localConditions[i]
	}
	return conditions, nil
}
