// Package delay delays the messages of a transport: to bound a rank's rate, for tests, and for people who watch a run.
package delay

import (
	"context"
	"sync"
	"time"

	"volley/internal/pace"
	"volley/transport"
)

type delayed struct {
	transport.Around
	ctx   context.Context
	delay func(*transport.Transfer) time.Duration

	mu      sync.Mutex // guards what follows, and calls of delay
	last    map[stream]chan struct{}
	sending sync.WaitGroup
}

// A stream is what keeps its order. The channel of its last message is closed when that is sent.
type stream struct {
	dst int
	tag transport.Tag
}

// New returns a transport that sends each message so much later than it is posted, or when ctx has ended, and those to
// one receiver with one tag in their order. Calls of delay do not overlap. Close waits until all are sent.
func New(ctx context.Context, t transport.Transport, delay func(*transport.Transfer) time.Duration) transport.Transport {
	return &delayed{Around: transport.Around{Transport: t}, ctx: ctx, delay: delay, last: map[stream]chan struct{}{}}
}

// Limit returns a transport that sends so many bytes a second on average. A message goes, at once, when those before
// it have had their time. One of [transport.ControlRounds] does not wait: others may give up a rank that says nothing.
func Limit(ctx context.Context, t transport.Transport, rate int64) transport.Transport {
	p := pace.New(rate)
	return New(ctx, t, func(t *transport.Transfer) time.Duration {
		delay := p.Take(int64(t.Bytes()))
		if t.Tag.Round < transport.ControlRounds {
			return 0
		}
		return delay
	})
}

type queue struct {
	transport.Queue
	delayed *delayed
}

// Gather is as [transport.Gather] says.
func (q queue) Gather(receives int) { transport.Gather(q.Queue, receives) }

func (l *delayed) NewQueue() transport.Queue { return queue{l.Transport.NewQueue(), l} }

func (q queue) Post(transfers ...*transport.Transfer) {
	l := q.delayed
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range transfers {
		if t.Receive {
			q.Queue.Post(t)
		} else {
			q.send(t, l.delay(t))
		}
	}
}

// send sends a message after the delay and after those ahead. The caller holds the lock.
func (q queue) send(t *transport.Transfer, delay time.Duration) {
	l, key := q.delayed, stream{t.Rank, t.Tag}
	ahead := l.last[key]
	if ahead == nil && delay == 0 {
		q.Queue.Post(t)
		return
	}
	sent := make(chan struct{})
	l.last[key] = sent
	l.sending.Go(func() {
		select {
		case <-time.After(delay):
		case <-l.ctx.Done():
		}
		if ahead != nil {
			<-ahead
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		q.Queue.Post(t)
		if l.last[key] == sent {
			delete(l.last, key)
		}
		close(sent)
	})
}

func (l *delayed) Close() error {
	l.sending.Wait()
	return l.Transport.Close()
}
