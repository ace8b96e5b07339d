// Package buffers protects what the ranks of a run have in memory, without files: buffers of any lengths, with parity in
// memory of the caller.
package buffers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"volley/group/internal/content"
	"volley/group/internal/erasure"
	"volley/group/internal/guard"
	"volley/group/internal/judge"
	"volley/group/internal/pass"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/survey"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
	"volley/transport"
)

// Options say how to protect and recover buffers. Of [protection.Settings], Memory, Timeout, Network, Key, NoKey and Log
// count. All ranks give the same.
type Options struct {
	protection.Settings
	Tolerate int    // ranks that may be lost; only to protect
	Digest   string // SHA256, BLAKE3, XXH3, or "" for XXH3, with a key SHA256; only to protect
}

// A Report says what Recover has done.
type Report struct {
	Lost    []int                  `json:"lost,omitempty"`    // ranks that said so
	Damaged []int                  `json:"damaged,omitempty"` // ranks whose buffers or parity were not as they were protected
	Blocks  int                    `json:"blocks"`            // that came back
	Notes   []string               `json:"notes,omitempty"`   // what was damaged
	Traffic protection.PlanTraffic `json:"traffic"`
	Seconds float64                `json:"seconds"`
}

// The parity of buffers has a header, zeros to headerBytes, and the parts whose lengths it gives, in this order.
type parityHeader struct {
	Format   string `json:"format"`
	Version  int    `json:"version"`
	Rank     int    `json:"rank"`
	Parity   int64  `json:"parity"`
	Manifest int64  `json:"manifest"`
	Record   int64  `json:"record"`
	Copies   int64  `json:"record_copies"`
}

// parityFormat and parityVersion are those of the parity of buffers.
const (
	parityFormat  = "volley-parity"
	parityVersion = 2
	headerBytes   = 512
)

func newParityHeader(m *store.Manifest, rank, manifest int) *parityHeader {
	return headerOf(m, rank, manifest, m.RecordFilesAt(rank))
}

func headerOf(m *store.Manifest, rank, manifest int, files []*store.RecordFile) *parityHeader {
	h := &parityHeader{parityFormat, parityVersion, rank, m.ParityBytes(), int64(manifest), 0, 0}
	for i, f := range files {
		if i == 0 {
			h.Record = f.Bytes
		} else {
			h.Copies += f.Bytes
		}
	}
	return h
}

func (h *parityHeader) bytes() int64 {
	return headerBytes + h.Parity + h.Manifest + h.Record + h.Copies
}

// mostParityBytes returns the longest of all ranks.
func mostParityBytes(m *store.Manifest, manifest int) (longest int64) {
	for r, files := range m.RecordFiles() {
		longest = max(longest, headerOf(m, r, manifest, files).bytes())
	}
	return longest
}

// A parityParts is the parity of buffers, in memory of the caller.
type parityParts struct{ header, parity, manifest, records []byte }

// files returns where the record files of a rank lie, in their order.
func (p parityParts) files(m *store.Manifest, rank int) (files []*store.RecordFile, memory [][]byte) {
	files = m.RecordFilesAt(rank)
	rest := p.records
	for _, f := range files {
		memory, rest = append(memory, rest[:f.Bytes]), rest[f.Bytes:]
	}
	return files, memory
}

func (h *parityHeader) parts(memory []byte) (p parityParts) {
	next := func(n int64) (part []byte) {
		part, memory = memory[:n:n], memory[n:]
		return part
	}
	return parityParts{next(headerBytes), next(h.Parity), next(h.Manifest), next(h.Record + h.Copies)}
}

// seal writes the header: from then on the parity counts.
func (h *parityHeader) seal(p parityParts) error {
	line, err := json.Marshal(h)
	clear(p.header)
	copy(p.header, disk.Seal(line))
	return err
}

// begunHeader is the header from when a protection begins until it is complete. Zeros are those of new memory.
var begunHeader = func() []byte {
	line, _ := json.Marshal(struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
		Begun   bool   `json:"begun"`
	}{parityFormat, parityVersion, true})
	return append(disk.Seal(line), make([]byte, headerBytes-len(disk.Seal(line)))...)
}()

// begin has parity count no more, as a protection begins. Memory too short for a header has none.
func begin(parity []byte) {
	if len(parity) >= headerBytes {
		copy(parity, begunHeader)
	}
}

// begun reports whether a protection has begun, and was not completed.
func begun(parity []byte) bool { return bytes.HasPrefix(parity, begunHeader) }

