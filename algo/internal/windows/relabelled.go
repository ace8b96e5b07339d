package windows

import (
	"math/rand/v2"

	"volley/algo/schedule"
	"volley/field"
	"volley/matrix"
	"volley/plan"
)

// seededOrder returns the processors in an order that all know: the natural one,
// nil, for seed 0, else one drawn by rand.PCG with the seeds seed and size.
func seededOrder(size, seed int) []int {
	if seed == 0 {
		return nil
	}
	draw := rand.NewPCG(uint64(seed), uint64(size))
	order := make([]int, size)
	for k := range order {
		order[k] = k
	}
	for k := size - 1; k > 0; k-- {
		j := int(draw.Uint64() % uint64(k+1))
		order[k], order[j] = order[j], order[k]
	}
	return order
}

// ordered returns the processors in an order, nil being the natural one, and the
// matrix with its rows and columns in it.
func ordered(m matrix.Matrix, order []int) (processor func(i int) int, entry func(i, j int) field.Element) {
	if order == nil {
		return func(i int) int { return i }, m.At
	}
	return func(i int) int { return order[i] }, func(i, j int) field.Element { return m.At(order[i], order[j]) }
}

// relabelled returns the plan of the step on all processors in an order, nil being the natural one.
func relabelled(s *Step, t schedule.Task, order []int) plan.Plan {
	k, layer := t.Matrix.Rows(), schedule.OneGroup(s, t.Matrix.Rows(), t.Matrix.At)
	parameters, arguments := s.Parameters()
	var notes []string
	if order != nil {
		parameters += " relabelled"
		notes = []string{"relabelled: processors take their parts in an order drawn from a seed, as the matrix is singular in theirs"}
		position := make([]int, k)
		for i, proc := range order {
			position[proc] = i
		}
		processor, entry := ordered(t.Matrix, order)
		layer.Group = func(proc int) schedule.Group {
			return schedule.Group{Size: k, Index: position[proc], Processor: processor, At: entry}
		}
	}
	l := schedule.Compile(t.Info("windows", 0, parameters, arguments), layer)
	l.Common.Notes, l.Matrix = notes, t.Matrix
	return l
}
