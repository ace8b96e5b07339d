package group

import (
	"io"
	"slices"
)

// blocks are some blocks of every chunk, as a packet: one after the other.
type blocks struct {
	m    *Manifest
	rows []int // ascending; only the last block of a chunk may be short
}

func (b blocks) bytes() int64 {
	var n int64
	for _, row := range b.rows {
		_, length := b.m.block(row)
		n += length
	}
	return n
}

// within returns those of the blocks that are in rows from first on, before end.
func (b blocks) within(first, end int) blocks {
	from, _ := slices.BinarySearch(b.rows, first)
	to, _ := slices.BinarySearch(b.rows, end)
	return blocks{b.m, b.rows[from:to]}
}

// parts calls f for the parts of blocks that n bytes of the packet from offset on are.
func (b blocks) parts(offset, n int64, f func(row int, within int64, from, to int64) error) error {
	for done := int64(0); done < n; {
		i := int((offset + done) / b.m.BlockBytes)
		within := (offset + done) % b.m.BlockBytes
		if i >= len(b.rows) {
			return io.EOF
		}
		_, length := b.m.block(b.rows[i])
		part := min(n-done, length-within)
		if part <= 0 {
			return io.EOF
		}
		if err := f(b.rows[i], within, done, done+part); err != nil {
			return err
		}
		done += part
	}
	return nil
}

// A blockReader reads the blocks of a chunk from data or parity, which has that many chunks.
type blockReader struct {
	blocks
	from   io.ReaderAt
	chunk  int
	chunks int
}

func (r *blockReader) ReadAt(p []byte, offset int64) (n int, err error) {
	err = r.parts(offset, int64(len(p)), func(row int, within, from, to int64) error {
		got, err := r.from.ReadAt(p[from:to], r.m.offsetOf(row, r.chunk, r.chunks)+within)
		n += got
		if got == int(to-from) {
			err = nil
		}
		return err
	})
	return n, err
}

// A blockWriter takes the blocks of a chunk, in order, and hands on those that are whole.
type blockWriter struct {
	blocks
	buffer []byte
	take   func(row int, block []byte) error
}

func (w *blockWriter) WriteAt(p []byte, offset int64) (n int, err error) {
	err = w.parts(offset, int64(len(p)), func(row int, within, from, to int64) error {
		_, length := w.m.block(row)
		n += int(to - from)
		if within == 0 && to-from == length {
			return w.take(row, p[from:to])
		}
		w.buffer = append(w.buffer, p[from:to]...)
		if int64(len(w.buffer)) < length {
			return nil
		}
		defer func() { w.buffer = w.buffer[:0] }()
		return w.take(row, w.buffer)
	})
	return n, err
}

// A symbol is a chunk of a node, as part of a codeword.
type symbol struct {
	node   int
	parity bool
	index  int // among the node's chunks of the kind
}
