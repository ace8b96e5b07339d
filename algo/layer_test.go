package algo_test

import (
	"fmt"
	"slices"
	"testing"

	"volley/algo/internal/universal"
	"volley/algo/schedule"
	"volley/field/fieldtest"
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
	f := fieldtest.Parse(t, "257")
	for name, step := range map[string]func(size, ports int) schedule.Step{
		"universal":         func(size, ports int) schedule.Step { return universal.Tuned(size, ports) },
		"prepare-and-shoot": func(size, ports int) schedule.Step { return universal.NewPrepareAndShoot(size, ports) },
		"bruck-allgather":   func(size, ports int) schedule.Step { return universal.NewBruckAllgather(size, ports) },
	} {
		for _, sizes := range [][]int{{1}, {9, 7}, {7, 9, 1, 2}, {16, 3, 5}, {4, 4, 4}, {17, 16, 15, 1}} {
			largest, k := slices.Max(sizes), 0
			for _, n := range sizes {
				k += n
			}
			for ports := 1; ports <= clampPorts(largest, 3); ports++ {
				what := fmt.Sprintf("%s, groups of %v, p=%d", name, sizes, ports)
				info := plan.Info{Algorithm: "layer", Field: f, Processors: k, Ports: ports}
				first, a := randomLayer(t, step(largest, ports), sizes, 1)
				p := schedule.Compile(info, first)
				if err := verify.Check(t.Context(), p, a); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				one, _ := randomLayer(t, step(largest, ports), []int{largest}, 1)
				want := sim.Count(schedule.Compile(plan.Info{Algorithm: "layer", Field: f, Processors: largest, Ports: ports}, one))
				if got := sim.Count(p); got.C1 != want.C1 || got.C2 != want.C2 {
					t.Errorf("%s: %d/%d, the largest group alone %d/%d", what, got.C1, got.C2, want.C1, want.C2)
				}
				second, b := randomLayer(t, step(k, ports), []int{k}, 7)
				if err := verify.Check(t.Context(), schedule.Compile(info, first, second), must(matrix.Mul(a, b))(t)); err != nil {
					t.Errorf("%s, two layers: %v", what, err)
				}
			}
		}
	}
}

// randomLayer returns a layer of groups of the given sizes, whose members lie interleaved among the processors, with random
// matrices, and the matrix of the whole layer.
func randomLayer(t testing.TB, step schedule.Step, sizes []int, seed uint64) (schedule.Grouping, *matrix.Dense) {
	t.Helper()
	f := fieldtest.Parse(t, "257")
	var members [][]int
	var parts []matrix.Matrix
	var groups []schedule.Group // of each processor
	for g, n := range sizes {
		members, parts = append(members, nil), append(parts, matrixtest.Random(t, f, n, seed+uint64(g)))
	}
	for g, dealt := 0, 0; dealt < len(sizes)*slices.Max(sizes); g, dealt = (g+1)%len(sizes), dealt+1 { // in turn, until each is full
		if index := len(members[g]); index < sizes[g] {
			members[g] = append(members[g], len(groups))
			groups = append(groups, schedule.Group{Size: sizes[g], Index: index, Processor: func(i int) int { return members[g][i] }, At: parts[g].At})
		}
	}
	whole := matrix.NewDense(f, len(groups), len(groups))
	for g, list := range members {
		for i, row := range list {
			for j, column := range list {
				whole.Set(row, column, parts[g].At(i, j))
			}
		}
	}
	return schedule.Grouping{Step: step, Group: func(proc int) schedule.Group { return groups[proc] }}, whole
}
