package conditional

import (
	"volley/field"
	_ "volley/field/curves"
	"volley/matrix"
	"volley/sim"
	"volley/verify"
)

// A pair is C1 and C2.
type pair struct{ C1, C2 int }

func pairOf(c sim.Cost) pair { return pair{c.C1, c.C2} }

// An askedMatrix counts how often it is asked for an entry.
type askedMatrix struct {
	matrix.Matrix
	asked *int
}

func (m askedMatrix) At(i, j int) field.Element {
	*m.asked++
	return m.Matrix.At(i, j)
}

// identity returns the k×k identity matrix.
func identity(f field.Field, k int) matrix.Matrix {
	one := matrix.DenseFunc(f, 1, 1, func(_, _ int) field.Element { return field.One })
	return verify.InPieces(one, k)
}
