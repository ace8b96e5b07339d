package algo_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"volley/algo"
	"volley/field/fieldtest"
	"volley/internal/verifyall"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/plan"
	"volley/sim"
)

// TestTrials compares the plan that is chosen, and those after runs, with the best plan by networks whose L, o and G are
// each a third of what the planner believes, or as much, or three times as much. The runs take what these networks say.
// Where the planner knows how far the network may be off, no one plan is better than its choice for all networks.
func TestTrials(t *testing.T) {
	factors := []float64{1.0 / 3, 1, 3}
	for _, c := range []struct {
		off   float64                     // that the planner knows of
		worst [algo.MostTried + 1]float64 // bounds, before runs and after each try
	}{
		{2, [...]float64{1.75, 1.75, 1.5, 1.2}},
		{0.3, [...]float64{2, 2, 1.6, 1.6}},
	} {
		var worst [algo.MostTried + 1]float64
		for _, name := range []string{"100mbit/1ms", "10gbit/20us"} {
			network := must(sim.ParseNetwork(name))(t)
			network.Error = c.off
			for _, k := range []int{4, 8, 16} {
				p := must(algo.NewProblem(must(matrix.Cauchy(fieldtest.Parse(t, "2^8"), k, k))(t), 0, algo.Natural))(t)
				for _, bytes := range []int64{4 << 10, 64 << 10, 1 << 20} {
					believed := sim.Model{Network: network, Gamma: 1e-10, Bytes: bytes}
					list, _ := algo.Candidates(p, believed)
					for i := range 27 {
						if (i%3+i/3%3+i/9)%verifyall.Most(3, 1) > 0 {
							continue
						}
						truth := believed
						truth.Network = network.Scaled(factors[i%3], factors[i/3%3], factors[i/9])
						best := list[0].Plan
						time := func(q plan.Plan) time.Duration { return truth.Time(sim.Count(q)) }
						for _, d := range list {
							if time(d.Plan) < time(best) {
								best = d.Plan
							}
						}
						for n, q := range trial(t, p, believed, time) {
							if n < len(worst) {
								worst[n] = max(worst[n], float64(time(q))/float64(time(best)))
							}
						}
					}
				}
			}
		}
		t.Logf("a network that says it is off by %v: worst ratios to the best plan %.2f", c.off, worst)
		for n, x := range worst {
			if x > c.worst[n] {
				t.Errorf("off by %v: after %d tries the plan takes %.2f times the best, want %v at most", c.off, n, x, c.worst[n])
			}
		}
	}
}

// trial returns the fastest plan of each number of plans that were tried, to the last.
func trial(t *testing.T, p *algo.Problem, m sim.Model, run func(plan.Plan) time.Duration) (list []plan.Plan) {
	t.Helper()
	var took []time.Duration
	var fastest plan.Plan
	for {
		x := must(algo.ChooseAfter(algo.Auto, p, m, took...))(t)
		if fastest == nil {
			list = append(list, x.Plan)
			fastest = x.Plan
		}
		if x.Over {
			if run(x.Plan) != run(fastest) {
				t.Errorf("%s stays, and %s was faster", x.Plan.Info().Name(), fastest.Info().Name())
			}
			for len(list) <= algo.MostTried {
				list = append(list, fastest)
			}
			return list
		}
		took = append(took, run(x.Plan))
		if took[len(took)-1] < run(fastest) {
			fastest = x.Plan
		}
		list = append(list, fastest)
	}
}

// TestTrialRefutes checks when plans are tried: where the model is off by more than 1.5, else only as its error allows.
func TestTrialRefutes(t *testing.T) {
	p := must(algo.NewProblem(must(matrix.Cauchy(fieldtest.Parse(t, "2^8"), 16, 16))(t), 0, algo.Natural))(t)
	m := sim.Model{Network: must(sim.ParseNetwork("10gbit/20us"))(t), Bytes: 4 << 10}
	first := must(algo.Choose(algo.Auto, p, m))(t)
	expected := m.Time(sim.Count(first))
	for _, took := range []time.Duration{expected, expected * 14 / 10, expected * 10 / 14} {
		if x := must(algo.ChooseAfter(algo.Auto, p, m, took))(t); !x.Over || x.Plan.Info().Name() != first.Info().Name() {
			t.Errorf("%v for %v: %s, over %v, want the first plan to stay", took, expected, x.Plan.Info().Name(), x.Over)
		}
	}
	x := must(algo.ChooseAfter(algo.Auto, p, m, 20*expected))(t)
	if name := x.Plan.Info().Name(); x.Over || name == first.Info().Name() || !strings.Contains(x.Why, "the plan "+name+" is tried: "+first.Info().Name()+" took ") {
		t.Errorf("20 times %v: %s, over %v, %q", expected, name, x.Over, x.Why)
	}
	slow, quick := 20*expected, 10*expected
	for _, c := range [][]time.Duration{{slow, quick, slow}, {slow, slow + 1, slow + 1}} {
		x := must(algo.ChooseAfter(algo.Auto, p, m, c...))(t)
		if kept := x.Plan.Info().Name() == first.Info().Name(); !x.Over || kept != (c[1] > slow) || !strings.Contains(x.Why, "is kept") {
			t.Errorf("%v: %s, over %v, %q", c, x.Plan.Info().Name(), x.Over, x.Why)
		}
	}
}

