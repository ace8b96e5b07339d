package exchange

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"volley/algo/internal/layers"
	"volley/algo/schedule"
	"volley/field"
	"volley/internal/poll"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
)

// ExchangePlans returns the plans that hand out slices: with M the larger one of K and R, packets are cut into M
// pieces, and each of M processors computes one piece of all results.
//
//	problem  every A, every K, R and p, but for one source and one sink that are apart
//	cost     with radices r_0·…·r_(d-1) >= M for the way there and others for the way
//	         back: C1 = Σ ⌈(r_t-1)/p⌉ for each. One radix, where processors are source
//	         and sink: C1 = 2·⌈(M-1)/p⌉, C2 = 2·⌈(M-1)/p⌉/M packets. Radices p+1,
//	         M = (p+1)^d, K = R = M: C1 = 2d, C2 = 2d/(p+1) packets (TestExchangeCost)
//	source   J. Bruck et al., IEEE TPDS 8(11), 1997 (index), for one way; R. Rabenseifner,
//	         ICCS 2004, for R = 1; the two ways around any A, and the sums on the way, ours
//
// On the way there, slice h of every packet goes to helper h, by an index algorithm: the offset from the source to the
// helper is a number of digits in the radices, and in stage t slices move by digit t. Where slices of more than R
// sources for one helper have met, their R parts of results go on instead. Helper h computes slice h of each result,
// and on the way back it goes to the sink, the stages in reverse; where more than K results share a way, the K slices
// of packets go on and the results are computed later.
//
// Of a matrix that is a product of layers, which fact is unless it is nil, a helper computes its slice by the layers,
// one after the other: it multiplies by Σ of their sizes per symbol, not by K.
func ExchangePlans(t schedule.Task, fact *matrix.Factorisation) ([]plan.Plan, error) {
	outbound, inbound := exchanges(t)
	if err := outbound.small(t, fact); err != nil {
		return nil, err
	}
	type option struct {
		outbound, inbound []int
		sim.Cost
	}
	var options []option
	lists, steps := radices(outbound.helpers, t.Ports), poll.New(t.Context)
	for _, first := range lists {
		for _, last := range lists {
			a, b := outbound.estimate(steps, first), inbound.estimate(steps, last)
			options = append(options, option{first, last, sim.Cost{C1: a.C1 + b.C1, C2: a.C2 + b.C2, Pieces: outbound.helpers, Nodes: slices.Concat(a.Nodes, b.Nodes)}})
		}
	}
	slices.SortStableFunc(options, func(a, b option) int {
		return cmp.Or(cmp.Compare(a.C1, b.C1), cmp.Compare(a.C2, b.C2))
	})
	var plans []plan.Plan
	least := 0
	for _, o := range options {
		if len(plans) == 0 || 20*o.C2 < 19*least { // not many that are nearly the same
			least = o.C2
			p := exchangePlan(t, fact, o.outbound, o.inbound)
			if t.Square() { // all processors take part
				p.Least = o.Cost
			}
			plans = append(plans, p)
		}
	}
	return plans, nil
}

// ExchangeWith returns the plan with the radices of parameters: of the way there and, unless the same, of the way back.
func ExchangeWith(t schedule.Task, fact *matrix.Factorisation, parameters [][]int) (plan.Plan, error) {
	outbound, _ := exchanges(t)
	if err := outbound.small(t, fact); err != nil {
		return nil, err
	}
	if len(parameters) > 2 {
		return nil, schedule.Misfit(fmt.Sprintf("algo: exchange with %d lists of radices: want one, or two, there and back", len(parameters)))
	}
	for _, list := range parameters {
		if err := outbound.fits(list); err != nil {
			return nil, err
		}
	}
	return exchangePlan(t, fact, parameters[0], parameters[len(parameters)-1]), nil
}

// fits returns an error unless each radix has digits to move, and all together have a digit for every offset.
func (e exchange) fits(radices []int) error {
	weight := 1
	for _, r := range radices {
		if r < 2 || r > e.helpers || weight >= e.helpers {
			return schedule.Misfit(fmt.Sprintf("algo: exchange with radices %s for %d slices of a packet: radix %d: want 2 to %d, and none after their product has reached that", layers.Dotted(radices), e.helpers, r, e.helpers))
		}
		weight = capped(weight, r)
	}
	if weight < e.helpers {
		return schedule.Misfit(fmt.Sprintf("algo: exchange with radices %s for %d slices of a packet: their product is %d: want as many as slices, or more", layers.Dotted(radices), e.helpers, weight))
	}
	return nil
}

