package executor

import "volley/trace"

// row returns the row of the trace that what the machine does itself is in.
func (m *machine) row() trace.Row { return trace.FirstLane + trace.Row(m.number) }

// event returns a span of the trace that began at a time and is about all processors of
// the rank and the segment at an offset.
func (m *machine) event(kind trace.Kind, row trace.Row, began, offset int64) trace.Event {
	return trace.Event{
		Kind: kind, Rank: m.part.rank, Row: row, Start: began,
		First: m.part.first, Last: m.part.first + len(m.part.processors) - 1,
		Segment: int(offset / m.job.Segment),
	}
}

// done records what was done with some bytes of packets.
func (m *machine) done(kind trace.Kind, row trace.Row, began, offset, bytes int64) {
	if m.job.Trace == nil {
		return
	}
	e := m.event(kind, row, began, offset)
	e.Bytes = bytes
	m.job.Trace.End(e)
}

// coded records the computing of stage i.
func (m *machine) coded(i int, began, offset int64) {
	if m.job.Trace == nil {
		return
	}
	e := m.event(trace.Code, m.row(), began, offset)
	if e.Round = m.part.stages[i].round; i == len(m.part.stages)-1 {
		e.Round = trace.AfterRounds
	}
	m.job.Trace.End(e)
}

// received records a message that is there, of elements of n bytes, and the wait for it,
// which began at a time of its own.
func (m *machine) received(round int, r *receive, waiting, began, offset int64, n int) {
	m.message(trace.Wait, trace.Receive, trace.Event{
		First: r.dst, Last: r.dst, Round: round, Port: r.port, Peer: r.rank, Partner: r.src, Bytes: int64(r.count) * int64(n),
	}, waiting, began, offset)
}

// sent records a message that was taken, of elements of n bytes, and the wait for that,
// which began at a time of its own.
func (m *machine) sent(round int, s *send, waiting, began, offset int64, n int) {
	m.message(trace.Settle, trace.Send, trace.Event{
		First: s.src, Last: s.src, Round: round, Port: s.port, Peer: s.rank, Partner: s.dst, Bytes: int64(len(s.slots)) * int64(n),
	}, waiting, began, offset)
}

// message records a wait, and the message, as far as e says what they are.
func (m *machine) message(wait, way trace.Kind, e trace.Event, waiting, began, offset int64) {
	if m.job.Trace == nil {
		return
	}
	here := m.event(wait, m.row(), waiting, offset)
	e.Kind, e.Rank, e.Row, e.Start, e.Segment = here.Kind, here.Rank, here.Row, here.Start, here.Segment
	m.job.Trace.End(e)
	e.Kind, e.Row, e.Start = way, trace.Messages, began
	m.job.Trace.End(e)
}
