package schedule_test

import (
	"context"
	"fmt"
	"time"

	"volley/algo"
	"volley/algo/schedule"
	"volley/field"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
	"volley/verify"
)

// pairwise is an algorithm of one's own: in round t processor k exchanges scaled packets
// with processor k XOR t. It takes any matrix for K a power of 2.
type pairwise struct{ size int }

func (pairwise) Parameters() (string, []int) { return "", nil }

func (s pairwise) Phases() []plan.Phase { return []plan.Phase{{Name: "exchange", Rounds: s.size - 1}} }

func (s pairwise) Classes() []plan.Class { return schedule.OneClass(s.size) }

func (s pairwise) Encode(b *schedule.Builder, g schedule.Group, in plan.Slot) plan.Slot {
	scaled := func(j int) []schedule.Addend { // x_k times its coefficient in result j
		return schedule.Weighted([]plan.Slot{in}, func(int) field.Element { return g.At(g.Index, j) })
	}
	result := scaled(g.Index)
	for t := 1; t < s.size; t++ {
		partner := g.Index ^ t
		b.Send(0, g.Processor(partner), []plan.Slot{b.Total(scaled(partner))})
		result = append(result, schedule.InSlot(b.Receive(0, g.Processor(partner), 1)[0])...)
		b.EndRound()
	}
	return b.Total(result)
}

// pairwisePlans is what the registry calls.
func pairwisePlans(p *algo.Problem) ([]plan.Plan, error) {
	if err := p.Task().MustBeSquare("pairwise"); err != nil {
		return nil, err
	}
	k := p.Matrix.Rows()
	if k&(k-1) != 0 {
		return nil, schedule.Misfit(fmt.Sprintf("pairwise for K = %d: want a power of 2", k))
	}
	return []plan.Plan{schedule.OnAll("pairwise", pairwise{k}, p.Task())}, nil
}

func init() {
	check(algo.Register(algo.Algorithm{
		Name: "pairwise", Title: "each pair of processors exchanges scaled packets",
		Problem: "any A, K a power of 2", C1: "K-1", C2: "K-1", Structured: true, Make: pairwisePlans,
	}))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// An algorithm of one's own is registered, compiled, verified and counted; then the planner
// considers it among all others.
func Example() {
	f, err := field.Parse("2^8")
	check(err)
	a, err := matrix.Cauchy(f, 8, 8)
	check(err)
	problem, err := algo.NewProblem(a, 1, algo.Natural)
	check(err)
	model := sim.Model{Beta: 20 * time.Microsecond, Tau: 0.8e-9, Bytes: 1 << 20}
	own, err := algo.Choose("pairwise", problem, model)
	check(err)
	cost := sim.Count(own)
	fmt.Println("pairwise:", cost.C1, "rounds,", cost.C2, "packets, wrong:", verify.Check(context.Background(), own, a))
	best, err := algo.Choose(algo.Auto, problem, model)
	check(err)
	fmt.Println("the planner takes", best.Info().Algorithm)
	// Output:
	// pairwise: 7 rounds, 7 packets, wrong: <nil>
	// the planner takes exchange
}
