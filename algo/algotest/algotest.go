// Package algotest makes plans, and parts of plans, for tests.
package algotest

import (
	"testing"

	"volley/algo"
	"volley/algo/schedule"
	"volley/field"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/plan"
)

// Compile returns the plan of least C2 of the named algorithm for a square matrix: spec as [matrix.ParseSpec] reads it,
// over the named field, for K processors. Changes are made to what spec names.
func Compile(t testing.TB, algorithm, fieldName, spec string, k, ports int, changes ...func(*matrix.Spec)) plan.Plan {
	t.Helper()
	s, err := matrix.ParseSpec(spec)
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

// Layer returns a layer of groups of the given sizes, whose members lie interleaved among the processors, with random
// matrices, and the matrix of the whole layer.
func Layer(t testing.TB, f field.Field, step schedule.Step, sizes []int, seed uint64) (schedule.Partition, *matrix.Dense) {
	t.Helper()
	k := 0
	for _, n := range sizes {
		k += n
	}
	// Deal the processors to the groups in turn, until each is full.
	members := make([][]int, len(sizes))
	groupOf, indexOf := make([]int, k), make([]int, k)
	for proc, g := 0, 0; proc < k; g = (g + 1) % len(sizes) {
		if len(members[g]) < sizes[g] {
			groupOf[proc], indexOf[proc] = g, len(members[g])
			members[g] = append(members[g], proc)
			proc++
		}
	}
	whole := matrix.NewDense(f, k, k)
	parts := make([]matrix.Matrix, len(sizes))
	for g, n := range sizes {
		a := Random(t, f, n, seed+uint64(g))
		parts[g] = a
		for i := range n {
			for j := range n {
				whole.Set(members[g][i], members[g][j], a.At(i, j))
			}
		}
	}
	return schedule.Partition{Step: step, Group: func(proc int) schedule.Group {
		g := groupOf[proc]
		return schedule.Group{
			Size: sizes[g], Index: indexOf[proc],
			Member: func(i int) int { return members[g][i] },
			At:     parts[g].At,
		}
	}}, whole
}
