package matrices

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/pointset"
	"volley/matrix"
)

// checkBlock compares a block with the rows of m, and what Factor finds in it with
// the block.
func checkBlock(t *testing.T, m matrix.Matrix, first, rows int) *matrix.Factorisation {
	t.Helper()
	b := matrix.Block(m, first, rows)
	if b.Rows() != rows || b.Cols() != m.Cols() || b.Field() != m.Field() {
		t.Fatalf("%s is %d×%d over %s", b.ID(), b.Rows(), b.Cols(), b.Field().Name())
	}
	for i := range rows {
		for j := range m.Cols() {
			if got, want := b.At(i, j), m.At(first+i, j); got != want {
				t.Fatalf("%s over %s: A[%d][%d] = %v, want %v", b.ID(), m.Field().Name(), i, j, got, want)
			}
		}
	}
	return checkFactor(t, b)
}

// TestBlockFactor has the R×R blocks of K×R matrices: all of them are factored, with
// as many layers on each side as the points have structure.
func TestBlockFactor(t *testing.T) {
	lagrangePowers := Spec{Family: "lagrange", Omega: "powers", Alpha: "powers"}
	for _, c := range []struct {
		field  string
		spec   Spec
		k, r   int
		name   string
		layers int // of each block
	}{
		{"2^8", Spec{Family: "cauchy"}, 24, 8, "cauchy", 6},
		{"2^8", Spec{Family: "cauchy"}, 96, 32, "cauchy", 10},
		{"2^8", Spec{Family: "cauchy"}, 96, 12, "cauchy", 6}, // 3 fibres of 4
		{"2^8", Spec{Family: "rs:cauchy"}, 24, 8, "cauchy", 6},
		{"2^8", Spec{Family: "rs:vandermonde"}, 24, 8, "lagrange", 6},
		{"2^4", Spec{Family: "rs:vandermonde"}, 12, 4, "lagrange", 4},
		{"2^8", Spec{Family: "lch"}, 64, 16, "additive-fft", 4},
		{"2^8", Spec{Family: "lch"}, 96, 2, "additive-fft", 1},
		{"257", Spec{Family: "lagrange"}, 48, 16, "lagrange", 8},
		{"257", Spec{Family: "lagrange"}, 240, 48, "lagrange", 10}, // α meets ω; 3 cosets of 16
		{"257", Spec{Family: "lagrange"}, 256, 64, "lagrange", 12}, // and here ω is all there are
		{"257", Spec{Family: "cauchy", Omega: "coset", Alpha: "coset"}, 48, 16, "cauchy", 8},
		{"257", Spec{Family: "vandermonde"}, 48, 16, "draw-and-loose", 4},
		{"2^8", Spec{Family: "lagrange"}, 45, 15, "lagrange", 4},
		{"2^8", Spec{Family: "rs:vandermonde"}, 16, 64, "lagrange", 8}, // columns, K < R: rows of the transpose
		{"257", Spec{Family: "vandermonde"}, 16, 48, "draw-and-loose", 4},
		{"257", Spec{Family: "random", Argument: "1"}, 16, 48, "", 0},
		{"257", lagrangePowers, 48, 16, "", 0}, // no structure
		{"2^8", Spec{Family: "cauchy"}, 21, 7, "", 0},
		{"2^8", Spec{Family: "random", Argument: "1"}, 24, 8, "", 0},
		{"2^8", Spec{Family: "rs:vandermonde"}, 5, 1, "", 0},
	} {
		m := must(c.spec.Build(fieldtest.Parse(t, c.field), c.k, c.r))(t)
		if must(matrix.Factor(t.Context(), m, nil))(t) != nil {
			t.Errorf("%+v, %d×%d: a factorisation", c.spec, c.k, c.r)
		}
		if c.k < c.r {
			m = matrix.Transpose(m)
		}
		for first := 0; first < m.Rows(); first += m.Cols() {
			fact := checkBlock(t, m, first, m.Cols())
			if fact == nil {
				fact = &matrix.Factorisation{}
			}
			if len(fact.Layers) != c.layers || fact.Name != c.name && c.k > c.r {
				t.Errorf("%+v over %s, %d×%d: %q with %d layers in the block at %d, want %q with %d",
					c.spec, c.field, c.k, c.r, fact.Name, len(fact.Layers), first, c.name, c.layers)
			}
		}
	}
}