// parseParity takes the parity of buffers apart. Nothing but the header is compared with its digest.
func parseParity(memory []byte) (*parityHeader, error) {
	if len(memory) < headerBytes {
		return nil, fmt.Errorf("%d bytes: want %d or more", len(memory), headerBytes)
	}
	line, err := disk.Unseal(bytes.TrimRight(memory[:headerBytes], "\x00"))
	if err != nil {
		return nil, errors.New("it does not begin with a header: it is damaged, or was not completed")
	}
	h := new(parityHeader)
	if err := json.Unmarshal(line, h); err != nil {
		return nil, err
	}
	switch {
	case h.Format != parityFormat:
		return nil, fmt.Errorf("format: %q: want %q", h.Format, parityFormat)
	case h.Version != parityVersion:
		return nil, &store.VersionError{Version: h.Version}
	}
	remaining := int64(len(memory)) - headerBytes
	for _, n := range []int64{h.Parity, h.Manifest, h.Record, h.Copies} {
		if n < 0 || n > remaining {
			return nil, fmt.Errorf("it has %d bytes, and its header says more: %s", len(memory), line)
		}
		remaining -= n
	}
	return h, nil
}

func bufferEntries(sizes []int64) []*tree.Entry {
	list := []*tree.Entry{{Path: ".", Type: tree.TypeDir}}
	digits, offset := len(fmt.Sprint(len(sizes)-1)), int64(0)
	for i, n := range sizes {
		list = append(list, &tree.Entry{Path: tree.Name(fmt.Sprintf("%0*d", digits, i)), Type: tree.TypeFile, Size: n, Offset: offset})
		offset += n
	}
	return list
}

func sizesOf(buffers [][]byte) []int64 {
	sizes := make([]int64, len(buffers))
	for i, b := range buffers {
		sizes[i] = int64(len(b))
	}
	return sizes
}

// buffering calls f with a session in which every rank is a node.
func buffering[T any](ctx context.Context, t transport.Transport, o Options, v session.Verb, f func(*session.Session) (T, error)) (T, error) {
	return session.Meeting(ctx, t, session.Setup{Settings: o.Settings}, func(s *session.Session) (zero T, err error) {
		if t.Size() < 2 {
			return zero, store.Inputf("need at least 2 processes, got %d", t.Size())
		}
		if err := s.Meet(ctx, 1, v); err != nil {
			return zero, err
		}
		for r := range s.K {
			s.States = append(s.States, &store.State{Dir: fmt.Sprint("rank ", r), Node: -1})
		}
		s.Nodes = []*store.Node{{Index: t.Rank(), DirName: s.States[t.Rank()].Dir}}
		return f(s)
	})
}

// ParityBytes returns how many bytes the parity of buffers of so many bytes has at the rank that has most:
// [Protect] takes as much room at every rank. All ranks call it.
func ParityBytes(ctx context.Context, t transport.Transport, sizes []int64, o Options) (int64, error) {
	return buffering(ctx, t, o, session.Verb{Name: "parity bytes", Args: o}, func(s *session.Session) (int64, error) {
		_, n, err := layOut(ctx, s, sizes, o)
		return n, err
	})
}

// layOut says where everything lies, and how long the parity is at the rank that has most.
func layOut(ctx context.Context, s *session.Session, sizes []int64, o Options) (*pass.Pass, int64, error) {
	m := &store.Manifest{
		Format: store.Format, Version: store.Version, Group: s.Run, Generation: 1, Nodes: s.K, Tolerate: o.Tolerate,
		Digest: cmp.Or(o.Digest, store.XXH3),
	}
	if o.Digest == "" && len(s.Key) > 0 {
		m.Digest = store.SHA256
	}
	c, err := erasure.CodeOf(m)
	if err != nil {
		return nil, 0, s.SharedError(ctx, &protection.RefusedError{Err: err})
	}
	if err := guard.CheckDigest(m.Digest, s.Key); err != nil {
		return nil, 0, s.SharedError(ctx, err)
	}
	m.Field, m.DataChunks, m.ParityChunks = c.Field.Name(), c.Data, c.Parity
	w := &pass.Work{Node: s.Nodes[0], Record: store.Record{Entries: bufferEntries(sizes)}}
	w.Data = content.NewData(nil, w.Record.Entries, false)
	for _, n := range sizes {
		w.Record.Bytes += n
	}
	bytes, err := session.Exchange(ctx, s, []int64{w.Record.Bytes})
	if err != nil {
		return nil, 0, err
	}
	m.Geometry(slices.Max(bytes), nil)
	p, err := pass.NewPass(s, m, []*pass.Work{w})
	if err != nil {
		return nil, 0, err
	}
	w.Record.FileDigests = w.Sums.Digests
	record, err := w.Record.Encode()
	if err != nil {
		return nil, 0, err
	}
	records, err := session.Exchange(ctx, s, []int{len(record)})
	if err != nil {
		return nil, 0, err
	}
	for _, n := range records { // digests are all equally long
		m.Records = append(m.Records, store.RecordSum{Bytes: int64(n), SHA256: disk.Sum(nil)})
	}
	if err := m.Validate(); err != nil {
		return nil, 0, s.SharedError(ctx, &protection.RefusedError{Err: err})
	}
	text, err := m.Encode(s.Key)
	return p, mostParityBytes(m, len(text)), err
}

