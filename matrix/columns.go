package matrix

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"volley/field"
	"volley/internal/pointset"
	"volley/internal/poll"
)

// Columns returns a view of the square matrix m whose column k is column columns[k], a permutation; else an error.
func Columns(m Matrix, columns []int) (Matrix, error) {
	k := m.Cols()
	position := make([]int, k)
	for i := range position {
		position[i] = -1
	}
	if len(columns) != k || m.Rows() != k {
		return nil, fmt.Errorf("matrix: %d columns of a %d×%d matrix: want an order of all columns of a square one", len(columns), m.Rows(), k)
	}
	for i, c := range columns {
		if c < 0 || c >= k || position[c] >= 0 {
			return nil, fmt.Errorf("matrix: column %d as number %d: want every one of 0 to %d once", c, i, k-1)
		}
		position[c] = i
	}
	return &permuted{m, slices.Clone(columns), position}, nil
}

type permuted struct {
	Matrix
	columns, position []int
}

func (m *permuted) At(i, j int) field.Element { return m.Matrix.At(i, m.columns[j]) }

func (m *permuted) ID() string {
	return fmt.Sprintf("columns(%s; %x)", m.Matrix.ID(), sha256.Sum256(fmt.Append(nil, m.columns)))
}

func (m *permuted) Structure() Structure {
	s := StructureOf(m.Matrix).view()
	s.factor = m.factor
	return s
}

func (m *permuted) factor(p *poll.Poller, r pointset.Radices) *Factorisation {
	fact := factor(p, m.Matrix, r)
	if fact == nil {
		return nil
	}
	output := fact.Output
	fact.Output = Labels{
		func(k int) int { return output.Label(m.columns[k]) },
		func(label int) int { return m.position[output.Processor(label)] },
	}
	return fact
}
