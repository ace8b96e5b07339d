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
	"time"

	"volley/transport"
)

// All are the waits under way at a rank.
type All struct {
	aborted <-chan struct{}
	cause   func() error
	start   func(*Queue, *transport.Transfer)

	mu     sync.Mutex // guards what follows, and since of the queues
	queues []*Queue   // that somebody waits for, or has given up, oldest wait first
}

// New returns no waits. All waits end with the cause once aborted is closed. Start starts a transfer that was
// posted to a queue, and has [Queue.Finish] called when it is over, also where it cannot be started.
func New(aborted <-chan struct{}, cause func() error, start func(*Queue, *transport.Transfer)) *All {
	return &All{aborted: aborted, cause: cause, start: start}
}

// Oldest returns whom the rank has waited for the longest, and for how long; -1 is nobody. Waits given up count, too.
func (w *All) Oldest() (rank int, waited time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range w.queues {
		q.mu.Lock()
		defer q.mu.Unlock()
		if len(q.posted) > 0 {
			return q.posted[0].Rank, time.Since(q.since)
		}
	}
	return -1, 0
}

// A Queue is a [transport.Queue].
type Queue struct {
	all   *All
	wake  chan struct{} // has a value when something is over
	since time.Time     // of the wait under way

	mu     sync.Mutex // guards what follows; it is locked last
	posted []*transport.Transfer
	over   []result
}

type result struct {
	transfer *transport.Transfer
	err      error
}

// NewQueue returns an empty queue.
func (w *All) NewQueue() *Queue { return &Queue{all: w, wake: make(chan struct{}, 1)} }

// Post starts transfers.
func (q *Queue) Post(transfers ...*transport.Transfer) {
	q.mu.Lock()
	q.posted = append(q.posted, transfers...)
	q.mu.Unlock()
	for _, t := range transfers {
		q.all.start(q, t)
	}
}

// Finish makes a transfer over, unless it is over already.
func (q *Queue) Finish(t *transport.Transfer, err error) {
	q.mu.Lock()
	if i := slices.Index(q.posted, t); i >= 0 {
		q.posted = slices.Delete(q.posted, i, i+1)
		q.over = append(q.over, result{t, err})
	}
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default: // it is awake
	}
}

// Wait waits as [transport.Queue] says.
func (q *Queue) Wait(ctx context.Context) (t *transport.Transfer, err error) {
	if t, err, done := q.next(ctx); done {
		return t, err
	}
	w := q.all
	w.mu.Lock()
	if !slices.Contains(w.queues, q) {
		q.since = time.Now()
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
		if t, err, done := q.next(ctx); done {
			return t, err
		}
	}
}

// next returns what ends a wait, if something does.
func (q *Queue) next(ctx context.Context) (t *transport.Transfer, err error, done bool) {
	select {
	case <-q.all.aborted:
		return nil, q.all.cause(), true
	default:
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
