package executor

import (
	"context"
	"fmt"

	"volley/trace"
	"volley/transport"
)

// A sending is a message of the segment to another rank, from when it was posted until it
// is settled.
type sending struct {
	began   int64
	parts   [][]byte
	pending transport.Sending
}

// A receiving is a message of the segment from another rank, from when it was posted until
// it is released.
type receiving struct {
	began   int64
	lengths []int
	pending transport.Receiving
	release func()
}

// rounds computes, sends and receives all of a segment; its outputs have their places.
func (l *lane) rounds(ctx context.Context, in *input, out *output) error {
	x, s := l.x, in.segment
	l.elementSum += int64(s.element)
	l.segments++
	copy(l.memory, in.elements)
	for i, element := range out.elements {
		if x.outputOf[i] >= 0 {
			l.memory[x.inputs+x.received+i] = element
		}
	}
	for i := range x.rounds {
		l.compute(i, s)
		// All of a round's messages are under way before the first is awaited, so that
		// the ports work side by side.
		for k := range x.rounds[i].receives {
			l.receive(&x.rounds[i].receives[k], &l.receives[i][k], s)
		}
		for k := range x.rounds[i].sends {
			l.send(&x.rounds[i].sends[k], &l.sends[i][k], s)
		}
		for k := range x.rounds[i].receives {
			if err := l.await(ctx, &x.rounds[i].receives[k], &l.receives[i][k], s); err != nil {
				return err
			}
		}
	}
	for o, result := range x.outputs {
		_, length := l.piece(o, s)
		out.results[o] = l.memory[result.at][:length]
	}
	return nil
}

// hasHeader reports whether a message has a header: the first one of two ranks.
func (l *lane) hasHeader(m *message, s segment) bool {
	return m.first && s.offset == 0 && len(l.Header) > 0
}

// receive posts a receive.
func (l *lane) receive(m *receive, v *receiving, s segment) {
	v.lengths = v.lengths[:0]
	if l.hasHeader(&m.message, s) {
		v.lengths = append(v.lengths, len(l.Header))
	}
	for range m.count {
		v.lengths = append(v.lengths, s.element)
	}
	v.began = l.Trace.Now()
	v.pending = l.t.Receive(m.rank, l.tag(&m.message), v.lengths)
}

// send posts a send.
func (l *lane) send(m *send, v *sending, s segment) {
	v.parts = v.parts[:0]
	if l.hasHeader(&m.message, s) {
		v.parts = append(v.parts, l.Header)
		l.headerBytes += int64(len(l.Header))
	}
	for _, slot := range m.slots {
		v.parts = append(v.parts, l.memory[slot][:s.element])
	}
	v.began = l.Trace.Now()
	v.pending = l.t.Send(m.rank, l.tag(&m.message), v.parts)
}

// await waits until a message is there.
func (l *lane) await(ctx context.Context, m *receive, v *receiving, s segment) error {
	began := l.Trace.Now()
	l.watchdog.start(m.rank)
	received, err := v.pending.Wait(ctx)
	err = l.watchdog.stop(err)
	l.recordMessage(trace.Wait, trace.Receive, &m.message, m.dst, m.src, m.count, began, v.began, s)
	if err != nil {
		return of(m.dst, fmt.Errorf("round %d: receive from processor %d: %w", m.round, m.src, inRound(m.round, err)))
	}
	v.release = received.Release
	parts := received.Parts
	if l.hasHeader(&m.message, s) {
		if err := l.Check(m.rank, parts[0]); err != nil {
			return of(m.dst, fmt.Errorf("round %d: %w", m.round, err))
		}
		parts = parts[1:]
	}
	copy(l.memory[m.at:], parts)
	return nil
}

// settle ends a segment: it gives back what was received and waits until what
// was sent may be overwritten.
//
// It goes through the rounds backwards. What was received in round t may have
// been passed on, from where it lies, in later rounds only, and these have been
// waited for by then. As every rank does so, a wait for round t depends on
// waits for later rounds alone, so they all end.
func (l *lane) settle(ctx context.Context, s segment) error {
	for i := len(l.x.rounds) - 1; i >= 0; i-- {
		for k := range l.receives[i] {
			l.receives[i][k].release()
		}
		for k := range l.sends[i] {
			m, v := &l.x.rounds[i].sends[k], &l.sends[i][k]
			began := l.Trace.Now()
			l.watchdog.start(m.rank)
			err := l.watchdog.stop(v.pending.Wait(ctx))
			l.recordMessage(trace.Settle, trace.Send, &m.message, m.src, m.dst, len(m.slots), began, v.began, s)
			if err != nil {
				return of(m.src, fmt.Errorf("round %d: send to processor %d: %w", m.round, m.dst, err))
			}
		}
	}
	return nil
}

// tag returns the tag of a message of the lane.
func (l *lane) tag(m *message) transport.Tag {
	return transport.Tag{Round: l.number*l.x.planRounds + m.round, Port: m.port}
}

// inRound lets an error of the transport name the round of the plan.
func inRound(round int, err error) error {
	wrong, ok := err.(*transport.LengthError)
	if !ok {
		return err
	}
	named := *wrong
	named.Tag.Round = round
	return &named
}
