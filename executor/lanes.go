package executor

import (
	"context"
	"sync"

	"volley/trace"
)

// Lanes share no tags: the i-th message of a sender, receiver and tag is the i-th that is
// asked for. They read in turns, and observe and write in turns, segment by segment.
//
// This does not let lanes or ranks wait for each other in a circle. Segment s waits, at any
// rank, for the turns of s-1 there, for its memory, which s-2 gives back when it is settled,
// and for messages of s. So it waits for earlier segments, and for what other ranks do with s
// itself; among these, it is as if s were the only one, see settle. The order of segments is
// the same at all ranks.

// runLanes runs all lanes, one of them here. When it returns, all have ended. The first
// error counts, and the group is aborted by then.
func (r *run) runLanes(ctx context.Context, lanes []*lane) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		running sync.WaitGroup
		once    sync.Once
		first   error
	)
	run := func(l *lane) {
		if err := l.runSegments(ctx); err != nil {
			once.Do(func() {
				first = fail(r.t, err) // the other may be reading for long
				cancel(err)
			})
		}
	}
	for _, l := range lanes[1:] {
		running.Go(func() { run(l) })
	}
	run(lanes[0])
	running.Wait()
	return first
}

// runSegments runs the segments of a lane.
func (l *lane) runSegments(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.watchdog = watchdog{t: l.t, timeout: l.Timeout, cancel: cancel}
	l.allocate()
	defer l.pool.stop()
	defer l.reader.stop()
	defer l.writer.stop()
	stride := int64(len(l.reading)) * l.Segment
	for offset := int64(l.number) * l.Segment; offset < l.Bytes || offset == 0; offset += stride {
		if err := l.runSegment(ctx, l.at(offset)); err != nil {
			return err
		}
	}
	l.free()
	return nil
}

// runSegment runs the programs on one segment of every packet.
func (l *lane) runSegment(ctx context.Context, s segment) error {
	i := l.segments % len(l.inputs)
	in, out := &l.inputs[i], &l.outputs[i]
	if err := l.begin(ctx, s, in, out); err != nil {
		return err
	}
	if err := l.rounds(ctx, in, out); err != nil {
		return err
	}
	// What was received goes back before the turn to write, so that no other rank waits
	// for it. Not where it is to be written, and not in the end: who fails to write is
	// still to be heard.
	early := !l.x.aliased && !s.last
	if early {
		if err := l.settle(ctx, s); err != nil {
			return err
		}
	}
	if err := l.end(ctx, in, out); err != nil || early {
		return err
	}
	return l.settle(ctx, s)
}

// begin sees to it that the inputs of a segment are read, and finds out where its outputs
// are to lie.
func (l *lane) begin(ctx context.Context, s segment, in *input, out *output) error {
	ahead := l.reader.busy
	if err := l.take(ctx, l.reading, &l.reader, s); err != nil {
		return err
	}
	if !ahead {
		in.segment = s
		if err := l.read(in, l.row()); err != nil {
			return err
		}
	}
	if l.Ahead && !s.last {
		next := &l.inputs[(l.segments+1)%len(l.inputs)]
		next.segment = l.at(s.offset + l.Segment)
		l.reader.begin(next)
	}
	out.segment = s
	l.locate(out)
	l.pass(l.reading)
	return nil
}

// end shows a segment to the observer and writes it, or lets it be written.
func (l *lane) end(ctx context.Context, in *input, out *output) error {
	if err := l.take(ctx, l.writing, &l.writer, in.segment); err != nil {
		return err
	}
	if err := l.observe(in, out); err != nil {
		return err
	}
	if l.Ahead && !l.x.aliased && !out.last {
		l.writer.begin(out)
	} else if err := l.write(out, l.row()); err != nil {
		return err
	}
	l.pass(l.writing)
	return nil
}

// turns are a token that goes from lane to lane: each has room for it.
type turns []chan struct{}

// newTurns returns the turns of so many lanes, the first of which has the token.
func newTurns(count int) turns {
	t := make(turns, count)
	for i := range t {
		t[i] = make(chan struct{}, 1)
	}
	t[0] <- struct{}{}
	return t
}

// take waits until it is the lane's turn, and until what it does in the background is
// done. The error is that, or wraps the cause of ctx when ctx ends first.
func (l *lane) take(ctx context.Context, t turns, background interface{ wait() error }, s segment) error {
	began := l.Trace.Now()
	defer func() { l.done(trace.Turn, l.row(), began, s, 0) }()
	select {
	case <-t[l.number]:
	case <-ctx.Done():
	}
	if ctx.Err() == nil {
		return background.wait()
	}
	if l.x.ranks == 1 { // the only rank needs no name
		return context.Cause(ctx)
	}
	return of(l.x.first, context.Cause(ctx))
}

// pass hands the turn to the next lane.
func (l *lane) pass(t turns) { t[(l.number+1)%len(t)] <- struct{}{} }

// background does one thing at a time in a goroutine of its own.
type background[T any] struct {
	do   func(*T) error
	todo chan *T
	done chan error
	busy bool
}

// begin begins with x. Nothing is under way.
func (b *background[T]) begin(x *T) {
	if b.todo == nil {
		b.todo, b.done = make(chan *T, 1), make(chan error, 1)
		go func() {
			for x := range b.todo {
				b.done <- b.do(x)
			}
		}()
	}
	b.busy = true
	b.todo <- x
}

// wait waits for what is under way, if anything is.
func (b *background[T]) wait() error {
	if !b.busy {
		return nil
	}
	b.busy = false
	return <-b.done
}

// stop waits as well, and nothing follows.
func (b *background[T]) stop() {
	b.wait()
	if b.todo != nil {
		close(b.todo)
	}
}
