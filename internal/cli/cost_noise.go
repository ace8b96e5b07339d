package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"volley/sim"
)

// noiseOptions is the flags of simulated runs.
type noiseOptions struct {
	jitter     string
	stragglers string
	seed       uint64
	repeat     int
}

func (o *noiseOptions) addNoise(cmd *cobra.Command) {
	defer flagGroup(cmd, "Simulation")()
	f := cmd.Flags()
	f.StringVar(&o.jitter, "jitter", "", "simulate runs in which messages take longer and shorter by this `SHARE`, such as 0.2 or exponential:0.2")
	f.StringVar(&o.stragglers, "stragglers", "", "simulate runs with this `SHARE` of slow processors and how slow they are, such as 0.05x4")
	f.Uint64Var(&o.seed, "seed", 1, "`SEED` of the simulated runs")
	f.IntVar(&o.repeat, "repeat", 100, "`N` runs to simulate")
}

// mostRuns is how many runs may be simulated.
const mostRuns = 1_000_000

// noise returns what the flags say, and nil where there is none of them.
func (o *noiseOptions) noise(changed func(string) bool) (*sim.Noise, error) {
	if !changed("jitter") && !changed("stragglers") {
		return nil, nil
	}
	n := &sim.Noise{}
	if changed("jitter") {
		kind, size, named := strings.Cut(o.jitter, ":")
		n.Jitter = sim.Jitter(kind)
		if !named {
			n.Jitter, size = sim.Lognormal, kind
		}
		var err error
		if n.Size, err = strconv.ParseFloat(size, 64); err != nil || !(n.Size >= 0 && n.Size <= sim.MostJitter) || !slices.Contains(sim.Jitters, n.Jitter) {
			return nil, usagef("--jitter %q: want a share from 0 to %d such as 0.2, which may have one of %v before it, such as exponential:0.2",
				o.jitter, sim.MostJitter, sim.Jitters)
		}
	}
	if changed("stragglers") {
		share, slowdown, _ := strings.Cut(o.stragglers, "x")
		var errA, errB error
		n.Stragglers, errA = strconv.ParseFloat(share, 64)
		n.Slowdown, errB = strconv.ParseFloat(slowdown, 64)
		if errA != nil || errB != nil || !(n.Stragglers >= 0 && n.Stragglers <= 1) || !(n.Slowdown >= 1 && n.Slowdown <= sim.MostSlowdown) {
			return nil, usagef("--stragglers %q: want a share from 0 to 1 and a factor from 1 to %d, such as 0.05x4", o.stragglers, sim.MostSlowdown)
		}
	}
	if o.repeat < 1 || o.repeat > mostRuns {
		return nil, usagef("--repeat %d: want 1 to %d", o.repeat, mostRuns)
	}
	return n, nil
}

// describe says what the noise is.
func (o *noiseOptions) describe(n *sim.Noise) string {
	var parts []string
	if n.Size > 0 {
		parts = append(parts, fmt.Sprintf("%s jitter of %g", n.Jitter, n.Size))
	}
	if n.Stragglers > 0 {
		parts = append(parts, fmt.Sprintf("a share of %g of processors %g times slower", n.Stragglers, n.Slowdown))
	}
	return strings.Join(append(parts, fmt.Sprintf("%d runs, seed %d", o.repeat, o.seed)), ", ")
}
