package universal

import (
	"slices"
	"testing"

	"volley/algo/schedule"
	"volley/field/fieldtest"
	"volley/matrix/matrixtest"
	"volley/plan"
	"volley/sim"
)

// A pair is C1 and C2.
type pair struct{ C1, C2 int }

func pairOf(c sim.Cost) pair { return pair{c.C1, c.C2} }

// TestTune compares the window that is chosen with all there are.
func TestTune(t *testing.T) {
	for k := 1; k <= 130; k++ {
		for ports := 1; ports <= 4; ports++ {
			fewest := schedule.Clog(k, ports)
			for over := range 4 {
				best := (pair{})
				for m := 1; m <= k; m++ {
					c := pairOf(Cost(m, (k+m-1)/m, ports))
					if c.C1 <= fewest+over && (m == 1 && best == (pair{}) || best == (pair{}) || c.C2 < best.C2 || c.C2 == best.C2 && c.C1 < best.C1) {
						best = c
					}
				}
				m, n := Tune(k, ports, over)
				if got := pairOf(Cost(m, n, ports)); m*n < k || got != best {
					t.Fatalf("K=%d p=%d over %d: m=%d n=%d with %v, want %v", k, ports, over, m, n, got, best)
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
	type takes struct{ C1, C2, memory, compute int }
	of := func(q plan.Plan) takes {
		c := sim.Count(q)
		return takes{c.C1, c.C2, plan.MemorySlots(q), c.C3}
	}
	for _, k := range []int{1, 2, 5, 16, 24, 37} {
		a := matrixtest.Cauchy(t, f, k)
		for ports := 1; ports <= 3; ports++ {
			p := schedule.Task{Matrix: a, Ports: max(1, min(ports, k-1))}
			var all []takes // of every window
			for m := 1; m <= k; m++ {
				step := New(k, p.Ports, m, (k+m-1)/m)
				all = append(all, of(schedule.Compile(plan.Info{Field: f, Processors: k, Ports: p.Ports}, schedule.OneGroup(step, k, a.At))))
			}
			for over := -1; over <= 3; over++ {
				plans, err := Plans(p, over, false)
				if err != nil {
					t.Fatal(err)
				}
				var got, want []pair
				for _, q := range plans {
					got = append(got, pairOf(sim.Count(q)))
				}
				for _, w := range sim.Front(all, func(w takes) sim.Cost { return sim.Cost{C1: w.C1, C2: w.C2} }) {
					if over < 0 || w.C1 <= schedule.Clog(k, p.Ports)+over {
						want = append(want, pair{C1: w.C1, C2: w.C2})
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("K=%d p=%d over %d: %v, want %v", k, ports, over, got, want)
				}
			}
			plans, err := Plans(p, -1, true)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range all {
				if !slices.ContainsFunc(plans, func(q plan.Plan) bool {
					x := of(q)
					return x.C1 <= w.C1 && x.C2 <= w.C2 && x.memory <= w.memory && x.compute <= w.compute
				}) {
					t.Errorf("K=%d p=%d: no plan takes as little as %+v", k, ports, w)
				}
			}
		}
	}
}

// TestTuneRoundsOver checks that a round more buys what it is known to buy.
func TestTuneRoundsOver(t *testing.T) {
	cost := func(over int) int {
		m, n := Tune(100, 1, over)
		return m - 1 + n - 1
	}
	if cost(0) != 19 || cost(1) != 18 {
		t.Errorf("K=100, p=1: C2 = %d and, with a round more, %d; want 19 and 18", cost(0), cost(1))
	}
}
