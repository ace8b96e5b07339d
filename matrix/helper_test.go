package matrix

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"volley/field"
	_ "volley/field/curves"
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

// testFields returns fields of every shape that a matrix's code meets.
func testFields(t testing.TB) []field.Field {
	var all []field.Field
	for _, name := range []string{"2", "97", "257", "2^8", "2^16", "bls12-381"} {
		all = append(all, fieldtest.Parse(t, name))
	}
	return all
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
