// Package local connects ranks that live in one process.
//
// A message is copied once, from its sender's memory to its receiver's, by whichever of the two
// comes last. No goroutine runs, and what a message takes is used again: a group at work
// allocates nothing.
//
// The i-th send of a (sender, receiver, tag) always meets its i-th receive. Where that asks for
// other lengths the message is discarded.
package local

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"volley/transport"
)

// An Endpoint is one rank of a group.
type Endpoint struct {
	group   *group
	rank    int
	aborted chan struct{} // one per rank: a single one for all would be fought over

	mu     sync.Mutex // guards what follows
	halves map[stream][]half
	closed bool

	waitsMu sync.Mutex
	waits   []*queue // under way, oldest first
}

var (
	_ transport.Transport = (*Endpoint)(nil)
	_ transport.Inquirer  = (*Endpoint)(nil)
)

type group struct {
	ends  []*Endpoint
	abort atomic.Pointer[transport.AbortError]
}

// New returns the ranks 0 … n-1 of a new group. It takes memory in proportion
// to n; whatever a pair of ranks needs is made when they talk.
func New(n int) []*Endpoint {
	g := &group{ends: make([]*Endpoint, n)}
	for r := range g.ends {
		g.ends[r] = &Endpoint{group: g, rank: r, aborted: make(chan struct{}), halves: map[stream][]half{}}
	}
	return slices.Clone(g.ends)
}

// Rank returns this rank.
func (e *Endpoint) Rank() int { return e.rank }

// Size returns the number of ranks of the group.
func (e *Endpoint) Size() int { return len(e.group.ends) }

// Abort ends the group; the first call at any rank counts.
func (e *Endpoint) Abort(cause error) {
	if !e.group.abort.CompareAndSwap(nil, &transport.AbortError{Rank: e.rank, Cause: cause}) {
		return
	}
	for _, end := range e.group.ends {
		close(end.aborted)
	}
}

// Close fails the transfers to this rank that have not met their other half,
// at the sender as well, with [transport.ErrClosed]. All that this rank has
// sent still arrives. Closing again does nothing.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for _, halves := range e.halves {
		for _, h := range halves {
			h.finish(e.closedError())
		}
	}
	clear(e.halves)
	return nil
}

func (e *Endpoint) closedError() error { return fmt.Errorf("rank %d: %w", e.rank, transport.ErrClosed) }

func (e *Endpoint) isPeer(r int) bool { return 0 <= r && r < e.Size() && r != e.rank }

// A stream is what keeps its order: the messages to one rank with the same
// sender and tag.
type stream struct {
	src int
	tag transport.Tag
}

// A half is a transfer at one of its ends. Those in the list of a stream lack the other half:
// either all are sends or all are receives.
type half struct {
	*transport.Transfer
	queue *queue
}

// meet returns the oldest half of a stream to this rank that goes with h; else h now waits for
// its own.
func (e *Endpoint) meet(key stream, h half) (other half, met bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.halves[key]
	if len(list) > 0 && list[0].Receive != h.Receive {
		other = list[0]
		if list = slices.Delete(list, 0, 1); len(list) == 0 && len(e.halves) > keptStreams {
			delete(e.halves, key)
		} else {
			e.halves[key] = list
		}
		return other, true
	}
	if e.closed {
		h.finish(e.closedError())
	} else {
		e.halves[key] = append(list, h)
	}
	return half{}, false
}

// keptStreams bounds the lists that are kept when they are empty: the next run has the same tags.
const keptStreams = 64

// copyTo gives the message to the half that receives it, and ends both.
func (h half) copyTo(to half, src int) {
	var err error
	if slices.EqualFunc(h.Parts, to.Parts, func(a, b []byte) bool { return len(a) == len(b) }) {
		for i, part := range h.Parts {
			copy(to.Parts[i], part)
		}
	} else {
		err = &transport.LengthError{Src: src, Tag: h.Tag, Got: h.Lengths(), Want: to.Lengths()}
	}
	to.finish(err)
	h.finish(nil)
}

