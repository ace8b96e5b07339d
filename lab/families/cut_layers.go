package families

import (
	"fmt"

	"volley/algo"
	"volley/algo/schedule"
	"volley/field"
	"volley/matrix"
	"volley/plan"
)

// cutPlans returns the plans of a product of layers whose packets are cut into slices: each
// processor computes one slice of a whole group of each layer.
//
//	problem  DFT, draw-and-loose and additive FFT matrices, K = r^D
//	cost     C1 = D·⌈(r-1)/p⌉ + ⌈r/p⌉, C2 = C1/r packets; (D+1)·⌈(r-1)/p⌉ in any order
//	         (TestCutLayersCost)
//	source   ours
//
// Packets are cut into r slices. Slice s of the packets of a group of the first layer goes to
// processor s of the group. It multiplies by the layer's block, and hands each product to the
// processor that has this slice of the product's group in the next layer. From the last layer
// slices go to the processors whose results they are of.
func cutPlans(p *algo.Problem) ([]plan.Plan, error) {
	const most = 1024 // schedules are counted one by one
	t := p.Task()
	fact, err := p.Factorisation(t.Context)
	if err != nil {
		return nil, err
	}
	k := t.Matrix.Rows()
	var plans []plan.Plan
	for radix := 2; radix*radix <= k && k <= most && fact != nil && fact.Half == 0; radix++ {
		if c := newCut(fact, radix); c != nil {
			plans = append(plans, c.plan(t, p.Order == algo.Any))
		}
	}
	if len(plans) == 0 {
		return nil, schedule.Misfit(fmt.Sprintf("algo: cut-layers for K = %d: it is for DFT, Vandermonde and lch matrices of K = r^D up to %d whose layers have r processors each: take another algorithm, such as exchange", k, most))
	}
	return schedule.Undominated(t.Context, plans), nil
}

// A cut is the layers of one radix, and who has which slices.
type cut struct {
	*matrix.Factorisation
	layers []matrix.Layer
	radix  int
	duties [][]duty // by layer and processor
}

// A duty is a slice of a group of a layer.
type duty struct{ label, slice int } // of some processor of the group

// newCut returns nil unless the layers fuse to some of radix processors each, of which any two
// groups of neighbouring layers share one processor at most.
func newCut(fact *matrix.Factorisation, radix int) *cut {
	c := &cut{Factorisation: fact, radix: radix}
	k := 1
	for rest := fact.Layers; len(rest) > 0; {
		n := 1
		for n < len(rest) && matrix.Span(rest[:n]).Size() < radix {
			n++
		}
		c.layers, rest = append(c.layers, matrix.Fuse(rest[:n])), rest[n:]
		if c.layers[len(c.layers)-1].Size() != radix {
			return nil
		}
		k *= radix
	}
	if len(c.layers) == 0 || k != c.layers[0].K {
		return nil
	}
	apart := func(a, b matrix.Layer) bool { // processors of a group of one have the same index in the other
		for label := range k {
			if b.Index(label) != b.Index(a.Label(a.Group(label), 0)) {
				return false
			}
		}
		return true
	}
	for i, l := range c.layers {
		if i > 0 && !(apart(l, c.layers[i-1]) && apart(c.layers[i-1], l)) {
			return nil
		}
		list, taken := make([]duty, k), make([]bool, k)
		for label := range k {
			if l.Index(label) != 0 {
				continue
			}
			for slice := range radix {
				proc := c.owner(i, label, slice)
				if taken[proc] {
					return nil
				}
				list[proc], taken[proc] = duty{label, slice}, true
			}
		}
		c.duties = append(c.duties, list)
	}
	return c
}

// owner returns the processor that has a slice of the group of a label in a layer: in the first
// layer a processor of the group, later the one that has most of what the layer before makes of it.
func (c *cut) owner(layer, label, slice int) int {
	l := c.layers[layer]
	group := l.Group(label)
	if layer == 0 {
		return c.In.Processor(l.Label(group, slice))
	}
	return c.owner(layer-1, l.Label(group, c.layers[layer-1].Index(label)), slice)
}

