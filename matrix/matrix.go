package matrix

import (
	"fmt"

	"volley/field"
)

// A Matrix is a matrix over a finite field. Implementations are safe for concurrent use.
type Matrix interface {
	// Field returns the field of the entries.
	Field() field.Field

	// Rows and Cols return the shape: one row per initial packet and one column per coded packet.
	Rows() int
	Cols() int

	// At returns A[i][j]; the same one at every call. It panics when i is outside [0, Rows()) or j outside [0, Cols()).
	At(i, j int) field.Element

	// ID names the matrix: of one field and shape, equal IDs mean equal entries, and equal matrices may have two.
	ID() string
}

func checkEntry(i, j, rows, cols int) {
	if uint(i) >= uint(rows) || uint(j) >= uint(cols) {
		panic(fmt.Sprintf("matrix: entry (%d, %d) of a %d×%d matrix", i, j, rows, cols))
	}
}

func sameField(a, b field.Field) bool { return a.Name() == b.Name() }

// A shape is the field and the shape of a matrix. A type that embeds it has its methods.
type shape struct {
	f          field.Field
	rows, cols int
}

func (s shape) Field() field.Field { return s.f }
func (s shape) Rows() int          { return s.rows }
func (s shape) Cols() int          { return s.cols }
func (s shape) check(i, j int)     { checkEntry(i, j, s.rows, s.cols) }

// A formula is a matrix of which no more is known than its entries.
type formula struct {
	shape
	id    string
	entry func(i, j int) field.Element

	regular bool // has an inverse where it is square
}

func (m *formula) ID() string { return m.id }

func (m *formula) At(i, j int) field.Element {
	m.check(i, j)
	return m.entry(i, j)
}

// unit returns 1 on the diagonal, and else 0.
func unit(diagonal bool) field.Element {
	if diagonal {
		return field.One
	}
	return field.Element{}
}

// Transpose returns the matrix with entries m[j][i], on demand: a view that follows m.
func Transpose(m Matrix) Matrix {
	if t, ok := m.(transpose); ok {
		return t.m
	}
	return transpose{shape{m.Field(), m.Cols(), m.Rows()}, m}
}

type transpose struct {
	shape
	m Matrix
}

func (t transpose) At(i, j int) field.Element { return t.m.At(j, i) }
func (t transpose) ID() string                { return "transpose(" + t.m.ID() + ")" }

// A named matrix is another one under an ID of its own.
type named struct {
	Matrix
	id string
}

func (n named) ID() string { return n.id }
