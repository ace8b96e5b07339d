// Package pass reads cells of all nodes once, window by window, takes their digests, and codes what has changed.
package pass

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"sync"
	"time"

	"volley/group/internal/content"
	"volley/group/internal/erasure"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
	"volley/verify"
)

// A Pass reads cells of the nodes' data once, by windows: some cells at a time, which are in memory while their digests
// are taken and they are coded. Meanwhile the next window is read. Cells that turn out to be as they were keep their
// parity.
type Pass struct {
	s        *session.Session
	M        *store.Manifest
	code     *erasure.Code
	Works    []*Work // here
	follows  bool    // earlier parity can be kept
	full     bool    // all cells are read
	filled   []int   // cells in which a node has data, until all are read; nil: it is not known yet
	check    *erasure.Check
	Coded    []int   // cells
	read     []int64 // bytes of files, by node here
	Reread   []int   // cells that were read again
	Torn     []string
	Vanished []string
	Unlinked []string      // nodes, and why all their parity was written
	Doubtful [][]tree.Name // by node: files of which nobody can tell whether somebody has changed them, or they have rotted
	ReadAll  int64         // bytes of all nodes, set at the end
	Traffic  protection.PlanTraffic
}

type earlierData struct {
	m      *store.Manifest
	record *store.Record
	list   []store.FilePart
	files  tree.Extents
	times  func() map[tree.Stamp][]*tree.Entry // files by length and time
	found  map[tree.Name]bool                  // present files that hold one of their candidates
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
		n.force, n.rots, n.doubtful = force, p.s.Roots, map[tree.Name]bool{}
		var err error
		if n.File, n.begun, err = n.Begin(p.M); err != nil {
			return err
		}
		n.Parity = n.File
		n.writeBack()
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
	e := &earlierData{m: s.Manifest, record: x, files: tree.ExtentsOf(x.Entries), found: map[tree.Name]bool{}}
	e.list = s.Manifest.FilePartsOf(e.files)
	e.times = sync.OnceValue(func() map[tree.Stamp][]*tree.Entry {
		times := map[tree.Stamp][]*tree.Entry{}
		for _, file := range x.Entries {
			if file.Type == tree.TypeFile && file.Size > 0 && !file.Torn {
				times[file.Stamp()] = append(times[file.Stamp()], file)
			}
		}
		return times
	})
	return e
}

