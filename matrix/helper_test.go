package matrix

import (
	"bytes"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
)

// must returns v, and fails the test where there is an error.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// wantError fails the test unless err has exactly the text want.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want: %s", want)
	}
	if err.Error() != want {
		t.Errorf("error\n got: %s\nwant: %s", err, want)
	}
}

// wantPanic fails the test unless fn panics with a text that has want in it.
func wantPanic(t *testing.T, want string, fn func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
			t.Errorf("panic %q, want %q", got, want)
		}
	}()
	fn()
}

// frBLS12381 is the scalar field of BLS12-381, for tests that all four limbs of
// an element count.
var frBLS12381 = primeField{
	p: parseBig("52435875175126190479447740508185965837690552500527637822603658699938581184513"),
	g: 7,
}

// A primeField is F_p by math/big: slow, of any size up to 32-byte symbols.
type primeField struct {
	p *big.Int
	g uint64
}

func parseBig(s string) *big.Int {
	v, ok := new(big.Int).SetString(s, 10)
	if !ok {
		panic(s)
	}
	return v
}

func (f primeField) element(v *big.Int) field.Element {
	e, err := field.FromInt(v.Mod(v, f.p))
	if err != nil {
		panic(err)
	}
	return e
}

func (f primeField) Name() string             { return f.p.String() }
func (f primeField) Order() *big.Int          { return new(big.Int).Set(f.p) }
func (f primeField) Characteristic() *big.Int { return f.Order() }
func (f primeField) Degree() int              { return 1 }
func (f primeField) SymbolBytes() int         { return 32 }
func (f primeField) Generator() field.Element { return field.Code(f.g) }

func (f primeField) Add(a, b field.Element) field.Element {
	return f.element(new(big.Int).Add(a.Int(), b.Int()))
}

func (f primeField) Sub(a, b field.Element) field.Element {
	return f.element(new(big.Int).Sub(a.Int(), b.Int()))
}

func (f primeField) Mul(a, b field.Element) field.Element {
	return f.element(new(big.Int).Mul(a.Int(), b.Int()))
}

func (f primeField) Inv(a field.Element) field.Element {
	if a.IsZero() {
		panic("inverse of zero")
	}
	return f.element(new(big.Int).ModInverse(a.Int(), f.p))
}

func (f primeField) Map(rows [][]field.Element) field.Map { panic("matrices make no maps") }

func (f primeField) Combine(dst []byte, coef []field.Element, src [][]byte) {
	factors := make([]*big.Int, len(coef))
	for i, c := range coef {
		factors[i] = c.Int()
	}
	product := new(big.Int)
	for at := 0; at < len(dst); at += 32 {
		sum := new(big.Int)
		for i, c := range factors {
			sum.Add(sum, product.Mul(c, field.Symbol(f, src[i][at:]).Int()))
		}
		field.PutSymbol(f, dst[at:], f.element(sum))
	}
}

func (f primeField) FirstInvalid([]byte) int { panic("not needed") }

// testFields returns fields of every shape that a matrix's code meets.
func testFields(t testing.TB) []field.Field {
	var all []field.Field
	for _, name := range fields {
		all = append(all, fieldtest.Parse(t, name))
	}
	return append(all, frBLS12381)
}

// Equal reports whether a and b have the same field, shape and entries. It
// compares every entry, whatever the IDs say.
func Equal(a, b Matrix) bool {
	if !sameField(a.Field(), b.Field()) || a.Rows() != b.Rows() || a.Cols() != b.Cols() {
		return false
	}
	da, aDense := a.(*Dense)
	db, bDense := b.(*Dense)
	if aDense && bDense {
		return bytes.Equal(da.data, db.data)
	}
	for i := range a.Rows() {
		for j := range a.Cols() {
			if a.At(i, j) != b.At(i, j) {
				return false
			}
		}
	}
	return true
}

// Identity returns the k×k identity matrix, on demand. It panics when k is
// negative.
func Identity(f field.Field, k int) Matrix {
	if k < 0 {
		panic(fmt.Sprintf("matrix: Identity: k = %d", k))
	}
	return &formula{shape{f, k, k}, "identity", func(i, j int) field.Element { return unit(i == j) }, false}
}

// singularPart returns the first square submatrix of m that is singular, and "" for
// the matrix of an MDS code.
func singularPart(m Matrix) string {
	for rows := 1; rows < 1<<m.Rows(); rows++ {
		for cols := 1; cols < 1<<m.Cols(); cols++ {
			is, js := bitsOf(rows), bitsOf(cols)
			if len(is) != len(js) {
				continue
			}
			sub := NewDense(m.Field(), len(is), len(js))
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

func bitsOf(set int) (bits []int) {
	for i := 0; set>>i > 0; i++ {
		if set>>i&1 == 1 {
			bits = append(bits, i)
		}
	}
	return bits
}
