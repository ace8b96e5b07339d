// Package waits has the completion queues of a transport: which transfers are under way or over, and whom a rank waits for.
// A transport says what it does with a transfer that is posted, and finishes each:
//
//	e.waits = waits.New(e.aborted, e.cause, e.start) // start starts a transfer
//	e.waits.NewQueue()                              // is NewQueue of the transport
//	q.Finish(t, err)                                // when t is over, by anyone
//	e.waits.Oldest()                                // is what Inquire is told of this rank
package waits

import (
	"context"
	"slices"
	"sync"

	"volley/transport"
)

// A Registry has the waits under way at a rank.
type Registry struct {
	aborted <-chan struct{}
	cause   func() error
	start   func(*Queue, *transport.Transfer)

	mu     sync.Mutex // guards what follows
	queues []*Queue   // that somebody waits for, or has given up, oldest wait first
}

// New returns no waits. All waits end with the cause once aborted is closed. Start starts a transfer that was
// posted to a queue, and has [Queue.Finish] called when it is over, also where it cannot be started.
func New(aborted <-chan struct{}, cause func() error, start func(*Queue, *transport.Transfer)) *Registry {
	return &Registry{aborted: aborted, cause: cause, start: start}
}

// Oldest returns whom the rank has waited for the longest; -1 is nobody. Waits given up count, too.
func (w *Registry) Oldest() (rank int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range w.queues {
		q.mu.Lock()
		defer q.mu.Unlock()
		if len(q.posted) > 0 {
			return q.posted[0].Rank
		}
	}
	return -1
}

// A Queue is a [transport.Queue].
type Queue struct {
	registry *Registry
	wake     chan struct{} // has a value when something is over

	mu       sync.Mutex // guards what follows; it is locked last
	posted   []*transport.Transfer
	finished []result
}

type result struct {
	transfer *transport.Transfer
	err      error
}

// NewQueue returns an empty queue.
func (w *Registry) NewQueue() *Queue { return &Queue{registry: w, wake: make(chan struct{}, 1)} }

// Post starts transfers.
func (q *Queue) Post(transfers ...*transport.Transfer) {
	q.mu.Lock()
	q.posted = append(q.posted, transfers...)
	q.mu.Unlock()
	for _, t := range transfers {
		q.registry.start(q, t)
	}
}

// Finish makes a transfer over, unless it is over already.
func (q *Queue) Finish(t *transport.Transfer, err error) {
	q.mu.Lock()
	if i := slices.Index(q.posted, t); i >= 0 {
		q.posted = slices.Delete(q.posted, i, i+1)
		q.finished = append(q.finished, result{t, err})
	}
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default: // it is awake
	}
}

// Wait waits as [transport.Queue] says.
func (q *Queue) Wait(ctx context.Context) (t *transport.Transfer, err error) {
	if t, err, ended := q.next(ctx); ended {
		return t, err
	}
	w := q.registry
	w.mu.Lock()
	if !slices.Contains(w.queues, q) {
		w.queues = append(w.queues, q)
	}
	w.mu.Unlock()
	defer func() {
		if t == nil {
			return // given up
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		i := slices.Index(w.queues, q)
		w.queues = slices.Delete(w.queues, i, i+1)
	}()
	for {
		select {
		case <-q.wake:
		case <-w.aborted:
		case <-ctx.Done():
		}
		if t, err, ended := q.next(ctx); ended {
			return t, err
		}
	}
}

// next returns what ends a wait, if something does.
func (q *Queue) next(ctx context.Context) (t *transport.Transfer, err error, ended bool) {
	select {
	case <-q.registry.aborted:
		return nil, q.registry.cause(), true
	default:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.finished) > 0 {
		r := q.finished[0]
		q.finished = slices.Delete(q.finished, 0, 1)
		return r.transfer, r.err, true
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx), true
	}
	return nil, nil, false
}
