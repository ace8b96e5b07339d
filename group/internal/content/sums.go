package content

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
)

// Compared is how what is there of a node's data compares with a record.
type Compared struct {
	Blocks  [][]int             // by chunk: rows that are not as they were
	Files   map[tree.Name]bool  // that are not
	Failing map[tree.Name]error // those of them that the disk does not give
}

// Compare reads a node's data and compares it with its record. It calls done, unless nil, with the bytes read.
func Compare(ctx context.Context, m *store.Manifest, d *Data, x *store.Record, done func(n int64)) (*Compared, error) {
	c := NewComparer(m, d, x)
	buffers := make([]byte, 2*min(m.BlockBytes, m.ChunkBytes))
	err := m.InOrder(m.DataChunks, func(row, chunk int, at, n int64) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if len(c.unsettled) == 2 {
			c.Settle()
		}
		c.Block(row, chunk, buffers[len(c.unsettled)*len(buffers)/2:][:n], false)
		if done != nil {
			done(max(0, min(n, x.Bytes-at)))
		}
		return nil
	})
	return c.Result(), err
}

// CompareFiles is [Compare] of some files alone: it reads no other.
func CompareFiles(ctx context.Context, m *store.Manifest, d *Data, x *store.Record, of Chosen, done func(n int64)) (*Compared, error) {
	return CompareFileParts(ctx, m, d, x, func(g store.FilePart) bool { return of(d.Extents[g.File]) }, done)
}

