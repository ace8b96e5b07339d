package executor

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"volley/executor/internal/compile"
	"volley/plan"
	"volley/transport"
)

// A Bound is a job that is ready to run any number of times, one after the other: a run allocates nothing.
type Bound struct {
	job    Job
	x      *compile.Executable
	t      transport.Transport
	pieces int   // of a segment
	align  int64 // where it is cut
	cores  int   // that the rank may use
	stream bool  // what is computed passes by the caches
	still  bool  // everything lies where the last run found it, and only steps are left

	blockLength int
	stride      int // of blocks in scratch memory

	pipelines        []*pipeline
	reading, writing turns
	running          sync.WaitGroup // pipelines beside the first
	cancel           context.CancelCauseFunc
	closed           bool

	mu    sync.Mutex // guards what follows
	first error      // of any pipeline
}

// inProcessor puts a processor's name before an error.
func inProcessor(proc int, err error) error { return fmt.Errorf("processor %d: %w", proc, err) }

// Bind makes a job ready. All its runs end when ctx does. A job that does not fit the executable, and a plan for which
// [transport.Limits] have no room, are refused: then it aborts the group. The latter error is a
// *[transport.LimitsError].
func Bind(ctx context.Context, t transport.Transport, job Job) (*Bound, error) {
	b, err := newBound(t, job)
	if err != nil {
		return nil, transport.Fail(t, err)
	}
	ctx, b.cancel = context.WithCancelCause(ctx)
	b.newPipelines(ctx)
	return b, nil
}

// newBound checks a job.
func newBound(t transport.Transport, job Job) (*Bound, error) {
	x := job.Executable.compiled
	info := x.Plan.Info()
	fail := func(format string, args ...any) (*Bound, error) {
		return nil, inProcessor(x.First, fmt.Errorf(format, args...))
	}
	if t.Rank() != x.Rank || t.Size() != x.Ranks {
		return fail("the executable of rank %d of %d at rank %d of %d", x.Rank, x.Ranks, t.Rank(), t.Size())
	}
	pieces := info.PieceCount()
	if len(job.Inputs)*pieces != x.Inputs || len(job.Outputs)*pieces != len(x.Outputs) {
		return fail("%d inputs and %d outputs: the program has %d and %d",
			len(job.Inputs), len(job.Outputs), x.Inputs/pieces, len(x.Outputs)/pieces)
	}
	symbol := int64(info.Field.SymbolBytes())
	if job.Bytes < 0 || job.Bytes%symbol != 0 || job.Segment <= 0 || job.Segment%symbol != 0 {
		return fail("packets of %d bytes in segments of %d: want multiples of the symbol size, %d", job.Bytes, job.Segment, symbol)
	}
	b := &Bound{job: job, x: x, t: t, pieces: pieces, align: max(job.Align, symbol), cores: transport.Cores(t)}
	if b.uncut() {
		b.job.Segment = max(b.job.Segment, b.job.Bytes)
	}
	if err := transport.LimitsOf(t).Carry(b.pipelineCount()*x.Rounds, info.Ports); err != nil {
		return fail("the transport cannot carry the plan: %w", err)
	}
	b.stream = b.uncut() && job.ObserveAll == nil && int64(len(job.Outputs))*job.Bytes >= streamBytes && x.Direct()
	b.chooseBlocks(b.partAt(0).element)
	return b, nil
}

// uncut reports whether nothing but scratch memory is needed and nobody is to see or be
// sent a segment, so that cutting packets would only cost time.
func (b *Bound) uncut() bool {
	if b.x.Ranks > 1 || b.job.Observe != nil || b.pieces > 1 || b.x.Between > 0 {
		return false
	}
	return !slices.ContainsFunc(b.job.Inputs, func(input Input) bool { return input.Reader != nil || int64(len(input.Memory)) < b.job.Bytes }) &&
		!slices.ContainsFunc(b.job.Outputs, func(output Output) bool { return output.Writer != nil })
}

// SetBytes makes packets shorter or longer for the next runs, up to the bytes of the job. Inputs and outputs of the
// job, in memory, may be others from then on.
func (b *Bound) SetBytes(n int64) { b.job.Bytes, b.still = n, false }

// stays reports whether the next run finds everything where this one did, and has only steps to do.
func (b *Bound) stays() bool {
	return b.first == nil && b.uncut() && !slices.Contains(b.pipelines[0].written, false) &&
		!slices.ContainsFunc(b.job.Inputs, func(input Input) bool { return input.Validate != nil })
}

// Close gives the memory back. It does not after an error: others may be reading it. Closing again does nothing.
func (b *Bound) Close() {
	if b.closed {
		return
	}
	b.closed = true
	b.cancel(nil)
	for _, p := range b.pipelines {
		p.pool.Stop()
		if b.first == nil {
			p.arena.free()
		}
	}
}

// Traffic returns what each processor sent in the last run.
func (b *Bound) Traffic() []Traffic {
	traffic := make([]Traffic, 0, len(b.x.Processors))
	rounds := make([]plan.RoundTraffic, 0, len(b.x.Processors)*len(b.x.Processors[0].Rounds))
	for i, proc := range b.x.Processors {
		begin := len(rounds)
		rounds = append(rounds, proc.Rounds...)
		t := Traffic{Rounds: rounds[begin:len(rounds):len(rounds)], MultiplyAdds: proc.MultiplyAdds}
		for _, p := range b.pipelines {
			t.Bytes += proc.Elements * p.elementSum
			t.Segments += p.segments
			if i == 0 {
				t.HeaderBytes += p.headerBytes
			}
		}
		traffic = append(traffic, t)
	}
	return traffic
}
