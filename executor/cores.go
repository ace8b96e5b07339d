package executor

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// computing counts the goroutines of this process that compute. Where many processors
// live in it, they keep the cores busy by themselves; a single one wants them all.
var computing atomic.Int32

// A crew is helpers that wait for work to share. It allocates nothing once it has met
// its most helpers.
type crew struct {
	body    func(worker, item int)
	items   int64
	next    atomic.Int64
	start   chan struct{} // a value for each helper wanted
	helpers int           // that exist
	working sync.WaitGroup
	gone    sync.WaitGroup
}

// workers returns how many goroutines may work on that many items at most.
func workers(items int) int { return max(1, min(items, runtime.GOMAXPROCS(0))) }

// share calls body for all items in [0, items), by one goroutine for each idle core, but
// no more than workers(items). A single one is this goroutine, as worker 0. Else it waits
// for helpers: the scheduler takes its time to move the last goroutine that one readies
// away from a core which goes on with something else.
func (c *crew) share(items int, body func(worker, item int)) {
	idle := 1 + runtime.GOMAXPROCS(0) - int(computing.Add(1))
	wanted := min(workers(items), idle)
	if wanted <= 1 {
		for i := range items {
			body(0, i)
		}
		computing.Add(-1)
		return
	}
	computing.Add(int32(wanted - 1))
	c.body, c.items = body, int64(items)
	c.next.Store(0)
	if c.start == nil {
		c.start = make(chan struct{}, runtime.GOMAXPROCS(0))
	}
	for ; c.helpers < wanted; c.helpers++ {
		worker := c.helpers
		c.gone.Go(func() {
			for range c.start {
				c.work(worker)
				c.working.Done()
			}
		})
	}
	c.working.Add(wanted)
	for range wanted {
		c.start <- struct{}{}
	}
	c.working.Wait()
	computing.Add(-int32(wanted))
}

func (c *crew) work(worker int) {
	for i := c.next.Add(1) - 1; i < c.items; i = c.next.Add(1) - 1 {
		c.body(worker, int(i))
	}
}

// dismiss ends the helpers.
func (c *crew) dismiss() {
	if c.start != nil {
		close(c.start)
		c.gone.Wait()
	}
}
