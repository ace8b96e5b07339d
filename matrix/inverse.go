package matrix

import (
	"context"
	"errors"
	"fmt"

	"volley/field"
	"volley/internal/pointset"
	"volley/internal/poll"
	"volley/internal/printable"
)

// ErrSingular is wrapped by the errors of [Inverse] and [Dense.Inverse] without an inverse; the text gives the rank.
var ErrSingular = errors.New("matrix is singular")

// maxDenseBytes bounds the dense matrices that are made: a mistyped K is an error and not an exhausted machine.
const maxDenseBytes = 4 << 30

// Inverse returns the inverse of m under the ID "inverse(" + m.ID() + ")".
//
// The inverses of [DFT], [Lagrange], [Cauchy] and [Vandermonde] matrices, and of transposes of these, are on demand. Any
// other is stored: K×K symbols, in O(K³) field operations, of [LCH] and [ReedSolomonJerasure] when an entry is first
// asked for. Inverse returns an error where that takes over 4 GiB. The error wraps [ErrSingular] where there is no
// inverse, and is the cause of the context where that ends.
func Inverse(ctx context.Context, m Matrix) (_ Matrix, err error) {
	defer poll.Catch(&err)
	if err := checkSquare(m); err != nil {
		return nil, err
	}
	id := "inverse(" + m.ID() + ")"
	structure := StructureOf(m)
	if structure.inverse != nil {
		return named{structure.inverse(), id}, nil
	}
	if err := CheckDense(m.Field(), m.Rows(), m.Cols()); err != nil {
		return nil, fmt.Errorf("matrix: %s: %w", id, err)
	}
	type result struct {
		dense *Dense
		err   error
	}
	var kept poll.Once[result]
	inverse := func(p *poll.Poller) (*Dense, error) {
		r := kept.Get(func() result {
			d := stored(m)
			if d == nil {
				makeReady(p, m)
				d = denseFunc(p, m.Field(), m.Rows(), m.Cols(), m.At)
			}
			inverse, err := d.inverse(p)
			return result{inverse, err}
		})
		return r.dense, r.err
	}
	if !structure.invertible {
		if _, err := inverse(poll.New(ctx)); err != nil {
			return nil, fmt.Errorf("matrix: %s: %w", id, err)
		}
	}
	prepare := func(p *poll.Poller) { _, _ = inverse(p) }
	return inverted{m, prepare, func(i, j int) field.Element {
		d, err := inverse(nil)
		if err != nil {
			panic(err) // of a matrix that has one
		}
		return d.At(i, j)
	}}, nil
}

// An inverted matrix remembers what it is the inverse of.
type inverted struct {
	original Matrix
	prepare  func(*poll.Poller) // for entry
	entry    func(i, j int) field.Element
}

func (m inverted) Field() field.Field { return m.original.Field() }
func (m inverted) Rows() int          { return m.original.Cols() }
func (m inverted) Cols() int          { return m.original.Rows() }
func (m inverted) ID() string         { return "inverse(" + m.original.ID() + ")" }

func (m inverted) Structure() Structure {
	structure := StructureOf(m.original)
	s := Structure{fixed: structure.fixed, ready: m.prepare, inverse: func() Matrix { return m.original }}
	if structure.factor != nil {
		s.factor = func(p *poll.Poller, r pointset.Radices) *Factorisation {
			return structure.factor(p, r).backwards(invertedLayers)
		}
	}
	return s
}

func (m inverted) At(i, j int) field.Element {
	checkEntry(i, j, m.Rows(), m.Cols())
	return m.entry(i, j)
}

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
		return fmt.Errorf("storing %d×%d entries of %s takes more than %d GiB", rows, cols, printable.Count(f.SymbolBytes(), "byte"), maxDenseBytes>>30)
	}
	return nil
}
