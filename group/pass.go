package group

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"volley/group/internal/tree"

	"volley/executor"
	"volley/verify"
)

// A pass reads the data of the nodes once, by windows: some rows at a time, which are in memory while their digests are
// taken and they are coded. Meanwhile the next window is read. Rows in which no node has changed keep their parity.
type pass struct {
	s       *session
	m       *Manifest
	code    *code
	works   []*work // here
	follows bool    // earlier parity can be kept
	check   *check
	coded   int // rows
	traffic Traffic
}

type earlierData struct {
	m       *Manifest
	member  *Member
	list    []segment
	next    int // of the list
	files   tree.Extents
	entries map[tree.Name]*tree.Entry
	times   map[[3]int64][]*tree.Entry // files by length and time
	found   map[tree.Name]bool         // files now that were seen to hold what they may have been
}

func (s *session) newPass(m *Manifest, works []*work) (*pass, error) {
	c, err := codeOf(m)
	if err != nil {
		return nil, err
	}
	for _, n := range works {
		n.sums = newSums(m, n.data.Extents)
		n.member.Parity = make([]byte, m.rows()*m.ParityChunks*digestBytes[m.Digest])
	}
	return &pass{s: s, m: m, code: c, works: works, follows: m.keeps(s.manifest), check: s.newCheck(c, m.ChunkBytes), traffic: s.traffic()}, nil
}

// open opens the files that parity is written to and, where it can be kept, read from. They are to be closed after an
// error too.
func (p *pass) open(force bool) error {
	for _, n := range p.works {
		n.force = force
		f, err := n.begin(p.m.Generation)
		if err != nil {
			return err
		}
		n.parity, n.file = f, f
		if err := f.Truncate(p.m.parityBytes()); err != nil {
			return err
		}
		if p.s.members[n.index] == nil {
			continue
		}
		n.earlier = p.s.earlier(n.node)
		if p.follows {
			if n.kept, err = n.openParity(p.s.generation); err != nil {
				n.kept = nil // all of it is made anew
			}
		}
	}
	return nil
}

// earlier returns what a node had in the generation in force.
func (s *session) earlier(n *node) *earlierData {
	x := s.members[n.index]
	e := &earlierData{m: s.manifest, member: x, files: tree.ExtentsOf(x.Entries), entries: map[tree.Name]*tree.Entry{}, times: map[[3]int64][]*tree.Entry{}, found: map[tree.Name]bool{}}
	e.list = s.manifest.segments(e.files)
	for _, was := range x.Entries {
		e.entries[was.Path] = was
		if key := [3]int64{was.Size, was.Seconds, was.Nanoseconds}; was.Type == tree.TypeFile && was.Size > 0 {
			e.times[key] = append(e.times[key], was)
		}
	}
	return e
}

// untouched returns what a file was, if it has the length and time that it had.
func (e *earlierData) untouched(now *tree.Entry) *tree.Entry {
	was := e.entries[now.Path]
	if was == nil || was.Type != tree.TypeFile || was.Size != now.Size || !was.SameTime(now) {
		return nil
	}
	return was
}

// were returns what a file may have been: what had its name, length and time, or else the files that had its length and
// time, and that are not there any more as they were. Times of whole seconds, or of very many files, may be made up, and
// tell nothing of names.
func (n *work) were(now *tree.Entry) (list []*tree.Entry) {
	if was := n.earlier.untouched(now); was != nil {
		return []*tree.Entry{was}
	}
	alike := n.earlier.times[[3]int64{now.Size, now.Seconds, now.Nanoseconds}]
	if now.Nanoseconds == 0 || len(alike) > mostAlike {
		return nil
	}
	for _, was := range alike {
		if is := n.listing.Find(was.Path); is == nil || n.earlier.untouched(is) == nil {
			list = append(list, was)
		}
	}
	return list
}

// mostAlike is how many files of one length and time are told apart by what they hold.
const mostAlike = 100

