package executor

import (
	"errors"
	"fmt"
	"io"

	"volley/plan"
)

// SegmentBytes returns the longest segment for packets of the given bytes such
// that what a processor of p holds at a time, slots as [plan.MemorySlots] counts
// them, fits in memory bytes. It is a
// multiple of align, the unit in which packets may be cut, and no longer than
// the packet takes. It returns a *[MemoryError] when there is none.
func SegmentBytes(p plan.Plan, slotCount int, bytes, memory, align int64) (int64, error) {
	pieces := int64(p.Info().PieceCount())
	slots := int64(max(1, slotCount))
	each, whole := memory/slots, (bytes+pieces-1)/pieces // of a piece
	if each >= whole {
		return pieces * max(align, (whole+align-1)/align*align), nil
	}
	if each < align {
		return 0, &MemoryError{p.Info().Algorithm, memory, (slots + pieces - 1) / pieces, slots * min(align, whole)}
	}
	return pieces * (each / align * align), nil
}

// A MemoryError says that a bound on memory is too low for an algorithm.
type MemoryError struct {
	Algorithm string
	Memory    int64 // bytes of the bound
	Packets   int64 // that a processor holds at a time
	Least     int64 // bytes that would do
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("executor: %d bytes of memory: %s holds up to %d packets at a time and needs at least %d bytes",
		e.Memory, e.Algorithm, e.Packets, e.Least)
}

// A segment is so many bytes of every packet, from an offset on.
type segment struct {
	offset  int64
	bytes   int
	element int  // bytes of an element
	last    bool // of the packets
}

// at returns the segment that begins at an offset.
func (r *run) at(offset int64) segment {
	n := min(r.Segment, r.Bytes-offset)
	each := (n + int64(r.pieces) - 1) / int64(r.pieces)
	if r.pieces > 1 {
		each = (each + r.align - 1) / r.align * r.align
	}
	return segment{offset, int(n), int(each), offset+n >= r.Bytes}
}

// piece returns where element i, a piece of a packet, begins in the segment, and how many
// bytes of it are no padding, which the last pieces may be.
func (l *lane) piece(i int) (begin, length int) {
	begin = min(l.bytes, i%l.pieces*l.element)
	return begin, min(l.element, l.bytes-begin)
}

// readInputs reads the inputs of the segment into memory, unless they lie there.
func (l *lane) readInputs() error {
	i := 0
	for q, proc := range l.x.processors {
		for own := range proc.inputs {
			if err := l.readInput(i, l.Inputs[i/l.pieces]); err != nil {
				return of(l.x.first+q, fmt.Errorf("read input %d: %w", own/l.pieces, err))
			}
			i++
		}
	}
	return nil
}

// readInput reads element i, of a packet, and pads it with zeros.
func (l *lane) readInput(i int, packet io.ReaderAt) error {
	begin, length := l.piece(i)
	lies, err := l.put(i, packet, begin, length)
	element := l.memory[i]
	l.inputs[i] = element[:length]
	if lies || err != nil {
		return err
	}
	n, err := packet.ReadAt(element[:length], l.offset+int64(begin))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	clear(element[n:])
	return nil
}

// locateOutputs finds out where the outputs of the segment are to lie in memory.
func (l *lane) locateOutputs() (err error) {
	for i, o := range l.x.outputOf {
		if o >= 0 {
			begin, length := l.piece(o)
			if l.written[o], err = l.put(l.x.inputs+l.x.received+i, l.Outputs[o/l.pieces], begin, length); err != nil {
				return l.writeError(o, err)
			}
		}
	}
	return nil
}

// put sets element i to where it lies in its packet, or else to a buffer, and reports which.
// An element whose last bytes are padding, after length, is nowhere whole.
func (l *lane) put(i int, packet any, begin, length int) (lies bool, err error) {
	if l.memory[i] = nil; length == l.element {
		l.memory[i], err = viewOf(packet, l.offset+int64(begin), length)
	}
	if lies = l.memory[i] != nil; !lies {
		if len(l.buffers[i]) < l.element { // the end of a packet in memory has none yet
			l.buffers[i] = make([]byte, l.element)
		}
		l.memory[i] = l.buffers[i][:l.element]
	}
	return lies, err
}

// viewOf returns n bytes of a packet where it has them in memory, nil where it has not.
func viewOf(packet any, offset int64, n int) ([]byte, error) {
	if v, ok := packet.(Viewer); ok {
		return v.View(offset, n)
	}
	return nil, nil
}

// writeOutputs writes the outputs of the segment that were not computed where they belong.
func (l *lane) writeOutputs() error {
	for o, data := range l.outputs {
		if l.written[o] {
			continue
		}
		begin, _ := l.piece(o)
		if _, err := l.Outputs[o/l.pieces].WriteAt(data, l.offset+int64(begin)); err != nil {
			return l.writeError(o, err)
		}
	}
	return nil
}

// writeError says that output o, an element, could not be written.
func (l *lane) writeError(o int, err error) error {
	q := l.x.outputs[o].proc
	for _, before := range l.x.processors[:q] {
		o -= before.outputs
	}
	return of(l.x.first+q, fmt.Errorf("write output %d: %w", o/l.pieces, err))
}

// A view is what the observer is to see of one processor, and what it says.
type view struct {
	inputs, outputs [][]byte
	err             error
}

// observe shows the segment to the observer.
func (l *lane) observe() error {
	inputs, outputs := l.inputs, l.outputs
	for q, proc := range l.x.processors {
		l.views[q] = view{inputs: inputs[:proc.inputs], outputs: outputs[:proc.outputs]}
		inputs, outputs = inputs[proc.inputs:], outputs[proc.outputs:]
	}
	l.pool.share(len(l.views), l.observer)
	for q := range l.views {
		if err := l.views[q].err; err != nil {
			return of(l.x.first+q, err)
		}
	}
	return nil
}

func (l *lane) observeOne(_, q int) {
	v := &l.views[q]
	v.err = l.Observe(l.x.first+q, v.inputs, v.outputs)
}
