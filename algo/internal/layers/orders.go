package layers

import (
	"cmp"
	"context"
	"slices"

	"volley/algo/internal/universal"
	"volley/algo/schedule"
	"volley/internal/pointset"
	"volley/internal/poll"
	"volley/matrix"
	"volley/sim"
)

// A grouping is a product of layers, by the sizes of their groups.
type grouping struct {
	sim.Cost
	sizes []int
	cuts  []int // where layers are fused that there are
}

// stepCosts returns the cost of the universal step on groups of a size.
func stepCosts(ctx context.Context, ports int) func(size int) sim.Cost {
	known, steps := map[int]sim.Cost{}, poll.New(ctx)
	return func(size int) sim.Cost {
		c, ok := known[size]
		if !ok {
			steps.Steps(universal.TuneSteps(size))
			c = universal.Tuned(size, ports).Cost(ports)
			known[size] = c
		}
		return c
	}
}

func (g grouping) plus(c sim.Cost, times int) grouping {
	g.Cost = sim.Cost{C1: g.C1 + times*c.C1, C2: g.C2 + times*c.C2}
	return g
}

func front(list []grouping) []grouping {
	return sim.Front(list, func(g grouping) sim.Cost { return g.Cost })
}

// Factor returns the factorisation of a matrix with the primes of sizes as the first radices, or in the matrix's own order
// for nil. It returns nil where none is known.
func Factor(ctx context.Context, m matrix.Matrix, sizes []int) *matrix.Factorisation {
	var radices pointset.Radices
	if sizes != nil {
		radices = pointset.Following(sizes...)
	}
	fact, err := matrix.Factor(ctx, m, radices)
	poll.Must(err)
	return fact
}

// BetterOrders returns the sizes for [Factor] with whose layers there are plans of the name that no others beat in C1 and
// C2, and that the layers of the matrix's own order do not match. A transform has an outer part, a layer for each of the
// sizes, whose product is a divisor of its degree. What is left of the processors is one layer; of a product of two
// transforms it is one for both, but under the name lagrange. The costs of layers add up, and follow from their sizes: the
// search is dynamic programming over divisors.
func BetterOrders(name string, t schedule.Task, natural *matrix.Factorisation) (sizes [][]int) {
	if t.InMemory || len(natural.Layers) == 0 {
		return nil
	}
	k, degree, costOf := natural.Layers[0].K, natural.Degree(), stepCosts(t.Context, t.Ports)
	outerTimes, innerTimes := 1, 1
	if natural.Half > 0 {
		if outerTimes = 2; name == "lagrange" {
			innerTimes = 2
		}
	}
	var ways []grouping
	for _, g := range fusions(t.Context, natural.Layers, t.Ports, allows(name, natural)) {
		ways = append(ways, grouping{Cost: g.Cost})
	}
	steps, outer := poll.New(t.Context), map[int][]grouping{1: {{}}}
	for divisor := 1; divisor <= degree; divisor++ {
		if degree%divisor > 0 {
			continue
		}
		steps.Steps(divisor)
		var longer []grouping
		for size := 2; size <= divisor; size++ {
			if divisor%size > 0 {
				continue
			}
			for _, g := range outer[divisor/size] {
				h := g.plus(costOf(size), 1)
				h.sizes = append(slices.Clone(g.sizes), size)
				longer = append(longer, h)
			}
		}
		outer[divisor] = append(outer[divisor], front(longer)...)
		rest := k / divisor
		for _, g := range outer[divisor] {
			if rest < k || k <= t.Ports+1 {
				ways = append(ways, grouping{sizes: g.sizes}.plus(g.Cost, outerTimes).plus(costOf(rest), innerTimes))
			}
		}
	}
	for _, g := range front(ways) {
		if g.sizes != nil {
			sizes = append(sizes, g.sizes)
		}
	}
	return sizes
}

// Fusions returns the ways to fuse neighbouring layers that no other way beats in C1 and C2, as the ends of the fused
// runs. Allowed says which runs may be fused; none may span all processors, which the universal algorithm does, unless one
// round is enough for all. The context, unless nil, ends the search. The cost of a run is that of a step on the groups of
// what it spans: no matrices are multiplied.
func Fusions(ctx context.Context, layers []matrix.Layer, ports int, allowed func(i, j int) bool) (list [][]int) {
	for _, g := range fusions(ctx, layers, ports, allowed) {
		list = append(list, g.cuts)
	}
	return list
}

func fusions(ctx context.Context, layers []matrix.Layer, ports int, allowed func(i, j int) bool) []grouping {
	if len(layers) == 0 {
		return nil
	}
	search, costOf := poll.New(ctx), stepCosts(ctx, ports)
	best := make([][]grouping, len(layers)+1) // of the layers before
	best[0] = []grouping{{}}
	for j := 1; j <= len(layers); j++ {
		var ways []grouping
		for i := range j {
			if search.Steps(1); !allowed(i, j) {
				continue
			}
			size := matrix.Span(layers[i:j]).Size()
			if size == layers[0].K && size > ports+1 {
				continue
			}
			for _, g := range best[i] {
				search.Steps(1 + len(g.cuts))
				h := g.plus(costOf(size), 1)
				h.cuts = append(slices.Clone(g.cuts), j)
				ways = append(ways, h)
			}
		}
		// Of equal ways the one with the most layers is first: the smallest matrices.
		slices.SortStableFunc(ways, func(a, b grouping) int { return cmp.Compare(len(b.cuts), len(a.cuts)) })
		best[j] = front(ways)
	}
	return best[len(layers)]
}
