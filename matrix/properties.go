package matrix

import (
	"reflect"
	"slices"

	"volley/field"
	"volley/internal/pointset"
)

// A family may tell of its matrices more than their entries, each by a method that its type may have:
//
//	pointSets() []PointSet                   the points that define it: [PointSetsOf]
//	superregular() bool                      that no minor is zero: [Superregular]
//	inverse() Matrix                         the inverse on demand, under any ID: [Inverse]
//	rowBlock(first, rows int) Matrix         some rows, with structure; nil: none known: [Block]
//	columnBlock(first, columns int) Matrix   some columns, likewise
//	split(b *rowBlock)                       some rows as a product with diagonals
//	factor(*poll.Poller, Radices) *Factorisation layers; nil: none known: [Factor]

// A PointSet is one of the point sets that define a matrix: "x" and "y" of a Cauchy matrix, "omega" and "alpha" of a
// Lagrange matrix, "alpha" of a Vandermonde matrix.
type PointSet struct {
	Name   string
	Points Points
}

// PointSetsOf returns the point sets that define m, and nothing when there are none or m was changed, as by [Inverse].
func PointSetsOf(m Matrix) []PointSet {
	if m, ok := m.(interface{ pointSets() []PointSet }); ok {
		return m.pointSets()
	}
	return nil
}

// Superregular reports whether m by its making has no zero minor: Cauchy, or Lagrange between disjoint sets of points.
// It looks at no entries, so it may be false of a matrix that has that property.
func Superregular(m Matrix) bool {
	s, ok := m.(interface{ superregular() bool })
	return ok && s.superregular()
}

// Fixed reports whether it is certain that nothing changes the entries of m, and that its ID tells them apart from those
// of others over the field: this package made it, on demand, and its field and points are of this module, too.
func Fixed(m Matrix) bool {
	switch m := m.(type) {
	case named:
		return Fixed(m.Matrix)
	case transpose:
		return Fixed(m.m)
	case inverted:
		return Fixed(m.of)
	case *permuted:
		return Fixed(m.Matrix)
	case *rowBlock:
		return Fixed(m.of)
	case *dft, *reversedDFT, *lch, *formula, cauchy, *lagrange, vandermonde:
		f, err := field.Parse(m.Field().Name())
		return err == nil && reflect.TypeOf(f) == reflect.TypeOf(m.Field()) && !slices.ContainsFunc(PointSetsOf(m), func(s PointSet) bool {
			switch s.Points.(type) {
			case *pointset.Sequence, *pointset.Cosets:
				return false
			}
			return true
		})
	}
	return false
}

func (n named) pointSets() []PointSet { return PointSetsOf(n.Matrix) }
func (n named) superregular() bool    { return Superregular(n.Matrix) }

func (n named) rowBlock(first, rows int) Matrix       { return Block(n.Matrix, first, rows) }
func (n named) columnBlock(first, columns int) Matrix { return columnBlock(n.Matrix, first, columns) }

// disjoint reports whether the sets have no point in common.
func disjoint(a, b Points) bool {
	there := setOf(nil, pointset.Elements(a))
	return !slices.ContainsFunc(pointset.Elements(b), func(z field.Element) bool { return there[z] })
}
