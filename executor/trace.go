package executor

import (
	"volley/executor/internal/compile"
	"volley/trace"
)

// row returns the row of the trace that what the pipeline does itself is in.
func (g *segment) row() trace.Row { return trace.Pipeline0 + trace.Row(g.number) }

// note records a span that began at a time and ends now.
func (g *segment) note(e trace.Event, row trace.Row, began int64) {
	if g.job.Trace == nil {
		return
	}
	e.Rank, e.Row, e.Start, e.Segment = g.x.Rank, row, began, int(g.offset/g.job.Segment)
	g.job.Trace.End(e)
}

// rankEvent returns an event about all processors of the rank.
func (g *segment) rankEvent(kind trace.Kind) trace.Event {
	return trace.Event{Kind: kind, First: g.x.First, Last: g.x.First + len(g.x.Processors) - 1}
}

// record records what was done with so many packets.
func (g *segment) record(kind trace.Kind, began int64, packets int) {
	e := g.rankEvent(kind)
	e.Bytes = int64(packets) * int64(g.bytes)
	g.note(e, g.row(), began)
}

// timed does something with so many packets and records it.
func (g *segment) timed(kind trace.Kind, packets int, work func() error) error {
	began := g.job.Trace.Now()
	err := work()
	g.record(kind, began, packets)
	return err
}

// computed records the computing of a step.
func (g *segment) computed(s int, began int64) {
	e := g.rankEvent(trace.Code)
	if e.Round = int(g.x.Steps[s].Round); s == len(g.x.Steps)-1 {
		e.Round = trace.AfterRounds
	}
	g.note(e, g.row(), began)
}

// noteMessage records a wait for a message, and the message, which began earlier.
func (g *segment) noteMessage(wait, direction trace.Kind, m *compile.Message, elements int, waiting, began int64) {
	local, partner := m.Src, m.Dst
	if direction == trace.Receive {
		local, partner = m.Dst, m.Src
	}
	e := trace.Event{
		Kind: wait, First: int(local), Last: int(local), Round: int(m.Round), Port: int(m.Port), Peer: int(m.Rank), Partner: int(partner),
		Bytes: int64(elements) * int64(g.element),
	}
	g.note(e, g.row(), waiting)
	e.Kind = direction
	g.note(e, trace.Messages, began)
}
