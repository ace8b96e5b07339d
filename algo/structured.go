package algo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"volley/field"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
)

// fusing says which neighbouring layers a family fuses.
type fusing int

const (
	anyFusing    fusing = iota
	withinHalves        // not across the middle of a chain, such as inverse and forward transform
	acrossMiddle        // always across it: "folded"
)

// factored returns the plans named so of a family of matrices that are products of
// layers: those ways to fuse neighbouring layers of which none is worse than another
// in both C1 and C2. Every fused layer is one universal step on its groups. All
// layers fused into one are the universal algorithm, in natural order whatever the
// layers need.
func factored(name, family string, mode fusing) func(p *Problem) ([]plan.Plan, error) {
	return func(p *Problem) ([]plan.Plan, error) {
		fact := p.factor()
		if fact == nil || fact.Name != family {
			return nil, &familyError{name, p.Matrix}
		}
		allowed := func(i, j int) bool { // whether layers i … j-1 may be fused
			switch mode {
			case withinHalves:
				return j <= fact.Half || i >= fact.Half
			case acrossMiddle:
				return j != fact.Half
			}
			return true
		}
		all, k := len(fact.Layers), p.Matrix.Rows()
		var plans []plan.Plan
		for _, cuts := range fusions(fact.Layers, p.Ports, allowed) {
			if len(cuts) > 1 {
				plans = append(plans, p.fused(name, fact, cuts))
			}
		}
		if fact.Fourier && p.Order == Natural && !fact.Natural(k) {
			for _, s := range p.findShifts() {
				plans = append(plans, p.shifted(name, s))
			}
		}
		if all == 0 || allowed(0, all) { // which needs no permutation, so that its cost alone does not tell
			one := p.fused(name, fact, []int{all})
			// Of a chain it is the end of the front. Elsewhere it is universal in
			// all but name, and here only if it needs no more packets than any other.
			if fact.Half > 0 || !slices.ContainsFunc(plans, func(q plan.Plan) bool { return costOf(q).c2 < costOf(one).c2 }) {
				plans = append(plans, one)
			}
		}
		return undominated(plans), nil
	}
}

// A familyError says that a matrix is not of an algorithm's family. It wraps
// [ErrStructure].
type familyError struct {
	algorithm string
	matrix    matrix.Matrix
}

func (e *familyError) Error() string {
	return fmt.Sprintf("algo: %s for matrix %s over %s with K = %d: %v: take another algorithm, such as universal",
		e.algorithm, short(e.matrix.ID()), e.matrix.Field().Name(), e.matrix.Rows(), ErrStructure)
}

func (e *familyError) Unwrap() error { return ErrStructure }

// short cuts an ID, which may have a hash in it, to what fits into a message.
func short(id string) string {
	const most = 40
	if r := []rune(id); len(r) > most {
		return string(r[:most]) + "…"
	}
	return id
}

// shifted returns the plan for a schedule of shifts.
func (p *Problem) shifted(name string, s *shifts) plan.Plan {
	k := p.Matrix.Rows()
	l := compile(name, s.Parameters(), p.Matrix.Field(), k, p.Ports, whole(s, k, p.Matrix.At))
	l.info.Notes = []string{"structure: " + p.factor().Structure, "natural order by a schedule of shifts"}
	return l
}

