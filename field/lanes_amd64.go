//go:build !purego

package field

// A laneGroup is the rows that a kernel takes at once: 4, 2 or 1.
type laneGroup[T any] struct {
	first, rows int
	coef        []T
}

// laneGroups divides rows into groups with their coefficients.
func laneGroups[T any](rows [][]Element, coefficients func(rows [][]Element) []T) []laneGroup[T] {
	var groups []laneGroup[T]
	for first, r := 0, 4; first < len(rows); first += r {
		for first+r > len(rows) {
			r /= 2
		}
		groups = append(groups, laneGroup[T]{first, r, coefficients(rows[first : first+r])})
	}
	return groups
}
