package pass

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"time"

	"volley/group/internal/content"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
)

// chooseRows returns the rows that the pass reads: those in which a file of any node has changed, arrived, vanished or
// moved. Nodes keep digests and parity of the other rows, unread. It returns all rows if parity is made in another way,
// or on request.
func (p *Pass) chooseRows(ctx context.Context) ([]int, error) {
	m, rows := p.M, content.AllRows(p.M)
	changed := rows
	if p.s.Manifest != nil {
		var err error
		if changed, err = p.union(session.Collect(ctx, p.s, func(ctx context.Context, i int, _ *store.Node) ([]stretch, error) {
			n := p.Works[i]
			if err := n.compareMoved(ctx, m, p.follows); err != nil || p.full || !p.follows {
				return stretches(rows), err
			}
			return stretches(n.changedRows(m)), nil
		})); err != nil {
			return nil, err
		}
	}
	if len(changed) < len(rows) {
		kept := subtractRows(rows, changed)
		failed, err := p.union(session.Collect(ctx, p.s, func(ctx context.Context, i int, _ *store.Node) ([]stretch, error) {
			failed, err := p.Works[i].keepParity(ctx, m, kept)
			return stretches(failed), err
		}))
		if err != nil {
			return nil, err
		}
		kept = subtractRows(kept, failed)
		for _, n := range p.Works {
			n.keepDigests(m, kept)
		}
		rows = subtractRows(rows, kept)
	}
	return rows, nil
}

// A stretch of rows that follow each other.
type stretch struct{ First, End int }

// stretches returns the stretches of rows, which are ascending.
func stretches(rows []int) (list []stretch) {
	for _, row := range rows {
		if n := len(list); n > 0 && list[n-1].End == row {
			list[n-1].End++
		} else {
			list = append(list, stretch{row, row + 1})
		}
	}
	return list
}

// union returns the rows of stretches that nodes have named, ascending.
func (p *Pass) union(lists [][]stretch, err error) (rows []int, _ error) {
	list := slices.Concat(lists...)
	slices.SortFunc(list, func(a, b stretch) int { return cmp.Compare(a.First, b.First) })
	end := 0
	for _, x := range list {
		if x.First < 0 || x.End > p.M.Rows() {
			return nil, cmp.Or(err, fmt.Errorf("a rank names rows %d to %d of %d", x.First, x.End, p.M.Rows()))
		}
		for row := max(end, x.First); row < x.End; row++ {
			rows = append(rows, row)
		}
		end = max(end, x.End)
	}
	return rows, err
}

// subtractRows returns the rows that are not excluded.
func subtractRows(rows, excluded []int) []int {
	return slices.DeleteFunc(slices.Clone(rows), func(row int) bool { _, excludes := slices.BinarySearch(excluded, row); return excludes })
}

// changedRows returns the rows in which a file has changed or vanished, and rows that are cut in another way. It returns
// all rows unless all earlier parity is right.
func (n *Work) changedRows(m *store.Manifest) []int {
	e := n.earlier
	if n.kept == nil || n.part {
		return content.AllRows(m)
	}
	first := m.Rows() // first row whose blocks have other lengths
	if m.ChunkBytes != e.m.ChunkBytes {
		first = int(min(m.ChunkBytes, e.m.ChunkBytes) / m.BlockBytes)
	}
	var list []stretch
	mark := func(e *tree.Entry) {
		width := int64(m.DataChunks) * m.BlockBytes
		list = append(list, stretch{int(e.Offset / width), int((e.Offset+e.Size-1)/width) + 1})
	}
	recorded := map[int64]*tree.Entry{}
	for _, file := range e.files {
		recorded[file.Offset] = file
	}
	for _, file := range n.Data.Extents {
		if recordedFile := recorded[file.Offset]; recordedFile != nil && file.Unchanged(recordedFile) {
			delete(recorded, file.Offset)
			continue
		}
		mark(file)
	}
	for _, file := range recorded {
		mark(file)
	}
	isChanged := make([]bool, m.Rows())
	for _, x := range append(list, stretch{first, m.Rows()}) {
		for row := x.First; row < min(x.End, len(isChanged)); row++ {
			isChanged[row] = true
		}
	}
	return slices.DeleteFunc(content.AllRows(m), func(row int) bool { return !isChanged[row] })
}

// keepParity copies the earlier parity of rows, and returns those of which the disk does not give it: they are coded.
func (n *Work) keepParity(ctx context.Context, m *store.Manifest, rows []int) (failed []int, err error) {
	offset := func(row int) int64 { return min(int64(row)*m.BlockBytes, m.ChunkBytes) * int64(m.ParityChunks) }
	var keep func(x stretch) error
	keep = func(x stretch) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := errLong
		if x.End-x.First <= mostCopied {
			err = n.File.CopyRange(n.kept, offset(x.First), offset(x.End)-offset(x.First))
		}
		switch middle := x.First + (x.End-x.First)/2; {
		case err != errLong && !errors.Is(err, syscall.EIO) && !errors.Is(err, io.ErrUnexpectedEOF):
			return err
		case middle == x.First:
			failed = append(failed, x.First)
			return nil
		default:
			return cmp.Or(keep(stretch{x.First, middle}), keep(stretch{middle, x.End}))
		}
	}
	for _, x := range stretches(rows) {
		if err := keep(x); err != nil {
			return nil, err
		}
	}
	return failed, nil
}

// mostCopied is how many rows are copied at a time: a run can end meanwhile.
const mostCopied = 1 << 10

var errLong = errors.New("too long to copy at once")

// keepDigests copies the earlier digests of rows whose files are unchanged.
func (n *Work) keepDigests(m *store.Manifest, rows []int) {
	e, j := n.earlier, 0
	for i, g := range n.Sums.List {
		if _, kept := slices.BinarySearch(rows, g.Row); !kept {
			continue
		}
		for e.list[j].Offset < g.Offset {
			j++
		}
		copy(m.DigestOf(n.Sums.Digests, i), m.DigestOf(e.record.FileDigests, j))
	}
	size := store.DigestBytes[m.Digest] * m.ParityChunks
	for _, row := range rows {
		copy(n.Record.Parity[row*size:][:size], e.record.Parity[row*size:])
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
		if e.Type == tree.TypeFile && !e.Torn && !n.silent[e.Volume] && !e.Touch.After(n.begun.Add(-tick)) {
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
