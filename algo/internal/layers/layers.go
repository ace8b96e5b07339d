// Package layers has the plans of matrices that are products of layers.
package layers

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"volley/algo/internal/universal"
	"volley/algo/schedule"
	"volley/field"
	"volley/internal/pointset"
	"volley/internal/poll"
	"volley/matrix"
	"volley/plan"
)

// AnyFamily is the name for matrices of every family. Others are those of [matrix.Factorisation], by which plans are called, and
// "folded-lagrange" where layers around the middle of a Lagrange matrix are fused.
const AnyFamily = "layers"

// takes reports whether a name stands for matrices of a factorisation.
func takes(name string, fact *matrix.Factorisation) bool {
	return fact != nil && (name == AnyFamily || fact.Name == strings.TrimPrefix(name, "folded-"))
}

// nameOf returns what the plan is called whose layers are fused up to each of the cuts.
func nameOf(name string, fact *matrix.Factorisation, cuts []int) string {
	switch {
	case name != AnyFamily:
		return name
	case fact.Name == "lagrange" && !slices.Contains(cuts, fact.Half):
		return "folded-lagrange"
	}
	return fact.Name
}

// Plans returns the plans, under a name, of a matrix, which factor writes as a product of layers as [Factor] does; natural
// is in its own order, or nil where none is known. There is a plan for each way to order the radices and to fuse
// neighbouring layers that no other way beats in C1 and C2. Every fused layer is one universal step on its groups. All
// layers fused into one are the universal algorithm, in natural order whatever the layers need: that is a plan where it
// takes one round, or there is no other.
func Plans(name string, t schedule.Task, factor func(sizes []int) *matrix.Factorisation, anyOrder bool) ([]plan.Plan, error) {
	natural := factor(nil)
	if !takes(name, natural) {
		return nil, notOfFamily(name, t.Matrix)
	}
	plans := plansOf(name, t, natural, anyOrder)
	if t.InMemory {
		return plans, nil
	}
	for _, sizes := range BetterOrders(name, t, natural) {
		if fact := factor(sizes); fact != nil {
			plans = append(plans, plansOf(name, t, fact, anyOrder)...)
		}
	}
	return schedule.Undominated(t.Context, plans), nil
}

// allows returns whether a plan of the name may fuse layers i … j-1.
func allows(name string, fact *matrix.Factorisation) func(i, j int) bool {
	return func(i, j int) bool {
		switch {
		case i < fact.Half && j > fact.Half && matrix.Span(fact.Layers[i:j]).Size() == fact.Layers[0].K:
			return false // the matrix itself, and not two transforms
		case name == "lagrange":
			return j <= fact.Half || i >= fact.Half
		case name == "folded-lagrange":
			return j != fact.Half
		}
		return true
	}
}

func plansOf(name string, t schedule.Task, fact *matrix.Factorisation, anyOrder bool) (plans []plan.Plan) {
	allowed := allows(name, fact)
	if t.InMemory {
		return []plan.Plan{fused(t, name, fact, leastWork(fact, allowed), anyOrder)}
	}
	for _, cuts := range Fusions(t.Context, fact.Layers, t.Ports, allowed) {
		plans = append(plans, fused(t, name, fact, cuts, anyOrder))
	}
	if name == "lagrange" && fact.Half > 0 { // each transform by one step, which is more than one for their product
		plans = append(plans, fused(t, name, fact, []int{fact.Half, len(fact.Layers)}, anyOrder))
	}
	if len(plans) == 0 {
		plans = append(plans, fused(t, name, fact, []int{len(fact.Layers)}, anyOrder))
	}
	return plans
}

// PlanWith returns the plan of [Plans] whose fused layers have groups of the sizes of parameters, the first layer first,
// in whatever order of layers there are such.
func PlanWith(name string, t schedule.Task, factor func(sizes []int) *matrix.Factorisation, anyOrder bool, parameters [][]int) (plan.Plan, error) {
	natural := factor(nil)
	if !takes(name, natural) {
		return nil, notOfFamily(name, t.Matrix)
	}
	if len(parameters) == 1 {
		sizes := parameters[0]
		backwards := slices.Clone(sizes)
		slices.Reverse(backwards)
		// The first layers of an inverse have the first digits of labels, those of other transforms the last.
		for _, order := range [][]int{nil, backwards, sizes} {
			fact := factor(order)
			if cuts := cutsFor(fact.Layers, 0, sizes, allows(name, fact)); cuts != nil {
				return fused(t, name, fact, cuts, anyOrder), nil
			}
		}
	}
	var available []string
	for _, q := range plansOf(name, t, natural, anyOrder) {
		available = append(available, q.Info().Parameters)
	}
	return nil, schedule.Misfit(fmt.Sprintf("algo: %s for K = %d: no layers have groups of %v processors: want sizes whose product, where a transform and an inverse do not share a layer, is K or K^2, as of %s",
		name, t.Matrix.Rows(), parameters, strings.Join(available, ", ")))
}

