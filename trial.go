package volley

import (
	"context"
	"math"
	"time"

	"volley/algo"
	"volley/collective"
)

// tries are what plans took that were tried one after the other, and zeros.
type tries [algo.MostTried]time.Duration

// A trial finds the plan of runs that follow each other, by what they take: see [algo.ChooseAfter]. The first run of each
// plan makes connections and memory ready, the second one counts. Then the ranks tell each other what it took, before
// the next run. A rank may have waited for others to begin, so the least counts: that of the last one who began.
type trial struct {
	runs int           // of the plan that is tried
	last time.Duration // of the last of them, here; 0: this rank need not have waited for the end
	took []time.Duration
	over bool
}

// countedRuns is how many runs of a plan there are until it has been tried.
const countedRuns = 2

// due reports whether the ranks are to tell each other what the last run took.
func (x *trial) due() bool { return x != nil && !x.over && x.runs == countedRuns }

// tell tells all ranks what the last run took, at the beginning of the run of the id.
func (x *trial) tell(ctx context.Context, c *collective.Comm, id uint64) error {
	word := uint64(0)
	if x.last > 0 {
		word = math.MaxUint64 - uint64(x.last)
	}
	words, err := c.ResumeSaying(ctx, id, []uint64{word})
	if err != nil {
		return err
	}
	x.took = append(x.took, time.Duration(min(math.MaxUint64-words[0], math.MaxInt64)))
	x.runs = 0
	return nil
}

// note notes what a run of b took: all ranks have to wait for its end where they have results.
func (x *trial) note(b *Bound, took time.Duration) {
	if x == nil || x.over {
		return
	}
	x.runs++
	x.last = 0
	for proc := range b.packets {
		if _, sink := b.e.problem.Sink(b.first + proc); sink {
			x.last = max(took, 1)
		}
	}
}

// times returns what the plans before took.
func (x *trial) times() []time.Duration {
	if x == nil {
		return nil
	}
	return x.took
}

// end ends the trial: the plan stays.
func (x *trial) end() {
	if x != nil {
		x.over = true
	}
}
