//go:build verifyall

package algo_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"volley/algo"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrixtest"
	"volley/verify"
)

// TestVerifyAll compares the transfer matrix of every algorithm with A, random
// over three fields: all K from 1 to 70 and p from 1 to 4, and larger K.
func TestVerifyAll(t *testing.T) {
	var plans, entries atomic.Int64
	t.Run("plans", func(t *testing.T) {
		for _, name := range []string{"2^8", "257", "3^4"} {
			f := fieldtest.Parse(t, name)
			check := func(algorithm algo.Algorithm, k, ports int) {
				t.Helper()
				checkTransfer(t, algorithm, matrixtest.Random(t, f, k, uint64(1000*k+ports)), ports)
				plans.Add(1)
				entries.Add(int64(k * k))
			}
			for _, algorithm := range forAnyMatrix() {
				t.Run(name+"/"+algorithm.Name, func(t *testing.T) {
					t.Parallel()
					for k := 1; k <= 70; k++ {
						for ports := 1; ports <= 4; ports++ {
							check(algorithm, k, ports)
						}
					}
					for _, k := range []int{81, 125, 128, 256, 257} {
						for _, ports := range []int{1, 2, 4} {
							check(algorithm, k, ports)
						}
					}
				})
			}
		}
	})
	t.Logf("%d plans, %d coefficients compared", plans.Load(), entries.Load())
}

// TestVerifyAllStructured compares the transfer matrix of every plan of every family,
// forward and inverse, with A: all admissible K up to 128 and p from 1 to 4 over
// fields of every kind, and K = 256.
func TestVerifyAllStructured(t *testing.T) {
	var mu sync.Mutex
	total := map[string]int{}
	var plans, entries int64
	t.Run("fields", func(t *testing.T) {
		for _, name := range []string{"2^4", "2^8", "2^16", "97", "163", "257", "3^4", "goldilocks", "bls12-381"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := fieldtest.Parse(t, name)
				for k := 1; k <= 129; k++ {
					if k == 129 {
						k = 256
					}
					count := map[string]int{}
					for ports := 1; ports <= max(1, min(4, k-1)); ports++ {
						checkStructured(t, f, k, ports, count)
					}
					mu.Lock()
					for algorithm, n := range count {
						total[algorithm] += n
						plans += int64(n)
						entries += int64(n * k * k)
					}
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d plans, %d coefficients compared: %v", plans, entries, total)
}

// TestVerifyAllSteps compares the transfer matrix of every plan of universal and windows, also
// those with more rounds, with Cauchy and random matrices: all K up to 130, p from 1 to 4, and
// a sample up to K = 600.
func TestVerifyAllSteps(t *testing.T) {
	var total atomic.Int64
	t.Run("fields", func(t *testing.T) {
		for _, name := range []string{"2^16", "257"} {
			f := fieldtest.Parse(t, name)
			check := func(t *testing.T, k, ports int) {
				t.Helper()
				a := matrixtest.Random(t, f, k, uint64(k))
				if name == "2^16" {
					a = must(matrix.Cauchy(f, k, k))(t)
				}
				p := problem(t, a, ports, algo.Natural)
				plans, err := lookup(t, "universal").Plans(p)
				if err != nil {
					t.Errorf("over %s, K=%d p=%d: %v", name, k, ports, err)
				}
				others, err := lookup(t, "windows").Plans(p)
				if err != nil && !errors.Is(err, algo.ErrStructure) {
					t.Errorf("over %s, K=%d p=%d: %v", name, k, ports, err)
				}
				plans = append(plans, others...)
				for _, q := range plans {
					if err := verify.Check(t.Context(), q, a); err != nil {
						t.Errorf("%s over %s, K=%d p=%d: %v", q.Info().Parameters, name, k, ports, err)
					}
				}
				total.Add(int64(len(plans)))
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for k := 1; k <= 130; k++ {
					for ports := 1; ports <= max(1, min(4, k-1)); ports++ {
						check(t, k, ports)
					}
				}
				for _, k := range []int{195, 300, 384, 600} {
					check(t, k, 1)
				}
			})
		}
	})
	t.Logf("%d plans", total.Load())
}
