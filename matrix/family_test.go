package matrix

import (
	"fmt"
	"math/big"
	"runtime"
	"slices"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/pointset"
)

// modExp returns base^e mod p: arithmetic that shares nothing with package
// field.
func modExp(base, e, p int64) int64 {
	return new(big.Int).Exp(big.NewInt(base), big.NewInt(e), big.NewInt(p)).Int64()
}

func TestPrimeFactors(t *testing.T) {
	for n, want := range map[int][]int{1: nil, 2: {2}, 12: {2, 2, 3}, 97: {97}, 255: {3, 5, 17}, 2147483646: {2, 3, 3, 7, 11, 31, 151, 331}} {
		if got := pointset.PrimeFactors(n); !slices.Equal(got, want) {
			t.Errorf("prime factors of %d: %v, want %v", n, got, want)
		}
	}
}

// TestRandomFixed pins entries: what was coded with a seed must stay readable.
func TestRandomFixed(t *testing.T) {
	for _, c := range []struct {
		f    field.Field
		seed uint64
		want string
	}{
		{fieldtest.Parse(t, "2^8"), 7, "[222 61 92 159]"},
		{fieldtest.Parse(t, "257"), 7, "[222 190 90 75]"},
		{fieldtest.Parse(t, "2147483647"), 1, "[736962819 1806979000 1734559827 744948202]"},
		{fieldtest.Parse(t, "bls12-381"), 0, "[51025484102011371444106301262815198474937579073284045012542755741021067534474" +
			" 35320477005423214477050105699057112096048898596592727344550666153045189863000" +
			" 35568959493992141037833621065512269895799565819484778286119293423632690660821" +
			" 48815111505799423374800615840077926451614435412579116689228326425170234710451]"},
	} {
		m := must(Random(c.f, 1<<20, 1<<20, c.seed))(t)
		if got := fmt.Sprint([]field.Element{m.At(0, 0), m.At(0, 1), m.At(1, 0), m.At(1<<20-1, 1<<20-1)}); got != c.want {
			t.Errorf("random:%d over %s: %s, want %s", c.seed, c.f.Name(), got, c.want)
		}
	}
}

