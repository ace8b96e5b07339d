// Package pass reads rows of all nodes once, window by window, takes their digests, and codes what has changed.
package pass

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sort"
	"time"

	"volley/executor"
	"volley/group/internal/content"
	"volley/group/internal/erasure"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/verify"
)

// A Pass reads rows of the nodes' data once, by windows: some rows at a time, which are in memory while their digests are
// taken and they are coded. Meanwhile the next window is read. Rows that turn out to be as they were keep their parity.
type Pass struct {
	s        *session.Session
	M        *store.Manifest
	code     *erasure.Code
	Works    []*Work // here
	follows  bool    // earlier parity can be kept
	full     bool    // all rows are read
	check    *erasure.Check
	Coded    []int   // rows
	read     []int64 // bytes of files, by node here
	Reread   []int   // rows that were read again
	Torn     []string
	Vanished []string
	Unlinked []string // nodes, and why all their parity was written
	ReadAll  int64    // bytes of all nodes, set at the end
	Traffic  protection.PlanTraffic
}

type earlierData struct {
	m       *store.Manifest
	record  *store.Record
	list    []store.FilePart
	next    int // of the list
	files   tree.Extents
	entries map[tree.Name]*tree.Entry
	times   map[tree.Stamp][]*tree.Entry // files by length and time
	found   map[tree.Name]bool           // present files that hold one of their candidates
}

func NewPass(s *session.Session, m *store.Manifest, works []*Work) (*Pass, error) {
	c, err := erasure.CodeOf(m)
	if err != nil {
		return nil, err
	}
	for _, n := range works {
		n.Sums = content.NewSums(m, n.Data.Extents)
		n.Record.Parity = make([]byte, m.Rows()*m.ParityChunks*store.DigestBytes[m.Digest])
	}
	return &Pass{s: s, M: m, code: c, Works: works, follows: m.Keeps(s.Manifest), check: erasure.NewCheck(c, s.Seed, s.Nodes[0].Index, len(s.Nodes), m.ChunkBytes), read: make([]int64, len(works)), Traffic: erasure.NewTraffic(len(s.Nodes))}, nil
}

// Open begins the generation at the nodes here, and opens the parity that can be kept. Close closes all files, also after
// an error. Full also reads what has not changed. Force protects rotten files as they are.
func (p *Pass) Open(full, force bool) error {
	p.full = full || force || p.s.Manifest != nil && (p.s.Manifest.MAC == "") != (len(p.s.Key) == 0) // no such key has vouched for the data
	for _, n := range p.Works {
		n.force = force
		var err error
		if n.File, n.begun, err = n.Begin(p.M); err != nil {
			return err
		}
		n.Parity = n.File
		if p.s.RecordOf[n.Index] == nil {
			continue
		}
		n.earlier = earlierOf(p.s, n.Node)
		if p.follows {
			n.kept = content.ParityOf(n.Node, p.s.Manifest)
		}
	}
	return nil
}

// earlierOf returns what a node had in the generation in force.
func earlierOf(s *session.Session, n *store.Node) *earlierData {
	x := s.RecordOf[n.Index]
	e := &earlierData{m: s.Manifest, record: x, files: tree.ExtentsOf(x.Entries), entries: tree.ByPath(x.Entries), times: map[tree.Stamp][]*tree.Entry{}, found: map[tree.Name]bool{}}
	e.list = s.Manifest.FilePartsOf(e.files)
	for _, file := range x.Entries {
		if file.Type == tree.TypeFile && file.Size > 0 && !file.Torn {
			e.times[file.Stamp()] = append(e.times[file.Stamp()], file)
		}
	}
	return e
}

// untouched returns the earlier entry of a file that still has its length and time.
func (e *earlierData) untouched(listed *tree.Entry) *tree.Entry {
	recorded := e.entries[listed.Path]
	if recorded == nil || recorded.Type != tree.TypeFile || recorded.Torn || recorded.Size != listed.Size || !recorded.SameTime(listed) {
		return nil
	}
	return recorded
}

