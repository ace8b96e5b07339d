package executor

import (
	"errors"
	"fmt"
	"io"

	"volley/trace"
)

// An input is what is read for one segment.
type input struct {
	segment
	elements [][]byte
	data     [][]byte // of the elements, without padding
	own      [][]byte // buffers, nil for what lies in memory
}

// read reads the inputs of a segment, in some row of the trace.
func (l *lane) read(in *input, row trace.Row) error {
	began := l.Trace.Now()
	defer func() { l.done(trace.Read, row, began, in.segment, len(l.Inputs)) }()
	i := 0
	for q, proc := range l.x.processors {
		for own := range proc.inputs {
			if err := l.readOne(in, i); err != nil {
				return of(l.x.first+q, fmt.Errorf("read input %d: %w", own/l.pieces, err))
			}
			i++
		}
	}
	return nil
}

// readOne reads element i and pads it with zeros.
func (l *lane) readOne(in *input, i int) error {
	packet := l.Inputs[i/l.pieces]
	begin, length := l.piece(i, in.segment)
	offset := in.offset + int64(begin)
	view, err := viewOf(packet, offset, in.element, length)
	if err != nil {
		return err
	}
	if view != nil {
		in.elements[i], in.data[i] = view, view
		return nil
	}
	element := atLeast(&in.own[i], in.element)
	in.elements[i], in.data[i] = element, element[:length]
	n, err := packet.ReadAt(element[:length], offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	clear(element[n:])
	return nil
}

// viewOf returns the n bytes of an element where the packet has them in memory, nil where
// it has not. An element whose last bytes are padding, after length, is nowhere whole.
func viewOf(packet any, offset int64, n, length int) ([]byte, error) {
	v, ok := packet.(Viewer)
	if !ok || length < n {
		return nil, nil
	}
	return v.View(offset, n)
}

// atLeast returns n bytes of a buffer, made anew where it has fewer: the end of a packet
// in memory has none yet.
func atLeast(buffer *[]byte, n int) []byte {
	if len(*buffer) < n {
		*buffer = make([]byte, n)
	}
	return (*buffer)[:n]
}