// small returns an error unless there are 2 slices of a packet or more, and not too many: programs combine all packets
// for every slice, by layers in few terms; where processors are not all alike their schedules are counted one by one.
func (e exchange) small(t schedule.Task, fact *matrix.Factorisation) error {
	limit := 256
	if t.Square() {
		limit = 512
	}
	if local(fact) != nil {
		limit = 1024
	}
	if e.helpers >= 2 && e.helpers <= limit {
		return nil
	}
	return schedule.Misfit(fmt.Sprintf("algo: exchange for K = %d and R = %d: %d slices of a packet are not in 2 to %d: take another algorithm, such as universal, split or sinks",
		e.ends, e.peers, e.helpers, limit))
}

// local returns the layers by which a helper computes its slice, fused where that saves work; nil: the whole matrix does.
func local(fact *matrix.Factorisation) []matrix.Layer {
	if fact == nil {
		return nil
	}
	var list []matrix.Layer
	sizes := 0
	for rest := fact.Layers; len(rest) > 0; {
		n, size := 1, rest[0].Size()
		for sum := size; n < len(rest); n++ {
			sum += rest[n].Size()
			fused := matrix.Span(rest[:n+1]).Size()
			if fused > sum {
				break
			}
			size = fused
		}
		list, rest, sizes = append(list, matrix.Fuse(rest[:n])), rest[n:], sizes+size
	}
	if len(list) == 0 || sizes >= list[0].K {
		return nil
	}
	return list
}

// capped returns a product, or 2^30 where it is larger.
func capped(a, b int) int { return int(min(int64(a)*int64(b), 1<<30)) }

// radices returns lists of radices with a product of at least m, as equal as may be and each a multiple of p+1 and one.
func radices(m, ports int) [][]int {
	var lists [][]int
	for digits := 1; digits <= schedule.Clog(m, ports); digits++ {
		var list []int
		for rest := m; rest > 1; {
			r := 2
			for power(r, digits-len(list)) < rest {
				r++
			}
			r = min(rest, (r-1+ports-1)/ports*ports+1)
			list = append(list, r)
			rest = (rest + r - 1) / r
		}
		if n := len(lists); n == 0 || !slices.Equal(lists[n-1], list) {
			lists = append(lists, list)
		}
	}
	return lists
}

// power returns r^n, or a number above any count of processors.
func power(r, n int) int {
	v := 1
	for range n {
		v = capped(v, r)
	}
	return v
}

// An exchange is the way of slices between ends and helpers. Forwards every end, a source,
// hands out its packet; transposed every end, a sink, is handed its result.
//
// Positions 0 … M-1 are the helpers'; ends are at positions 0, 1, … as well, whatever processors they are.
type exchange struct {
	helpers, ports int
	ends, peers    int  // peers are those at the other end of the other way
	away           bool // ends are other processors than the helpers at their positions
	step           int  // 1 or -1: which way slices move by their digits
	firstEnd       int  // processor
	firstHelper    int
	coef           func(end, peer int) field.Element
	stages         []digitStage
}

func exchanges(t schedule.Task) (outbound, inbound exchange) {
	k, r, a := t.Matrix.Rows(), t.Matrix.Cols(), t.Matrix
	outbound = exchange{helpers: max(k, r), ports: t.Ports, ends: k, peers: r, away: t.Separate && k < r, step: 1, coef: a.At}
	if outbound.away {
		outbound.firstHelper = k
	}
	inbound = outbound
	inbound.ends, inbound.peers, inbound.away, inbound.step = r, k, t.Separate && k >= r, -1
	inbound.coef = func(sink, source int) field.Element { return a.At(source, sink) }
	if t.Separate {
		inbound.firstEnd = k
	}
	return outbound, inbound
}

// around returns the position d places on, cyclically; d > -M.
func (e exchange) around(v, d int) int { return (v + d*e.step + e.helpers) % e.helpers }

// behind counts the ends at a position and behind it, n positions in all.
func (e exchange) behind(v, n int) int {
	if e.step > 0 {
		v -= n - 1
	}
	return overlap(v, n, e.ends, e.helpers)
}

// overlap counts the numbers of start, …, start+n-1 that are below limit modulo m; n <= m.
func overlap(start, n, limit, m int) int {
	start = (start%m + m) % m
	return max(0, min(start+n, limit)-start) + max(0, min(start+n-m, limit))
}

// A digit stage moves slices by a digit of their offset, ρ·weight positions for digit ρ.
type digitStage struct {
	weight, next int     // next is the weight of the next digit
	rounds       [][]int // the digits that move in each round, one for each port
}

// digitStages returns the stages for radices. Where ends are away, even digit 0 moves in the first one.
func (e exchange) digitStages(radices []int) []digitStage {
	var list []digitStage
	weight := 1
	for _, r := range radices {
		st := digitStage{weight: weight, next: weight * r}
		first := 1
		if e.away && weight == 1 {
			first = 0
		}
		var round []int
		for digit := first; digit < r && digit*weight < e.helpers; digit++ {
			if round = append(round, digit); len(round) == e.ports {
				st.rounds = append(st.rounds, round)
				round = nil
			}
		}
		if len(round) > 0 {
			st.rounds = append(st.rounds, round)
		}
		list = append(list, st)
		weight *= r
	}
	return list
}

