package explore

import (
	"context"
	"sync"
	"time"

	"volley/sim"
	"volley/transport"
	"volley/transport/late"
)

// A pace is how slow messages are.
type pace struct {
	beta time.Duration // each takes so long,
	tau  sim.PerByte   // and so long for each byte
}

// A link is a transport on which messages of packets arrive no earlier than the pace says.
// Those of the agreement on a run and of its check arrive at once.
type link struct {
	transport.Transport
	pace pace
	ctx  context.Context // what is under way ends with it

	mu   sync.Mutex
	late *late.Delays
}

func newLink(ctx context.Context, t transport.Transport, p pace) *link {
	l := &link{Transport: t, pace: p, ctx: ctx}
	l.late = late.New(&l.mu)
	return l
}

// time returns how long a message takes.
func (l *link) time(t *transport.Transfer) time.Duration {
	if t.Tag.Round < transport.ControlRounds {
		return 0
	}
	bytes := 0
	for _, part := range t.Parts {
		bytes += len(part)
	}
	return l.pace.beta + time.Duration(float64(bytes)*float64(l.pace.tau)*float64(time.Second))
}

// A slowQueue hands messages on when their time is over, and those of a stream in their order.
type slowQueue struct {
	transport.Queue
	link *link
}

// NewQueue returns an empty queue.
func (l *link) NewQueue() transport.Queue { return slowQueue{l.Transport.NewQueue(), l} }

func (q slowQueue) Post(transfers ...*transport.Transfer) {
	l := q.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range transfers {
		if t.Receive {
			q.Queue.Post(t)
		} else {
			l.late.Post(l.ctx, t.Rank, t.Tag, l.time(t), func() { q.Queue.Post(t) })
		}
	}
}

// Close closes the transport below once all messages are handed on.
func (l *link) Close() error {
	l.late.Wait()
	return l.Transport.Close()
}
