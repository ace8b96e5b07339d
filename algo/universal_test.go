package algo

import (
	"slices"
	"testing"

	"volley/field/fieldtest"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
)

// TestTune compares the window that is chosen with all there are.
func TestTune(t *testing.T) {
	for k := 1; k <= 130; k++ {
		for ports := 1; ports <= 4; ports++ {
			fewest := BoundC1(k, ports)
			for over := range 4 {
				best := cost{}
				for m := 1; m <= k; m++ {
					c := universalCost(m, (k+m-1)/m, ports)
					if c.c1 <= fewest+over && (m == 1 && best == cost{} || best == cost{} || c.c2 < best.c2 || c.c2 == best.c2 && c.c1 < best.c1) {
						best = c
					}
				}
				m, n := tune(k, ports, over)
				if got := universalCost(m, n, ports); m*n < k || got != best {
					t.Fatalf("K=%d p=%d over %d: m=%d n=%d with %v, want %v", k, ports, over, m, n, got, best)
				}
				if got := universalC2(k, ports, fewest+over); got != best.c2 {
					t.Fatalf("K=%d p=%d over %d: C2 = %d, want %d", k, ports, over, got, best.c2)
				}
			}
		}
	}
}

// TestUniversalPlans checks how many rounds the plans take under a limit, and that some
// window that does where memory or multiply-adds are limited is among them, if there is
// one.
func TestUniversalPlans(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	type takes struct{ c1, c2, memory, compute int }
	of := func(q plan.Plan) takes {
		c := sim.Count(q)
		return takes{c.C1, c.C2, plan.MemorySlots(q), c.C3}
	}
	for _, k := range []int{1, 2, 5, 16, 24, 37} {
		a, err := matrix.Cauchy(f, k, k)
		if err != nil {
			t.Fatal(err)
		}
		for ports := 1; ports <= 3; ports++ {
			p, err := NewProblem(a, ports, Natural)
			if err != nil {
				t.Fatal(err)
			}
			var all []takes // of every window
			for m := 1; m <= k; m++ {
				step := newUniversal(k, p.Ports, m, (k+m-1)/m)
				all = append(all, of(compile("", "", f, k, p.Ports, whole(step, k, a.At))))
			}
			for over := -1; over <= 3; over++ {
				p.Limits = Limits{Rounds: FewestPlus(over)}
				plans, err := universalPlans(p)
				if err != nil {
					t.Fatal(err)
				}
				var got, want []cost
				for _, q := range plans {
					got = append(got, costOf(q))
				}
				for _, w := range front(all, func(w takes) cost { return cost{w.c1, w.c2} }) {
					if over < 0 || w.c1 <= BoundC1(k, p.Ports)+over {
						want = append(want, cost{w.c1, w.c2})
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("K=%d p=%d over %d: %v, want %v", k, ports, over, got, want)
				}
			}
			p.Limits = Limits{Memory: 1000}
			plans, err := universalPlans(p)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range all {
				if !slices.ContainsFunc(plans, func(q plan.Plan) bool {
					x := of(q)
					return x.c1 <= w.c1 && x.c2 <= w.c2 && x.memory <= w.memory && x.compute <= w.compute
				}) {
					t.Errorf("K=%d p=%d: no plan takes as little as %+v", k, ports, w)
				}
			}
		}
	}
}
