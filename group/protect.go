package group

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"volley/internal/atomicfile"
	"volley/sim"
	"volley/transport"
)

// ProtectOptions say how to protect.
type ProtectOptions struct {
	Options
	Tolerate int    // nodes that may be lost
	Layout   string // Full, Striped, or "" for that of an earlier run with the same numbers, else the cheaper one
	Matrix   string // Cauchy, FTI, or "" for that of an earlier run, else Cauchy
	Force    bool   // protect what is there, although nodes are lost or files damaged
	DryRun   bool   // write nothing
}

// A Cost is what a layout takes.
type Cost struct {
	Layout      string  `json:"layout"`
	Possible    bool    `json:"possible"`
	StoredBytes int64   `json:"stored_bytes"` // of parity, at each node
	SentBytes   int64   `json:"sent_bytes"`   // C2: the largest messages of all rounds
	Rounds      int     `json:"rounds"`
	Seconds     float64 `json:"model_seconds"`
	Plan        string  `json:"plan"`
	Why         string  `json:"why,omitempty"` // it is not possible
}

// A ProtectReport says what Protect has done.
type ProtectReport struct {
	Nodes       int     `json:"nodes"`
	Tolerate    int     `json:"tolerate"`
	Layout      string  `json:"layout"`
	Field       string  `json:"field"`
	Matrix      string  `json:"matrix"`
	Generation  int64   `json:"generation"`
	Files       int     `json:"files"`
	DataBytes   int64   `json:"data_bytes"`   // of all nodes
	ParityBytes int64   `json:"parity_bytes"` // at each node
	Blocks      int     `json:"blocks"`       // of each chunk
	Coded       int     `json:"coded_blocks"` // that were not as before
	Traffic     Traffic `json:"traffic"`
	Costs       []Cost  `json:"costs"`
	Seconds     float64 `json:"seconds"`
}

// Protect makes the parity of the directories of all nodes, each a node's: with it and the
// manifest, both in .volley, [Recover] brings back any o.Tolerate of them. Those at the
// transport's rank are given, in order. Blocks in which no node has changed since it was
// last called keep their parity. What is lost or damaged has to be recovered before, unless
// o.Force is set.
//
// An earlier protection is in force until the new one is complete at all nodes. After
// an error, or the end of a process at any moment, calling it again completes it. It
// returns an [*InputError] for directories that cannot be protected so.
func Protect(ctx context.Context, t transport.Transport, dirs []string, o ProtectOptions) (*ProtectReport, error) {
	return run(ctx, t, func() (*ProtectReport, error) { return protect(ctx, t, dirs, o) })
}

// work is a node that is being protected.
type work struct {
	*node
	entries []Entry
	end     int64
	data    *data
	member  Member
}

