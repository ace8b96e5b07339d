// Package algotest makes plans for tests.
package algotest

import (
	"testing"

	"volley/algo"
	"volley/field/fieldtest"
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
