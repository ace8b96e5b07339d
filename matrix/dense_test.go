package matrix

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/pointset"
)

// fields have symbols of 1 and 2 bytes, the characteristics 2, 3 and large.
var fields = []string{"2", "3^4", "257", "2^8", "2^16"}

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

// TestInverse inverts random matrices of sizes around the panel's: the product
// is the identity, and only a matrix without full rank has no inverse.
func TestInverse(t *testing.T) {
	sizes := []int{1, 2, 3, 4, 7, 31, 32, 33, 64, 70}
	for _, f := range testFields(t) {
		singular := 0
		for _, k := range sizes {
			if k > 7 && f == field.Field(frBLS12381) {
				continue
			}
			for seed := range uint64(5) {
				m := DenseOf(must(Random(f, k, k, seed))(t))
				before := DenseOf(m)
				inv, err := m.Inverse()
				if !Equal(m, before) {
					t.Fatalf("%s: Inverse changed its receiver", f.Name())
				}
				rank := slowRank(m)
				if err != nil {
					singular++
					want := fmt.Sprintf("matrix is singular: rank %d of %d", rank, k)
					if !errors.Is(err, ErrSingular) || err.Error() != want || rank == k {
						t.Fatalf("%s, k = %d: error %q, want %q", f.Name(), k, err, want)
					}
					continue
				}
				if rank != k {
					t.Fatalf("%s, k = %d: inverse of a matrix of rank %d", f.Name(), k, rank)
				}
				if !Equal(must(Mul(m, inv))(t), Identity(f, k)) || !Equal(must(Mul(inv, m))(t), Identity(f, k)) {
					t.Fatalf("%s, k = %d: m·m⁻¹ is not the identity", f.Name(), k)
				}
			}
		}
		if f.Name() == "2" && singular == 0 {
			t.Error("no matrix over F_2 was singular")
		}
	}
}

// TestInversePermuted inverts matrices whose pivots lie off the diagonal.
func TestInversePermuted(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{2, 5, 33, 100} {
		perm := rng.Perm(k)
		p := NewDense(f, k, k)
		for i, j := range perm {
			p.Set(i, j, field.Code(uint64(1+i)))
		}
		inv := must(p.Inverse())(t)
		for i, j := range perm {
			if got, want := inv.At(j, i), f.Inv(field.Code(uint64(1+i))); got != want {
				t.Fatalf("k = %d: entry (%d, %d) = %v, want %v", k, j, i, got, want)
			}
		}
		if !Equal(must(Mul(p, inv))(t), Identity(f, k)) {
			t.Fatalf("k = %d: not the inverse", k)
		}
	}
}

// TestBasis has products L·R of an n×r and an r×m matrix, of rank r at most, and compares with the echelon form.
func TestBasis(t *testing.T) {
	for _, f := range testFields(t) {
		for _, c := range []struct{ rows, rank, cols int }{
			{1, 1, 1}, {5, 2, 5}, {3, 3, 9}, {9, 3, 3}, {40, 1, 40}, {40, 35, 50}, {66, 33, 40}, {64, 64, 64}, {40, 40, 70},
		} {
			if c.rows > 9 && f == field.Field(frBLS12381) {
				continue
			}
			l := must(Random(f, c.rows, c.rank, 3))(t)
			r := must(Random(f, c.rank, c.cols, 4))(t)
			m := must(Mul(l, r))(t)
			for i := range c.rows { // zeros, so that the basis is not the first columns
				m.Set(i, 0, field.Element{})
			}
			before := DenseOf(m)
			columns, inverse, err := m.Basis(t.Context())
			if err != nil || !Equal(m, before) {
				t.Fatalf("%s, %v: %v, or Basis changed its receiver", f.Name(), c, err)
			}
			if _, want := m.Echelon(); !slices.Equal(columns, want) || len(columns) != slowRank(m) {
				t.Errorf("%s, %v: the basis %v, want %v", f.Name(), c, columns, want)
			}
			if (inverse != nil) != (len(columns) == c.rows) {
				t.Fatalf("%s, %v: rank %d, an inverse: %v", f.Name(), c, len(columns), inverse != nil)
			}
			if inverse == nil {
				continue
			}
			basis := DenseFunc(f, c.rows, c.rows, func(i, e int) field.Element { return m.At(i, columns[e]) })
			if !Equal(must(Mul(basis, inverse))(t), Identity(f, c.rows)) {
				t.Errorf("%s, %v: not the inverse of columns %v", f.Name(), c, columns)
			}
		}
		if columns, inverse, err := NewDense(f, 4, 6).Basis(t.Context()); len(columns) > 0 || inverse != nil || err != nil {
			t.Errorf("%s: basis %v of zeros, %v", f.Name(), columns, err)
		}
	}
	columns, inverse, err := NewDense(fieldtest.Parse(t, "2^8"), 0, 3).Basis(t.Context())
	if err != nil || len(columns) > 0 || inverse == nil || inverse.Rows() != 0 {
		t.Errorf("basis %v without rows, %v", columns, err)
	}
}

