//go:build verifyall

package families

import (
	"errors"
	"sync"
	"testing"

	"volley/algo"
	"volley/field/fieldtest"
	"volley/matrix/matrixtest"
	"volley/verify"
)

func problem(t testing.TB, name string, k, ports int) *algo.Problem {
	t.Helper()
	f := fieldtest.Parse(t, name)
	a := matrixtest.Random(t, f, k, 1)
	if name == "2^16" || name == "2^8" {
		a = matrixtest.Cauchy(t, f, k)
	}
	return must(algo.NewProblem(a, ports, algo.Natural))(t)
}

// TestVerifyAll compares the transfer matrix of every plan for K up to 130, and some more,
// with the matrix.
func TestVerifyAll(t *testing.T) {
	var mu sync.Mutex
	total := map[string]int{}
	for _, name := range []string{"2^16", "257"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := func(k, ports int) {
				p := problem(t, name, k, ports)
				for _, a := range Algorithms {
					plans, err := a.Plans(p)
					if err != nil && !errors.Is(err, algo.ErrStructure) {
						t.Errorf("%s over %s, K=%d p=%d: %v", a.Name, name, k, ports, err)
					}
					for _, q := range plans {
						if err := verify.Check(t.Context(), q, p.Matrix); err != nil {
							t.Errorf("%s %s over %s, K=%d p=%d: %v", a.Name, q.Info().Parameters, name, k, ports, err)
						}
					}
					mu.Lock()
					total[a.Name] += len(plans)
					mu.Unlock()
				}
			}
			for k := 1; k <= 130; k++ {
				for ports := 1; ports <= max(1, min(4, k-1)); ports++ {
					check(k, ports)
				}
			}
			for _, k := range []int{195, 300, 384, 600} {
				check(k, 1)
			}
		})
	}
	t.Logf("%v", total)
}
