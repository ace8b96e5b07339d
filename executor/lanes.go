package executor

import (
	"context"
	"sync"

	"volley/trace"
	"volley/transport"
)

// laneCount is how many segments are under way where several ranks take part: while one
// waits for messages, the other is read, coded or written.
const laneCount = 2

// A lane says which segments a machine runs: every laneCount-th, from the one with the
// lane's number on.
//
// The i-th message of a sender, receiver and tag is the i-th that is asked for, so that
// lanes share no tags. They read in turns, and observe and write in turns, segment by
// segment.
//
// This does not let lanes or ranks wait for each other in a circle. Segment s waits, at any
// rank, for the turns of s-1 there, for its memory, which s-2 gives back when it is settled,
// and for messages of s. So it waits for earlier segments, and for what other ranks do with s
// itself; among these, it is as if s were the only one, see settle. The order of segments is
// the same at all ranks.
type lane struct {
	number int
	turns  *turns // nil: there is one lane
}

// turns are those of the lanes of a rank.
type turns struct{ reading, writing turn }

// A turn is a token that goes from lane to lane: each has room for it.
type turn [laneCount]chan struct{}

// newTurn returns the turn of the first lane.
func newTurn() (t turn) {
	for i := range t {
		t[i] = make(chan struct{}, 1)
	}
	t[0] <- struct{}{}
	return t
}

// take waits until it is the lane's turn. It returns the cause of ctx when that ends first.
func (l *lane) take(ctx context.Context, t *turn) error {
	select {
	case <-t[l.number]:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pass hands the turn to the next lane.
func (l *lane) pass(t *turn) { t[(l.number+1)%laneCount] <- struct{}{} }

// twoLanes reports whether a job is run in lanes.
func (job *Job) twoLanes() bool { return job.Part.ranks > 1 && job.Ahead && job.Segment < job.Bytes }

// runLanes runs the segments in lanes, of which m becomes the first. When it returns, all
// have ended. The first error counts.
func (m *machine) runLanes(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	shared := &turns{newTurn(), newTurn()}
	lanes := [laneCount]*machine{m}
	for i := range lanes {
		if i > 0 {
			var err error
			if lanes[i], err = newMachine(m.t, m.job); err != nil {
				return err
			}
		}
		lanes[i].lane = lane{i, shared}
		lanes[i].job.Ahead = false // that memory is the other lane's
	}
	var (
		running sync.WaitGroup
		once    sync.Once
		first   error
	)
	for _, l := range lanes {
		running.Go(func() {
			if err := l.run(ctx); err != nil {
				once.Do(func() {
					first = fail(m.t, err) // the other may be reading for long
					cancel(err)
				})
			}
		})
	}
	running.Wait()
	if first != nil {
		return first
	}
	for _, l := range lanes[1:] {
		m.segments += l.segments
		m.elementSum += l.elementSum
		m.headerBytes += l.headerBytes
	}
	return nil
}

// runLane runs the segments of a lane.
func (m *machine) runLane(ctx context.Context) error {
	in, out := &m.intakes[0], &m.outlets[0]
	for offset := int64(m.number) * m.job.Segment; offset < m.job.Bytes; offset += laneCount * m.job.Segment {
		in.at(m, offset)
		out.at(in)
		if err := m.readInTurn(ctx, in, out); err != nil {
			return err
		}
		if err := m.stages(ctx, in, out); err != nil {
			return err
		}
		// What was received goes back before the turn to write, so that no other rank waits
		// for it. Not where it is to be written, and not in the end: who fails to write is
		// still to be heard.
		early := !m.part.borrowed && offset+m.job.Segment < m.job.Bytes
		if early {
			if err := m.settle(ctx, out); err != nil {
				return err
			}
		}
		if err := m.writeInTurn(ctx, in, out); err != nil {
			return err
		}
		if !early {
			if err := m.settle(ctx, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeTurn waits until a segment has its turn.
func (m *machine) takeTurn(ctx context.Context, t *turn, in *intake) error {
	began := m.job.Trace.Now()
	err := m.take(ctx, t)
	m.done(trace.Turn, m.row(), began, in.offset, 0)
	if err != nil {
		return m.ended(err)
	}
	return nil
}

// readInTurn reads the inputs of a segment and finds out where its outputs are to lie.
func (m *machine) readInTurn(ctx context.Context, in *intake, out *outlet) error {
	if err := m.takeTurn(ctx, &m.turns.reading, in); err != nil {
		return err
	}
	if err := m.read(in, m.row()); err != nil {
		return err
	}
	m.place(out)
	m.pass(&m.turns.reading)
	return nil
}

// writeInTurn shows a segment to the observer and writes it.
func (m *machine) writeInTurn(ctx context.Context, in *intake, out *outlet) error {
	if err := m.takeTurn(ctx, &m.turns.writing, in); err != nil {
		return err
	}
	if err := m.observe(in, out); err != nil {
		return err
	}
	if err := m.write(out, m.row()); err != nil {
		return err
	}
	m.pass(&m.turns.writing)
	return nil
}

// tag returns the tag of a message of the lane.
func (m *machine) tag(round, port int) transport.Tag {
	return transport.Tag{Round: m.number*m.part.rounds + round, Port: port}
}

// inRound lets an error of the transport name the round of the plan.
func (m *machine) inRound(round int, err error) error {
	wrong, ok := err.(*transport.LengthError)
	if !ok {
		return err
	}
	named := *wrong
	named.Tag.Round = round
	return &named
}