// TestStopped ends the context before an elimination: nothing is kept.
func TestStopped(t *testing.T) {
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	f := fieldtest.Parse(t, "257")
	m := must(Random(f, 5, 5, 1))(t)
	if columns, inverse, err := DenseOf(m).Basis(ctx); err != stop || columns != nil || inverse != nil {
		t.Errorf("basis: %v, %v", columns, err)
	}
	if inverse, err := Inverse(ctx, m); err != stop || inverse != nil {
		t.Errorf("inverse: %v", err)
	}
}

// TestEchelon: the form has units at the pivots and gives every column back, and no
// column at a pivot is a sum of columns before it.
func TestEchelon(t *testing.T) {
	for _, f := range testFields(t) {
		for seed, c := range []struct{ rows, rank, cols int }{
			{1, 1, 1}, {1, 1, 4}, {4, 1, 1}, {5, 2, 5}, {3, 3, 9}, {9, 3, 3}, {40, 1, 40}, {40, 35, 50}, {66, 33, 40},
		} {
			if c.rows > 9 && f == field.Field(frBLS12381) {
				continue
			}
			m := must(Mul(must(Random(f, c.rows, c.rank, uint64(seed)))(t), must(Random(f, c.rank, c.cols, 7))(t)))(t)
			for i := range c.rows { // zeros, so that pivots are not the first columns
				m.Set(i, 0, field.Element{})
			}
			before := DenseOf(m)
			form, pivots := m.Echelon()
			if !Equal(m, before) {
				t.Fatalf("%s: Echelon changed its receiver", f.Name())
			}
			if len(pivots) != slowRank(m) || form.Rows() != len(pivots) || form.Cols() != c.cols || !slices.IsSorted(pivots) {
				t.Fatalf("%s, %v: a form of %d rows and %d columns with the pivots %v, want rank %d", f.Name(), c, form.Rows(), form.Cols(), pivots, slowRank(m))
			}
			basis := DenseFunc(f, c.rows, len(pivots), func(i, e int) field.Element { return m.At(i, pivots[e]) })
			if !Equal(must(Mul(basis, form))(t), m) {
				t.Errorf("%s, %v: the columns at %v do not give the others", f.Name(), c, pivots)
			}
			for e, p := range pivots {
				if before := DenseFunc(f, c.rows, p, m.At); slowRank(before) != e {
					t.Errorf("%s, %v: pivot %d is column %d, and the columns before it have rank %d", f.Name(), c, e, p, slowRank(before))
				}
				for r := range pivots {
					if form.At(r, p) != unit(r == e) {
						t.Errorf("%s, %v: %v in row %d of the pivot of row %d", f.Name(), c, form.At(r, p), r, e)
					}
				}
			}
		}
	}
}

