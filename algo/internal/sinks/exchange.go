package sinks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"volley/algo/schedule"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
)

// ExchangePlans returns the plans that hand out slices: with M the larger one of K and
// R, packets are cut into M pieces, and each of M processors computes one piece of all
// results.
//
//	problem  every A, every K, R and p, but for one source and one sink that are apart
//	cost     with radices r_0·…·r_(d-1) >= M for the way there and others for the way
//	         back: C1 = Σ ⌈(r_t-1)/p⌉ for each. One radix, where processors are source
//	         and sink: C1 = 2·⌈(M-1)/p⌉, C2 = 2·⌈(M-1)/p⌉/M packets. Radices p+1,
//	         M = (p+1)^d, K = R = M: C1 = 2d, C2 = 2d/(p+1) packets (TestExchangeCost)
//	source   J. Bruck et al., IEEE TPDS 8(11), 1997 (index), for one way; R. Rabenseifner,
//	         ICCS 2004, for R = 1; the two ways around any A, and the sums on the way, ours
//
// On the way there, slice h of every packet goes to helper h, by an index algorithm: the
// offset from the source to the helper is a number of digits in the radices, and in
// stage t slices move by digit t. Where slices of more than R sources for one helper have
// met, their R parts of results go on instead. Helper h computes slice h of each result,
// and on the way back it goes to the sink, the stages in reverse; where more than K
// results share a way, the K slices of packets go on and the results are computed later.
func ExchangePlans(t schedule.Task) ([]plan.Plan, error) {
	const name = "exchange"
	e := exchange{sources: t.Matrix.Rows(), sinks: t.Matrix.Cols(), separate: t.Separate, ports: t.Ports}
	most := mostSlices
	if t.Square() {
		most = mostSlicesSquare
	}
	if m := e.helpers(); m < 2 || m > most {
		return nil, fmt.Errorf("algo: %s for K = %d and R = %d: %w: %d slices of a packet are not in 2 to %d: take another algorithm, such as universal or sinks",
			name, e.sources, e.sinks, schedule.ErrStructure, m, most)
	}
	type option struct {
		there, back []int
		sim.Cost
	}
	var options []option
	for _, there := range radices(e.helpers(), t.Ports) {
		for _, back := range radices(e.helpers(), t.Ports) {
			a, b := e.estimate(there, e.firstAway(), e.sources, e.sinks), e.estimate(back, e.lastAway(), e.sinks, e.sources)
			options = append(options, option{there, back, sim.Cost{C1: a.C1 + b.C1, C2: a.C2 + b.C2}})
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
			plans = append(plans, e.plan(name, t, o.there, o.back))
		}
	}
	return plans, nil
}

// These bound the slices of a packet: a program has a combination for every slice of a
// result, and where processors are not all alike their schedules are counted one by one.
const (
	mostSlices       = 256
	mostSlicesSquare = 512
)

// radices returns lists of radices with a product of at least m: for each number of
// digits one, as equal as may be, and each a multiple of the ports and one more.
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
		v = min(v*r, 1<<40)
	}
	return v
}

// exchange says who is who. Positions 0 … M-1 are the helpers'; source i and sink s are
// at positions i and s as well, whatever processors they are.
type exchange struct {
	sources, sinks int
	separate       bool
	ports          int
}

func (e exchange) helpers() int { return max(e.sources, e.sinks) }

// firstAway and lastAway report whether sources, or sinks, are other processors than
// the helpers at their positions.
func (e exchange) firstAway() bool { return e.separate && e.sources < e.sinks }
func (e exchange) lastAway() bool  { return e.separate && e.sources >= e.sinks }

// helper and sink return the processor at a position. That of a source is its number.
func (e exchange) helper(v int) int {
	if e.firstAway() {
		v += e.sources
	}
	return v
}

func (e exchange) sink(s int) int {
	if e.separate {
		s += e.sources
	}
	return s
}

// around returns the position d places on, cyclically; d > -M.
func (e exchange) around(v, d int) int { return (v + d + e.helpers()) % e.helpers() }

// sourcesBack counts the sources at a position and before it, n positions in all, and
// sinksOn the sinks at a position and after it.
func (e exchange) sourcesBack(v, n int) int { return overlap(v-n+1, n, e.sources, e.helpers()) }
func (e exchange) sinksOn(v, n int) int     { return overlap(v, n, e.sinks, e.helpers()) }

// overlap counts the numbers of from, …, from+n-1 that are below limit modulo m; n <= m.
func overlap(from, n, limit, m int) int {
	from = (from%m + m) % m
	return max(0, min(from+n, limit)-from) + max(0, min(from+n-m, limit))
}

// A digit stage moves slices by a digit of their offset, ρ·weight positions for digit ρ.
type digitStage struct {
	weight, next int     // next is the weight of the next digit
	rounds       [][]int // the digits that move in each round, one for each port
}