// cutsFor divides the layers from number i on into runs to fuse, the k-th with groups of sizes[k], and returns the end of
// each run; nil: there is no such division. Where allowed(i, j) is true, layers[i:j] may be fused.
func cutsFor(layers []matrix.Layer, i int, sizes []int, allowed func(i, j int) bool) []int {
	if i == len(layers) && len(sizes) == 0 {
		return []int{}
	}
	if len(sizes) == 0 {
		return nil
	}
	for j := len(layers); j > i; j-- {
		if allowed(i, j) && matrix.Span(layers[i:j]).Size() == sizes[0] {
			if rest := cutsFor(layers, j, sizes[1:], allowed); rest != nil {
				return append([]int{j}, rest...)
			}
		}
	}
	return nil
}

// notOfFamily returns the error of a matrix that is not of an algorithm's family.
func notOfFamily(algorithm string, a matrix.Matrix) error {
	hint := ""
	if algorithm == AnyFamily {
		hint = OnCosets(a)
	}
	return fmt.Errorf("algo: %s for matrix %s over %s with K = %d: %w%s: take another algorithm, such as universal",
		algorithm, Short(a.ID()), a.Field().Name(), a.Rows(), schedule.ErrStructure, hint)
}

// OnCosets continues the text that a matrix, or a block of it, has no layers where it would have some on other points.
func OnCosets(a matrix.Matrix) string {
	f, k, r := a.Field(), a.Rows(), a.Cols()
	enough := pointset.CheckElements("", f, "", int64(k)+int64(r), 0, true) == nil && pointset.CosetSize(f, k, r) > 1
	if enough && len(pointset.PrimeFactors(min(k, r))) > 1 && matrix.StructureOf(a).Points != nil {
		return ", and would have some on points coset (omega and alpha, or points)"
	}
	return ""
}

// Short cuts an ID, which may have a hash in it, to what fits into a message.
func Short(id string) string {
	const limit = 40
	if r := []rune(id); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return id
}

// fused returns the plan for a factorisation whose layers are fused up to each of the cuts.
func fused(t schedule.Task, name string, fact *matrix.Factorisation, cuts []int, anyOrder bool) plan.Plan {
	poll.New(t.Context).Steps(1)
	k := t.Matrix.Rows()
	name = nameOf(name, fact, cuts)
	notes := []string{"structure: " + fact.Structure}
	var lines []string
	if len(cuts) == 1 {
		step := stepOf(k, t)
		l := schedule.OnAll(name, step, t)
		windows, _ := step.Parameters()
		l.Common.Parameters, l.Common.Arguments = fmt.Sprintf("groups %d", k), [][]int{{k}}
		l.Common.Notes = append(notes, "all layers fused into one: the universal step with "+windows)
		return l
	}
	var layers []schedule.Grouping
	var blocks []block
	list, sizes := Fused(fact.Layers, cuts)
	for i, l := range list {
		lines = append(lines, fmt.Sprintf("layer %d, %s: %v", i, l.Name, l.Partition))
		blocks = append(blocks, block{l, stepOf(l.Size(), t)})
		layers = append(layers, OnGroups(l, blocks[i].step, fact.Input))
	}
	parameters := "groups " + Dotted(sizes)
	column := func(proc int) int { return fact.Output.Processor(fact.Input.Label(proc)) }
	relabelled := !fact.Natural(k)
	ends := fact.Output
	if relabelled && anyOrder {
		ends = fact.Input
	}
	if relabelled && !anyOrder {
		parameters += " permute"
		lines = append(lines, fmt.Sprintf("layer %d, permute: one round of one packet", len(layers)))
		notes = append(notes, "natural order by one round that permutes the results")
		layers = append(layers, schedule.OneGroup(&permutation{k, column, func(proc int) int { return fact.Input.Processor(fact.Output.Label(proc)) }}, k, nil))
		relabelled = false
	}
	l := schedule.Compile(t.Info(name, 0, parameters, sizes), layers...)
	l.JointProgram = joint(blocks, fact.Input, ends)
	if relabelled {
		l.Common.Parameters += " relabelled"
		notes = append(notes, "relabelled: the columns are not in natural order")
		l.ColumnOf = func(proc, _ int) int { return column(proc) }
	}
	l.Common.Notes, l.Common.Layers = notes, lines
	return l
}

// Fused returns layers fused up to each of the cuts, and the sizes of their groups.
func Fused(layers []matrix.Layer, cuts []int) (fused []matrix.Layer, sizes []int) {
	start := 0
	for _, end := range cuts {
		l := matrix.Fuse(layers[start:end])
		fused, sizes, start = append(fused, l), append(sizes, l.Size()), end
	}
	return fused, sizes
}

// Dotted writes a product of numbers.
func Dotted(list []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", "·"), "[]")
}

