package matrices

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/reedsolomon"

	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/pointset"
	"volley/internal/verifyall"
	"volley/matrix"
)

// klauspost has the options of klauspost/reedsolomon for our matrices.
var klauspost = map[string][]reedsolomon.Option{
	"rs:vandermonde": nil,
	"rs:cauchy":      {reedsolomon.WithCauchyMatrix()},
	"rs:par1":        {reedsolomon.WithPAR1Matrix()},
	"rs:jerasure":    {reedsolomon.WithJerasureMatrix()},
}

// TestKlauspost encodes unit vectors and random shards with klauspost/reedsolomon:
// the parity of the first is our matrix, that of the others our product.
func TestKlauspost(t *testing.T) {
	const size = 100
	f := fieldtest.Parse(t, "2^8")
	rng := rand.NewChaCha8([32]byte{1})
	var shapes [][2]int // K data shards, R parity shards
	for _, k := range []int{1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 64, 100, 127, 128} {
		shapes = append(shapes, [2]int{k, k})
	}
	for k := 1; k <= 12; k++ {
		for r := 1; r <= 12; r++ {
			shapes = append(shapes, [2]int{k, r})
		}
	}
	for _, k := range []int{24, 64, 96, 129, 192, 255} {
		for _, r := range []int{1, 8, 16, 256 - k} {
			if k+r <= 256 {
				shapes = append(shapes, [2]int{k, r}, [2]int{r, k})
			}
		}
	}
	for name, options := range klauspost {
		for _, shape := range shapes {
			k, r := shape[0], shape[1]
			enc, err := reedsolomon.New(k, r, options...)
			if err != nil {
				t.Fatal(err)
			}
			data := matrix.NewDense(f, k, k+size) // row i is data shard i: a unit vector, and random bytes
			shards := make([][]byte, k+r)
			for i := range shards {
				shards[i] = make([]byte, k+size)
				if i < k {
					shards[i][i] = 1
					rng.Read(shards[i][k:])
					copy(data.Row(i), shards[i])
				}
			}
			if err := enc.Encode(shards); err != nil {
				t.Fatal(err)
			}
			m := must(Spec{Family: name}.Build(f, k, r))(t)
			coded := must(matrix.Mul(matrix.Transpose(m), data))(t) // column j of m has the coefficients of parity j
			for j := range r {
				if !bytes.Equal(coded.Row(j), shards[k+j]) {
					t.Fatalf("%s, K = %d, R = %d: parity shard %d differs from theirs", name, k, r, j)
				}
			}
		}
	}
}

// TestFamilyFormulas compares what every name builds with its formula, written
// here once more, for many K and R; and no matrix is built where the formula has
// none. make verify-all takes more fields.
func TestFamilyFormulas(t *testing.T) {
	names := []string{"2^4", "2^8", "97", "2^16", "257"}
	for _, name := range names[:verifyall.Pick(5, 7)] {
		f := fieldtest.Parse(t, name)
		q := f.Order().Int64()
		sizes := []int{85, 96, 97, 127, 128, 129}
		for k := 1; k <= 20; k++ {
			sizes = append(sizes, k)
		}
		var shapes [][2]int
		for _, k := range append(sizes, int(q)/2-1, int(q)/2, int(q)/2+1, int(q)-2, int(q)-1, int(q)) {
			shapes = append(shapes, [2]int{k, k})
		}
		for k := 1; k <= 8; k++ {
			for r := 1; r <= 8; r++ {
				shapes = append(shapes, [2]int{k, r})
			}
		}
		for _, k := range []int{24, 48, 64, 96, 192, int(q) - 8, int(q) - 1, int(q), int(q) + 1} {
			for _, r := range []int{1, 3, 8, 16, int(q) - k - 1, int(q) - k, int(q) - k + 1} {
				shapes = append(shapes, [2]int{k, r}, [2]int{r, k})
			}
		}
		for _, shape := range shapes {
			if k, r := shape[0], shape[1]; min(k, r) >= 1 && max(k, r) <= 260 {
				for _, c := range formulas {
					checkFormula(t, c, f, k, r)
				}
			}
		}
	}
}

// checkFormula compares a matrix with its formula; of a large one some of the entries.
func checkFormula(t *testing.T, c familyFormula, f field.Field, k, r int) {
	t.Helper()
	step := 1
	if n := max(k, r); n > 20 && k != r {
		step = 1 + n/5
	} else if n > 20 && c.slow {
		step = 1 + n/7
	}
	what := fmt.Sprintf("%+v over %s, K = %d, R = %d", c.spec, f.Name(), k, r)
	want := c.entry(f, f.Order().Int64(), k, r)
	m, err := c.spec.Build(f, k, r)
	if (err == nil) != (want != nil) {
		t.Errorf("%s: error %v, and a formula: %v", what, err, want != nil)
	}
	if err != nil || want == nil {
		return
	}
	if m.Rows() != k || m.Cols() != r {
		t.Fatalf("%s: %d×%d", what, m.Rows(), m.Cols())
	}
	for i := 0; i < k; i += step {
		for j := 0; j < r; j += step {
			if got, want := m.At(i, j), want(i, j); got != want {
				t.Fatalf("%s: A[%d][%d] = %v, want %v", what, i, j, got, want)
			}
		}
	}
}

