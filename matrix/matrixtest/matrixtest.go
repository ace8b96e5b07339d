// Package matrixtest makes matrices for tests. It imports no algorithms, so that their own packages can use it.
package matrixtest

import (
	"testing"

	"volley/field"
	"volley/matrix"
)

// Random returns the random k×k matrix of a seed.
func Random(t testing.TB, f field.Field, k int, seed uint64) matrix.Matrix {
	t.Helper()
	a, err := matrix.Random(f, k, k, seed)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Cauchy returns the k×k Cauchy matrix on the usual points.
func Cauchy(t testing.TB, f field.Field, k int) matrix.Matrix {
	t.Helper()
	a, err := matrix.Cauchy(f, k, k)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
