package matrix

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/klauspost/reedsolomon"

	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/pointset"
)

// modExp returns base^e mod p: arithmetic that shares nothing with package
// field.
func modExp(base, e, p int64) int64 {
	return new(big.Int).Exp(big.NewInt(base), big.NewInt(e), big.NewInt(p)).Int64()
}

// wantEntries compares every entry of m with the one that want gives.
func wantEntries(t *testing.T, m Matrix, rows, cols int, want func(i, j int64) int64) {
	t.Helper()
	if m.Rows() != rows || m.Cols() != cols {
		t.Fatalf("%s is %d×%d, want %d×%d", m.ID(), m.Rows(), m.Cols(), rows, cols)
	}
	for i := range rows {
		for j := range cols {
			if got, want := m.At(i, j), want(int64(i), int64(j)); got != field.Code(uint64(want)) {
				t.Fatalf("%s over %s: A[%d][%d] = %v, want %d", m.ID(), m.Field().Name(), i, j, got, want)
			}
		}
	}
}

// TestPrimeFormulas has the families over F_257, whose generator is 3, against
// their formulas in integers mod 257. K runs past and across the structure of
// 256 = 2^8.
func TestPrimeFormulas(t *testing.T) {
	const p, g = 257, 3
	f := fieldtest.Parse(t, "257")
	if f.Generator() != field.Code(g) {
		t.Fatalf("generator %v of F_257", f.Generator())
	}
	for _, k := range []int64{1, 2, 8, 32, 256} {
		wantEntries(t, must(DFT(f, int(k)))(t), int(k), int(k), func(i, j int64) int64 {
			return modExp(g, (p-1)/k*i*j, p)
		})
	}
	for _, k := range []int64{1, 2, 7, 12, 128} {
		wantEntries(t, must(Cauchy(f, int(k), int(k)))(t), int(k), int(k), func(i, j int64) int64 {
			return modExp(i-(k+j), p-2, p)
		})
		wantEntries(t, Vandermonde(pointset.PowersFrom(f, 0, int(k)), 0), int(k), int(k), func(i, j int64) int64 {
			return modExp(g, i*j, p)
		})
	}
	wantEntries(t, must(CauchyOn(pointset.Codes(f, 5, 3), pointset.Codes(f, 100, 9)))(t), 3, 9,
		func(i, j int64) int64 { return modExp(5+i-100-j, p-2, p) })
}

// TestCodePoints has the largest codes that there may be.
func TestCodePoints(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, c := range []struct {
		f        field.Field
		first, n int
	}{{f, 0, 256}, {f, 255, 1}, {frBLS12381, pointset.MaxSize, 2}} {
		p := pointset.Codes(c.f, c.first, c.n)
		for k := range c.n {
			if want := field.Code(uint64(c.first) + uint64(k)); p.Len() != c.n || p.At(k) != want {
				t.Fatalf("%d codes from %d, wanted %d: number %d is %v, want %v", p.Len(), c.first, c.n, k, p.At(k), want)
			}
		}
	}
}

// TestCosetFormula has K = 12 points over F_257: Z = 4, M = 3 and β = 3^64, of
// order 4; the bits of j are reversed: 0 2 1 3.
func TestCosetFormula(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	p := must(CosetPoints(f, 12))(t)
	for k := range 12 {
		rev := []int64{0, 2, 1, 3}[k%4]
		if want := modExp(3, int64(k/4)+64*rev, 257); p.At(k) != field.Code(uint64(want)) {
			t.Errorf("point %d is %v, want %d", k, p.At(k), want)
		}
	}
}

