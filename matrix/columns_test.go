package matrix

import (
	"math/rand/v2"
	"testing"

	"volley/field/fieldtest"
)

// TestColumns has the columns of matrices with and without structure in another order.
func TestColumns(t *testing.T) {
	const k = 8
	f := fieldtest.Parse(t, "257")
	perm := rand.New(rand.NewPCG(1, 2)).Perm(k)
	for _, m := range []Matrix{must(DFT(f, k))(t), must(DFTReversed(f, k, nil))(t), must(Cauchy(f, k, k))(t), must(Random(f, k, k, 1))(t)} {
		got := must(Columns(m, perm))(t)
		for i := range k {
			for j, c := range perm {
				if got.At(i, j) != m.At(i, c) {
					t.Fatalf("%s: entry (%d, %d) is %v, want %v", m.ID(), i, j, got.At(i, j), m.At(i, c))
				}
			}
		}
		if (checkFactor(t, got) == nil) != (must(Factor(t.Context(), m, nil))(t) == nil) {
			t.Errorf("%s: structure is lost, or found", m.ID())
		}
		if other := must(Columns(m, []int{1, 0, 2, 3, 4, 5, 6, 7}))(t); got.ID() == other.ID() || got.ID() == m.ID() {
			t.Errorf("%s: one ID for two orders", m.ID())
		}
	}
}

func TestColumnsErrors(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	square, wide := Identity(f, 3), must(Random(f, 2, 3, 1))(t)
	for _, c := range []struct {
		m       Matrix
		columns []int
		want    string
	}{
		{square, []int{0, 1}, "matrix: 2 columns of a 3×3 matrix: want an order of all columns of a square one"},
		{wide, []int{0, 1, 2}, "matrix: 3 columns of a 2×3 matrix: want an order of all columns of a square one"},
		{square, []int{0, 1, 3}, "matrix: column 3 as number 2: want every one of 0 to 2 once"},
		{square, []int{-1, 0, 1}, "matrix: column -1 as number 0: want every one of 0 to 2 once"},
		{square, []int{2, 2, 1}, "matrix: column 2 as number 1: want every one of 0 to 2 once"},
	} {
		_, err := Columns(c.m, c.columns)
		wantError(t, err, c.want)
	}
}
