package executor

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// computing counts the goroutines of this process that compute. Where many processors
// live in it, they keep the cores busy by themselves; a single one wants them all.
var computing atomic.Int32

// A crew is a goroutine that computes, and helpers that wait for work to share. It
// allocates nothing once it has met its most helpers.
type crew struct {
	body    func(worker, item int)
	items   int64
	next    atomic.Int64
	start   chan struct{} // a value for each helper wanted
	helpers int           // that exist
	working sync.WaitGroup
	gone    sync.WaitGroup
}

// workers returns how many goroutines may work on that many items at most, this one
// included.
func workers(items int) int { return max(1, min(items, runtime.GOMAXPROCS(0))) }

// share calls body for all items in [0, items), by this goroutine, which is worker 0,
// and by as many helpers as there are idle cores, but fewer than workers(items).
func (c *crew) share(items int, body func(worker, item int)) {
	busy := int(computing.Add(1))
	defer computing.Add(-1)
	wanted := min(workers(items), 1+runtime.GOMAXPROCS(0)-busy) - 1
	if wanted <= 0 {
		for i := range items {
			body(0, i)
		}
		return
	}
	c.body, c.items = body, int64(items)
	c.next.Store(0)
	if c.start == nil {
		c.start = make(chan struct{})
	}
	for c.helpers < wanted {
		c.helpers++
		worker := c.helpers
		c.gone.Go(func() {
			for range c.start {
				computing.Add(1)
				c.work(worker)
				computing.Add(-1)
				c.working.Done()
			}
		})
	}
	c.working.Add(wanted)
	for range wanted {
		c.start <- struct{}{}
	}
	c.work(0)
	c.working.Wait()
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
