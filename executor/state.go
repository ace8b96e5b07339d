package executor

import (
	"fmt"
	"slices"

	"volley/plan"
	"volley/trace"
	"volley/transport"
)

// A run is one call of [Run]: what the lanes of a rank have in common.
type run struct {
	Job
	x      *Executable
	t      transport.Transport
	pieces int   // of a segment
	align  int64 // where it is cut

	blockLength int
	stride      int // of blocks in scratch memory

	reading, writing turns
}

// A segment is so many bytes of every packet, from an offset on.
type segment struct {
	offset  int64
	bytes   int
	element int  // bytes of an element
	last    bool // of the packets
}

// A lane runs segments one after the other, and has the memory for one.
//
// Invariant: memory[i] of what is computed is written only before anything of the
// segment is sent from it; that of an input is only read; and what was received belongs
// to its sender until release.
type lane struct {
	*run
	number   int // the segments are every len(turns)-th, from this one on
	watchdog watchdog

	memory   [][]byte // elements of the segment: inputs, received, computed
	buffers  *arena
	inputs   []input // two where segments are read ahead
	outputs  []output
	reader   background[input]
	writer   background[output]
	sends    [][]sending // by round
	receives [][]receiving
	workers  []worker
	pool     workerPool
	block    func(worker, block int)
	views    []view // by processor
	observer func(worker, processor int)

	operations []operation // of the round that is computed
	length     int         // of an element

	segments    int
	elementSum  int64 // bytes of an element, all segments together
	headerBytes int64
}

// of puts a processor's name before an error.
func of(proc int, err error) error { return fmt.Errorf("processor %d: %w", proc, err) }

// newRun checks a job.
func newRun(t transport.Transport, job Job) (*run, error) {
	x := job.Executable
	info := x.plan.Info()
	fail := func(format string, args ...any) (*run, error) {
		return nil, of(x.first, fmt.Errorf(format, args...))
	}
	if t.Rank() != x.rank || t.Size() != x.ranks {
		return fail("the executable of rank %d of %d at rank %d of %d", x.rank, x.ranks, t.Rank(), t.Size())
	}
	if len(job.Header) > 0 && job.Check == nil {
		return fail("a header and no Check for those that arrive")
	}
	pieces := info.PieceCount()
	if len(job.Inputs)*pieces != x.inputs || len(job.Outputs)*pieces != len(x.outputs) {
		return fail("%d inputs and %d outputs: the program has %d and %d",
			len(job.Inputs), len(job.Outputs), x.inputs/pieces, len(x.outputs)/pieces)
	}
	symbol := int64(info.Field.SymbolBytes())
	if job.Bytes < 0 || job.Bytes%symbol != 0 || job.Segment <= 0 || job.Segment%symbol != 0 {
		return fail("packets of %d bytes in segments of %d: want multiples of the symbol size, %d", job.Bytes, job.Segment, symbol)
	}
	if job.Timeout < 0 {
		return fail("timeout %v: want 0 or more", job.Timeout)
	}
	for i, out := range job.Outputs {
		if out.Writer == nil && int64(len(out.Memory)) < job.Bytes {
			return fail("output %d: memory of %d bytes for a packet of %d", i, len(out.Memory), job.Bytes)
		}
	}
	r := &run{Job: job, x: x, t: t, pieces: pieces, align: max(job.Align, symbol)}
	if r.inPlace() {
		r.Segment = max(r.Segment, r.Bytes)
	}
	r.Ahead = r.Ahead && r.Segment < r.Bytes
	r.chooseBlocks(r.at(0).element)
	return r, nil
}