// digitStages returns the stages for radices. Where the first one is away, even digit 0
// moves there.
func (e exchange) digitStages(radices []int, away bool) []digitStage {
	var list []digitStage
	weight := 1
	for _, r := range radices {
		st := digitStage{weight: weight, next: weight * r}
		first := 1
		if away && weight == 1 {
			first = 0
		}
		var round []int
		for digit := first; digit < r && digit*weight < e.helpers(); digit++ {
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

// offsets returns the offsets that move by a digit in a stage. What has moved before
// is left out: they are multiples of the stage's weight.
func (e exchange) offsets(st digitStage, digit int) []int {
	var list []int
	for offset := digit * st.weight; offset < e.helpers(); offset += st.next {
		list = append(list, offset)
	}
	return list
}

// window returns how many positions share what moves on by an offset.
func (e exchange) window(st digitStage, offset int) int { return min(st.weight, e.helpers()-offset) }

// estimate returns a bound on the cost of one way, which is met where all processors
// take part: ends are those that share a way, and others those at its other end.
func (e exchange) estimate(radices []int, away bool, ends, others int) sim.Cost {
	var c sim.Cost
	for _, st := range e.digitStages(radices, away) {
		for _, round := range st.rounds {
			most := 0
			for _, digit := range round {
				n := 0
				for _, offset := range e.offsets(st, digit) {
					n += min(e.window(st, offset), ends, others)
				}
				most = max(most, n)
			}
			c.C1++
			c.C2 += most
		}
	}
	return c
}

// An exchangePlan is the plan for an exchange.
type exchangePlan struct {
	exchange
	matrix      matrix.Matrix
	there, back []digitStage
}

func (e exchange) plan(name string, t schedule.Task, there, back []int) plan.Plan {
	m := e.helpers()
	q := &exchangePlan{exchange: e, matrix: t.Matrix, there: e.digitStages(there, e.firstAway()), back: e.digitStages(back, e.lastAway())}
	p := &schedule.Plan{
		Common: plan.Info{
			Algorithm: name, Parameters: fmt.Sprintf("pieces=%d radices %s, %s", m, dotted(there), dotted(back)),
			Field: t.Matrix.Field(), Processors: t.Processors(), Ports: t.Ports,
			Rows: e.sources * m, Columns: e.sinks * m, Pieces: m,
			Phases: []plan.Phase{{Name: "hand out"}, {Name: "hand back"}},
		},
		Write:    q.write,
		RowOf:    func(proc, input int) int { return proc*m + input },
		ColumnOf: func(proc, output int) int { return (proc-e.sink(0))*m + output },
	}
	if t.Square() {
		p.Kinds = func() []plan.Class { return schedule.Alike(m) }
	}
	for i, stages := range [][]digitStage{q.there, q.back} {
		for _, st := range stages {
			p.Common.Phases[i].Rounds += len(st.rounds)
		}
	}
	return p
}

// dotted returns numbers with dots between them.
func dotted(list []int) string {
	s := make([]string, len(list))
	for i, n := range list {
		s[i] = fmt.Sprint(n)
	}
	return strings.Join(s, "·")
}

// A bundle is what a processor knows of one slice: slices of packets as they were, and
// parts of the results that others have added up.
type bundle struct {
	raw     []rawSlice    // nearest source first
	sums    [][]plan.Slot // by sink; nil: none
	results map[int]plan.Slot
}

// A rawSlice is a slice of the packet of a source.
type rawSlice struct{ source, slot int }

// result returns the slot of all that the bundle knows of the result of a sink.
func (q *exchangePlan) result(b *schedule.Builder, u *bundle, sink int) plan.Slot {
	if slot, ok := u.results[sink]; ok {
		return slot
	}
	terms := len(u.raw)
	if u.sums != nil {
		terms += len(u.sums[sink])
	}
	slot := b.Compute(terms, func() plan.Combination {
		var c schedule.Sum
		for _, r := range u.raw {
			c.Add(r.slot, q.matrix.At(r.source, sink))
		}
		if u.sums != nil {
			c.AddAll(u.sums[sink])
		}
		return plan.Combination(c)
	})
	if u.results == nil {
		u.results = map[int]plan.Slot{}
	}
	u.results[sink] = slot
	return slot
}

func (q *exchangePlan) write(b *schedule.Builder, proc int) []plan.Slot {
	var own []plan.Slot
	if proc < q.sources {
		own = b.Inputs(q.helpers())
	}
	helper := proc - q.helper(0)
	if helper >= q.helpers() {
		helper = -1
	}
	all := q.handOut(b, proc, helper, own)
	return q.handBack(b, proc-q.sink(0), helper, all)
}

// handOut writes the way there and returns what the helper knows of its slice in the
// end.
func (q *exchangePlan) handOut(b *schedule.Builder, source, helper int, own []plan.Slot) *bundle {
	m := q.helpers()
	held := make([]*bundle, m) // by the offset to go
	sender := -1               // position
	if own != nil {
		sender = source
		for offset := range held {
			held[offset] = &bundle{raw: []rawSlice{{source, own[q.around(source, offset)]}}}
		}
	}
	for t, st := range q.there {
		next := make([]*bundle, m)
		if helper >= 0 {
			for offset := 0; offset < m; offset += st.next {
				next[offset] = &bundle{}
				if held[offset] != nil && (t > 0 || !q.firstAway()) {
					next[offset] = held[offset]
				}
			}
		}
		for _, round := range st.rounds {
			if sender >= 0 {
				for port, digit := range round {
					var slots []plan.Slot
					for _, offset := range q.offsets(st, digit) {
						u := held[offset]
						switch n := q.sourcesBack(sender, q.window(st, offset)); {
						case n > q.sinks:
							for s := range q.sinks {
								slots = append(slots, q.result(b, u, s))
							}
						default:
							for _, r := range u.raw {
								slots = append(slots, r.slot)
							}
						}
					}
					if len(slots) > 0 {
						b.Send(port, q.helper(q.around(sender, digit*st.weight)), slots)
					}
				}
			}
			if helper >= 0 {
				for port, digit := range round {
					from := q.around(helper, -digit*st.weight)
					count := 0
					for _, offset := range q.offsets(st, digit) {
						count += min(q.sinks, q.sourcesBack(from, q.window(st, offset)))
					}
					if count == 0 {
						continue
					}
					src := from
					if t > 0 {
						src = q.helper(from)
					}
					slots := b.Receive(port, src, count)
					for _, offset := range q.offsets(st, digit) {
						u := next[offset-digit*st.weight]
						window := q.window(st, offset)
						if q.sourcesBack(from, window) > q.sinks {
							if u.sums == nil {
								u.sums = make([][]plan.Slot, q.sinks)
							}
							for s := range q.sinks {
								u.sums[s] = append(u.sums[s], slots[s])
							}
							slots = slots[q.sinks:]
							continue
						}
						for j := range window {
							if i := q.around(from, -j); i < q.sources {
								u.raw = append(u.raw, rawSlice{i, slots[0]})
								slots = slots[1:]
							}
						}
					}
				}
			}
			b.EndRound()
		}
		held, sender = next, helper
	}
	if helper < 0 {
		return nil
	}
	return held[0]
}

// handBack writes the way back from what the helper knows of its slice, and returns the
// slots of the slices of the sink's result.
func (q *exchangePlan) handBack(b *schedule.Builder, sink, helper int, all *bundle) []plan.Slot {
	m := q.helpers()
	if sink >= q.sinks {
		sink = -1
	}
	held := make([]*bundle, m) // by the offset gone
	if helper >= 0 {
		all.results = nil
		slices.SortFunc(all.raw, func(a, b rawSlice) int { return cmp.Compare(a.source, b.source) })
		held[0] = all
	}
	for t, st := range slices.Backward(q.back) {
		last := t == 0
		receiver := helper
		if last {
			receiver = sink
		}
		next := make([]*bundle, m)
		if helper >= 0 && receiver >= 0 && !(last && q.lastAway()) {
			for offset := 0; offset < m; offset += st.next {
				next[offset] = held[offset]
			}
		}
		for _, round := range st.rounds {
			if helper >= 0 {
				for port, digit := range round {
					to := q.around(helper, digit*st.weight)
					var slots []plan.Slot
					for _, offset := range q.offsets(st, digit) {
						u := held[offset-digit*st.weight]
						window := q.window(st, offset)
						if q.sinksOn(to, window) > q.sources {
							for _, r := range u.raw {
								slots = append(slots, r.slot)
							}
							continue
						}
						for j := range window {
							if s := q.around(to, j); s < q.sinks {
								slots = append(slots, q.result(b, u, s))
							}
						}
					}
					if len(slots) > 0 {
						dst := q.helper(to)
						if last {
							dst = q.sink(to)
						}
						b.Send(port, dst, slots)
					}
				}
			}
			if receiver >= 0 {
				for port, digit := range round {
					count := 0
					for _, offset := range q.offsets(st, digit) {
						count += min(q.sources, q.sinksOn(receiver, q.window(st, offset)))
					}
					if count == 0 {
						continue
					}
					slots := b.Receive(port, q.helper(q.around(receiver, -digit*st.weight)), count)
					for _, offset := range q.offsets(st, digit) {
						u := &bundle{results: map[int]plan.Slot{}}
						next[offset] = u
						window := q.window(st, offset)
						if q.sinksOn(receiver, window) > q.sources {
							for i := range q.sources {
								u.raw = append(u.raw, rawSlice{i, slots[i]})
							}
							slots = slots[q.sources:]
							continue
						}
						for j := range window {
							if s := q.around(receiver, j); s < q.sinks {
								u.results[s] = slots[0]
								slots = slots[1:]
							}
						}
					}
				}
			}
			b.EndRound()
		}
		held = next
	}
	if sink < 0 {
		return nil
	}
	results := make([]plan.Slot, m) // by slice
	for offset, u := range held {
		results[q.around(sink, -offset)] = q.result(b, u, sink)
	}
	return results
}
