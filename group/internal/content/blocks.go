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

// Within returns those of the blocks that are in rows from first on, before end.
func (b Blocks) Within(first, end int) Blocks {
	from, _ := slices.BinarySearch(b.Rows, first)
	to, _ := slices.BinarySearch(b.Rows, end)
	return Blocks{b.M, b.Rows[from:to]}
}

// parts calls f for the parts of blocks that n bytes of the packet from offset on are.
func (b Blocks) parts(offset, n int64, f func(row int, within int64, from, to int64) error) error {
	for done := int64(0); done < n; {
		i := int((offset + done) / b.M.BlockBytes)
		within := (offset + done) % b.M.BlockBytes
		if i >= len(b.Rows) {
			return io.EOF
		}
		_, length := b.M.Block(b.Rows[i])
		part := min(n-done, length-within)
		if part <= 0 {
			return io.EOF
		}
		if err := f(b.Rows[i], within, done, done+part); err != nil {
			return err
		}
		done += part
	}
	return nil
}

// A BlockReader reads the blocks of a chunk from data or parity, which has that many chunks.
type BlockReader struct {
	Blocks
	From   io.ReaderAt
	Chunk  int
	Chunks int
}

func (r *BlockReader) ReadAt(p []byte, offset int64) (n int, err error) {
	err = r.parts(offset, int64(len(p)), func(row int, within, from, to int64) error {
		got, err := r.From.ReadAt(p[from:to], r.M.OffsetOf(row, r.Chunk, r.Chunks)+within)
		n += got
		if got == int(to-from) {
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
	err = w.parts(offset, int64(len(p)), func(row int, within, from, to int64) error {
		_, length := w.M.Block(row)
		n += int(to - from)
		if within == 0 && to-from == length {
			return w.Take(row, p[from:to])
		}
		w.buffer = append(w.buffer, p[from:to]...)
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
