package matrix

// A PointSet is one of the point sets that define a matrix: "x" and "y" of a
// Cauchy matrix, "omega" and "alpha" of a Lagrange matrix, "alpha" of a Vandermonde
// or Moore matrix.
type PointSet struct {
	Name   string
	Points Points
}

// PointsOf returns the point sets that define m, and nothing when m is not
// defined by points or has been changed since, as by [Inverse].
func PointsOf(m Matrix) []PointSet {
	switch m := m.(type) {
	case named:
		return PointsOf(m.Matrix)
	case cauchy:
		return []PointSet{{"x", m.x}, {"y", m.y}}
	case *lagrange:
		return []PointSet{{"omega", m.omega}, {"alpha", m.alpha}}
	case vandermonde:
		return []PointSet{{"alpha", m.points}}
	case *moore:
		return []PointSet{{"alpha", m.points}}
	}
	return nil
}

// BaseOf returns the base of a Moore or Gabidulin matrix, and 0 for others.
func BaseOf(m Matrix) uint64 {
	switch m := m.(type) {
	case *moore:
		return m.q
	case *gabidulin:
		return m.omega.q
	}
	return 0
}
