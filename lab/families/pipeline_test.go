package families

import (
	"errors"
	"fmt"
	"testing"

	"volley/algo"
	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/verifyall"
	"volley/matrix"
	"volley/sim"
	"volley/verify"
)

// pipelineProblem returns the problem of a random matrix of one row or column.
func pipelineProblem(t *testing.T, f field.Field, k, r int, separate bool, ports int) *algo.Problem {
	t.Helper()
	a, err := matrix.Random(f, k, r, uint64(1000*k+r))
	if err != nil {
		t.Fatal(err)
	}
	p := &algo.Problem{Matrix: a, Separate: separate, Ports: ports}
	if err := p.Prepare(); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPipelineCost compares counted costs with the formula and with README.md, and checks the plans
// for one source and for one sink.
func TestPipelineCost(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for n := 2; n <= verifyall.Most(14, 40); n++ {
		for _, shape := range [][2]int{{n, 1}, {1, n}} {
			for _, separate := range []bool{false, true} {
				for ports := 1; ports <= 4; ports++ {
					p := pipelineProblem(t, f, shape[0], shape[1], separate, ports)
					where := fmt.Sprintf("K=%d R=%d separate=%t p=%d", shape[0], shape[1], separate, ports)
					plans, err := pipelinePlans(p)
					if p.Processors() < 3 {
						if !errors.Is(err, algo.ErrStructure) {
							t.Errorf("%s: %v", where, err)
						}
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					for _, q := range plans {
						pieces, rounds := q.Info().Pieces, 0
						for 1<<rounds < p.Processors() {
							rounds++
						}
						rounds += (pieces+p.Ports-1)/p.Ports - 1
						if got, want := costOf(q), (pair{rounds, rounds}); got != want {
							t.Errorf("%s, %d pieces: %v, want %v", where, pieces, got, want)
						}
						if err := verify.Check(t.Context(), q, p.Matrix); err != nil {
							t.Errorf("%s, %d pieces: %v", where, pieces, err)
						}
					}
				}
			}
		}
	}
	for ports, want := range map[int]string{
		1: " 8/4 10/2.5 14/1.75 22/1.375 38/1.188 70/1.094",
		3: " 7/2.333 8/1.333 10/0.8333 14/0.5833 22/0.4583",
	} {
		plans, err := pipelinePlans(pipelineProblem(t, f, 100, 1, false, ports))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, q := range plans {
			c := sim.Count(q)
			got += fmt.Sprintf(" %d/%.4g", c.C1, c.PacketC2())
		}
		if got != want {
			t.Errorf("K=100 R=1 p=%d:%s, want%s", ports, got, want)
		}
	}
	if _, err := pipelinePlans(pipelineProblem(t, f, 8, 2, false, 1)); !errors.Is(err, algo.ErrStructure) {
		t.Errorf("two sinks: %v", err)
	}
}
