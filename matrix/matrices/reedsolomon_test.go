package matrices

import (
	"bytes"
	"fmt"
	"math"
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
			if m.Rows() != k || m.Cols() != r {
				t.Fatalf("%s is %d×%d, want %d×%d", name, m.Rows(), m.Cols(), k, r)
			}
			coded := must(matrix.Mul(matrix.Transpose(m), data))(t) // column j of m has the coefficients of parity j
			for j := range r {
				for i := range k {
					if got, want := m.At(i, j), field.Code(uint64(shards[k+j][i])); got != want {
						t.Fatalf("%s, K = %d, R = %d: A[%d][%d] = %v, theirs is %v", name, k, r, i, j, got, want)
					}
				}
				if !bytes.Equal(coded.Row(j), shards[k+j]) {
					t.Fatalf("%s, K = %d, R = %d: parity shard %d differs from theirs", name, k, r, j)
				}
			}
		}
	}
}

// systematic returns the last R columns of code, K×(K+R), multiplied from the left
// to begin with the identity.
func systematic(t *testing.T, code *matrix.Dense) *matrix.Dense {
	t.Helper()
	k, r := code.Rows(), code.Cols()-code.Rows()
	left, right := matrix.NewDense(code.Field(), k, k), matrix.NewDense(code.Field(), k, r)
	for i := range k {
		for j := range k {
			left.Set(i, j, code.At(i, j))
		}
		for j := range r {
			right.Set(i, j, code.At(i, k+j))
		}
	}
	return must(matrix.Mul(must(left.Inverse())(t), right))(t)
}

// TestSystematic makes the Vandermonde and Jerasure matrices over other fields as
// those libraries do: by elimination.
func TestSystematic(t *testing.T) {
	all := []field.Field{fieldtest.Parse(t, "bls12-381")}
	for _, name := range []string{"2^4", "2^8", "2^16", "97", "257", "3^4"} {
		all = append(all, fieldtest.Parse(t, name))
	}
	for _, f := range all {
		name := f.Name()
		q := int64(math.MaxInt64)
		if order := f.Order(); order.IsInt64() {
			q = order.Int64()
		}
		var shapes [][2]int
		for _, k := range []int{1, 2, 3, 4, 5, 7, 8, 12, 30, 41, 48, 49, 128, 129} {
			for _, r := range []int{k, 1, 2, 3, 5, 10} {
				shapes = append(shapes, [2]int{k, r})
			}
		}
		for _, shape := range append(shapes, [2]int{1, 15}, [2]int{2, 14}, [2]int{2, 15}, [2]int{3, 70}, [2]int{15, 2}, [2]int{16, 1}, [2]int{96, 2}, [2]int{97, 1}) {
			k, r := shape[0], shape[1]
			if int64(k+r-1) > q || k > 12 && q == math.MaxInt64 || k*k*r > 1<<21 {
				continue
			}
			power := func(i, j int) field.Element { return field.Exp(f, field.Code(uint64(j)), uint64(i)) }
			if int64(k+r) <= q {
				code := matrix.NewDense(f, k, k+r)
				for i := range k {
					for j := range k + r {
						code.Set(i, j, power(i, j))
					}
				}
				if !equal(must(Spec{Family: "rs:vandermonde"}.Build(f, k, r))(t), systematic(t, code)) {
					t.Errorf("rs:vandermonde over %s, K = %d, R = %d", name, k, r)
				}
			}
			// Jerasure's extended Vandermonde matrix ends with a unit vector.
			code := matrix.NewDense(f, k, k+r)
			for i := range k {
				for j := range k + r - 1 {
					code.Set(i, j, power(i, j))
				}
			}
			code.Set(k-1, k+r-1, field.One)
			want := systematic(t, code)
			for i := range k { // ones in column 0
				inv := f.Inv(want.At(i, 0))
				for j := range r {
					want.Set(i, j, f.Mul(inv, want.At(i, j)))
				}
			}
			for j := range r { // ones in row 0
				inv := f.Inv(want.At(0, j))
				for i := range k {
					want.Set(i, j, f.Mul(inv, want.At(i, j)))
				}
			}
			if !equal(must(Spec{Family: "rs:jerasure"}.Build(f, k, r))(t), want) {
				t.Errorf("rs:jerasure over %s, K = %d, R = %d", name, k, r)
			}
		}
	}
}

