package matrix

import (
	"cmp"

	"volley/field"
)

var vandermondeFamily = Family{
	Name:    "vandermonde",
	Formula: "A[i][j] = α_j^i, on points α_j",
	Doc:     "values of the polynomial whose coefficients are the initial packets; R <= q-1 unless the points are codes or from a file",
	Takes:   []string{"points"},
	build: func(b *builder) (Matrix, error) {
		p, err := b.points("alpha", cmp.Or(b.Points, "coset"), func(word string) (Points, error) {
			return b.firstPoints(word, "R", b.r, cosetSize(b.f, b.r))
		})
		if err != nil {
			return nil, err
		}
		return vandermonde{p, b.k}, nil
	},
}

// Vandermonde returns the K×K matrix of the K given points, on demand:
//
//	A[i][j] = α_j^i
//
// The coded packets are a polynomial's values, the initial packets its coefficients. An entry costs O(log K)
// multiplications. The matrix is invertible, as points are distinct.
func Vandermonde(points Points) Matrix { return vandermonde{points, points.Len()} }

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

func (m vandermonde) pointSets() []PointSet { return []PointSet{{"alpha", m.points}} }

func (m vandermonde) columnBlock(first, columns int) Matrix {
	return vandermonde{part(m.points, first, columns), m.rows}
}

func (m vandermonde) factor() *Factorisation {
	points := m.points
	const name = "draw-and-loose"
	if p, ok := points.(*cosetPoints); ok {
		w := cosetTower(p.Field(), p.n, p.radices, p.At)
		if !w.structured() {
			return nil
		}
		return &Factorisation{Name: name, Structure: w.String(), Layers: w.layers()}
	}
	if points.Len() > mostSearched {
		return nil
	}
	w := findTower(points.Field(), [][]field.Element{elements(points)}, true)[0]
	if !w.structured() {
		return nil
	}
	return &Factorisation{Name: name, Structure: w.String(), Layers: w.layers(), Out: w.labels()}
}
