package executor

import (
	"errors"
	"fmt"
	"io"

	"volley/executor/internal/cores"
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
	pieceBytes, fullPiece := memory/slots, (bytes+pieces-1)/pieces // of a piece
	if pieceBytes >= fullPiece {
		return pieces * max(align, (fullPiece+align-1)/align*align), nil
	}
	if pieceBytes < align {
		return 0, &MemoryError{p.Info().Algorithm, memory, (slots + pieces - 1) / pieces, slots * min(align, fullPiece)}
	}
	return pieces * (pieceBytes / align * align), nil
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

// A part is so many bytes of every packet, from an offset on.
type part struct {
	offset  int64
	bytes   int
	element int // bytes of an element
}

// partAt returns the part that begins at an offset, of a segment.
func (b *Bound) partAt(offset int64) part {
	n := min(b.job.Segment, b.job.Bytes-offset)
	pieceBytes := (n + int64(b.pieces) - 1) / int64(b.pieces)
	if b.pieces > 1 {
		pieceBytes = (pieceBytes + b.align - 1) / b.align * b.align
	}
	return part{offset, int(n), int(pieceBytes)}
}

// A segment is the part of the packets that a pipeline is at, and the memory of all its elements.
//
// Invariant: memory[i] of what is computed is written only before anything of the
// segment is sent from it; that of an input is only read; and what is to be received belongs to
// the transport until it is there, and is only read then.
type segment struct {
	*Bound
	part
	number int // of the pipeline: its segments are every len(pipelines)-th, from this one on

	memory  [][]byte // elements: inputs, received, computed
	buffers [][]byte // for inputs and outputs, nil for what lies elsewhere
	inputs  [][]byte // without padding
	outputs [][]byte // without padding
	written []bool   // the output was computed where it is to lie
	arena   *arena   // of buffers

	pool   cores.Pool // which codes and copies
	copier func(worker, output int)
}

// init finds memory for what does not lie in memory already.
func (g *segment) init(b *Bound, number int) {
	x := b.x
	*g = segment{
		Bound: b, number: number, memory: make([][]byte, x.Inputs+x.Headers+x.Received+x.Computed),
		buffers: make([][]byte, x.Elements()), inputs: make([][]byte, x.Inputs), outputs: make([][]byte, len(x.Outputs)),
		written: make([]bool, len(x.Outputs)), pool: cores.Pool{Cores: b.cores},
	}
	g.copier = g.copyOutput
	var lack []int // buffers
	for i := range g.inputs {
		if g.job.Inputs[i/g.pieces].Reader != nil {
			lack = append(lack, i)
		}
	}
	for o, output := range x.Outputs {
		if output.First && g.job.Outputs[o/g.pieces].Writer != nil {
			lack = append(lack, x.Inputs+o)
		}
		if output.First {
			g.memory[output.Element] = []byte{} // until it is known where
		}
	}
	headers := make([]byte, x.Headers*len(g.job.Header))
	for _, m := range x.Receives {
		if n := len(g.job.Header); m.First {
			g.memory[m.Element-1], headers = headers[:n:n], headers[n:]
		}
	}
	size := g.partAt(0).element
	g.arena = segments.take((len(lack) + x.Between) * (size + spacing(size)))
	for _, i := range lack {
		g.buffers[i] = g.arena.take(size)
	}
	for i := x.Inputs; i < len(g.memory); i++ {
		if g.memory[i] == nil {
			g.memory[i] = g.arena.take(size) // for good
		}
	}
}

// piece returns where element i, a piece of a packet, begins in the segment, and how many
// bytes of it are no padding, which the last pieces may be.
func (g *segment) piece(i int) (begin, length int) {
	begin = min(g.bytes, i%g.pieces*g.element)
	return begin, min(g.element, g.bytes-begin)
}

// readInputs reads the inputs of the segment into memory, unless they lie there.
func (g *segment) readInputs() error {
	for q, proc := range g.x.Processors {
		for i := proc.Inputs.First; i < proc.Inputs.End; i++ {
			if err := g.readInput(i, g.job.Inputs[i/g.pieces]); err != nil {
				return inProcessor(g.x.First+q, fmt.Errorf("read input %d: %w", (i-proc.Inputs.First)/g.pieces, err))
			}
		}
	}
	return nil
}

// readInput reads element i, of a packet, and pads it with zeros.
func (g *segment) readInput(i int, packet Input) error {
	begin, length := g.piece(i)
	offset := g.offset + int64(begin)
	memory, reader := packet.Memory, packet.Reader
	if reader != nil {
		memory = nil
	}
	lies := g.put(i, &g.buffers[i], memory, offset, length)
	element := g.memory[i]
	g.inputs[i] = element[:length]
	if !lies {
		n, err := 0, error(nil)
		if reader == nil {
			n = copy(element[:length], memory[min(offset, int64(len(memory))):])
		} else if n, err = reader.ReadAt(element[:length], offset); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		clear(element[n:])
	}
	if packet.Validate == nil {
		return nil
	}
	return packet.Validate(g.inputs[i], offset)
}

// locateOutputs finds out where the outputs of the segment are to lie in memory.
func (g *segment) locateOutputs() {
	for o, output := range g.x.Outputs {
		if output.First {
			begin, length := g.piece(o)
			target := g.job.Outputs[o/g.pieces]
			if target.Writer != nil {
				target.Memory = nil
			}
			g.written[o] = g.put(output.Element, &g.buffers[g.x.Inputs+o], target.Memory, g.offset+int64(begin), length)
		}
	}
}

// put sets element i to where it lies in its packet, which is nil unless it is in memory, or
// else to its buffer, and reports which. An element whose last bytes are padding, after
// length, is nowhere whole.
func (g *segment) put(i int, buffer *[]byte, packet []byte, offset int64, length int) (lies bool) {
	if lies = packet != nil && length == g.element && offset+int64(length) <= int64(len(packet)); lies {
		g.memory[i] = packet[offset:][:length:length]
		return true
	}
	if len(*buffer) < g.element { // the end of a packet in memory has none yet
		*buffer = make([]byte, g.element)
	}
	g.memory[i] = (*buffer)[:g.element]
	return false
}

// cutOutputs has the outputs without padding.
func (g *segment) cutOutputs() {
	for o, output := range g.x.Outputs {
		_, length := g.piece(o)
		g.outputs[o] = g.memory[output.Element][:length]
	}
}

// writeOutputs writes the outputs of the segment that were not computed where they belong.
func (g *segment) writeOutputs() error {
	if len(g.outputs)*g.element >= minCopied {
		g.pool.Share(len(g.outputs), g.copier)
	} else {
		for o := range g.outputs {
			g.copyOutput(0, o)
		}
	}
	for o, data := range g.outputs {
		if output, offset := g.target(o); output.Writer == nil {
			continue
		} else if _, err := output.Writer.WriteAt(data, offset); err != nil {
			return g.writeError(o, err)
		}
	}
	return nil
}

// minCopied is from how many bytes on copies are worth sharing.
const minCopied = 1 << 20

// copyOutput writes output o, if it is to be in memory and is not there yet.
func (g *segment) copyOutput(_, o int) {
	if output, offset := g.target(o); output.Writer == nil && !g.written[o] {
		copy(output.Memory[offset:], g.outputs[o])
	}
}

// target returns where output o, an element, goes to.
func (g *segment) target(o int) (output Output, offset int64) {
	begin, _ := g.piece(o)
	return g.job.Outputs[o/g.pieces], g.offset + int64(begin)
}

// writeError says that output o, an element, could not be written.
func (g *segment) writeError(o int, err error) error {
	q := g.x.Outputs[o].Proc
	return inProcessor(g.x.First+q, fmt.Errorf("write output %d: %w", (o-g.x.Processors[q].Outputs.First)/g.pieces, err))
}