func TestMul(t *testing.T) {
	for _, f := range testFields(t) {
		a, b := must(Random(f, 4, 7, 1))(t), must(Random(f, 7, 3, 2))(t)
		got := must(Mul(a, b))(t)
		if got.Rows() != 4 || got.Cols() != 3 {
			t.Fatalf("shape %d×%d", got.Rows(), got.Cols())
		}
		for i := range 4 {
			for j := range 3 {
				var want field.Element
				for k := range 7 {
					want = f.Add(want, f.Mul(a.At(i, k), b.At(k, j)))
				}
				if got.At(i, j) != want {
					t.Errorf("%s: entry (%d, %d) = %v, want %v", f.Name(), i, j, got.At(i, j), want)
				}
			}
		}
		// (a·b)ᵀ = bᵀ·aᵀ, with dense and on-demand factors alike.
		if tr := must(Mul(Transpose(b), DenseOf(Transpose(a))))(t); !Equal(tr, Transpose(got)) {
			t.Errorf("%s: (ab)ᵀ is not bᵀaᵀ", f.Name())
		}
	}
	f := fieldtest.Parse(t, "2^8")
	_, err := Mul(Identity(f, 2), Identity(f, 3))
	wantError(t, err, "matrix: cannot multiply 2×2 by 3×3: want as many rows as columns")
	_, err = Mul(Identity(f, 2), Identity(fieldtest.Parse(t, "257"), 2))
	wantError(t, err, "matrix: cannot multiply a matrix over 2^8 by one over 257")
}

func TestInverseErrors(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	_, err := NewDense(f, 2, 3).Inverse()
	wantError(t, err, "matrix: a 2×3 matrix has no inverse: want a square one")

	_, err = Inverse(t.Context(), must(Random(f, 3, 2, 1))(t))
	wantError(t, err, "matrix: a 3×2 matrix has no inverse: want a square one")

	d := DenseOf(Identity(f, 4))
	d.Set(2, 2, field.Element{})
	_, err = d.Inverse()
	wantError(t, err, "matrix is singular: rank 3 of 4")

	_, err = Inverse(t.Context(), must(Random(fieldtest.Parse(t, "2"), 2, 2, singularSeed(t)))(t))
	if !errors.Is(err, ErrSingular) {
		t.Errorf("error %v is not ErrSingular", err)
	}
	_, err = Inverse(t.Context(), must(Random(fieldtest.Parse(t, "2147483647"), 1_000_000, 1_000_000, 1))(t))
	wantError(t, err, "matrix: inverse(random:1): storing 1000000×1000000 entries of 4 bytes takes more than 4 GiB")
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
		{fieldtest.Parse(t, "2^8"), pointset.MaxSize, 1, true},
		{fieldtest.Parse(t, "2^8"), pointset.MaxSize, 0, true},
		{fieldtest.Parse(t, "257"), 1 << 15, 1 << 16, true},
		{fieldtest.Parse(t, "257"), 1<<15 + 1, 1 << 16, false},
		{fieldtest.Parse(t, "257"), 1<<16 + 1, 1 << 15, false},
		{frBLS12381, 1 << 27, 1, true},
		{frBLS12381, 1<<27 + 1, 1, false},
	} {
		if err := CheckDense(c.f, c.rows, c.cols); (err == nil) != c.fits {
			t.Errorf("%d×%d over %s: error %v, want one: %v", c.rows, c.cols, c.f.Name(), err, !c.fits)
		}
	}
}

// singularSeed returns a seed of a singular 2×2 random matrix over F_2.
func singularSeed(t *testing.T) uint64 {
	for seed := range uint64(100) {
		if slowRank(must(Random(fieldtest.Parse(t, "2"), 2, 2, seed))(t)) < 2 {
			return seed
		}
	}
	t.Fatal("no singular matrix over F_2")
	return 0
}

