package algo_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"volley/algo"
	"volley/field"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrixtest"
	"volley/verify"
)

// forAnyMatrix returns the algorithms that take every matrix.
func forAnyMatrix() []algo.Algorithm {
	return slices.DeleteFunc(algo.Algorithms(), func(a algo.Algorithm) bool { return a.Structured })
}

// checkTransfer compiles the algorithm for a and compares what the plan does with
// a.
func checkTransfer(t *testing.T, algorithm algo.Algorithm, a matrix.Matrix, ports int) {
	t.Helper()
	p, err := algorithm.Compile(a, ports)
	if err == nil {
		err = verify.Check(t.Context(), p, a)
	}
	if err != nil {
		t.Errorf("%s, K=%d p=%d over %s: %v", algorithm.Name, a.Rows(), ports, a.Field().Name(), err)
	}
}

// TestTransferMatrix checks every algorithm for every K up to 40.
func TestTransferMatrix(t *testing.T) {
	for _, name := range []string{"2^8", "257", "3^4"} {
		f := fieldtest.Parse(t, name)
		for _, algorithm := range forAnyMatrix() {
			t.Run(fmt.Sprintf("%s/%s", name, algorithm.Name), func(t *testing.T) {
				t.Parallel()
				for k := 1; k <= 40; k++ {
					for ports := 1; ports <= 4; ports++ {
						checkTransfer(t, algorithm, matrixtest.Random(t, f, k, uint64(k)), ports)
					}
				}
			})
		}
	}
}

// TestTransferMatrixSample checks a seeded sample of what verify-all checks whole.
func TestTransferMatrixSample(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 12 {
		k, ports := 41+rng.IntN(30), 1+rng.IntN(4)
		name := []string{"2^8", "257", "3^4"}[rng.IntN(3)]
		f := fieldtest.Parse(t, name)
		for _, algorithm := range forAnyMatrix() {
			checkTransfer(t, algorithm, matrixtest.Random(t, f, k, rng.Uint64()), ports)
		}
	}
	for _, algorithm := range forAnyMatrix() {
		checkTransfer(t, algorithm, matrixtest.Random(t, fieldtest.Parse(t, "257"), 125, 3), 2)
	}
}

// TestSparseMatrices checks matrices with many zeros, for which a schedule sends
// elements that are zero.
func TestSparseMatrices(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, k := range []int{1, 2, 3, 9, 16, 17} {
		zero := matrix.NewDense(f, k, k)
		shift := matrix.NewDense(f, k, k)
		lower := matrix.NewDense(f, k, k)
		identity := matrix.NewDense(f, k, k)
		for i := range k {
			shift.Set(i, (i+1)%k, field.Code(7))
			identity.Set(i, i, field.One)
			for j := range i {
				lower.Set(i, j, field.Code(uint64(1+i+j)))
			}
		}
		for _, a := range []matrix.Matrix{zero, identity, shift, lower} {
			for _, algorithm := range forAnyMatrix() {
				for _, ports := range []int{1, 3} {
					checkTransfer(t, algorithm, a, ports)
				}
			}
		}
	}
}
