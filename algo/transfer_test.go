package algo_test

import (
	"fmt"
	"testing"

	"volley/algo"
	"volley/field"
	"volley/matrix"
	"volley/verify"
)

func parse(t testing.TB, name string) field.Field {
	t.Helper()
	f, err := field.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func random(t testing.TB, f field.Field, k int, seed uint64) matrix.Matrix {
	t.Helper()
	a, err := matrix.Random(f, k, k, seed)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// checkTransfer compiles the algorithm for a and compares what the plan does with
// a.
func checkTransfer(t *testing.T, algorithm algo.Algorithm, a matrix.Matrix, ports int) {
	t.Helper()
	p, err := algorithm.Compile(a, ports)
	if err == nil {
		err = verify.Plan(p, a)
	}
	if err != nil {
		t.Errorf("%s, K=%d p=%d over %s: %v", algorithm.Name, a.Rows(), ports, a.Field().Name(), err)
	}
}

// TestTransferMatrix checks every algorithm for every K up to 40.
func TestTransferMatrix(t *testing.T) {
	for _, name := range []string{"2^8", "257", "3^4"} {
		f := parse(t, name)
		for _, algorithm := range algo.Algorithms() {
			t.Run(fmt.Sprintf("%s/%s", name, algorithm.Name), func(t *testing.T) {
				t.Parallel()
				for k := 1; k <= 40; k++ {
					for ports := 1; ports <= 4; ports++ {
						checkTransfer(t, algorithm, random(t, f, k, uint64(k)), ports)
					}
				}
			})
		}
	}
}
