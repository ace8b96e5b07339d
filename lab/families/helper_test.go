package families

import (
	"testing"

	"volley/field"
	_ "volley/field/curves"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
)

func cauchy(t testing.TB, f field.Field, k int) matrix.Matrix {
	t.Helper()
	a, err := matrix.Cauchy(f, k, k)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A pair is C1 and C2.
type pair struct{ C1, C2 int }

func costOf(p plan.Plan) pair {
	c := sim.Count(p)
	return pair{c.C1, c.C2}
}
