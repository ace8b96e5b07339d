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
	"volley/internal/disk"
	"volley/verify"
)

// A Pass reads rows of the nodes' data once, by windows: some rows at a time, which are in memory while their digests are
// taken and they are coded. Meanwhile the next window is read. Rows that turn out to be as they were keep their parity.
type Pass struct {
	s       *session.Session
	M       *store.Manifest
	code    *erasure.Code
	Works   []*Work // here
	follows bool    // earlier parity can be kept
	full    bool    // all rows are read
	check   *erasure.Check
	Coded   []int   // rows
	read    []int64 // bytes of files, by node here
	Reread  []int   // rows that were read again
	Torn    []string
	Gone    []string
	ReadAll int64 // of all nodes, at the end
	Traffic protection.PlanTraffic
}

type earlierData struct {
	m       *store.Manifest
	record  *store.Record
	list    []store.FilePart
	next    int // of the list
	files   tree.Extents
	entries map[tree.Name]*tree.Entry
	times   map[tree.Stamp][]*tree.Entry // files by length and time
	found   map[tree.Name]bool           // files now that were seen to hold what they may have been
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

// Open opens the files that parity is written to and, where it can be kept, read from. They are to be closed after an
// error too. Full reads what has not changed, too. Force protects what has rotted as it is.
func (p *Pass) Open(full, force bool) error {
	p.full = full || force || readsAll(p.s)
	for _, n := range p.Works {
		n.force = force
		f, err := n.Begin(p.M.Generation)
		if err != nil {
			return err
		}
		n.Parity, n.File = f, f
		info, err := f.Stat()
		if err != nil {
			return err
		}
		n.begun = info.ModTime()
		if err := f.Truncate(p.M.ParityBytes()); err != nil {
			return err
		}
		if p.s.RecordOf[n.Index] == nil {
			continue
		}
		n.earlier = earlierOf(p.s, n.Node)
		if p.follows {
			if n.kept, err = n.OpenParity(p.s.Generation); err != nil {
				n.kept = nil // all of it is made anew
				continue
			}
			info, err := n.kept.Stat()
			n.part = err != nil || info.Size() != p.s.Manifest.ParityBytes()
		}
	}
	return nil
}

// readsAll reports whether a run is to read what has not changed, as it gives a key to what nobody has vouched for.
func readsAll(s *session.Session) bool {
	return s.Manifest != nil && (s.Manifest.MAC == "") != (len(s.Key) == 0)
}

// earlierOf returns what a node had in the generation in force.
func earlierOf(s *session.Session, n *store.Node) *earlierData {
	x := s.RecordOf[n.Index]
	e := &earlierData{m: s.Manifest, record: x, files: tree.ExtentsOf(x.Entries), entries: tree.ByPath(x.Entries), times: map[tree.Stamp][]*tree.Entry{}, found: map[tree.Name]bool{}}
	e.list = s.Manifest.FilePartsOf(e.files)
	for _, was := range x.Entries {
		if was.Type == tree.TypeFile && was.Size > 0 && !was.Torn {
			e.times[was.Stamp()] = append(e.times[was.Stamp()], was)
		}
	}
	return e
}

// untouched returns what a file was, if it has the length and time that it had.
func (e *earlierData) untouched(now *tree.Entry) *tree.Entry {
	was := e.entries[now.Path]
	if was == nil || was.Type != tree.TypeFile || was.Torn || was.Size != now.Size || !was.SameTime(now) {
		return nil
	}
	return was
}

// were returns what a file may have been: what had its name, length and time, or else the files that had its length and
// time, and that are not there any more as they were. Times of whole seconds, or of very many files, may be made up, and
// tell nothing of names.
func (n *Work) were(now *tree.Entry) (list []*tree.Entry) {
	if was := n.earlier.untouched(now); was != nil {
		return []*tree.Entry{was}
	}
	alike := n.earlier.times[now.Stamp()]
	if now.Nanoseconds == 0 || len(alike) > content.MostAlike {
		return nil
	}
	for _, was := range alike {
		if is := n.Listing.Find(was.Path); is == nil || n.earlier.untouched(is) == nil {
			list = append(list, was)
		}
	}
	return list
}

// rotten returns an error where a file holds none of what it may have been.
func (n *Work) rotten(ctx context.Context, now *tree.Entry, were []*tree.Entry) error {
	if n.force || len(were) == 0 || n.earlier.found[now.Path] {
		return nil
	}
	for _, was := range were {
		same, err := content.HoldsFile(ctx, n.earlier.m, n.Dir, now.Path, n.earlier.record, n.earlier.list, was)
		if err != nil && (ctx.Err() != nil || !n.meanwhile(now)) {
			return err
		}
		if n.earlier.found[now.Path] = same; same {
			return nil
		}
	}
	if n.meanwhile(now) {
		return nil
	}
	copied, err := n.elsewhere(ctx, now, were)
	if copied || err != nil {
		return err
	}
	return &protection.RefusedError{Option: protection.OptionForce, Err: content.ErrDamaged(tree.JoinPath(n.DirName, now.Path), tree.JoinPath(n.DirName, were[0].Path))}
}

// elsewhere reports whether other files hold all that a file may have been under other names: they have moved there, and
// the file is a copy.
func (n *Work) elsewhere(ctx context.Context, now *tree.Entry, were []*tree.Entry) (bool, error) {
	if were[0].Path == now.Path {
		return false, nil
	}
	alike := slices.DeleteFunc(slices.Clone(n.Listing.Entries), func(e *tree.Entry) bool {
		return e == now || e.Type != tree.TypeFile || e.Size != now.Size || !e.SameTime(now)
	})
	for _, was := range were {
		there := false
		for _, e := range alike[:min(len(alike), content.MostAlike)] {
			same, err := content.HoldsFile(ctx, n.earlier.m, n.Dir, e.Path, n.earlier.record, n.earlier.list, was)
			if ctx.Err() != nil {
				return false, err
			}
			if there = same; there {
				break
			}
		}
		if !there {
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
		if was := n.earlier.entries[e.Path]; !n.force && was != nil && e.Type == tree.TypeFile && was.Type == tree.TypeFile && was.Size != e.Size &&
			e.Nanoseconds != 0 && e.Seconds == was.Seconds && e.Nanoseconds == was.Nanoseconds && !was.Torn && !n.meanwhile(e) {
			return &protection.RefusedError{Option: protection.OptionForce, Err: fmt.Errorf("%s is damaged: it has the time that it had when it was protected, and %d bytes of %d. Recover it first", tree.JoinPath(n.DirName, e.Path), e.Size, was.Size)}
		}
		if e.Type != tree.TypeFile || e.Size == 0 {
			continue
		}
		were := n.were(e)
		if follows && slices.ContainsFunc(were, func(was *tree.Entry) bool {
			return was.Offset == e.Offset
		}) {
			continue // its parts are compared as they are read
		}
		if err := n.rotten(ctx, e, were); err != nil {
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
	now := map[int64]*tree.Entry{}
	for _, is := range n.Data.Extents {
		now[is.Offset] = is
	}
	first := sort.Search(len(e.list), func(j int) bool { return e.list[j].Row >= row })
	for j := first; j < len(e.list) && e.list[j].Row == row; j++ {
		g := e.list[j]
		was := e.files[g.File]
		is := now[was.Offset]
		if is == nil {
			continue
		}
		were := n.were(is)
		if !slices.Contains(were, was) {
			continue
		}
		_, err := n.Data.ReadAt(block[:g.N], g.Offset)
		if err == nil && !m.SameDigest(block[:g.N], e.record.FileDigests, j) {
			err = n.rotten(ctx, is, were)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// run reads and codes what has changed, and sets the digests of the records.
func (p *Pass) run(ctx context.Context) error {
	rows, err := p.choose(ctx)
	if err != nil {
		return err
	}
	return p.readAndCode(ctx, rows)
}

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
	err := EachWindow(ctx, p.s, p.M, rows, bytes, func(ctx context.Context, i int, w *Window) error {
		return p.Works[i].readRows(ctx, w, p.check.Data[i])
	}, p.window)
	for _, n := range p.Works {
		n.Record.FileDigests = n.Sums.Digests
	}
	return err
}

func (p *Pass) window(ctx context.Context, windows []*Window) error {
	s, m, here := p.s, p.M, p.s.Nodes[0].Index
	b := content.Blocks{M: m, Rows: windows[0].rows}
	if p.follows {
		var err error
		if b.Rows, err = p.changed(ctx, windows); err != nil {
			return err
		}
	}
	if p.Coded = append(p.Coded, b.Rows...); len(b.Rows) > 0 {
		r, err := p.code.Making(ctx)
		if err != nil {
			return err
		}
		t, err := r.Run(ctx, s.Setting(), b, func(x content.Symbol) executor.Input {
			w := windows[x.Node-here]
			return w.Input(w.Data, x.Index, b)
		}, func(x content.Symbol) executor.Output { return windows[x.Node-here].output(x.Index, b) })
		if err != nil {
			return err
		}
		erasure.Add(&p.Traffic, t)
	}
	return s.EachLocal(func(i int, _ *store.Node) error { return p.Works[i].store(windows[i], b.Rows, p.check.Parity[i]) })
}

// changed returns which rows of a window are coded: those that are not as they were, or have lost their parity. Of the
// others it reads the parity.
func (p *Pass) changed(ctx context.Context, windows []*Window) ([]int, error) {
	var mine [][]stretch
	for _, w := range windows {
		mine = append(mine, stretches(w.changed))
	}
	rows, err := p.union(session.Exchange(ctx, p.s, mine))
	if err != nil {
		return nil, err
	}
	stay := func(row int) bool { _, is := slices.BinarySearch(rows, row); return !is }
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
		if _, is := slices.BinarySearch(windows[0].rows, row); !is {
			return nil, fmt.Errorf("a rank says that row %d has changed, which is not read now", row)
		}
	}
	return rows, nil
}

// readRows reads the rows of a window, and finds out which are not as they were. While they are in the cache, it adds them
// to their fingerprints.
func (n *Work) readRows(ctx context.Context, w *Window, prints *verify.Fingerprints) error {
	m := w.M
	w.changed = w.changed[:0]
	for _, row := range w.rows {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n.Sums.Seek(row)
		before := n.Sums.Next
		for chunk := range m.DataChunks {
			block, at := w.Block(w.Data, row, chunk), m.OffsetOf(row, chunk, m.DataChunks)
			if _, err := n.Data.ReadAt(block, at); err != nil {
				return err
			}
			n.Sums.Add(at, block)
		}
		n.Sums.Flush()
		prints.Add(w.row(w.Data, row, m.DataChunks)...)
		same, err := n.same(ctx, m, row, before)
		if err != nil {
			return err
		}
		if !same {
			w.changed = append(w.changed, row)
		}
	}
	return nil
}

// same reports whether a row, whose file parts are those from before on, is as it was. The error
// is that of a file that has rotted.
func (n *Work) same(ctx context.Context, m *store.Manifest, row, before int) (bool, error) {
	e := n.earlier
	if e == nil || !m.Keeps(e.m) {
		return false, nil
	}
	for e.next < len(e.list) && e.list[e.next].Row < row { // that is not read
		e.next++
	}
	was := e.next
	for e.next < len(e.list) && e.list[e.next].Row == row {
		e.next++
	}
	_, now := m.Block(row)
	_, then := e.m.Block(row)
	same := row < e.m.Rows() && e.next-was == n.Sums.Next-before && now == then
	for i := before; i < n.Sums.Next; i++ {
		g := n.Sums.List[i]
		file := n.Sums.Files[g.File]
		j, _ := slices.BinarySearchFunc(e.list[was:e.next], g.Offset, func(o store.FilePart, at int64) int { return cmp.Compare(o.Offset, at) })
		if j += was; j < e.next && e.list[j].Offset == g.Offset && e.list[j].N == g.N && bytes.Equal(m.DigestOf(e.record.FileDigests, j), m.DigestOf(n.Sums.Digests, i)) {
			continue
		}
		same = false
		if j == e.next || e.list[j].Offset != g.Offset || e.list[j].N != g.N || e.files[e.list[j].File].Offset != file.Offset {
			continue
		}
		were := n.were(file)
		if !slices.ContainsFunc(were, func(was *tree.Entry) bool { return was.Offset == file.Offset }) {
			continue
		}
		if err := n.rotten(ctx, file, were); err != nil {
			return false, err
		}
		if len(were) == 1 && !n.force && n.earlier.found[file.Path] && !n.meanwhile(file) {
			return false, fmt.Errorf("%s does not hold the same each time it is read: run again, and test the disk and the memory if that fails too", tree.JoinPath(n.DirName, file.Path))
		}
	}
	return same, nil
}

// rightParity reads the earlier parity of a row, and reports whether it is as it was made.
func (n *Work) rightParity(w *Window, row int) bool {
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

// store writes the parity of a window: of the rows that were coded, and of those that stay as they were.
func (n *Work) store(w *Window, coded []int, prints *verify.Fingerprints) error {
	m := w.M
	digests := content.Pairing{M: m}
	defer digests.Flush()
	for _, row := range w.rows {
		_, is := slices.BinarySearch(coded, row)
		blocks := w.row(w.Parity, row, m.ParityChunks)
		for chunk, block := range blocks {
			if _, err := n.Parity.WriteAt(block, m.OffsetOf(row, chunk, m.ParityChunks)); err != nil {
				return err
			}
			i := m.Number(row, chunk, m.ParityChunks)
			if digest := m.DigestOf(n.Record.Parity, i); is {
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
	Listing *tree.Listing
	Data    *content.Data
	Before  []*tree.Entry // whose places its files take
	Record  store.Record

	// Of the pass:
	force   bool
	Sums    *content.Sums
	Parity  io.WriterAt  // that is written
	File    disk.File    // of it; nil: it is in memory
	left    []tree.Name  // files that have gone since they were listed, and are in the record yet
	gone    []tree.Name  // those that are not any more
	begun   time.Time    // when it was made, by its file system's clock
	earlier *earlierData // nil: the node had no record
	kept    disk.File    // earlier parity
	part    bool         // not all of it is right: which rows are not, reading tells
}

// Make codes everything and returns the manifest as stored, and the record files here. Record makes a node's record.
func (p *Pass) Make(ctx context.Context, record func(*Work) ([]byte, error)) (text []byte, files [][]*store.RecordFile, err error) {
	s, m := p.s, p.M
	if err := p.run(ctx); err != nil {
		return nil, nil, err
	}
	if p.Works[0].File != nil { // and not memory
		if err := p.again(ctx); err != nil {
			return nil, nil, err
		}
	}
	type made struct {
		Record int // bytes
		Sent   int64
		Read   int64
		Torn   []tree.Name
		Gone   []tree.Name
		Fold   []byte
	}
	here := p.check.Folds()
	records := make([][]byte, len(p.Works))
	all, err := session.Collect(ctx, s, func(_ context.Context, i int, n *store.Node) (_ made, err error) {
		records[i], err = record(p.Works[i])
		return made{len(records[i]), p.Traffic.Sent[i], p.read[i], Torn(&p.Works[i].Record), p.Works[i].gone, here[i]}, err
	})
	if err != nil {
		return nil, nil, err
	}
	var folds [][]byte
	m.Records = nil
	for n, x := range all {
		for _, name := range x.Torn {
			p.Torn = append(p.Torn, tree.JoinPath(s.States[n].Dir, name))
		}
		for _, name := range x.Gone {
			p.Gone = append(p.Gone, tree.JoinPath(s.States[n].Dir, name))
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