// finish ends a half.
func (h half) finish(err error) {
	q := h.queue
	q.mu.Lock()
	i := slices.Index(q.posted, h.Transfer)
	q.posted = slices.Delete(q.posted, i, i+1)
	q.over = append(q.over, result{h.Transfer, err})
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default: // it is awake
	}
}

// A queue is a [transport.Queue].
type queue struct {
	end  *Endpoint
	wake chan struct{} // has a value when something is over

	mu     sync.Mutex // guards what follows
	posted []*transport.Transfer
	over   []result

	since time.Time // of the wait under way, guarded by end.waitsMu
}

type result struct {
	transfer *transport.Transfer
	err      error
}

// NewQueue returns an empty queue.
func (e *Endpoint) NewQueue() transport.Queue {
	return &queue{end: e, wake: make(chan struct{}, 1)}
}

// Post starts transfers. A message whose other half is there is copied before it returns.
func (q *queue) Post(transfers ...*transport.Transfer) {
	e := q.end
	for _, t := range transfers {
		q.mu.Lock()
		q.posted = append(q.posted, t)
		q.mu.Unlock()
		h := half{t, q}
		if !e.isPeer(t.Rank) {
			h.finish(fmt.Errorf("rank %d cannot %v: not another rank of the group of %d", e.rank, t, e.Size()))
			continue
		}
		if t.Receive {
			if other, met := e.meet(stream{t.Rank, t.Tag}, h); met {
				other.copyTo(h, t.Rank)
			}
		} else if other, met := e.group.ends[t.Rank].meet(stream{e.rank, t.Tag}, h); met {
			h.copyTo(other, e.rank)
		}
	}
}

// Wait waits as [transport.Queue] says.
func (q *queue) Wait(ctx context.Context) (*transport.Transfer, error) {
	if t, err, done := q.next(ctx); done {
		return t, err
	}
	q.end.note(q)
	defer q.end.forget(q)
	for {
		select {
		case <-q.wake:
		case <-q.end.aborted:
		case <-ctx.Done():
		}
		if t, err, done := q.next(ctx); done {
			return t, err
		}
	}
}

// next returns what ends a wait, if something does.
func (q *queue) next(ctx context.Context) (t *transport.Transfer, err error, done bool) {
	if aborted := q.end.group.abort.Load(); aborted != nil {
		return nil, aborted, true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.over) > 0 {
		r := q.over[0]
		q.over = slices.Delete(q.over, 0, 1)
		return r.transfer, r.err, true
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx), true
	}
	return nil, nil, false
}

func (e *Endpoint) note(q *queue) {
	e.waitsMu.Lock()
	defer e.waitsMu.Unlock()
	q.since = time.Now()
	e.waits = append(e.waits, q)
}

func (e *Endpoint) forget(q *queue) {
	e.waitsMu.Lock()
	defer e.waitsMu.Unlock()
	i := slices.Index(e.waits, q)
	e.waits = slices.Delete(e.waits, i, i+1)
}

// Inquire looks whom a rank waits for. A closed one, and one that does something else, waits
// for nobody.
func (e *Endpoint) Inquire(_ context.Context, rank int) (whom int, since time.Duration, err error) {
	if !e.isPeer(rank) {
		return -1, 0, fmt.Errorf("rank %d cannot ask rank %d: not another rank of the group of %d", e.rank, rank, e.Size())
	}
	other := e.group.ends[rank]
	other.waitsMu.Lock()
	defer other.waitsMu.Unlock()
	for _, q := range other.waits {
		q.mu.Lock()
		defer q.mu.Unlock()
		if len(q.posted) > 0 {
			return q.posted[0].Rank, time.Since(q.since), nil
		}
	}
	return -1, 0, nil
}