// Protect makes parity of the buffers of all ranks: with it [Recover] brings back those of any o.Tolerate
// ranks. Each rank has any number of buffers of any lengths. Parity has as many bytes as [ParityBytes] says, or more,
// and describes itself. All ranks call it, and change no buffer until it returns.
//
// When it has returned without an error at one rank, the parity is complete at all ranks. After an error, or the end of
// a rank, what the parity was before is gone: [Recover] refuses the set. So a rank keeps two sets of buffers,
// each with its parity, and protects them in turns: one set stays as it is until Protect has returned for the
// other.
//
// Keep the number of the step in a buffer of each set. After a loss recover both sets, and go on from the set with the
// larger step: a rank that has died before it called Protect leaves the earlier protection of that set as it was.
//
// It returns a [*protection.RefusedError] where the options will not do, or there is no room for the parity.
func Protect(ctx context.Context, t transport.Transport, buffers [][]byte, parity []byte, o Options) error {
	begin(parity) // before any message: what this rank had may be older than what others get
	_, err := buffering(ctx, t, o, session.Verb{Name: "protect buffers", Args: o}, func(s *session.Session) (result struct{}, err error) {
		p, n, err := layOut(ctx, s, sizesOf(buffers), o)
		if err != nil {
			return result, err
		}
		if int64(len(parity)) < n {
			return result, store.Inputf("rank %d: room for %d bytes of parity: want %d", t.Rank(), len(parity), n)
		}
		p.Works[0].Data.Hold(buffers)
		p.Works[0].Parity = memory(parity[headerBytes:])
		text, files, err := p.Make(ctx, func(w *pass.Work) ([]byte, error) { return w.Record.Encode() })
		if err != nil {
			return result, err
		}
		h := newParityHeader(p.M, t.Rank(), len(text))
		if h.bytes() > int64(len(parity)) {
			return result, fmt.Errorf("rank %d: the parity has %d bytes, and %d were laid out", t.Rank(), h.bytes(), n)
		}
		parts := h.parts(parity)
		copy(parts.manifest, text)
		_, memory := parts.files(p.M, t.Rank())
		for i, f := range files[0] {
			copy(memory[i], f.Content)
		}
		if err := h.seal(parts); err != nil {
			return result, err
		}
		return result, s.Barrier(ctx)
	})
	return err
}

// memory is written at any offset, where there is room.
type memory []byte

func (m memory) WriteAt(p []byte, offset int64) (int, error) { return copy(m[offset:], p), nil }

// Sizes returns the lengths of the buffers that this rank has protected, and that of the parity at the rank that
// has most: what a rank that has lost both has to make. Its parity is nil. All ranks call it. Errors: [Recover].
func Sizes(ctx context.Context, t transport.Transport, parity []byte, o Options) (sizes []int64, parityBytes int64, err error) {
	_, err = buffering(ctx, t, o, session.Verb{Name: "buffer sizes"}, func(s *session.Session) (result struct{}, err error) {
		if err := holdParity(ctx, s, parity, parity == nil); err != nil {
			return result, err
		}
		sizes, err = bufferSizes(s)
		parityBytes = mostParityBytes(s.Manifest, len(s.Text))
		return result, err
	})
	return sizes, parityBytes, err
}