// untouched returns the earlier entry of a file that still has its length and time.
func (e *earlierData) untouched(listed *tree.Entry) *tree.Entry {
	recorded := tree.Find(e.record.Entries, listed.Path)
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
	similar := n.earlier.times()[listed.Stamp()]
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

// checkRot finds out whether a file holds one of its candidates. If not, the file has rotted where nobody has touched it
// since, which is an error. Else it is doubtful.
func (n *Work) checkRot(ctx context.Context, listed *tree.Entry, candidates []*tree.Entry) error {
	if n.force || len(candidates) == 0 || n.earlier.found[listed.Path] || n.doubtful[listed.Path] {
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
	if n.rots || slices.ContainsFunc(candidates, listed.Untouched) {
		return &protection.RefusedError{Option: protection.OptionForce, Err: content.DamagedError(tree.JoinPath(n.DirName, listed.Path), tree.JoinPath(n.DirName, candidates[0].Path))}
	}
	n.doubtful[listed.Path] = true
	return nil
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
	for recorded, e := range tree.Pairs(n.earlier.record.Entries, n.Listing.Entries) {
		if e == nil {
			continue
		}
		if !n.force && recorded != nil && recorded.Size != e.Size && e.Untouched(recorded) && !n.changedSinceListed(e) {
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
	first := sort.Search(len(e.list), func(j int) bool { return e.list[j].Row >= row })
	for j := first; j < len(e.list) && e.list[j].Row == row; j++ {
		g := e.list[j]
		recorded := e.files[g.File]
		listed := n.Data.Beginning(recorded.Offset)
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

// readAndCode reads cells, codes what has changed, and sets the digests of the records.
func (p *Pass) readAndCode(ctx context.Context, cells []int) error {
	if p.Works[0].File != nil && len(cells) > 0 { // and not memory
		filled, err := p.filled, error(nil)
		if p.filled = nil; filled == nil {
			filled, err = p.filledCells(ctx, cells)
		}
		if zeros := subtract(cells, filled); err == nil && len(zeros) > 0 {
			err = p.s.EachSteady(ctx, func(ctx context.Context, i int, _ *store.Node) error { return p.Works[i].takeZeros(ctx, p.M, zeros) })
		}
		if err != nil {
			return err
		}
		cells = filled
	}
	bytes := int64(0)
	for i, n := range p.Works {
		for _, g := range n.Sums.List {
			if includes(cells, n.cell(p.M, g)) {
				p.read[i] += g.N
				bytes += g.N
			}
		}
	}
	err := EachWindow(ctx, p.s, p.M, cells, bytes, func(ctx context.Context, i int, w *Window) error {
		return p.Works[i].read(ctx, w, p.check.Data[i])
	}, p.window)
	for _, n := range p.Works {
		n.Record.FileDigests = n.Sums.Digests
	}
	return err
}

func (p *Pass) window(ctx context.Context, windows []*Window) error {
	s := p.s
	coded := windows[0].cellList()
	if p.follows {
		var err error
		if coded, err = p.cellsToCode(ctx, windows); err != nil {
			return err
		}
	}
	if p.Coded = append(p.Coded, coded...); len(coded) > 0 {
		r, err := p.code.Making(ctx)
		if err != nil {
			return err
		}
		parts, t, err := Code(ctx, s, windows, coded, r)
		if err != nil {
			return err
		}
		erasure.Add(&p.Traffic, t)
		for i, w := range windows {
			if parts[i] == w {
				break
			}
			for blocks := range parts[i].Positions(true) {
				for _, b := range blocks {
					copy(w.find(b), b.Bytes)
				}
			}
		}
	}
	return s.EachLocal(func(i int, _ *store.Node) error { return p.Works[i].store(windows[i], coded, p.check.Parity[i]) })
}

// cellsToCode returns the cells of a window to code: those that have changed, or have lost their parity. It reads the
// parity of the others.
func (p *Pass) cellsToCode(ctx context.Context, windows []*Window) ([]int, error) {
	var changed [][]stretch
	for _, w := range windows {
		changed = append(changed, stretches(w.changed))
	}
	cells, err := p.union(session.Exchange(ctx, p.s, changed))
	if err != nil {
		return nil, err
	}
	present := windows[0].cellList()
	if len(cells) < len(present) {
		lost, err := p.union(session.Collect(ctx, p.s, func(_ context.Context, i int, _ *store.Node) ([]stretch, error) {
			var lost []int
			for blocks := range windows[i].Positions(true) {
				for _, b := range blocks {
					if !includes(cells, b.Cell) && !p.Works[i].rightParity(p.M, b) {
						lost = append(lost, b.Cell)
					}
				}
			}
			return stretches(lost), nil
		}))
		if err != nil {
			return nil, err
		}
		cells = slices.Sorted(slices.Values(slices.Concat(cells, lost)))
	}
	if unread := subtract(cells, present); len(unread) > 0 {
		return nil, fmt.Errorf("a rank says that cell %d has changed, which is not read now", unread[0])
	}
	return cells, nil
}

// read reads the cells of a window, and finds out which are not as they were. While they are in the cache, it adds them
// to their fingerprints.
func (n *Work) read(ctx context.Context, w *Window, prints *verify.Fingerprints) error {
	m := w.M
	w.changed = w.changed[:0]
	for blocks, padded := range w.Positions(false) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, b := range blocks {
			offset := m.OffsetOf(b.Row, b.Index, m.DataChunks)
			if _, err := n.Data.ReadAt(b.Bytes, offset); err != nil {
				return err
			}
			n.Sums.Next = content.FirstPart(n.Sums.List, offset)
			n.Sums.Add(offset, b.Bytes)
		}
		n.Sums.Flush()
		prints.Add(padded...)
		for _, b := range blocks {
			unchanged, err := n.blockUnchanged(ctx, m, b)
			if err != nil {
				return err
			}
			if !unchanged {
				w.changed = append(w.changed, b.Cell)
			}
		}
	}
	return nil
}

// blockUnchanged reports whether a block is as it was. The error is of a file that has rotted.
func (n *Work) blockUnchanged(ctx context.Context, m *store.Manifest, b Block) (bool, error) {
	e := n.earlier
	if e == nil || !m.Keeps(e.m) {
		return false, nil
	}
	offset := m.OffsetOf(b.Row, b.Index, m.DataChunks)
	end := offset + int64(len(b.Bytes))
	first, last := content.FirstPart(n.Sums.List, offset), content.FirstPart(n.Sums.List, end)
	_, earlierLength := e.m.Block(b.Row)
	unchanged := last-first == content.FirstPart(e.list, end)-content.FirstPart(e.list, offset) && int64(len(b.Bytes)) == earlierLength
	for i := first; i < last; i++ {
		g := n.Sums.List[i]
		file := n.Sums.Files[g.File]
		j := content.FirstPart(e.list, g.Offset)
		matches := j < len(e.list) && e.list[j].Offset == g.Offset && e.list[j].N == g.N
		if matches && bytes.Equal(m.DigestOf(e.record.FileDigests, j), m.DigestOf(n.Sums.Digests, i)) {
			continue
		}
		unchanged = false
		if !matches || e.files[e.list[j].File].Offset != file.Offset {
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

// rightParity reads a block of the earlier parity, and reports whether it is as it was made.
func (n *Work) rightParity(m *store.Manifest, b Block) bool {
	return n.kept != nil && content.ReadParity(m, n.kept, n.earlier.record, b.Row, b.Index, b.Bytes)
}

// store writes the parity of a window: of the cells that were coded, and of those that stay as they were, unless it lies
// where they are.
func (n *Work) store(w *Window, coded []int, prints *verify.Fingerprints) error {
	m := w.M
	digests := content.Pairing{M: m}
	defer digests.Flush()
	for blocks, padded := range w.Positions(true) {
		for _, b := range blocks {
			i, wasCoded := m.Number(b.Row, b.Index, m.ParityChunks), includes(coded, b.Cell)
			if wasCoded || !n.File.Stays(i) {
				if _, err := n.Parity.WriteAt(b.Bytes, m.OffsetOf(b.Row, b.Index, m.ParityChunks)); err != nil {
					return err
				}
			}
			if digest := m.DigestOf(n.Record.Parity, i); wasCoded {
				digests.Add(digest, b.Bytes)
			} else {
				copy(digest, m.DigestOf(n.earlier.record.Parity, i))
			}
		}
		prints.Add(padded...)
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
	Listing *tree.Listing
	Data    *content.Data
	Record  store.Record

	// Of the pass:
	force    bool
	rots     bool // no file has its time set back: nobody changes a snapshot
	Sums     *content.Sums
	Parity   io.WriterAt          // parity to write
	File     *store.ParityWriter  // the files of the parity; nil: the parity is in memory
	unlinked string               // why earlier parity is copied
	vanished []tree.Name          // files that have vanished since the listing, and are still in the record
	dropped  []tree.Name          // vanished files that left the record
	begun    time.Time            // when the directory of the generation was made, by the clock of its file system
	silent   map[disk.FileID]bool // file systems on which a file may change without another time
	earlier  *earlierData         // nil: the node had no record
	doubtful map[tree.Name]bool   // files that have the length and time of what was protected, another ctime, and other content
	kept     *content.Parity      // earlier parity; nil: there is none
}

// Make codes everything and returns the manifest as stored, and the record files here. Record makes a node's record.
func (p *Pass) Make(ctx context.Context, record func(*Work) ([]byte, error)) (text []byte, files [][]*store.RecordFile, err error) {
	s, m := p.s, p.M
	cells, err := p.chooseCells(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := p.readAndCode(ctx, cells); err != nil {
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
		Doubtful []tree.Name
		Fold     []byte
	}
	localFolds := p.check.Folds()
	records := make([][]byte, len(p.Works))
	results, err := session.Collect(ctx, s, func(_ context.Context, i int, n *store.Node) (_ nodeResult, err error) {
		records[i], err = record(p.Works[i])
		return nodeResult{len(records[i]), p.Traffic.Sent[i], p.read[i], TornFiles(&p.Works[i].Record), p.Works[i].dropped, p.Works[i].unlinked, slices.Sorted(maps.Keys(p.Works[i].doubtful)), localFolds[i]}, err
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
		p.Doubtful = append(p.Doubtful, x.Doubtful)
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
