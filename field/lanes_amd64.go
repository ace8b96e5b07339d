//go:build !purego

package field

import "sync"

// A laneGroup is the rows that a kernel takes at once: 4 (where there are), 2 or 1.
type laneGroup[T any] struct {
	first, rows int
	coef        []T
}

// laneGroups divides rows into groups of most, a power of two, and fewer in the end,
// with their coefficients.
func laneGroups[T any](rows [][]Element, most int, coefficients func(rows [][]Element) []T) []laneGroup[T] {
	var groups []laneGroup[T]
	for first, r := 0, most; first < len(rows); first += r {
		for first+r > len(rows) {
			r /= 2
		}
		groups = append(groups, laneGroup[T]{first, r, coefficients(rows[first : first+r])})
	}
	return groups
}

// laneMap is a map by kernels, of which apply calls the one for so many rows: it sets n
// symbols of each output, or adds to them.
type laneMap[T any] struct {
	mapShape
	symbolBytes int
	groups      []laneGroup[T]
	apply       func(rows int, out, in [][]byte, coef []T, n int, add bool)
}

func (m *laneMap[T]) Apply(out, in [][]byte, add bool) {
	n := m.check(out, in, m.symbolBytes) / m.symbolBytes
	for i := range m.groups {
		g := &m.groups[i]
		m.apply(g.rows, out[g.first:], in, g.coef, n, add)
	}
}

// laneScratch is for Combine: a matrix of one row, and its coefficients as a kernel
// reads them.
type laneScratch[T any] struct {
	rows [1][]Element
	coef []T
}

var (
	narrowPool = sync.Pool{New: func() any { return new(laneScratch[uint32]) }}
	widePool   = sync.Pool{New: func() any { return new(laneScratch[uint64]) }}
)