// A block is a layer and the step that its groups run.
type block struct {
	matrix.Layer
	step *universal.Step
}

// joint returns the layers as one program, from the label that each processor begins with to the
// one that it ends with.
func joint(blocks []block, first, last matrix.Labels) *plan.JointProgram {
	k := blocks[0].K
	p := &plan.JointProgram{Combinations: k * len(blocks)}
	for _, l := range blocks {
		p.Terms += k * l.Size()
	}
	p.Walk = func(ctx context.Context, compute func(plan.Combination)) (outputs []plan.Slot, zeros []int, err error) {
		defer poll.Catch(&err)
		steps := poll.New(ctx)
		zeros = make([]int, k)
		slots, next := make([]plan.Slot, k), k // of each label
		for proc := range k {
			slots[first.Label(proc)] = proc
		}
		for _, l := range blocks {
			n, current := l.Size(), -1
			terms, labels := make([]plan.Term, n*n), make([]int, n) // column by column
			for group := range k {
				steps.Steps(1)
				if l.Group(group) != group {
					continue
				}
				if representative := l.First(group); representative != current {
					current = representative
					if err := l.Ready(ctx, group); err != nil {
						return nil, nil, err
					}
					for e := range terms {
						steps.Steps(1)
						terms[e].Coef = l.At(group, e%n, e/n)
					}
				}
				for i := range n {
					labels[i] = l.Label(group, i)
				}
				for e := range terms {
					steps.Steps(1)
					t := &terms[e]
					if t.Slot = slots[labels[e%n]]; t.Coef.IsZero() {
						zeros[first.Processor(labels[l.step.Home(n, e%n, e/n)])]++
					}
				}
				for i, label := range labels {
					compute(terms[i*n:][:n])
					slots[label], next = next, next+1
				}
			}
		}
		for proc := range k {
			outputs = append(outputs, slots[last.Label(proc)])
		}
		return outputs, zeros, nil
	}
	return p
}

// stepOf returns the step on groups of a size.
func stepOf(size int, t schedule.Task) *universal.Step {
	// In one process every processor obtains all, for the fewest multiply-adds, unless that is much memory for each.
	const mostGathered = 256
	if t.InMemory && isBinary(t.Matrix.Field()) && size <= mostGathered {
		return universal.New(size, t.Ports, size, 1)
	}
	return universal.Tuned(size, t.Ports)
}

func isBinary(f field.Field) bool {
	return f.Characteristic().IsUint64() && f.Characteristic().Uint64() == 2
}

// leastWork returns the way to fuse neighbouring layers that takes a processor the least work, as the ends of the fused
// runs. In characteristic 2 reading and writing a packet is as much work as three multiply-adds, and two layers of
// butterflies on one side of the middle are one kernel, with a product for each packet; in others products take nearly
// all. By measurement. All layers fused into one would be a direct product, and are left out.
func leastWork(fact *matrix.Factorisation, allowed func(i, j int) bool) []int {
	layers, pass := fact.Layers, 0
	binary := len(layers) > 0 && isBinary(layers[0].Field())
	if binary {
		pass = 3
	}
	work := func(i, j int) int {
		size := matrix.Span(layers[i:j]).Size()
		switch oneSide := j <= fact.Half || i >= fact.Half; {
		case size == 2 && j == i+1, binary && oneSide && size == 4 && j == i+2 && layers[i].Size() == 2:
			return pass + 1
		}
		return pass + size
	}
	least, starts := make([]int, len(layers)+1), make([]int, len(layers)+1) // of the layers before
	for j := 1; j <= len(layers); j++ {
		least[j] = math.MaxInt
		for i := range j {
			if w := work(i, j); w < pass+layers[0].K && allowed(i, j) && least[i] < math.MaxInt && least[i]+w < least[j] {
				least[j], starts[j] = least[i]+w, i
			}
		}
	}
	cuts := []int{len(layers)}
	for j := starts[len(layers)]; j > 0; j = starts[j] {
		cuts = append(cuts, j)
	}
	slices.Reverse(cuts)
	return cuts
}

// OnGroups returns the layer that runs a step on the groups of a layer of the matrix.
func OnGroups(l matrix.Layer, step *universal.Step, labels matrix.Labels) schedule.Grouping {
	size := l.Size()
	step.Name = l.Name
	ready := func(b *schedule.Builder, proc int) { b.Ready(l, l.Group(labels.Label(proc))) }
	return schedule.Grouping{Step: step, Uniform: true, Ready: ready, Group: func(proc int) schedule.Group {
		label := labels.Label(proc)
		group := l.Group(label)
		return schedule.Group{
			Size: size, Index: l.Index(label),
			Processor: func(i int) int { return labels.Processor(l.Label(group, i)) },
			At:        func(i, j int) field.Element { return l.At(group, i, j) },
		}
	}}
}
