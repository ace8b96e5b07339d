package exchange

import (
	"errors"
	"math"
	"testing"

	"volley/algo/schedule"
	"volley/field/fieldtest"
	"volley/plan"
)

// TestHelpersCost compares counted costs with the formulas, and with the bound: every sink
// sends its packet and obtains another, so that no plan takes less than one packet at p = 1.
func TestHelpersCost(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, c := range []struct {
		k, r, ports int
		separate    bool
		segments    int
		c1          int
		c2          float64
	}{
		{100, 10, 1, false, 8, 9 * 99, 99. / 90 * 9 / 8},
		{100, 10, 1, false, 32, 33 * 99, 99. / 90 * 33 / 32},
		{100, 10, 99, false, 8, 9, 9. / 90 / 8},
		{24, 3, 1, false, 2, 3 * 23, 23. / 21 * 3 / 2},
		{24, 3, 1, true, 2, 3 * 26, 26. / 24 * 3 / 2},
		{24, 3, 5, true, 4, 5 * 6, 6. / 24 * 5 / 4},
	} {
		q, err := HelpersWith(sinksProblem(t, randomMatrix(t, f, c.k, c.r), c.separate, c.ports), [][]int{{c.segments}})
		if err != nil {
			t.Fatal(err)
		}
		if rounds, packets := inPackets(q); rounds != c.c1 || math.Abs(packets-c.c2) > 1e-9 {
			t.Errorf("K=%d R=%d p=%d separate=%t S=%d: %d/%g, want %d/%g", c.k, c.r, c.ports, c.separate, c.segments, rounds, packets, c.c1, c.c2)
		}
	}
}

// TestHelpersRefusals checks what helpers are not for.
func TestHelpersRefusals(t *testing.T) {
	f := fieldtest.Parse(t, "2^16")
	for _, c := range []struct {
		k, r       int
		separate   bool
		parameters [][]int
	}{
		{8, 8, false, [][]int{{2}}}, {8, 4, false, [][]int{{2}}}, {4, 8, false, [][]int{{2}}}, {4, 4, true, [][]int{{2}}}, {300, 2, false, [][]int{{2}}},
		{8, 2, false, [][]int{{2, 2}}}, {8, 2, false, [][]int{{2}, {2}}}, {8, 2, false, [][]int{{1 << 20}}},
	} {
		if _, err := HelpersWith(sinksProblem(t, randomMatrix(t, f, c.k, c.r), c.separate, 1), c.parameters); !errors.Is(err, schedule.ErrStructure) {
			t.Errorf("K=%d R=%d separate=%t %v: %v", c.k, c.r, c.separate, c.parameters, err)
		}
	}
}

// TestHelpersTransfer checks what helpers compute: K up to 40, sinks among the sources and
// apart, p up to 4, some segments.
func TestHelpersTransfer(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	n := 0
	for k := 2; k <= 40; k++ {
		for _, separate := range []bool{false, true} {
			r := 1 + (7*k+3)%max(1, k/2)
			ports, segments := 1+k%4, 1+(k/4)%3
			n += checkSinks(t, sinksFamily{"helpers", func(t schedule.Task) ([]plan.Plan, error) {
				q, err := HelpersWith(t, [][]int{{segments}})
				if err != nil {
					return nil, err
				}
				return []plan.Plan{q}, nil
			}}, sinksProblem(t, randomMatrix(t, f, k, r), separate, ports))
		}
	}
	if n < 60 {
		t.Errorf("%d plans, want more", n)
	}
}
