package main

import (
	"fmt"
	"sync"
	"time"

	"volley/internal/mutation/mutant"
)

// What becomes of a mutant.
const (
	killed     = "killed"
	timedOut   = "timeout"
	survived   = "survived"
	notReached = "not reached"
)

// An Outcome is a point and what became of its mutant.
type Outcome struct {
	Point
	Outcome string  `json:"outcome"`
	Test    string  `json:"test,omitempty"`    // that killed it
	Skipped int     `json:"skipped,omitempty"` // tests that there was no time for
	Seconds float64 `json:"seconds"`
}

// alive reports whether no test noticed.
func (o *Outcome) alive() bool { return o.Outcome == survived || o.Outcome == notReached }

// inParallel calls work for 0 <= i < n in order, from as many workers as the config has.
// It returns the first error and begins nothing after it.
func (c *config) inParallel(n int, work func(worker, i int) error) error {
	var mutex sync.Mutex
	var failure error
	var wg sync.WaitGroup
	next := 0
	for worker := range c.workers {
		wg.Go(func() {
			for {
				mutex.Lock()
				i := next
				next++
				stop := failure != nil || i >= n
				mutex.Unlock()
				if stop {
					return
				}
				if err := work(worker, i); err != nil {
					mutex.Lock()
					failure = err
					mutex.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return failure
}

// try runs the tests that reach a mutant until one fails.
func (c *config) try(worker int, p *Point, tests []*test) (*Outcome, error) {
	o := &Outcome{Point: *p, Outcome: notReached}
	if len(tests) == 0 {
		return o, nil
	}
	o.Outcome = survived
	start := time.Now()
	all := batches(p.Package, tests)
	c.firstKiller(p, all)
	for _, b := range all {
		left := c.budget - time.Since(start)
		if left < b.took {
			o.Skipped += len(b.names)
			continue // a shorter one may have time
		}
		r, err := c.runner(worker).run(b.binary, b.binary.path, b.names, c.timeout(b.took), fmt.Sprintf("%s=%d", mutant.Variable, p.ID))
		if err != nil {
			return nil, err
		}
		if r.failed || r.timeout {
			o.Outcome, o.Test = killed, b.binary.Package+" "+r.test
			if r.timeout {
				o.Outcome = timedOut
			}
			c.killers.Store(p.File+p.Function, b.names[0])
			break
		}
	}
	o.Seconds = time.Since(start).Seconds()
	return o, nil
}

// timeout returns how long tests may take with a mutant that take so long without.
func (c *config) timeout(took time.Duration) time.Duration {
	return time.Duration(c.patience) * max(time.Second, took)
}

// firstKiller moves the tests to the front that killed the last mutant of the function,
// unless the ones before them take no time.
func (c *config) firstKiller(p *Point, all []batch) {
	name, ok := c.killers.Load(p.File + p.Function)
	for i, b := range all {
		if ok && b.names[0] == name {
			copy(all[1:i+1], all[:i])
			all[0] = b
			return
		}
	}
}
