package algo_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/algo"
	"volley/algo/schedule"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/matrix/matrixtest"
	"volley/plan"
	"volley/sim"
)

// A tally is what a plan takes, counted from the programs of all processors.
type tally struct{ C1, C2, memory, compute, pieces int }

func tallyOf(p plan.Plan) tally {
	info := p.Info()
	c := tally{C1: info.Rounds(), pieces: info.PieceCount()}
	largest := make([]int, c.C1)
	for k := range info.Processors {
		s := p.Schedule(k)
		c.memory = max(c.memory, s.Slots)
		c.compute = max(c.compute, s.Terms) // where no coefficient is zero
		for i, r := range s.Rounds {
			for _, x := range r.Sends {
				largest[i] = max(largest[i], len(x.Slots))
			}
		}
	}
	for _, n := range largest {
		c.C2 += n
	}
	c.memory = ceilDiv(c.memory, c.pieces)
	return c
}

func (c tally) time(m sim.Model) time.Duration {
	w := math.Ceil(float64(m.Bytes) / float64(c.pieces))
	ns := float64(c.C1)*float64(m.Beta) + (float64(c.C2)*float64(m.Tau)+float64(c.compute)*float64(m.Gamma))*w*1e9
	return time.Duration(math.Round(ns))
}

// rounds, memory and coding report which limits of the problem a plan keeps.
func (c tally) keeps(p *algo.Problem) (rounds, memory, coding bool) {
	l := p.Limits
	return p.MostRounds() < 0 || c.C1 <= p.MostRounds(), l.Memory == 0 || c.memory <= l.Memory, l.Compute == 0 || c.compute <= l.Compute*c.pieces
}

// tallies returns those of all plans of all algorithms that the problem allows to cut packets.
func tallies(p *algo.Problem) (all []tally) {
	for _, a := range algo.Algorithms() {
		plans, err := a.Plans(p)
		if err != nil {
			continue
		}
		for _, q := range plans {
			if c := tallyOf(q); c.pieces == 1 || !p.WholePackets {
				all = append(all, c)
			}
		}
	}
	return all
}

// leastLimits returns what a limit would have to be, each alone, so that a plan keeps all of them.
func leastLimits(p *algo.Problem, all []tally) algo.LimitError {
	fewest := slices.MinFunc(all, func(a, b tally) int { return a.C1 - b.C1 }).C1
	want := algo.LimitError{Limits: p.Limits, RoundsOver: -1, Memory: -1, Compute: -1}
	least := func(now *int, keeps bool, n int) {
		if keeps && (*now < 0 || n < *now) {
			*now = n
		}
	}
	for _, c := range all {
		rounds, memory, coding := c.keeps(p)
		least(&want.RoundsOver, memory && coding, c.C1-fewest)
		least(&want.Memory, rounds && coding, c.memory)
		least(&want.Compute, rounds && memory, ceilDiv(c.compute, c.pieces))
	}
	return want
}