// candidates returns what a file may have been: the file with its name, length and time; else the files with its length
// and time that are not unchanged under their own names. Times of whole seconds, or of very many files, may be made up,
// and do not identify files.
func (n *Work) candidates(listed *tree.Entry) (list []*tree.Entry) {
	if unchanged := n.earlier.untouched(listed); unchanged != nil {
		return []*tree.Entry{unchanged}
	}
	similar := n.earlier.times[listed.Stamp()]
	if listed.Nanoseconds == 0 || len(similar) > content.MostAlike {
		return nil
	}
	for _, recorded := range similar {
		if present := n.Listing.Find(recorded.Path); present == nil || n.earlier.untouched(present) == nil {
			list = append(list, recorded)
		}
	}
	return list
}

// checkRot returns an error if a file holds none of its candidates.
func (n *Work) checkRot(ctx context.Context, listed *tree.Entry, candidates []*tree.Entry) error {
	if n.force || len(candidates) == 0 || n.earlier.found[listed.Path] {
		return nil
	}
	for _, recorded := range candidates {
		holds, err := content.HoldsFile(ctx, n.earlier.m, n.Dir, listed.Path, n.earlier.record, n.earlier.list, recorded)
		if err != nil && (ctx.Err() != nil || !n.changedSinceListed(listed)) {
			return err
		}
		if n.earlier.found[listed.Path] = holds; holds {
			return nil
		}
	}
	if n.changedSinceListed(listed) {
		return nil
	}
	copied, err := n.isCopy(ctx, listed, candidates)
	if copied || err != nil {
		return err
	}
	return &protection.RefusedError{Option: protection.OptionForce, Err: content.DamagedError(tree.JoinPath(n.DirName, listed.Path), tree.JoinPath(n.DirName, candidates[0].Path))}
}

// isCopy reports whether other files hold all candidates of a file: the candidates have moved there, and the file is a
// copy.
func (n *Work) isCopy(ctx context.Context, listed *tree.Entry, candidates []*tree.Entry) (bool, error) {
	if candidates[0].Path == listed.Path {
		return false, nil
	}
	similar := slices.DeleteFunc(slices.Clone(n.Listing.Entries), func(e *tree.Entry) bool {
		return e == listed || e.Type != tree.TypeFile || e.Size != listed.Size || !e.SameTime(listed)
	})
	for _, recorded := range candidates {
		found := false
		for _, e := range similar[:min(len(similar), content.MostAlike)] {
			holds, err := content.HoldsFile(ctx, n.earlier.m, n.Dir, e.Path, n.earlier.record, n.earlier.list, recorded)
			if ctx.Err() != nil {
				return false, err
			}
			if found = holds; found {
				break
			}
		}
		if !found {
			return false, nil
		}
	}
	return true, nil
}

// compareMoved compares files that have the length and time that they had, under this name or another, and that are cut
// into other file parts than before, with what they were.
func (n *Work) compareMoved(ctx context.Context, m *store.Manifest, follows bool) error {
	if n.earlier == nil {
		return nil
	}
	if follows {
		if err := n.compareCut(ctx, m); err != nil {
			return err
		}
	}
	for _, e := range n.Listing.Entries {
		if recorded := n.earlier.entries[e.Path]; !n.force && recorded != nil && e.Type == tree.TypeFile && recorded.Type == tree.TypeFile && recorded.Size != e.Size &&
			e.Nanoseconds != 0 && e.Seconds == recorded.Seconds && e.Nanoseconds == recorded.Nanoseconds && !recorded.Torn && !n.changedSinceListed(e) {
			return &protection.RefusedError{Option: protection.OptionForce, Err: fmt.Errorf("%s is damaged: it has the time that it had when it was protected, and %d bytes of %d. Recover it first", tree.JoinPath(n.DirName, e.Path), e.Size, recorded.Size)}
		}
		if e.Type != tree.TypeFile || e.Size == 0 {
			continue
		}
		candidates := n.candidates(e)
		if follows && slices.ContainsFunc(candidates, func(recorded *tree.Entry) bool {
			return recorded.Offset == e.Offset
		}) {
			continue // its parts are compared as they are read
		}
		if err := n.checkRot(ctx, e, candidates); err != nil {
			return err
		}
	}
	return nil
}