func TestFamilyErrors(t *testing.T) {
	f8, f257, f2, f31 := fieldtest.Parse(t, "2^8"), fieldtest.Parse(t, "257"), fieldtest.Parse(t, "2"), fieldtest.Parse(t, "2147483647")
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"cauchy's points repeat", errorOf(CauchyOn(pointset.Codes(f8, 9, 1), repeat{pointset.Codes(f8, 1, 3)})),
			"matrix: cauchy: the points y_0 and y_1 are both 1: want distinct points"},
		{"cauchy's fields differ", errorOf(CauchyOn(pointset.Codes(f8, 0, 4), pointset.Codes(f257, 3, 4))),
			"matrix: cauchy: points x over 2^8 and y over 257: want one field"},
		{"dft between divisors", errorOf(DFT(f8, 8)),
			"matrix: dft over 2^8: K = 8 does not divide q-1 = 255: want K = 5 or 15, or a field such as 17"},
		{"dft just below q-1", errorOf(DFT(f257, 200)),
			"matrix: dft over 257: K = 200 does not divide q-1 = 256: want K = 128 or 256, or a field such as 401"},
		{"dft beyond q-1", errorOf(DFT(f8, 300)),
			"matrix: dft over 2^8: K = 300 does not divide q-1 = 255: want K = 255, or a field such as 601"},
		{"dft over F_2", errorOf(DFT(f2, 2)),
			"matrix: dft over 2: K = 2 does not divide q-1 = 1: want K = 1, or a field such as 3"},
		{"dft over 256 bits", errorOf(DFT(fieldtest.Parse(t, "bls12-381"), 5)),
			"matrix: dft over bls12-381: K = 5 does not divide q-1 = 52435875175126190479447740508185965837690552500527637822603658699938581184512: want K = 4 or 6, or a field such as 11"},
		// The search for divisors ends after 2^16 numbers, excluding the last.
		{"dft far beyond q-1", errorOf(DFT(f8, 65790)),
			"matrix: dft over 2^8: K = 65790 does not divide q-1 = 255: want K = 255, or a field such as 131581"},
		{"dft too far beyond q-1", errorOf(DFT(f8, 65791)),
			"matrix: dft over 2^8: K = 65791 does not divide q-1 = 255: want a field such as 394747"},
		{"dft far below a divisor", errorOf(DFT(f31, 365427)),
			"matrix: dft over 2147483647: K = 365427 does not divide q-1 = 2147483646: want K = 360437 or 430962, or a field such as 1461709"},
		{"dft with one field left", errorOf(DFT(f8, 2147483646)),
			"matrix: dft over 2^8: K = 2147483646 does not divide q-1 = 255: want a field such as 2147483647"},
		{"dft without advice", errorOf(DFT(f8, 2147483647)),
			"matrix: dft over 2^8: K = 2147483647 does not divide q-1 = 255: want a divisor of q-1"},
		{"dft without K", errorOf(DFT(f8, -2)), "matrix: K = -2: want 1 to 2147483647"},
		{"too few cosets", errorOf(CosetPoints(f257, 65536)),
			"matrix: coset points over 257: K = 65536 needs 65536 nonzero elements and there are 256: want K <= 256, or a field such as 2147483647"},
		{"cosets beyond the last", errorOf(ShiftedCosetPoints(f257, 24, 30)),
			"matrix: coset points over 257: no cosets 30 to 32 of 8 elements: the field has 32"},
		{"a point twice", errorOf(NewPoints(f8, []field.Element{{3}, {1}, {2}, {1}})),
			"matrix: the points 1 and 3 are both 1: want distinct points"},
		{"a point outside the field", errorOf(NewPoints(f8, []field.Element{{255}, {256}})),
			"matrix: point 1 = 256 is outside the field 2^8"},
		{"columns of an order", errorOf(Columns(Identity(f8, 3), []int{0, 1})), "matrix: 2 columns of a 3×3 matrix: want an order of all columns of a square one"},
		{"columns of a wide matrix", errorOf(Columns(NewDense(f8, 2, 3), []int{0, 1, 2})), "matrix: 3 columns of a 2×3 matrix: want an order of all columns of a square one"},
		{"a column too many", errorOf(Columns(Identity(f8, 3), []int{0, 1, 3})), "matrix: column 3 as number 2: want every one of 0 to 2 once"},
		{"a column below 0", errorOf(Columns(Identity(f8, 3), []int{-1, 0, 1})), "matrix: column -1 as number 0: want every one of 0 to 2 once"},
		{"a column twice", errorOf(Columns(Identity(f8, 3), []int{2, 2, 1})), "matrix: column 2 as number 1: want every one of 0 to 2 once"},
		{"factors of other sizes", errorOf(Mul(Identity(f8, 2), Identity(f8, 3))), "matrix: cannot multiply 2×2 by 3×3: want as many rows as columns"},
		{"factors over other fields", errorOf(Mul(Identity(f8, 2), Identity(f257, 2))), "matrix: cannot multiply a matrix over 2^8 by one over 257"},
		{"inverse of no square", errorOf(Inverse(t.Context(), NewDense(f8, 3, 2))), "matrix: a 3×2 matrix has no inverse: want a square one"},
		{"inverse of a singular matrix", errorOf(Inverse(t.Context(), NewDense(f2, 2, 2))), "matrix: inverse(" + NewDense(f2, 2, 2).ID() + "): matrix is singular: rank 0 of 2"},
		{"inverse too large", errorOf(Inverse(t.Context(), must(Random(f31, 1_000_000, 1_000_000, 1))(t))),
			"matrix: inverse(random:1): storing 1000000×1000000 entries of 4 bytes takes more than 4 GiB"},
		{"no columns", errorOf(Random(f8, 1, 0, 1)), "matrix: cols = 0: want 1 to 2147483647"},
	} {
		t.Run(c.name, func(t *testing.T) { wantError(t, c.err, c.want) })
	}
}

