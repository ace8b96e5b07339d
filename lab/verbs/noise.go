package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"volley/internal/comparison"
	"volley/internal/selection"
	"volley/lab/simulate"
	"volley/plan"
)

// noiseFlags are the flags of simulated runs.
type noiseFlags struct {
	flags      *pflag.FlagSet
	jitter     string
	stragglers string
	seed       uint64
	repeat     int
}

// add adds the flags.
func (o *noiseFlags) add(f *pflag.FlagSet) {
	o.flags = f
	f.StringVar(&o.jitter, "jitter", "", "simulate runs in which messages take longer and shorter by this `SHARE`, such as 0.2 or exponential:0.2")
	f.StringVar(&o.stragglers, "stragglers", "", "simulate runs with this `SHARE` of slow processors and how slow they are, such as 0.05x4")
	f.Uint64Var(&o.seed, "seed", 1, "`SEED` of the simulated runs")
	f.IntVar(&o.repeat, "repeat", 100, "`N` runs to simulate")
}

// given reports whether runs are to be simulated.
func (o *noiseFlags) given() bool { return o.flags.Changed("jitter") || o.flags.Changed("stragglers") }

// mostRuns is how many runs may be simulated.
const mostRuns = 1_000_000

// noise returns what the flags say, and nil where no runs are to be simulated.
func (o *noiseFlags) noise() (*simulate.Noise, error) {
	if !o.given() {
		if o.flags.Changed("seed") || o.flags.Changed("repeat") {
			return nil, selection.Markf("seed", "--seed and --repeat are for simulated runs: say what differs in them with --jitter or --stragglers")
		}
		return nil, nil
	}
	n := &simulate.Noise{}
	if o.flags.Changed("jitter") {
		kind, size, named := strings.Cut(o.jitter, ":")
		n.Jitter = simulate.Jitter(kind)
		if !named {
			n.Jitter, size = simulate.Lognormal, kind
		}
		var err error
		if n.Size, err = strconv.ParseFloat(size, 64); err != nil || !(n.Size >= 0 && n.Size <= simulate.MostJitter) || !slices.Contains(simulate.Jitters, n.Jitter) {
			return nil, selection.Markf("jitter", "--jitter %q: want a share from 0 to %d such as 0.2, which may have one of %v before it, such as exponential:0.2",
				o.jitter, simulate.MostJitter, simulate.Jitters)
		}
	}
	if o.flags.Changed("stragglers") {
		share, slowdown, _ := strings.Cut(o.stragglers, "x")
		var errA, errB error
		n.Stragglers, errA = strconv.ParseFloat(share, 64)
		n.Slowdown, errB = strconv.ParseFloat(slowdown, 64)
		if errA != nil || errB != nil || !(n.Stragglers >= 0 && n.Stragglers <= 1) || !(n.Slowdown >= 1 && n.Slowdown <= simulate.MostSlowdown) {
			return nil, selection.Markf("stragglers", "--stragglers %q: want a share from 0 to 1 and a factor from 1 to %d, such as 0.05x4", o.stragglers, simulate.MostSlowdown)
		}
	}
	if o.repeat < 1 || o.repeat > mostRuns {
		return nil, selection.Markf("repeat", "--repeat %d: want 1 to %d", o.repeat, mostRuns)
	}
	return n, nil
}

// A simulated plan is the cheapest one of an algorithm.
type simulated struct {
	comparison.Setting
	k         int
	algorithm string
}

// simulate has the comparison simulate runs of what it looks at.
func (j *costJob) simulate(n *simulate.Noise) {
	j.times = map[simulated]simulate.Sample{}
	j.Look = func(ctx context.Context, k int, s comparison.Setting, p *comparison.Plan, q plan.Plan) error {
		times, err := simulate.Run(ctx, q, j.Model, *n, j.noise.seed, j.noise.repeat)
		if errors.Is(err, simulate.ErrTooLarge) {
			return selection.Markf("algorithm", "%s at K = %d: %s: leave it out, with the others in --algorithm", p.Algorithm, k, selection.Message(err))
		}
		j.times[simulated{s, k, p.Algorithm}] = times
		return err
	}
}

// describe says what the simulated runs are.
func (o *noiseFlags) describe(n *simulate.Noise) string {
	var parts []string
	if n.Size > 0 {
		parts = append(parts, fmt.Sprintf("%s jitter of %g", n.Jitter, n.Size))
	}
	if n.Stragglers > 0 {
		parts = append(parts, fmt.Sprintf("a share of %g of processors %g times slower", n.Stragglers, n.Slowdown))
	}
	return strings.Join(append(parts, fmt.Sprintf("%d runs, seed %d", o.repeat, o.seed)), ", ")
}
