// Package late delays the messages of a transport, for tests and for people who watch a run.
package late

import (
	"context"
	"sync"
	"time"

	"volley/transport"
)

// Delays hand messages on to a transport when their time has come, and those to one
// receiver with one tag in their order.
type Delays struct {
	mu   *sync.Mutex
	last map[stream]chan struct{} // closed when the message is handed on
	all  sync.WaitGroup
}

type stream struct {
	dst int
	tag transport.Tag
}

// New returns Delays without messages. The caller of [Delays.Post] holds mu, and so do the
// Delays when they hand a message on.
func New(mu *sync.Mutex) *Delays { return &Delays{mu: mu, last: map[stream]chan struct{}{}} }

// Post calls hand, which posts the message: at once where there is nothing to wait for,
// else after the delay, or when ctx has ended, and after the messages ahead.
func (d *Delays) Post(ctx context.Context, dst int, tag transport.Tag, delay time.Duration, hand func()) {
	key := stream{dst, tag}
	ahead := d.last[key]
	if ahead == nil && delay == 0 {
		hand()
		return
	}
	handed := make(chan struct{})
	d.last[key] = handed
	d.all.Go(func() {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		if ahead != nil {
			<-ahead
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		hand()
		if d.last[key] == handed {
			delete(d.last, key)
		}
		close(handed)
	})
}

// Wait waits until all messages are handed on. The caller does not hold the lock.
func (d *Delays) Wait() { d.all.Wait() }