// checkChoice compares what the planner chooses, or why it chooses nothing, with all plans there are. It returns the
// algorithm, empty where no plan keeps the limits.
func checkChoice(t *testing.T, p *algo.Problem, all []tally, model sim.Model) string {
	t.Helper()
	what := fmt.Sprintf("%s, K=%d p=%d, %+v, %+v", p.Matrix.ID(), p.Matrix.Rows(), p.Ports, model, p.Limits)
	best := time.Duration(-1)
	for _, c := range all {
		if rounds, memory, coding := c.keeps(p); rounds && memory && coding && (best < 0 || c.time(model) < best) {
			best = c.time(model)
		}
	}
	got, err := algo.Choose(algo.Auto, p, model)
	if e := new(algo.LimitError); best < 0 {
		if !errors.As(err, &e) || !strings.Contains(e.Error(), "no plan keeps the limits") {
			t.Fatalf("%s: %v, and no plan keeps the limits", what, err)
		}
		if want := leastLimits(p, all); model.Gamma > 0 && *e != want { // else baselines are not asked
			t.Errorf("%s: %+v, want %+v", what, *e, want)
		}
		return ""
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if x := tallyOf(got).time(model); x != best {
		t.Errorf("%s: chose %s %s with %v, the best has %v", what, got.Info().Algorithm, got.Info().Parameters, x, best)
	}
	return got.Info().Algorithm
}

// TestChoiceIsBest compares the planner's choice with the best of all plans of all
// algorithms by brute force, over a grid of problems, models and limits.
func TestChoiceIsBest(t *testing.T) {
	random, vandermonde := matrices.Spec{Family: "random", Argument: "2"}, matrices.Spec{Family: "vandermonde"}
	models := []sim.Model{
		{Beta: 20 * time.Microsecond, Tau: 0.8e-9, Bytes: 1},
		{Beta: 20 * time.Microsecond, Tau: 0.8e-9, Bytes: 1 << 20},
		{Beta: 20 * time.Microsecond, Tau: 0.8e-9, Gamma: 0.1e-9, Bytes: 1 << 20},
		{Beta: 0, Tau: 1e-9, Bytes: 1000},
		{Beta: time.Millisecond, Tau: 1e-9, Gamma: 1e-9, Bytes: 1000},
	}
	limits := []algo.Limits{
		{}, {Rounds: algo.FewestPlus(0)}, {Rounds: algo.FewestPlus(1), Memory: 12}, {Memory: 8}, {Compute: 20},
		{Rounds: algo.FewestPlus(2), Memory: 30, Compute: 100}, {Rounds: algo.FewestPlus(0), Memory: 1, Compute: 1},
	}
	chosen := map[string]bool{}
	for i, c := range []struct {
		field string
		spec  matrices.Spec
		k, r  int
	}{
		{"2^8", random, 1, 1}, {"2^8", random, 5, 5}, {"2^8", random, 16, 16}, {"2^8", matrices.Spec{Family: "cauchy"}, 24, 24},
		{"257", matrices.Spec{Family: "dft"}, 16, 16}, {"257", vandermonde, 24, 24},
		{"2^8", random, 12, 3}, {"2^8", random, 25, 5}, {"2^8", random, 16, 1}, {"2^8", random, 3, 12},
	} {
		for _, ports := range []int{1, 3} {
			for l, limit := range limits {
				p := shaped(t, c.field, c.spec, c.k, c.r, false, ports)
				p.Limits, p.WholePackets = limit, (i+l)%2 == 1
				all := tallies(p)
				for _, model := range models {
					chosen[checkChoice(t, p, all, model)] = true
				}
			}
		}
	}
	if !chosen[""] || len(chosen) < 5 {
		t.Errorf("of algorithms chosen, and limits without a plan, only %v", chosen)
	}
}

func TestLimitErrorText(t *testing.T) {
	for _, c := range []struct {
		e    algo.LimitError
		want string
	}{
		{algo.LimitError{Limits: algo.Limits{Rounds: algo.FewestPlus(0), Memory: 3, Compute: 4}, RoundsOver: 1, Memory: 5, Compute: 6},
			"algo: no plan keeps the limits: want 1 or more rounds over the fewest, or 5 or more packets of memory, or 6 or more multiply-adds per symbol"},
		{algo.LimitError{Limits: algo.Limits{Memory: 1}, RoundsOver: 3, Memory: 2, Compute: 7},
			"algo: no plan keeps the limits: want 2 or more packets of memory"},
		{algo.LimitError{Limits: algo.Limits{Rounds: algo.FewestPlus(2), Memory: 3, Compute: 1}, RoundsOver: 2, Memory: -1, Compute: 2},
			"algo: no plan keeps the limits: want 2 or more multiply-adds per symbol"},
		{algo.LimitError{Limits: algo.Limits{Rounds: algo.FewestPlus(0)}, RoundsOver: -1, Memory: 5, Compute: 6}, "algo: no plan keeps the limits"},
	} {
		if got := c.e.Error(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.e, got, c.want)
		}
	}
}

// TestChooseErrors checks that all reasons are told where no algorithm has a plan, and
// that naming an algorithm allows it to cut packets.
func TestChooseErrors(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	p := must(algo.NewProblem(matrixtest.Random(t, f, 6, 1), 1, algo.Natural))(t)
	if q, err := algo.Choose("exchange", p, sim.Model{}); err != nil || q.Info().Algorithm != "exchange" {
		t.Errorf("exchange: %v, %v", q, err)
	}
	if _, err := algo.Choose("dft", p, sim.Model{}); !errors.Is(err, algo.ErrStructure) || !strings.HasPrefix(err.Error(), "algo: dft for matrix random:1 over 2^8 with K = 6") {
		t.Errorf("dft: %v", err)
	}
	if _, err := algo.Choose("none", p, sim.Model{}); err == nil || !strings.Contains(err.Error(), `no algorithm "none"`) {
		t.Errorf("none: %v", err)
	}
	if list, rejected := algo.Candidates(p, sim.Model{}); len(list) == 0 || len(rejected) > 0 {
		t.Errorf("%d candidates; rejected: %v, want none", len(list), rejected)
	}
	p = must(algo.NewProblem(matrix.NewDense(f, 7, 7), 1, algo.Natural))(t)
	if list, rejected := algo.Candidates(p, sim.Model{}); len(list) == 0 || len(rejected) != 1 || rejected[0].Algorithm != "windows" {
		t.Errorf("%d candidates for zeros; rejected: %v, want windows", len(list), rejected)
	}
}

