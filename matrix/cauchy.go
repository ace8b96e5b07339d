package matrix

import (
	"fmt"
	"slices"

	"volley/field"
	"volley/internal/pointset"
	"volley/internal/poll"
)

// Cauchy returns the k×r Cauchy matrix on symbol codes, on demand:
//
//	A[i][j] = 1/(x_i - y_j), x_i = code i, y_j = code k+j
//
// Over 2^8 these are the coefficients of r parity shards over k data shards in klauspost/reedsolomon (WithCauchyMatrix)
// and ISA-L (gf_gen_cauchy1_matrix). It is an error where k+r > q, for then there are too few codes.
func Cauchy(f field.Field, k, r int) (Matrix, error) {
	if err := pointset.CheckBoth("cauchy", f, k, r, 0); err != nil {
		return nil, err
	}
	return named{cauchy{pointset.Codes(f, 0, k), pointset.Codes(f, k, r)}, "cauchy"}, nil
}

// CauchyOn returns the Cauchy matrix with a row per point of x and a column per point of y, on demand:
//
//	A[i][j] = 1/(x_i - y_j)
//
// It is an error where the fields differ or two of all the points are equal. Every square submatrix is then invertible.
func CauchyOn(x, y Points) (Matrix, error) {
	f := x.Field()
	if !sameField(f, y.Field()) {
		return nil, fmt.Errorf("matrix: cauchy: points x over %s and y over %s: want one field", f.Name(), y.Field().Name())
	}
	name := func(k int) string { // of a point of x, or of y after all of x
		if k < x.Len() {
			return fmt.Sprintf("x_%d", k)
		}
		return fmt.Sprintf("y_%d", k-x.Len())
	}
	seen := make(map[field.Element]int, x.Len()+y.Len())
	for k, e := range slices.Concat(pointset.Elements(nil, x), pointset.Elements(nil, y)) {
		if first, ok := seen[e]; ok {
			return nil, fmt.Errorf("matrix: cauchy: the points %s and %s are both %v: want distinct points", name(first), name(k), e)
		}
		seen[e] = k
	}
	return cauchy{x, y}, nil
}

type cauchy struct{ x, y Points }

func (m cauchy) Field() field.Field { return m.x.Field() }
func (m cauchy) Rows() int          { return m.x.Len() }
func (m cauchy) Cols() int          { return m.y.Len() }
func (m cauchy) ID() string         { return "cauchy(" + m.x.ID() + ", " + m.y.ID() + ")" }

func (m cauchy) At(i, j int) field.Element {
	checkEntry(i, j, m.x.Len(), m.y.Len())
	f := m.Field()
	return f.Inv(f.Sub(m.x.At(i), m.y.At(j)))
}

func (m cauchy) Structure() Structure {
	sets := []PointSet{{"x", m.x}, {"y", m.y}}
	return Structure{
		Points: sets, fixed: ofModule(m, sets...), superregular: func() bool { return true }, inverse: m.inverse, factor: m.factor,
		rows:    func(first, n int) Matrix { return cauchy{pointset.Part(m.x, first, n), m.y} },
		columns: func(first, n int) Matrix { return cauchy{m.x, pointset.Part(m.y, first, n)} },
	}
}

// factor returns diagonal, Lagrange, diagonal:
//
//	1/(x_i - y_j) = -P'(x_i) · Φ_i(y_j) · 1/P(y_j), P(z) = Π (z - x_k)
func (m cauchy) factor(p *poll.Poller, r pointset.Radices) *Factorisation {
	w := arrangeBoth(p, m.x, m.y, r)
	f, fact := m.Field(), factorLagrange("cauchy", w)
	if fact == nil || len(fact.Layers) == 0 {
		return nil
	}
	rows, columns, sharedWeight := fact.Layers, fact.Layers, 1
	if w[0].additive() { // the diagonals are the same in each coset, and the layers outside stay butterflies
		rows, columns, sharedWeight = rows[fact.Half-1:], columns[:fact.Half+1], w[0].z()
	}
	scaleRows(rows, sharedWeight, func(label int) field.Element { return f.Sub(field.Element{}, w[0].derivative(label)) })
	scaleColumns(columns, sharedWeight, func(label int) field.Element { return f.Inv(w[0].vanishing(w[1].value(0, label))) })
	return fact
}

// inverse returns a Cauchy matrix between two diagonals:
//
//	B[j][i] = P(y_j)/Q'(y_j) · 1/(y_j - x_i) · Q(x_i)/P'(x_i), P(z) = Π (z - x_k), Q(z) = Π (z - y_k)
func (m cauchy) inverse() Matrix {
	f, xy, yx := m.Field(), newLagrange(m.x, m.y), newLagrange(m.y, m.x)
	prepare := func(p *poll.Poller) { xy.ready(p); yx.ready(p) }
	return inverted{m, prepare, func(j, i int) field.Element {
		rowFactor, columnFactor := f.Mul(xy.vanishing(j), yx.weight(j)), f.Mul(yx.vanishing(i), xy.weight(i))
		return f.Mul(f.Mul(rowFactor, columnFactor), f.Sub(field.Element{}, m.At(i, j)))
	}}
}
