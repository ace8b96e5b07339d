package matrix

import (
	"context"
	"reflect"
	"slices"

	"volley/field"
	"volley/internal/pointset"
	"volley/internal/poll"
)

// Structure is what is known of a matrix by its making, or as [Recognised], beyond its entries.
type Structure struct {
	// Points are the point sets that define it; none where there are none, or where it was changed, as by [Inverse].
	Points []PointSet

	// Reversed says that its columns, or its inverse's rows, are in digit-reversed order as of [DFTReversed].
	Reversed bool

	invertible    bool                                                // where it is square
	superregular  func() bool                                         // nil: not known
	nonzero       func() bool                                         // of all entries; nil: not known
	fixed         func() bool                                         // nil: no
	ready         func(*poll.Poller)                                  // makes what it makes when it is first asked for an entry
	inverse       func() Matrix                                       // on demand, under any ID; nil: it has no formula
	rows, columns func(first, n int) Matrix                           // some of them, with structure; nil: none known
	split         func(b *rowBlock)                                   // some rows as a product with diagonals
	factor        func(*poll.Poller, pointset.Radices) *Factorisation // layers; nil: none known
}

// A PointSet is one of the point sets that define a matrix: "x" and "y" of a Cauchy matrix, "omega" and "alpha" of a
// Lagrange matrix, "alpha" of a Vandermonde matrix.
type PointSet struct {
	Name   string
	Points Points
}

// StructureOf returns what is known of a matrix: what its method Structure returns, and nothing where it has none.
func StructureOf(m Matrix) (s Structure) {
	if m, ok := m.(interface{ Structure() Structure }); ok {
		s = m.Structure()
	}
	return s
}

// Superregular reports whether the matrix by its making has no zero minor: Cauchy, or Lagrange between disjoint sets of
// points. It looks at no entries, so it may be false of a matrix that has that property.
func (s Structure) Superregular() bool { return s.superregular != nil && s.superregular() }

// Nonzero reports whether the matrix by its making has no zero entry. It looks at none, as [Structure.Superregular].
func (s Structure) Nonzero() bool { return s.nonzero != nil && s.nonzero() || s.Superregular() }

// Fixed reports whether it is certain that nothing changes the entries, and that the ID tells them apart from those of
// others over the field: this package made the matrix, on demand, and its field and points are of this module, too.
func (s Structure) Fixed() bool { return s.fixed != nil && s.fixed() }

// Ready makes what the matrix would make when it is first asked for an entry, such as the inverse of a dense matrix or
// the structure of its points. It returns the cause of the context when that ends first. The next who asks then makes it.
func (s Structure) Ready(ctx context.Context) (err error) {
	if s.ready == nil {
		return nil
	}
	defer poll.Catch(&err)
	s.ready(poll.New(ctx))
	return nil
}

func makeReady(p *poll.Poller, m Matrix) {
	if s := StructureOf(m); s.ready != nil {
		s.ready(p)
	}
}

// ofModule returns the Fixed of a family's matrix.
func ofModule(m Matrix, sets ...PointSet) func() bool {
	return func() bool {
		f, err := field.Parse(m.Field().Name())
		return err == nil && reflect.TypeOf(f) == reflect.TypeOf(m.Field()) && !slices.ContainsFunc(sets, func(s PointSet) bool {
			switch s.Points.(type) {
			case *pointset.Sequence, *pointset.Cosets:
				return false
			}
			return true
		})
	}
}

// view returns what a matrix that is made of another one has of its structure.
func (s Structure) view() Structure { return Structure{fixed: s.fixed, ready: s.ready} }

func (n named) Structure() Structure {
	s := StructureOf(n.Matrix)
	s.rows = func(first, rows int) Matrix { return Block(n.Matrix, first, rows) }
	return s
}

func (m *formula) Structure() Structure {
	return Structure{invertible: m.regular, fixed: ofModule(m)}
}

func (t transpose) Structure() Structure {
	original := StructureOf(t.m)
	s := original.view()
	s.invertible, s.nonzero = original.invertible, original.Nonzero
	if original.inverse != nil {
		s.inverse = func() Matrix { return Transpose(original.inverse()) }
	}
	if original.columns != nil {
		s.rows = func(first, n int) Matrix { return Transpose(original.columns(first, n)) }
	}
	if original.factor != nil {
		s.factor = func(p *poll.Poller, r pointset.Radices) *Factorisation { return original.factor(p, r).Transposed() }
	}
	return s
}

// disjoint reports whether the sets have no point in common.
func disjoint(a, b Points) bool {
	pointSet := setOf(nil, pointset.Elements(nil, a))
	return !slices.ContainsFunc(pointset.Elements(nil, b), func(z field.Element) bool { return pointSet[z] })
}
