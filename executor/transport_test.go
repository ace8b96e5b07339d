package executor_test

import (
	"bytes"
	"cmp"
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"volley/field/fieldtest"
	"volley/transport"
)

// A watched transport spoils the memory that a rank posts to be received into, and sees whether
// the rank changes what is under way.
type watched struct {
	transport.Transport
	t testing.TB

	mu   sync.Mutex
	sent map[*transport.Transfer][][]byte // copies of the parts of sends under way
	open int                              // transfers under way
}

type watchedQueue struct {
	transport.Queue
	w *watched
}

func newWatched(t testing.TB, below transport.Transport) *watched {
	return &watched{Transport: below, t: t, sent: map[*transport.Transfer][][]byte{}}
}

func (w *watched) NewQueue() transport.Queue { return watchedQueue{w.Transport.NewQueue(), w} }

func (q watchedQueue) Gather(receives int) { transport.Gather(q.Queue, receives) }

func (q watchedQueue) Post(transfers ...*transport.Transfer) {
	q.w.mu.Lock()
	for _, t := range transfers {
		q.w.open++
		var parts [][]byte
		for _, part := range t.Parts {
			if t.Receive {
				for i := range part {
					part[i] = 0xA5
				}
			}
			parts = append(parts, bytes.Clone(part))
		}
		if !t.Receive {
			q.w.sent[t] = parts
		}
	}
	q.w.mu.Unlock()
	q.Queue.Post(transfers...)
}

func (q watchedQueue) Wait(ctx context.Context) (*transport.Transfer, error) {
	t, err := q.Queue.Wait(ctx)
	if t == nil {
		return t, err
	}
	q.w.mu.Lock()
	defer q.w.mu.Unlock()
	q.w.open--
	for i, part := range q.w.sent[t] {
		if !bytes.Equal(part, t.Parts[i]) {
			q.w.t.Errorf("rank %d: part %d of a message to rank %d, %v, was changed under way", q.w.Rank(), i, t.Rank, t.Tag)
		}
	}
	delete(q.w.sent, t)
	return t, err
}

// gathering is a transport whose waits always wait for as many receives as they may: no rank may then wait for what another
// one sends only after it has heard more from it.
type gathering struct{ transport.Transport }

func (g gathering) NewQueue() transport.Queue { return &gatheringQueue{Queue: g.Transport.NewQueue()} }

type gatheringQueue struct {
	transport.Queue
	receives int
	first    int // of receives, or 0
	over     []*transport.Transfer
	named    int // of over
}

func (q *gatheringQueue) Gather(receives int) {
	q.receives, q.first = receives, cmp.Or(q.first, receives)
}

func (q *gatheringQueue) Wait(ctx context.Context) (*transport.Transfer, error) {
	for gathered := q.named < len(q.over); !gathered; gathered = q.receives <= 0 {
		t, err := q.Queue.Wait(ctx)
		if err != nil {
			return t, err
		}
		if q.over = append(q.over, t); t.Receive {
			q.receives--
		}
	}
	q.named++
	return q.over[q.named-1], nil
}

// noting tells of each queue.
type noting struct {
	transport.Transport
	note func(*gatheringQueue)
}

func (n noting) NewQueue() transport.Queue {
	q := n.Transport.NewQueue().(*gatheringQueue)
	n.note(q)
	return q
}

// TestGather checks that a rank that needs all messages of a round is woken once for them.
func TestGather(t *testing.T) {
	const k, symbols = 6, 40
	f := fieldtest.Parse(t, "2^8")
	a := randomMatrix(t, f, k)
	packets := randomPackets(f, 1, equal(k, symbols)...)
	synctest.Test(t, func(t *testing.T) {
		first := make([]*gatheringQueue, k)
		r := &run{plan: compile(t, "exchange", a, k-1), packets: packets, bytes: symbols, segment: symbols}
		r.wrap = func(below transport.Transport) transport.Transport {
			return noting{gathering{below}, func(q *gatheringQueue) { first[below.Rank()] = q }}
		}
		r.mustDo(t)
		r.check(t, product(a, packets, symbols))
		for rank := range k {
			if first[rank].first != k-1 {
				t.Errorf("rank %d gathers %d receives first, want %d", rank, first[rank].first, k-1)
			}
		}
	})
}
