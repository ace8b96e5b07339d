// Package cores shares work among the cores of a process.
package cores

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// computing counts the goroutines of this process that compute. Where many processors
// live in it, they keep the cores busy by themselves; a single one wants them all.
var computing atomic.Int32

// cores has a place for each goroutine that may take memory for what no message has to wait for: of thousands of ranks
// in a process all others wait.
var cores = make(chan struct{}, runtime.GOMAXPROCS(0))

// Run does something when there is a place, one for each core of the process. The stack that it takes is not the
// caller's, which waits with it. Where the context ends before there is a place, it does nothing: the error is its cause.
func Run(ctx context.Context, work func()) error {
	select {
	case cores <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	ended := make(chan struct{})
	go func() {
		work()
		<-cores
		close(ended)
	}()
	<-ended
	return nil
}

// A Pool is helpers that wait for work to share. It allocates nothing once it has
// had its most helpers.
type Pool struct {
	Cores   int // that it may use
	body    func(worker, item int)
	items   int64
	next    atomic.Int64
	start   chan struct{} // a value for each helper wanted
	helpers int           // that exist
	working sync.WaitGroup
	ended   sync.WaitGroup
}

// Share calls body for all items in [0, items), by one goroutine for each idle core, but
// no more than p.Cores. A single one is this goroutine, as worker 0. Else it waits
// for helpers: the scheduler takes its time to move the last goroutine that one readies
// away from a core which goes on with something else.
func (p *Pool) Share(items int, body func(worker, item int)) {
	idle := 1 + runtime.GOMAXPROCS(0) - int(computing.Add(1))
	wanted := min(items, p.Cores, idle)
	if wanted <= 1 {
		for i := range items {
			body(0, i)
		}
		computing.Add(-1)
		return
	}
	computing.Add(int32(wanted - 1))
	p.body, p.items = body, int64(items)
	p.next.Store(0)
	if p.start == nil {
		p.start = make(chan struct{}, p.Cores)
	}
	for ; p.helpers < wanted; p.helpers++ {
		worker := p.helpers
		p.ended.Go(func() {
			for range p.start {
				p.work(worker)
				p.working.Done()
			}
		})
	}
	p.working.Add(wanted)
	for range wanted {
		p.start <- struct{}{}
	}
	p.working.Wait()
	computing.Add(-int32(wanted))
}

func (p *Pool) work(worker int) {
	for i := p.next.Add(1) - 1; i < p.items; i = p.next.Add(1) - 1 {
		p.body(worker, int(i))
	}
}

// Stop ends the helpers.
func (p *Pool) Stop() {
	if p.start != nil {
		close(p.start)
		p.ended.Wait()
	}
}
