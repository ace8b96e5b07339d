package algo_test

import (
	"fmt"
	"testing"

	"volley/algo/internal/universal"
	"volley/algo/schedule"
	"volley/field"
	"volley/matrix"
	"volley/matrix/matrixtest"
	"volley/plan"
	"volley/sim"
	"volley/verify"
)

// TestLayers runs every step on groups of unequal size side by side: the rounds
// line up, so the layer costs what its largest group costs, and it computes the
// block matrix. Two layers compute the product.
func TestLayers(t *testing.T) {
	f, err := field.Parse("257")
	if err != nil {
		t.Fatal(err)
	}
	for _, algorithm := range []struct {
		Name string
		step func(size, ports int) schedule.Step
	}{
		{"universal", func(size, ports int) schedule.Step { return universal.Tuned(size, ports) }},
		{"prepare-and-shoot", func(size, ports int) schedule.Step { return universal.NewPrepareAndShoot(size, ports) }},
		{"bruck-allgather", func(size, ports int) schedule.Step { return universal.NewBruckAllgather(size, ports) }},
	} {
		for _, sizes := range [][]int{{1}, {9, 7}, {7, 9, 1, 2}, {16, 3, 5}, {4, 4, 4}, {10, 6, 10}, {17, 16, 15, 1}} {
			for ports := 1; ports <= 3; ports++ {
				name := fmt.Sprintf("%s, groups of %v, p=%d", algorithm.Name, sizes, ports)
				largest, k := 0, 0
				for _, n := range sizes {
					largest, k = max(largest, n), k+n
				}
				if ports > max(1, largest-1) {
					continue
				}
				step := algorithm.step(largest, ports)
				first, a := randomLayer(t, f, step, sizes, 1)
				p := schedule.Compile(plan.Info{Algorithm: "layer", Field: f, Processors: k, Ports: ports}, first)
				if err := verify.Check(t.Context(), p, a); err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				one, _ := randomLayer(t, f, step, []int{largest}, 1)
				want := sim.Count(schedule.Compile(plan.Info{Algorithm: "layer", Field: f, Processors: largest, Ports: ports}, one))
				if got := sim.Count(p); got.C1 != want.C1 || got.C2 != want.C2 {
					t.Errorf("%s: %d/%d, the largest group alone %d/%d", name, got.C1, got.C2, want.C1, want.C2)
				}
				second, b := randomLayer(t, f, step, sizes[:1], 7)
				if sizes[0] != k {
					second, b = randomLayer(t, f, algorithm.step(k, ports), []int{k}, 7)
				}
				product, err := matrix.Mul(a, b)
				if err != nil {
					t.Fatal(err)
				}
				if err := verify.Check(t.Context(), schedule.Compile(plan.Info{Algorithm: "layers", Field: f, Processors: k, Ports: ports}, first, second), product); err != nil {
					t.Errorf("%s, two layers: %v", name, err)
				}
			}
		}
	}
}

// randomLayer returns a layer of groups of the given sizes, whose members lie interleaved among the processors, with random
// matrices, and the matrix of the whole layer.
func randomLayer(t testing.TB, f field.Field, step schedule.Step, sizes []int, seed uint64) (schedule.Grouping, *matrix.Dense) {
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
		a := matrixtest.Random(t, f, n, seed+uint64(g))
		parts[g] = a
		for i := range n {
			for j := range n {
				whole.Set(members[g][i], members[g][j], a.At(i, j))
			}
		}
	}
	return schedule.Grouping{Step: step, Group: func(proc int) schedule.Group {
		g := groupOf[proc]
		return schedule.Group{
			Size: sizes[g], Index: indexOf[proc],
			Processor: func(i int) int { return members[g][i] },
			At:        parts[g].At,
		}
	}}, whole
}