// An entry returns A[i][j].
type entry func(i, j int) field.Element

// A familyFormula gives the entries of a matrix, and nil where there is none.
type familyFormula struct {
	spec  Spec
	slow  bool // an entry costs O(K)
	entry func(f field.Field, q int64, k, r int) entry
}

var formulas = []familyFormula{
	{spec: Spec{Family: "cauchy"}, entry: func(f field.Field, q int64, k, r int) entry {
		return cauchyEntry(f, wantCodes(q, 0, k), wantCodes(q, k, r))
	}},
	{spec: Spec{Family: "rs:cauchy"}, entry: func(f field.Field, q int64, k, r int) entry {
		return cauchyEntry(f, wantCodes(q, 0, k), wantCodes(q, k, r))
	}},
	{spec: Spec{Family: "cauchy", Omega: "coset", Alpha: "coset"}, entry: func(f field.Field, q int64, k, r int) entry {
		if int64(k+r) > q-1 {
			return nil
		}
		return cauchyEntry(f, wantCoset(f, q, k, both(q, k, r), 0), wantCoset(f, q, r, both(q, k, r), k/both(q, k, r)))
	}},
	{spec: Spec{Family: "cauchy", Omega: "powers", Alpha: "powers"}, entry: func(f field.Field, q int64, k, r int) entry {
		return cauchyEntry(f, wantPowers(f, q, 0, k), wantPowers(f, q, k, r))
	}},
	{spec: Spec{Family: "fti"}, entry: func(f field.Field, q int64, k, r int) entry {
		if int64(2*k) > q || k != r {
			return nil
		}
		return func(i, j int) field.Element {
			if f.Characteristic().Int64() == 2 {
				return f.Inv(field.Code(uint64(j ^ (k + i))))
			}
			return f.Inv(f.Sub(field.Code(uint64(j)), field.Code(uint64(k+i))))
		}
	}},
	{spec: Spec{Family: "rs:vandermonde"}, slow: true, entry: func(f field.Field, q int64, k, r int) entry {
		return lagrangeEntry(f, wantCodes(q, 0, k), wantCodes(q, k, r))
	}},
	{spec: Spec{Family: "rs:jerasure"}, entry: func(f field.Field, q int64, k, r int) entry {
		if int64(k+r-1) > q {
			return nil
		}
		code := func(i int) field.Element { return field.Code(uint64(i)) }
		return func(i, j int) field.Element {
			switch {
			case r == 1:
				return field.One
			case j == r-1:
				return f.Mul(f.Sub(code(k), code(i)), f.Inv(code(k)))
			}
			return f.Mul(f.Mul(f.Sub(code(k), code(i)), code(k+j)), f.Inv(f.Mul(code(k), f.Sub(code(k+j), code(i)))))
		}
	}},
	{spec: Spec{Family: "rs:par1"}, entry: func(f field.Field, q int64, k, r int) entry {
		points := wantCodes(q, 1, k)
		if points == nil {
			return nil
		}
		return func(i, j int) field.Element { return power(f, q, points[i], big.NewInt(int64(j))) }
	}},
	{spec: Spec{Family: "rs:par2"}, entry: func(f field.Field, q int64, k, r int) entry {
		var exponents []int
		for n := 1; int64(n) < q; n++ {
			if gcd(n, int(q-1)) == 1 {
				exponents = append(exponents, n)
			}
		}
		if len(exponents) < k {
			return nil
		}
		return func(i, j int) field.Element {
			return power(f, q, f.Generator(), big.NewInt(int64(exponents[i])*int64(j)))
		}
	}},
	{spec: Spec{Family: "lagrange"}, slow: true, entry: func(f field.Field, q int64, k, r int) entry {
		return lagrangeEntry(f, wantCoset(f, q, k, both(q, k, r), 0), wantAlpha(f, q, k, r))
	}},
	{spec: Spec{Family: "lagrange", Omega: "codes", Alpha: "coset"}, slow: true, entry: func(f field.Field, q int64, k, r int) entry {
		return lagrangeEntry(f, wantCodes(q, 0, k), wantAlpha(f, q, k, r))
	}},
	{spec: Spec{Family: "lagrange", Omega: "powers", Alpha: "powers"}, slow: true, entry: func(f field.Field, q int64, k, r int) entry {
		return lagrangeEntry(f, wantPowers(f, q, 0, k), wantPowers(f, q, k, r))
	}},
	{spec: Spec{Family: "vandermonde"}, entry: func(f field.Field, q int64, k, r int) entry {
		return vandermondeEntry(f, q, wantCoset(f, q, r, gcd(r, int(q)-1), 0))
	}},
	{spec: Spec{Family: "vandermonde", Points: "powers"}, entry: func(f field.Field, q int64, k, r int) entry {
		return vandermondeEntry(f, q, wantPowers(f, q, 0, r))
	}},
	{spec: Spec{Family: "vandermonde", Points: "codes"}, entry: func(f field.Field, q int64, k, r int) entry {
		return vandermondeEntry(f, q, wantCodes(q, 0, r))
	}},
	{spec: Spec{Family: "dft"}, entry: func(f field.Field, q int64, k, r int) entry { return dftEntry(f, q, k, r, false) }},
	{spec: Spec{Family: "dft", Order: "natural"}, entry: func(f field.Field, q int64, k, r int) entry { return dftEntry(f, q, k, r, false) }},
	{spec: Spec{Family: "dft", Order: "reversed"}, entry: func(f field.Field, q int64, k, r int) entry { return dftEntry(f, q, k, r, true) }},
	{spec: Spec{Family: "lch"}, slow: true, entry: lchEntry},
}

