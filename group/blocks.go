package group

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// blocks are some blocks of every chunk, as a packet: one after the other.
type blocks struct {
	m    *Manifest
	rows []int // ascending; only the last block of a chunk may be short
}

// bytes returns how long the packet is.
func (b blocks) bytes() int64 {
	var n int64
	for _, row := range b.rows {
		_, length := b.m.block(row)
		n += length
	}
	return n
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

// A blockReader reads the blocks of a chunk.
type blockReader struct {
	blocks
	chunk io.ReaderAt
	begin int64 // of the chunk in it
}

func (r *blockReader) ReadAt(p []byte, offset int64) (n int, err error) {
	err = r.parts(offset, int64(len(p)), func(row int, within, from, to int64) error {
		at, _ := r.m.block(row)
		got, err := r.chunk.ReadAt(p[from:to], r.begin+at+within)
		n += got
		if got == int(to-from) {
			err = nil
		}
		return err
	})
	return n, err
}

// A blockWriter writes the blocks of a chunk, in order, and takes their digests.
type blockWriter struct {
	blocks
	chunk   io.WriterAt
	begin   int64
	digests map[int]string // by row
	hash    hash.Hash
}

func newBlockWriter(b blocks, chunk io.WriterAt, begin int64) *blockWriter {
	return &blockWriter{blocks: b, chunk: chunk, begin: begin, digests: map[int]string{}, hash: sha256.New()}
}

func (w *blockWriter) WriteAt(p []byte, offset int64) (n int, err error) {
	err = w.parts(offset, int64(len(p)), func(row int, within, from, to int64) error {
		at, length := w.m.block(row)
		w.hash.Write(p[from:to])
		if within+to-from == length {
			w.digests[row] = hex.EncodeToString(w.hash.Sum(nil))
			w.hash.Reset()
		}
		wrote, err := w.chunk.WriteAt(p[from:to], w.begin+at+within)
		n += wrote
		return err
	})
	return n, err
}

// digests returns those of all blocks of chunks that lie one after the other.
func (m *Manifest) digests(ctx context.Context, chunks io.ReaderAt, count int, each func(offset int64, block []byte) error) ([]string, error) {
	var list []string
	buffer := make([]byte, min(m.BlockBytes, m.ChunkBytes))
	for c := range count {
		for row := range m.rows() {
			at, n := m.block(row)
			at += int64(c) * m.ChunkBytes
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if got, err := chunks.ReadAt(buffer[:n], at); got < int(n) {
				if err == nil {
					err = io.ErrUnexpectedEOF
				}
				return nil, fmt.Errorf("byte %d: %w", at+int64(got), err)
			}
			list = append(list, sum(buffer[:n]))
			if each != nil {
				if err := each(at, buffer[:n]); err != nil {
					return nil, err
				}
			}
		}
	}
	return list, nil
}

// digest sets the digests of the data and files of a member.
func (m *Manifest) digest(ctx context.Context, d *data, x *Member) (err error) {
	sums := map[Name]hash.Hash{}
	x.Data, err = m.digests(ctx, d, m.DataChunks, func(offset int64, block []byte) error {
		return d.overlapping(offset, int64(len(block)), func(_ int, e *Entry, from, to int64) error {
			h := sums[e.Path]
			if h == nil {
				h = sha256.New()
				sums[e.Path] = h
			}
			h.Write(block[from-offset : to-offset])
			if to == e.Offset+e.Size { // memory for open files alone
				e.SHA256 = hex.EncodeToString(h.Sum(nil))
				delete(sums, e.Path)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	of := map[Name]string{}
	for _, e := range d.extents {
		of[e.Path] = e.SHA256
	}
	for i := range x.Entries {
		e := &x.Entries[i]
		if e.Type == typeFile {
			if e.SHA256 = of[e.Path]; e.Size == 0 {
				e.SHA256 = sum(nil)
			}
		}
	}
	return nil
}
