package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"volley/transport/tcp"
)

// A Reach is how this rank reaches another one.
type Reach struct {
	tcp.Probe
	Error string `json:",omitempty"` // why it does not
}

const (
	probeInterval = 500 * time.Millisecond // in which each rank measures one other, and is measured by one
	shortInterval = 20 * time.Millisecond  // the same without the rate
	mostProbe     = 15 * time.Second       // for one other
)

// ProbeTime bounds Probe for so many ranks.
func ProbeTime(size int) time.Duration { return time.Duration(size)*probeInterval + mostProbe }

// Probe measures how this rank reaches the others, after Join, which does not connect them all. All ranks call it
// at about the same time, and ask for rates alike. Another one that takes longer than the limit (0: 15 s, which is the
// most) is not reached. The result is by rank; that of this one is zero.
func (p *Listener) Probe(ctx context.Context, limit time.Duration, rates bool) []Reach {
	k, interval := len(p.table), p.interval
	if !rates {
		interval = min(interval, shortInterval)
	}
	limit = min(cmp.Or(limit, mostProbe), mostProbe)
	reaches := make([]Reach, k)
	var running sync.WaitGroup
	for step := 1; step < k; step++ {
		running.Go(func() {
			select {
			case <-time.After(time.Duration(step-1) * interval):
			case <-ctx.Done():
			}
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			peer := (p.run.Rank + step) % k
			var err error
			if reaches[peer].Probe, err = p.listener.Probe(ctx, p.table[peer], rates); err != nil {
				reaches[peer].Error = err.Error()
			}
		})
	}
	running.Wait()
	return reaches
}

// Addresses returns those of all ranks, after Join.
func (p *Listener) Addresses() []string { return slices.Clone(p.table) }

// Ports returns those at which this rank may listen; zero: any.
func (p *Listener) Ports() Ports { return p.run.Ports }
