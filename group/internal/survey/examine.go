package survey

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"volley/group/internal/content"
	"volley/group/internal/judge"
	"volley/group/internal/pass"
	"volley/group/internal/scrub"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
)

// A scope is what is read of a node. Of the rest, names, lengths, times and modes tell.
type scope struct {
	scrub.Part               // of all files and of parity
	patterns   tree.Excludes // if not nil, of the files that match, and nothing else
}

func (x scope) entire() bool { return x.Part == scrub.EntireNode }

// nothing reports whether names, lengths, times and modes alone are compared.
func (x scope) nothing() bool { return x.Parts == 0 && x.patterns == nil }

// filesOf chooses the files of a record that are read from end to end.
func (x scope) filesOf(record *store.Record) content.Chosen {
	if x.patterns != nil {
		_, files := matches(record, x.patterns)
		return func(e *tree.Entry) bool { return files[e.Path] }
	}
	return func(*tree.Entry) bool { return x.entire() }
}

// An examination compares a node with what was protected.
type examination struct {
	*content.Condition
	s        *session.Session
	manifest *store.Manifest
	node     *store.Node
	state    *store.State
	record   *store.Record // nil: no node has it
	scope    scope
	edits    protection.Edits // of users, that come back too
	reading  *reading         // by a rebuild; nil: the node is read here

	isRead          content.Chosen
	compared        *content.Compared
	earlier         *content.Compared // by the record of the generation at which the node is; nil: it is at the current one
	earlierEntries  map[tree.Name]*tree.Entry
	moved           map[tree.Name]tree.Name
	deleted, intact map[tree.Name]bool
}

func newExamination(s *session.Session, n *store.Node, reads scope, edits protection.Edits) *examination {
	return &examination{s: s, manifest: s.Manifest, node: n, state: s.States[n.Index], record: s.RecordOf[n.Index], scope: reads, edits: edits}
}

// run finds the condition of the node.
func (x *examination) run(ctx context.Context) (*content.Condition, error) {
	if !x.list() {
		return x.Condition, nil
	}
	if err := x.compareEarlier(ctx); err != nil {
		return x.Condition, err
	}
	if x.state.Failing != "" { // nobody knows which files are stale
		x.list()
		return x.Condition, nil
	}
	x.isRead = x.scope.filesOf(x.record)
	if err := x.compareFiles(ctx); err != nil {
		return x.Condition, err
	}
	x.findMoves()
	x.judgeEntries()
	x.addLinks()
	x.addParents(x.holds)
	x.noteNew()
	x.findForeign()
	if x.scope.patterns != nil {
		return x.Condition, nil
	}
	if !x.scope.entire() {
		x.Data = mergeRows(x.Data, RowsOf(x.manifest, x.differingUnread()))
	}
	x.markTouched()
	err := x.compareParity(ctx)
	x.markHoles()
	return x.Condition, err
}

// list lists the node. It reports whether there is something to compare.
func (x *examination) list() bool {
	m, st := x.manifest, x.state
	x.Condition = &content.Condition{Rots: x.s.Roots || st.Interrupted(), Lost: st.Lost, Failing: st.Failing, Unreachable: st.Unreachable, Touched: make([][]int, m.DataChunks)}
	if x.Failing == "" && !x.Lost {
		x.compareMeta()
		var err error
		x.Listing, err = tree.Scan(x.node.Dir, false, m.Rules())
		for g, unread := range x.node.Unread {
			if err == nil && x.outdated() && g < m.Generation { // nobody knows which files are stale
				err = unread
			}
		}
		if err != nil {
			x.Failing = err.Error()
		}
	}
	if x.record != nil {
		x.Torn = pass.TornFiles(x.record)
	}
	switch {
	case x.record == nil:
		x.Note(x.metaPath(store.RecordFileName), content.Missing, nil)
		x.Data, x.Parity = content.AllRowsByChunk(m, m.DataChunks), content.AllRowsByChunk(m, m.ParityChunks)
		return false
	case x.Failing == "" && !x.Lost:
		return true
	case x.Failing == "":
		x.Restore = slices.Clone(x.record.Entries)
	}
	x.Data, x.Parity, x.Remake = RowsOf(m, x.record.Entries), content.AllRowsByChunk(m, m.ParityChunks), true
	x.markTouched()
	x.markHoles()
	return false
}

// outdated reports whether the node is not at the current generation.
func (x *examination) outdated() bool { return x.state.Holding(x.s.Current) == nil }