// CompareFileParts is [Compare] of some file parts alone: it reads no other.
func CompareFileParts(ctx context.Context, m *store.Manifest, d *Data, x *store.Record, of func(store.FilePart) bool, done func(n int64)) (*Compared, error) {
	c := &Compared{Blocks: make([][]int, m.DataChunks), Files: map[tree.Name]bool{}}
	buffer := make([]byte, min(m.BlockBytes, m.ChunkBytes))
	for i, g := range m.FilePartsOf(d.Extents) {
		if !of(g) {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		part := buffer[:g.N]
		d.ReadAt(part, g.Offset) // what cannot be read is zeros
		if done != nil {
			done(g.N)
		}
		if m.SameDigest(part, x.FileDigests, i) {
			continue
		}
		c.Files[d.Extents[g.File].Path] = true
		if rows := c.Blocks[g.Chunk]; len(rows) == 0 || rows[len(rows)-1] != g.Row {
			c.Blocks[g.Chunk] = append(rows, g.Row)
		}
	}
	c.Failing = d.Failing
	return c, nil
}

// A Comparer compares a node's data with its record, block by block in the order of their places.
type Comparer struct {
	Compared
	*Sums
	D         *Data
	X         *store.Record
	unsettled []unsettled
}

// An unsettled block was read, and is not compared yet.
type unsettled struct{ row, chunk, first, end int }

func NewComparer(m *store.Manifest, d *Data, x *store.Record) *Comparer {
	return &Comparer{Compared{Blocks: make([][]int, m.DataChunks), Files: map[tree.Name]bool{}}, NewSums(m, d.Extents), d, x, nil}
}

func (c *Comparer) Result() *Compared {
	c.Settle()
	c.Failing = c.D.Failing
	return &c.Compared
}

// Block reads the next block, in any case where it is to be used. It stays in memory until settle compares it.
func (c *Comparer) Block(row, chunk int, to []byte, use bool) {
	at, first := c.M.OffsetOf(row, chunk, c.M.DataChunks), c.Next
	end := at + int64(len(to))
	nothing := first == len(c.List) || c.List[first].Offset >= end // zeros, without a digest
	if (nothing || c.skip(end, c.D)) && use {
		clear(to)
	}
	switch {
	case nothing:
		return
	case c.Next == first:
		c.D.ReadAt(to, at) // what cannot be read is zeros
		c.Add(at, to)
	}
	c.unsettled = append(c.unsettled, unsettled{row, chunk, first, c.Next})
}

func (c *Comparer) Settle() {
	c.Flush()
	for _, b := range c.unsettled {
		same := true
		for i := b.first; i < b.end; i++ {
			if !bytes.Equal(c.M.DigestOf(c.Digests, i), c.M.DigestOf(c.X.FileDigests, i)) {
				same = false
				c.Compared.Files[c.D.Extents[c.List[i].File].Path] = true
			}
		}
		if !same {
			c.Blocks[b.chunk] = append(c.Blocks[b.chunk], b.row)
		}
	}
	c.unsettled = c.unsettled[:0]
}

// Sums takes the digests of file parts in order. Those of blocks that were added are there after a flush.
type Sums struct {
	Pairing
	Files   tree.Extents
	List    []store.FilePart
	Next    int    // of the list
	Digests []byte // zeros from there on
}

func NewSums(m *store.Manifest, files tree.Extents) *Sums {
	list := m.FilePartsOf(files)
	return &Sums{Pairing: Pairing{M: m}, Files: files, List: list, Digests: make([]byte, len(list)*store.DigestBytes[m.Digest])}
}

func (s *Sums) Add(at int64, block []byte) {
	for ; s.Next < len(s.List) && s.List[s.Next].Offset < at+int64(len(block)); s.Next++ {
		x := s.List[s.Next]
		s.Pairing.Add(s.M.DigestOf(s.Digests, s.Next), block[x.Offset-at:][:x.N])
	}
}

// Seek goes past the file parts before a row.
func (s *Sums) Seek(row int) {
	for s.Next < len(s.List) && s.List[s.Next].Row < row {
		s.Next++
	}
}

// skip goes past the file parts before an end, if there are any and no file that is there has
// anything of them: what a record says takes no time where there is nothing.
func (s *Sums) skip(end int64, d *Data) bool {
	i := s.Next
	for ; i < len(s.List) && s.List[i].Offset < end; i++ {
		g := s.List[i]
		if g.Offset-s.Files[g.File].Offset < d.length(g.File) {
			return false
		}
	}
	if i == s.Next {
		return false
	}
	s.Next = i
	return true
}

// Wrong returns the first file of which a block that was recovered has something else than a record says; nil: there is
// none.
func (s *Sums) Wrong(x *store.Record, at int64, block []byte) *tree.Entry {
	first, _ := slices.BinarySearchFunc(s.List, at, func(g store.FilePart, at int64) int {
		if g.Offset < at {
			return -1
		}
		return 1
	})
	for i := first; i < len(s.List) && s.List[i].Offset < at+int64(len(block)); i++ {
		g := s.List[i]
		if !s.M.SameDigest(block[g.Offset-at:][:g.N], x.FileDigests, i) {
			return s.Files[g.File]
		}
	}
	return nil
}

// CompareParity returns, by chunk, the rows of a node's parity that are not as they were, of some blocks alone unless
// that is nil. It calls done, unless nil, with the bytes that it has read.
func CompareParity(ctx context.Context, m *store.Manifest, parity io.ReaderAt, x *store.Record, some func(row, chunk int) bool, done func(n int64)) ([][]int, error) {
	bad := make([][]int, m.ParityChunks)
	buffer := make([]byte, min(m.BlockBytes, m.ChunkBytes))
	err := m.InOrder(m.ParityChunks, func(row, chunk int, _, n int64) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if some != nil && !some(row, chunk) {
			return nil
		}
		if !ReadParity(m, parity, x, row, chunk, buffer[:n]) {
			bad[chunk] = append(bad[chunk], row)
		}
		if done != nil {
			done(n)
		}
		return nil
	})
	return bad, err
}

func ReadParity(m *store.Manifest, parity io.ReaderAt, x *store.Record, row, chunk int, to []byte) bool {
	n, _ := parity.ReadAt(to, m.OffsetOf(row, chunk, m.ParityChunks))
	return n == len(to) && SameParity(m, x, row, chunk, to)
}

func SameParity(m *store.Manifest, x *store.Record, row, chunk int, block []byte) bool {
	return m.SameDigest(block, x.Parity, m.Number(row, chunk, m.ParityChunks))
}

func AllRows(m *store.Manifest) []int {
	var rows []int
	for row := range m.Rows() {
		rows = append(rows, row)
	}
	return rows
}

func All(m *store.Manifest, chunks int) [][]int { return slices.Repeat([][]int{AllRows(m)}, chunks) }

// ErrDamaged says that a file has rotted, which had a name.
func ErrDamaged(path, was string) error {
	what := "it"
	if path != was {
		what = was
	}
	return fmt.Errorf("%s is damaged: it has the length and time that %s had when it was protected, and holds something else. Recover %s first", path, what, what)
}

// WrongFile says that what was recovered of a file is not what was protected.
func WrongFile(path string) error {
	return &protection.CorruptError{Reason: fmt.Sprintf("%s: what was recovered is not what was protected: data has changed meanwhile; run again", path)}
}
