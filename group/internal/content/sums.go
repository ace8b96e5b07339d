package content

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sort"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
)

// Compared says where a node's data differ from a record.
type Compared struct {
	Blocks  [][]int             // by chunk: rows that differ from the record
	Files   map[tree.Name]bool  // that differ from the record
	Failing map[tree.Name]error // files that the disk fails to read
}

// Compare reads the chosen parts of a node's files, or all if chosen is nil, and compares them with its record. It calls
// progress, unless nil, with the bytes read.
func Compare(ctx context.Context, m *store.Manifest, d *Data, x *store.Record, chosen func(*tree.Entry, store.FilePart) bool, progress func(n int64)) (*Compared, error) {
	c := NewComparer(m, d, x)
	n := min(m.BlockBytes, m.ChunkBytes)
	buffers := [2][]byte{make([]byte, n), make([]byte, n)}
	for i, g := range c.List {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if i%2 == 0 {
			c.Settle()
		}
		if chosen != nil && !chosen(d.Extents[g.File], g) {
			c.Settle()
			c.Next, c.settled = i+1, i+1
			continue
		}
		c.Block(g.Offset, buffers[i%2][:g.N])
		if progress != nil {
			progress(g.N)
		}
	}
	return c.Result(), nil
}

// A Comparer compares a node's data with its record, block by block in the order of their places.
type Comparer struct {
	Compared
	*Sums
	D       *Data
	X       *store.Record
	settled int // of the list: how many parts were compared, or passed over
}

func NewComparer(m *store.Manifest, d *Data, x *store.Record) *Comparer {
	return &Comparer{Compared{Blocks: make([][]int, m.DataChunks), Files: map[tree.Name]bool{}}, NewSums(m, d.Extents), d, x, 0}
}

func (c *Comparer) Result() *Compared {
	c.Settle()
	c.Failing = c.D.Failing
	return &c.Compared
}

// Block reads the next block. It stays in memory until Settle compares it.
func (c *Comparer) Block(offset int64, block []byte) {
	if c.skip(offset+int64(len(block)), c.D) {
		clear(block)
		return
	}
	c.D.ReadAt(block, offset) // unreadable data is read as zeros
	c.Add(offset, block)
}

func (c *Comparer) Settle() {
	c.Flush()
	for ; c.settled < c.Next; c.settled++ {
		if bytes.Equal(c.M.DigestOf(c.Digests, c.settled), c.M.DigestOf(c.X.FileDigests, c.settled)) {
			continue
		}
		g := c.List[c.settled]
		c.Compared.Files[c.D.Extents[g.File].Path] = true
		if rows := c.Blocks[g.Chunk]; len(rows) == 0 || rows[len(rows)-1] != g.Row {
			c.Blocks[g.Chunk] = append(rows, g.Row)
		}
	}
}

// Sums takes the digests of file parts in order. Flush completes those of the blocks added.
type Sums struct {
	Pairing
	Files   tree.Extents
	List    []store.FilePart
	Next    int    // of the list
	Digests []byte // zeros from Next on
}

func NewSums(m *store.Manifest, files tree.Extents) *Sums {
	list := m.FilePartsOf(files)
	return &Sums{Pairing: Pairing{M: m}, Files: files, List: list, Digests: make([]byte, len(list)*store.DigestBytes[m.Digest])}
}

func (s *Sums) Add(offset int64, block []byte) {
	for ; s.Next < len(s.List) && s.List[s.Next].Offset < offset+int64(len(block)); s.Next++ {
		part := s.List[s.Next]
		s.Pairing.Add(s.M.DigestOf(s.Digests, s.Next), block[part.Offset-offset:][:part.N])
	}
}

// FirstPart returns the index of the first file part from an offset on.
func FirstPart(list []store.FilePart, offset int64) int {
	return sort.Search(len(list), func(i int) bool { return list[i].Offset >= offset })
}

// skip passes the file parts before end if there are any, and no existing file covers them: what a record lists takes no
// time where there is nothing.
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

// FirstWrongFile returns the first file of which a recovered block differs from the record; nil if there is none.
func (s *Sums) FirstWrongFile(x *store.Record, offset int64, block []byte) *tree.Entry {
	for i := FirstPart(s.List, offset); i < len(s.List) && s.List[i].Offset < offset+int64(len(block)); i++ {
		g := s.List[i]
		if !s.M.SameDigest(block[g.Offset-offset:][:g.N], x.FileDigests, i) {
			return s.Files[g.File]
		}
	}
	return nil
}

// CompareParity returns, by chunk, the rows of a node's parity that have changed: of the chosen blocks, or of all if
// chosen is nil. It calls progress, unless nil, with the bytes read.
func CompareParity(ctx context.Context, m *store.Manifest, parity io.ReaderAt, x *store.Record, chosen func(row, chunk int) bool, progress func(n int64)) ([][]int, error) {
	bad := make([][]int, m.ParityChunks)
	buffer := make([]byte, min(m.BlockBytes, m.ChunkBytes))
	err := m.InOrder(m.ParityChunks, func(row, chunk int, _, n int64) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if chosen != nil && !chosen(row, chunk) {
			return nil
		}
		if !ReadParity(m, parity, x, row, chunk, buffer[:n]) {
			bad[chunk] = append(bad[chunk], row)
		}
		if progress != nil {
			progress(n)
		}
		return nil
	})
	return bad, err
}

func ReadParity(m *store.Manifest, parity io.ReaderAt, x *store.Record, row, chunk int, block []byte) bool {
	n, _ := parity.ReadAt(block, m.OffsetOf(row, chunk, m.ParityChunks))
	return n == len(block) && SameParity(m, x, row, chunk, block)
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

func AllRowsByChunk(m *store.Manifest, chunks int) [][]int {
	return slices.Repeat([][]int{AllRows(m)}, chunks)
}

// DamagedError says that the file at path has rotted. The record has it at recordedPath.
func DamagedError(path, recordedPath string) error {
	subject := "it"
	if path != recordedPath {
		subject = recordedPath
	}
	return fmt.Errorf("%s is damaged: it has the length and time that %s had when it was protected, and holds something else. Recover %s first", path, subject, subject)
}

// WrongFileError says that the recovered content of a file is not what was protected.
func WrongFileError(path string) error {
	return &protection.CorruptError{Reason: fmt.Sprintf("%s: what was recovered is not what was protected: data has changed meanwhile; run again", path)}
}
