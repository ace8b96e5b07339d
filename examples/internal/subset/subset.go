// Package subset runs an all-to-all encode among some of the ranks of a transport.
package subset

import (
	"context"
	"slices"

	"volley/transport"
)

// New returns the end of t in the group of the given ranks, of which t's is one: rank i of
// the group is rank ranks[i] of t. Groups may be at work at the same time, as long as no two
// ranks are in both.
func New(t transport.Transport, ranks []int) transport.Transport {
	return &group{t, ranks, slices.Index(ranks, t.Rank())}
}

type group struct {
	transport.Transport
	ranks []int // of the transport
	rank  int   // this one, of the group
}

func (g *group) Rank() int { return g.rank }
func (g *group) Size() int { return len(g.ranks) }

// A queue is one of the transport, posted to by ranks of the group.
type queue struct {
	transport.Queue
	ranks []int
}

func (g *group) NewQueue() transport.Queue { return queue{g.Transport.NewQueue(), g.ranks} }

func (q queue) Post(transfers ...*transport.Transfer) {
	for _, t := range transfers {
		t.Rank = q.ranks[t.Rank]
	}
	q.Queue.Post(transfers...)
}

func (q queue) Wait(ctx context.Context) (*transport.Transfer, error) {
	t, err := q.Queue.Wait(ctx)
	if t != nil {
		t.Rank = slices.Index(q.ranks, t.Rank)
	}
	return t, err
}