// singularPart returns the first square submatrix of m that is singular, and "" for
// the matrix of an MDS code.
func singularPart(m matrix.Matrix) string {
	for rows := 1; rows < 1<<m.Rows(); rows++ {
		for cols := 1; cols < 1<<m.Cols(); cols++ {
			is, js := bitsOf(rows), bitsOf(cols)
			if len(is) != len(js) {
				continue
			}
			sub := matrix.NewDense(m.Field(), len(is), len(js))
			for a, i := range is {
				for b, j := range js {
					sub.Set(a, b, m.At(i, j))
				}
			}
			if _, err := sub.Inverse(); err != nil {
				return fmt.Sprintf("rows %v, columns %v", is, js)
			}
		}
	}
	return ""
}

// TestMDS has every square submatrix of small matrices, of those that are said to
// be MDS and of PAR1's, which is not.
func TestMDS(t *testing.T) {
	for _, name := range []string{"2^4", "2^8", "97", "257", "3^4"} {
		f := fieldtest.Parse(t, name)
		for _, family := range []string{"cauchy", "fti", "rs:vandermonde", "rs:cauchy", "rs:jerasure", "lagrange"} {
			for _, shape := range [][2]int{{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {1, 6}, {6, 1}, {3, 5}, {5, 3}, {8, 4}, {4, 8}} {
				k, r := shape[0], shape[1]
				if k != r && family == "fti" {
					continue
				}
				if part := singularPart(must(Spec{Family: family}.Build(f, k, r))(t)); part != "" {
					t.Errorf("%s over %s, K = %d, R = %d: singular in %s", family, name, k, r, part)
				}
			}
		}
	}
	for _, c := range []struct {
		field string
		k     int // the first without MDS
		want  string
	}{
		{"2^3", 4, "rows [0 1 2], columns [0 1 3]"},
		{"2^8", 4, "rows [0 1 2], columns [0 1 3]"},
		{"2^16", 4, "rows [0 1 2], columns [0 1 3]"},
		{"97", 5, "rows [2 3 4], columns [0 1 4]"},
		{"3^4", 3, "rows [0 1], columns [0 2]"},
	} {
		f := fieldtest.Parse(t, c.field)
		for k := 1; k <= c.k; k++ {
			want := ""
			if k == c.k {
				want = c.want
			}
			if part := singularPart(must(matrix.ReedSolomonPAR1(f, k, k))(t)); part != want {
				t.Errorf("rs:par1 over %s, K = %d: singular in %q, want %q", c.field, k, part, want)
			}
		}
	}
}

// TestFamilyFormulas compares what every name builds with its formula, written
// here once more, for many K and R; and no matrix is built where the formula has
// none.
func TestFamilyFormulas(t *testing.T) { checkFormulas(t, "2^4", "3^2") }

// TestFamilyFormulasLarge is that test for larger fields, of which make verify-all takes more.
func TestFamilyFormulasLarge(t *testing.T) {
	checkFormulas(t, "2^8", "97", "3^4")
	if verifyall.Enabled {
		checkFormulas(t, "2^16", "257")
	}
}

func checkFormulas(t *testing.T, fields ...string) {
	for _, name := range fields {
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
			k, r := shape[0], shape[1]
			if k < 1 || r < 1 || max(k, r) > 260 {
				continue
			}
			for _, c := range formulas {
				step := 1
				if n := max(k, r); n > 20 && (c.slow || k != r) { // some of the entries
					step = 1 + n/7
					if k != r {
						step = 1 + n/5
					}
				}
				want := c.entry(f, q, k, r)
				m, err := c.spec.Build(f, k, r)
				if (err == nil) != (want != nil) {
					t.Errorf("%+v over %s, K = %d, R = %d: error %v, and a formula: %v", c.spec, name, k, r, err, want != nil)
					continue
				}
				if err != nil {
					continue
				}
				if m.Rows() != k || m.Cols() != r {
					t.Fatalf("%+v over %s: %d×%d, want K = %d and R = %d", c.spec, name, m.Rows(), m.Cols(), k, r)
				}
				for i := 0; i < k; i += step {
					for j := 0; j < r; j += step {
						if got, want := m.At(i, j), want(i, j); got != want {
							t.Fatalf("%+v over %s, K = %d, R = %d: A[%d][%d] = %v, want %v", c.spec, name, k, r, i, j, got, want)
						}
					}
				}
			}
		}
	}
}