// TestReverseDigits: over the radices 2, 3 the number j = j_0 + 2·j_1 becomes
// j_1 + 3·j_0.
func TestReverseDigits(t *testing.T) {
	var got []int
	for j := range 6 {
		got = append(got, pointset.ReverseDigits(j, []int{2, 3}))
	}
	if want := []int{0, 3, 1, 4, 2, 5}; !slices.Equal(got, want) {
		t.Errorf("digits over 2, 3 reversed: %v, want %v", got, want)
	}
	for n, want := range map[int][]int{1: nil, 2: {2}, 12: {2, 2, 3}, 97: {97}, 255: {3, 5, 17}, 2147483646: {2, 3, 3, 7, 11, 31, 151, 331}} {
		if got := pointset.PrimeFactors(n); !slices.Equal(got, want) {
			t.Errorf("prime factors of %d: %v, want %v", n, got, want)
		}
	}
}

// TestCosetStructure has, for every K over several fields, distinct points of
// which each run of Z is closed under multiplication by β: a coset.
func TestCosetStructure(t *testing.T) {
	for _, name := range []string{"2", "5", "3^4", "257", "2^8"} {
		f := fieldtest.Parse(t, name)
		units := pointset.UnitCount(f)
		for k := 1; int64(k) <= units.Int64(); k++ {
			p := must(CosetPoints(f, k))(t)
			z := int(new(big.Int).GCD(nil, nil, units, big.NewInt(int64(k))).Int64())
			beta := field.Exp(f, f.Generator(), units.Uint64()/uint64(z))
			all := map[field.Element]int{} // coset of each point
			for i := range k {
				all[p.At(i)] = i / z
			}
			if len(all) != k {
				t.Fatalf("%s: %d distinct points of %d", name, len(all), k)
			}
			for e, coset := range all {
				if c, ok := all[f.Mul(e, beta)]; !ok || c != coset {
					t.Fatalf("%s, K = %d: %v and β·%v are in different cosets", name, k, e, e)
				}
			}
		}
	}
}

// TestPowersDistinct has every K over several fields.
func TestPowersDistinct(t *testing.T) {
	for _, name := range []string{"2", "5", "3^4", "257", "2^8", "2^16"} {
		f := fieldtest.Parse(t, name)
		n := int(pointset.UnitCount(f).Int64())
		p := pointset.PowersFrom(f, 0, n) // those for smaller K are its first
		seen := map[field.Element]bool{}
		for k := range n {
			seen[p.At(k)] = true
		}
		if len(seen) != n {
			t.Errorf("%s: %d distinct powers of %d", name, len(seen), n)
		}
		for _, m := range []int{n/2 + 1, 1024, 1025} {
			if m <= n && pointset.PowersFrom(f, 0, m).At(m-1) != p.At(m-1) {
				t.Errorf("%s: point %d depends on K", name, m-1)
			}
		}
	}
}

// TestDFTInverse: the DFT's inverse on demand is the one elimination finds.
func TestDFTInverse(t *testing.T) {
	for name, sizes := range map[string][]int{
		"2": {1}, "3^4": {1, 2, 5, 16, 80}, "257": {1, 2, 64}, "2^8": {1, 3, 15, 51, 85}, "2^16": {1, 3, 255},
	} {
		f := fieldtest.Parse(t, name)
		for _, k := range sizes {
			m := must(DFT(f, k))(t)
			inv := must(Inverse(t.Context(), m))(t)
			if stored(inv) != nil || inv.ID() != "inverse(dft)" {
				t.Errorf("%s, K = %d: inverse %T with ID %q", name, k, inv, inv.ID())
			}
			if !Equal(must(Mul(m, inv))(t), Identity(f, k)) {
				t.Errorf("%s, K = %d: DFT·DFT⁻¹ is not the identity", name, k)
			}
			if !Equal(inv, must(DenseOf(m).Inverse())(t)) {
				t.Errorf("%s, K = %d: the inverse differs from the one by elimination", name, k)
			}
			reversed := must(DFTReversed(f, k, nil))(t)
			back := must(Inverse(t.Context(), reversed))(t)
			if !Equal(must(Mul(reversed, back))(t), Identity(f, k)) {
				t.Errorf("%s, K = %d: reversed, DFT·DFT⁻¹ is not the identity", name, k)
			}
			if !Equal(must(Inverse(t.Context(), back))(t), reversed) {
				t.Errorf("%s, K = %d: reversed, the inverse's inverse is another matrix", name, k)
			}
			if !StructureOf(reversed).Reversed || !StructureOf(back).Reversed || StructureOf(m).Reversed || StructureOf(inv).Reversed {
				t.Errorf("%s, K = %d: IsReversed takes one for the other", name, k)
			}
		}
	}
	k := 8 // divides p-1 = 2^32·…
	m := must(DFT(frBLS12381, k))(t)
	if !Equal(must(Mul(m, must(Inverse(t.Context(), m))(t)))(t), Identity(frBLS12381, k)) {
		t.Error("BLS12-381: DFT·DFT⁻¹ is not the identity")
	}
}

