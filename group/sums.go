package group

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"volley/group/internal/tree"
)

// compared is how what is there of a node's data compares with a record.
type compared struct {
	blocks  [][]int             // by chunk: rows that are not as they were
	files   map[tree.Name]bool  // that are not
	failing map[tree.Name]error // those of them that the disk does not give
}

// compare reads a node's data and compares it with its record. It calls done, unless nil, with the bytes read.
func (m *Manifest) compare(ctx context.Context, d *data, x *Member, done func(n int64)) (*compared, error) {
	c := newComparer(m, d, x)
	buffers := make([]byte, 2*min(m.BlockBytes, m.ChunkBytes))
	err := m.inOrder(m.DataChunks, func(row, chunk int, at, n int64) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if len(c.unsettled) == 2 {
			c.settle()
		}
		c.block(row, chunk, buffers[len(c.unsettled)*len(buffers)/2:][:n], false)
		if done != nil {
			done(max(0, min(n, x.Bytes-at)))
		}
		return nil
	})
	return c.result(), err
}

// A comparer compares a node's data with its record, block by block in the order of their places.
type comparer struct {
	compared
	*sums
	d         *data
	x         *Member
	unsettled []unsettled
}

// An unsettled block was read, and is not compared yet.
type unsettled struct{ row, chunk, first, end int }

func newComparer(m *Manifest, d *data, x *Member) *comparer {
	return &comparer{compared{blocks: make([][]int, m.DataChunks), files: map[tree.Name]bool{}}, newSums(m, d.Extents), d, x, nil}
}

func (c *comparer) result() *compared {
	c.settle()
	c.failing = c.d.failing
	return &c.compared
}

// block reads the next block, in any case where it is to be used. It stays in memory until settle compares it.
func (c *comparer) block(row, chunk int, to []byte, use bool) {
	at, first := c.m.offsetOf(row, chunk, c.m.DataChunks), c.next
	end := at + int64(len(to))
	nothing := first == len(c.list) || c.list[first].at >= end // zeros, without a digest
	if (nothing || c.skip(end, c.d)) && use {
		clear(to)
	}
	switch {
	case nothing:
		return
	case c.next == first:
		c.d.ReadAt(to, at) // what cannot be read is zeros
		c.add(at, to)
	}
	c.unsettled = append(c.unsettled, unsettled{row, chunk, first, c.next})
}

func (c *comparer) settle() {
	c.flush()
	for _, b := range c.unsettled {
		same := true
		for i := b.first; i < b.end; i++ {
			if !bytes.Equal(c.m.digestOf(c.digests, i), c.m.digestOf(c.x.Segments, i)) {
				same = false
				c.compared.files[c.d.Extents[c.list[i].file].Path] = true
			}
		}
		if !same {
			c.blocks[b.chunk] = append(c.blocks[b.chunk], b.row)
		}
	}
	c.unsettled = c.unsettled[:0]
}

// sums takes the digests of segments in order. Those of blocks that were added are there after a flush.
type sums struct {
	pairing
	files   tree.Extents
	list    []segment
	next    int    // of the list
	digests []byte // zeros from there on
}

func newSums(m *Manifest, files tree.Extents) *sums {
	list := m.segments(files)
	return &sums{pairing: pairing{m: m}, files: files, list: list, digests: make([]byte, len(list)*digestBytes[m.Digest])}
}

func (s *sums) add(at int64, block []byte) {
	for ; s.next < len(s.list) && s.list[s.next].at < at+int64(len(block)); s.next++ {
		x := s.list[s.next]
		s.pairing.add(s.m.digestOf(s.digests, s.next), block[x.at-at:][:x.n])
	}
}

// seek goes past the segments before a row.
func (s *sums) seek(row int) {
	for s.next < len(s.list) && s.list[s.next].row < row {
		s.next++
	}
}

// skip goes past the segments before an end, if there are any and no file that is there has
// anything of them: what a record says takes no time where there is nothing.
func (s *sums) skip(end int64, d *data) bool {
	i := s.next
	for ; i < len(s.list) && s.list[i].at < end; i++ {
		g := s.list[i]
		if g.at-s.files[g.file].Offset < d.length(g.file) {
			return false
		}
	}
	if i == s.next {
		return false
	}
	s.next = i
	return true
}

// wrong returns the first file of which a block that was recovered has something else than a record says; nil: there is
// none.
func (s *sums) wrong(x *Member, at int64, block []byte) *tree.Entry {
	first, _ := slices.BinarySearchFunc(s.list, at, func(g segment, at int64) int {
		if g.at < at {
			return -1
		}
		return 1
	})
	for i := first; i < len(s.list) && s.list[i].at < at+int64(len(block)); i++ {
		g := s.list[i]
		if !s.m.sameDigest(block[g.at-at:][:g.n], x.Segments, i) {
			return s.files[g.file]
		}
	}
	return nil
}

// compareParity returns, by chunk, the rows of a node's parity that are not as they were. It calls done,
// unless nil, with the bytes that it has read.
func (m *Manifest) compareParity(ctx context.Context, parity io.ReaderAt, x *Member, done func(n int64)) ([][]int, error) {
	bad := make([][]int, m.ParityChunks)
	buffer := make([]byte, min(m.BlockBytes, m.ChunkBytes))
	err := m.inOrder(m.ParityChunks, func(row, chunk int, _, n int64) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !m.readParity(parity, x, row, chunk, buffer[:n]) {
			bad[chunk] = append(bad[chunk], row)
		}
		if done != nil {
			done(n)
		}
		return nil
	})
	return bad, err
}

func (m *Manifest) readParity(parity io.ReaderAt, x *Member, row, chunk int, to []byte) bool {
	n, _ := parity.ReadAt(to, m.offsetOf(row, chunk, m.ParityChunks))
	return n == len(to) && m.sameParity(x, row, chunk, to)
}

func (m *Manifest) sameParity(x *Member, row, chunk int, block []byte) bool {
	return m.sameDigest(block, x.Parity, m.number(row, chunk, m.ParityChunks))
}

func (m *Manifest) allRows() []int {
	var rows []int
	for row := range m.rows() {
		rows = append(rows, row)
	}
	return rows
}

func all(m *Manifest, chunks int) [][]int { return slices.Repeat([][]int{m.allRows()}, chunks) }

// errDamaged says that a file has rotted, which had a name.
func errDamaged(path, was string) error {
	what := "it"
	if path != was {
		what = was
	}
	return fmt.Errorf("%s is damaged: it has the length and time that %s had when it was protected, and holds something else. Recover %s first", path, what, what)
}

// wrongFile says that what was recovered of a file is not what was protected.
func wrongFile(path string) error {
	return &WrongError{What: fmt.Sprintf("%s: what was recovered is not what was protected: data has changed meanwhile; run again", path)}
}
