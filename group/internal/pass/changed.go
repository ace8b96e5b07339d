package pass

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"volley/group/internal/content"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
)

// chooseCells returns the cells that the pass reads: those in which a file of any node may have changed, arrived, vanished
// or moved. Nodes keep digests and parity of the other cells, unread. It returns all cells if parity is made in another
// way, or on request.
func (p *Pass) chooseCells(ctx context.Context) ([]int, error) {
	m, cells := p.M, CellsOf(p.M, content.AllRows(p.M))
	if p.s.Manifest == nil {
		return cells, nil
	}
	type named struct{ Read, Changed []stretch }
	answers, err := session.Collect(ctx, p.s, func(ctx context.Context, i int, _ *store.Node) (named, error) {
		n := p.Works[i]
		if err := n.compareMoved(ctx, m, p.follows); err != nil || p.full || !p.follows {
			return named{stretches(cells), stretches(cells)}, err
		}
		read, changed := n.changedCells(m)
		return named{stretches(read), stretches(changed)}, nil
	})
	var read, changed [][]stretch
	for _, x := range answers {
		read, changed = append(read, x.Read), append(changed, x.Changed)
	}
	chosen, err := p.union(read, err)
	if err != nil || !p.follows {
		return chosen, err
	}
	certain, err := p.union(changed, nil)
	if err != nil {
		return nil, err
	}
	kept := subtract(cells, chosen)
	failed, err := p.union(session.Collect(ctx, p.s, func(ctx context.Context, i int, _ *store.Node) ([]stretch, error) {
		failed, err := p.Works[i].keepParity(ctx, m, kept, certain)
		return stretches(failed), err
	}))
	if err != nil {
		return nil, err
	}
	kept = subtract(kept, failed)
	for _, n := range p.Works {
		n.keepDigests(m, kept)
	}
	return subtract(cells, kept), nil
}

// Filled returns the cells in which a node has data. The pass reads these, if it makes all parity anew: what is written to
// the others from now on, the second listing tells.
func (p *Pass) Filled(ctx context.Context) (cells []int, err error) {
	p.filled, err = p.filledCells(ctx, CellsOf(p.M, content.AllRows(p.M)))
	return p.filled, err
}

// filledCells returns those of some cells in which a node has data. In the others all of them have holes, or nothing.
func (p *Pass) filledCells(ctx context.Context, cells []int) ([]int, error) {
	return p.union(session.Collect(ctx, p.s, func(ctx context.Context, i int, _ *store.Node) ([]stretch, error) {
		if p.full && p.follows { // parity of holes is read, too
			return stretches(cells), nil
		}
		n, filled := p.Works[i], []int(nil)
		for _, g := range n.Sums.List {
			if cell := n.cell(p.M, g); includes(cells, cell) && (ctx.Err() != nil || !n.Data.Hole(g)) {
				filled = append(filled, cell)
			}
		}
		return stretches(filled), context.Cause(ctx)
	}))
}

// takeZeros takes cells in which no node has data as if it had read and coded them.
func (n *Work) takeZeros(ctx context.Context, m *store.Manifest, cells []int) error {
	zeros, zerosSum := m.Zeros()
	setSum := func(sum []byte, length int64) {
		if copy(sum, zerosSum); length < int64(len(zeros)) {
			m.AppendSum(sum[:0], zeros[:length])
		}
	}
	var blocks []Block
	for i, g := range n.Sums.List {
		if cell := n.cell(m, g); includes(cells, cell) {
			setSum(m.DigestOf(n.Sums.Digests, i), g.N)
			_, length := m.Block(g.Row)
			blocks = append(blocks, Block{content.Symbol{Node: n.Index, Index: g.Chunk}, g.Row, cell, zeros[:length]})
		}
	}
	for _, b := range blocks {
		if _, err := n.blockUnchanged(ctx, m, b); err != nil { // a file has rotted to zeros
			return err
		}
	}
	for _, number := range ParityIn(m, n.Index, cells) {
		row, chunk, sum := number/m.ParityChunks, number%m.ParityChunks, m.DigestOf(n.Record.Parity, number)
		_, length := m.Block(row)
		setSum(sum, length)
		e := n.earlier
		stays := n.File.Stays(number) && row < e.m.Rows() && bytes.Equal(sum, m.DigestOf(e.record.Parity, number))
		if stays || n.File.Hole(number) {
			continue
		}
		if _, err := n.Parity.WriteAt(zeros[:length], m.OffsetOf(row, chunk, m.ParityChunks)); err != nil {
			return err
		}
	}
	return nil
}

