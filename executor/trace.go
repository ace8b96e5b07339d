package executor

import "volley/trace"

// row returns the row of the trace that what the lane does itself is in.
func (l *lane) row() trace.Row { return trace.FirstLane + trace.Row(l.number) }

// record records a span that began at a time and ends now.
func (l *lane) record(e trace.Event, row trace.Row, began int64) {
	if l.Trace == nil {
		return
	}
	e.Rank, e.Row, e.Start, e.Segment = l.x.rank, row, began, int(l.offset/l.Segment)
	l.Trace.End(e)
}

// all returns an event about all processors of the rank.
func (l *lane) all(kind trace.Kind) trace.Event {
	return trace.Event{Kind: kind, First: l.x.first, Last: l.x.first + len(l.x.processors) - 1}
}

// done records what was done with so many packets.
func (l *lane) done(kind trace.Kind, began int64, packets int) {
	e := l.all(kind)
	e.Bytes = int64(packets) * int64(l.bytes)
	l.record(e, l.row(), began)
}

// timed does something with so many packets and records it.
func (l *lane) timed(kind trace.Kind, packets int, do func() error) error {
	began := l.Trace.Now()
	err := do()
	l.done(kind, began, packets)
	return err
}

// computed records the computing of a step.
func (l *lane) computed(s int, began int64) {
	e := l.all(trace.Code)
	if e.Round = int(l.x.steps[s].round); s == len(l.x.steps)-1 {
		e.Round = trace.AfterRounds
	}
	l.record(e, l.row(), began)
}

// recordMessage records a wait for a message, and the message, which began earlier.
func (l *lane) recordMessage(wait, way trace.Kind, m *message, elements int, waiting, began int64) {
	here, partner := m.src, m.dst
	if way == trace.Receive {
		here, partner = m.dst, m.src
	}
	e := trace.Event{
		Kind: wait, First: int(here), Last: int(here), Round: int(m.round), Port: int(m.port), Peer: int(m.rank), Partner: int(partner),
		Bytes: int64(elements) * int64(l.element),
	}
	l.record(e, l.row(), waiting)
	e.Kind = way
	l.record(e, trace.Messages, began)
}
