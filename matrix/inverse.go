package matrix

import (
	"errors"
	"fmt"

	"volley/field"
)

// ErrSingular is wrapped by the errors of [Inverse] and [Dense.Inverse] without an inverse; the text gives the rank.
var ErrSingular = errors.New("matrix is singular")

// maxDenseBytes bounds the dense matrices that are made: a mistyped K is an error and not an exhausted machine.
const maxDenseBytes = 4 << 30

// Inverse returns the inverse of m under the ID "inverse(" + m.ID() + ")".
//
// The inverses of [DFT], [Lagrange] and [Cauchy] matrices, and of transposes of these,
// are on demand. Inverse computes and stores any other: K×K symbols, in O(K³) field
// operations. It returns an error where that takes over 4 GiB. The error wraps
// [ErrSingular] where there is no inverse.
func Inverse(m Matrix) (Matrix, error) {
	if err := checkSquare(m); err != nil {
		return nil, err
	}
	id := "inverse(" + m.ID() + ")"
	if inv := onDemand(m); inv != nil {
		return named{inv, id}, nil
	}
	if err := CheckDense(m.Field(), m.Rows(), m.Cols()); err != nil {
		return nil, fmt.Errorf("matrix: %s: %w", id, err)
	}
	d := stored(m)
	if d == nil {
		d = DenseOf(m)
	}
	inv, err := d.Inverse()
	if err != nil {
		return nil, fmt.Errorf("matrix: %s: %w", id, err)
	}
	return inverted{inv, m}, nil
}

// onDemand returns the inverse of a square matrix that has a formula for it, or nil.
func onDemand(m Matrix) Matrix {
	switch m := m.(type) {
	case named:
		return onDemand(m.Matrix)
	case transpose:
		if inv := onDemand(m.m); inv != nil {
			return Transpose(inv)
		}
	case interface{ inverse() Matrix }:
		return m.inverse()
	}
	return nil
}

// An inverted matrix is stored and remembers what it is the inverse of.
type inverted struct {
	*Dense
	of Matrix
}

func (m inverted) ID() string { return "inverse(" + m.of.ID() + ")" }

// checkSquare returns an error when m is not square.
func checkSquare(m Matrix) error {
	if m.Rows() != m.Cols() {
		return fmt.Errorf("matrix: a %d×%d matrix has no inverse: want a square one", m.Rows(), m.Cols())
	}
	return nil
}

// CheckDense returns an error when a dense matrix of that shape is too large.
func CheckDense(f field.Field, rows, cols int) error {
	limit := uint64(maxDenseBytes) / uint64(f.SymbolBytes())
	if uint64(rows) > limit/max(1, uint64(cols)) {
		return fmt.Errorf("storing %d×%d entries of %s takes more than %d GiB", rows, cols, count(f.SymbolBytes(), "byte"), maxDenseBytes>>30)
	}
	return nil
}