// A stretch of cells, or of blocks of parity, whose numbers follow each other.
type stretch struct{ First, End int }

// stretches returns the stretches of numbers.
func stretches(numbers []int) (list []stretch) {
	for _, x := range slices.Sorted(slices.Values(numbers)) {
		if n := len(list); n > 0 && x <= list[n-1].End {
			list[n-1].End = x + 1
		} else {
			list = append(list, stretch{x, x + 1})
		}
	}
	return list
}

// union returns the cells of stretches that nodes have named, ascending.
func (p *Pass) union(lists [][]stretch, err error) (cells []int, _ error) {
	list := slices.Concat(lists...)
	slices.SortFunc(list, func(a, b stretch) int { return cmp.Compare(a.First, b.First) })
	end, count := 0, p.M.Rows()*p.M.Nodes
	for _, x := range list {
		if x.First < 0 || x.End > count {
			return nil, cmp.Or(err, fmt.Errorf("a rank names cells %d to %d of %d", x.First, x.End, count))
		}
		for cell := max(end, x.First); cell < x.End; cell++ {
			cells = append(cells, cell)
		}
		end = max(end, x.End)
	}
	return cells, err
}

// includes reports whether a cell is among others, which are ascending.
func includes(cells []int, cell int) bool {
	_, found := slices.BinarySearch(cells, cell)
	return found
}

// subtract returns the cells that are not excluded.
func subtract(cells, excluded []int) []int {
	return slices.DeleteFunc(slices.Clone(cells), func(cell int) bool { return includes(excluded, cell) })
}

// cell returns the cell that has a file part.
func (n *Work) cell(m *store.Manifest, g store.FilePart) int {
	return content.Symbol{Node: n.Index, Index: g.Chunk}.Cell(m, g.Row)
}

// changedCells returns the cells to read, in which a file may have changed or vanished, or which are cut in another way, and
// those of them that change for certain: a file has come, gone, grown or shrunk there. Of a file that a program has written
// to nobody knows where. It returns all cells unless all earlier parity is right.
func (n *Work) changedCells(m *store.Manifest) (read, changed []int) {
	e := n.earlier
	if n.kept == nil || n.kept.Wrong != nil {
		return CellsOf(m, content.AllRows(m)), nil
	}
	first := m.Rows() // first row whose blocks have other lengths
	if m.ChunkBytes != e.m.ChunkBytes {
		first = int(min(m.ChunkBytes, e.m.ChunkBytes) / m.BlockBytes)
	}
	changed = CellsOf(m, content.AllRows(m)[first:])
	mark := func(list []store.FilePart, files tree.Extents) {
		for _, g := range list {
			if g.Row >= first {
				continue
			}
			offset := files[g.File].Offset
			switch listed, recorded := n.Sums.Files.Beginning(offset), e.files.Beginning(offset); {
			case listed == nil || recorded == nil || g.Offset+g.N > offset+min(listed.Size, recorded.Size):
				changed = append(changed, n.cell(m, g))
			case !listed.Unchanged(recorded):
				read = append(read, n.cell(m, g))
			}
		}
	}
	mark(n.Sums.List, n.Sums.Files)
	mark(e.list, e.files)
	return slices.Concat(read, changed), changed
}

// ParityIn returns a node's blocks of parity in cells, ascending.
func ParityIn(m *store.Manifest, node int, cells []int) (blocks []int) {
	for row := range m.Rows() {
		for i := range m.ParityChunks {
			if includes(cells, content.Symbol{Node: node, Parity: true, Index: i}.Cell(m, row)) {
				blocks = append(blocks, m.Number(row, i, m.ParityChunks))
			}
		}
	}
	return blocks
}