// rotten returns an error where a file holds none of what it may have been.
func (n *work) rotten(ctx context.Context, now *tree.Entry, were []*tree.Entry) error {
	if n.force || len(were) == 0 || n.earlier.found[now.Path] {
		return nil
	}
	for _, was := range were {
		same, err := n.earlier.m.holds(ctx, n.dir, now.Path, n.earlier.member, n.earlier.list, was)
		if n.earlier.found[now.Path] = same; same || err != nil {
			return err
		}
	}
	return &InputError{Way: WayForce, Err: errDamaged(tree.JoinPath(n.given, now.Path), tree.JoinPath(n.given, were[0].Path))}
}

// compareMoved compares files that have the length and time that they had, under this name or another, and that are cut
// into other segments than before, with what they were.
func (n *work) compareMoved(ctx context.Context, m *Manifest, follows bool) error {
	if n.earlier == nil {
		return nil
	}
	if follows {
		if err := n.compareCut(ctx, m); err != nil {
			return err
		}
	}
	for _, e := range n.listing.Entries {
		if e.Type != tree.TypeFile || e.Size == 0 {
			continue
		}
		were := n.were(e)
		if follows && slices.ContainsFunc(were, func(was *tree.Entry) bool {
			return was.Offset == e.Offset && (was.Path == e.Path || m.ChunkBytes == n.earlier.m.ChunkBytes)
		}) {
			continue // its segments are compared as they are read
		}
		if err := n.rotten(ctx, e, were); err != nil {
			return err
		}
	}
	return nil
}

