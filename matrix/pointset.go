package matrix

// A PointSet is one of the point sets that define a matrix: "x" and "y" of a
// Cauchy matrix, "alpha" of a Vandermonde matrix.
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
	case vandermonde:
		return []PointSet{{"alpha", m.points}}
	}
	return nil
}
