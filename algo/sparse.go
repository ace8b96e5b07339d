package algo

import (
	"volley/algo/schedule"
	"volley/matrix"
	"volley/plan"
)

// sparse reports whether more than half of the entries are zero whose row and column are of two processors: plans are then
// pruned, see [plan.Prune]. It is false where that takes more time than it may save.
func (p *Problem) sparse() bool {
	if p.Traffic != nil || p.Matrix.Rows()*p.Matrix.Cols() > mostPruned {
		return false
	}
	return p.known.sparse.Get(func() bool {
		if !p.seemsSparse() {
			return false
		}
		s := p.support()
		return s.looked > 0 && 2*s.zeros > s.looked
	})
}

// seemsSparse reports whether more than a quarter of four columns are zeros, so that no other matrix is looked at whole.
func (p *Problem) seemsSparse() bool {
	if matrix.StructureOf(p.Matrix).Nonzero() {
		return false
	}
	k, r, zeros := p.Matrix.Rows(), p.Matrix.Cols(), 0
	for _, j := range []int{0, r / 3, 2 * r / 3, r - 1} {
		for i := range k {
			if p.Matrix.At(i, j).IsZero() {
				zeros++
			}
		}
	}
	return zeros > k
}

// mostPruned is how many entries a matrix may have whose plans are pruned: each processor makes the programs of all. No
// more are looked at for bounds.
const mostPruned = 1 << 16

// mostElements is how many entries a matrix may have, times the pieces of a packet, where a plan in pieces is pruned: that
// takes longer than all other planning.
const mostElements = 1 << 18

// pruned returns the plans pruned: those that no other one beats then, unless memory or work are limited.
func (p *Problem) pruned(plans []plan.Plan) (list []plan.Plan, err error) {
	for _, q := range plans {
		if p.Matrix.Rows()*p.Matrix.Cols()*q.Info().PieceCount() > mostElements {
			list = append(list, q)
			continue
		}
		m, err := plan.Prune(q)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	if p.Limits.Memory > 0 || p.Limits.Compute > 0 {
		return list, nil
	}
	return schedule.Undominated(p.Context, list), nil
}

// components returns for each processor the first one of those that have to do with each other, directly or by others.
// It returns nil where all have, and where the matrix is not sparse.
func (p *Problem) components() []int {
	if !p.Square() || !p.sparse() {
		return nil
	}
	k := p.Matrix.Rows()
	first := make([]int, k)
	for i := range first {
		first[i] = -1
	}
	count := 0
	for start := range k {
		if first[start] >= 0 {
			continue
		}
		count++
		first[start] = start
		for open := []int{start}; len(open) > 0; {
			i := open[0]
			open = open[1:]
			for j := range k {
				if first[j] < 0 && !(p.Matrix.At(i, j).IsZero() && p.Matrix.At(j, i).IsZero()) {
					first[j] = start
					open = append(open, j)
				}
			}
		}
	}
	if count == 1 {
		return nil
	}
	return first
}
