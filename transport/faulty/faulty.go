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
	late   *late.Delays
}

var (
	_ transport.Transport  = (*Transport)(nil)
	_ transport.Inquirer   = (*Transport)(nil)
	_ transport.CoreSharer = (*Transport)(nil)
)

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

// Cores returns what the transport below says.
func (t *Transport) Cores() int { return transport.Cores(t.below) }

// Overlaps reports what the transport below does.
func (t *Transport) Overlaps() bool { return transport.Overlaps(t.below) }

// A queue is a queue below, with the faults.
type queue struct {
	t     *Transport
	below transport.Queue

	// Guarded by t.mu.
	lost     []*transport.Transfer // on nobody's way, so their parts are free
	replaced map[*transport.Transfer]*transport.Transfer
}

// NewQueue returns an empty queue.
func (t *Transport) NewQueue() transport.Queue {
	return &queue{t: t, below: t.below.NewQueue(), replaced: map[*transport.Transfer]*transport.Transfer{}}
}

// Post posts what the faults leave of the transfers.
func (q *queue) Post(transfers ...*transport.Transfer) {
	t := q.t
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range transfers {
		if x.Receive {
			if t.state == running {
				q.below.Post(x)
			}
			continue
		}
		if t.enter(x.Tag.Round) != running {
			continue
		}
		m := &message{index: t.sends, dst: x.Rank, tag: x.Tag, parts: x.Parts}
		t.sends++
		for i, f := range t.faults {
			if f.strike != nil && f.strike(m) {
				t.struck[i] = true
			}
		}
		if m.drop {
			q.lost = append(q.lost, x)
			continue
		}
		t.late.Post(context.Background(), m.dst, m.tag, m.delay, func() { q.handOn(m, x) })
	}
}

// handOn sends a message below in place of x, unless the rank has stopped since. The caller
// holds t.mu.
func (q *queue) handOn(m *message, x *transport.Transfer) {
	if q.t.state != running {
		return
	}
	y := &transport.Transfer{Rank: m.dst, Tag: m.tag, Parts: m.parts}
	q.replaced[y] = x
	q.below.Post(y)
	for range m.copies {
		again := &transport.Transfer{Rank: m.dst, Tag: m.tag}
		for _, part := range m.parts {
			again.Parts = append(again.Parts, bytes.Clone(part))
		}
		q.t.below.NewQueue().Post(again)
	}
}

// Wait waits as [transport.Queue] says. A rank that is to stop in a round does so before it
// hears of a message of that round.
func (q *queue) Wait(ctx context.Context) (*transport.Transfer, error) {
	t := q.t
	if err := t.stopped(ctx); err != nil {
		return nil, err
	}
	t.mu.Lock()
	if len(q.lost) > 0 {
		x := q.lost[0]
		q.lost = q.lost[1:]
		t.mu.Unlock()
		return x, nil
	}
	t.mu.Unlock()
	x, err := q.below.Wait(ctx)
	if x == nil {
		return nil, err
	}
	t.mu.Lock()
	if y, ok := q.replaced[x]; ok {
		delete(q.replaced, x)
		x = y
	}
	if x.Receive {
		t.enter(x.Tag.Round)
	}
	t.mu.Unlock()
	if err := t.stopped(ctx); err != nil {
		return nil, err
	}
	return x, err
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

// enter notes that the rank comes to this round and returns its state. The caller holds t.mu.
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
