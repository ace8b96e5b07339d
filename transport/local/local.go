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
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"volley/transport"
	"volley/transport/waits"
)

// An Endpoint is one rank of a group.
type Endpoint struct {
	group   *group
	rank    int
	aborted chan struct{} // one per rank: a single one for all would be fought over
	waits   *waits.Registry
	host    *transport.Host // nil: of New

	mu     sync.Mutex       // guards what follows
	oldest map[stream]int32 // of the halves that wait
	halves []half           // that wait, and free ones
	free   int32            // a free half, or none
	closed bool
}

var (
	_ transport.Transport  = (*Endpoint)(nil)
	_ transport.Inquirer   = (*Endpoint)(nil)
	_ transport.HostSharer = (*Endpoint)(nil)
)

type group struct {
	ends  []*Endpoint // nil: at another rank of a transport
	abort atomic.Pointer[transport.AbortError]
	far   *far // nil: all ends are here
}

// New returns the ranks 0 … n-1 of a new group. It takes memory in proportion
// to n; whatever a pair of ranks needs is made when they talk.
func New(n int) []*Endpoint {
	g := &group{ends: make([]*Endpoint, n)}
	for r := range g.ends {
		g.open(r)
	}
	return slices.Clone(g.ends)
}

// open makes the end of a rank.
func (g *group) open(rank int) {
	aborted := make(chan struct{})
	e := &Endpoint{group: g, rank: rank, aborted: aborted, oldest: map[stream]int32{}, free: noHalf}
	e.waits = waits.New(aborted, func() error { return g.abort.Load() }, e.start)
	g.ends[rank] = e
}

// NewHosts is [New] for the ranks of hosts: so many on each, which may share memory, as processes of a host do. See
// [transport.HostSharer].
func NewHosts(ranks ...int) []*Endpoint {
	var hosts [][]int
	n := 0
	for h, count := range ranks {
		hosts = append(hosts, nil)
		for range count {
			hosts[h] = append(hosts[h], n)
			n++
		}
	}
	ends := New(n)
	for h, list := range hosts {
		for _, r := range list {
			e := ends[r]
			e.host = &transport.Host{Hosts: hosts, Local: h, Crowded: n > runtime.GOMAXPROCS(0), Yield: runtime.Gosched, Aborted: e.hasAborted}
		}
	}
	return ends
}

// Rank returns this rank.
func (e *Endpoint) Rank() int { return e.rank }

// Size returns the number of ranks of the group.
func (e *Endpoint) Size() int { return len(e.group.ends) }

// Host returns what ranks of a host of [NewHosts] share.
func (e *Endpoint) Host() *transport.Host { return e.host }

func (e *Endpoint) hasAborted() error {
	if abort := e.group.abort.Load(); abort != nil {
		return abort
	}
	return nil
}

// Abort ends the group; the first call at any rank counts.
func (e *Endpoint) Abort(cause error) {
	if e.group.end(&transport.AbortError{Rank: e.rank, Cause: cause}) && e.group.far != nil {
		e.group.far.Abort(cause)
	}
}

// end ends the waits of all ends here. It reports whether no other abort has.
func (g *group) end(abort *transport.AbortError) bool {
	if !g.abort.CompareAndSwap(nil, abort) {
		return false
	}
	for _, e := range g.ends {
		if e != nil {
			close(e.aborted)
		}
	}
	return true
}

// Close fails the transfers to this rank that have not met their other half,
// at the sender as well, with [transport.ErrClosed] or the abort before it. All that
// this rank has sent still arrives. Closing again does nothing.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.group.far != nil && !e.closed {
		e.group.far.leave()
	}
	e.closed = true
	for _, i := range e.oldest {
		for ; i != noHalf; i = e.halves[i].next {
			e.halves[i].finish(e.closedError())
		}
	}
	e.oldest, e.halves, e.free = nil, nil, noHalf
	if e.host != nil {
		e.host.Close(e.group.abort.Load() != nil)
	}
	return nil
}

