package content

import (
	"io"
	"slices"

	"volley/group/internal/store"
)

// Blocks are some blocks of every chunk, as a packet: one after the other.
type Blocks struct {
	M    *store.Manifest
	Rows []int // ascending; only the last block of a chunk may be short
}

func (b Blocks) Bytes() int64 {
	var n int64
	for _, row := range b.Rows {
		_, length := b.M.Block(row)
		n += length
	}
	return n
}

// RowRange returns the blocks in rows from first on, before end.
func (b Blocks) RowRange(first, end int) Blocks {
	start, _ := slices.BinarySearch(b.Rows, first)
	limit, _ := slices.BinarySearch(b.Rows, end)
	return Blocks{b.M, b.Rows[start:limit]}
}

// parts splits n bytes of the packet, from offset on, by blocks, and calls f for each part.
func (b Blocks) parts(offset, n int64, f func(row int, offsetInBlock int64, start, limit int64) error) error {
	for position := int64(0); position < n; {
		i := int((offset + position) / b.M.BlockBytes)
		offsetInBlock := (offset + position) % b.M.BlockBytes
		if i >= len(b.Rows) {
			return io.EOF
		}
		_, length := b.M.Block(b.Rows[i])
		part := min(n-position, length-offsetInBlock)
		if part <= 0 {
			return io.EOF
		}
		if err := f(b.Rows[i], offsetInBlock, position, position+part); err != nil {
			return err
		}
		position += part
	}
	return nil
}

// A BlockReader reads the blocks of a chunk from data or parity, which has that many chunks.
type BlockReader struct {
	Blocks
	Source io.ReaderAt
	Chunk  int
	Chunks int
}

func (r *BlockReader) ReadAt(p []byte, offset int64) (n int, err error) {
	err = r.parts(offset, int64(len(p)), func(row int, offsetInBlock, start, limit int64) error {
		got, err := r.Source.ReadAt(p[start:limit], r.M.OffsetOf(row, r.Chunk, r.Chunks)+offsetInBlock)
		n += got
		if got == int(limit-start) {
			err = nil
		}
		return err
	})
	return n, err
}

// A BlockWriter takes the blocks of a chunk, in order, and hands on those that are whole.
type BlockWriter struct {
	Blocks
	buffer []byte
	Take   func(row int, block []byte) error
}

func (w *BlockWriter) WriteAt(p []byte, offset int64) (n int, err error) {
	err = w.parts(offset, int64(len(p)), func(row int, offsetInBlock, start, limit int64) error {
		_, length := w.M.Block(row)
		n += int(limit - start)
		if offsetInBlock == 0 && limit-start == length {
			return w.Take(row, p[start:limit])
		}
		w.buffer = append(w.buffer, p[start:limit]...)
		if int64(len(w.buffer)) < length {
			return nil
		}
		defer func() { w.buffer = w.buffer[:0] }()
		return w.Take(row, w.buffer)
	})
	return n, err
}

// A Symbol is a chunk of a node, as part of a codeword.
type Symbol struct {
	Node   int
	Parity bool
	Index  int // among the node's chunks of the kind
}

// Codeword returns the codeword that has the chunk.
func (x Symbol) Codeword(m *store.Manifest) int {
	i := x.Index
	if !x.Parity {
		i += m.Tolerate
	}
	return (x.Node - i + m.Nodes) % m.Nodes
}

// Cell returns the number of the cell that has the block of the chunk in a row.
func (x Symbol) Cell(m *store.Manifest, row int) int { return x.Codeword(m)*m.Rows() + row }