// TestFullRank: the structured families are invertible, over characteristic 2,
// 3 and large, whatever K is.
func TestFullRank(t *testing.T) {
	for _, name := range []string{"2^8", "3^4", "257"} {
		f := fieldtest.Parse(t, name)
		for _, k := range []int{1, 2, 3, 6, 15, 20, 40} {
			for _, m := range []Matrix{
				must(Cauchy(f, k, k))(t),
				Vandermonde(must(CosetPoints(f, k))(t), 0),
				Vandermonde(pointset.PowersFrom(f, 0, k), 0),
				Vandermonde(pointset.Codes(f, 0, k), 0),
			} {
				if _, err := DenseOf(m).Inverse(); err != nil {
					t.Errorf("%s over %s, K = %d: %v", m.ID(), name, k, err)
				}
			}
		}
	}
}

// TestVandermondeZero: 0^0 is 1, so that row 0 is all ones.
func TestVandermondeZero(t *testing.T) {
	m := Vandermonde(pointset.Codes(fieldtest.Parse(t, "5"), 0, 3), 0)
	for j, want := range []uint64{1, 0, 0} {
		if got := m.At(j, 0); got != field.Code(want) {
			t.Errorf("A[%d][0] = %v at the point 0, want %d", j, got, want)
		}
	}
}

// TestCauchySubmatrices has every square submatrix of small Cauchy matrices.
func TestCauchySubmatrices(t *testing.T) {
	for _, c := range []struct {
		field string
		k     int
	}{{"2", 1}, {"5", 2}, {"3^4", 4}, {"257", 5}, {"2^8", 5}} {
		f := fieldtest.Parse(t, c.field)
		m := must(Cauchy(f, c.k, c.k))(t)
		for rows := 1; rows < 1<<c.k; rows++ {
			for cols := 1; cols < 1<<c.k; cols++ {
				is, js := bitsOf(rows), bitsOf(cols)
				if len(is) != len(js) {
					continue
				}
				sub := NewDense(f, len(is), len(js))
				for a, i := range is {
					for b, j := range js {
						sub.Set(a, b, m.At(i, j))
					}
				}
				if _, err := sub.Inverse(); err != nil {
					t.Fatalf("%s: rows %v and columns %v: %v", c.field, is, js, err)
				}
			}
		}
	}
}

func bitsOf(set int) (bits []int) {
	for i := 0; set>>i > 0; i++ {
		if set>>i&1 == 1 {
			bits = append(bits, i)
		}
	}
	return bits
}

// TestCauchyKlauspost reads klauspost/reedsolomon's coefficients off the parity
// of unit vectors: they are ours, entry by entry.
func TestCauchyKlauspost(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, k := range []int{1, 2, 5, 17, 128} {
		// A single parity shard would be a plain sum to them, with either matrix.
		enc, err := reedsolomon.New(k, k, reedsolomon.WithCauchyMatrix())
		if err != nil {
			t.Fatal(err)
		}
		shards := make([][]byte, 2*k) // shard i has the unit at position i
		for i := range shards {
			shards[i] = make([]byte, k)
			if i < k {
				shards[i][i] = 1
			}
		}
		if err := enc.Encode(shards); err != nil {
			t.Fatal(err)
		}
		m := must(Cauchy(f, k, k))(t)
		for i := range k {
			for j := range k {
				if got, want := m.At(i, j), field.Code(uint64(shards[k+j][i])); got != want {
					t.Fatalf("K = %d: A[%d][%d] = %v, theirs is %v", k, i, j, got, want)
				}
			}
		}
	}
}