// fused returns the plan for a factorisation whose layers are fused up to each of
// the cuts.
func (p *Problem) fused(name string, fact *matrix.Factorisation, cuts []int) plan.Plan {
	k := p.Matrix.Rows()
	notes := []string{"structure: " + fact.Structure}
	var lines []string
	if len(cuts) == 1 {
		step := tuned(k, p.Ports)
		l := compile(name, fmt.Sprintf("groups %d %s", k, step.Parameters()), p.Matrix.Field(), k, p.Ports, whole(step, k, p.Matrix.At))
		l.info.Notes = append(notes, "all layers fused into one: the universal step")
		return l
	}
	var layers []Layer
	var sizes []string
	from := 0
	for _, to := range cuts {
		block := matrix.Fuse(fact.Layers[from:to])
		lines = append(lines, fmt.Sprintf("layer %d, %s: %v", len(layers), block.Name, block.Partition))
		layers = append(layers, onGroups(block, p.Ports, fact.In))
		sizes = append(sizes, fmt.Sprint(block.Size()))
		from = to
	}
	parameters := "groups " + strings.Join(sizes, "·")
	column := func(proc int) int { return fact.Out.Processor(fact.In.Label(proc)) }
	relabelled := !fact.Natural(k)
	if relabelled && p.Order == Natural {
		parameters += " permute"
		lines = append(lines, fmt.Sprintf("layer %d, permute: one round of one packet", len(layers)))
		notes = append(notes, "natural order by one round that permutes the results")
		layers = append(layers, whole(&permutation{k, column, func(proc int) int { return fact.In.Processor(fact.Out.Label(proc)) }}, k, nil))
		relabelled = false
	}
	l := compile(name, parameters, p.Matrix.Field(), k, p.Ports, layers...)
	if relabelled {
		l.info.Parameters += " relabelled"
		notes = append(notes, "relabelled: the columns are not in natural order")
		l.column = column
	}
	l.info.Notes, l.info.Layers = notes, lines
	return l
}

// onGroups returns the layer that runs a universal step on the groups of a layer of
// the matrix.
func onGroups(l matrix.Layer, ports int, labels matrix.Labels) Layer {
	size := l.Size()
	step := tuned(size, ports)
	step.name = l.Name
	return Layer{Step: step, Uniform: true, Group: func(proc int) Group {
		label := labels.Label(proc)
		group := l.Group(label)
		return Group{
			Size: size, Index: l.Index(label),
			Member: func(i int) int { return labels.Processor(l.Member(group, i)) },
			At:     func(i, j int) field.Element { return l.At(group, i, j) },
		}
	}}
}

// A cost is C1 and C2.
type cost struct{ c1, c2 int }

func costOf(p plan.Plan) cost {
	c := sim.Count(p)
	return cost{c.C1, c.C2}
}

// fusions returns the ways to fuse neighbouring layers that no other way beats in
// C1 and C2, as the ends of the fused runs. allowed says which runs may be fused. The cost of a run is that of a step on the groups of what it
// spans: no matrices are multiplied.
func fusions(layers []matrix.Layer, ports int, allowed func(i, j int) bool) [][]int {
	steps := map[int]cost{}
	stepCost := func(size int) cost {
		c, ok := steps[size]
		if !ok {
			c = costOf(compile("", "", nil, size, ports, whole(tuned(size, ports), size, nil)))
			steps[size] = c
		}
		return c
	}
	type way struct {
		cost
		cuts []int
	}
	best := make([][]way, len(layers)+1) // of the layers before
	best[0] = []way{{}}
	for j := 1; j <= len(layers); j++ {
		var ways []way
		for i := range j {
			if !allowed(i, j) {
				continue
			}
			c := stepCost(matrix.Span(layers[i:j]).Size())
			for _, w := range best[i] {
				ways = append(ways, way{cost{w.c1 + c.c1, w.c2 + c.c2}, append(slices.Clone(w.cuts), j)})
			}
		}
		// Of equal ways the one with the most layers is first: the smallest matrices.
		slices.SortStableFunc(ways, func(a, b way) int { return cmp.Compare(len(b.cuts), len(a.cuts)) })
		best[j] = front(ways, func(w way) cost { return w.cost })
	}
	var list [][]int
	for _, w := range best[len(layers)] {
		list = append(list, w.cuts)
	}
	return list
}

// undominated returns the plans that no other one beats, the fewest rounds first;
// of equal ones the first.
func undominated(plans []plan.Plan) []plan.Plan {
	return sim.Front(plans, sim.Count)
}

// front is [sim.Front] of what has costs of its own.
func front[T any](list []T, costOf func(T) cost) []T {
	return sim.Front(list, func(x T) sim.Cost { return sim.Cost{C1: costOf(x).c1, C2: costOf(x).c2} })
}
