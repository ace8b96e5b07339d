package executor

import (
	"context"

	"volley/executor/internal/run"
	"volley/trace"
	"volley/transport"
)

// A lane runs segments one after the other, and has the memory for one. [run.Machine] says what is to be done with a
// segment, and in which order; the lane has it done, and tells the machine what has happened.
type lane struct {
	segment
	coder
	mail
	machine *run.Machine
	ctx     context.Context
	beside  func() // runOne, in a goroutine of its own

	segments   int   // in this run, and the bytes of an element of
	elementSum int64 // all of them together
}

// Lanes share no tags: the i-th message of a sender, receiver and tag is the i-th that is
// asked for. They read in turns, and observe and write in turns, segment by segment.
//
// This does not let lanes or ranks wait for each other in a circle. Segment s waits, at any
// rank, for the turns of s-1 there, for its memory, which s-2 gives back when it is settled,
// and for messages of s. So it waits for earlier segments, and for what other ranks do with s
// itself. The order of segments is the same at all ranks.

// laneCount returns how many segments may be under way.
func (b *Bound) laneCount() int {
	if b.job.Ahead && b.job.Segment < b.job.Bytes {
		return 2
	}
	return 1
}

// newLanes makes a lane for each segment that may be under way, until ctx ends. A wait that takes too long ends its own
// lane alone: the error of that one tells more than that of the others, which hear of it.
func (b *Bound) newLanes(ctx context.Context) {
	b.lanes = make([]*lane, b.laneCount())
	b.reading, b.writing = newTurns(len(b.lanes)), newTurns(len(b.lanes))
	for i := range b.lanes {
		l := &lane{machine: run.New(b.x)}
		l.segment.init(b, i)
		l.coder.init(&l.segment)
		l.mail.init(&l.segment)
		l.ctx, l.watchdog.Cancel = context.WithCancelCause(ctx)
		l.beside = func() {
			defer b.running.Done()
			l.runOne()
		}
		b.lanes[i] = l
	}
}

// Run runs the programs. When it fails it aborts the group, so that no other rank waits for it, and there is no further
// run; when another rank failed, the error is that one's *transport.AbortError. An error that a reader, a writer, Check
// or Observe returned is wrapped; where the context of [Bind] ends, its cause is.
func (b *Bound) Run() error {
	b.reading.begin()
	b.writing.begin()
	b.running.Add(len(b.lanes) - 1)
	for _, l := range b.lanes[1:] {
		go l.beside()
	}
	b.lanes[0].runOne()
	b.running.Wait() // the first error counts, and the group is aborted by then
	return b.first
}

// runOne runs the segments of a lane.
func (l *lane) runOne() {
	err := l.runSegments()
	if err == nil {
		return
	}
	b := l.Bound
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first == nil {
		b.first = transport.Fail(b.t, err) // another lane may be reading for long
		b.cancel(err)
	}
}

// runSegments runs the segments of a lane.
func (l *lane) runSegments() error {
	l.segments, l.elementSum, l.headerBytes = 0, 0, 0
	stride := int64(len(l.lanes)) * l.job.Segment
	for offset := int64(l.number) * l.job.Segment; offset < l.job.Bytes || offset == 0; offset += stride {
		l.part = l.at(offset)
		l.segments++
		l.elementSum += int64(l.element)
		if err := l.runSegment(); err != nil {
			return err
		}
	}
	return nil
}

// runSegment runs the programs on the segment.
func (l *lane) runSegment() error {
	err := l.inTurn(l.reading, func() error {
		if err := l.timed(trace.Read, len(l.job.Inputs), l.readInputs); err != nil {
			return err
		}
		l.locateOutputs()
		return nil
	})
	if err != nil {
		return err
	}
	if err := l.runSteps(); err != nil {
		return err
	}
	err = l.inTurn(l.writing, func() error {
		if l.job.Observe != nil || l.job.ObserveAll != nil {
			if err := l.timed(trace.Observe, len(l.job.Inputs)+len(l.job.Outputs), l.observe); err != nil {
				return err
			}
		}
		return l.timed(trace.Write, len(l.job.Outputs), l.writeOutputs)
	})
	if err != nil {
		return err
	}
	for !l.machine.Settled() || len(l.besides) > 0 { // what was sent may be overwritten then
		if err := l.await(); err != nil {
			return err
		}
	}
	return nil
}

// runSteps computes, sends and receives all of the segment.
func (l *lane) runSteps() error {
	l.machine.Begin()
	for first := true; ; first = false {
		for do := l.machine.Next(); do.What != run.Wait; do = l.machine.Next() {
			switch do.What {
			case run.Receive:
				l.receive(do.Number)
			case run.Send:
				l.send(do.Number)
			case run.Compute:
				if len(l.x.Steps[do.Number].Operations) > 0 {
					l.post() // what is there goes first
				}
				l.compute(do.Number)
			}
		}
		if first && l.offset == 0 {
			if err := l.beginBesides(); err != nil {
				return err
			}
		}
		l.post()
		if l.machine.Done() {
			break
		}
		if err := l.await(); err != nil {
			return err
		}
	}
	l.cutOutputs()
	return nil
}

// await waits until a message is received or sent, and tells the machine.
func (l *lane) await() error {
	do, err := l.wait(l.ctx, l.machine)
	switch {
	case err != nil:
		return err
	case do.What == run.Receive:
		l.machine.Received(do.Number)
	case do.What == run.Send:
		l.machine.Sent(do.Number)
	}
	return nil
}

// turns are a token that goes from lane to lane: each has room for it.
type turns []chan struct{}

// newTurns returns the turns of so many lanes; none for a single lane.
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

// begin gives the token to the first lane.
func (t turns) begin() {
	for _, lane := range t {
		select {
		case <-lane: // left by the run before
		default:
		}
	}
	if t != nil {
		t[0] <- struct{}{}
	}
}

// inTurn does something when it is the lane's turn, and hands the turn to the next lane unless
// it fails. The error wraps the cause of the context when that ends first.
func (l *lane) inTurn(t turns, do func() error) error {
	began := l.job.Trace.Now()
	if t != nil {
		select {
		case <-t[l.number]:
		case <-l.ctx.Done():
		}
	}
	l.done(trace.Turn, began, 0)
	if l.ctx.Err() != nil {
		if l.x.Ranks == 1 { // the only rank needs no name
			return context.Cause(l.ctx)
		}
		return of(l.x.First, context.Cause(l.ctx))
	}
	err := do()
	if err == nil && t != nil {
		t[(l.number+1)%len(t)] <- struct{}{}
	}
	return err
}
