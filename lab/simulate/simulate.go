// Package simulate is what a plan takes where messages are slower, or quicker, than a model
// says: with jitter, and with stragglers.
package simulate

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"volley/plan"
	"volley/sim"
)

// A Jitter is how the times of messages vary.
type Jitter string

// The jitters: factors of mean 1 whose standard deviation is the size, and delays
// on top, whose mean is.
const (
	Fixed       Jitter = ""            // not at all
	Lognormal   Jitter = "lognormal"   // a factor, lognormal
	Exponential Jitter = "exponential" // 1 and an exponential delay
)

// Jitters lists those that vary.
var Jitters = []Jitter{Lognormal, Exponential}

// The largest jitter and slowdown.
const (
	MostJitter   = 1000
	MostSlowdown = 1_000_000
)

// Noise is what makes messages slower, or quicker, than the model says.
type Noise struct {
	Jitter     Jitter
	Size       float64 // of the jitter, relative: 0.2 is a fifth
	Stragglers float64 // how likely a processor is to be a straggler, from 0 to 1
	Slowdown   float64 // how much longer a straggler takes, at least 1
}

// none reports whether the noise leaves the model as it is.
func (n Noise) none() bool {
	return (n.Jitter == Fixed || n.Size == 0) && (n.Stragglers == 0 || n.Slowdown == 1)
}

func (n Noise) check() error {
	switch {
	case n.Jitter != Fixed && !slices.Contains(Jitters, n.Jitter):
		return fmt.Errorf("simulate: jitter %q: want one of %v", string(n.Jitter), Jitters)
	case !(n.Size >= 0 && n.Size <= MostJitter):
		return fmt.Errorf("simulate: jitter of relative size %v: want 0 to %d", n.Size, MostJitter)
	case !(n.Stragglers >= 0 && n.Stragglers <= 1):
		return fmt.Errorf("simulate: a share of %v stragglers: want 0 to 1", n.Stragglers)
	case n.Stragglers > 0 && !(n.Slowdown >= 1 && n.Slowdown <= MostSlowdown):
		return fmt.Errorf("simulate: stragglers slower by a factor of %v: want 1 to %d", n.Slowdown, MostSlowdown)
	}
	return nil
}

// A Sample is the times of runs that differ by chance, ascending.
type Sample []time.Duration

// Quantile returns the time that a share q of the runs does not exceed, 0 <= q <= 1;
// q = 0.5 is the median.
func (s Sample) Quantile(q float64) time.Duration {
	return s[max(0, int(math.Ceil(q*float64(len(s))))-1)]
}

// mostMessages is how many messages a plan may have for [Run]: 400 MB.
const mostMessages = 1 << 25

// A message is one of a round; a round's are in the order of their senders.
type message struct {
	src, dst, count int32
}

// Run returns the times of so many runs of p, each with its own noise. The same
// seed gives the same times, and the same draws of chance for other slowdowns and
// shares of stragglers.
//
// There is no global clock. A processor begins round t+1 when the messages that it
// sends and receives in round t have arrived; one that comes early waits for it. A
// message of d elements takes β·X + d·W·τ·Y, where X and Y are drawn for each message
// and are larger by the slowdown if one of its two ends is a straggler. Coding counts
// after the last round. So without noise no run takes longer than [sim.Model.Time], which
// has all wait for the largest message of each round.
//
// Up to some 30 million messages are held in memory; where there are more, Run
// needs processors that are all alike and no noise, or it returns an error that wraps
// [ErrTooLarge]. Other errors are those of ctx and of a noise that does not exist.
func Run(ctx context.Context, p plan.Plan, m sim.Model, n Noise, seed uint64, runs int) (Sample, error) {
	if err := n.check(); err != nil {
		return nil, err
	}
	if runs < 1 {
		return nil, fmt.Errorf("simulate: %d runs: want 1 or more", runs)
	}
	element := float64(m.Bytes) / float64(p.Info().PieceCount())
	w := &world{
		ctx: ctx, noise: n, seed: seed, processors: p.Info().Processors,
		start: float64(m.Beta), pass: element * float64(m.Tau) * float64(time.Second),
		multiply: element * float64(m.Gamma) * float64(time.Second),
	}
	if n.none() {
		runs = 1
		if classes := p.Classes(); len(classes) == 1 {
			return Sample{w.alone(p.Schedule(classes[0].Representative))}, nil
		}
	}
	if err := w.load(p); err != nil {
		return nil, err
	}
	return w.runAll(runs)
}

// A world is what all runs of a simulation have in common. Times are in nanoseconds.
type world struct {
	ctx        context.Context
	noise      Noise
	seed       uint64
	processors int
	start      float64     // β
	pass       float64     // of an element: W·τ
	multiply   float64     // of a multiply-add of an element: W·γ
	rounds     [][]message // messages of each round
	terms      []float64   // multiply-adds of each processor; nil where coding counts for nothing
}

