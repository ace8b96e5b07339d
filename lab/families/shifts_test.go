package families

import (
	"errors"
	"math/rand/v2"
	"testing"

	"volley/algo"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/sim"
	"volley/verify"
)

// dftProblem returns the problem of a DFT matrix.
func dftProblem(t testing.TB, name string, k, ports int) (*algo.Problem, matrix.Matrix) {
	t.Helper()
	m := must(matrix.DFT(fieldtest.Parse(t, name), k))(t)
	return shiftProblem(t, m, ports), m
}

func shiftProblem(t testing.TB, m matrix.Matrix, ports int) *algo.Problem {
	t.Helper()
	return must(algo.NewProblem(m, ports, algo.Natural))(t)
}

// TestShiftCosts compares counted costs with the table of README.md, and checks the plans.
func TestShiftCosts(t *testing.T) {
	for _, c := range []struct {
		field            string
		k, ports, c1, c2 int
	}{
		{"257", 8, 1, 3, 3}, {"257", 16, 1, 4, 5}, {"257", 32, 1, 5, 7}, {"257", 64, 1, 6, 9}, {"257", 64, 3, 3, 3}, {"257", 256, 3, 4, 7}, {"257", 32, 3, 3, 3},
		{"163", 27, 2, 3, 3}, {"163", 81, 2, 4, 6}, {"97", 12, 2, 3, 3},
	} {
		p, m := dftProblem(t, c.field, c.k, c.ports)
		plans := must(shiftPlans(p))(t)
		if cost := sim.Count(plans[0]); cost.C1 != c.c1 || cost.C2 > c.c2 {
			t.Errorf("K=%d p=%d: %d/%d, want %d/%d", c.k, c.ports, cost.C1, cost.C2, c.c1, c.c2)
		}
		for _, q := range plans {
			if err := verify.Check(t.Context(), q, m); err != nil && c.k <= 81 {
				t.Errorf("K=%d p=%d, %s: %v", c.k, c.ports, q.Info().Parameters, err)
			}
		}
	}
}

// TestShiftsPermuted has plans for a DFT matrix and its inverse, and none for one in another
// order: those that there are compute what was asked for.
func TestShiftsPermuted(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, k := range []int{4, 6, 8, 12, 16} {
		for _, ports := range []int{1, 2} {
			_, m := dftProblem(t, "goldilocks", k, ports)
			inverse := must(matrix.Inverse(t.Context(), m))(t)
			list := []matrix.Matrix{m, inverse, matrix.Transpose(m)}
			for range 5 {
				permuted := must(matrix.Columns(m, rng.Perm(k)))(t)
				list = append(list, permuted, matrix.Transpose(permuted))
			}
			for i, m := range list {
				plans, err := shiftPlans(shiftProblem(t, m, ports))
				if exist := ports == 2 || k&(k-1) == 0; i < 3 && (err == nil) != exist {
					t.Errorf("K=%d p=%d, %s: %v", k, ports, m.ID(), err)
				}
				if err != nil && !errors.Is(err, algo.ErrStructure) {
					t.Error(err)
				}
				for _, q := range plans {
					if err := verify.Check(t.Context(), q, m); err != nil {
						t.Errorf("K=%d p=%d, %s: %s: %v", k, ports, m.ID(), q.Info().Parameters, err)
					}
				}
			}
		}
	}
}
