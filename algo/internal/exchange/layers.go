package exchange

import (
	"fmt"

	"volley/algo/internal/layers"
	"volley/algo/internal/universal"
	"volley/algo/schedule"
	"volley/internal/poll"
	"volley/matrix"
	"volley/plan"
)

// StructuredPlans returns the plans for sources and sinks whose groups have matrices with structure.
//
//	problem  K×R matrices whose blocks of R rows, or of K columns, have a structure of
//	         the same shape: Cauchy, Lagrange and Reed-Solomon matrices on points that
//	         are unions of cosets or subspaces; R | K or K | R
//	cost     with B, S the larger and smaller one of K and R, and n = B/S:
//	         C1 = 2h + clog(S/Z') + clog(n), C2 = 2h + Psi(S/Z') + clog(n), Z' = (p+1)^h;
//	         clog(n+1) instead of clog(n) where sinks are apart, or where the layers
//	         leave the results of the first group in another order
//	         (TestSinksStructured)
//	source   ours
//
// It is [Plans] with the layers of the blocks, fused, instead of a universal step. The layers have the digits of the
// matrix itself, or in base p+1 as far as what is left allows, whichever is cheaper. Where they leave the results in
// another order, nothing is permuted: what a processor ends with joins the communicator of that result.
func StructuredPlans(t schedule.Task) ([]plan.Plan, error) {
	const name = "sinks-structured"
	if err := mustHaveSinks(t, name); err != nil {
		return nil, err
	}
	ways, err := structuredWays(t, name)
	if err != nil {
		return nil, err
	}
	var plans []plan.Plan
	for _, w := range worthwhile(t, ways) {
		plans = append(plans, grouped(t, name, w))
	}
	return plans, nil
}

// structuredWays returns the undominated ways to fuse the layers of the groups' matrices, but for a single layer.
func structuredWays(t schedule.Task, name string) ([]*scheme, error) {
	g := sides(t)
	unusable := func(reason string) error {
		return fmt.Errorf("algo: %s for matrix %s over %s with K = %d and R = %d: %w: %s: take another algorithm, such as sinks",
			name, layers.Short(t.Matrix.ID()), t.Matrix.Field().Name(), g.sources, g.sinks, schedule.ErrStructure, reason)
	}
	orders, reason := blockOrders(t)
	if reason != "" {
		return nil, unusable(reason)
	}
	var list []*scheme
	for _, facts := range orders {
		g.n = len(facts)
		for _, cuts := range layers.Fusions(t.Context, facts[0].Layers, t.Ports, func(_, _ int) bool { return true }) {
			list = append(list, fusedGroups(t, g, facts, cuts))
		}
	}
	if len(list) == 0 {
		return nil, unusable("a layer is as large as a block")
	}
	return list, nil
}

// blockOrders returns the factorisations of the groups' matrices in their own order, and in those of
// [layers.BetterOrders], or why they are of no use.
func blockOrders(t schedule.Task) (orders [][]*matrix.Factorisation, reason string) {
	natural, reason := blockFactors(t, nil)
	if reason != "" {
		return nil, reason
	}
	orders = append(orders, natural)
	for _, sizes := range layers.BetterOrders(layers.AnyFamily, t, natural[0]) {
		if facts, reason := blockFactors(t, sizes); reason == "" {
			orders = append(orders, facts)
		}
	}
	return orders, ""
}

// BlockFactors returns the factorisations of the groups' matrices, or why they are of no use. The error is the cause of
// the task's context.
func BlockFactors(t schedule.Task) (facts []*matrix.Factorisation, reason string, err error) {
	defer poll.Catch(&err)
	facts, reason = blockFactors(t, nil)
	return facts, reason, nil
}

// blockFactors is BlockFactors with the sizes of [layers.Factor].
func blockFactors(t schedule.Task, sizes []int) (facts []*matrix.Factorisation, reason string) {
	g := sides(t)
	size := g.fewCount()
	if g.manyCount()%size != 0 {
		return nil, "the larger number is no multiple of the smaller one"
	}
	blocks := t.Matrix
	if !g.gather() {
		blocks = matrix.Transpose(blocks)
	}
	for group := range g.manyCount() / size {
		block := matrix.Block(blocks, group*size, size)
		if !g.gather() {
			block = matrix.Transpose(block)
		}
		fact := layers.Factor(t.Context, block, sizes)
		if fact == nil || len(fact.Layers) < 2 {
			return nil, fmt.Sprintf("block %d has no layers", group) + layers.OnCosets(t.Matrix)
		}
		if group > 0 && !sameShape(facts[0].Layers, fact.Layers) {
			return nil, fmt.Sprintf("the layers of block %d differ from those of block 0", group)
		}
		facts = append(facts, fact)
	}
	return facts, ""
}

// sameShape reports whether layers have groups of the same sizes, however they are fused.
func sameShape(a, b []matrix.Layer) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		for j := i + 1; j <= len(a); j++ {
			if matrix.Span(a[i:j]).Size() != matrix.Span(b[i:j]).Size() {
				return false
			}
		}
	}
	return true
}

// fusedGroups returns the way to run the layers of all groups, fused up to each of the cuts.
func fusedGroups(t schedule.Task, g grouping, facts []*matrix.Factorisation, cuts []int) *scheme {
	w := &scheme{grouping: g, notes: []string{"structure of the blocks: " + facts[0].Structure}}
	var sizes []int
	steps := poll.New(t.Context)
	for group, fact := range facts {
		steps.Steps(len(cuts))
		labels := fact.Input
		if !g.gather() {
			labels = fact.Output // where the results are to be
		}
		var parts []schedule.Grouping
		var blocks []matrix.Layer
		blocks, sizes = layers.Fused(fact.Layers, cuts) // of one size in all groups
		for i, block := range blocks {
			if group == 0 {
				w.layerNotes = append(w.layerNotes, fmt.Sprintf("layer %d of each group, %s: %v", i, block.Name, block.Partition))
			}
			parts = append(parts, layers.OnGroups(block, universal.Tuned(block.Size(), t.Ports), labels))
		}
		w.layers = append(w.layers, parts)
		w.inputs, w.outputs = append(w.inputs, fact.Input), append(w.outputs, fact.Output)
	}
	for _, l := range w.layers[0] {
		c := l.Step.(*universal.Step).Cost(t.Ports)
		w.C1 += c.C1
		w.C2 += c.C2
	}
	w.parameters, w.arguments = fmt.Sprintf("groups=%d of %s", g.n, layers.Dotted(sizes)), append([]int{g.n}, sizes...)
	return w
}
