package field

import (
	"fmt"
	"io"
	"sync"
)

// A ReaderAt reads bytes as packed symbols: the bytes that [Packing.Pack] would
// make of everything an [io.ReaderAt] holds. It may be used concurrently if the
// reader below may.
type ReaderAt struct {
	packing Packing
	r       io.ReaderAt
	size    int64
}

// NewReaderAt returns the symbols over f of the first size bytes of r.
func NewReaderAt(f Field, r io.ReaderAt, size int64) *ReaderAt {
	return &ReaderAt{PackingOf(f), r, size}
}

// Size returns the number of bytes of all symbols.
func (r *ReaderAt) Size() int64 {
	return r.packing.Symbols(r.size) * int64(r.packing.symbolBytes)
}

// readerScratch is how many packed bytes ReadAt holds at a time.
const readerScratch = 16 << 10

var readerPool = sync.Pool{New: func() any { return new([readerScratch]byte) }}

// ReadAt implements [io.ReaderAt]. Offset and length must be multiples of
// SymbolBytes. When the reader below ends before its size, or fails, ReadAt
// returns that error and the number of bytes before it, in whole symbols.
func (r *ReaderAt) ReadAt(b []byte, offset int64) (n int, err error) {
	p := r.packing
	width := int64(p.symbolBytes)
	switch {
	case offset < 0:
		return 0, fmt.Errorf("field: negative offset %d", offset)
	case offset%width != 0:
		return 0, fmt.Errorf("field: offset %d is not on a symbol boundary; want a multiple of %d", offset, width)
	case int64(len(b))%width != 0:
		return 0, fmt.Errorf("field: %d bytes are no whole symbols; want a multiple of %d", len(b), width)
	}
	if rest := max(0, r.Size()-offset); rest < int64(len(b)) {
		b, err = b[:rest], io.EOF
	}
	if p.identity() {
		n, failed := r.read(b, offset)
		if failed != nil {
			return n - n%p.symbolBytes, failed
		}
		clear(b[n:])
		return len(b), err
	}

	scratch := readerPool.Get().(*[readerScratch]byte)
	defer readerPool.Put(scratch)
	step := (8*readerScratch - 7) / p.bits * p.symbolBytes
	for n < len(b) {
		dst := b[n:min(n+step, len(b))]
		bit := (offset + int64(n)) / width * int64(p.bits)
		skip := int(bit % 8)
		want := (skip + len(dst)/p.symbolBytes*p.bits + 7) / 8
		got, failed := r.read(scratch[:want], bit/8)
		p.pack(dst, scratch[:got], skip)
		if failed != nil {
			return n + max(0, 8*got-skip)/p.bits*p.symbolBytes, failed
		}
		n += len(dst)
	}
	return n, err
}

// read fills b from the reader below, at most up to its size, and returns how
// many bytes it read.
func (r *ReaderAt) read(b []byte, offset int64) (int, error) {
	b = b[:max(0, min(int64(len(b)), r.size-offset))]
	n, err := r.r.ReadAt(b, offset)
	if n == len(b) {
		return n, nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, fmt.Errorf("field: %d of %d bytes at offset %d: %w", n, len(b), offset, err)
}
