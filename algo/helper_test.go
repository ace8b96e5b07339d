package algo

import (
	"testing"

	"volley/field"
	"volley/matrix"
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
	a, err := matrix.Cauchy(f, k, k)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
