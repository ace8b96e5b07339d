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
	*send
	began   int64
	parts   [][]byte
	pending transport.Sending
}

// A receiving is a message of the segment from another rank, from when it was posted until
// it is released.
type receiving struct {
	*receive
	began   int64
	lengths []int
	pending transport.Receiving
	release func()
}

// runRounds computes, sends and receives all of the segment.
func (l *lane) runRounds(ctx context.Context) error {
	for i := range l.x.rounds {
		l.compute(i)
		// All of a round's messages are under way before the first is awaited, so that
		// the ports work side by side.
		for k := range l.receives[i] {
			l.postReceive(&l.receives[i][k])
		}
		for k := range l.sends[i] {
			l.postSend(&l.sends[i][k])
		}
		for k := range l.receives[i] {
			if err := l.await(ctx, &l.receives[i][k]); err != nil {
				return err
			}
		}
	}
	for o, result := range l.x.outputs {
		_, length := l.piece(o)
		l.outputs[o] = l.memory[result.at][:length]
	}
	return nil
}

// hasHeader reports whether a message has a header: the first one of two ranks.
func (l *lane) hasHeader(m *message) bool {
	return m.first && l.offset == 0 && len(l.Header) > 0
}

func (l *lane) postReceive(m *receiving) {
	m.lengths = m.lengths[:0]
	if l.hasHeader(&m.message) {
		m.lengths = append(m.lengths, len(l.Header))
	}
	for range m.count {
		m.lengths = append(m.lengths, l.element)
	}
	m.began = l.Trace.Now()
	m.pending = l.t.Receive(m.rank, l.tag(&m.message), m.lengths)
}

func (l *lane) postSend(m *sending) {
	m.parts = m.parts[:0]
	if l.hasHeader(&m.message) {
		m.parts = append(m.parts, l.Header)
		l.headerBytes += int64(len(l.Header))
	}
	for _, slot := range m.slots {
		m.parts = append(m.parts, l.memory[slot][:l.element])
	}
	m.began = l.Trace.Now()
	m.pending = l.t.Send(m.rank, l.tag(&m.message), m.parts)
}

// await waits until a message is there.
func (l *lane) await(ctx context.Context, m *receiving) error {
	began := l.Trace.Now()
	l.watchdog.start(m.rank)
	received, err := m.pending.Wait(ctx)
	err = l.watchdog.stop(err)
	l.recordMessage(trace.Wait, trace.Receive, &m.message, m.count, began, m.began)
	if wrong, ok := err.(*transport.LengthError); ok { // its round is that of the plan, not of the lane
		named := *wrong
		named.Tag.Round = m.round
		err = &named
	}
	if err != nil {
		return of(m.dst, fmt.Errorf("round %d: receive from processor %d: %w", m.round, m.src, err))
	}
	m.release = received.Release
	parts := received.Parts
	if l.hasHeader(&m.message) {
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
func (l *lane) settle(ctx context.Context) error {
	for i := len(l.x.rounds) - 1; i >= 0; i-- {
		for k := range l.receives[i] {
			l.receives[i][k].release()
		}
		for k := range l.sends[i] {
			m := &l.sends[i][k]
			began := l.Trace.Now()
			l.watchdog.start(m.rank)
			err := l.watchdog.stop(m.pending.Wait(ctx))
			l.recordMessage(trace.Settle, trace.Send, &m.message, len(m.slots), began, m.began)
			if err != nil {
				return of(m.src, fmt.Errorf("round %d: send to processor %d: %w", m.round, m.dst, err))
			}
		}
	}
	return nil
}

// tag returns the tag of a message of the lane.
func (l *lane) tag(m *message) transport.Tag {
	return transport.Tag{Round: transport.ControlRounds + l.number*l.x.planRounds + m.round, Port: m.port}
}
