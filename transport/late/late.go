// Package late delays the messages of a transport, for tests and for people who watch a run.
package late

import (
	"context"
	"sync"
	"time"

	"volley/transport"
)

// A Queue hands messages on to a transport when their time has come, and those to one
// receiver with one tag in their order.
type Queue struct {
	mu   *sync.Mutex
	last map[stream]*sending // not yet handed on
	all  sync.WaitGroup
}

type stream struct {
	dst int
	tag transport.Tag
}

// New returns an empty queue. The caller of [Queue.Send] holds mu, and so does the queue
// when it hands a message on.
func New(mu *sync.Mutex) *Queue { return &Queue{mu: mu, last: map[stream]*sending{}} }

// Send calls hand, which starts the transfer: at once where there is nothing to wait for,
// else after the delay, or when ctx has ended, and after the messages ahead.
func (q *Queue) Send(ctx context.Context, dst int, tag transport.Tag, delay time.Duration, hand func() transport.Sending) transport.Sending {
	key := stream{dst, tag}
	ahead := q.last[key]
	if ahead == nil && delay == 0 {
		return hand()
	}
	s := &sending{handed: make(chan struct{})}
	q.last[key] = s
	q.all.Go(func() {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		if ahead != nil {
			<-ahead.handed
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		s.below = hand()
		if q.last[key] == s {
			delete(q.last, key)
		}
		close(s.handed)
	})
	return s
}

// Wait waits until all messages are handed on. The caller does not hold the lock.
func (q *Queue) Wait() { q.all.Wait() }

// A sending is a message that is not yet handed on.
type sending struct {
	handed chan struct{}
	below  transport.Sending // once handed
}

// Wait waits as [transport.Sending] says. Until the message is handed on, it notices no
// abort.
func (s *sending) Wait(ctx context.Context) error {
	select {
	case <-s.handed:
		return s.below.Wait(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