func bufferSizes(s *session.Session) (sizes []int64, err error) {
	n := s.Nodes[0]
	list := s.RecordOf[n.Index].Entries
	for _, e := range list {
		if e.Type == tree.TypeFile {
			sizes = append(sizes, e.Size)
		}
	}
	if !reflect.DeepEqual(bufferEntries(sizes), list) {
		return nil, store.Inputf("%s: the record is none of buffers", n.DirName)
	}
	return sizes, nil
}

// holdParity finds out which ranks have the parity of one protection, and gets its manifest and the record of this rank.
func holdParity(ctx context.Context, s *session.Session, parity []byte, lost bool) (err error) {
	type rank struct {
		State store.State
		Begun bool // and not completed
	}
	n := s.Nodes[0]
	mine := rank{State: store.State{Dir: n.DirName, Node: -1, Lost: lost}}
	if !lost {
		look(n, parity, s.Key, &mine.State)
		mine.Begun = begun(parity)
	}
	ranks, err := session.Exchange(ctx, s, []rank{mine})
	if err != nil {
		return err
	}
	s.States = nil
	var cut []string
	for _, x := range ranks {
		if s.States = append(s.States, &x.State); x.Begun {
			cut = append(cut, x.State.Dir)
		}
	}
	if cut != nil { // what others have is older, or not complete
		return s.SharedError(ctx, store.Inputf("the protection of these buffers was cut off, and the parity of %s is not complete: recover the other set", strings.Join(cut, ", ")))
	}
	if err := agree(s); err != nil {
		return s.SharedError(ctx, err)
	}
	if err := s.Fetch(ctx); err != nil {
		return err
	}
	var lacking []*content.Condition
	for _, x := range s.States {
		lacking = append(lacking, &content.Condition{Lost: x.Lost})
	}
	if err := survey.Recoverable(s, lacking); err != nil {
		return s.SharedError(ctx, err)
	}
	return nil
}

// look notes what a rank has of a protection.
func look(n *store.Node, parity, key []byte, x *store.State) {
	h, err := parseParity(parity)
	l := new(store.Loaded)
	if err == nil {
		l.Text = h.parts(parity).manifest
		l.Manifest, err = store.DecodeManifest(l.Text)
	}
	if version := new(store.VersionError); errors.As(err, &version) {
		x.UnknownVersion = version.Version
	}
	if err == nil && (h.Rank < 0 || h.Rank >= l.Manifest.Nodes || *h != *newParityHeader(l.Manifest, h.Rank, len(l.Text))) {
		err = errors.New("its header does not go with its manifest")
	}
	if err != nil {
		x.Bad = append(x.Bad, fmt.Sprintf("%s: parity: %v", n.DirName, err))
		return
	}
	m, parts := l.Manifest, h.parts(parity)
	x.Node, x.Group = h.Rank, m.Group
	l.Node = h.Rank
	holding := l.Held(key)
	holding.Committed = true
	n.Held, n.Stored = map[int64]*store.Loaded{m.Generation: l}, map[string][]byte{}
	files, memory := parts.files(m, h.Rank)
	for i, f := range files {
		if disk.Sum(memory[i]) == f.SHA256 {
			n.Stored[f.Name], holding.Records = memory[i], append(holding.Records, i)
		}
	}
	x.Held = append(x.Held, holding)
}

// agree returns an error unless all parity that ranks have is of one protection, and each has its own.
func agree(s *session.Session) error {
	if _, err := judge.Vouch(s.States, s.Trust(), false); err != nil {
		return err
	}
	holder := ""
	for r, x := range s.States {
		if x.UnknownVersion > 0 {
			return store.Inputf("%s has parity or a manifest of a version %d, which this program does not know: recover with the release that protected", x.Dir, x.UnknownVersion)
		}
		for _, h := range x.Held {
			switch {
			case h.Nodes != s.K:
				return store.Inputf("%s has parity of %d processes, and %d are here: start as many as have protected", x.Dir, h.Nodes, s.K)
			case x.Node != r:
				return store.Inputf("%s has the parity of rank %d: give every process what it had, or say that it is lost", x.Dir, x.Node)
			case holder != "" && h.Root != s.Root:
				return store.Inputf("%s and %s have parity of two protections: give that of one, or say that a process has lost it", holder, x.Dir)
			}
			holder, s.Current = x.Dir, store.Current{Generation: h.Generation, Root: h.Root, Newest: h.Generation}
		}
	}
	if holder != "" {
		return nil
	}
	err := store.Inputf("no process has parity that is complete and whole: nothing can be recovered")
	if slices.ContainsFunc(s.States, func(x *store.State) bool { return x.Bad != nil }) {
		return err
	}
	return &protection.NoneError{Err: err}
}

