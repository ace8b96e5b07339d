package tcp

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

	"volley/transport"
	"volley/transport/waits"
)

// An Endpoint is this process's rank of a run. Any number of goroutines may use it at once.
type Endpoint struct {
	listener  *Listener
	rank      int
	addresses []string        // of all ranks
	run       string          // the same at all ranks, and of no other run
	open      context.Context // ends with all connections
	end       context.CancelFunc
	running   sync.WaitGroup
	host      *transport.Host
	aborted   chan struct{}
	waits     *waits.Registry

	mu        sync.Mutex // guards what follows, and what lies in peers and transfers
	peers     []*peer    // nil: this rank
	abort     *transport.AbortError
	answers   map[uint64]chan int // of the rank that another one waits for, or -1
	questions uint64
	closed    bool
}

var (
	_ transport.Transport  = (*Endpoint)(nil)
	_ transport.Inquirer   = (*Endpoint)(nil)
	_ transport.CoreSharer = (*Endpoint)(nil)
	_ transport.HostSharer = (*Endpoint)(nil)
)

// Rank returns this rank.
func (e *Endpoint) Rank() int { return e.rank }

// Size returns the number of ranks of the run.
func (e *Endpoint) Size() int { return len(e.addresses) }

// Cores returns this rank's share of the cores of its machine.
func (e *Endpoint) Cores() int { return max(1, runtime.GOMAXPROCS(0)/e.neighbours()) }

// Overlaps reports whether there are several machines, or two cores for each rank.
func (e *Endpoint) Overlaps() bool {
	return e.neighbours() < e.Size() || 2*e.Size() <= runtime.NumCPU()
}

// neighbours returns how many ranks have the host of this one.
func (e *Endpoint) neighbours() int { return len(e.host.Hosts[e.host.Local]) }

// Host returns what the ranks share whose addresses have the host of this one.
func (e *Endpoint) Host() *transport.Host { return e.host }

func (e *Endpoint) findHost() *transport.Host {
	names := make([]string, len(e.addresses))
	for r, address := range e.addresses {
		names[r], _, _ = net.SplitHostPort(address)
	}
	h := &transport.Host{Separate: true, Yield: transport.Yield, Aborted: e.hasAborted}
	h.Hosts, h.Local = transport.ByHost(names, e.rank)
	h.Crowded = len(h.Hosts[h.Local]) > runtime.NumCPU()
	return h
}

func (e *Endpoint) hasAborted() error {
	select {
	case <-e.aborted:
		return e.abort
	default:
		return nil
	}
}

type transfer struct {
	*transport.Transfer
	queue     *waits.Queue
	size      int
	moved     int          // bytes that were put into frames, or whose frames have come
	remaining atomic.Int64 // bytes that are not written, or not read, and one for the head
	number    uint32       // how many of its tag were before it
	cleared   bool         // of a receive: its sender was told clear-to-send
}

var transfers = sync.Pool{New: func() any { return new(transfer) }}

// cut appends size bytes of the transfer, where they lie.
func (t *transfer) cut(list [][]byte, offset, size int) [][]byte {
	for _, part := range t.Parts {
		skipped := min(offset, len(part))
		if part = part[skipped:min(len(part), skipped+size)]; len(part) > 0 {
			list = append(list, part)
		}
		offset -= skipped
		size -= len(part)
	}
	return list
}

// fill reads what has come to where it belongs.
func (t *transfer) fill(c *conn, offset, size int) error {
	c.parts = t.cut(c.parts[:0], offset, size)
	defer clear(c.parts)
	for _, part := range c.parts {
		if _, err := io.ReadFull(c.reader, part); err != nil {
			return err
		}
	}
	return nil
}

// passed notes that so many bytes have been written, or read to where they belong.
func (t *transfer) passed(size int) {
	if t.remaining.Add(-int64(size)) == 0 {
		t.queue.Finish(t.Transfer, nil)
		t.Transfer, t.queue = nil, nil
		transfers.Put(t)
	}
}

// NewQueue returns an empty queue.
func (e *Endpoint) NewQueue() transport.Queue { return e.waits.NewQueue() }

