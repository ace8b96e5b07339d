//go:build verifyall

package algo_test

import (
	"testing"

	"volley/algo"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrixtest"
)

// TestVerifyAllStructured compares every plan of every family, forward and inverse, with the matrix: all admissible K up
// to 128 and p from 1 to 4 over fields of every kind, and K = 256.
func TestVerifyAllStructured(t *testing.T) {
	x := tested{plans: map[string]int{}}
	t.Run("fields", func(t *testing.T) {
		for _, name := range []string{"2^4", "2^8", "2^16", "97", "163", "257", "3^4", "goldilocks", "bls12-381"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for k := 1; k <= 129; k++ {
					if k == 129 {
						k = 256
					}
					for ports := 1; ports <= clampPorts(k, 4); ports++ {
						x.structured(t, fieldtest.Parse(t, name), k, ports)
					}
				}
			})
		}
	})
	x.each(t, families())
}

// TestVerifyAllSteps compares every plan of algorithms for any matrix and of windows, also those with more rounds, with
// Cauchy and random matrices: all K up to 130, p from 1 to 4, and a sample up to K = 600.
func TestVerifyAllSteps(t *testing.T) {
	x := tested{plans: map[string]int{}}
	steps := append(forAnyMatrix(), lookup(t, "windows"))
	t.Run("fields", func(t *testing.T) {
		for _, name := range []string{"2^16", "257", "3^4"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := fieldtest.Parse(t, name)
				check := func(k, ports int) {
					a := matrixtest.Random(t, f, k, uint64(k))
					if name == "2^16" {
						a = must(matrix.Cauchy(f, k, k))(t)
					}
					x.all(t, problem(t, a, ports, algo.Natural), steps)
				}
				for k := 1; k <= 130; k++ {
					for ports := 1; ports <= clampPorts(k, 4); ports++ {
						check(k, ports)
					}
				}
				for _, k := range []int{195, 300, 384, 600} {
					check(k, 1)
				}
			})
		}
	})
	x.each(t, steps)
}