// compareCut compares what lies in the only row whose blocks have another length than before, as chunks have grown or
// shrunk: the digests of the pass are of other segments.
func (n *work) compareCut(ctx context.Context, m *Manifest) error {
	e := n.earlier
	if m.ChunkBytes == e.m.ChunkBytes {
		return nil
	}
	row := int(min(m.ChunkBytes, e.m.ChunkBytes) / m.BlockBytes)
	block := make([]byte, min(m.BlockBytes, e.m.ChunkBytes))
	first := sort.Search(len(e.list), func(j int) bool { return e.list[j].row >= row })
	for j := first; j < len(e.list) && e.list[j].row == row; j++ {
		g := e.list[j]
		was, is := e.files[g.file], n.listing.Find(e.files[g.file].Path)
		if is == nil || is.Offset != was.Offset || e.untouched(is) == nil {
			continue
		}
		_, err := n.data.ReadAt(block[:g.n], g.at)
		if err == nil && !m.sameDigest(block[:g.n], e.member.Segments, j) {
			err = n.rotten(ctx, is, []*tree.Entry{was})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// run reads and codes everything, and sets the digests of the members.
func (p *pass) run(ctx context.Context) error {
	bytes := int64(0)
	for _, n := range p.works {
		bytes += n.member.Bytes
	}
	err := p.s.windows(ctx, p.m, bytes, func(ctx context.Context, i int, w *window) error {
		if w.first == 0 {
			if err := p.works[i].compareMoved(ctx, p.m, p.follows); err != nil {
				return err
			}
		}
		return p.works[i].read(ctx, w, p.check.data[i])
	}, p.window)
	for _, n := range p.works {
		n.member.Segments = n.sums.digests
	}
	return err
}

func (p *pass) window(ctx context.Context, windows []*window) error {
	s, m, here := p.s, p.m, p.s.nodes[0].index
	first, end := windows[0].first, windows[0].end
	b := blocks{m: m}
	if !p.follows {
		for row := first; row < end; row++ {
			b.rows = append(b.rows, row)
		}
	} else {
		var changed [][]int
		for _, w := range windows {
			changed = append(changed, w.changed)
		}
		all, err := exchange(ctx, s, changed)
		if err != nil {
			return err
		}
		b.rows = slices.Concat(all...)
		slices.Sort(b.rows)
		b.rows = slices.Compact(b.rows)
		if n := len(b.rows); n > 0 && (b.rows[0] < first || b.rows[n-1] >= end) {
			return fmt.Errorf("a rank says that blocks %d to %d have changed: want %d to %d", b.rows[0], b.rows[n-1], first, end-1)
		}
	}
	if p.coded += len(b.rows); len(b.rows) > 0 {
		r, err := p.code.making(ctx, &s.Options, b.bytes())
		if err != nil {
			return err
		}
		t, err := s.repair(ctx, r, b, func(x symbol) executor.Input {
			w := windows[x.node-here]
			return w.input(w.data, x.index, b)
		}, func(x symbol) executor.Output { return windows[x.node-here].output(x.index, b) })
		if err != nil {
			return err
		}
		p.traffic.add(t)
	}
	return s.here(func(i int, _ *node) error { return p.works[i].store(windows[i], b.rows, p.check.parity[i]) })
}

// read reads the rows of a window, and finds out which are not as they were. While they are in the cache, it adds them to
// their fingerprints.
func (n *work) read(ctx context.Context, w *window, prints *verify.Fingerprints) error {
	m := w.m
	w.changed = w.changed[:0]
	for row := w.first; row < w.end; row++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		before := n.sums.next
		for chunk := range m.DataChunks {
			block, at := w.block(w.data, row, chunk), m.offsetOf(row, chunk, m.DataChunks)
			if _, err := n.data.ReadAt(block, at); err != nil {
				return err
			}
			n.sums.add(at, block)
		}
		n.sums.flush()
		prints.Add(w.row(w.data, row, m.DataChunks)...)
		same, err := n.same(ctx, m, row, before)
		if err != nil {
			return err
		}
		if !same || !n.rightParity(w, row) {
			w.changed = append(w.changed, row)
		}
	}
	return nil
}

// same reports whether a row, whose segments are those from before on, is as it was. The error
// is that of a file that has rotted.
func (n *work) same(ctx context.Context, m *Manifest, row, before int) (bool, error) {
	e := n.earlier
	if e == nil || !m.keeps(e.m) {
		return false, nil
	}
	was := e.next
	for e.next < len(e.list) && e.list[e.next].row == row {
		e.next++
	}
	_, now := m.block(row)
	_, then := e.m.block(row)
	same := row < e.m.rows() && e.next-was == n.sums.next-before && now == then
	for i := before; i < n.sums.next; i++ {
		g := n.sums.list[i]
		file := n.sums.files[g.file]
		j, _ := slices.BinarySearchFunc(e.list[was:e.next], g.at, func(o segment, at int64) int { return cmp.Compare(o.at, at) })
		if j += was; j < e.next && e.list[j].at == g.at && e.list[j].n == g.n && bytes.Equal(m.digestOf(e.member.Segments, j), m.digestOf(n.sums.digests, i)) {
			continue
		}
		same = false
		if j == e.next || e.list[j].at != g.at || e.list[j].n != g.n || e.files[e.list[j].file].Offset != file.Offset {
			continue
		}
		were := n.were(file)
		if !slices.ContainsFunc(were, func(was *tree.Entry) bool { return was.Offset == file.Offset }) {
			continue
		}
		if err := n.rotten(ctx, file, were); err != nil {
			return false, err
		}
		if len(were) == 1 && !n.force { // it does not always hold the same
			return false, changedMeanwhile(tree.JoinPath(n.given, file.Path))
		}
	}
	return same, nil
}

// rightParity reads the earlier parity of a row, and reports whether it is as it was made.
func (n *work) rightParity(w *window, row int) bool {
	if n.kept == nil {
		return false
	}
	for chunk := range w.m.ParityChunks {
		if !w.m.readParity(n.kept, n.earlier.member, row, chunk, w.block(w.parity, row, chunk)) {
			return false
		}
	}
	return true
}

// store writes the parity of a window: of the rows that were coded, and of those that stay as they were.
func (n *work) store(w *window, coded []int, prints *verify.Fingerprints) error {
	m := w.m
	digests := pairing{m: m}
	defer digests.flush()
	for row := w.first; row < w.end; row++ {
		_, is := slices.BinarySearch(coded, row)
		blocks := w.row(w.parity, row, m.ParityChunks)
		for chunk, block := range blocks {
			if _, err := n.parity.WriteAt(block, m.offsetOf(row, chunk, m.ParityChunks)); err != nil {
				return err
			}
			i := m.number(row, chunk, m.ParityChunks)
			if digest := m.digestOf(n.member.Parity, i); is {
				digests.add(digest, block)
			} else {
				copy(digest, m.digestOf(n.earlier.member.Parity, i))
			}
		}
		prints.Add(blocks...)
	}
	return nil
}

func (p *pass) close() {
	for _, n := range p.works {
		if n.file != nil {
			n.file.Close()
		}
		if n.kept != nil {
			n.kept.Close()
		}
	}
}