// start starts a transfer.
func (e *Endpoint) start(q *waits.Queue, wanted *transport.Transfer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, err := e.peer(wanted.Rank)
	tag := wanted.Tag
	switch {
	case err != nil:
		err = fmt.Errorf("rank %d cannot %v: %w", e.rank, wanted, err)
	case e.abort != nil: // nothing goes to those who have not heard of it
		err = e.abort
	case e.closed:
		err = fmt.Errorf("rank %d: %w", e.rank, transport.ErrClosed)
	case min(tag.Round, tag.Port) < 0 || uint64(max(tag.Round, tag.Port)) > math.MaxUint32:
		err = fmt.Errorf("rank %d cannot %v: %v is not a tag", e.rank, wanted, tag)
	case p.closed && !wanted.Receive:
		err = errLeft(p.rank)
	}
	if err != nil {
		q.Finish(wanted, err)
		return
	}
	t := transfers.Get().(*transfer)
	t.Transfer, t.queue, t.size, t.moved, t.cleared = wanted, q, wanted.Bytes(), 0, false
	t.remaining.Store(int64(t.size) + 1)
	if wanted.Receive {
		p.receive(t)
	} else {
		p.send(t)
	}
}

func (e *Endpoint) peer(r int) (*peer, error) {
	if r < 0 || r >= e.Size() || r == e.rank {
		return nil, fmt.Errorf("rank %d is not another rank of the run of %d", r, e.Size())
	}
	return e.peers[r], nil
}

// Inquire asks a rank for whom it has waited longest; -1 is nobody. It fails when ctx or the run ends.
func (e *Endpoint) Inquire(ctx context.Context, rank int) (int, error) {
	reply := make(chan int, 1)
	number, err := e.ask(rank, reply)
	if err != nil {
		return -1, fmt.Errorf("rank %d cannot ask rank %d: %w", e.rank, rank, err)
	}
	select {
	case whom := <-reply:
		return whom, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-e.aborted:
		err = e.abort
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.answers, number)
	return -1, fmt.Errorf("rank %d does not answer: %w", rank, err)
}

func (e *Endpoint) ask(rank int, reply chan int) (number uint64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, err := e.peer(rank)
	switch {
	case err != nil:
		return 0, err
	case e.abort != nil:
		return 0, e.abort
	case p.closed || e.closed:
		return 0, errLeft(rank)
	}
	e.questions++
	e.answers[e.questions] = reply
	p.connect()
	p.push(frame{kind: askFrame, n: e.questions})
	return e.questions, nil
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
	e.heard(&transport.AbortError{Rank: e.rank, Cause: cause})
	for _, p := range e.peers {
		if p != nil && !p.closed {
			p.connect()
			p.tellAbort()
		}
	}
}

// heard notes the first abort.
func (e *Endpoint) heard(err *transport.AbortError) {
	if e.abort == nil {
		e.abort = err
		close(e.aborted)
	}
}

// hearAbort waits for an abort that a peer found closed may have heard first, or for Close, but not long.
func (e *Endpoint) hearAbort() {
	select {
	case <-e.aborted:
	case <-e.open.Done():
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
		if p != nil && !p.closed && (p.link != nil || p.connecting) {
			p.rests = nil
			if e.abort != nil { // the peer may hear of the bye first, and take it for the cause
				p.tellAbort()
			}
			p.push(frame{kind: byeFrame})
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
	e.end()
	e.running.Wait()
	e.host.Close(e.hasAborted() != nil)
	return nil
}

// errLeft says that a peer has closed.
func errLeft(rank int) error { return fmt.Errorf("rank %d: %w", rank, transport.ErrClosed) }

// lost ends the run as a peer is gone.
func (e *Endpoint) lost(p *peer, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p.readAll()
	if p.closed || e.closed {
		return
	}
	local, advice := e.addresses[e.rank], ""
	if unreached := new(UnreachedError); errors.As(err, &unreached) {
		unreached.Source = local
		advice = unreached.advice()
	}
	e.stop(fmt.Errorf("rank %d, at %s, is gone or cannot be reached from rank %d, at %s: %w%s", p.rank, e.addresses[p.rank], e.rank, local, err, advice))
}