func (x *examination) metaPath(name string) tree.Name {
	return tree.Name(x.node.Generation(x.manifest.Generation).Path(name))
}

// compareMeta compares manifest, node.json and records.
func (x *examination) compareMeta() {
	h, l := x.state.Holding(x.s.Current), x.node.Generation(x.manifest.Generation)
	if h == nil {
		x.Note(x.metaPath(store.ManifestFile), content.Damaged, x.node.Unread[x.manifest.Generation])
		return
	}
	if !l.Named {
		x.Note(x.metaPath(store.NodeFile), content.Damaged, nil)
	}
	if h.Node < 0 {
		return
	}
	files := x.manifest.RecordFilesAt(h.Node)
	x.Manifest = l.Named && len(h.Records) == len(files)
	for i, f := range files {
		if slices.Contains(h.Records, i) {
			continue
		}
		_, err := x.node.Read(l, f)
		if !disk.Failed(err) { // the file exists, with other content
			err = nil
		}
		x.Note(x.metaPath(f.Name), content.Damaged, err)
	}
}

// compareEarlier compares a node that is at an earlier generation with its record of that.
func (x *examination) compareEarlier(ctx context.Context) error {
	var last *store.Loaded
	for _, h := range x.state.Held {
		if h.Committed && h.Generation < x.manifest.Generation && (last == nil || h.Generation > last.Manifest.Generation) {
			last = x.node.Held[h.Generation]
		}
	}
	inParts := x.scope.patterns == nil && !x.scope.entire()
	if inParts || !x.outdated() || last == nil || last.Node < 0 {
		return nil
	}
	text, err := x.node.Read(last, last.Manifest.RecordFilesAt(last.Node)[0])
	if disk.Failed(err) {
		x.state.Failing = err.Error()
	}
	if err != nil {
		return nil
	}
	record, err := last.Manifest.DecodeRecord(text)
	if err != nil {
		return nil
	}
	d := content.NewData(x.node.Dir, record.Entries, true)
	defer d.Close()
	x.earlierEntries = tree.ByPath(record.Entries)
	x.earlier, err = content.Compare(ctx, last.Manifest, d, record, x.scope.filesOf(record).Part, nil)
	return err
}

// compareFiles compares what is read of files with the record.
func (x *examination) compareFiles(ctx context.Context) (err error) {
	if x.reading != nil {
		x.compared = x.reading.data.Result()
		x.Data = x.compared.Blocks
		return nil
	}
	m, record, part := x.manifest, x.record, x.isRead.Part
	if err := content.FindSources(ctx, m, x.node.Dir, x.Listing, record, x.isRead); err != nil {
		return err
	}
	if x.compared = (&content.Compared{Files: map[tree.Name]bool{}}); x.scope.nothing() {
		return nil
	}
	bytes := content.FileBytes(record, x.isRead)
	switch {
	case x.scope.entire():
		bytes += m.ParityBytes()
	case x.scope.patterns == nil:
		bytes = x.scope.Bytes(m, record)
		part = func(e *tree.Entry, g store.FilePart) bool { return x.scope.HasFile(m, e, g) }
	}
	x.s.Tell(0, bytes)
	d := content.NewData(x.node.Dir, record.Entries, true)
	defer d.Close()
	if x.compared, err = content.Compare(ctx, m, d, record, part, x.s.Read); err != nil {
		return err
	}
	x.Data = x.compared.Blocks
	return nil
}

// findMoves finds what users have moved and deleted. It lists the node again: a program may have written to what was read,
// and a new time shows that as a change, not as damage. A node without a lock stays as it was listed.
func (x *examination) findMoves() {
	if len(x.compared.Files) > 0 && !x.state.Unlocked {
		if l, err := tree.Scan(x.node.Dir, false, x.manifest.Rules()); err == nil {
			x.Listing = l
		}
	}
	if x.outdated() { // moves count only at the current generation
		return
	}
	if x.moved = content.Moves(x.record, x.Listing, x.compared.Files); !x.s.Roots { // nobody changes a snapshot
		x.findDeleted()
	}
}

