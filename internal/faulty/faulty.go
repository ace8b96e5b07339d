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
	"context"
	"errors"
	"sync"

	"volley/transport"
)

// ErrDead is what the waits of a rank return after [Die].
var ErrDead = errors.New("faulty: this rank is dead")

// A Transport is one rank's end of a group, with faults.
type Transport struct {
	transport.Around // what is below
	faults           []Fault

	mu     sync.Mutex // guards what follows, and the start of transfers below
	state  state
	struck []bool // by fault
	sends  int
}

var (
	_ transport.Transport  = (*Transport)(nil)
	_ transport.Inquirer   = (*Transport)(nil)
	_ transport.HostSharer = (*Transport)(nil)
)

// Host is that of what is below. What lies in shared memory has no faults.
func (t *Transport) Host() *transport.Host {
	if h, ok := t.Transport.(transport.HostSharer); ok {
		return h.Host()
	}
	return nil
}

type state int

const (
	running state = iota
	hung
	dead
)

// New wraps a rank's transport. Faults that strike the same send do so in the order given.
func New(t transport.Transport, faults ...Fault) *Transport {
	return &Transport{Around: transport.Around{Transport: t}, faults: faults, struck: make([]bool, len(faults))}
}

// Idle returns how many faults have not struck yet, so that a test can tell that it tested something.
func (t *Transport) Idle() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, struck := range t.struck {
		if !struck {
			n++
		}
	}
	return n
}

// A queue is a queue below, with the faults.
type queue struct {
	transport.Queue
	t *Transport

	// Guarded by t.mu.
	lost     []*transport.Transfer // on nobody's way, so their parts are free
	replaced map[*transport.Transfer]*transport.Transfer
}

// NewQueue returns an empty queue.
func (t *Transport) NewQueue() transport.Queue {
	return &queue{t: t, Queue: t.Transport.NewQueue(), replaced: map[*transport.Transfer]*transport.Transfer{}}
}

// Post posts what the faults leave of the transfers.
func (q *queue) Post(transfers ...*transport.Transfer) {
	t := q.t
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range transfers {
		switch {
		case x.Receive && t.state == running:
			q.Queue.Post(x)
		case !x.Receive && t.enter(x.Tag.Round) == running:
			q.send(x, t.strike(x))
		}
	}
}

// strike returns what the faults leave of a send. The caller holds the lock.
func (t *Transport) strike(x *transport.Transfer) []message {
	messages := []message{x.Parts}
	for i, f := range t.faults {
		if f.strike == nil || !f.picks(t.sends, x) {
			continue
		}
		var forwarded []message
		for _, m := range messages {
			instead := f.strike(m)
			if instead == nil {
				instead = []message{m}
			} else {
				t.struck[i] = true
			}
			forwarded = append(forwarded, instead...)
		}
		messages = forwarded
	}
	t.sends++
	return messages
}

// send sends messages in place of x, which is over when the first of them is. The caller holds t.mu.
func (q *queue) send(x *transport.Transfer, messages []message) {
	if len(messages) == 0 {
		q.lost = append(q.lost, x)
	}
	for i, parts := range messages {
		y := &transport.Transfer{Rank: x.Rank, Tag: x.Tag, Parts: parts}
		if i > 0 {
			q.t.Transport.NewQueue().Post(y) // nobody waits for it
			continue
		}
		q.replaced[y] = x
		q.Queue.Post(y)
	}
}

// Wait waits as [transport.Queue] says. A rank that is to stop in a round stops before it hears of a message of it.
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
	x, err := q.Queue.Wait(ctx)
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
		t.Transport.Abort(cause)
	}
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
