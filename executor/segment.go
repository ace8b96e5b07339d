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
	for q, proc := range l.x.processors {
		for i := proc.inputs.first; i < proc.inputs.end; i++ {
			if err := l.readInput(i, l.Inputs[i/l.pieces]); err != nil {
				return of(l.x.first+q, fmt.Errorf("read input %d: %w", (i-proc.inputs.first)/l.pieces, err))
			}
		}
	}
	return nil
}

// readInput reads element i, of a packet, and pads it with zeros.
func (l *lane) readInput(i int, packet Input) error {
	begin, length := l.piece(i)
	offset := l.offset + int64(begin)
	lies := l.put(i, &l.buffers[i], packet.inMemory(), offset, length)
	element := l.memory[i]
	l.inputs[i] = element[:length]
	if !lies {
		n, err := packet.readAt(element[:length], offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		clear(element[n:])
	}
	if packet.Check == nil {
		return nil
	}
	return packet.Check(l.inputs[i], offset)
}

// readAt reads the packet as io.ReaderAt says.
func (p Input) readAt(to []byte, offset int64) (int, error) {
	if p.Reader != nil {
		return p.Reader.ReadAt(to, offset)
	}
	return copy(to, p.Memory[min(offset, int64(len(p.Memory))):]), nil
}

// locateOutputs finds out where the outputs of the segment are to lie in memory.
func (l *lane) locateOutputs() {
	for o, result := range l.x.outputs {
		if result.first {
			begin, length := l.piece(o)
			l.written[o] = l.put(result.at, &l.buffers[l.x.inputs+o], l.Outputs[o/l.pieces].inMemory(), l.offset+int64(begin), length)
		}
	}
}

// put sets element i to where it lies in its packet, which is nil unless it is in memory, or
// else to its buffer, and reports which. An element whose last bytes are padding, after
// length, is nowhere whole.
func (l *lane) put(i int, buffer *[]byte, packet []byte, offset int64, length int) (lies bool) {
	if lies = packet != nil && length == l.element && offset+int64(length) <= int64(len(packet)); lies {
		l.memory[i] = packet[offset:][:length:length]
		return true
	}
	if len(*buffer) < l.element { // the end of a packet in memory has none yet
		*buffer = make([]byte, l.element)
	}
	l.memory[i] = (*buffer)[:l.element]
	return false
}

// writeOutputs writes the outputs of the segment that were not computed where they belong.
func (l *lane) writeOutputs() error {
	if len(l.outputs)*l.element >= minCopied {
		l.pool.share(len(l.outputs), l.copier)
	} else {
		for o := range l.outputs {
			l.copyOutput(0, o)
		}
	}
	for o, data := range l.outputs {
		if to, offset := l.placeOf(o); to.Writer == nil {
			continue
		} else if _, err := to.Writer.WriteAt(data, offset); err != nil {
			return l.writeError(o, err)
		}
	}
	return nil
}

// minCopied is from how many bytes on copies are worth sharing.
const minCopied = 1 << 20

// copyOutput writes output o, if it is to be in memory and is not there yet.
func (l *lane) copyOutput(_, o int) {
	if to, offset := l.placeOf(o); to.Writer == nil && !l.written[o] {
		copy(to.Memory[offset:], l.outputs[o])
	}
}

// placeOf returns where output o, an element, goes to.
func (l *lane) placeOf(o int) (to Output, offset int64) {
	begin, _ := l.piece(o)
	return l.Outputs[o/l.pieces], l.offset + int64(begin)
}

// writeError says that output o, an element, could not be written.
func (l *lane) writeError(o int, err error) error {
	q := l.x.outputs[o].proc
	return of(l.x.first+q, fmt.Errorf("write output %d: %w", (o-l.x.processors[q].outputs.first)/l.pieces, err))
}

// observe shows the segment to the observer.
func (l *lane) observe() error {
	if refusal := l.refusal.Swap(nil); refusal != nil {
		return *refusal
	}
	if l.Observe == nil {
		return nil
	}
	l.pool.share(len(l.refused), l.observer)
	for q, err := range l.refused {
		if err != nil {
			return of(l.x.first+q, err)
		}
	}
	return nil
}

func (l *lane) observeOne(_, q int) {
	in, out := l.x.processors[q].inputs, l.x.processors[q].outputs
	l.refused[q] = l.Observe(l.x.first+q, l.inputs[in.first:in.end], l.outputs[out.first:out.end])
}