// blocks returns matrices of every kind that Block meets, for many blocks of each.
func blocks(t *testing.T, f field.Field) []matrix.Matrix {
	var list []matrix.Matrix
	for _, spec := range []Spec{
		{Family: "cauchy"}, {Family: "cauchy", Omega: "coset", Alpha: "coset"}, {Family: "fti"}, {Family: "rs:vandermonde"}, {Family: "rs:cauchy"},
		{Family: "rs:par1"}, {Family: "rs:par2"}, {Family: "rs:jerasure"}, {Family: "lagrange"}, {Family: "lagrange", Alpha: "codes"}, {Family: "lagrange", Omega: "powers", Alpha: "powers"},
		{Family: "vandermonde"}, {Family: "vandermonde", Points: "codes"},
		{Family: "dft"}, {Family: "dft", Order: "reversed"}, {Family: "lch"}, {Family: "random", Argument: "3"}, {Family: "random", Argument: "4"},
	} {
		for _, shape := range [][2]int{{1, 1}, {2, 1}, {6, 2}, {8, 4}, {4, 8}, {5, 5}, {8, 8}, {6, 3}, {10, 5}, {3, 7}} {
			if m, err := spec.Build(f, shape[0], shape[1]); err == nil {
				list = append(list, m, matrix.Transpose(m))
			}
		}
	}
	list = append(list, identity(f, 5))
	k := 6
	perm := rand.New(rand.NewPCG(1, 1)).Perm(k)
	if m, err := matrix.Cauchy(f, k, k); err == nil {
		list = append(list, must(matrix.Columns(m, perm))(t), must(matrix.Inverse(t.Context(), m))(t), matrix.DenseOf(m))
	}
	return list
}

// TestBlocks has every block of small matrices of every kind, and every block of
// these blocks; of two with the same ID and shape all entries are equal.
func TestBlocks(t *testing.T) {
	for _, name := range []string{"2^4", "2^8", "257"} {
		f := fieldtest.Parse(t, name)
		found := 0
		known := map[string]matrix.Matrix{}
		for _, m := range blocks(t, f) {
			for first := range m.Rows() {
				for rows := 1; first+rows <= m.Rows(); rows++ {
					if checkBlock(t, m, first, rows) != nil {
						found++
					}
					b := matrix.Block(m, first, rows)
					for inner := range rows {
						checkBlock(t, b, inner, rows-inner)
					}
					key := fmt.Sprint(b.ID(), b.Rows(), "×", b.Cols())
					if other := known[key]; other != nil && !equal(other, b) {
						t.Fatalf("two matrices with the ID %s", b.ID())
					}
					known[key] = b
				}
			}
		}
		if found == 0 {
			t.Errorf("%s: no block has structure", name)
		}
	}
}

func TestBlockOutOfRange(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	for _, m := range []matrix.Matrix{must(matrix.Cauchy(f, 4, 4))(t), must(matrix.ReedSolomonVandermonde(f, 4, 4))(t), must(matrix.DFT(f, 4))(t)} {
		for _, c := range [][2]int{{-1, 2}, {3, 2}, {0, 5}, {0, 0}, {2, -1}, {math.MaxInt, math.MaxInt}} {
			wantPanic(t, "of a 4×4 matrix", func() { matrix.Block(m, c[0], c[1]) })
		}
		for _, c := range [][2]int{{2, 0}, {-1, 0}, {0, 4}} {
			wantPanic(t, "of a 2×4 matrix", func() { matrix.Block(m, 1, 2).At(c[0], c[1]) })
		}
	}
	p := pointset.Part(must(matrix.CosetPoints(f, 8))(t), 2, 3)
	wantPanic(t, "point 3 of 3", func() { p.At(3) })
	wantPanic(t, "point -1 of 3", func() { p.At(-1) })
}