func protect(ctx context.Context, t transport.Transport, dirs []string, o ProtectOptions) (*ProtectReport, error) {
	start := time.Now()
	s, err := begin(ctx, t, dirs, o.Options, true, fmt.Sprintf("protect --tolerate %d, layout %q, matrix %q, force %v, dry run %v", o.Tolerate, o.Layout, o.Matrix, o.Force, o.DryRun))
	if err != nil {
		return nil, err
	}
	earlier := s.manifest
	m := &Manifest{
		Format: Format, Version: Version, Generation: s.newest + 1, Nodes: s.k, Tolerate: o.Tolerate,
		Matrix: o.Matrix, Group: rand.Text(),
	}
	if earlier != nil {
		m.Group = earlier.Group
		m.Matrix = cmp.Or(m.Matrix, earlier.Matrix)
	}
	m.Matrix = cmp.Or(m.Matrix, Cauchy)
	layouts, err := candidates(s.k, &o, m.Matrix)
	if err != nil {
		return nil, s.alike(ctx, err)
	}
	if err := s.complete(); err != nil && !o.Force {
		return nil, s.alike(ctx, err)
	}
	if !o.DryRun {
		for _, n := range s.nodes {
			if err := os.MkdirAll(n.meta(""), 0o777); err != nil {
				return nil, err
			}
			if err := n.clean(s.generation); err != nil {
				return nil, err
			}
		}
	}
	works, err := s.scan(earlier, m.Matrix == FTI)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, w := range works {
			w.data.close()
		}
	}()
	type size struct {
		End   int64
		Group string
	}
	var sizes []size
	for _, w := range works {
		sizes = append(sizes, size{w.end, m.Group})
	}
	if sizes, err = exchange(ctx, s, sizes); err != nil {
		return nil, err
	}
	m.Group = sizes[0].Group
	var most int64
	for _, x := range sizes {
		most = max(most, x.End)
	}
	if err := s.cost(layouts, most); err != nil {
		return nil, err
	}
	chosen := chooseLayout(&o, layouts, earlier)
	c := chosen.code
	m.Layout = chosen.Layout
	m.Field, m.DataChunks, m.ParityChunks = c.field.Name(), c.data, c.parity
	m.geometry(most, earlier)
	r := &ProtectReport{
		Nodes: s.k, Tolerate: o.Tolerate, Layout: m.Layout, Field: m.Field, Matrix: m.Matrix, Generation: m.Generation,
		ParityBytes: int64(m.ParityChunks) * m.ChunkBytes, Blocks: m.rows(),
	}
	for _, x := range layouts {
		r.Costs = append(r.Costs, x.Cost)
	}
	if o.DryRun {
		return r, nil
	}
	if err := s.here(func(i int, n *node) error {
		w := works[i]
		w.member = Member{Bytes: w.end, Entries: w.entries}
		if err := m.digest(ctx, w.data, &w.member); err != nil || earlier == nil || o.Force {
			return err
		}
		return w.rotten(&earlier.Members[n.index])
	}); err != nil {
		return nil, err
	}
	var members []Member
	for _, w := range works {
		members = append(members, w.member)
	}
	if m.Members, err = exchange(ctx, s, members); err != nil {
		return nil, err
	}
	changed, err := s.changed(ctx, m, earlier)
	if err != nil {
		return nil, err
	}
	for _, x := range m.Members {
		for _, e := range x.Entries {
			if e.Type == typeFile {
				r.Files++
				r.DataBytes += e.Size
			}
		}
	}
	r.Coded = len(changed.rows)
	if err := s.write(ctx, c, m, works, changed, &r.Traffic); err != nil {
		for _, n := range s.nodes { // what is not in force
			os.Remove(n.meta(temporary + "parity"))
			os.Remove(n.pending(m.Generation))
			os.Remove(n.parity(m.Generation))
		}
		return nil, err
	}
	if err := s.commit(ctx, m.Generation); err != nil {
		return nil, err
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// complete returns an error where a node lacks what it had: to protect the rest would make
// the loss for good.
func (s *session) complete() error {
	if s.generation == 0 {
		return nil
	}
	for n, x := range s.states {
		if !x.has(s.generation) {
			return inputf("%s has not what was protected: recover it first, or --force to protect the group as it is", s.name(n))
		}
	}
	return nil
}

// rotten returns an error where a file has the length and time that it had, and holds something
// else.
func (w *work) rotten(earlier *Member) error {
	was := map[Name]*Entry{}
	for i := range earlier.Entries {
		was[earlier.Entries[i].Path] = &earlier.Entries[i]
	}
	for _, e := range w.member.Entries {
		if o := was[e.Path]; o != nil && e.Type == typeFile && o.Type == typeFile && o.Size == e.Size && o.MTime == e.MTime && o.SHA256 != e.SHA256 {
			return inputf("%s is damaged: it was not written to since it was protected, and holds something else. Recover it first, or --force to protect it as it is",
				filepath.Join(w.dir, string(e.Path)))
		}
	}
	return nil
}

// A candidate is a layout that may do.
type candidate struct {
	Cost
	code *code // nil: it does not do
}

// candidates returns all layouts, or an error where none will do, or the one asked for will
// not.
func candidates(k int, o *ProtectOptions, name string) ([]candidate, error) {
	if o.Layout != "" && o.Layout != Full && o.Layout != Striped {
		return nil, inputf("layout %q: want full or striped", o.Layout)
	}
	var list []candidate
	var why error // the last one says what is wrong with the numbers, unless it is the matrix
	possible := false
	for _, layout := range []string{Full, Striped} {
		c, err := newCode(k, o.Tolerate, layout, name)
		x := candidate{Cost: Cost{Layout: layout, Possible: err == nil}, code: c}
		if err != nil {
			x.Why = err.Error()
		}
		list = append(list, x)
		if o.Layout != "" && o.Layout != layout {
			continue
		}
		if possible = possible || err == nil; why == nil || name != FTI {
			why = err
		}
	}
	if !possible {
		return nil, &InputError{why}
	}
	return list, nil
}

// scan lists the files of the nodes here and gives them places.
func (s *session) scan(earlier *Manifest, afresh bool) ([]*work, error) {
	var works []*work
	for _, n := range s.nodes {
		w := &work{node: n}
		var err error
		if w.entries, err = scan(n.root, true); err != nil {
			return nil, &InputError{err}
		}
		var before []Entry
		if earlier != nil {
			before = earlier.Members[n.index].Entries
		}
		w.end = place(w.entries, before, afresh)
		w.data = newData(n.root, w.entries, false)
		works = append(works, w)
	}
	return works, nil
}

// cost sets what candidates take for that much data at the node that has most.
func (s *session) cost(list []candidate, most int64) error {
	for i := range list {
		x := &list[i]
		if x.code == nil {
			continue
		}
		m := Manifest{DataChunks: x.code.data, ParityChunks: x.code.parity}
		m.geometry(most, nil)
		p, err := x.code.plan(&s.Options, m.ChunkBytes)
		if err != nil {
			return err
		}
		cost := sim.Count(p)
		x.Plan, x.Rounds = p.Info().Algorithm, cost.C1
		x.StoredBytes = int64(x.code.parity) * m.ChunkBytes
		x.SentBytes = int64(cost.PacketC2() * float64(m.ChunkBytes))
		x.Seconds = float64(x.Rounds)*s.Beta.Seconds() + float64(x.SentBytes)*s.Tau
	}
	return nil
}

// chooseLayout returns the candidate asked for, else that of before, else the one of least
// model time.
func chooseLayout(o *ProtectOptions, list []candidate, earlier *Manifest) *candidate {
	asked := o.Layout
	switch {
	case asked != "":
	case o.Matrix == FTI:
		asked = Full
	case earlier != nil && earlier.Tolerate == o.Tolerate:
		asked = earlier.Layout
	}
	var best *candidate
	for i := range list {
		x := &list[i]
		if x.code != nil && (asked == "" || asked == x.Layout) && (best == nil || x.Seconds < best.Seconds) {
			best = x
		}
	}
	return best
}

// changed returns the blocks that have to be coded: those in which any node differs from
// before, or whose parity is not there any more.
func (s *session) changed(ctx context.Context, m, earlier *Manifest) (blocks, error) {
	all := blocks{m: m}
	same := earlier != nil && earlier.Layout == m.Layout && earlier.Tolerate == m.Tolerate && earlier.Matrix == m.Matrix &&
		earlier.BlockBytes == m.BlockBytes && (earlier.ChunkBytes == m.ChunkBytes || m.DataChunks == 1)
	mine := make([][]int, len(s.nodes)) // rows whose parity is gone
	if same {
		if err := s.here(func(i int, n *node) error {
			for _, rows := range s.badParity(ctx, n) {
				for _, row := range rows {
					if !slices.Contains(mine[i], row) {
						mine[i] = append(mine[i], row)
					}
				}
			}
			return nil
		}); err != nil {
			return all, err
		}
	}
	gone, err := exchange(ctx, s, mine)
	if err != nil {
		return all, err
	}
	for row := range m.rows() {
		if !same || row >= earlier.rows() || slices.ContainsFunc(gone, func(list []int) bool { return slices.Contains(list, row) }) || differs(m, earlier, row) {
			all.rows = append(all.rows, row)
		}
	}
	return all, nil
}

// differs reports whether a node has other data in a block than before.
func differs(m, earlier *Manifest, row int) bool {
	_, a := m.block(row)
	_, b := earlier.block(row)
	if a != b {
		return true
	}
	for n := range m.Members {
		for c := range m.DataChunks {
			if m.Members[n].Data[c*m.rows()+row] != earlier.Members[n].Data[c*earlier.rows()+row] {
				return true
			}
		}
	}
	return false
}

// write writes the parity and the manifest of a generation, which is not in force yet.
func (s *session) write(ctx context.Context, c *code, m *Manifest, works []*work, changed blocks, traffic *Traffic) error {
	var inputs []io.ReaderAt
	var outputs []io.WriterAt
	var writers [][]*blockWriter
	files := make([]*os.File, len(works))
	defer func() {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}()
	for i, w := range works {
		f, err := os.OpenFile(w.meta(temporary+"parity"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
		if err != nil {
			return err
		}
		files[i] = f
		if err := f.Truncate(int64(m.ParityChunks) * m.ChunkBytes); err != nil {
			return err
		}
		var list []*blockWriter
		for chunk := range m.DataChunks {
			inputs = append(inputs, &blockReader{changed, w.data, int64(chunk) * m.ChunkBytes})
		}
		for chunk := range m.ParityChunks {
			b := newBlockWriter(changed, f, int64(chunk)*m.ChunkBytes)
			list = append(list, b)
			outputs = append(outputs, b)
		}
		writers = append(writers, list)
	}
	t, err := s.encode(ctx, c, changed, inputs, outputs)
	if err != nil {
		return err
	}
	*traffic = *t
	for _, list := range writers {
		traffic.TotalBytes += int64(len(list)) * changed.bytes()
	}
	if err := s.here(func(i int, n *node) error {
		if err := s.keep(m, n, changed, writers[i], files[i]); err != nil {
			return err
		}
		if err := files[i].Sync(); err != nil {
			return err
		}
		return unchanged(works[i])
	}); err != nil {
		return err
	}
	digests := make([][]string, len(works))
	for i, list := range writers {
		for _, w := range list {
			for row := range m.rows() {
				digests[i] = append(digests[i], w.digests[row])
			}
		}
	}
	if digests, err = exchange(ctx, s, digests); err != nil {
		return err
	}
	for n := range m.Members {
		m.Members[n].Parity = digests[n]
	}
	if err := m.validate(); err != nil {
		return err
	}
	text, err := m.encode()
	if err != nil {
		return err
	}
	return s.here(func(i int, n *node) error {
		if err := n.identify(m.Group); err != nil {
			return err
		}
		if err := os.Rename(files[i].Name(), n.parity(m.Generation)); err != nil {
			return err
		}
		if err := atomicfile.Write(n.pending(m.Generation), text); err != nil {
			return err
		}
		return n.sync()
	})
}

// keep copies the parity of the blocks that have not changed.
func (s *session) keep(m *Manifest, n *node, changed blocks, writers []*blockWriter, f *os.File) error {
	if len(changed.rows) == m.rows() {
		return nil
	}
	old, err := n.openParity(s.generation)
	if err != nil {
		return err
	}
	defer old.Close()
	earlier := s.manifest
	for c, w := range writers {
		for row := range m.rows() {
			if _, ok := slices.BinarySearch(changed.rows, row); ok {
				continue
			}
			at, length := m.block(row)
			block := make([]byte, length)
			if _, err := old.ReadAt(block, int64(c)*earlier.ChunkBytes+at); err != nil {
				return err
			}
			if w.digests[row] = sum(block); w.digests[row] != earlier.Members[n.index].Parity[c*earlier.rows()+row] {
				return fmt.Errorf("%s has changed while it was read", old.Name())
			}
			if _, err := f.WriteAt(block, int64(c)*m.ChunkBytes+at); err != nil {
				return err
			}
		}
	}
	return nil
}

// unchanged returns an error where the files of a node are not as they were scanned.
func unchanged(w *work) error {
	now, err := scan(w.root, true)
	if err != nil {
		return err
	}
	for i, e := range w.entries {
		if i >= len(now) || now[i].Path != e.Path {
			return inputf("%s: files have come or gone while they were protected: leave them alone meanwhile, and run again", w.dir)
		}
		n := now[i]
		if n.Type != e.Type || n.Size != e.Size || n.MTime != e.MTime || n.Target != e.Target {
			return inputf("%s has changed while it was protected: leave files alone meanwhile, and run again", filepath.Join(w.dir, string(e.Path)))
		}
	}
	if len(now) != len(w.entries) {
		return inputf("%s: files have come while it was protected: leave them alone meanwhile, and run again", w.dir)
	}
	return nil
}

// commit puts a generation in force that all nodes have, and removes what was before.
func (s *session) commit(ctx context.Context, g int64) error {
	if err := s.together(ctx); err != nil {
		return err
	}
	// From the first of these on it is the one that counts.
	if err := s.here(func(_ int, n *node) error {
		if err := os.Rename(n.pending(g), n.manifest(g)); err != nil {
			return err
		}
		return n.sync()
	}); err != nil {
		return err
	}
	if err := s.together(ctx); err != nil {
		return err
	}
	return s.here(func(_ int, n *node) error { return n.clean(g) })
}
