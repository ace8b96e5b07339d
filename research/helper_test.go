package research

import (
	"testing"

	"volley/algo/schedule"
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

// testLayer returns a layer of groups of the given sizes, whose members lie
// interleaved among the processors, with random matrices, and the matrix of the
// whole layer.
func testLayer(t *testing.T, f field.Field, step schedule.Step, sizes []int, seed uint64) (schedule.Partition, *matrix.Dense) {
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
		a, err := matrix.Random(f, n, n, seed+uint64(g))
		if err != nil {
			t.Fatal(err)
		}
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