// labelIn returns the label of a processor of the group of a duty.
func (c *cut) labelIn(layer int, d duty, i int) int {
	l := c.layers[layer]
	return l.Label(l.Group(d.label), i)
}

func (c *cut) plan(t schedule.Task, anyOrder bool) plan.Plan {
	r, end := c.radix, len(c.layers)-1
	between, first := schedule.Ceil(r-1, t.Ports), 0
	sink, result := c.Out.Processor, c.Out.Label // of a label the processor with its result; and back
	if anyOrder {
		first = 1 // of its own group each keeps a slice
		sink = func(label int) int { return c.owner(end, label, c.layers[end].Index(label)) }
		result = func(proc int) int { d := c.duties[end][proc]; return c.labelIn(end, d, d.slice) }
	}
	common := t.Info("cut-layers", r, fmt.Sprintf("radix=%d", r), []int{r})
	common.Phases = []plan.Phase{{Name: "layers", Rounds: len(c.layers) * between}, {Name: "hand back", Rounds: schedule.Ceil(r-first, t.Ports)}}
	common.Notes = []string{"structure: " + c.Structure}
	return &schedule.Plan{
		Common:   common,
		ColumnOf: func(proc, output int) int { return c.Out.Processor(result(proc))*r + output },
		Write: func(b *schedule.Builder, proc int) []plan.Slot {
			label := c.In.Label(proc)
			have := b.Inputs(r) // slices of the packet, later one slice of the products of a group
			at := c.layers[0].Index(label)
			to := func(i int) int { return c.owner(0, label, i) }
			for layer, l := range c.layers {
				d := c.duties[layer][proc]
				column := d.slice // what others send from their lists
				if layer > 0 {
					column = c.layers[layer-1].Index(d.label)
				}
				from := func(i int) int {
					sender := c.labelIn(layer, d, i)
					if layer == 0 {
						return c.In.Processor(sender)
					}
					return c.owner(layer-1, sender, d.slice)
				}
				in := c.swap(b, t.Ports, proc, have, at, column, 1, to, from)
				group := l.Group(d.label)
				for j := range have {
					have[j] = b.Total(schedule.Weighted(in, func(i int) field.Element { return l.At(group, i, j) }))
				}
				if layer < end {
					at = c.layers[layer+1].Index(d.label)
					to = func(i int) int { return c.owner(layer+1, c.labelIn(layer, d, i), d.slice) }
				} else {
					at = d.slice
					to = func(i int) int { return sink(c.labelIn(layer, d, i)) }
				}
			}
			own := result(proc)
			return c.swap(b, t.Ports, proc, have, at, c.layers[end].Index(own), first, to, func(i int) int { return c.owner(end, own, i) })
		},
	}
}

// swap sends slot i to processor to(i), and returns the slots that come from processors from(i),
// which have a processor's at index column of theirs, and are at index i of its own; at is where
// a processor is at those that it sends to. Slots for itself stay. In order of their difference
// no processor has two of the ports; those of differences below first are all for itself.
func (c *cut) swap(b *schedule.Builder, ports, proc int, have []plan.Slot, at, column, first int, to, from func(i int) int) []plan.Slot {
	r := c.radix
	in := make([]plan.Slot, r)
	for i := range in {
		if to(i) == proc {
			in[at] = have[i]
		}
	}
	for ; first < r; first += ports {
		for d := first; d < min(first+ports, r); d++ {
			if i := (at + d) % r; to(i) != proc {
				b.Send(d-first, to(i), []plan.Slot{have[i]})
			}
		}
		for d := first; d < min(first+ports, r); d++ {
			if i := (column - d + r) % r; from(i) != proc {
				in[i] = b.Receive(d-first, from(i), 1)[0]
			}
		}
		b.EndRound()
	}
	return in
}
