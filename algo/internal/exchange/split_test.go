package exchange

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"volley/algo/schedule"
	"volley/field/fieldtest"
	"volley/internal/verifyall"
	"volley/plan"
)

// TestSplitCost compares counted costs with those of a simulation that shares no code with
// this one, in which slices move as linear forms.
func TestSplitCost(t *testing.T) {
	f := fieldtest.Parse(t, "2^16")
	for _, c := range []struct {
		k, ports int
		want     string
	}{
		{8, 1, "4/3 6/2.75 7/2.5"},
		{16, 1, "5/5 6/4 7/3.75 8/3.5 11/3.375 12/3.125 15/2.75"},
		{32, 1, "6/7 7/6 8/5 9/4.75 10/4.5 13/4 16/3.75 22/3.438 31/2.875"},
		{64, 1, "7/11 8/8 9/7 10/6 14/5 18/4.625 21/4.25 32/3.875 42/3.594 63/2.938"},
		{16, 3, "3/1.5"},
		{64, 7, "3/1.25"},
	} {
		p := sinksProblem(t, randomMatrix(t, f, c.k, c.k), false, c.ports)
		plans, err := SplitPlans(p)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Fields(inPacketsAll(plans))
		for _, want := range strings.Fields(c.want) {
			if !slices.Contains(got, want) {
				t.Errorf("K=%d p=%d: %v, want %s, too", c.k, c.ports, got, want)
			}
		}
	}
}

// TestSplitFormula compares counted costs at p = 1 with C1 = h + clog(K), C2 = h + Psi(K/2^h).
func TestSplitFormula(t *testing.T) {
	f := fieldtest.Parse(t, "2^16")
	for digits := 2; digits <= 8; digits++ {
		k := 1 << digits
		plans, err := SplitPlans(sinksProblem(t, randomMatrix(t, f, k, k), false, 1))
		if err != nil {
			t.Fatal(err)
		}
		for h := 1; h < digits; h++ {
			psi := 0
			for round := 1; round <= digits-h; round++ {
				psi += 1 << min(round-1, digits-h-round)
			}
			c1, c2 := h+digits, float64(h+psi)
			if !slices.ContainsFunc(plans, func(q plan.Plan) bool {
				rounds, packets := inPackets(q)
				return rounds <= c1 && packets <= c2
			}) {
				t.Errorf("K=%d, groups of %d: no plan of %d rounds and %g packets: %s", k, 1<<h, c1, c2, inPacketsAll(plans))
			}
		}
	}
}

// TestSplitTransfer checks what splits compute: every K up to 40, one p up to 4
// for each. "make verify-all" takes all four.
func TestSplitTransfer(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for k := 4; k <= 40; k++ {
		for more := range verifyall.Pick(1, 4) {
			ports := 1 + (k+more)%4
			p := sinksProblem(t, randomMatrix(t, f, k, k), false, ports)
			n := checkSinks(t, sinksFamily{"split", SplitPlans}, p)
			if _, err := SplitPlans(p); (n == 0) != errors.Is(err, schedule.ErrStructure) {
				t.Errorf("K=%d: %d plans, %v", k, n, err)
			}
		}
	}
}
