package executor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"volley/plan"
	"volley/transport"
)

// A run is one call of [Run]: what the lanes of a rank have in common.
type run struct {
	Job
	x      *Executable
	t      transport.Transport
	pieces int   // of a segment
	align  int64 // where it is cut
	cores  int   // that the rank may use

	blockLength int
	stride      int // of blocks in scratch memory

	reading, writing turns
	running          sync.WaitGroup // lanes beside the first
	cancel           context.CancelCauseFunc

	mu    sync.Mutex // guards what follows
	first error
}

// A lane runs segments one after the other, and has the memory for one.
//
// Invariant: memory[i] of what is computed is written only before anything of the
// segment is sent from it; that of an input is only read; and what is to be received belongs to
// the transport until it is there, and is only read then.
type lane struct {
	*run
	segment      // that is under way
	number   int // the segments are every len(turns)-th, from this one on
	ctx      context.Context
	beside   func() // runOne, in a goroutine of its own
	watchdog transport.Watchdog

	memory  [][]byte // elements: inputs, received, computed
	buffers [][]byte // for inputs and outputs, nil for what lies elsewhere
	inputs  [][]byte // without padding
	outputs [][]byte // without padding
	written []bool   // the output was computed where it is to lie
	arena   *arena   // of buffers

	queue     transport.Queue
	sends     []transfer
	receives  []transfer
	batch     []*transport.Transfer // to be posted
	sending   int                   // sends that are not over
	posted    int                   // receives
	receiving int                   // of these that are not over
	oldest    int                   // receive that is not over, or all of them
	besides   []beside              // transfers of Job.Beside that are not over
	needs     []int                 // what each step still needs
	ready     []int                 // steps

	workers  []worker
	pool     workerPool
	block    func(worker, block int)
	observer func(worker, processor int)
	copier   func(worker, output int)
	refused  []error               // what the observer said, by processor
	refusal  atomic.Pointer[error] // what ObserveAll said first

	operations []operation // of the step that is computed

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
	if job.ObserveAll != nil && x.ranks > 1 {
		return fail("ObserveAll at one of %d ranks", x.ranks)
	}
	if job.Timeout < 0 {
		return fail("timeout %v: want 0 or more", job.Timeout)
	}
	for i, out := range job.Outputs {
		if out.Writer == nil && int64(len(out.Memory)) < job.Bytes {
			return fail("output %d: memory of %d bytes for a packet of %d", i, len(out.Memory), job.Bytes)
		}
	}
	r := &run{Job: job, x: x, t: t, pieces: pieces, align: max(job.Align, symbol), cores: transport.Cores(t)}
	if r.inPlace() {
		r.Segment = max(r.Segment, r.Bytes)
	}
	if err := transport.LimitsOf(t).Carry(r.lanes()*x.planRounds, info.Ports); err != nil {
		return fail("the transport cannot carry the plan: %w", err)
	}
	r.chooseBlocks(r.at(0).element)
	return r, nil
}

// inPlace reports whether nothing but scratch memory is needed and nobody is to see or be
// sent a segment, so that cutting packets would only cost time.
func (r *run) inPlace() bool {
	if r.x.ranks > 1 || r.Observe != nil || r.pieces > 1 || r.x.between > 0 {
		return false
	}
	return !slices.ContainsFunc(r.Inputs, func(in Input) bool { return in.Reader != nil || int64(len(in.Memory)) < r.Bytes }) &&
		!slices.ContainsFunc(r.Outputs, func(out Output) bool { return out.Writer != nil })
}

// lanes returns how many segments may be under way.
func (r *run) lanes() int {
	if r.Ahead && r.Segment < r.Bytes {
		return 2
	}
	return 1
}

// newLanes returns a lane for each segment that may be under way, until ctx ends. A wait that takes too long ends its own
// lane alone: the error of that one tells more than that of the others, which hear of it.
func (r *run) newLanes(ctx context.Context) []*lane {
	count := r.lanes()
	r.reading, r.writing = newTurns(count), newTurns(count)
	lanes := make([]*lane, count)
	for i := range lanes {
		lanes[i] = r.newLane(i)
		lanes[i].ctx, lanes[i].watchdog.Cancel = context.WithCancelCause(ctx)
		lanes[i].watchdog.Transport, lanes[i].watchdog.Timeout = r.t, r.Timeout
	}
	return lanes
}

func (r *run) newLane(number int) *lane {
	x := r.x
	l := &lane{
		run: r, number: number, memory: make([][]byte, x.inputs+x.headers+x.received+x.computed), buffers: make([][]byte, x.inputs+len(x.outputs)),
		inputs: make([][]byte, x.inputs), outputs: make([][]byte, len(x.outputs)), written: make([]bool, len(x.outputs)),
		refused: make([]error, len(x.processors)), sends: make([]transfer, len(x.sends)), receives: make([]transfer, len(x.receives)),
		needs: make([]int, len(x.steps)), pool: workerPool{cores: r.cores}, queue: r.t.NewQueue(),
	}
	for k := range l.sends {
		l.sends[k].ID = k
	}
	for i := range l.receives {
		l.receives[i].ID, l.receives[i].Receive = i, true
	}
	l.block, l.observer, l.copier = l.computeBlock, l.observeOne, l.copyOutput
	l.beside = func() {
		defer r.running.Done()
		l.runOne()
	}
	l.allocate()
	return l
}

// allocate finds memory for what does not lie in memory already.
func (l *lane) allocate() {
	x := l.x
	var lack []int // buffers
	for i := range l.inputs {
		if l.Inputs[i/l.pieces].Reader != nil {
			lack = append(lack, i)
		}
	}
	for o, result := range x.outputs {
		if result.first && l.Outputs[o/l.pieces].Writer != nil {
			lack = append(lack, x.inputs+o)
		}
		if result.first {
			l.memory[result.at] = []byte{} // until it is known where
		}
	}
	headers := make([]byte, x.headers*len(l.Header))
	for _, m := range x.receives {
		if n := len(l.Header); m.first {
			l.memory[m.at-1], headers = headers[:n:n], headers[n:]
		}
	}
	size := l.at(0).element
	l.arena = segments.take((len(lack) + x.between) * (size + spacing(size)))
	for _, i := range lack {
		l.buffers[i] = l.arena.take(size)
	}
	for i := x.inputs; i < len(l.memory); i++ {
		if l.memory[i] == nil {
			l.memory[i] = l.arena.take(size) // for good
		}
	}
	l.workers = make([]worker, l.workersFor(l.blocks(size)))
}

// Traffic returns what each processor sent in the last run.
func (b *Bound) Traffic() []Traffic {
	r, lanes := b.run, b.lanes
	all := make([]Traffic, 0, len(r.x.processors))
	rounds := make([]plan.RoundTraffic, 0, len(r.x.processors)*len(r.x.processors[0].traffic.Rounds))
	for i, proc := range r.x.processors {
		t, begin := proc.traffic, len(rounds)
		rounds = append(rounds, t.Rounds...)
		t.Rounds = rounds[begin:len(rounds):len(rounds)]
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
