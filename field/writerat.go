package field

import (
	"errors"
	"fmt"
	"io"
)

// A WriterAt takes packed symbols and writes the bytes in them: it undoes what
// [ReaderAt] does. It is not for concurrent use.
type WriterAt struct {
	packing Packing
	w       io.WriterAt
	size    int64
	taken   int64  // bytes of symbols
	written int64  // bytes
	rest    []byte // symbols taken whose bytes are not written, for want of others that share a byte
	scratch []byte
}

// NewWriterAt returns a writer of symbols over f, the first size bytes in which it
// writes to w, in ascending order. Further symbols count for nothing.
func NewWriterAt(f Field, w io.WriterAt, size int64) *WriterAt {
	return &WriterAt{packing: PackingOf(f), w: w, size: size}
}

// WriteAt implements [io.WriterAt] for symbols that follow those before: offset is
// the number of bytes taken so far, and it and the length are multiples of
// SymbolBytes. It returns an [*OverfullError] where a symbol holds more than
// [Packing.Bits] bits. After any error, the writer is of no more use.
func (w *WriterAt) WriteAt(b []byte, offset int64) (int, error) {
	p := w.packing
	switch {
	case offset != w.taken:
		return 0, fmt.Errorf("field: symbols at byte %d after %d bytes; want them in order", offset, w.taken)
	case len(b)%p.symbolBytes != 0:
		return 0, fmt.Errorf("field: %d bytes are no whole symbols; want a multiple of %d", len(b), p.symbolBytes)
	}
	group := 8 * int(p.Align()) / p.bits * p.symbolBytes // symbols that fill whole bytes
	limit := max(1, readerScratch/group) * group
	for accepted := 0; accepted < len(b); {
		n := min(len(b)-accepted, limit-len(w.rest))
		if err := w.take(b[accepted:accepted+n], group); err != nil {
			return accepted, err
		}
		accepted += n
	}
	return len(b), nil
}

// take takes the next symbols, which are fewer than readerScratch bytes and a
// group, together with the rest.
func (w *WriterAt) take(b []byte, group int) error {
	p := w.packing
	first := w.taken - int64(len(w.rest)) // where symbols begins
	w.taken += int64(len(b))
	if w.written == w.size {
		return nil
	}
	symbols := b
	if len(w.rest) > 0 {
		w.rest = append(w.rest, b...)
		symbols = w.rest
	}
	complete := len(symbols) / group * group
	n := int64(complete / p.symbolBytes * p.bits / 8)
	if remaining := w.size - w.written; p.Bytes(int64(len(symbols)/p.symbolBytes)) >= remaining {
		n, complete = remaining, len(symbols)
	}
	data := symbols[:complete]
	if n > 0 {
		if p.identity() {
			data = data[:n]
		} else {
			if int64(cap(w.scratch)) < n {
				w.scratch = make([]byte, n)
			}
			data = w.scratch[:n]
			if err := p.Unpack(data, symbols[:complete]); err != nil {
				if overfull := new(OverfullError); errors.As(err, &overfull) {
					overfull.Symbol += first / int64(p.symbolBytes)
				}
				return err
			}
		}
		if _, err := w.w.WriteAt(data, w.written); err != nil {
			return err
		}
		w.written += n
	}
	w.rest = append(w.rest[:0], symbols[complete:]...)
	return nil
}
