package executor

import (
	"context"

	"volley/trace"
)

// Lanes share no tags: the i-th message of a sender, receiver and tag is the i-th that is
// asked for. They read in turns, and observe and write in turns, segment by segment.
//
// This does not let lanes or ranks wait for each other in a circle. Segment s waits, at any
// rank, for the turns of s-1 there, for its memory, which s-2 gives back when it is settled,
// and for messages of s. So it waits for earlier segments, and for what other ranks do with s
// itself. The order of segments is the same at all ranks.

// runLanes runs all lanes, the first one here. When it returns, all have ended. The first error counts, and the group is
// aborted by then.
func (r *run) runLanes(lanes []*lane, cancel context.CancelCauseFunc) error {
	if len(lanes) == 1 {
		if err := lanes[0].runSegments(); err != nil {
			return fail(r.t, err)
		}
		return nil
	}
	r.reading.begin()
	r.writing.begin()
	r.first, r.cancel = nil, cancel
	r.running.Add(len(lanes) - 1)
	for _, l := range lanes[1:] {
		go l.beside()
	}
	lanes[0].runOne()
	r.running.Wait()
	return r.first
}

// runOne runs the segments of one of several lanes.
func (l *lane) runOne() {
	err := l.runSegments()
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = fail(l.t, err) // the other may be reading for long
		l.cancel(err)
	}
}

// runSegments runs the segments of a lane.
func (l *lane) runSegments() error {
	l.segments, l.elementSum, l.headerBytes = 0, 0, 0
	stride := int64(max(1, len(l.reading))) * l.Segment
	for offset := int64(l.number) * l.Segment; offset < l.Bytes || offset == 0; offset += stride {
		l.segment = l.at(offset)
		if err := l.runSegment(l.ctx); err != nil {
			return err
		}
	}
	return nil
}

// runSegment runs the programs on the segment.
func (l *lane) runSegment(ctx context.Context) error {
	l.elementSum += int64(l.element)
	l.segments++
	err := l.inTurn(ctx, l.reading, func() error {
		if err := l.timed(trace.Read, len(l.Inputs), l.readInputs); err != nil {
			return err
		}
		l.locateOutputs()
		return nil
	})
	if err != nil {
		return err
	}
	if err := l.runSteps(ctx); err != nil {
		return err
	}
	err = l.inTurn(ctx, l.writing, func() error {
		if l.Observe != nil || l.ObserveAll != nil {
			if err := l.timed(trace.Observe, len(l.Inputs)+len(l.Outputs), l.observe); err != nil {
				return err
			}
		}
		return l.timed(trace.Write, len(l.Outputs), l.writeOutputs)
	})
	if err != nil {
		return err
	}
	return l.settle(ctx)
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
	t[0] <- struct{}{}
}

// inTurn does something when it is the lane's turn, and hands the turn to the next lane unless
// it fails. The error wraps the cause of ctx when that ends first.
func (l *lane) inTurn(ctx context.Context, t turns, do func() error) error {
	began := l.Trace.Now()
	if t != nil {
		select {
		case <-t[l.number]:
		case <-ctx.Done():
		}
	}
	l.done(trace.Turn, began, 0)
	if ctx.Err() != nil {
		if l.x.ranks == 1 { // the only rank needs no name
			return context.Cause(ctx)
		}
		return of(l.x.first, context.Cause(ctx))
	}
	err := do()
	if err == nil && t != nil {
		t[(l.number+1)%len(t)] <- struct{}{}
	}
	return err
}