// closedError says why this rank takes part no more. Who has not yet heard of an abort hears of it here.
func (e *Endpoint) closedError() error {
	if abort := e.group.abort.Load(); abort != nil {
		return abort
	}
	return fmt.Errorf("rank %d: %w", e.rank, transport.ErrClosed)
}

func (e *Endpoint) isPeer(r int) bool { return 0 <= r && r < e.Size() && r != e.rank }

// A stream is what keeps its order: the messages to one rank with the same
// sender and tag.
type stream struct {
	src int
	tag transport.Tag
}

// A half is a transfer at one of its ends. Those of a stream that wait lack the other half:
// either all are sends or all are receives.
type half struct {
	*transport.Transfer
	queue *waits.Queue
	next  int32 // of the stream, or of the free ones
}

const noHalf = -1

// meet returns the oldest half of a stream to this rank that goes with h; else h now waits for
// its own.
func (e *Endpoint) meet(key stream, h half) (partner half, met bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i, waits := e.oldest[key]
	if waits && e.halves[i].Receive != h.Receive {
		partner = e.halves[i]
		if e.oldest[key] = partner.next; partner.next == noHalf {
			delete(e.oldest, key)
		}
		e.halves[i], e.free = half{next: e.free}, i
		return partner, true
	}
	if e.closed {
		h.finish(e.closedError())
		return half{}, false
	}
	index := e.free
	if index == noHalf {
		index, e.halves = int32(len(e.halves)), append(e.halves, half{})
	} else {
		e.free = e.halves[index].next
	}
	e.halves[index] = h
	if !waits {
		e.oldest[key] = index
		return half{}, false
	}
	for e.halves[i].next != noHalf {
		i = e.halves[i].next
	}
	e.halves[i].next = index
	return half{}, false
}

// copyTo gives the message to the half that receives it, and ends both.
func (h half) copyTo(receiver half, src int) {
	var err error
	if slices.EqualFunc(h.Parts, receiver.Parts, func(a, b []byte) bool { return len(a) == len(b) }) {
		for i, part := range h.Parts {
			copy(receiver.Parts[i], part)
		}
	} else {
		err = &transport.LengthError{Src: src, Tag: h.Tag, Got: h.Lengths(), Want: receiver.Lengths()}
	}
	receiver.finish(err)
	h.finish(nil)
}

// finish ends a half.
func (h half) finish(err error) { h.queue.Finish(h.Transfer, err) }

// NewQueue returns an empty queue.
func (e *Endpoint) NewQueue() transport.Queue { return e.waits.NewQueue() }

// start starts a transfer. A message whose other half is there is copied before it returns.
func (e *Endpoint) start(q *waits.Queue, t *transport.Transfer) {
	h := half{t, q, noHalf}
	if !e.isPeer(t.Rank) {
		h.finish(fmt.Errorf("rank %d cannot %v: not another rank of the group of %d", e.rank, t, e.Size()))
	} else if abort := e.group.abort.Load(); abort != nil { // nothing goes to those who have not heard of it
		h.finish(abort)
	} else if e.group.ends[t.Rank] == nil {
		e.group.far.post(e.rank, h)
	} else if t.Receive {
		if partner, met := e.meet(stream{t.Rank, t.Tag}, h); met {
			partner.copyTo(h, t.Rank)
		}
	} else if partner, met := e.group.ends[t.Rank].meet(stream{e.rank, t.Tag}, h); met {
		h.copyTo(partner, e.rank)
	}
}

// Inquire looks whom a rank waits for. A closed one, and one that does something else, waits
// for nobody.
func (e *Endpoint) Inquire(ctx context.Context, rank int) (whom int, err error) {
	if !e.isPeer(rank) {
		return -1, fmt.Errorf("rank %d cannot ask rank %d: not another rank of the group of %d", e.rank, rank, e.Size())
	}
	if e.group.ends[rank] == nil {
		return e.group.far.Inquire(ctx, rank)
	}
	return e.group.ends[rank].waits.Oldest(), nil
}