// inPlace reports whether nothing but scratch memory is needed and nobody is to see or be
// sent a segment, so that cutting packets would only cost time.
func (r *run) inPlace() bool {
	if r.x.ranks > 1 || r.Observe != nil || r.pieces > 1 || slices.Contains(r.x.outputOf, -1) {
		return false
	}
	return !slices.ContainsFunc(r.Inputs, func(in Input) bool { return in.Reader != nil || int64(len(in.Memory)) < r.Bytes }) &&
		!slices.ContainsFunc(r.Outputs, func(out Output) bool { return out.Writer != nil })
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
func (r *run) piece(i int, s segment) (begin, length int) {
	begin = min(s.bytes, i%r.pieces*s.element)
	return begin, min(s.element, s.bytes-begin)
}

// newLanes returns two lanes where several ranks run several segments, or one.
func (r *run) newLanes() []*lane {
	count := 1
	if r.x.ranks > 1 && r.Ahead {
		count = 2
		r.Ahead = false // the other lane has that memory
	}
	r.reading, r.writing = newTurns(count), newTurns(count)
	lanes := make([]*lane, count)
	for i := range lanes {
		lanes[i] = r.newLane(i)
	}
	return lanes
}

func (r *run) newLane(number int) *lane {
	x := r.x
	l := &lane{
		run: r, number: number, memory: make([][]byte, x.inputs+x.received+x.computed), views: make([]view, len(x.processors)),
		sends: make([][]sending, len(x.rounds)), receives: make([][]receiving, len(x.rounds)),
	}
	for i := range x.rounds {
		l.sends[i], l.receives[i] = make([]sending, len(x.rounds[i].sends)), make([]receiving, len(x.rounds[i].receives))
	}
	l.block, l.observer = l.computeBlock, l.observeOne
	l.reader.do = func(in *input) error { return l.read(in, trace.ReadAhead) }
	l.writer.do = func(out *output) error { return l.write(out, trace.WriteBehind) }
	return l
}

// allocate finds memory for what does not lie in memory already.
func (l *lane) allocate() {
	x := l.x
	var lack []*[]byte
	want := func(p *[]byte) { lack = append(lack, p) }
	for i, o := range x.outputOf {
		if o < 0 {
			want(&l.memory[x.inputs+x.received+i])
		}
	}
	buffers := 1
	if l.Ahead {
		buffers = 2
	}
	l.inputs, l.outputs = make([]input, buffers), make([]output, buffers)
	for i := range buffers {
		in, out := &l.inputs[i], &l.outputs[i]
		in.elements, in.data, in.own = make([][]byte, x.inputs), make([][]byte, x.inputs), make([][]byte, x.inputs)
		out.elements, out.own = make([][]byte, x.computed), make([][]byte, x.computed)
		out.results, out.written = make([][]byte, len(x.outputs)), make([]bool, len(x.outputs))
		for n := range in.own {
			if l.Inputs[n/l.pieces].Reader != nil {
				want(&in.own[n])
			}
		}
		for n, o := range x.outputOf {
			if o < 0 {
				continue
			}
			if l.Outputs[o/l.pieces].Writer != nil {
				want(&out.own[n])
			}
		}
	}
	size := l.at(0).element
	l.buffers = newArena(&segments, len(lack)*(size+apart))
	for _, b := range lack {
		*b = l.buffers.take(size)
	}
	for range mostWorkers(l.blocks(size)) {
		memory := newArena(&scratches, max(x.scratch*l.stride, min(x.scratch, 1)*leastScratch))
		l.workers = append(l.workers, worker{memory, memory.take(x.scratch * l.stride), make([][]byte, x.widest)})
	}
}

// free gives the memory back. It is not called after an error: others may be reading it.
func (l *lane) free() {
	l.buffers.free()
	for i := range l.workers {
		l.workers[i].memory.free()
	}
}

// traffic returns what each processor sent.
func (r *run) traffic(lanes []*lane) []Traffic {
	var all []Traffic
	for i, proc := range r.x.processors {
		t := proc.traffic
		t.Rounds = append([]plan.RoundTraffic{}, t.Rounds...)
		for _, l := range lanes {
			t.Bytes += proc.elements * l.elementSum
			t.Segments += l.segments
			if i == 0 {
				t.HeaderBytes += l.headerBytes
			}
		}
		all = append(all, t)
	}
	return all
}