// offsets returns the offsets that move by a digit in a stage: multiples of its weight, as the rest has moved before.
func (e exchange) offsets(st digitStage, digit int) []int {
	var list []int
	for offset := digit * st.weight; offset < e.helpers; offset += st.next {
		list = append(list, offset)
	}
	return list
}

// window returns how many positions share what moves on by an offset.
func (e exchange) window(st digitStage, offset int) int { return min(st.weight, e.helpers-offset) }

// estimate returns a bound on the cost of one way, which is met where all processors take part.
func (e exchange) estimate(steps *poll.Poller, radices []int) sim.Cost {
	var c sim.Cost
	for _, st := range e.digitStages(radices) {
		for _, round := range st.rounds {
			largest, total := 0, 0
			for _, digit := range round {
				n := 0
				for _, offset := range e.offsets(st, digit) {
					steps.Steps(1)
					n += min(e.window(st, offset), e.ends, e.peers)
				}
				largest, total = max(largest, n), total+n
			}
			c.C1++
			c.C2 += largest
			c.Nodes = append(c.Nodes, sim.NodeRound{Messages: len(round), Elements: float64(total)})
		}
	}
	return c
}

// exchangePlan returns the plan with these radices for the ways there and back.
func exchangePlan(t schedule.Task, fact *matrix.Factorisation, first, last []int) *schedule.Programs {
	outbound, inbound := exchanges(t)
	outbound.stages, inbound.stages = outbound.digitStages(first), inbound.digitStages(last)
	m, byLayers := outbound.helpers, local(fact)
	radices := [][]int{first, last}
	if slices.Equal(first, last) {
		radices = radices[:1]
	}
	common := t.Info("exchange", m, fmt.Sprintf("pieces=%d radices %s, %s", m, layers.Dotted(first), layers.Dotted(last)), radices...)
	common.Phases = []plan.Phase{{Name: "hand out", Rounds: outbound.rounds()}, {Name: "hand back", Rounds: inbound.rounds()}}
	p := &schedule.Programs{
		Matrix: t.Matrix,
		Common: common,
		Write: func(b *schedule.Builder, proc int) []plan.Slot {
			var inputs []plan.Slot
			if proc < outbound.ends {
				inputs = b.Inputs(m)
			}
			slice := outbound.collect(b, proc, inputs)
			result := func(sink int) []schedule.Addend { return slice.sum(sink, outbound.coef) }
			if slice != nil && byLayers != nil {
				results := slice.throughLayers(b, fact, byLayers)
				result = func(sink int) []schedule.Addend { return schedule.InSlot(results[sink]) }
			}
			return b.Transposed(func(forward *schedule.Builder) ([]plan.Slot, [][]schedule.Addend) {
				var results []plan.Slot
				if _, ok := t.Sink(proc); ok {
					results = forward.Inputs(m)
				}
				return inbound.collect(forward, proc, results).transposed(slice, result)
			})
		},
	}
	if byLayers != nil {
		p.Matrix = nil
		p.Common.Notes = []string{"structure: " + fact.Structure, "by its layers each processor computes its slice of the results"}
	}
	if t.Square() {
		p.Kinds = func(context.Context) []plan.Class { return schedule.OneClass(m) }
	}
	return p
}

func (e exchange) rounds() int {
	n := 0
	for _, st := range e.stages {
		n += len(st.rounds)
	}
	return n
}

// A bundle is what a processor knows of one slice: slices of ends, and sums of what others want of them.
type bundle struct {
	ends []int         // nearest first
	raw  []plan.Slot   // of the slices of these ends
	sums [][]plan.Slot // by other; nil: none
}

// sum returns all that the bundle knows of what one of the others wants.
func (u *bundle) sum(peer int, coef func(end, peer int) field.Element) []schedule.Addend {
	list := schedule.Weighted(u.raw, func(i int) field.Element { return coef(u.ends[i], peer) })
	if u.sums != nil {
		list = append(list, schedule.Weighted(u.sums[peer], nil)...)
	}
	return list
}