// Recover brings back the buffers and the parity of ranks that are lost: what is in both there does not matter,
// and is written. Their lengths are those that were protected, which [Sizes] returns. The others give what they
// had. What is damaged of it, or was changed since, comes back, too, block by block. All ranks call it, as many as have
// protected, each with what the same rank had.
//
// It returns a [*protection.TooManyError] where more ranks are lost than o.Tolerate was, and a [*protection.RefusedError] where too much else
// is damaged, or ranks have parity of two protections. Nothing has been written then, at any rank. After another error,
// or the end of a process, calling it again completes it: ranks that were lost say so again.
func Recover(ctx context.Context, t transport.Transport, buffers [][]byte, lost bool, parity []byte, o Options) (*Report, error) {
	return buffering(ctx, t, o, session.Verb{Name: "recover buffers"}, func(s *session.Session) (*Report, error) {
		start := time.Now()
		if err := holdParity(ctx, s, parity, lost); err != nil {
			return nil, err
		}
		r := &Report{Traffic: erasure.NewTraffic(len(s.Nodes))}
		if err := recoverBuffers(ctx, s, buffers, parity, r); err != nil {
			return nil, err
		}
		r.Seconds = time.Since(start).Seconds()
		return r, nil
	})
}

func recoverBuffers(ctx context.Context, s *session.Session, buffers [][]byte, parity []byte, r *Report) error {
	x, err := hold(s, buffers, parity)
	if err != nil {
		return err
	}
	conditions, err := survey.ConditionsOf(ctx, s, x.examine)
	if err != nil {
		return err
	}
	var damages []string
	for rank, c := range conditions {
		r.Blocks += c.Blocks()
		damage := damageOf(s, rank, c)
		if damage == "" {
			continue
		}
		if damages = append(damages, damage); c.Lost {
			r.Lost = append(r.Lost, rank)
		} else {
			r.Damaged, r.Notes = append(r.Damaged, rank), append(r.Notes, damage)
		}
	}
	repairs, beyond, err := survey.PlanRepairs(ctx, s, conditions, true)
	if err == nil && len(beyond) > 0 {
		err = store.Inputf("too much is lost or damaged: %d blocks do not come back, and nothing was written: %s", len(beyond), strings.Join(damages, "; "))
	}
	if err != nil {
		return s.SharedError(ctx, err)
	}
	mine := conditions[x.rank]
	if mine.Lost {
		clear(x.parts.header)
	}
	if err := survey.RunRepairsFrom(ctx, s, repairs, x.reader, x.put, &r.Traffic); err != nil {
		return err
	}
	if !mine.Manifest {
		copy(x.parts.manifest, s.Text)
		files, memory := x.parts.files(s.Manifest, x.rank)
		for i, f := range files {
			copy(memory[i], s.Records[x.rank][f.Name]) // nothing where it was right
		}
		if err := x.header.seal(x.parts); err != nil {
			return err
		}
	}
	return s.Barrier(ctx)
}

// A holder is this rank with its memory.
type holder struct {
	*session.Session
	rank   int
	record *store.Record
	header *parityHeader
	parts  parityParts
	data   *content.Data
	sums   *content.Sums
}

// hold returns this rank with its memory, which has to be as long as what was protected.
func hold(s *session.Session, buffers [][]byte, parity []byte) (*holder, error) {
	n := s.Nodes[0]
	sizes, err := bufferSizes(s)
	if err != nil {
		return nil, err
	}
	if len(sizes) != len(buffers) {
		return nil, store.Inputf("%s has %d buffers, and has protected %d", n.DirName, len(buffers), len(sizes))
	}
	for i, b := range buffers {
		if int64(len(b)) != sizes[i] {
			return nil, store.Inputf("%s: buffer %d has %d bytes, and had %d when it was protected", n.DirName, i, len(b), sizes[i])
		}
	}
	h := newParityHeader(s.Manifest, n.Index, len(s.Text))
	if int64(len(parity)) < h.bytes() {
		return nil, store.Inputf("%s: room for %d bytes of parity: want %d", n.DirName, len(parity), h.bytes())
	}
	record := s.RecordOf[n.Index]
	d := content.NewData(nil, record.Entries, false)
	d.Hold(buffers)
	return &holder{s, n.Index, record, h, h.parts(parity), d, content.NewSums(s.Manifest, d.Extents)}, nil
}

