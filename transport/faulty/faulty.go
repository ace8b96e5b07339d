// Package faulty makes a transport fail in chosen ways, to test what is above it.
//
//	group[2] = faulty.New(group[2],
//		faulty.Drop(faulty.Nth(4)),
//		faulty.Die(7))
//
// Faults strike the rank whose transport is wrapped, always at the same place:
// nothing is left to chance, unless several goroutines send and [Nth] counts. Only what
// a rank sends is falsified, and that in a copy, never in the sender's memory.
package faulty

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"volley/transport"
	"volley/transport/late"
)

// ErrDead is what the waits of a rank return after [Die].
var ErrDead = errors.New("faulty: this rank is dead")

// A Transport is one rank's end of a group, with faults.
type Transport struct {
	below  transport.Transport
	faults []Fault

	mu     sync.Mutex // guards what follows, and the start of transfers below
	state  state
	struck []bool // by fault
	sends  int
	late   *late.Queue
}

var _ transport.Transport = (*Transport)(nil)

type state int

const (
	running state = iota
	hung
	dead
)

// New wraps a rank's transport. Faults that strike the same send do so in the
// order given; what is then left to send is delayed, or copied, or dropped.
func New(t transport.Transport, faults ...Fault) *Transport {
	w := &Transport{below: t, faults: faults, struck: make([]bool, len(faults))}
	w.late = late.New(&w.mu)
	return w
}

// Idle returns the faults that have not struck yet, so that a test can tell that
// it tested something.
func (t *Transport) Idle() []Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	var idle []Fault
	for i, f := range t.faults {
		if !t.struck[i] {
			idle = append(idle, f)
		}
	}
	return idle
}

// Inquire asks below, if that can be asked.
func (t *Transport) Inquire(ctx context.Context, rank int) (int, time.Duration, error) {
	q, ok := t.below.(transport.Inquirer)
	if !ok {
		return -1, 0, errors.New("faulty: the transport below asks nobody")
	}
	return q.Inquire(ctx, rank)
}

// Rank returns the rank below.
func (t *Transport) Rank() int { return t.below.Rank() }

// Size returns the size below.
func (t *Transport) Size() int { return t.below.Size() }

// Send sends what the faults leave of the message.
func (t *Transport) Send(dst int, tag transport.Tag, parts [][]byte) transport.Sending {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.enter(tag.Round) != running {
		return &sending{t, lost{}}
	}
	m := &message{index: t.sends, dst: dst, tag: tag, parts: parts}
	t.sends++
	for i, f := range t.faults {
		if f.strike != nil && f.strike(m) {
			t.struck[i] = true
		}
	}
	if m.drop {
		return &sending{t, lost{}}
	}
	return &sending{t, t.late.Send(context.Background(), dst, tag, m.delay, func() transport.Sending { return t.handOn(m) })}
}

// handOn sends a message below, unless the rank has stopped since. The caller holds t.mu.
func (t *Transport) handOn(m *message) transport.Sending {
	if t.state != running {
		return lost{}
	}
	s := t.below.Send(m.dst, m.tag, m.parts)
	for range m.copies {
		parts := make([][]byte, len(m.parts))
		for i, part := range m.parts {
			parts[i] = bytes.Clone(part)
		}
		t.below.Send(m.dst, m.tag, parts)
	}
	return s
}

// Receive receives from below.
func (t *Transport) Receive(src int, tag transport.Tag, lengths []int) transport.Receiving {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.enter(tag.Round) != running {
		return &receiving{t, nil}
	}
	return &receiving{t, t.below.Receive(src, tag, lengths)}
}

// Abort ends the group, unless this rank hangs or is dead.
func (t *Transport) Abort(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == running {
		t.below.Abort(cause)
	}
}

// Close closes the transport below, also where this rank hangs or is dead, once
// the delayed messages are handed on.
func (t *Transport) Close() error {
	t.late.Wait()
	return t.below.Close()
}

// enter notes that a transfer of this round begins and returns the state that
// it meets. The caller holds t.mu.
func (t *Transport) enter(round int) state {
	for i, f := range t.faults {
		if t.state == running && f.state != running && round >= f.round {
			t.state, t.struck[i] = f.state, true
		}
	}
	return t.state
}

// stopped returns the error of a Wait at a rank that hangs or is dead.
func (t *Transport) stopped(ctx context.Context) error {
	t.mu.Lock()
	state := t.state
	t.mu.Unlock()
	switch state {
	case hung:
		<-ctx.Done()
		return context.Cause(ctx)
	case dead:
		return ErrDead
	}
	return nil
}

type sending struct {
	t     *Transport
	below transport.Sending
}

func (s *sending) Wait(ctx context.Context) error {
	if err := s.t.stopped(ctx); err != nil {
		return err
	}
	return s.below.Wait(ctx)
}

// A lost message is on nobody's way, so its parts are free.
type lost struct{}

func (lost) Wait(context.Context) error { return nil }

type receiving struct {
	t     *Transport
	below transport.Receiving // nil where the rank hangs or is dead
}

func (r *receiving) Wait(ctx context.Context) (transport.Message, error) {
	if err := r.t.stopped(ctx); err != nil {
		return transport.Message{}, err
	}
	return r.below.Wait(ctx)
}