// TestRegret has a plan of a little more time by the model and far less by networks within its error.
func TestRegret(t *testing.T) {
	p := must(algo.NewProblem(must(matrix.Cauchy(fieldtest.Parse(t, "2^8"), 8, 8))(t), 0, algo.Natural))(t)
	m := sim.Model{Network: must(sim.ParseNetwork("10gbit/20us"))(t), Gamma: 1e-10, Bytes: 4 << 10}
	worst := func(off float64) float64 {
		m.Network.Error = off
		q := must(algo.Choose(algo.Auto, p, m))(t)
		list, _ := algo.Candidates(p, m)
		worst := 0.0
		for i := range 27 {
			other := m
			f := []float64{1.0 / 3, 1, 3}
			other.Network = m.Network.Scaled(f[i%3], f[i/3%3], f[i/9])
			for _, c := range list {
				worst = max(worst, float64(other.Time(sim.Count(q)))/float64(other.Time(c.Cost)))
			}
		}
		return worst
	}
	if exact, within := worst(0), worst(2); within >= exact {
		t.Errorf("by an exact network the worst is %.2f, by one that is off by up to 3 %.2f: want less", exact, within)
	}
}

// TestFind has a rank choose a plan, and another one find it by what the first one says: it is the same.
func TestFind(t *testing.T) {
	for _, family := range []string{"cauchy", "random:1", "rs:vandermonde"} {
		for _, kr := range [][2]int{{16, 4}, {17, 3}, {24, 8}, {4, 20}, {40, 8}, {16, 16}} {
			spec := must(matrices.ParseSpec(family))(t)
			a, err := spec.Build(fieldtest.Parse(t, "2^8"), kr[0], kr[1])
			if err != nil {
				continue // not of that shape
			}
			for _, separate := range []bool{false, true} {
				for i, network := range []string{"100mbit/1ms", "200gbit/2us"} {
					for j, bytes := range []int64{1 << 10, 1 << 20, 64 << 20} {
						if (i+j)%verifyall.Most(2, 1) > 0 {
							continue
						}
						p, other := &algo.Problem{Matrix: a, Separate: separate}, &algo.Problem{Matrix: a, Separate: separate}
						if err := errors.Join(p.Prepare(), other.Prepare()); err != nil {
							t.Fatal(err)
						}
						m := sim.Model{Network: must(sim.ParseNetwork(network))(t), Gamma: 1e-10, Bytes: bytes}
						chosen := must(algo.ChooseAfter(algo.Auto, p, m))(t)
						said := algo.Trial{}
						if err := json.Unmarshal(must(json.Marshal(chosen))(t), &said); err != nil {
							t.Fatal(err)
						}
						found, err := said.Find(other)
						if err != nil {
							t.Errorf("%s %v, %s, %d bytes: %s: %v", family, kr, network, bytes, chosen.Name, err)
							continue
						}
						if slots := plan.MemorySlots(found.Plan); slots != found.Slots {
							t.Errorf("%s %v, %s, %d bytes: %s has %d slots, and says %d", family, kr, network, bytes, chosen.Name, slots, found.Slots)
						}
						var one, two strings.Builder
						if err := errors.Join(plan.Encode(&one, chosen.Plan), plan.Encode(&two, found.Plan)); err != nil || one.String() != two.String() {
							t.Errorf("%s %v, %s, %d bytes: %s is found as another plan: %v", family, kr, network, bytes, chosen.Name, err)
						}
					}
				}
			}
		}
	}
}