// findDeleted finds the entries that users have deleted: their parent, or the nearest ancestor that exists, has another
// time now. An entry does not count if a file like it has arrived, or if something unlisted has its name. If more of the
// files than [content.AccidentShare] are missing, it looks like an accident, and they count as lost.
func (x *examination) findDeleted() {
	isRemoved := content.RemovalTest(x.record.Entries, x.Listing)
	known := map[tree.Name]bool{}
	for _, e := range x.record.Entries {
		known[e.Path], known[x.moved[e.Path]] = true, true
	}
	arrived := content.ArrivalTest(x.Listing, func(p tree.Name) bool { return known[p] })
	deleted := map[tree.Name]bool{}
	files, recorded := 0, 0
	for _, e := range x.record.Entries {
		if content.IsFile(e) {
			recorded++
		}
		_, hasMoved := x.moved[e.Path]
		if hasMoved || x.Listing.Find(e.Path) != nil || x.Listing.Unreadable(e.Path) != nil || arrived(e) {
			continue
		}
		if removed, sure := isRemoved(e.Path); !removed || !sure || x.exists(e.Path) {
			continue
		}
		if deleted[e.Path] = true; content.IsFile(e) {
			files++
		}
	}
	if float64(files) <= content.AccidentShare*float64(recorded) {
		x.deleted = deleted
	}
}

