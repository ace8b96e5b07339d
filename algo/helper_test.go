package algo

import (
	"testing"

	"volley/field"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
)

func randomSquare(t testing.TB, f field.Field, k int, seed uint64) matrix.Matrix {
	t.Helper()
	a, err := matrix.Random(f, k, k, seed)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func cauchy(t testing.TB, f field.Field, k int) matrix.Matrix {
	t.Helper()
	a, err := matrix.Cauchy(f, k)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A pair is C1 and C2.
type pair struct{ C1, C2 int }

func costOf(p plan.Plan) pair { return pairOf(sim.Count(p)) }

func pairOf(c sim.Cost) pair { return pair{c.C1, c.C2} }
