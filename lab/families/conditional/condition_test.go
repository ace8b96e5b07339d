package conditional

import (
	"testing"

	"volley/algo"
	"volley/algo/algotest"
	"volley/field/fieldtest"
	"volley/sim"
)

// TestUniversalC2 compares the packets to beat with those of the plans there are.
func TestUniversalC2(t *testing.T) {
	universal, err := algo.Lookup("universal")
	if err != nil {
		t.Fatal(err)
	}
	f := fieldtest.Parse(t, "257")
	for k := 1; k <= 70; k++ {
		for ports := 1; ports <= min(3, max(1, k-1)); ports++ {
			p, err := algo.NewProblem(algotest.Random(t, f, k, 1), ports, algo.Natural)
			if err != nil {
				t.Fatal(err)
			}
			for over := range 3 {
				p.Limits.Rounds = algo.FewestPlus(over)
				plans, err := universal.Plans(p)
				if err != nil {
					t.Fatal(err)
				}
				least := sim.Count(plans[len(plans)-1]).C2
				if got := universalC2(k, ports, algo.BoundC1(k, ports)+over); got != least {
					t.Fatalf("K=%d p=%d, %d rounds more: %d packets, the plan has %d", k, ports, over, got, least)
				}
			}
		}
	}
}
