package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Subset returns the end of t in the group of the given ranks, of which t's is one: rank i of the group is rank ranks[i]
// of t. All of them give the same. Groups may be at work at the same time, as long as no two ranks are in both.
//
// An abort is that of all ranks of t; the [AbortError] of one that is not in the group has rank -1. Close closes t.
func Subset(t Transport, ranks []int) Transport {
	g := &subset{Around{t}, slices.Clone(ranks), slices.Repeat([]int{-1}, t.Size())}
	for i, r := range ranks {
		g.groupRanks[r] = i
	}
	return g
}

type subset struct {
	Around
	ranks      []int // of the transport, by rank of the group
	groupRanks []int // the reverse; -1: not in the group
}

func (g *subset) Rank() int { return g.groupRanks[g.Transport.Rank()] }
func (g *subset) Size() int { return len(g.ranks) }
func (g *subset) NewQueue() Queue {
	return &subsetQueue{Queue: g.Transport.NewQueue(), g: g, posted: map[*Transfer]*Transfer{}}
}

func (g *subset) Inquire(ctx context.Context, rank int) (int, error) {
	whom, err := g.Around.Inquire(ctx, g.ranks[rank])
	return g.named(whom), err
}

// named returns the number in the group of a rank of the transport; -1: none, as is a rank that the transport does not
// name.
func (g *subset) named(rank int) int {
	if rank < 0 {
		return -1
	}
	return g.groupRanks[rank]
}

// contains reports whether there is another rank of that number.
func (g *subset) contains(rank int) bool { return rank >= 0 && rank < len(g.ranks) && rank != g.Rank() }

type subsetQueue struct {
	Queue
	g *subset

	mu     sync.Mutex
	posted map[*Transfer]*Transfer // of the transport's queue: those of this one
}

// Gather is as [Gather] says.
func (q *subsetQueue) Gather(receives int) { Gather(q.Queue, receives) }

func (q *subsetQueue) Post(transfers ...*Transfer) {
	list := make([]*Transfer, len(transfers))
	q.mu.Lock()
	for i, t := range transfers {
		inner := *t
		if inner.Rank = -1; q.g.contains(t.Rank) {
			inner.Rank = q.g.ranks[t.Rank]
		}
		list[i], q.posted[&inner] = &inner, t
	}
	q.mu.Unlock()
	q.Queue.Post(list...)
}

func (q *subsetQueue) Wait(ctx context.Context) (*Transfer, error) {
	inner, err := q.Queue.Wait(ctx)
	if aborted, ok := errors.AsType[*AbortError](err); ok {
		err = &AbortError{q.g.named(aborted.Rank), aborted.Cause}
	} else if wrong, ok := errors.AsType[*LengthError](err); ok {
		err = &LengthError{q.g.named(wrong.Src), wrong.Tag, wrong.Got, wrong.Want}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.posted[inner]
	if delete(q.posted, inner); t != nil && !q.g.contains(t.Rank) {
		err = fmt.Errorf("%v: it is no other rank of the group of %d", t, len(q.g.ranks))
	}
	return t, err
}
