package research

import (
	"testing"

	"volley/field"
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

func costOf(p plan.Plan) pair { return pairOf(sim.Count(p)) }

func pairOf(c sim.Cost) pair { return pair{c.C1, c.C2} }

// An askedMatrix counts how often it is asked for an entry.
type askedMatrix struct {
	matrix.Matrix
	asked *int
}

func (m askedMatrix) At(i, j int) field.Element {
	*m.asked++
	return m.Matrix.At(i, j)
}

// identity returns the k×k identity matrix.
func identity(f field.Field, k int) matrix.Matrix {
	a, err := matrix.Random(f, k, k, 0)
	if err != nil {
		panic(err) // of a k below 1
	}
	return identityMatrix{a}
}

type identityMatrix struct{ matrix.Matrix }

func (identityMatrix) ID() string { return "identity" }

func (identityMatrix) At(i, j int) field.Element {
	if i == j {
		return field.One
	}
	return field.Element{}
}