// TestChosen has what the planner takes where something matters that it could overlook.
func TestChosen(t *testing.T) {
	square := matrices.Spec{Family: "random", Argument: "1"}
	for _, c := range []struct {
		name, network string
		field         string
		k, r          int
		bytes         int64
		gamma         sim.PerByte
		whole         bool
		want          string
		ports         int
	}{
		{"of plans that take the same the first", "", "2^8", 2, 2, 100, 1e-9, false, "universal", 1},
		{"many ports on a network", "10gbit/20us", "2^8", 16, 16, 1 << 20, 0, false, "exchange", 15},
		{"whole packets there", "10gbit/20us", "2^8", 16, 16, 1 << 20, 0, true, "universal", 3},
		{"what ranks multiply", "200gbit/2us", "2^8", 16, 16, 1 << 10, 1e-9, false, "bruck-allgather", 3},
		{"less sent in a process", "process", "2^8", 16, 16, 1 << 10, 1e-9, false, "universal", 15},
		{"a message to each other rank of a process", "process", "2^16", 1024, 1024, 64, sim.ProcessGamma, false, "universal", 1023},
		{"none to each other rank of thousands", "process", "2^16", 2000, 2000, 64, sim.ProcessGamma, false, "universal", 3},
	} {
		model, ports := sim.Model{Beta: time.Microsecond, Tau: 1e-9, Gamma: c.gamma, Bytes: c.bytes, SymbolBytes: 1}, 1
		if c.network != "" {
			model, ports = sim.Model{Network: must(sim.ParseNetwork(c.network))(t), Gamma: c.gamma, Bytes: c.bytes, SymbolBytes: 1}, 0
		}
		p := shaped(t, c.field, square, c.k, c.r, false, ports)
		p.WholePackets = c.whole
		q := must(algo.Choose(algo.Auto, p, model))(t).Info()
		if q.Algorithm != c.want || q.Ports != c.ports || c.whole && q.Pieces > 1 {
			t.Errorf("%s: %s with %d ports, want %s with %d", c.name, q.Name(), q.Ports, c.want, c.ports)
		}
	}
	p := shaped(t, "2^8", square, 10, 18, true, 1) // where no plan meets the lower bound
	p.Limits.Rounds = algo.FewestPlus(0)
	q := must(algo.Choose(algo.Auto, p, sim.Model{}))(t)
	if bound := p.Bound(1, 1).C1; q.Info().Rounds() != 6 || bound != 5 {
		t.Errorf("the fewest rounds are %d, and the bound is %d: want 6 and 5", q.Info().Rounds(), bound)
	}
}

// TestChooseLeast compares the choice with all candidates, and what these take with the least that
// they say.
func TestChooseLeast(t *testing.T) {
	cauchy := matrices.Spec{Family: "cauchy"}
	for _, c := range []struct {
		field    string
		spec     matrices.Spec
		k, r     int
		separate bool
	}{
		{"2^8", cauchy, 16, 16, false}, {"2^8", cauchy, 36, 36, false}, {"2^8", cauchy, 24, 8, true}, {"2^8", cauchy, 24, 8, false},
		{"2^8", cauchy, 6, 25, true}, {"goldilocks", matrices.Spec{Family: "lagrange"}, 64, 64, false},
	} {
		p := shaped(t, c.field, c.spec, c.k, c.r, c.separate, 0)
		for bytes := int64(256); bytes <= 1<<24; bytes *= 16 {
			n := sim.Network{Latency: 20 * time.Microsecond, Overhead: 2 * time.Microsecond, Gap: 1e-9}
			model := sim.Model{Network: n, Bytes: bytes, Gamma: 1e-10}
			list, _ := algo.Candidates(p, model)
			for _, c := range list {
				least, known := schedule.Least(c.Plan)
				if model.Time(least) > c.Time || known && (least.C1 != c.Cost.C1 || least.C2 != c.Cost.C2) {
					t.Errorf("%s takes %d/%d, %v, and by itself %d/%d, at least %v", c.Plan.Info().Name(), c.Cost.C1, c.Cost.C2, c.Time, least.C1, least.C2, model.Time(least))
				}
			}
			least := slices.MinFunc(list, func(a, b algo.Candidate) int { return int(a.Time - b.Time) })
			if q := must(algo.Choose(algo.Auto, p, model))(t); model.Time(sim.Count(q)) > least.Time {
				t.Errorf("%+v, %v, %d bytes: %s takes %v, %s %v", c, n, bytes, q.Info().Name(), model.Time(sim.Count(q)), least.Plan.Info().Name(), least.Time)
			}
		}
	}
}

// TestChooseCounts bounds the memory that choosing among plans for thousands of processors allocates, by which it
// counts few of them, and few processors of each.
func TestChooseCounts(t *testing.T) {
	for _, c := range []struct {
		r        int
		separate bool
	}{{2000, false}, {2000, true}, {100, false}, {300, true}} {
		p := shaped(t, "2^16", matrices.Spec{Family: "cauchy"}, 2000, c.r, c.separate, 0)
		model := sim.Model{Network: sim.Network{Latency: 20 * time.Microsecond, Overhead: 2 * time.Microsecond, Gap: 1e-9}, Bytes: 1 << 20}
		if n := testing.AllocsPerRun(1, func() { must(algo.Choose(algo.Auto, p, model))(t) }); n > 400_000 {
			t.Errorf("R = %d: %v allocations, want 400,000 at most", c.r, n)
		}
	}
}
