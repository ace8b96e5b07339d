package matrix

import (
	"fmt"
	"math/bits"

	"volley/field"
	"volley/internal/pointset"
	"volley/internal/poll"
)

// Block returns the rows first … first+rows-1 of m, on demand: a view that follows m, with what structure is known:
//
//	Cauchy        a Cauchy matrix on some of the x
//	Lagrange      diagonal · Lagrange · diagonal, on some of the ω
//	Vandermonde   Vandermonde · diagonal, on the same points
//	LCH           LCH · diagonal, 2^e rows of which number first is a multiple of 2^e
//	Transpose     that of some of the columns, of Cauchy, Lagrange and Vandermonde
//
// so that [Factor] factors a square block whose points have structure. Any other block
// has no structure. Block panics where m lacks one of the rows.
func Block(m Matrix, first, rows int) Matrix {
	if first < 0 || rows < 1 || first > m.Rows()-rows {
		panic(fmt.Sprintf("matrix: %d rows from %d of a %d×%d matrix", rows, first, m.Rows(), m.Cols()))
	}
	if rows == m.Rows() {
		return m
	}
	s := StructureOf(m)
	if s.rows != nil {
		return s.rows(first, rows)
	}
	block := &rowBlock{shape: shape{m.Field(), rows, m.Cols()}, source: m, first: first}
	if s.split != nil {
		s.split(block)
	}
	return block
}

// A rowBlock is rows of a matrix and, unless inner is nil, the product of leftDiagonal and rightDiagonal around inner.
type rowBlock struct {
	shape
	source Matrix
	first  int

	inner                       Matrix
	leftDiagonal, rightDiagonal func(k int) field.Element // nil: ones
}

func (m *rowBlock) Structure() Structure {
	s := StructureOf(m.source).view()
	s.rows = func(first, n int) Matrix { return Block(m.source, m.first+first, n) }
	s.factor = m.factor
	return s
}

func (m *rowBlock) ID() string {
	return fmt.Sprintf("rows(%s; %d:%d of %d)", m.source.ID(), m.first, m.first+m.rows, m.source.Rows())
}

func (m *rowBlock) At(i, j int) field.Element {
	m.check(i, j)
	return m.source.At(m.first+i, j)
}

func (m *rowBlock) factor(p *poll.Poller, r pointset.Radices) *Factorisation {
	if m.inner == nil {
		return nil
	}
	fact := factor(p, m.inner, r)
	if fact == nil {
		return nil
	}
	fact = fact.between(labelled(m.leftDiagonal, fact.Input), labelled(m.rightDiagonal, fact.Output))
	if fact != nil { // the diagonals ask both for the structure of their points
		for _, t := range []int{0, len(fact.Layers) - 1} {
			l := fact.Layers[t]
			fact.Layers[t].prepare = func(p *poll.Poller, group int) {
				makeReady(p, m.source)
				makeReady(p, m.inner)
				l.ready(p, group)
			}
		}
	}
	return fact
}

// labelled returns d(k) as a function of the label of k, or nil where d is nil.
func labelled(d func(k int) field.Element, labels Labels) func(label int) field.Element {
	if d == nil {
		return nil
	}
	return func(label int) field.Element { return d(labels.Processor(label)) }
}

// split makes the block a Lagrange matrix between diagonals. With P = S·Q, where the
// points of the block are the roots of S and the other ω those of Q,
//
//	Φ_i(α_j) = 1/Q(ω_i) · Ψ_i(α_j) · Q(α_j), Ψ_i = 1 at ω_i and 0 at the block's others
func (m *lagrange) split(b *rowBlock) {
	f := m.Field()
	inner := newLagrange(pointset.Part(m.omega, b.first, b.rows), m.alpha)
	b.inner = inner
	b.leftDiagonal = func(i int) field.Element { // S'(ω_i)/P'(ω_i)
		return f.Mul(m.weight(b.first+i), f.Inv(inner.weight(i)))
	}
	b.rightDiagonal = func(j int) field.Element {
		if s := inner.vanishing(j); !s.IsZero() {
			return f.Mul(m.vanishing(j), f.Inv(s))
		}
		i := 0 // α_j is one of the block's ω
		for inner.omega.At(i) != m.alpha.At(j) {
			i++
		}
		return f.Inv(b.leftDiagonal(i))
	}
}

// split makes the block a Vandermonde matrix of values times α_j^first.
func (m vandermonde) split(b *rowBlock) {
	b.inner = vandermonde{m.points, b.rows}
	b.rightDiagonal = func(j int) field.Element { return m.At(b.first, j) }
}

// split makes the block the matrix of a smaller transform where the basis splits into products, X_(first+i) =
// X_first·X_i: where first and i have no bit in common, and all of i are below h.
func (m *lch) split(b *rowBlock) {
	e := bits.TrailingZeros(uint(b.rows))
	if b.rows != 1<<e || e > len(m.norm) || b.first%b.rows != 0 {
		return
	}
	inner, err := LCH(m.f, b.rows, m.cols)
	if err != nil {
		panic(err) // it is smaller than m
	}
	b.inner = inner
	b.rightDiagonal = func(j int) field.Element { return m.At(b.first, j) }
}
