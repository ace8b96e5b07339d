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
	element := viewOf(packet.Memory, offset, in.element, length)
	if packet.Reader != nil || element == nil {
		element = atLeast(&in.own[i], in.element)
		n, err := packet.readAt(element[:length], offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		clear(element[n:])
	}
	in.elements[i], in.data[i] = element, element[:length]
	if packet.Check == nil {
		return nil
	}
	return packet.Check(in.data[i], offset)
}

// readAt reads the packet as io.ReaderAt says.
func (p Input) readAt(to []byte, offset int64) (int, error) {
	if p.Reader != nil {
		return p.Reader.ReadAt(to, offset)
	}
	return copy(to, p.Memory[min(offset, int64(len(p.Memory))):]), nil
}

// viewOf returns the n bytes of an element where the packet has them in memory, nil where
// it has not. An element whose last bytes are padding, after length, is nowhere whole.
func viewOf(packet []byte, offset int64, n, length int) []byte {
	if length < n || offset+int64(n) > int64(len(packet)) {
		return nil
	}
	return packet[offset:][:n:n]
}

// atLeast returns n bytes of a buffer, made anew where it has fewer: the end of a packet
// in memory has none yet.
func atLeast(buffer *[]byte, n int) []byte {
	if len(*buffer) < n {
		*buffer = make([]byte, n)
	}
	return (*buffer)[:n]
}