// throughLayers returns the slots of the results of all sinks, of a bundle of all packets.
func (u *bundle) throughLayers(b *schedule.Builder, fact *matrix.Factorisation, layers []matrix.Layer) []plan.Slot {
	current := make([]plan.Slot, len(u.ends)) // by label
	for i, source := range u.ends {
		current[fact.Input.Label(source)] = u.raw[i]
	}
	for _, l := range layers {
		next, backing := make([]plan.Slot, len(current)), make([]plan.Slot, len(current)*l.Size())
		for label := range next {
			group, index := l.Group(label), l.Index(label)
			b.Ready(l, group)
			slots := backing[label*l.Size():][:l.Size():l.Size()]
			for i := range slots {
				slots[i] = current[l.Label(group, i)]
			}
			next[label] = b.Total(schedule.Weighted(slots, func(i int) field.Element { return l.At(group, i, index) }))
		}
		current = next
	}
	results := make([]plan.Slot, len(current))
	for label, slot := range current {
		results[fact.Output.Processor(label)] = slot
	}
	return results
}

// transposed returns the slots of the bundle of sinks, and what each gets from the slice of
// all packets: its result or, where it is a part of all results, the packet.
func (u *bundle) transposed(slice *bundle, result func(sink int) []schedule.Addend) (slots []plan.Slot, addends [][]schedule.Addend) {
	if u == nil {
		return nil, nil
	}
	for i, sink := range u.ends {
		slots, addends = append(slots, u.raw[i]), append(addends, result(sink))
	}
	if u.sums != nil {
		for i, source := range slice.ends {
			for _, slot := range u.sums[source] {
				slots, addends = append(slots, slot), append(addends, schedule.InSlot(slice.raw[i]))
			}
		}
	}
	return slots, addends
}

// collect writes the way from the ends, of which a processor has the slices inputs if it is
// one, and returns what it knows of its slice in the end if it is a helper, else nil.
func (e exchange) collect(b *schedule.Builder, proc int, inputs []plan.Slot) *bundle {
	m := e.helpers
	helper := proc - e.firstHelper
	if helper < 0 || helper >= m {
		helper = -1
	}
	carried := make([]*bundle, m) // by the offset to go
	sender := -1                  // position
	if inputs != nil {
		sender = proc - e.firstEnd
		bundles, alone := make([]bundle, m), []int{sender}
		for offset := range carried {
			i := e.around(sender, offset)
			bundles[offset] = bundle{ends: alone, raw: inputs[i : i+1 : i+1]}
			carried[offset] = &bundles[offset]
		}
	}
	for t, st := range e.stages {
		next := make([]*bundle, m)
		if helper >= 0 {
			bundles := make([]bundle, (m+st.next-1)/st.next)
			for offset := 0; offset < m; offset += st.next {
				next[offset] = &bundles[offset/st.next]
				if carried[offset] != nil && (t > 0 || !e.away) {
					next[offset] = carried[offset]
				}
			}
		}
		for _, round := range st.rounds {
			if sender >= 0 {
				for port, digit := range round {
					var slots []plan.Slot
					for _, offset := range e.offsets(st, digit) {
						slots = append(slots, e.handOn(b, carried[offset], e.behind(sender, e.window(st, offset)))...)
					}
					if len(slots) > 0 {
						b.Send(port, e.firstHelper+e.around(sender, digit*st.weight), slots)
					}
				}
			}
			if helper >= 0 {
				for port, digit := range round {
					e.receive(b, st, t, port, digit, helper, next)
				}
			}
			b.EndRound()
		}
		carried, sender = next, helper
	}
	return carried[0]
}

// handOn returns the slots of a bundle that n ends share: of their slices, or of what others want of them if less.
func (e exchange) handOn(b *schedule.Builder, u *bundle, n int) []plan.Slot {
	if n <= e.peers {
		return u.raw
	}
	slots := make([]plan.Slot, e.peers)
	for peer := range slots {
		slots[peer] = b.Total(u.sum(peer, e.coef))
	}
	return slots
}

// receive receives what moves to a helper by a digit, and puts it in the bundles next.
func (e exchange) receive(b *schedule.Builder, st digitStage, t, port, digit, helper int, next []*bundle) {
	sender := e.around(helper, -digit*st.weight)
	count := 0
	for _, offset := range e.offsets(st, digit) {
		count += min(e.peers, e.behind(sender, e.window(st, offset)))
	}
	if count == 0 {
		return
	}
	src := e.firstEnd + sender
	if t > 0 {
		src = e.firstHelper + sender
	}
	slots := b.Receive(port, src, count)
	for _, offset := range e.offsets(st, digit) {
		u := next[offset-digit*st.weight]
		window := e.window(st, offset)
		if e.behind(sender, window) > e.peers {
			if u.sums == nil {
				u.sums = make([][]plan.Slot, e.peers)
			}
			for peer := range e.peers {
				u.sums[peer] = append(u.sums[peer], slots[peer])
			}
			slots = slots[e.peers:]
			continue
		}
		for j := range window {
			if end := e.around(sender, -j); end < e.ends {
				u.ends, u.raw = append(u.ends, end), append(u.raw, slots[0])
				slots = slots[1:]
			}
		}
	}
}