func errorOf[T any](_ T, err error) error { return err }

// repeat breaks the promise of [Points] to be distinct.
type repeat struct{ Points }

func (r repeat) At(int) field.Element { return r.Points.At(0) }

// TestOutOfRange: an index outside a matrix or point set panics with the index.
func TestOutOfRange(t *testing.T) {
	f, f8 := fieldtest.Parse(t, "257"), fieldtest.Parse(t, "2^8")
	for _, m := range []Matrix{
		must(Cauchy(f, 4, 4))(t), must(DFT(f, 4))(t), must(Random(f, 4, 4, 1))(t), Identity(f, 4), DenseOf(Identity(f, 4)),
		Vandermonde(must(CosetPoints(f, 4))(t), 0), Transpose(must(Cauchy(f, 4, 4))(t)), must(Inverse(t.Context(), must(Cauchy(f, 4, 4))(t)))(t),
		must(DFTReversed(f, 4, nil))(t), must(Inverse(t.Context(), must(DFTReversed(f, 4, nil))(t)))(t), must(ReedSolomonVandermonde(f, 4, 4))(t),
		must(ReedSolomonJerasure(f, 4, 4))(t), must(LCH(f8, 4, 4))(t),
	} {
		for _, at := range [][2]int{{4, 0}, {0, 4}, {-1, 0}, {0, -1}} {
			wantPanic(t, "of a 4×4 matrix", func() { m.At(at[0], at[1]) })
		}
	}
	for _, p := range []Points{pointset.Codes(f, 1, 4), pointset.PowersFrom(f, 0, 4), must(CosetPoints(f, 4))(t)} {
		wantPanic(t, "point 4 of 4", func() { p.At(4) })
		wantPanic(t, "point -1 of 4", func() { p.At(-1) })
	}
}

// TestOnDemand makes matrices of a million rows and columns: in little memory,
// and with entries that take none.
func TestOnDemand(t *testing.T) {
	f := fieldtest.Parse(t, "2147483647")
	const k = 899_658 // divides q-1 = 2·3²·7·11·31·151·331, so the DFT and cosets have it
	var ms []Matrix
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, m := range []Matrix{
		must(Cauchy(f, 1_000_000, 1_000_000))(t),
		must(DFT(f, k))(t),
		must(Random(f, 1_000_000, 1_000_000, 1))(t),
		Vandermonde(must(CosetPoints(f, k))(t), 0),
		Vandermonde(pointset.PowersFrom(f, 0, 1_000_000), 0),
		Identity(f, 1_000_000),
	} {
		ms = append(ms, m, Transpose(m))
	}
	ms = append(ms, must(Inverse(t.Context(), ms[2]))(t))
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
		t.Errorf("%d bytes to make them: want tables of O(√K)", n)
	}
	for _, m := range ms {
		i := 1
		if allocs := testing.AllocsPerRun(100, func() {
			i = i * 1009 % m.Rows()
			m.At(i, m.Cols()-1-i/2)
		}); allocs != 0 {
			t.Errorf("%s: %v allocations an entry", m.ID(), allocs)
		}
	}
	// Far entries by the formulas.
	p := int64(1<<31 - 1)
	g := int64(f.Generator()[0])
	at := func(m Matrix, i, j int) int64 { return int64(m.At(i, j)[0]) }
	if got, want := at(ms[0], 999_999, 999_998), modExp(p+999_999-1_999_998, p-2, p); got != want {
		t.Errorf("cauchy: %d, want %d", got, want)
	}
	e := new(big.Int).Mul(big.NewInt(k-1), big.NewInt(k-3)).Int64() % k * ((p - 1) / k)
	if got, want := at(ms[2], k-1, k-3), modExp(g, e, p); got != want {
		t.Errorf("dft: %d, want %d", got, want)
	}
	if got, want := at(ms[8], 999_999, 999_998), modExp(g, 999_999*999_998, p); got != want {
		t.Errorf("vandermonde: %d, want %d", got, want)
	}
}
