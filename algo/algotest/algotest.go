// Package algotest makes plans and matrices for tests.
package algotest

import (
	"testing"

	"volley/algo"
	"volley/field"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/plan"
)

// Compile returns the plan of least C2 of the named algorithm for a square matrix: spec as [matrices.ParseSpec] reads it,
// over the named field, for K processors. Changes are made to what spec names.
func Compile(t testing.TB, algorithm, fieldName, spec string, k, ports int, changes ...func(*matrices.Spec)) plan.Plan {
	t.Helper()
	s, err := matrices.ParseSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(&s)
	}
	m, err := s.Build(fieldtest.Parse(t, fieldName), k, k)
	if err != nil {
		t.Fatal(err)
	}
	a, err := algo.Lookup(algorithm)
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.Compile(m, ports)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

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
