// Package local connects ranks that live in one process.
//
// Messages pass by reference: what a rank receives is the sender's own memory,
// and the sender's Wait returns when the receiver has released it. Nothing is
// copied, no goroutine runs, and what a message takes is used again once the
// sender's Wait has returned: a group at work allocates nothing.
//
// The i-th send of a (sender, receiver, tag) always meets its i-th receive.
// Where the receiver has given up by then, because its ctx ended, or asked for
// other lengths, the message is discarded and its sender released.
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

	mu     sync.Mutex // guards what follows, and all transfers to this rank
	queues map[stream]queue
	closed bool

	waitsMu sync.Mutex
	waits   []await // under way
}

// An await is whom a rank waits for, and since when.
type await struct {
	rank  int
	since time.Time
}

var (
	_ transport.Transport = (*Endpoint)(nil)
	_ transport.Inquirer  = (*Endpoint)(nil)
)

type group struct {
	ends  []*Endpoint
	abort atomic.Pointer[transport.AbortError]

	// Not global: a channel of a synctest bubble may not leave it.
	wakes     sync.Pool // idle wake channels
	transfers sync.Pool // transfers that are over
}

// New returns the ranks 0 … n-1 of a new group. It takes memory in proportion
// to n; whatever a pair of ranks needs is made when they talk.
func New(n int) []*Endpoint {
	g := &group{ends: make([]*Endpoint, n)}
	g.wakes.New = func() any { return make(chan struct{}, 1) }
	g.transfers.New = func() any {
		t := new(transfer)
		t.release = t.end
		return t
	}
	for r := range g.ends {
		g.ends[r] = &Endpoint{group: g, rank: r, aborted: make(chan struct{})}
	}
	return slices.Clone(g.ends)
}

// Rank returns this rank.
func (e *Endpoint) Rank() int { return e.rank }

// Size returns the number of ranks of the group.
func (e *Endpoint) Size() int { return len(e.group.ends) }

// Send hands the parts themselves to rank dst.
func (e *Endpoint) Send(dst int, tag transport.Tag, parts [][]byte) transport.Sending {
	if !e.isPeer(dst) {
		return (*sending)(e.failed("send to", dst))
	}
	to := e.group.ends[dst]
	to.mu.Lock()
	defer to.mu.Unlock()
	t, met := to.meet(e, tag, sent)
	t.parts = parts
	if met {
		t.deliver()
	}
	return (*sending)(t)
}

// Receive takes the parts from rank src as they lie in its memory.
func (e *Endpoint) Receive(src int, tag transport.Tag, lengths []int) transport.Receiving {
	if !e.isPeer(src) {
		return (*receiving)(e.failed("receive from", src))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	t, met := e.meet(e.group.ends[src], tag, asked)
	t.lengths = lengths
	if met {
		t.deliver()
	}
	return (*receiving)(t)
}

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
	for _, q := range e.queues {
		for t := q.head; t != nil; t = t.next {
			t.fail(e.closedError())
		}
	}
	e.queues = nil
	return nil
}

func (e *Endpoint) closedError() error { return fmt.Errorf("rank %d: %w", e.rank, transport.ErrClosed) }

func (e *Endpoint) isPeer(r int) bool { return 0 <= r && r < e.Size() && r != e.rank }

// failed returns a transfer that never was.
func (e *Endpoint) failed(doing string, r int) *transfer {
	t := &transfer{from: e, to: e}
	t.fail(fmt.Errorf("rank %d cannot %s rank %d: not another rank of the group of %d", e.rank, doing, r, e.Size()))
	return t
}

// A stream is what keeps its order: the messages to one rank with the same
// sender and tag.
type stream struct {
	src int
	tag transport.Tag
}

// A queue lists transfers, oldest first, that have the same half and lack the
// other: either all were sent or all were asked for.
type queue struct {
	head, tail *transfer
}

// A transfer is one message with both its ends. Whoever comes first, sender or
// receiver, makes it; the other finds it in the receiver's queue.
type transfer struct {
	from, to *Endpoint // to.mu guards what follows
	tag      transport.Tag
	first    side      // the half it was made for
	next     *transfer // in the queue

	parts    [][]byte // once sent
	lengths  []int    // once asked for
	send     half
	receive  half
	released bool

	release func() // end, made once
}

type side bool

const (
	sent  side = false
	asked side = true
)

// A half is a transfer as its sender or its receiver sees it.
type half struct {
	done bool
	err  error
	wake chan struct{} // of the Wait under way
}

