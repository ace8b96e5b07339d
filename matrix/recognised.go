package matrix

import (
	"cmp"
	"fmt"

	"volley/field"
	"volley/internal/pointset"
	"volley/internal/poll"
)

// Recognised returns m with the structure that its entries show, and m itself where they show none; m is not to change
// then. It compares every entry with what follows from the first rows and columns, up to one that differs, for a matrix
// that is one of these:
//
//	DFT          for any ω of order K, times any constant; columns or rows may be in the order of [DFTReversed]
//	Vandermonde  and its transpose
//	Cauchy       on additive subgroups; on cosets where the points of one follow each other
func Recognised(m Matrix) Matrix {
	model := cmp.Or(powersOf(m), cauchyOf(m))
	if model != nil {
		return recognised{m, model}
	}
	if model = powersOf(Transpose(m)); model != nil {
		return recognised{m, Transpose(model)}
	}
	return m
}

// A recognised matrix has the entries of one with structure.
type recognised struct {
	Matrix
	model Matrix
}

func (m recognised) Structure() Structure {
	s := StructureOf(m.model)
	points, layers := s.Points, s.factor
	s.Points, s.Reversed, s.fixed = nil, false, nil // which nobody named
	s.factor = func(p *poll.Poller, r pointset.Radices) *Factorisation {
		fact := layers(p, r)
		if fact != nil {
			text := fact.Name + " by its entries"
			for _, set := range points {
				text += fmt.Sprintf(", %s = %v %v …", set.Name, set.Points.At(0), set.Points.At(1))
			}
			fact.Structure = text + ": " + fact.Structure
		}
		return fact
	}
	return s
}

// powersOf returns the DFT or Vandermonde matrix that has the entries of m, and nil where there is none.
func powersOf(m Matrix) Matrix {
	f, scale := m.Field(), m.At(0, 0)
	if m.Rows() < 2 || scale.IsZero() {
		return nil
	}
	row, points, inverse := make([]field.Element, m.Cols()), make([]field.Element, m.Cols()), f.Inv(scale)
	for j := range points {
		if m.At(0, j) != scale {
			return nil
		}
		row[j] = m.At(1, j)
		points[j] = f.Mul(inverse, row[j])
	}
	for i := 2; i < m.Rows(); i++ {
		for j, point := range points {
			if row[j] = f.Mul(row[j], point); m.At(i, j) != row[j] {
				return nil
			}
		}
	}
	distinct, err := NewPoints(f, points)
	if err != nil {
		return nil
	}
	model := dftOf(m, points)
	if model == nil && scale == field.One {
		return Vandermonde(distinct, m.Rows())
	}
	return model
}

// dftOf returns the DFT matrix in some order, times a constant, that has the entries of m, whose columns are powers of
// points times the constant, and nil where there is none.
func dftOf(m Matrix, points []field.Element) Matrix {
	f, k := m.Field(), m.Rows()
	for limit := 1; limit <= k && k == m.Cols(); limit++ {
		radices := []int{k} // natural order
		if limit > 1 {
			radices = pointset.UpTo(limit)(k)
		}
		omega := points[k/radices[len(radices)-1]]
		if field.Exp(f, omega, uint64(k)) != field.One {
			continue
		}
		d := &dft{shape{f, k, k}, omega, pointset.NewPowers(f, omega, k), m.At(0, 0), radices}
		var model Matrix = &reversedDFT{d, false}
		if limit == 1 {
			d.radices, model = pointset.PrimeFactors(k), d
		}
		j := 0
		for j < k && model.At(1, j) == m.At(1, j) {
			j++
		}
		if j == k {
			return model
		}
	}
	return nil
}

// cauchyOf returns the Cauchy matrix that has the entries of m, and nil where there is none. The same may be added to all of
// its points: those of x on the first coset sum to 0, as cosets do.
func cauchyOf(m Matrix) Matrix {
	f := m.Field()
	difference := func(i, j int) (e field.Element) { // x_i - y_j
		if e = m.At(i, j); !e.IsZero() {
			e = f.Inv(e)
		}
		return e
	}
	x, y := make([]field.Element, m.Rows()), make([]field.Element, m.Cols())
	for j := range y {
		y[j] = f.Sub(x[0], difference(0, j))
	}
	for i := range x {
		x[i] = f.Add(y[0], difference(i, 0))
		for j := range y {
			if f.Mul(m.At(i, j), f.Sub(x[i], y[j])) != field.One {
				return nil
			}
		}
	}
	z := pointset.CosetSize(f, len(x), len(y))
	var sum, ones field.Element
	for _, point := range x[:z] {
		sum, ones = f.Add(sum, point), f.Add(ones, field.One)
	}
	mean := f.Mul(sum, f.Inv(ones)) // z divides q-1
	for _, set := range [][]field.Element{x, y} {
		for k := range set {
			set[k] = f.Sub(set[k], mean)
		}
	}
	model, _ := CauchyOn(pointset.Listed(f, x), pointset.Listed(f, y)) // nil where rows or columns are equal
	return model
}