// compareCut compares what lies in the only row whose blocks have another length than before, as chunks have grown or
// shrunk: the digests of the pass are of other file parts.
func (n *Work) compareCut(ctx context.Context, m *store.Manifest) error {
	e := n.earlier
	if m.ChunkBytes == e.m.ChunkBytes {
		return nil
	}
	row := int(min(m.ChunkBytes, e.m.ChunkBytes) / m.BlockBytes)
	block := make([]byte, min(m.BlockBytes, e.m.ChunkBytes))
	listedAt := map[int64]*tree.Entry{}
	for _, file := range n.Data.Extents {
		listedAt[file.Offset] = file
	}
	first := sort.Search(len(e.list), func(j int) bool { return e.list[j].Row >= row })
	for j := first; j < len(e.list) && e.list[j].Row == row; j++ {
		g := e.list[j]
		recorded := e.files[g.File]
		listed := listedAt[recorded.Offset]
		if listed == nil {
			continue
		}
		candidates := n.candidates(listed)
		if !slices.Contains(candidates, recorded) {
			continue
		}
		_, err := n.Data.ReadAt(block[:g.N], g.Offset)
		if err == nil && !m.SameDigest(block[:g.N], e.record.FileDigests, j) {
			err = n.checkRot(ctx, listed, candidates)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readAndCode reads rows, codes what has changed, and sets the digests of the records.
func (p *Pass) readAndCode(ctx context.Context, rows []int) error {
	bytes := int64(0)
	for i, n := range p.Works {
		for _, g := range n.Sums.List {
			if _, read := slices.BinarySearch(rows, g.Row); read {
				p.read[i] += g.N
				bytes += g.N
			}
		}
	}
	err := EachWindow(ctx, p.s, p.M, rows, bytes, func(ctx context.Context, i int, w *RowWindow) error {
		return p.Works[i].readRows(ctx, w, p.check.Data[i])
	}, p.window)
	for _, n := range p.Works {
		n.Record.FileDigests = n.Sums.Digests
	}
	return err
}

func (p *Pass) window(ctx context.Context, windows []*RowWindow) error {
	s, m, firstNode := p.s, p.M, p.s.Nodes[0].Index
	b := content.Blocks{M: m, Rows: windows[0].rows}
	if p.follows {
		var err error
		if b.Rows, err = p.rowsToCode(ctx, windows); err != nil {
			return err
		}
	}
	if p.Coded = append(p.Coded, b.Rows...); len(b.Rows) > 0 {
		r, err := p.code.Making(ctx)
		if err != nil {
			return err
		}
		t, err := r.Run(ctx, s.Setting(), b, func(x content.Symbol) executor.Input {
			w := windows[x.Node-firstNode]
			return w.Input(w.Data, x.Index, b)
		}, func(x content.Symbol) executor.Output { return windows[x.Node-firstNode].output(x.Index, b) })
		if err != nil {
			return err
		}
		erasure.Add(&p.Traffic, t)
	}
	return s.EachLocal(func(i int, _ *store.Node) error { return p.Works[i].store(windows[i], b.Rows, p.check.Parity[i]) })
}

// rowsToCode returns the rows of a window to code: those that have changed, or have lost their parity. It reads the
// parity of the others.
func (p *Pass) rowsToCode(ctx context.Context, windows []*RowWindow) ([]int, error) {
	var changed [][]stretch
	for _, w := range windows {
		changed = append(changed, stretches(w.changed))
	}
	rows, err := p.union(session.Exchange(ctx, p.s, changed))
	if err != nil {
		return nil, err
	}
	stay := func(row int) bool { _, changed := slices.BinarySearch(rows, row); return !changed }
	if slices.ContainsFunc(windows[0].rows, stay) {
		lost, err := p.union(session.Collect(ctx, p.s, func(_ context.Context, i int, _ *store.Node) ([]stretch, error) {
			var lost []int
			for _, row := range windows[i].rows {
				if stay(row) && !p.Works[i].rightParity(windows[i], row) {
					lost = append(lost, row)
				}
			}
			return stretches(lost), nil
		}))
		if err != nil {
			return nil, err
		}
		rows = slices.Sorted(slices.Values(slices.Concat(rows, lost)))
	}
	for _, row := range rows {
		if _, present := slices.BinarySearch(windows[0].rows, row); !present {
			return nil, fmt.Errorf("a rank says that row %d has changed, which is not read now", row)
		}
	}
	return rows, nil
}

// readRows reads the rows of a window, and finds out which are not as they were. While they are in the cache, it adds them
// to their fingerprints.
func (n *Work) readRows(ctx context.Context, w *RowWindow, prints *verify.Fingerprints) error {
	m := w.M
	w.changed = w.changed[:0]
	for _, row := range w.rows {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n.Sums.Seek(row)
		firstPart := n.Sums.Next
		for chunk := range m.DataChunks {
			block, offset := w.Block(w.Data, row, chunk), m.OffsetOf(row, chunk, m.DataChunks)
			if _, err := n.Data.ReadAt(block, offset); err != nil {
				return err
			}
			n.Sums.Add(offset, block)
		}
		n.Sums.Flush()
		prints.Add(w.row(w.Data, row, m.DataChunks)...)
		unchanged, err := n.rowUnchanged(ctx, m, row, firstPart)
		if err != nil {
			return err
		}
		if !unchanged {
			w.changed = append(w.changed, row)
		}
	}
	return nil
}

// rowUnchanged reports whether a row is as it was. Its file parts begin at firstPart. The error is of a file that has
// rotted.
func (n *Work) rowUnchanged(ctx context.Context, m *store.Manifest, row, firstPart int) (bool, error) {
	e := n.earlier
	if e == nil || !m.Keeps(e.m) {
		return false, nil
	}
	for e.next < len(e.list) && e.list[e.next].Row < row { // rows that are not read
		e.next++
	}
	firstEarlier := e.next
	for e.next < len(e.list) && e.list[e.next].Row == row {
		e.next++
	}
	_, length := m.Block(row)
	_, earlierLength := e.m.Block(row)
	unchanged := row < e.m.Rows() && e.next-firstEarlier == n.Sums.Next-firstPart && length == earlierLength
	for i := firstPart; i < n.Sums.Next; i++ {
		g := n.Sums.List[i]
		file := n.Sums.Files[g.File]
		j, _ := slices.BinarySearchFunc(e.list[firstEarlier:e.next], g.Offset, func(o store.FilePart, offset int64) int { return cmp.Compare(o.Offset, offset) })
		if j += firstEarlier; j < e.next && e.list[j].Offset == g.Offset && e.list[j].N == g.N && bytes.Equal(m.DigestOf(e.record.FileDigests, j), m.DigestOf(n.Sums.Digests, i)) {
			continue
		}
		unchanged = false
		if j == e.next || e.list[j].Offset != g.Offset || e.list[j].N != g.N || e.files[e.list[j].File].Offset != file.Offset {
			continue
		}
		candidates := n.candidates(file)
		if !slices.ContainsFunc(candidates, func(recorded *tree.Entry) bool { return recorded.Offset == file.Offset }) {
			continue
		}
		if err := n.checkRot(ctx, file, candidates); err != nil {
			return false, err
		}
		if len(candidates) == 1 && !n.force && n.earlier.found[file.Path] && !n.changedSinceListed(file) {
			return false, fmt.Errorf("%s does not hold the same each time it is read: run again, and test the disk and the memory if that fails too", tree.JoinPath(n.DirName, file.Path))
		}
	}
	return unchanged, nil
}

// rightParity reads the earlier parity of a row, and reports whether it is as it was made.
func (n *Work) rightParity(w *RowWindow, row int) bool {
	if n.kept == nil {
		return false
	}
	for chunk := range w.M.ParityChunks {
		if !content.ReadParity(w.M, n.kept, n.earlier.record, row, chunk, w.Block(w.Parity, row, chunk)) {
			return false
		}
	}
	return true
}

// store writes the parity of a window: of the rows that were coded, and of those that stay as they were, unless it lies
// where they are.
func (n *Work) store(w *RowWindow, coded []int, prints *verify.Fingerprints) error {
	m := w.M
	digests := content.Pairing{M: m}
	defer digests.Flush()
	for _, row := range w.rows {
		_, wasCoded := slices.BinarySearch(coded, row)
		blocks := w.row(w.Parity, row, m.ParityChunks)
		for chunk, block := range blocks {
			i := m.Number(row, chunk, m.ParityChunks)
			if wasCoded || !n.File.Stays(i) {
				if _, err := n.Parity.WriteAt(block, m.OffsetOf(row, chunk, m.ParityChunks)); err != nil {
					return err
				}
			}
			if digest := m.DigestOf(n.Record.Parity, i); wasCoded {
				digests.Add(digest, block)
			} else {
				copy(digest, m.DigestOf(n.earlier.record.Parity, i))
			}
		}
		prints.Add(blocks...)
	}
	return nil
}

func (p *Pass) Close() {
	for _, n := range p.Works {
		if n.File != nil {
			n.File.Close()
		}
		if n.kept != nil {
			n.kept.Close()
		}
	}
}

type Work struct {
	*store.Node
	Listing        *tree.Listing
	Data           *content.Data
	EarlierEntries []*tree.Entry // entries whose places its files take
	Record         store.Record

	// Of the pass:
	force    bool
	Sums     *content.Sums
	Parity   io.WriterAt         // parity to write
	File     *store.ParityWriter // the files of the parity; nil: the parity is in memory
	unlinked string              // why earlier parity is copied
	vanished []tree.Name         // files that have vanished since the listing, and are still in the record
	dropped  []tree.Name         // vanished files that left the record
	begun    time.Time           // when the directory of the generation was made, by the clock of its file system
	earlier  *earlierData        // nil: the node had no record
	kept     *content.Parity     // earlier parity; nil: there is none
}

// Make codes everything and returns the manifest as stored, and the record files here. Record makes a node's record.
func (p *Pass) Make(ctx context.Context, record func(*Work) ([]byte, error)) (text []byte, files [][]*store.RecordFile, err error) {
	s, m := p.s, p.M
	rows, err := p.chooseRows(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := p.readAndCode(ctx, rows); err != nil {
		return nil, nil, err
	}
	if p.Works[0].File != nil { // and not memory
		if err := p.rereadChanged(ctx); err != nil {
			return nil, nil, err
		}
	}
	type nodeResult struct {
		Record   int // bytes
		Sent     int64
		Read     int64
		Torn     []tree.Name
		Vanished []tree.Name `json:"Gone"`
		Unlinked string      `json:",omitempty"`
		Fold     []byte
	}
	localFolds := p.check.Folds()
	records := make([][]byte, len(p.Works))
	results, err := session.Collect(ctx, s, func(_ context.Context, i int, n *store.Node) (_ nodeResult, err error) {
		records[i], err = record(p.Works[i])
		return nodeResult{len(records[i]), p.Traffic.Sent[i], p.read[i], TornFiles(&p.Works[i].Record), p.Works[i].dropped, p.Works[i].unlinked, localFolds[i]}, err
	})
	if err != nil {
		return nil, nil, err
	}
	var folds [][]byte
	m.Records = nil
	for n, x := range results {
		for _, name := range x.Torn {
			p.Torn = append(p.Torn, tree.JoinPath(s.States[n].Dir, name))
		}
		for _, name := range x.Vanished {
			p.Vanished = append(p.Vanished, tree.JoinPath(s.States[n].Dir, name))
		}
		if x.Unlinked != "" {
			p.Unlinked = append(p.Unlinked, x.Unlinked)
		}
		m.Records = append(m.Records, store.RecordSum{Bytes: int64(x.Record)})
		p.ReadAll += x.Read
		p.Traffic.MostSent = max(p.Traffic.MostSent, x.Sent)
		folds = append(folds, x.Fold)
	}
	if err := p.check.Verify(folds, s.Name); err != nil {
		return nil, nil, err
	}
	if files, err = s.CopyRecords(ctx, m, records); err != nil {
		return nil, nil, err
	}
	if err := m.Validate(); err != nil {
		return nil, nil, err
	}
	text, err = m.Encode(s.Key)
	return text, files, err
}
