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
	probeInterval = 20 * time.Millisecond // in which each rank measures one other, and is measured by one
	mostProbe     = 15 * time.Second      // for one other
)

// Probe measures how this rank reaches the others, after Join, which does not connect them all. All ranks call it
// at about the same time. Another one that takes longer than the limit (0: 15 s, which is the most) is not reached. The
// result is by rank; that of this one is zero.
func (p *Listener) Probe(ctx context.Context, limit time.Duration) []Reach {
	k := len(p.table)
	limit = min(cmp.Or(limit, mostProbe), mostProbe)
	reaches := make([]Reach, k)
	var running sync.WaitGroup
	for step := 1; step < k; step++ {
		running.Go(func() {
			select {
			case <-time.After(time.Duration(step-1) * probeInterval):
			case <-ctx.Done():
			}
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			peer := (p.run.Rank + step) % k
			var err error
			if reaches[peer].Probe, err = p.listener.Probe(ctx, p.table[peer]); err != nil {
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
