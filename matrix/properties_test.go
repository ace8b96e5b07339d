package matrix

import (
	"math/rand/v2"
	"slices"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/pointset"
)

// TestSuperregular: what is said to be superregular has no singular part.
func TestSuperregular(t *testing.T) {
	f := fieldtest.Parse(t, "2^4")
	codes := func(first, n int) Points { return pointset.Codes(f, first, n) }
	cauchy := must(Cauchy(f, 4, 4))(t)
	for _, c := range []struct {
		m    Matrix
		want bool
	}{
		{cauchy, true},
		{must(CauchyOn(codes(7, 2), codes(1, 4)))(t), true},
		{must(FTI(f, 3))(t), true},
		{Block(cauchy, 1, 2), true},
		{must(Lagrange(codes(4, 4), codes(1, 3)))(t), true},
		{must(ReedSolomonVandermonde(f, 4, 4))(t), true},
		{must(Lagrange(codes(4, 4), codes(1, 4)))(t), false}, // last and first point
		{must(Lagrange(codes(1, 4), codes(4, 4)))(t), false},
		{must(Lagrange(codes(1, 4), codes(1, 4)))(t), false},
		{must(DFT(f, 5))(t), false},
		{DenseOf(cauchy), false}, // it is, but its entries do not say so
	} {
		if got := StructureOf(c.m).Superregular(); got != c.want {
			t.Errorf("%s: %v, want %v", c.m.ID(), got, c.want)
		}
		if part := singularPart(c.m); c.want && part != "" {
			t.Errorf("%s is singular in %s", c.m.ID(), part)
		}
	}
}

// TestNonzero: what is said to have no zeros has none.
func TestNonzero(t *testing.T) {
	f := fieldtest.Parse(t, "2^4")
	for _, c := range []struct {
		m    Matrix
		want bool
	}{
		{must(DFT(f, 5))(t), true},
		{must(DFTReversed(f, 15, nil))(t), true},
		{must(Cauchy(f, 4, 4))(t), true},
		{Vandermonde(pointset.Codes(f, 1, 4), 3), true},
		{Transpose(Vandermonde(pointset.Codes(f, 1, 4), 3)), true},
		{Vandermonde(pointset.Codes(f, 0, 4), 3), false},
		{must(Lagrange(pointset.Codes(f, 1, 4), pointset.Codes(f, 4, 4)))(t), false},
	} {
		if got := StructureOf(c.m).Nonzero(); got != c.want || got == slices.ContainsFunc(symbolsOf(c.m), field.Element.IsZero) {
			t.Errorf("%s: %v, want %v", c.m.ID(), got, c.want)
		}
	}
}

// symbolsOf returns the entries, row by row.
func symbolsOf(m Matrix) (list []field.Element) {
	for i := range m.Rows() * m.Cols() {
		list = append(list, m.At(i/m.Cols(), i%m.Cols()))
	}
	return list
}

// TestMDS has every square submatrix of small matrices, of those that are said to
// be MDS and of PAR1's, which is not from some size on.
func TestMDS(t *testing.T) {
	for _, name := range []string{"2^4", "97", "257"} {
		f := fieldtest.Parse(t, name)
		for _, shape := range [][2]int{{1, 1}, {2, 2}, {3, 3}, {5, 5}, {1, 6}, {6, 1}, {3, 5}, {5, 3}, {8, 4}, {4, 8}} {
			k, r := shape[0], shape[1]
			for _, m := range []Matrix{
				must(Cauchy(f, k, k))(t), must(FTI(f, k))(t), must(ReedSolomonVandermonde(f, k, r))(t), must(ReedSolomonCauchy(f, k, r))(t),
				must(ReedSolomonJerasure(f, k, r))(t), must(Lagrange(pointset.Codes(f, 0, k), pointset.Codes(f, k, r)))(t),
			} {
				if part := singularPart(m); part != "" {
					t.Errorf("%s over %s, K = %d, R = %d: singular in %s", m.ID(), name, k, r, part)
				}
			}
		}
	}
	for _, c := range []struct {
		field string
		k     int // the first without MDS
		want  string
	}{
		{"2^8", 4, "rows [0 1 2], columns [0 1 3]"},
		{"97", 5, "rows [2 3 4], columns [0 1 4]"},
	} {
		f := fieldtest.Parse(t, c.field)
		for k := 1; k <= c.k; k++ {
			want := ""
			if k == c.k {
				want = c.want
			}
			if part := singularPart(must(ReedSolomonPAR1(f, k, k))(t)); part != want {
				t.Errorf("rs:par1 over %s, K = %d: singular in %q, want %q", c.field, k, part, want)
			}
		}
	}
}

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
