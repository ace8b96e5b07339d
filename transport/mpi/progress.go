//go:build mpi

package mpi

import (
	"context"
	"slices"
	"time"

	"volley/transport"
)

// progress does what can be done at once. The caller holds the lock.
func (e *Endpoint) progress() {
	engine.progressed.Store(time.Now().UnixNano())
	if err := e.poll(); err != nil {
		e.end(&transport.AbortError{Rank: e.rank, Cause: err})
	}
	e.sends = slices.DeleteFunc(e.sends, (*sending).advance)
	for key, queue := range e.posted {
		n := 0
		for n < len(queue) && queue[n].advance() {
			n++
		}
		if e.posted[key] = slices.Delete(queue, 0, n); n == len(queue) {
			delete(e.posted, key) // a tag seldom comes back
		}
	}
	e.checkLengths()
	e.clear()
	e.controlSends = slices.DeleteFunc(e.controlSends, func(r *request) bool { return r.over })
	for e.controlReceive != nil && e.controlReceive.over {
		e.readControl()
	}
}

// A wait is one under way.
type wait struct {
	rank  int // whom it is for
	since time.Time
}

// Waits poll as soon as they begin and then ever more seldom, unless they are woken, so that
// a long one costs little and adds little to its own length: there may be many more ranks
// than cores.
const (
	spin       = 20 * time.Microsecond
	leastSleep = 20 * time.Microsecond
	mostSleep  = 5 * time.Millisecond
	sleepShare = 6                     // of the time waited so far
	mostPoll   = 20 * time.Millisecond // in C, until ctx is looked at
)

// wait waits until the transfer is done, or the group or ctx ends. Given up, it calls abandon.
func (t *transfer) wait(ctx context.Context, abandon func()) error {
	e := t.e
	begun := time.Now()
	w := &wait{t.rank, begun}
	engine.waits.Add(1)
	defer engine.waits.Add(-1)
	for turn := 0; ; turn++ {
		var done bool
		var err error
		call(func() {
			if turn > 0 {
				e.progress()
			}
			if e.abort != nil {
				done, err = true, e.abort
			} else if done, err = t.done, t.err; !done && ctx.Err() != nil {
				abandon()
				e.broken = true
				done, err = true, context.Cause(ctx)
			}
			if done {
				delete(e.waits, w)
			} else if turn == 0 {
				e.waits[w] = true
			}
		})
		if done {
			return err
		}
		if waited := time.Since(begun); waited > spin {
			call(func() {
				engine.asleep.Store(true)
				err := e.pollFor(waited, &engine.wanted)
				if engine.asleep.Store(false); err != nil {
					e.end(&transport.AbortError{Rank: e.rank, Cause: err})
				}
			})
		}
	}
}