// alone returns the time where all processors have this schedule and there is no
// noise: all begin each round at the same time.
func (w *world) alone(s plan.Schedule) time.Duration {
	now := 0.0
	for _, r := range s.Rounds {
		most := 0.0
		for _, x := range r.Sends {
			most = max(most, w.start+float64(len(x.Slots))*w.pass)
		}
		now += most
	}
	return nanoseconds(now + float64(s.Terms)*w.multiply)
}

// ErrTooLarge is wrapped by the errors of what would take too much memory to find out.
var ErrTooLarge = errors.New("too large")

// load reads the schedules, one at a time.
func (w *world) load(p plan.Plan) error {
	cost := sim.Count(p)
	total := 0
	for _, r := range cost.Rounds {
		total += r.Messages
	}
	if total > mostMessages {
		return fmt.Errorf("simulate: %w: %d messages, of which %d can be simulated", ErrTooLarge, total, mostMessages)
	}
	if w.multiply > 0 {
		w.terms = make([]float64, w.processors)
	}
	w.rounds = make([][]message, len(cost.Rounds))
	for t, r := range cost.Rounds {
		w.rounds[t] = make([]message, 0, r.Messages)
	}
	for k := range w.processors {
		if k%1024 == 0 && w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		s := p.Schedule(k)
		if w.terms != nil {
			w.terms[k] = float64(s.Terms)
		}
		for t, r := range s.Rounds {
			for _, x := range r.Sends {
				w.rounds[t] = append(w.rounds[t], message{int32(k), int32(x.Dst), int32(len(x.Slots))})
			}
		}
	}
	return nil
}

// runAll runs side by side.
func (w *world) runAll(runs int) (Sample, error) {
	times := make(Sample, runs)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runs, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			r := &run{world: w, now: make([]float64, w.processors), next: make([]float64, w.processors), slow: make([]float64, w.processors)}
			for i := next.Add(1) - 1; i < int64(runs) && w.ctx.Err() == nil; i = next.Add(1) - 1 {
				times[i] = r.time(uint64(i))
			}
		})
	}
	wg.Wait()
	if w.ctx.Err() != nil {
		return nil, context.Cause(w.ctx)
	}
	slices.SortFunc(times, cmp.Compare[time.Duration])
	return times, nil
}

// A run is the memory of one run after the other.
type run struct {
	*world
	now, next []float64 // when each processor begins this round, and the next
	slow      []float64 // the slowdown of each processor
}

// time returns the time of one run. What is drawn does not depend on the slowdown.
func (r *run) time(index uint64) time.Duration {
	chance := r.chance(index, 0)
	for k := range r.slow {
		r.slow[k] = 1
		if chance.Float64() < r.noise.Stragglers {
			r.slow[k] = r.noise.Slowdown
		}
	}
	factor := r.noise.factor(r.chance(index, 1))
	clear(r.now)
	for _, messages := range r.rounds {
		if r.ctx.Err() != nil {
			return 0
		}
		copy(r.next, r.now)
		for _, x := range messages {
			took := r.start*factor() + float64(x.count)*r.pass*factor()
			arrival := r.now[x.src] + took*max(r.slow[x.src], r.slow[x.dst])
			r.next[x.src] = max(r.next[x.src], arrival)
			r.next[x.dst] = max(r.next[x.dst], arrival)
		}
		r.now, r.next = r.next, r.now
	}
	for k, terms := range r.terms {
		r.now[k] += terms * r.multiply * r.slow[k]
	}
	return nanoseconds(slices.Max(r.now))
}

// chance returns a stream of chance for one run and purpose.
func (w *world) chance(run, purpose uint64) *rand.Rand {
	var seed [32]byte
	for i, x := range []uint64{w.seed, run, purpose} {
		binary.LittleEndian.PutUint64(seed[8*i:], x)
	}
	return rand.New(rand.NewChaCha8(seed))
}

// factor returns what draws the factors of the jitter.
func (n Noise) factor(chance *rand.Rand) func() float64 {
	switch {
	case n.Jitter == Fixed || n.Size == 0:
		return func() float64 { return 1 }
	case n.Jitter == Exponential:
		return func() float64 { return 1 + n.Size*chance.ExpFloat64() }
	default:
		variance := math.Log1p(n.Size * n.Size) // of the logarithm
		sigma := math.Sqrt(variance)
		return func() float64 { return math.Exp(sigma*chance.NormFloat64() - variance/2) }
	}
}

// nanoseconds returns the duration, and the longest one where that is longer.
func nanoseconds(ns float64) time.Duration {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(ns))
}
