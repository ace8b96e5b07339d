package grpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/mem"

	"volley/transport"
	"volley/transport/waits"
)

// An Endpoint is this process's rank of a run. Any number of goroutines may use it at once.
type Endpoint struct {
	listener  *Listener
	rank      int
	addresses []string // of all ranks
	run       string   // the same at all ranks, and of no other run
	streams   context.Context
	endAll    context.CancelFunc
	running   sync.WaitGroup
	aborted   chan struct{}
	waits     *waits.All

	mu        sync.Mutex // guards what follows, and what lies in peers and transfers
	peers     []*peer    // nil: this rank
	abort     *transport.AbortError
	answers   map[uint64]chan answer
	questions uint64
	closed    bool
}

var (
	_ transport.Transport  = (*Endpoint)(nil)
	_ transport.Inquirer   = (*Endpoint)(nil)
	_ transport.CoreSharer = (*Endpoint)(nil)
)

// answer is what a rank says of itself.
type answer struct {
	rank int // that it waits for, or -1
	time time.Duration
}

// Rank returns this rank.
func (e *Endpoint) Rank() int { return e.rank }

// Size returns the number of ranks of the run.
func (e *Endpoint) Size() int { return len(e.addresses) }

// Cores returns this rank's share of the cores of its machine.
func (e *Endpoint) Cores() int { return max(1, runtime.GOMAXPROCS(0)/e.here()) }

// Overlaps reports whether there are several machines, or two cores for each rank.
func (e *Endpoint) Overlaps() bool { return e.here() < e.Size() || 2*e.Size() <= runtime.NumCPU() }

// here returns how many ranks have the host of this one.
func (e *Endpoint) here() (n int) {
	own, _, _ := net.SplitHostPort(e.addresses[e.rank])
	for _, address := range e.addresses {
		if host, _, _ := net.SplitHostPort(address); host == own {
			n++
		}
	}
	return n
}

type transfer struct {
	*transport.Transfer
	queue   *waits.Queue
	size    int
	moved   int          // bytes that were put into frames, or received
	left    atomic.Int64 // of a send: bytes that are not written, and one for the head
	number  uint32       // how many of its tag were before it
	cleared bool         // of a receive: its sender was told clear-to-send
}

// fragment returns the next n bytes of the transfer, where they lie.
func (t *transfer) fragment(n int) (parts [][]byte) {
	at := t.moved
	t.moved += n
	for _, part := range t.Parts {
		if at < len(part) && n > 0 {
			part = part[at:min(len(part), at+n)]
			parts = append(parts, part)
			n -= len(part)
			at = 0
		} else {
			at -= min(at, len(part))
		}
	}
	return parts
}

// fill puts what has come where it belongs.
func fill(fragment [][]byte, from *mem.Reader) {
	for _, part := range fragment {
		io.ReadFull(from, part) // it lies in memory
	}
}

// wrote notes that so many bytes of a send have been written.
func (t *transfer) wrote(n int) {
	if t.left.Add(-int64(n)) == 0 {
		t.queue.Finish(t.Transfer, nil)
	}
}

// NewQueue returns an empty queue.
func (e *Endpoint) NewQueue() transport.Queue { return e.waits.NewQueue() }

// start starts a transfer.
func (e *Endpoint) start(q *waits.Queue, what *transport.Transfer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := &transfer{Transfer: what, queue: q, size: what.Bytes()}
	p, err := e.peer(what.Rank)
	switch {
	case err != nil:
		q.Finish(what, fmt.Errorf("rank %d cannot %v: %w", e.rank, what, err))
	case e.abort != nil: // nothing goes to those who have not heard of it
		q.Finish(what, e.abort)
	case e.closed:
		q.Finish(what, fmt.Errorf("rank %d: %w", e.rank, transport.ErrClosed))
	case min(what.Tag.Round, what.Tag.Port) < 0 || uint64(max(what.Tag.Round, what.Tag.Port)) > math.MaxUint32:
		q.Finish(what, fmt.Errorf("rank %d cannot %v: %v is not a tag", e.rank, what, what.Tag))
	case what.Receive:
		p.receive(t)
	default:
		p.send(t)
	}
}