// TestInverseOnDemand compares inverses by a formula, and those of matrices that are known to have one, which store
// nothing before an entry is asked for, with those by elimination.
func TestInverseOnDemand(t *testing.T) {
	for _, f := range testFields(t) {
		for _, k := range []int{1, 2, 3, 6, 8, 48} {
			if f.Order().IsUint64() && uint64(2*k) > f.Order().Uint64() {
				break
			}
			m := must(Cauchy(f, k, k))(t)
			x, y := pointset.Codes(f, k, k), pointset.Codes(f, 0, k)
			list := []Matrix{m, Transpose(m), must(CauchyOn(x, y))(t), must(Lagrange(x, y))(t),
				Vandermonde(x, 0), Vandermonde(y, 0), must(ReedSolomonPAR1(f, k, k))(t), must(ReedSolomonJerasure(f, k, k))(t)}
			if lch, err := LCH(f, k, k); err == nil {
				list = append(list, lch, Transpose(named{lch, "as another"}))
			}
			for _, m := range list {
				inv := must(Inverse(t.Context(), m))(t)
				if s := StructureOf(m); s.inverse == nil && !s.invertible {
					t.Errorf("%s over %s, K = %d: stored", inv.ID(), f.Name(), k)
				}
				if want := must(DenseOf(m).Inverse())(t); !Equal(inv, want) || inv.ID() != "inverse("+m.ID()+")" {
					t.Errorf("%s over %s, K = %d: not the inverse of %s", inv.ID(), f.Name(), k, m.ID())
				}
				if StructureOf(inv).Fixed() != StructureOf(m).Fixed() {
					t.Errorf("%s over %s: fixed: %v", inv.ID(), f.Name(), StructureOf(inv).Fixed())
				}
			}
		}
	}
}

// TestNamedInverse has the ID of the inverse, and twice inverted the matrix.
func TestNamedInverse(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	m := must(Cauchy(f, 20, 20))(t)
	inv := must(Inverse(t.Context(), m))(t)
	if inv.ID() != "inverse(cauchy)" {
		t.Errorf("ID %q", inv.ID())
	}
	if !Equal(must(Mul(m, inv))(t), Identity(f, 20)) {
		t.Error("m·m⁻¹ is not the identity")
	}
	if twice := must(Inverse(t.Context(), inv))(t); !Equal(twice, m) {
		t.Error("the inverse's inverse is another matrix")
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
	if NewDense(f, 2, 3).ID() == NewDense(f, 3, 2).ID() {
		t.Error("one ID for two shapes")
	}
	if Equal(NewDense(f, 2, 3), NewDense(f, 3, 2)) || Equal(Identity(f, 2), Identity(fieldtest.Parse(t, "257"), 2)) {
		t.Error("matrices of different shapes or fields are equal")
	}
}

// TestDenseConcurrentID is for the race detector.
func TestDenseConcurrentID(t *testing.T) {
	d := DenseOf(must(Random(fieldtest.Parse(t, "2^8"), 8, 8, 1))(t))
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wg.Go(func() { ids[i] = d.ID() })
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("IDs %q and %q", id, ids[0])
		}
	}
}

func TestIdentityTranspose(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	m := must(Random(f, 2, 3, 1))(t)
	tr := Transpose(m)
	if tr.Rows() != 3 || tr.Cols() != 2 || tr.At(2, 1) != m.At(1, 2) || tr.ID() != "transpose(random:1)" {
		t.Errorf("transpose: %d×%d, %q", tr.Rows(), tr.Cols(), tr.ID())
	}
	if Transpose(tr) != m {
		t.Error("transposed twice is another matrix")
	}
	d := DenseOf(Identity(f, 3))
	for i := range 3 {
		for j := range 3 {
			if d.At(i, j).IsZero() == (i == j) {
				t.Errorf("identity has %v at (%d, %d)", d.At(i, j), i, j)
			}
		}
	}
	if m := Identity(f, 0); m.Rows() != 0 || m.Cols() != 0 {
		t.Errorf("the empty identity is %d×%d", m.Rows(), m.Cols())
	}
	wantPanic(t, "k = -1", func() { Identity(f, -1) })
	wantPanic(t, "shape 1×-1", func() { NewDense(f, 1, -1) })
	wantPanic(t, "row 3 of a 3×3", func() { d.Row(3) })
	wantPanic(t, "entry (0, 3) of a 3×3", func() { d.Set(0, 3, field.One) })
}

func BenchmarkInverse(b *testing.B) {
	for _, name := range []string{"2^8", "2^16", "257"} {
		f := fieldtest.Parse(b, name)
		for _, k := range []int{128, 1024} {
			m := DenseOf(must(Random(f, k, k, 1))(b))
			b.Run(fmt.Sprintf("field=%s/K=%d", name, k), func(b *testing.B) {
				for b.Loop() {
					if _, err := m.Inverse(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
