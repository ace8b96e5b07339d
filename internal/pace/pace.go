// Package pace holds work to so many bytes a second on average.
package pace

import (
	"context"
	"sync"
	"time"
)

// A Pace is what all that share it may take together.
type Pace struct {
	rate int64

	mu   sync.Mutex
	free time.Time // when all that was taken has had its time
}

// New returns a pace of so many bytes a second.
func New(rate int64) *Pace { return &Pace{rate: rate} }

// Take takes so many bytes, and returns how long to wait before: until what was taken earlier has had its time.
func (p *Pace) Take(bytes int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	current := time.Now()
	if p.free.Before(current) {
		p.free = current
	}
	delay := p.free.Sub(current)
	p.free = p.free.Add(time.Duration(float64(bytes) / float64(p.rate) * float64(time.Second)))
	return delay
}

// Wait takes so many bytes, and returns when their turn has come, or the context has ended.
func (p *Pace) Wait(ctx context.Context, bytes int64) {
	delay := p.Take(bytes)
	if delay <= 0 {
		return
	}
	turn := time.NewTimer(delay)
	defer turn.Stop()
	select {
	case <-turn.C:
	case <-ctx.Done():
	}
}