func (e *Endpoint) peer(r int) (*peer, error) {
	if r < 0 || r >= e.Size() || r == e.rank {
		return nil, fmt.Errorf("rank %d is not another rank of the run of %d", r, e.Size())
	}
	return e.peers[r], nil
}

// Inquire asks a rank for whom it has waited longest, and for how long; -1 is nobody. It fails when ctx or the run ends.
func (e *Endpoint) Inquire(ctx context.Context, rank int) (int, time.Duration, error) {
	to := make(chan answer, 1)
	e.mu.Lock()
	p, err := e.peer(rank)
	switch {
	case err != nil:
	case e.abort != nil:
		err = e.abort
	case p.left || e.closed:
		err = errLeft(rank)
	}
	if err != nil {
		e.mu.Unlock()
		return -1, 0, fmt.Errorf("rank %d cannot ask rank %d: %w", e.rank, rank, err)
	}
	e.questions++
	number := e.questions
	e.answers[number] = to
	p.connect()
	p.push(&frame{kind: askFrame, n: number})
	e.mu.Unlock()
	select {
	case a := <-to:
		return a.rank, a.time, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-e.aborted:
		err = e.abort
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.answers, number)
	return -1, 0, fmt.Errorf("rank %d does not answer: %w", rank, err)
}

// Abort ends the run; the first one that this rank hears of counts for it. After Close it does nothing.
func (e *Endpoint) Abort(cause error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stop(cause)
}

// stop is Abort for who holds the lock.
func (e *Endpoint) stop(cause error) {
	if e.abort != nil || e.closed {
		return
	}
	e.end(&transport.AbortError{Rank: e.rank, Cause: cause})
	for _, p := range e.peers {
		if p != nil && !p.left {
			p.connect()
			p.tellAbort()
		}
	}
}

// end notes the first abort.
func (e *Endpoint) end(err *transport.AbortError) {
	if e.abort == nil {
		e.abort = err
		close(e.aborted)
	}
}

// hearAbort waits for an abort that a peer found closed may have heard first, or for Close, but not long.
func (e *Endpoint) hearAbort() {
	select {
	case <-e.aborted:
	case <-e.streams.Done():
	case <-time.After(e.listener.limits.Abort):
	}
}

// Close gives up what is under way. It returns when every peer has what was sent to it, or does not say so for a while.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	var read []<-chan struct{}
	for _, p := range e.peers {
		if p != nil && !p.left && (p.link != nil || p.connecting) {
			p.rests = nil
			if e.abort != nil { // the peer may hear of the bye first, and take it for the cause
				p.tellAbort()
			}
			p.push(&frame{kind: byeFrame})
			read = append(read, p.read)
		}
	}
	e.mu.Unlock()
	limit, cancel := context.WithTimeout(context.Background(), e.listener.limits.Close)
	defer cancel()
	for _, r := range read {
		select {
		case <-r:
		case <-limit.Done():
		}
	}
	e.endAll()
	e.running.Wait()
	return nil
}

// errLeft says that a peer has closed.
func errLeft(rank int) error { return fmt.Errorf("rank %d: %w", rank, transport.ErrClosed) }

// lost ends the run as a peer is gone.
func (e *Endpoint) lost(p *peer, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p.readAll()
	if p.left || e.closed {
		return
	}
	peer, own := e.addresses[p.rank], e.addresses[e.rank]
	unreached, open := new(UnreachedError), ""
	if errors.As(err, &unreached) {
		unreached.From = own
		open = unreached.toOpen()
	}
	switch {
	case open == "":
		err = fmt.Errorf("rank %d, at %s, is gone or cannot be reached from rank %d, at %s: %w", p.rank, peer, e.rank, own, err)
	case unreached.Refused():
		err = fmt.Errorf("rank %d, at %s, is gone or cannot be reached from rank %d, at %s: %w; if it runs, %s", p.rank, peer, e.rank, own, err, open)
	default:
		err = fmt.Errorf("rank %d cannot connect to rank %d at %s: %w; %s", e.rank, p.rank, peer, err, open)
	}
	e.stop(err)
}
