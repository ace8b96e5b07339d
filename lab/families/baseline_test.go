package families

import (
	"fmt"
	"testing"

	"volley/algo/algotest"
	"volley/field/fieldtest"
	"volley/matrix/matrixtest"
	"volley/plan"
	"volley/sim"
	"volley/verify"
)

var baselines = []string{"ring-allgather", "direct", "central"}

// TestBaselineCosts compares the costs counted with the formulas, and those counted by class with those of
// every processor.
func TestBaselineCosts(t *testing.T) {
	ceil := func(a, b int) int { return (a + b - 1) / b }
	for ports := 1; ports <= 4; ports++ {
		for k := 1; k <= 100; k++ {
			p := max(1, min(ports, k-1))
			rounds := 0
			for reached := 1; reached < k; reached *= p + 1 {
				rounds++
			}
			packets := ceil(k-1, p)
			for name, want := range map[string][2]int{
				"ring-allgather": {k - 1, k - 1},
				"direct":         {packets, packets},
				"central":        {2 * rounds, 2 * packets},
			} {
				q := algotest.Compile(t, name, "257", "random:1", k, ports)
				got := sim.Count(q)
				if got.C1 != want[0] || got.C2 != want[1] {
					t.Fatalf("%s, K=%d p=%d: %d/%d, want %d/%d", name, k, ports, got.C1, got.C2, want[0], want[1])
				}
				if k > 30 {
					continue
				}
				all := must(plan.Materialize(q))(t)
				if one := sim.Count(all); one.C2 != got.C2 || one.Messages() != got.Messages() || one.Slots != got.Slots {
					t.Errorf("%s, K=%d p=%d: by class %+v, all %+v", name, k, ports, got, one)
				}
			}
		}
	}
}

// TestBaselines checks which matrix they compute.
func TestBaselines(t *testing.T) {
	for _, name := range baselines {
		for _, f := range []string{"257", "2^8"} {
			for k := 1; k <= 24; k++ {
				for ports := 1; ports <= 4; ports++ {
					a := matrixtest.Random(t, fieldtest.Parse(t, f), k, uint64(k))
					if err := verify.Check(t.Context(), algotest.Compile(t, name, f, fmt.Sprint("random:", k), k, ports), a); err != nil {
						t.Fatalf("%s over %s, K=%d p=%d: %v", name, f, k, ports, err)
					}
				}
			}
		}
	}
}
