package matrix

import (
	"slices"

	"volley/field"
	"volley/internal/pointset"
	"volley/internal/poll"
)

// Vandermonde returns the matrix of so many rows, 0 for one for each point, and a column for each point, on demand:
//
//	A[i][j] = α_j^i
//
// The coded packets are a polynomial's values, the initial packets its coefficients. An entry costs O(log K)
// multiplications. The square matrix is invertible, as points are distinct.
func Vandermonde(points Points, rows int) Matrix {
	if rows == 0 {
		rows = points.Len()
	}
	return vandermonde{points, rows}
}

// A vandermonde has a number of rows, and as many columns as there are points.
type vandermonde struct {
	points Points
	rows   int
}

func (m vandermonde) Field() field.Field { return m.points.Field() }
func (m vandermonde) Rows() int          { return m.rows }
func (m vandermonde) Cols() int          { return m.points.Len() }
func (m vandermonde) ID() string         { return "vandermonde(" + m.points.ID() + ")" }

func (m vandermonde) At(i, j int) field.Element {
	checkEntry(i, j, m.rows, m.points.Len())
	return field.Exp(m.Field(), m.points.At(j), uint64(i))
}

// inverse returns the coefficients of Φ_j, which is 1 at α_j and 0 at the other points, in row j.
func (m vandermonde) inverse() Matrix {
	f, n, size := m.Field(), m.rows, m.Field().SymbolBytes()
	product := new(poll.Once[[]field.Element])
	vanishing := func(steps *poll.Poller) []field.Element { // coefficients of Π (z - α_l), from that of 1 on
		return product.Get(func() []field.Element {
			p := append(make([]field.Element, 0, n+1), field.One)
			for l := range n {
				a := m.points.At(l)
				p = append(p, field.One)
				for i := l; i > 0; i-- {
					p[i] = f.Sub(p[i-1], f.Mul(a, p[i]))
				}
				p[0] = f.Sub(field.Element{}, f.Mul(a, p[0]))
				steps.Steps(1 + l)
			}
			return p
		})
	}
	rows := make([]poll.Once[[]byte], n) // of symbols
	prepare := func(p *poll.Poller) { vanishing(p) }
	return inverted{m, prepare, func(j, i int) field.Element {
		row := rows[j].Get(func() []byte {
			p, a := vanishing(nil), m.points.At(j)
			quotient, value := make([]field.Element, n), field.Element{} // by z - α_j, and what it is at α_j
			for i := range slices.Backward(quotient) {
				quotient[i] = p[i+1]
				if i < n-1 {
					quotient[i] = f.Add(p[i+1], f.Mul(a, quotient[i+1]))
				}
				value = f.Add(f.Mul(value, a), quotient[i])
			}
			weight := f.Inv(value)
			symbols := make([]byte, n*size)
			for i, c := range quotient {
				field.PutSymbol(f, symbols[i*size:], f.Mul(c, weight))
			}
			return symbols
		})
		return field.Symbol(f, row[i*size:])
	}}
}

func (m vandermonde) Structure() Structure {
	sets := []PointSet{{"alpha", m.points}}
	return Structure{
		Points: sets, fixed: ofModule(m, sets...), nonzero: m.nonzero, inverse: m.inverse, split: m.split, factor: m.factor,
		columns: func(first, n int) Matrix { return vandermonde{pointset.Part(m.points, first, n), m.rows} },
	}
}

func (m vandermonde) nonzero() bool {
	return !slices.ContainsFunc(pointset.Elements(nil, m.points), field.Element.IsZero)
}

func (m vandermonde) factor(p *poll.Poller, r pointset.Radices) *Factorisation {
	points := m.points
	const name = "draw-and-loose"
	if c, ok := points.(*pointset.Cosets); ok && (r == nil || slices.Equal(c.Radices, r(c.Z))) {
		w := cosetTower(c.Field(), c.N, c.Radices, c.At)
		if !w.structured() {
			return nil
		}
		return &Factorisation{Name: name, Structure: w.String(), Layers: w.layers(), radices: w.radices()}
	}
	if points.Len() > mostSearched {
		return nil
	}
	w := findTower(p, points.Field(), [][]field.Element{pointset.Elements(p, points)}, true, r)[0]
	if !w.structured() {
		return nil
	}
	return &Factorisation{Name: name, Structure: w.String(), Layers: w.layers(), Output: w.labels(), radices: w.radices()}
}
