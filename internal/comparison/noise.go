package comparison

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"volley/sim"
)

// NoiseFlags are the flags of simulated runs.
type NoiseFlags struct {
	flags      *pflag.FlagSet
	jitter     string
	stragglers string
	seed       uint64
	repeat     int
}

// Add adds the flags.
func (o *NoiseFlags) Add(f *pflag.FlagSet) {
	o.flags = f
	f.StringVar(&o.jitter, "jitter", "", "simulate runs in which messages take longer and shorter by this `SHARE`, such as 0.2 or exponential:0.2")
	f.StringVar(&o.stragglers, "stragglers", "", "simulate runs with this `SHARE` of slow processors and how slow they are, such as 0.05x4")
	f.Uint64Var(&o.seed, "seed", 1, "`SEED` of the simulated runs")
	f.IntVar(&o.repeat, "repeat", 100, "`N` runs to simulate")
}

// Given reports whether runs are to be simulated.
func (o *NoiseFlags) Given() bool { return o.flags.Changed("jitter") || o.flags.Changed("stragglers") }

// mostRuns is how many runs may be simulated.
const mostRuns = 1_000_000

// Set has the comparison simulate runs where the flags say so. The error is a *selection.Error.
func (o *NoiseFlags) Set(c *Comparison) error {
	c.Seed, c.Runs = o.seed, o.repeat
	if !o.Given() {
		if o.flags.Changed("seed") || o.flags.Changed("repeat") {
			return faultf("seed", "--seed and --repeat are for simulated runs: say what differs in them with --jitter or --stragglers")
		}
		return nil
	}
	n := &sim.Noise{}
	if o.flags.Changed("jitter") {
		kind, size, named := strings.Cut(o.jitter, ":")
		n.Jitter = sim.Jitter(kind)
		if !named {
			n.Jitter, size = sim.Lognormal, kind
		}
		var err error
		if n.Size, err = strconv.ParseFloat(size, 64); err != nil || !(n.Size >= 0 && n.Size <= sim.MostJitter) || !slices.Contains(sim.Jitters, n.Jitter) {
			return faultf("jitter", "--jitter %q: want a share from 0 to %d such as 0.2, which may have one of %v before it, such as exponential:0.2",
				o.jitter, sim.MostJitter, sim.Jitters)
		}
	}
	if o.flags.Changed("stragglers") {
		share, slowdown, _ := strings.Cut(o.stragglers, "x")
		var errA, errB error
		n.Stragglers, errA = strconv.ParseFloat(share, 64)
		n.Slowdown, errB = strconv.ParseFloat(slowdown, 64)
		if errA != nil || errB != nil || !(n.Stragglers >= 0 && n.Stragglers <= 1) || !(n.Slowdown >= 1 && n.Slowdown <= sim.MostSlowdown) {
			return faultf("stragglers", "--stragglers %q: want a share from 0 to 1 and a factor from 1 to %d, such as 0.05x4", o.stragglers, sim.MostSlowdown)
		}
	}
	if o.repeat < 1 || o.repeat > mostRuns {
		return faultf("repeat", "--repeat %d: want 1 to %d", o.repeat, mostRuns)
	}
	c.Noise = n
	return nil
}
