package conditional

// What there is of the condition on A, and of other orders of the processors.

import (
	"fmt"
	"math/rand/v2"

	"volley/algo"
	"volley/algo/schedule"
	"volley/field"
	"volley/matrix"
	"volley/plan"
)

// refusal returns what says why an algorithm has no plan for a problem.
func refusal(name string, p *algo.Problem) func(format string, args ...any) ([]plan.Plan, error) {
	return func(format string, args ...any) ([]plan.Plan, error) {
		return nil, schedule.Misfit(fmt.Sprintf("algo: %s for K = %d, p = %d: ", name, p.Matrix.Rows(), p.Ports) + fmt.Sprintf(format, args...))
	}
}

// mod is i modulo n, which is not negative.
func mod(i, n int) int { return (i%n + n) % n }

// abbreviate writes numbers, the first few of many.
func abbreviate(numbers []int) string {
	const limit = 6
	s := ""
	for i, n := range numbers {
		switch {
		case i == limit:
			return s + " …"
		case i > 0:
			s += " "
		}
		s += fmt.Sprint(n)
	}
	return s
}

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

// relabelledPlan returns the plan of a step on all processors in an order, nil being the
// natural one.
func relabelledPlan(name string, s schedule.Step, t schedule.Task, order []int) plan.Plan {
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
	l := schedule.Compile(t.Info(name, 0, parameters, arguments), layer)
	l.Common.Notes = notes
	return l
}

// universalC2 is the C2 of the universal algorithm in at most so many rounds, which an algorithm
// has to beat: the least of a window m and n strides with m·n >= size.
func universalC2(size, ports, rounds int) int {
	least := size
	for m := 1; m <= size && schedule.Ceil(m-1, ports) < least; m++ {
		n := schedule.Ceil(size, m)
		if schedule.Clog(m, ports)+schedule.Clog(n, ports) <= rounds {
			least = min(least, schedule.Ceil(m-1, ports)+schedule.Ceil(n-1, ports))
		}
	}
	return least
}