// power returns a^e for a nonzero, the exponent reduced.
func power(f field.Field, q int64, a field.Element, e *big.Int) field.Element {
	if a.IsZero() {
		if e.Sign() == 0 {
			return field.One
		}
		return a
	}
	return field.ExpInt(f, a, e.Mod(e, big.NewInt(q-1)))
}

// both returns the size of cosets that omega and alpha have.
func both(q int64, k, r int) int { return gcd(gcd(k, r), int(q)-1) }

// elements lists so many, and none where they are more than most.
func elements(n int, most bool, element func(i int) field.Element) (list []field.Element) {
	for i := 0; i < n && most; i++ {
		list = append(list, element(i))
	}
	return list
}

func wantCodes(q int64, first, k int) []field.Element {
	return elements(k, int64(first+k) <= q, func(i int) field.Element { return field.Code(uint64(first + i)) })
}

// wantPowers returns g^first … .
func wantPowers(f field.Field, q int64, first, k int) []field.Element {
	return elements(k, int64(first+k) <= q-1, func(i int) field.Element {
		return power(f, q, f.Generator(), big.NewInt(int64(first+i)))
	})
}

// wantCoset returns the points of K/Z cosets of the Z-th roots of unity, the first
// of them that of g^first.
func wantCoset(f field.Field, q int64, k, z, first int) []field.Element {
	return elements(k, int64(k) <= q-1, func(n int) field.Element {
		e := first + n/z + (int(q)-1)/z*wantReversed(n%z, pointset.PrimeFactors(z))
		return power(f, q, f.Generator(), big.NewInt(int64(e)))
	})
}

// wantAlpha returns the points after those of omega, or after the first coset where there are too few.
func wantAlpha(f field.Field, q int64, k, r int) []field.Element {
	first := k / both(q, k, r)
	if int64(k+r) > q-1 {
		first = 1
	}
	return wantCoset(f, q, r, both(q, k, r), first)
}

// wantReversed reverses the digits of j: its least significant one comes to the
// top.
func wantReversed(j int, radices []int) int {
	if len(radices) == 0 {
		return 0
	}
	above := 1
	for _, r := range radices[1:] {
		above *= r
	}
	return j%radices[0]*above + wantReversed(j/radices[0], radices[1:])
}

func cauchyEntry(f field.Field, x, y []field.Element) entry {
	if x == nil || y == nil {
		return nil
	}
	return func(i, j int) field.Element { return f.Inv(f.Sub(x[i], y[j])) }
}

func lagrangeEntry(f field.Field, omega, alpha []field.Element) entry {
	if omega == nil || alpha == nil {
		return nil
	}
	return func(i, j int) field.Element {
		v := field.One
		for l, w := range omega {
			if l != i {
				v = f.Mul(v, f.Mul(f.Sub(alpha[j], w), f.Inv(f.Sub(omega[i], w))))
			}
		}
		return v
	}
}

func vandermondeEntry(f field.Field, q int64, points []field.Element) entry {
	if points == nil {
		return nil
	}
	return func(i, j int) field.Element { return power(f, q, points[j], big.NewInt(int64(i))) }
}

func dftEntry(f field.Field, q int64, k, r int, reversed bool) entry {
	if k != r || int64(k) > q-1 || (q-1)%int64(k) != 0 {
		return nil
	}
	return func(i, j int) field.Element {
		if reversed {
			j = wantReversed(j, pointset.PrimeFactors(k))
		}
		return power(f, q, f.Generator(), big.NewInt((q-1)/int64(k)*int64(i)*int64(j)))
	}
}

// lchEntry has the polynomials that vanish on the codes below 2^t as products.
func lchEntry(f field.Field, q int64, k, r int) entry {
	if f.Characteristic().Int64() != 2 || int64(max(k, r)) > q {
		return nil
	}
	vanishing := func(t, z int) field.Element {
		v := field.One
		for c := range 1 << t {
			v = f.Mul(v, field.Code(uint64(z^c)))
		}
		return v
	}
	return func(i, j int) field.Element {
		v, t := field.One, 0
		for ; k>>t&1 == 0; t++ { // K = M·2^h, M odd
			if i>>t&1 == 1 {
				v = f.Mul(v, f.Mul(vanishing(t, j), f.Inv(vanishing(t, 1<<t))))
			}
		}
		return f.Mul(v, field.Exp(f, vanishing(t, j), uint64(i>>t)))
	}
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}
