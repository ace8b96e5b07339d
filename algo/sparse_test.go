package algo_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"volley/algo"
	"volley/field"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
	"volley/verify"
)

// withSupport returns a random matrix that is zero but where support says.
func withSupport(f field.Field, k, r int, rng *rand.Rand, support func(i, j int) bool) matrix.Matrix {
	m := matrix.NewDense(f, k, r)
	for i := range k {
		for j := range r {
			if support(i, j) {
				m.Set(i, j, field.Code(1+rng.Uint64N(f.Order().Uint64()-1)))
			}
		}
	}
	return m
}

var perRound = sim.Model{Beta: 1000, Tau: 1, Bytes: 1 << 10, SymbolBytes: 1}

// TestSparsePlans: whatever is zero, every plan is valid, computes the matrix, and is not below the bound for it.
func TestSparsePlans(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	fields := []field.Field{fieldtest.Parse(t, "2"), fieldtest.Parse(t, "7"), fieldtest.Parse(t, "2^8")}
	for n := range 150 {
		k := 1 + rng.IntN(13)
		r := k
		if n%3 == 0 {
			r = 1 + rng.IntN(13)
		}
		nonzero := []float64{0, .1, .3, .45, .6}[rng.IntN(5)]
		m := withSupport(fields[n%len(fields)], k, r, rng, func(_, _ int) bool { return rng.Float64() < nonzero })
		p := &algo.Problem{Matrix: m, Ports: 1 + rng.IntN(4), Separate: r != k && rng.IntN(2) == 0, Order: algo.Order(rng.IntN(2))}
		if err := p.Prepare(); err != nil {
			t.Fatal(err)
		}
		list, _ := algo.Candidates(p, perRound)
		for _, c := range list {
			info := c.Plan.Info()
			if err := plan.Validate(t.Context(), c.Plan); err != nil {
				t.Fatalf("case %d, %s: %v", n, info.Name(), err)
			}
			if err := verify.Check(t.Context(), c.Plan, m); err != nil {
				t.Fatalf("case %d, %s: %v", n, info.Name(), err)
			}
			if b := p.Bound(p.Ports, info.PieceCount()); c.Cost.C1 < b.C1 || c.Cost.C2 < b.C2 {
				t.Errorf("case %d, %s: %d/%d is below the bound %v", n, info.Name(), c.Cost.C1, c.Cost.C2, b)
			}
		}
	}
}

// TestSparseChosen: what is chosen for the zeros of well-known matrices of 16 processors, which meets the bound.
func TestSparseChosen(t *testing.T) {
	t.Parallel()
	const k = 16
	rng := rand.New(rand.NewPCG(3, 4))
	for name, x := range map[string]struct {
		support func(i, j int) bool
		want    []int
	}{
		"identity":      {func(i, j int) bool { return i == j }, []int{0, 0}},
		"shift":         {func(i, j int) bool { return (i+1)%k == j }, []int{1, 1}},
		"blocks of 4":   {func(i, j int) bool { return i/4 == j/4 }, []int{2, 2}},
		"scattered 4":   {func(i, j int) bool { return i%4 == j%4 }, []int{2, 2}},
		"band of three": {func(i, j int) bool { return max(i-j, j-i) <= 1 }, []int{2, 2}},
	} {
		m := withSupport(fieldtest.Parse(t, "2^8"), k, k, rng, x.support)
		p := must(algo.NewProblem(m, 1, algo.Natural))(t)
		p.WholePackets = true
		c := p.Evaluate(must(algo.Choose(algo.Auto, p, perRound))(t), perRound)
		if b := p.Bound(1, 1); !slices.Equal([]int{c.Cost.C1, c.Cost.C2}, x.want) || b.C1 != x.want[0] || b.C2 != x.want[1] {
			t.Errorf("%s: %s takes %d/%d, want %v; the bound is %v", name, c.Plan.Info().Name(), c.Cost.C1, c.Cost.C2, x.want, b)
		}
	}
}

// TestLargePlansStayWhole: a plan whose programs have too many elements to be made at once is not pruned.
func TestLargePlansStayWhole(t *testing.T) {
	t.Parallel()
	const k = 128
	band := func(i, j int) bool { return max(i-j, j-i) <= 1 }
	m := withSupport(fieldtest.Parse(t, "2^8"), k, k, rand.New(rand.NewPCG(5, 6)), band)
	p := must(algo.NewProblem(m, k-1, algo.Natural))(t)
	for name, pruned := range map[string]bool{"universal:128,1": true, "exchange:128": false} {
		if _, got := must(algo.Choose(name, p, perRound))(t).(*plan.Materialized); got != pruned {
			t.Errorf("%s: pruned %t, want %t", name, got, pruned)
		}
	}
}
