package executor

import (
	"volley/executor/internal/compile"
	"volley/trace"
)

// row returns the row of the trace that what the pipeline does itself is in.
func (l *segment) row() trace.Row { return trace.Pipeline0 + trace.Row(l.number) }

// note records a span that began at a time and ends now.
func (l *segment) note(e trace.Event, row trace.Row, began int64) {
	if l.job.Trace == nil {
		return
	}
	e.Rank, e.Row, e.Start, e.Segment = l.x.Rank, row, began, int(l.offset/l.job.Segment)
	l.job.Trace.End(e)
}

// all returns an event about all processors of the rank.
func (l *segment) all(kind trace.Kind) trace.Event {
	return trace.Event{Kind: kind, First: l.x.First, Last: l.x.First + len(l.x.Processors) - 1}
}

// done records what was done with so many packets.
func (l *segment) done(kind trace.Kind, began int64, packets int) {
	e := l.all(kind)
	e.Bytes = int64(packets) * int64(l.bytes)
	l.note(e, l.row(), began)
}

// timed does something with so many packets and records it.
func (l *segment) timed(kind trace.Kind, packets int, do func() error) error {
	began := l.job.Trace.Now()
	err := do()
	l.done(kind, began, packets)
	return err
}

// computed records the computing of a step.
func (l *segment) computed(s int, began int64) {
	e := l.all(trace.Code)
	if e.Round = int(l.x.Steps[s].Round); s == len(l.x.Steps)-1 {
		e.Round = trace.AfterRounds
	}
	l.note(e, l.row(), began)
}

// noteMessage records a wait for a message, and the message, which began earlier.
func (l *segment) noteMessage(wait, way trace.Kind, m *compile.Message, elements int, waiting, began int64) {
	here, partner := m.Src, m.Dst
	if way == trace.Receive {
		here, partner = m.Dst, m.Src
	}
	e := trace.Event{
		Kind: wait, First: int(here), Last: int(here), Round: int(m.Round), Port: int(m.Port), Peer: int(m.Rank), Partner: int(partner),
		Bytes: int64(elements) * int64(l.element),
	}
	l.note(e, l.row(), waiting)
	e.Kind = way
	l.note(e, trace.Messages, began)
}