// meet returns the oldest transfer from src that lacks this side, or a new one
// that now waits for the other. The caller holds e.mu.
func (e *Endpoint) meet(src *Endpoint, tag transport.Tag, s side) (t *transfer, met bool) {
	key := stream{src.rank, tag}
	q := e.queues[key]
	if t := q.head; t != nil && t.first != s {
		if q.head, t.next = t.next, nil; q.head == nil {
			delete(e.queues, key) // a tag seldom comes back
		} else {
			e.queues[key] = q
		}
		return t, true
	}
	t = e.group.transfers.Get().(*transfer)
	*t = transfer{from: src, to: e, tag: tag, first: s, release: t.release}
	if e.closed {
		t.fail(e.closedError())
		return t, false
	}
	if q.head == nil {
		q.head = t
	} else {
		q.tail.next = t
	}
	q.tail = t
	if e.queues == nil {
		e.queues = make(map[stream]queue)
	}
	e.queues[key] = q
	return t, false
}

// deliver completes the receive of a transfer that has both halves. The caller
// holds to.mu.
func (t *transfer) deliver() {
	if t.receive.done { // the receiver gave up
		t.send.finish(nil)
		return
	}
	if !slices.EqualFunc(t.parts, t.lengths, func(part []byte, n int) bool { return len(part) == n }) {
		got := make([]int, len(t.parts))
		for i, part := range t.parts {
			got[i] = len(part)
		}
		t.receive.finish(&transport.LengthError{
			Src: t.from.rank, Tag: t.tag, Got: got, Want: slices.Clone(t.lengths),
		})
		t.send.finish(nil)
		return
	}
	t.receive.finish(nil)
}

func (t *transfer) fail(err error) {
	t.send.finish(err)
	t.receive.finish(err)
}

// end is the receiver's Release.
func (t *transfer) end() {
	t.to.mu.Lock()
	defer t.to.mu.Unlock()
	if t.released {
		panic(fmt.Sprintf("local: message from rank %d to rank %d, %v, released twice", t.from.rank, t.to.rank, t.tag))
	}
	t.released = true
	t.send.finish(nil)
}

// finish ends a half, unless it gave up before. The caller holds to.mu.
func (h *half) finish(err error) {
	if h.done {
		return
	}
	h.done, h.err = true, err
	if h.wake != nil {
		h.wake <- struct{}{} // has room: a half finishes once
	}
}

// wait waits for the half h of t on behalf of rank e.
func (t *transfer) wait(ctx context.Context, e *Endpoint, h *half) error {
	if aborted := e.group.abort.Load(); aborted != nil {
		return aborted
	}
	t.to.mu.Lock()
	if h.done {
		t.to.mu.Unlock()
		return h.err
	}
	wake := e.group.wakes.Get().(chan struct{})
	h.wake = wake
	t.to.mu.Unlock()
	w := await{t.from.rank, time.Now()}
	if e == t.from {
		w.rank = t.to.rank
	}
	e.note(w)
	defer e.forget(w)

	select {
	case <-wake:
		e.group.wakes.Put(wake)
		if aborted := e.group.abort.Load(); aborted != nil { // one that has heard of it may still send
			return aborted
		}
		return h.err
	case <-e.aborted:
		return e.group.abort.Load()
	case <-ctx.Done():
		t.to.mu.Lock()
		defer t.to.mu.Unlock()
		h.wake = nil
		h.finish(context.Cause(ctx)) // or it was finished meanwhile: a message must not get lost
		return h.err
	}
}

func (e *Endpoint) note(w await) {
	e.waitsMu.Lock()
	defer e.waitsMu.Unlock()
	e.waits = append(e.waits, w)
}

func (e *Endpoint) forget(w await) {
	e.waitsMu.Lock()
	defer e.waitsMu.Unlock()
	i := slices.Index(e.waits, w)
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
	if len(other.waits) == 0 {
		return -1, 0, nil
	}
	return other.waits[0].rank, time.Since(other.waits[0].since), nil // the oldest
}

type sending transfer

func (s *sending) Wait(ctx context.Context) error {
	t := (*transfer)(s)
	err := t.wait(ctx, t.from, &t.send)
	if err != nil {
		return err
	}
	t.to.mu.Lock()
	over := t.released // else the receiver may still look at it
	t.to.mu.Unlock()
	if over {
		t.parts, t.lengths = nil, nil
		t.from.group.transfers.Put(t)
	}
	return nil
}

type receiving transfer

func (r *receiving) Wait(ctx context.Context) (transport.Message, error) {
	t := (*transfer)(r)
	if err := t.wait(ctx, t.to, &t.receive); err != nil {
		return transport.Message{}, err
	}
	return transport.Message{Parts: t.parts, Release: t.release}, nil
}
