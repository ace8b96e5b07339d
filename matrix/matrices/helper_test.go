package matrices

import (
	"fmt"
	"strings"
	"testing"

	"volley/field"
	_ "volley/field/curves"
	"volley/matrix"
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
	if err == nil || err.Error() != want {
		t.Fatalf("error\n got: %v\nwant: %s", err, want)
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

// equal reports whether matrices have the same field, shape and entries.
func equal(a, b matrix.Matrix) bool {
	return a.Field().Name() == b.Field().Name() && a.Rows() == b.Rows() && a.Cols() == b.Cols() && matrix.DenseOf(a).ID() == matrix.DenseOf(b).ID()
}

// identity returns the k×k identity matrix.
func identity(f field.Field, k int) matrix.Matrix {
	return matrix.DenseFunc(f, k, k, func(i, j int) field.Element {
		if i == j {
			return field.One
		}
		return field.Element{}
	})
}

// checkFactor compares a matrix with its factorisation, which it returns; nil: none is known.
func checkFactor(t *testing.T, m matrix.Matrix) *matrix.Factorisation {
	t.Helper()
	fact := must(matrix.Factor(t.Context(), m, nil))(t)
	if fact == nil || len(fact.Layers) == 0 {
		return nil
	}
	f, unit := m.Field(), matrix.DenseOf(identity(m.Field(), m.Rows()))
	packets := make([][]byte, m.Rows())
	for i := range packets {
		packets[i] = unit.Row(i)
	}
	columns, err := fact.Times(t.Context(), packets)
	if err != nil {
		t.Fatal(err)
	}
	for j, column := range columns {
		for i := range packets {
			if got, want := field.Symbol(f, column[i*f.SymbolBytes():]), m.At(i, j); got != want {
				t.Fatalf("%s over %s, K=%d: layers give A[%d][%d] = %v, the matrix %v", m.ID(), f.Name(), m.Rows(), i, j, got, want)
			}
		}
	}
	return fact
}