// exists reports whether something may have a name, listed or not.
func (x *examination) exists(p tree.Name) bool {
	_, err := x.node.Dir.Lstat(string(p))
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

// judgeEntries adds the findings of entries of the record, and the entries that come back.
func (x *examination) judgeEntries() {
	x.intact = map[tree.Name]bool{}
	for _, e := range x.record.Entries {
		evidence, reason := x.evidenceOf(e)
		x.settle(e, judge.FateOf(evidence), reason)
	}
}

// noteNew adds the findings of what is listed, and was not protected under its name.
func (x *examination) noteNew() {
	known := map[tree.Name]bool{".": true}
	for _, e := range x.record.Entries {
		if target, moved := x.moved[e.Path]; moved {
			known[target] = true
		} else {
			known[e.Path] = true
		}
	}
	for _, e := range x.Listing.Entries {
		if !known[e.Path] && !e.Special() {
			x.settle(e, judge.FateOf(judge.Evidence{New: true}), nil)
		}
	}
	slices.SortStableFunc(x.Findings, func(a, b protection.Finding) int { return strings.Compare(string(a.Path), string(b.Path)) })
}

// settle notes what becomes of an entry.
func (x *examination) settle(e *tree.Entry, fate judge.Fate, reason error) {
	if fate.Reason != "" {
		reason = errors.New(fate.Reason)
	}
	if fate.Kind != "" {
		x.Note(e.Path, fate.Kind, reason)
	}
	if fate.Kind == content.Moved {
		x.Findings[len(x.Findings)-1].Target = x.moved[e.Path]
	}
	if fate.Return == judge.Hidden {
		x.Hidden = append(x.Hidden, e.Path)
	}
	if fate.Return.Brings(x.edits) {
		x.Restore = append(x.Restore, e)
	}
}

// evidenceOf returns what is known of an entry of the record, and why it cannot be read, or is no link any more.
func (x *examination) evidenceOf(e *tree.Entry) (judge.Evidence, error) {
	listed := x.Listing.Find(e.Path)
	if _, moved := x.moved[e.Path]; moved {
		return judge.Evidence{Moved: true}, nil
	}
	if listed == nil {
		reason, hidden := x.Listing.Unreadable(e.Path), x.Listing.Hides(e.Path)
		return judge.Evidence{Absent: reason == nil, Removed: x.deleted[e.Path], Failing: reason != nil && !hidden, Forbidden: hidden, Untouched: true}, reason
	}
	file := cmp.Or(content.FileOf(x.record, e), e)
	isLink, isFile := e.Type == tree.TypeLink, content.IsFile(e) && content.IsFile(listed)
	linked := isLink && x.sameInode(e, e.Target)
	x.intact[e.Path] = isFile && x.isIntact(e, listed, file)
	if linked || x.intact[e.Path] || !isFile && listed.Type == e.Type && listed.Target == e.Target {
		known := judge.Evidence{Intact: true, OtherMeta: !isLink && (!listed.SameMeta(e) || isFile && !listed.SameTime(e))}
		if isLink && !linked && x.Listing.Find(e.Target) != nil {
			known.Parted = true
			return known, fmt.Errorf("it is no longer another name of %q", string(e.Target))
		}
		return known, nil
	}
	reason := error(nil)
	if isFile {
		reason = x.failureOf(e, file)
	}
	forbidden := errors.Is(reason, fs.ErrPermission)
	return judge.Evidence{
		Failing: reason != nil && !forbidden, Forbidden: forbidden, Earlier: x.isEarlier(listed),
		Written: !isFile || !listed.SameTime(file) || file.Torn, Untouched: listed.Untouched(file) || x.Rots,
	}, reason
}

// sameInode reports whether a name is that of an entry, or another one of its file.
func (x *examination) sameInode(e *tree.Entry, p tree.Name) bool {
	return p == e.Path || x.Listing.Linked(p, e.Path)
}

// isIntact reports whether a listed file holds what was protected of a file, which was named e. A file that was not read
// does so if it has its time.
func (x *examination) isIntact(e, listed, file *tree.Entry) bool {
	unread := !x.isRead(file) && !listed.SameTime(file)
	if listed.Size == file.Size && !unread && x.sameInode(e, file.ReadAs()) && !x.compared.Files[file.Path] {
		return true
	}
	return slices.ContainsFunc(x.record.Copies[file.Path], func(p tree.Name) bool { return x.sameInode(e, p) })
}

// failureOf returns why a file cannot be read, which was named e.
func (x *examination) failureOf(e, file *tree.Entry) (reason error) {
	if x.sameInode(e, file.ReadAs()) {
		reason = x.compared.Failing[file.Path]
	}
	if reason == nil && x.earlier != nil {
		reason = x.earlier.Failing[e.Path]
	}
	return reason
}

// isEarlier reports whether a listed entry is as it was in the earlier generation at which the node is.
func (x *examination) isEarlier(listed *tree.Entry) bool {
	e := x.earlierEntries[listed.Path]
	return e != nil && e.Type == listed.Type && e.Target == listed.Target && e.Size == listed.Size && !x.earlier.Files[e.FileOf()]
}

// addLinks adds the names of files that come back, and finds for each file an intact name that others can link to.
func (x *examination) addLinks() {
	kinds, coming := map[tree.Name]string{}, tree.ByPath(x.Restore)
	for _, f := range x.Findings {
		kinds[f.Path] = f.Kind
	}
	for _, e := range x.record.Entries {
		if e.Type == tree.TypeLink && coming[e.Target] != nil && coming[e.Path] == nil && x.Listing.Linked(e.Path, e.Target) {
			coming[e.Path] = e
			x.Note(e.Path, kinds[e.Target], nil)
			x.Restore = append(x.Restore, e)
		}
	}
	x.IntactNames = map[tree.Name]*tree.Entry{}
	for _, e := range x.record.Entries {
		if file := e.FileOf(); file != "" && x.intact[e.Path] && coming[e.Path] == nil && x.IntactNames[file] == nil {
			x.IntactNames[file] = x.Listing.Find(e.Path)
		}
	}
	if count := len(x.record.Entries); len(x.Listing.Entries) == 1 && (count > 1 || count == 1 && x.node.Created()) {
		x.Restore = append(x.Restore, x.record.Entries[0]) // nobody has chosen the mode of an empty directory
	}
}

// addParents adds the directories above what comes back, unless it holds them.
func (x *examination) addParents(holds func(tree.Name) bool) {
	comes := map[tree.Name]bool{}
	for _, e := range x.Restore {
		for p := e.Path; !comes[p] && (p == e.Path || !holds(p)); p = content.Parent(p) {
			comes[p] = true
		}
	}
	x.Restore = slices.DeleteFunc(slices.Clone(x.record.Entries), func(e *tree.Entry) bool { return !comes[e.Path] })
}

// holds reports whether something at the node has a name.
func (x *examination) holds(p tree.Name) bool {
	return p == "." || x.Listing != nil && x.Listing.Find(p) != nil
}

// findForeign finds out whether a directory that names no node, and has no record of it, holds other files than the node had.
func (x *examination) findForeign() {
	st := x.state
	if st.Node >= 0 || len(st.Held) > 0 || !st.Files || st.Numbers != nil && x.manifest.RecordOwner(x.node.Dir, store.GenerationDir(x.manifest.Generation)) == x.node.Index {
		return
	}
	files, match := 0, 0
	for _, e := range x.Listing.Entries {
		if e.Type == tree.TypeFile {
			files++
		}
	}
	for _, e := range x.record.Entries {
		if listed := x.Listing.Find(e.Path); e.Type == tree.TypeFile && listed != nil && listed.Size == e.Size && !x.compared.Files[e.Path] {
			match++
		}
	}
	x.Foreign = 2*match < files
}

// differingUnread returns the files that differ for all that is known without reading them to the end: no block of theirs
// counts. Of rotten files the parts that were read are known.
func (x *examination) differingUnread() []*tree.Entry {
	differs, rotten := map[tree.Name]bool{}, map[tree.Name]bool{}
	for _, f := range x.Findings {
		differs[f.Path] = !content.Harmless(f)
		rotten[f.Path] = f.Kind == content.Damaged && x.compared.Files[f.Path] && x.compared.Failing[f.Path] == nil
	}
	list := slices.DeleteFunc(slices.Clone(x.record.Entries), func(e *tree.Entry) bool { return !differs[e.Path] })
	return slices.DeleteFunc(content.FilesOf(x.record, list), func(e *tree.Entry) bool { return x.IntactNames[e.Path] != nil || rotten[e.Path] })
}

// markTouched notes the blocks to restore: they differ from the record, and hold a part of a file that comes back.
func (x *examination) markTouched() {
	m, touched := x.manifest, tree.ExtentsOf(content.FilesOf(x.record, x.Restore))
	x.Touched = make([][]int, m.DataChunks)
	for chunk, rows := range x.Data {
		for _, row := range rows {
			_, length := m.Block(row)
			offset := m.OffsetOf(row, chunk, m.DataChunks)
			if first := touched.FirstAfter(offset); first < len(touched) && touched[first].Offset < offset+length {
				x.Touched[chunk] = append(x.Touched[chunk], row)
			}
		}
	}
}

// markHoles notes the blocks of sparse files and of parity that are zeros by the record, where something comes back.
func (x *examination) markHoles() {
	if len(x.Restore) == 0 && !x.Remake {
		return
	}
	m, files := x.manifest, tree.ExtentsOf(x.record.Entries)
	_, zeros := m.Zeros()
	x.Holes, x.ParityHoles = make([][]int, m.DataChunks), m.ParityHoles(x.record)
	for i, g := range m.FilePartsOf(files) {
		if files[g.File].Sparse && bytes.Equal(m.DigestOf(x.record.FileDigests, i), zeros) {
			x.Holes[g.Chunk] = append(x.Holes[g.Chunk], g.Row)
		}
	}
}

// compareParity compares what is read of parity with the record.
func (x *examination) compareParity(ctx context.Context) (err error) {
	m, p := x.manifest, x.metaPath(store.ParityFile)
	parity := content.ParityOf(x.node, m)
	defer parity.Close()
	wrong, kind := parity.Wrong, content.Damaged
	if wrong != nil && !x.scope.entire() {
		x.Note(p, kind, wrong)
		x.Parity = content.AllRowsByChunk(m, m.ParityChunks)
		return nil
	}
	if x.Earlier = true; errors.Is(wrong, fs.ErrNotExist) {
		x.Earlier, kind = len(parity.Changes.Files) > 0, content.Missing
	}
	switch {
	case x.reading != nil:
		parity, x.Parity = x.reading.parity, x.reading.badParity
	case !x.scope.nothing():
		if x.Parity, err = content.CompareParity(ctx, m, parity, x.record, func(row, chunk int) bool { return x.scope.HasParity(m, row, chunk) }, x.s.Read); err != nil {
			return err
		}
	}
	x.Remake = wrong != nil || slices.ContainsFunc(x.Parity, func(rows []int) bool { return len(rows) > 0 })
	if x.Remake {
		x.Note(p, kind, parity.Failing)
	}
	return nil
}

// RowsOf returns, by chunk, the rows in which files lie.
func RowsOf(m *store.Manifest, files []*tree.Entry) [][]int {
	list := make([][]int, m.DataChunks)
	for _, g := range m.FilePartsOf(tree.ExtentsOf(files)) {
		if rows := list[g.Chunk]; len(rows) == 0 || rows[len(rows)-1] != g.Row {
			list[g.Chunk] = append(rows, g.Row)
		}
	}
	return list
}

// ExamineAll returns the conditions of the nodes from number first on, of which it reads a part, and clean ones for those
// before. Only nodes here have the fields without JSON.
func ExamineAll(ctx context.Context, s *session.Session, first int, part scrub.Part, edits protection.Edits) ([]*content.Condition, error) {
	return ConditionsOf(ctx, s, func(ctx context.Context, _ int, n *store.Node) (*content.Condition, error) {
		if n.Index < first {
			return &content.Condition{Manifest: true}, nil
		}
		c, err := newExamination(s, n, scope{Part: part}, edits).run(ctx)
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
