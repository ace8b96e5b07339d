package executor

import (
	"context"

	"volley/executor/internal/run"
	"volley/transport"
)

// A pipeline runs segments one after the other, and has the memory for one. [run.Machine] says what is to be done with
// a segment, and in which order; the pipeline has it done, and tells the machine what has happened.
type pipeline struct {
	segment
	coder
	mail
	machine       *run.Interpreter
	ctx           context.Context
	runConcurrent func() // runOne, in a goroutine of its own

	segments   int   // in this run, and the bytes of an element of
	elementSum int64 // all of them together
}

// Pipelines share no tags: the i-th message of a sender, receiver and tag is the i-th that is
// asked for. They read in turns, and observe and write in turns, segment by segment.
//
// This does not let pipelines or ranks wait for each other in a circle. Segment s waits, at any
// rank, for the turns of s-1 there, for its memory, which s-2 gives back when it is settled,
// and for messages of s. So it waits for earlier segments, and for what other ranks do with s
// itself. The order of segments is the same at all ranks.

// pipelineCount returns how many segments may be under way.
func (b *Bound) pipelineCount() int {
	if b.job.Ahead && b.job.Segment < b.job.Bytes {
		return 2
	}
	return 1
}

// newPipelines makes a pipeline for each segment that may be under way, until ctx ends. A wait that takes too long ends
// its own pipeline alone: the error of that one tells more than that of the others, which hear of it.
func (b *Bound) newPipelines(ctx context.Context) {
	b.pipelines = make([]*pipeline, b.pipelineCount())
	b.reading, b.writing = newTurns(len(b.pipelines)), newTurns(len(b.pipelines))
	for i := range b.pipelines {
		p := &pipeline{machine: run.New(b.x)}
		p.segment.init(b, i)
		p.coder.init(&p.segment)
		p.mail.init(&p.segment)
		p.ctx, p.watchdog.Cancel = context.WithCancelCause(ctx)
		p.runConcurrent = func() {
			defer b.running.Done()
			p.runOne()
		}
		b.pipelines[i] = p
	}
}

// Run runs the programs. When it fails it aborts the group, so that no other rank waits for it, and there is no further
// run; when another rank failed, the error is that one's *transport.AbortError. An error that a reader, a writer,
// Validate or Observe returned is wrapped; where the context of [Bind] ends, its cause is.
func (b *Bound) Run() error {
	b.reading.begin()
	b.writing.begin()
	b.running.Add(len(b.pipelines) - 1)
	for _, p := range b.pipelines[1:] {
		go p.runConcurrent()
	}
	b.pipelines[0].runOne()
	b.running.Wait() // the first error counts, and the group is aborted by then
	b.still = b.still || b.stays()
	return b.first
}

// runOne runs the segments of a pipeline.
func (p *pipeline) runOne() {
	err := p.runSegments()
	if err == nil {
		return
	}
	b := p.Bound
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first == nil {
		b.first = transport.Fail(b.t, err) // another pipeline may be reading for long
		b.cancel(err)
	}
}

// runSegments runs the segments of a pipeline.
func (p *pipeline) runSegments() error {
	if p.still {
		return p.recompute()
	}
	p.segments, p.elementSum, p.headerBytes = 0, 0, 0
	stride := int64(len(p.pipelines)) * p.job.Segment
	for offset := int64(p.number) * p.job.Segment; offset < p.job.Bytes || offset == 0; offset += stride {
		p.part = p.partAt(offset)
		p.segments++
		p.elementSum += int64(p.element)
		if err := p.runSegment(); err != nil {
			return err
		}
	}
	return nil
}

// recompute runs the steps of the only segment where it lies.
func (p *pipeline) recompute() error {
	if p.ctx.Err() != nil {
		return context.Cause(p.ctx)
	}
	for s := range p.x.Steps {
		p.compute(s)
	}
	return p.observe()
}

// runSegment runs the programs on the segment.
func (p *pipeline) runSegment() error {
	err := p.inTurn(p.reading, func() error {
		if err := p.readInputs(); err != nil {
			return err
		}
		p.locateOutputs()
		return nil
	})
	if err != nil {
		return err
	}
	if err := p.runSteps(); err != nil {
		return err
	}
	err = p.inTurn(p.writing, func() error {
		if err := p.observe(); err != nil {
			return err
		}
		return p.writeOutputs()
	})
	if err != nil {
		return err
	}
	for !p.machine.Settled() { // what was sent may be overwritten then
		if err := p.await(); err != nil {
			return err
		}
	}
	return nil
}

// runSteps computes, sends and receives all of the segment.
func (p *pipeline) runSteps() error {
	p.machine.Begin()
	for {
		for task := p.machine.Next(); task.Action != run.Wait; task = p.machine.Next() {
			switch task.Action {
			case run.Receive:
				p.receive(task.Number)
			case run.Send:
				p.send(task.Number)
			case run.Compute:
				if len(p.x.Steps[task.Number].Operations) > 0 {
					p.post() // what is there goes first
				}
				p.compute(task.Number)
			}
		}
		p.post()
		if p.machine.Complete() {
			break
		}
		if err := p.await(); err != nil {
			return err
		}
	}
	p.cutOutputs()
	return nil
}

// await waits until a message is received or sent, and tells the machine.
func (p *pipeline) await() error {
	task, err := p.wait(p.ctx, p.machine)
	if err != nil {
		return err
	}
	if task.Action == run.Receive {
		p.machine.Received(task.Number)
	} else {
		p.machine.Sent(task.Number)
	}
	return nil
}

// turns are a token that goes from pipeline to pipeline: each has room for it.
type turns []chan struct{}

// newTurns returns the turns of so many pipelines; none for a single pipeline.
func newTurns(count int) turns {
	if count == 1 {
		return nil
	}
	t := make(turns, count)
	for i := range t {
		t[i] = make(chan struct{}, 1)
	}
	return t
}

// begin gives the token to the first pipeline.
func (t turns) begin() {
	for _, turn := range t {
		select {
		case <-turn: // left by the run before
		default:
		}
	}
	if t != nil {
		t[0] <- struct{}{}
	}
}

// inTurn does something when it is the pipeline's turn, and hands the turn to the next pipeline unless
// it fails. The error wraps the cause of the context when that ends first.
func (p *pipeline) inTurn(t turns, work func() error) error {
	if t != nil {
		select {
		case <-t[p.number]:
		case <-p.ctx.Done():
		}
	}
	if p.ctx.Err() != nil {
		if p.x.Ranks == 1 { // the only rank needs no name
			return context.Cause(p.ctx)
		}
		return inProcessor(p.x.First, context.Cause(p.ctx))
	}
	err := work()
	if err == nil && t != nil {
		t[(p.number+1)%len(t)] <- struct{}{}
	}
	return err
}
