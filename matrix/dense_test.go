package matrix

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/pointset"
)

// slowRank is Gaussian elimination entry by entry.
func slowRank(m Matrix) int {
	f := m.Field()
	rows := make([][]field.Element, m.Rows())
	for i := range rows {
		rows[i] = make([]field.Element, m.Cols())
		for j := range rows[i] {
			rows[i][j] = m.At(i, j)
		}
	}
	rank := 0
	for j := range m.Cols() {
		p := slices.IndexFunc(rows[rank:], func(r []field.Element) bool { return !r[j].IsZero() })
		if p < 0 {
			continue
		}
		rows[rank], rows[rank+p] = rows[rank+p], rows[rank]
		for i := rank + 1; i < len(rows); i++ {
			c := f.Mul(rows[i][j], f.Inv(rows[rank][j]))
			for l := range rows[i] {
				rows[i][l] = f.Sub(rows[i][l], f.Mul(c, rows[rank][l]))
			}
		}
		rank++
	}
	return rank
}

// TestElimination has the products of an n×r and an r×m matrix, of rank r at most, of sizes around the panel's, and
// permutations: their echelon forms, bases and inverses.
func TestElimination(t *testing.T) {
	for _, f := range testFields(t) {
		singular := 0
		for seed, c := range []struct{ rows, rank, cols int }{
			{1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {4, 4, 4}, {7, 7, 7}, {7, 6, 7}, {1, 1, 4}, {4, 1, 1}, {5, 2, 5}, {3, 3, 9}, {9, 3, 3}, {9, 9, 9},
			{31, 31, 31}, {32, 32, 32}, {33, 33, 33}, {64, 64, 64}, {70, 70, 70}, {40, 1, 40}, {40, 35, 50}, {66, 33, 40}, {40, 40, 70},
		} {
			m := must(Mul(must(Random(f, c.rows, c.rank, uint64(seed)))(t), must(Random(f, c.rank, c.cols, 7))(t)))(t)
			for i := 0; i < c.rows && c.cols > c.rows; i++ { // so that pivots are not the first columns
				m.Set(i, 0, field.Element{})
			}
			checkElimination(t, m)
			if _, err := m.Inverse(); errors.Is(err, ErrSingular) {
				singular++
			}
		}
		permutation, perm := NewDense(f, 33, 33), rand.New(rand.NewPCG(1, 2)).Perm(33)
		for i, j := range perm {
			permutation.Set(i, j, f.Generator())
		}
		checkElimination(t, permutation)
		checkElimination(t, NewDense(f, 4, 6))
		checkElimination(t, NewDense(f, 0, 3))
		if singular == 0 {
			t.Errorf("%s: no matrix was singular", f.Name())
		}
	}
}

// checkElimination checks that the echelon form has units at the pivots and gives every column back, that no column at a
// pivot is a sum of columns before it, that the basis is those columns, and that there is an inverse where the rank is full.
func checkElimination(t *testing.T, m *Dense) {
	t.Helper()
	f, before, rank := m.Field(), DenseOf(m), slowRank(m)
	what := fmt.Sprintf("%s, %d×%d of rank %d", f.Name(), m.Rows(), m.Cols(), rank)
	form, pivots := m.Echelon()
	if len(pivots) != rank || form.Rows() != rank || form.Cols() != m.Cols() || !slices.IsSorted(pivots) {
		t.Fatalf("%s: a form of %d rows and %d columns with the pivots %v", what, form.Rows(), form.Cols(), pivots)
	}
	basis := DenseFunc(f, m.Rows(), rank, func(i, e int) field.Element { return m.At(i, pivots[e]) })
	if !Equal(must(Mul(basis, form))(t), m) {
		t.Errorf("%s: the columns at %v do not give the others", what, pivots)
	}
	for e, p := range pivots {
		if before := DenseFunc(f, m.Rows(), p, m.At); e%9 == 0 && slowRank(before) != e {
			t.Errorf("%s: pivot %d is column %d, and the columns before it have rank %d", what, e, p, slowRank(before))
		}
		for r := range pivots {
			if form.At(r, p) != unit(r == e) {
				t.Errorf("%s: %v in row %d of the pivot of row %d", what, form.At(r, p), r, e)
			}
		}
	}
	columns, inverse, err := m.Basis(t.Context())
	if err != nil || !slices.Equal(columns, pivots) || (inverse != nil) != (rank == m.Rows()) {
		t.Fatalf("%s: the basis %v, want %v; %v", what, columns, pivots, err)
	}
	if inverse != nil && !Equal(must(Mul(basis, inverse))(t), Identity(f, rank)) {
		t.Errorf("%s: not the inverse of columns %v", what, columns)
	}
	switch inverse, err := m.Inverse(); {
	case m.Rows() != m.Cols():
		wantError(t, err, fmt.Sprintf("matrix: a %d×%d matrix has no inverse: want a square one", m.Rows(), m.Cols()))
	case rank < m.Rows():
		wantError(t, err, fmt.Sprintf("matrix is singular: rank %d of %d", rank, m.Rows()))
	case err != nil || !Equal(must(Mul(inverse, m))(t), Identity(f, rank)):
		t.Errorf("%s: not the inverse, %v", what, err)
	}
	if !Equal(m, before) {
		t.Errorf("%s: it has changed", what)
	}
}

// TestCheckBytes has shapes on both sides of 4 GiB, symbols of 1, 2 and 32 bytes.
func TestCheckBytes(t *testing.T) {
	for _, c := range []struct {
		f          field.Field
		rows, cols int
		fits       bool
	}{
		{fieldtest.Parse(t, "2^8"), 1 << 16, 1 << 16, true},
		{fieldtest.Parse(t, "2^8"), 1<<16 + 1, 1 << 16, false},
		{fieldtest.Parse(t, "2^8"), pointset.MaxSize, 0, true},
		{fieldtest.Parse(t, "257"), 1 << 15, 1 << 16, true},
		{fieldtest.Parse(t, "257"), 1<<15 + 1, 1 << 16, false},
		{fieldtest.Parse(t, "bls12-381"), 1 << 27, 1, true},
		{fieldtest.Parse(t, "bls12-381"), 1<<27 + 1, 1, false},
	} {
		if err := CheckDense(c.f, c.rows, c.cols); (err == nil) != c.fits {
			t.Errorf("%d×%d over %s: error %v, want one: %v", c.rows, c.cols, c.f.Name(), err, !c.fits)
		}
	}
}

// TestInverseOnDemand compares inverses by a formula, and those of matrices that are known to have one, which store
// nothing before an entry is asked for, with those by elimination.
func TestInverseOnDemand(t *testing.T) {
	for _, f := range testFields(t) {
		for _, k := range []int{1, 2, 3, 6, 8, 16, 48} {
			list := structured(t, f, k)
			if lch := list["lch"]; lch != nil {
				list["another lch"] = Transpose(named{lch, "as another"})
			}
			if list["cauchy"] != nil {
				list["cauchy on codes"] = must(CauchyOn(pointset.Codes(f, k, k), pointset.Codes(f, 0, k)))(t)
				list["par1"] = must(ReedSolomonPAR1(f, k, k))(t)
				list["jerasure"] = must(ReedSolomonJerasure(f, k, k))(t)
			}
			for name, m := range list {
				inv := must(Inverse(t.Context(), m))(t)
				if s := StructureOf(m); s.inverse == nil && !s.invertible {
					t.Errorf("%s over %s, K = %d: stored", inv.ID(), f.Name(), k)
				}
				if want := must(DenseOf(m).Inverse())(t); !Equal(inv, want) {
					t.Errorf("%s over %s, K = %d: %s is not the inverse", name, f.Name(), k, inv.ID())
				}
				if !strings.HasPrefix(name, "inverse") && inv.ID() != "inverse("+m.ID()+")" {
					t.Errorf("%s has the inverse %s", m.ID(), inv.ID())
				}
				if x, y := StructureOf(inv), StructureOf(m); x.Fixed() != y.Fixed() || x.Reversed != y.Reversed {
					t.Errorf("%s over %s: fixed or reversed as its inverse is not", m.ID(), f.Name())
				}
				if !Equal(must(Inverse(t.Context(), inv))(t), m) {
					t.Errorf("%s over %s, K = %d: the inverse's inverse is another matrix", name, f.Name(), k)
				}
			}
		}
	}
}

func TestDense(t *testing.T) {
	for _, f := range testFields(t) {
		m := must(Random(f, 3, 5, 9))(t)
		d := DenseOf(m)
		if !Equal(d, m) || !Equal(m, d) || !Equal(DenseOf(d), d) {
			t.Fatalf("%s: a dense copy differs", f.Name())
		}
		if n := len(d.Row(2)); n != 5*f.SymbolBytes() {
			t.Errorf("%s: a row of %d bytes", f.Name(), n)
		}
		for j := range 5 {
			if e := field.Symbol(f, d.Row(2)[j*f.SymbolBytes():]); e != m.At(2, j) {
				t.Errorf("%s: symbol %d of row 2 is %v, want %v", f.Name(), j, e, m.At(2, j))
			}
		}
		// One entry makes the difference, in Equal and in the ID.
		id := d.ID()
		if DenseOf(m).ID() != id {
			t.Errorf("%s: equal matrices with different IDs", f.Name())
		}
		old := d.At(1, 3)
		d.Set(1, 3, f.Add(old, field.One))
		if d.At(1, 3) != f.Add(old, field.One) || Equal(d, m) || Equal(m, d) || d.ID() == id {
			t.Errorf("%s: Set has not changed the matrix and its ID", f.Name())
		}
		d.Set(1, 3, old)
		if !Equal(d, m) || d.ID() != id {
			t.Errorf("%s: the old matrix has not its old ID", f.Name())
		}
	}
	f := fieldtest.Parse(t, "2^8")
	d := DenseOf(must(Random(f, 8, 8, 1))(t))
	var wg sync.WaitGroup // for the race detector
	for range 8 {
		wg.Go(func() { d.ID() })
	}
	wg.Wait()
	if NewDense(f, 2, 3).ID() == NewDense(f, 3, 2).ID() {
		t.Error("one ID for two shapes")
	}
	wantPanic(t, "shape 1×-1", func() { NewDense(f, 1, -1) })
	wantPanic(t, "row 8 of a 8×8", func() { d.Row(8) })
	wantPanic(t, "entry (0, 8) of a 8×8", func() { d.Set(0, 8, field.One) })
	if Equal(NewDense(f, 2, 3), NewDense(f, 3, 2)) || Equal(Identity(f, 2), Identity(fieldtest.Parse(t, "257"), 2)) {
		t.Error("matrices of different shapes or fields are equal")
	}
}