// TestRandomFormula draws the numbers below 257, of 9 bits, anew.
func TestRandomFormula(t *testing.T) {
	m := must(Random(fieldtest.Parse(t, "257"), 40, 50, 11))(t)
	wantEntries(t, m, 40, 50, func(i, j int64) int64 {
		source := rand.NewPCG(11, uint64(i)<<32+uint64(j))
		for {
			if v := source.Uint64() % 512; v < 257 {
				return int64(v)
			}
		}
	})
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
		{frBLS12381, 0, "[51025484102011371444106301262815198474937579073284045012542755741021067534474" +
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

// TestRandomUniform has a χ² test of single entries, and one of the sums of
// neighbours, along rows and columns: a generator seeded with i and j must not
// let them shine through.
func TestRandomUniform(t *testing.T) {
	const n = 300
	for _, name := range fields {
		f := fieldtest.Parse(t, name)
		q := int(f.Order().Int64())
		if q > 257 {
			continue // too few samples
		}
		for seed := range uint64(3) {
			m := DenseOf(must(Random(f, n, n, seed))(t))
			for _, c := range []struct {
				what   string
				di, dj int
			}{{"an entry", 0, 0}, {"neighbours in a row", 0, 1}, {"neighbours in a column", 1, 0}, {"next but one", 0, 2}} {
				counts := make([]float64, q)
				total := 0.0
				for i := 0; i+c.di < n; i++ {
					for j := 0; j+c.dj < n; j++ {
						e := m.At(i, j)
						if c.di+c.dj > 0 {
							e = f.Sub(e, m.At(i+c.di, j+c.dj))
						}
						counts[e[0]]++
						total++
					}
				}
				chi := 0.0
				for _, c := range counts {
					chi += (c - total/float64(q)) * (c - total/float64(q)) / (total / float64(q))
				}
				// Wilson and Hilferty: the cube root of χ²/d is close to normal.
				d := float64(q - 1)
				z := (math.Cbrt(chi/d) - (1 - 2/(9*d))) / math.Sqrt(2/(9*d))
				if math.Abs(z) > 4 {
					t.Errorf("%s, seed %d: χ² of %s is %.0f with %.0f degrees of freedom", name, seed, c.what, chi, d)
				}
			}
		}
	}
}

func TestFamilyErrors(t *testing.T) {
	f8, f257, f2, f31 := fieldtest.Parse(t, "2^8"), fieldtest.Parse(t, "257"), fieldtest.Parse(t, "2"), fieldtest.Parse(t, "2147483647")
	for _, c := range []struct {
		name string
		do   func() (any, error)
		want string
	}{
		{"cauchy too large", func() (any, error) { return Cauchy(f8, 129, 129) },
			"matrix: cauchy over 2^8: K + R = 258 needs 258 elements and there are 256: want K + R <= 256, or a field such as 2^16"},
		{"cauchy far too large", func() (any, error) { return Cauchy(f257, 1<<30, 1<<30) },
			"matrix: cauchy over 257: K + R = 2147483648 needs 2147483648 elements and there are 257: want K + R <= 257"},
		{"no K", func() (any, error) { return Cauchy(f8, 0, 0) }, "matrix: K = 0: want 1 to 2147483647"},
		{"cauchy's points meet", func() (any, error) { return CauchyOn(pointset.Codes(f8, 0, 4), pointset.Codes(f8, 3, 4)) },
			"matrix: cauchy: the points x_3 and y_0 are both 3: want distinct points"},
		{"cauchy's points repeat", func() (any, error) { return CauchyOn(pointset.Codes(f8, 9, 1), repeat{pointset.Codes(f8, 1, 3)}) },
			"matrix: cauchy: the points y_0 and y_1 are both 1: want distinct points"},
		{"cauchy's fields differ", func() (any, error) { return CauchyOn(pointset.Codes(f8, 0, 4), pointset.Codes(f257, 3, 4)) },
			"matrix: cauchy: points x over 2^8 and y over 257: want one field"},
		{"cauchy too large by a factor", func() (any, error) { return Cauchy(fieldtest.Parse(t, "2^4"), 128, 128) },
			"matrix: cauchy over 2^4: K + R = 256 needs 256 elements and there are 16: want K + R <= 16, or a field such as 2^8"},
		{"dft between divisors", func() (any, error) { return DFT(f8, 8) },
			"matrix: dft over 2^8: K = 8 does not divide q-1 = 255: want K = 5 or 15, or a field such as 17"},
		{"dft just below q-1", func() (any, error) { return DFT(f257, 200) },
			"matrix: dft over 257: K = 200 does not divide q-1 = 256: want K = 128 or 256, or a field such as 401"},
		{"dft beyond q-1", func() (any, error) { return DFT(f8, 300) },
			"matrix: dft over 2^8: K = 300 does not divide q-1 = 255: want K = 255, or a field such as 601"},
		{"dft over F_2", func() (any, error) { return DFT(f2, 2) },
			"matrix: dft over 2: K = 2 does not divide q-1 = 1: want K = 1, or a field such as 3"},
		{"dft over 256 bits", func() (any, error) { return DFT(frBLS12381, 5) },
			"matrix: dft over " + frBLS12381.Name() + ": K = 5 does not divide q-1 = 52435875175126190479447740508185965837690552500527637822603658699938581184512: want K = 4 or 6, or a field such as 11"},
		// The search for divisors ends after 2^16 numbers, excluding the last.
		{"dft far beyond q-1", func() (any, error) { return DFT(f8, 65790) },
			"matrix: dft over 2^8: K = 65790 does not divide q-1 = 255: want K = 255, or a field such as 131581"},
		{"dft too far beyond q-1", func() (any, error) { return DFT(f8, 65791) },
			"matrix: dft over 2^8: K = 65791 does not divide q-1 = 255: want a field such as 394747"},
		{"dft further beyond q-1", func() (any, error) { return DFT(f8, 65792) },
			"matrix: dft over 2^8: K = 65792 does not divide q-1 = 255: want a field such as 328961"},
		{"dft far below a divisor", func() (any, error) { return DFT(f31, 365427) },
			"matrix: dft over 2147483647: K = 365427 does not divide q-1 = 2147483646: want K = 360437 or 430962, or a field such as 1461709"},
		{"dft too far below a divisor", func() (any, error) { return DFT(f31, 365426) },
			"matrix: dft over 2147483647: K = 365426 does not divide q-1 = 2147483646: want K = 360437, or a field such as 730853"},
		{"dft with one field left", func() (any, error) { return DFT(f8, 2147483646) },
			"matrix: dft over 2^8: K = 2147483646 does not divide q-1 = 255: want a field such as 2147483647"},
		{"dft without advice", func() (any, error) { return DFT(f8, 2147483647) },
			"matrix: dft over 2^8: K = 2147483647 does not divide q-1 = 255: want a divisor of q-1"},
		{"dft without K", func() (any, error) { return DFT(f8, -2) }, "matrix: K = -2: want 1 to 2147483647"},
		{"too few cosets", func() (any, error) { return CosetPoints(f257, 65536) },
			"matrix: coset points over 257: K = 65536 needs 65536 nonzero elements and there are 256: want K <= 256, or a field such as 2147483647"},
		{"cosets beyond the last", func() (any, error) { return ShiftedCosetPoints(f257, 24, 30) },
			"matrix: coset points over 257: no cosets 30 to 32 of 8 elements: the field has 32"},
		{"cosets before the first", func() (any, error) { return ShiftedCosetPoints(f257, 24, -1) },
			"matrix: coset points over 257: no cosets -1 to 1 of 8 elements: the field has 32"},
		{"a point twice", func() (any, error) { return NewPoints(f8, []field.Element{{3}, {1}, {2}, {1}}) },
			"matrix: the points 1 and 3 are both 1: want distinct points"},
		{"a point outside the field", func() (any, error) { return NewPoints(f8, []field.Element{{255}, {256}}) },
			"matrix: point 1 = 256 is outside the field 2^8"},
		{"no columns", func() (any, error) { return Random(f8, 1, 0, 1) }, "matrix: cols = 0: want 1 to 2147483647"},
		{"no rows", func() (any, error) { return Random(f8, 0, 1, 1) }, "matrix: rows = 0: want 1 to 2147483647"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.do()
			wantError(t, err, c.want)
		})
	}
}

// TestIDs has matrices of one field and shape: those with equal IDs are equal.
func TestIDs(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	const k = 8
	codes := func(first int) Points { return pointset.Codes(f, first, k) }
	ordered := func(values ...uint64) Points {
		var list []field.Element
		for _, v := range values {
			list = append(list, field.Code(v))
		}
		return must(NewPoints(f, list))(t)
	}
	var ms []Matrix
	for range 2 {
		ms = append(ms,
			Identity(f, k),
			must(DFT(f, k))(t),
			must(Cauchy(f, k, k))(t),
			must(CauchyOn(codes(0), codes(k)))(t),
			must(CauchyOn(codes(k), codes(0)))(t),
			must(CauchyOn(pointset.PowersFrom(f, 0, k), codes(50)))(t),
			must(Random(f, k, k, 1))(t),
			must(Random(f, k, k, 2))(t),
			Vandermonde(codes(0), 0),
			Vandermonde(codes(1), 0),
			Vandermonde(must(CosetPoints(f, k))(t), 0),
			Vandermonde(pointset.PowersFrom(f, 0, k), 0),
			Vandermonde(ordered(1, 2, 3, 4, 5, 6, 7, 8), 0),
			Vandermonde(ordered(1, 2, 3, 4, 5, 6, 8, 7), 0),
			DenseOf(must(Random(f, k, k, 1))(t)),
			DenseOf(must(Random(f, k, k, 2))(t)),
		)
	}
	for _, m := range ms {
		ms = append(ms, Transpose(m), Transpose(DenseOf(m)))
		if inv, err := Inverse(t.Context(), m); err == nil {
			ms = append(ms, inv, Transpose(inv))
		}
	}
	same := 0
	for i, a := range ms {
		for _, b := range ms[:i] {
			if a.ID() == b.ID() {
				same++
				if !Equal(a, b) {
					t.Errorf("two matrices with the ID %s", a.ID())
				}
			}
		}
	}
	if same < len(ms)/2 { // each was made twice
		t.Errorf("%d pairs of %d matrices have equal IDs", same, len(ms))
	}
	if got, want := ms[3].ID(), "cauchy(codes:0, codes:8)"; got != want {
		t.Errorf("ID %s, want %s", got, want)
	}
}

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
	for _, make := range []func() (Matrix, error){
		func() (Matrix, error) { return Cauchy(f, 1_000_000, 1_000_000) },
		func() (Matrix, error) { return DFT(f, k) },
		func() (Matrix, error) { return Random(f, 1_000_000, 1_000_000, 1) },
		func() (Matrix, error) {
			p, err := CosetPoints(f, k)
			return Vandermonde(p, 0), err
		},
		func() (Matrix, error) {
			return Vandermonde(pointset.PowersFrom(f, 0, 1_000_000), 0), nil
		},
		func() (Matrix, error) { return Identity(f, 1_000_000), nil },
	} {
		m, err := make()
		if err != nil {
			t.Fatal(err)
		}
		ms = append(ms, m, Transpose(m))
	}
	ms = append(ms, must(Inverse(t.Context(), ms[2]))(t))
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
		t.Errorf("%d bytes to make them: want tables of O(√K)", n)
	}
	for _, m := range ms {
		i := 1
		allocs := testing.AllocsPerRun(100, func() {
			i = i * 1009 % m.Rows()
			m.At(i, m.Cols()-1-i/2)
		})
		if allocs != 0 {
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