// examine compares the memory with what was protected.
func (x *holder) examine(ctx context.Context, _ int, _ *store.Node) (c *content.Condition, err error) {
	m, stored := x.Manifest, x.States[x.rank].Holding(x.Current)
	c = &content.Condition{Lost: x.States[x.rank].Lost, Manifest: stored != nil && len(stored.Records) == len(m.RecordFilesAt(x.rank))}
	c.Data, c.Parity = survey.RowsOf(m, x.record.Entries), content.AllRowsByChunk(m, m.ParityChunks)
	if !c.Lost {
		compared, err := content.Compare(ctx, m, x.data, x.record, nil, nil)
		if err != nil {
			return nil, err
		}
		c.Data = compared.Blocks
	}
	if stored != nil {
		c.Parity, err = content.CompareParity(ctx, m, bytes.NewReader(x.parts.parity), x.record, nil, nil)
	}
	c.Touched = c.Data
	return c, err
}

// reader returns what reads a symbol of this rank.
func (x *holder) reader(symbol content.Symbol) io.ReaderAt {
	if symbol.Parity {
		return bytes.NewReader(x.parts.parity)
	}
	return x.data
}

// put writes a block that comes back, if it is right.
func (x *holder) put(symbol content.Symbol, row int, block []byte) error {
	m, name := x.Manifest, x.Nodes[0].DirName
	if symbol.Parity {
		if !content.SameParity(m, x.record, row, symbol.Index, block) {
			return content.WrongFileError(name + ": parity")
		}
		copy(x.parts.parity[m.OffsetOf(row, symbol.Index, m.ParityChunks):], block)
		return nil
	}
	offset := m.OffsetOf(row, symbol.Index, m.DataChunks)
	if wrong := x.sums.FirstWrongFile(x.record, offset, block); wrong != nil {
		return content.WrongFileError(fmt.Sprintf("%s: buffer %s", name, wrong.Path))
	}
	return x.data.Overlapping(offset, int64(len(block)), func(i int, e *tree.Entry, first, end int64) error {
		copy(x.data.Memory[i][first-e.Offset:], block[first-offset:end-offset])
		return nil
	})
}

// damageOf says what a rank lacks, or "" if nothing.
func damageOf(s *session.Session, rank int, c *content.Condition) string {
	switch n := c.Blocks(); {
	case c.Lost:
		return s.States[rank].Dir + " is lost"
	case n > 0:
		return fmt.Sprintf("%s has %d damaged or changed blocks", s.States[rank].Dir, n)
	case !c.Manifest:
		return s.States[rank].Dir + " has damaged records in its parity"
	}
	return ""
}

// A Set is buffers of this rank, with their parity in memory that the set makes.
type Set struct {
	Buffers [][]byte // nil: they are lost, and Recover makes them anew
	Parity  []byte   // nil, or that of a set of an earlier run

	t       transport.Transport
	options Options
}

// New returns a set. All ranks make one, each of its own buffers, and call the same methods.
func New(t transport.Transport, o Options, buffers ...[]byte) *Set {
	return &Set{Buffers: buffers, t: t, options: o}
}

// Protect is [Protect] with as much parity as it takes.
func (s *Set) Protect(ctx context.Context) error {
	n, err := ParityBytes(ctx, s.t, sizesOf(s.Buffers), s.options)
	if err != nil {
		return err
	}
	if int64(len(s.Parity)) < n {
		s.Parity = make([]byte, n)
	}
	return Protect(ctx, s.t, s.Buffers, s.Parity, s.options)
}

// Recover is [Recover]. Of a rank that has no buffers it makes them, and the parity. After an error such a rank has none
// yet, and calling it again says so again.
func (s *Set) Recover(ctx context.Context) (*Report, error) {
	lost, buffers, parity := s.Buffers == nil, s.Buffers, s.Parity
	if lost {
		parity = nil // it is not that of these buffers
	}
	sizes, n, err := Sizes(ctx, s.t, parity, s.options)
	if err != nil {
		return nil, err
	}
	if lost {
		buffers = make([][]byte, len(sizes))
		for i, size := range sizes {
			buffers[i] = make([]byte, size)
		}
	}
	if int64(len(s.Parity)) < n {
		s.Parity = make([]byte, n)
	}
	r, err := Recover(ctx, s.t, buffers, lost, s.Parity, s.options)
	if err == nil {
		s.Buffers = buffers
	}
	return r, err
}
