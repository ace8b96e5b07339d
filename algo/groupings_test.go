package algo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"volley/algo"
	"volley/internal/verifyall"
	"volley/matrix/matrices"
)

// TestNoGroupingBeatsChosen compares what is chosen in the paper's model with the plan of every ordered factorisation of
// K, by its name: of a Lagrange matrix around the middle. The draw-and-loose and DFT formulas of the paper are such plans.
func TestNoGroupingBeatsChosen(t *testing.T) {
	t.Parallel()
	most, beaten := verifyall.Pick(48, 210), 0
	for k := 4; k <= most; k++ {
		lists := slices.DeleteFunc(orderedFactorisations(k), func(sizes []int) bool { return len(sizes) == 1 })
		for _, spec := range []matrices.Spec{{Family: "dft"}, {Family: "dft", Order: "reversed"}, {Family: "vandermonde"}, {Family: "lagrange"}} {
			for ports := 1; ports <= min(5, k-1) && len(lists) > 0; ports++ {
				f := primeField(t, 2*k, k)
				for _, order := range []algo.Order{algo.Natural, algo.AnyOrder} {
					p := must(algo.NewProblem(built(t, spec, f, k, ports), ports, order))(t)
					p.WholePackets = true
					chosen := p.Evaluate(must(algo.Choose(algo.Auto, p, perRound))(t), perRound)
					for _, sizes := range lists {
						if spec.Family == "lagrange" {
							back := slices.Clone(sizes[:len(sizes)-1])
							slices.Reverse(back)
							sizes = slices.Concat(sizes, back)
						}
						name := "layers:" + strings.Trim(strings.ReplaceAll(fmt.Sprint(sizes), " ", ","), "[]")
						plans, _ := must(algo.Lookup(name))(t).Plans(p) // none where no layers have these sizes
						for _, q := range plans {
							if c := p.Evaluate(q, perRound); c.Time < chosen.Time {
								beaten++
								t.Errorf("%s, K = %d, p = %d, %v order: %s takes %d/%d, and %s was chosen with %d/%d", spec.Family, k, ports, order,
									name, c.Cost.C1, c.Cost.C2, chosen.Plan.Info().Name(), chosen.Cost.C1, chosen.Cost.C2)
							}
						}
					}
				}
			}
		}
	}
	t.Logf("K up to %d: %d plans beat what was chosen", most, beaten)
}