// keepParity keeps the earlier parity of cells: where it lies, or as a copy. Of a copy it returns the cells that are not as
// they were made: they are coded. Others change for certain.
func (n *Work) keepParity(ctx context.Context, m *store.Manifest, cells, changed []int) (failed []int, err error) {
	if n.kept == nil {
		return nil, nil
	}
	if n.kept.Wrong == nil && n.File.Worthwhile(n.kept.Changes, len(ParityIn(m, n.Index, changed))) {
		err := n.File.Keep(n.kept.Loaded, n.kept.Changes)
		if err == nil {
			return nil, nil
		}
		n.unlinked = fmt.Sprintf("%s (%s)", n.DirName, disk.Reason(err))
	}
	memory := make([]byte, m.BlockBytes)
	for _, number := range ParityIn(m, n.Index, cells) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		row, chunk := number/m.ParityChunks, number%m.ParityChunks
		_, length := m.Block(row)
		if !content.ReadParity(m, n.kept, n.earlier.record, row, chunk, memory[:length]) {
			failed = append(failed, content.Symbol{Node: n.Index, Parity: true, Index: chunk}.Cell(m, row))
		} else if _, err := n.Parity.WriteAt(memory[:length], m.OffsetOf(row, chunk, m.ParityChunks)); err != nil {
			return nil, err
		}
	}
	return failed, nil
}

// keepDigests copies the earlier digests of cells whose files are unchanged.
func (n *Work) keepDigests(m *store.Manifest, cells []int) {
	e, j := n.earlier, 0
	for i, g := range n.Sums.List {
		if !includes(cells, n.cell(m, g)) {
			continue
		}
		for e.list[j].Offset < g.Offset {
			j++
		}
		copy(m.DigestOf(n.Sums.Digests, i), m.DigestOf(e.record.FileDigests, j))
	}
	for _, block := range ParityIn(m, n.Index, cells) {
		copy(m.DigestOf(n.Record.Parity, block), m.DigestOf(e.record.Parity, block))
	}
}

// RecordTouches records when files last changed, so that the next run need not read those that did not since. It leaves
// out files that changed just before this run began: they may have changed again in the same tick of the file system's
// clock, after they were read. It leaves out files of which such times do not tell everything.
func (n *Work) RecordTouches() {
	for _, e := range n.Listing.Entries {
		tick := shortTick
		if e.Nanoseconds == 0 {
			tick = longTick
		}
		if e.Type == tree.TypeFile && !e.Torn && !e.Grown && !n.silent[e.Volume] && !e.Touch.After(n.begun.Add(-tick)) {
			e.Record()
		}
	}
}

// writeBack has file systems write back what programs have written to mappings of files before these are read. Else a
// program may go on writing to a mapping, and the file's times stay as they are.
func (n *Work) writeBack() {
	n.silent = map[disk.FileID]bool{}
	for _, wait := range []bool{false, true} { // they write all files at once, and not one after the other
		for _, e := range n.Listing.Entries {
			silent, known := n.silent[e.Volume]
			if e.Type != tree.TypeFile || silent || known && !e.Touch.After(n.begun.Add(-longestDirty)) {
				continue
			}
			err := n.Dir.WriteBack(string(e.Path), wait)
			if silent = errors.Is(err, errors.ErrUnsupported); silent || err == nil { // else reading the file tells what is wrong
				n.silent[e.Volume] = silent
			}
		}
	}
}

// longestDirty is how long a file may have data that is not written back, and was not touched meanwhile. Linux writes back
// after 30 s, or after what vm.dirty_expire_centisecs says: 10 minutes on some laptops.
const longestDirty = 20 * time.Minute

// Ticks of file systems with times of nanoseconds, and of those with whole or even seconds.
const (
	shortTick = 20 * time.Millisecond
	longTick  = 2 * time.Second
)
