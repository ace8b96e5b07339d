package local

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"volley/transport"
)

// NewOver returns the ends here of a new group: rank i of it lives at the rank hosts[i] of t, which may have any number of them.
// All ranks of t that have one give the same. Messages between ranks of one host are copied, and others travel by t, which
// nothing else uses meanwhile. An abort is that of all ranks of t. Whoever calls NewOver closes t, once the ends are closed.
func NewOver(t transport.Transport, hosts []int) (ends []*Endpoint) {
	g := &group{ends: make([]*Endpoint, len(hosts))}
	counts := make([]int, t.Size())
	f := &far{Around: transport.Around{Transport: t}, hosts: hosts, queue: t.NewQueue(), posted: map[*transport.Transfer]half{}, ended: make(chan struct{})}
	for r, host := range hosts {
		f.numbers = append(f.numbers, counts[host])
		counts[host]++
		if host == t.Rank() {
			g.open(r)
			ends = append(ends, g.ends[r])
		}
	}
	if ends == nil {
		return nil
	}
	f.width = slices.Max(counts)
	f.open.Store(int32(len(ends)))
	g.far = f
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	go f.wait(ctx, g)
	return ends
}

// Limits says for which tags there is room.
func (e *Endpoint) Limits() (l transport.Limits) {
	if e.group.far != nil {
		l = e.group.far.Limits()
		for i := range l {
			l[i].Ports /= e.group.far.width * e.group.far.width
		}
	}
	return l
}

// far has the messages with the ranks of a group that live at other ranks of a transport. A tag of that has the numbers of
// both among the ranks at their hosts.
type far struct {
	transport.Around
	hosts, numbers []int
	width          int // ranks of a host, at most
	open           atomic.Int32
	cancel         context.CancelFunc
	ended          chan struct{}
	queue          transport.Queue

	mu     sync.Mutex
	posted map[*transport.Transfer]half // of the transport: those of ranks here
}

// post starts a transfer of a rank here.
func (f *far) post(rank int, h half) {
	t := *h.Transfer
	source, target := rank, t.Rank
	if t.Receive {
		source, target = target, source
	}
	t.Tag.Port = (t.Tag.Port*f.width+f.numbers[source])*f.width + f.numbers[target]
	t.Rank = f.hosts[t.Rank]
	f.mu.Lock()
	f.posted[&t] = h
	f.mu.Unlock()
	f.queue.Post(&t)
}

// wait ends transfers as they are over, until all ends are closed, or the transport aborts.
func (f *far) wait(ctx context.Context, g *group) {
	defer close(f.ended)
	for {
		t, err := f.queue.Wait(ctx)
		if aborted, ok := errors.AsType[*transport.AbortError](err); ok {
			err = &transport.AbortError{Rank: f.named(aborted.Rank), Cause: aborted.Cause}
			g.end(err.(*transport.AbortError))
		}
		if t == nil {
			return
		}
		f.mu.Lock()
		h := f.posted[t]
		delete(f.posted, t)
		f.mu.Unlock()
		if wrong, ok := errors.AsType[*transport.LengthError](err); ok {
			err = &transport.LengthError{Src: h.Rank, Tag: h.Tag, Got: wrong.Got, Want: wrong.Want}
		}
		h.finish(err)
	}
}

// leave is called by each end that is closed. Messages whose sends are over still arrive.
func (f *far) leave() {
	if f.open.Add(-1) == 0 {
		f.cancel()
		<-f.ended
	}
}

// named returns the first rank of the group at a rank of the transport; -1: there is none.
func (f *far) named(rank int) int { return slices.Index(f.hosts, rank) }

// Inquire asks the host of a rank.
func (f *far) Inquire(ctx context.Context, rank int) (int, error) {
	whom, err := f.Around.Inquire(ctx, f.hosts[rank])
	return f.named(whom), err
}