// An entry returns A[i][j].
type entry func(i, j int) field.Element

// formulas gives the entries of a matrix, and nil where there is none.
var formulas = []struct {
	spec  Spec
	slow  bool // an entry costs O(K)
	entry func(f field.Field, q int64, k, r int) entry
}{
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
		if int64(k+r) > q-1 {
			return nil
		}
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
		for n := 1; int64(n) < q && len(exponents) < k; n++ {
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
		z := both(q, k, r)
		first := k / z
		if int64(k+r) > q-1 {
			first = 1
		}
		if int64(max(k, r)) > q-1 {
			return nil
		}
		return lagrangeEntry(f, wantCoset(f, q, k, z, 0), wantCoset(f, q, r, z, first))
	}},
	{spec: Spec{Family: "lagrange", Omega: "codes", Alpha: "coset"}, slow: true, entry: func(f field.Field, q int64, k, r int) entry {
		z := both(q, k, r)
		first := k / z
		if int64(k+r) > q-1 {
			first = 1
		}
		if int64(r) > q-1 {
			return nil
		}
		return lagrangeEntry(f, wantCodes(q, 0, k), wantCoset(f, q, r, z, first))
	}},
	{spec: Spec{Family: "lagrange", Omega: "powers", Alpha: "powers"}, slow: true, entry: func(f field.Field, q int64, k, r int) entry {
		if int64(k+r) > q-1 {
			return nil
		}
		return lagrangeEntry(f, wantPowers(f, q, 0, k), wantPowers(f, q, k, r))
	}},
	{spec: Spec{Family: "vandermonde"}, entry: func(f field.Field, q int64, k, r int) entry {
		if int64(r) > q-1 {
			return nil
		}
		return vandermondeEntry(f, q, wantCoset(f, q, r, gcd(r, int(q)-1), 0))
	}},
	{spec: Spec{Family: "vandermonde", Points: "powers"}, entry: func(f field.Field, q int64, k, r int) entry {
		return vandermondeEntry(f, q, wantPowers(f, q, 0, r))
	}},
	{spec: Spec{Family: "vandermonde", Points: "codes"}, entry: func(f field.Field, q int64, k, r int) entry {
		return vandermondeEntry(f, q, wantCodes(q, 0, r))
	}},
	{spec: Spec{Family: "dft"}, entry: func(f field.Field, q int64, k, r int) entry { return dftEntry(f, q, k, r, false) }},
	{spec: Spec{Family: "dft", Order: "any"}, entry: func(f field.Field, q int64, k, r int) entry { return dftEntry(f, q, k, r, false) }},
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

func wantCodes(q int64, first, k int) []field.Element {
	if int64(first+k) > q {
		return nil
	}
	list := make([]field.Element, k)
	for i := range list {
		list[i] = field.Code(uint64(first + i))
	}
	return list
}

// wantPowers returns g^first … .
func wantPowers(f field.Field, q int64, first, k int) []field.Element {
	if int64(first+k) > q-1 {
		return nil
	}
	list := make([]field.Element, k)
	for i := range list {
		list[i] = power(f, q, f.Generator(), big.NewInt(int64(first+i)))
	}
	return list
}

// wantCoset returns the points of K/Z cosets of the Z-th roots of unity, the first
// of them that of g^first.
func wantCoset(f field.Field, q int64, k, z, first int) []field.Element {
	list := make([]field.Element, k)
	for n := range list {
		e := first + n/z + (int(q)-1)/z*wantReversed(n%z, pointset.PrimeFactors(z))
		list[n] = power(f, q, f.Generator(), big.NewInt(int64(e)))
	}
	return list
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
