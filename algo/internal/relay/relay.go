// Package relay has the plan of traffic: codewords that go through one of their sources or sinks.
package relay

import (
	"container/heap"
	"fmt"
	"slices"

	"volley/algo/schedule"
	"volley/field"
	"volley/plan"
	"volley/sim"
)

// Plan returns a plan for codewords that share the ports of their processors. Each piece of a codeword goes through
// one of its sources or sinks, its lead, which obtains what the others add and sends the sinks their outputs: n+s-1
// messages for sources and sinks on n+s processors, the fewest that connect them. Leads take turns to spread the work.
//
// Messages are dealt out to rounds in order, each to the first in which both ports are
// free. It returns an error for packets that do not exist or are obtained twice or never, and no plan where hopeless
// says so of twice what the busiest processor sends or receives.
func Plan(t schedule.Traffic, ports int, hopeless func(sim.Cost) bool) (*plan.Materialized, error) {
	r, err := newRelay(t, ports)
	if err != nil {
		return nil, err
	}
	leads, busiest := r.leads()
	if hopeless(sim.Cost{C1: 1, C2: 2 * busiest, Pieces: r.pieces, Nodes: []sim.NodeRound{{Messages: 1, Elements: float64(2 * busiest)}}}) {
		return nil, nil
	}
	for piece := range r.pieces {
		for i := range r.words {
			r.route(&r.words[i], piece, leads[i][piece])
		}
	}
	r.deal()
	return r.plan(), nil
}

// relay is a plan in the making.
type relay struct {
	schedule.Traffic
	ports, pieces int
	programs      []*plan.Program
	slots         []int           // of every processor, so far
	outputs       [][]func() part // of every processor, once all has come
	words         []word
	hops          []*hop // in order
}

// A word is a codeword as its processors see it.
type word struct {
	*schedule.Codeword
	sources, sinks []share
}

// A share is which of the sources, or sinks, of a codeword are a processor's.
type share struct {
	proc    int
	indices []int
}

type hop struct {
	number   int // those of earlier codewords go first
	src, dst int
	count    int // elements, once it is sent
	waits    int // for so many others
	next     []*hop
	parts    func() []part // what it carries
	arrive   func([]plan.Slot)
}

// A part is an element of a message, or an output: a combination.
type part = plan.Combination

func newRelay(p schedule.Traffic, ports int) (*relay, error) {
	n := len(p.Inputs)
	r := &relay{Traffic: p, ports: ports, pieces: max(1, p.Pieces)}
	if n < 1 || len(p.Outputs) != n {
		return nil, fmt.Errorf("algo: relay: inputs of %d processors and outputs of %d: want as many, and 1 or more", n, len(p.Outputs))
	}
	obtained := make([][]bool, n)
	for k := range n {
		r.programs = append(r.programs, &plan.Program{Proc: k, Inputs: p.Inputs[k] * r.pieces})
		r.slots = append(r.slots, p.Inputs[k]*r.pieces)
		r.outputs = append(r.outputs, make([]func() part, p.Outputs[k]*r.pieces))
		obtained[k] = make([]bool, p.Outputs[k])
	}
	for i, w := range p.Codewords {
		if len(w.Coefficients) != len(w.Sinks) || len(w.Sources) == 0 || len(w.Sinks) == 0 {
			return nil, fmt.Errorf("algo: relay: codeword %d: %d sources, %d sinks and coefficients of %d", i, len(w.Sources), len(w.Sinks), len(w.Coefficients))
		}
		for j, c := range w.Coefficients {
			if len(c) != len(w.Sources) {
				return nil, fmt.Errorf("algo: relay: codeword %d, sink %d: %d coefficients for %d sources", i, j, len(c), len(w.Sources))
			}
		}
		for _, s := range w.Sources {
			if s.Proc < 0 || s.Proc >= n || s.Index < 0 || s.Index >= p.Inputs[s.Proc] {
				return nil, fmt.Errorf("algo: relay: codeword %d: no input %d of processor %d", i, s.Index, s.Proc)
			}
		}
		for _, s := range w.Sinks {
			if s.Proc < 0 || s.Proc >= n || s.Index < 0 || s.Index >= p.Outputs[s.Proc] || obtained[s.Proc][s.Index] {
				return nil, fmt.Errorf("algo: relay: codeword %d: no output %d of processor %d, or one obtained twice", i, s.Index, s.Proc)
			}
			obtained[s.Proc][s.Index] = true
		}
	}
	for i := range p.Codewords {
		w := &p.Codewords[i]
		r.words = append(r.words, word{Codeword: w, sources: sharesOf(w.Sources), sinks: sharesOf(w.Sinks)})
	}
	for k, row := range obtained {
		for o, known := range row {
			if !known {
				return nil, fmt.Errorf("algo: relay: nothing says what output %d of processor %d is", o, k)
			}
		}
	}
	return r, nil
}

// sharesOf returns the shares of all processors that have any, in order.
func sharesOf(packets []schedule.Packet) []share {
	var list []share
	index := map[int]int{}
	for i, p := range packets {
		position, ok := index[p.Proc]
		if !ok {
			position = len(list)
			index[p.Proc] = position
			list = append(list, share{proc: p.Proc})
		}
		list[position].indices = append(list[position].indices, i)
	}
	return list
}

// sourcesOf returns which sources are a processor's.
func (w *word) sourcesOf(proc int) []int {
	if i := slices.IndexFunc(w.sources, func(s share) bool { return s.proc == proc }); i >= 0 {
		return w.sources[i].indices
	}
	return nil
}

// leads returns the leads of all pieces: each time the sink, or else source, that then has least to send or receive. The
// busiest processor sends, or receives, so many elements in all.
func (r *relay) leads() (leads [][]int, busiest int) {
	sent, received := make([]int, len(r.Inputs)), make([]int, len(r.Inputs)) // without what leads do
	spared := make([][]int, len(r.words))                                    // of each processor, what a lead spares
	raw := make([]int, len(r.words))                                         // what the sources give
	for i := range r.words {
		w := &r.words[i]
		spared[i] = make([]int, len(r.Inputs))
		for _, s := range w.sources {
			sent[s.proc] += r.pieces * w.gives(s)
			spared[i][s.proc] += w.gives(s)
			raw[i] += w.gives(s)
		}
		for _, s := range w.sinks {
			received[s.proc] += r.pieces * len(s.indices)
			spared[i][s.proc] += len(s.indices)
		}
	}
	leads = make([][]int, len(r.words))
	for range r.pieces {
		for i := range r.words {
			w := &r.words[i]
			load := func(s share) int { return max(sent[s.proc]+len(w.Sinks), received[s.proc]+raw[i]) - spared[i][s.proc] }
			lead := slices.MinFunc(slices.Concat(w.sinks, w.sources), func(a, b share) int { return load(a) - load(b) }).proc
			sent[lead] += len(w.Sinks) - spared[i][lead]
			received[lead] += raw[i] - spared[i][lead]
			leads[i] = append(leads[i], lead)
		}
	}
	return leads, max(slices.Max(sent), slices.Max(received))
}

// gives returns how many elements a source sends the lead: its packets, or a sum for each sink.
func (w *word) gives(s share) int { return min(len(s.indices), len(w.Sinks)) }

func (r *relay) add(src, dst int, after []*hop, parts func() []part, arrive func([]plan.Slot)) *hop {
	h := &hop{number: len(r.hops), src: src, dst: dst, waits: len(after), parts: parts, arrive: arrive}
	for _, predecessor := range after {
		predecessor.next = append(predecessor.next, h)
	}
	r.hops = append(r.hops, h)
	return h
}

// sum is what some sources, which lie in so many slots, add to a sink.
func (w *word) sum(sink int, sources []int, slot func(n int) plan.Slot) (sum part) {
	for n, s := range sources {
		if c := w.Coefficients[sink][s]; c != (field.Element{}) {
			sum = append(sum, plan.Term{Slot: slot(n), Coef: c})
		}
	}
	return sum
}

// route adds the messages of a piece of a codeword.
func (r *relay) route(w *word, piece, lead int) {
	slot := func(source int) plan.Slot { return w.Sources[source].Index*r.pieces + piece }
	partial := func(sources []int, sink int) part {
		return w.sum(sink, sources, func(n int) plan.Slot { return slot(sources[n]) })
	}
	obtain := func(sink int, sum func() part) {
		p := w.Sinks[sink]
		r.outputs[p.Proc][p.Index*r.pieces+piece] = sum
	}
	sums := make([]part, len(w.Sinks))
	for sink := range sums {
		sums[sink] = partial(w.sourcesOf(lead), sink)
	}
	var gathered []*hop
	first := slices.IndexFunc(w.sources, func(s share) bool { return s.proc > lead }) // those after the lead, and around
	for i := range w.sources {
		src := w.sources[(max(0, first)+i)%len(w.sources)]
		if src.proc == lead {
			continue
		}
		raw := len(src.indices) <= len(w.Sinks)
		gathered = append(gathered, r.add(src.proc, lead, nil, func() (parts []part) {
			if raw {
				for _, s := range src.indices {
					parts = append(parts, part{{Slot: slot(s), Coef: field.One}})
				}
				return parts
			}
			for sink := range sums {
				parts = append(parts, partial(src.indices, sink))
			}
			return parts
		}, func(slots []plan.Slot) {
			for sink := range sums {
				if raw {
					sums[sink] = append(sums[sink], w.sum(sink, src.indices, func(n int) plan.Slot { return slots[n] })...)
				} else {
					sums[sink] = append(sums[sink], plan.Term{Slot: slots[sink], Coef: field.One})
				}
			}
		}))
	}
	for _, dst := range w.sinks {
		if dst.proc == lead {
			for _, sink := range dst.indices {
				obtain(sink, func() part { return sums[sink] })
			}
			continue
		}
		var arrived []plan.Slot
		r.add(lead, dst.proc, gathered, func() (parts []part) {
			for _, sink := range dst.indices {
				parts = append(parts, sums[sink])
			}
			return parts
		}, func(slots []plan.Slot) { arrived = slots })
		for n, sink := range dst.indices {
			obtain(sink, func() part { return part{{Slot: arrived[n], Coef: field.One}} })
		}
	}
}

// put returns the slot of a combination, computed now unless it is there.
func (r *relay) put(proc int, list *[]plan.Combination, sum part) plan.Slot {
	if len(sum) == 1 && sum[0].Coef == field.One {
		return sum[0].Slot
	}
	*list = append(*list, sum)
	r.slots[proc]++
	return r.slots[proc] - 1
}

// deal deals the messages out to rounds.
func (r *relay) deal() {
	n := len(r.programs)
	ready := make([][]*hop, n) // by receiver, in order: fewer of these compete than of senders
	going := make([]int, n)    // from each sender, of these
	for _, h := range r.hops {
		if h.waits == 0 {
			ready[h.dst] = append(ready[h.dst], h)
			going[h.src]++
		}
	}
	for remaining := len(r.hops); remaining > 0; {
		sending, receiving := make([]int, n), make([]int, n) // ports in use
		arriving := make([][]*hop, n)
		for _, p := range r.programs {
			p.Rounds = append(p.Rounds, plan.Round{})
		}
		var next receivers // by the message that they may receive
		open := 0          // senders
		for k, list := range ready {
			if len(list) > 0 {
				next = append(next, receiver{dst: k, number: list[0].number})
			}
			if going[k] > 0 {
				open++
			}
		}
		heap.Init(&next)
		var sent []*hop
		for len(next) > 0 && open > 0 {
			dst, i := next[0].dst, next[0].position
			h := ready[dst][i]
			if port := max(sending[h.src], receiving[dst]); port < r.ports { // the same at both ends
				ready[dst] = slices.Delete(ready[dst], i, i+1)
				sending[h.src], receiving[dst] = port+1, port+1
				if going[h.src]--; going[h.src] == 0 || sending[h.src] == r.ports {
					open--
				}
				for len(arriving[dst]) < port {
					arriving[dst] = append(arriving[dst], nil)
				}
				arriving[dst] = append(arriving[dst], h)
				round := last(r.programs[h.src].Rounds)
				s := plan.Send{Port: port, Dst: dst}
				for _, part := range h.parts() {
					s.Slots = append(s.Slots, r.put(h.src, &round.Compute, part))
				}
				h.count = len(s.Slots)
				round.Sends = append(round.Sends, s)
				sent = append(sent, h)
			}
			for i < len(ready[dst]) && sending[ready[dst][i].src] == r.ports {
				i++
			}
			if i == len(ready[dst]) || receiving[dst] == r.ports {
				heap.Pop(&next)
				continue
			}
			next[0] = receiver{dst, i, ready[dst][i].number}
			heap.Fix(&next, 0)
		}
		remaining -= len(sent)
		for dst, list := range arriving {
			round := last(r.programs[dst].Rounds)
			for port, h := range list {
				if h == nil {
					continue
				}
				round.Recvs = append(round.Recvs, plan.Recv{Port: port, Src: h.src, Count: h.count})
				slots := make([]plan.Slot, h.count)
				for i := range slots {
					slots[i] = r.slots[dst] + i
				}
				r.slots[dst] += h.count
				h.arrive(slots)
			}
		}
		for _, h := range sent {
			for _, n := range h.next {
				if n.waits--; n.waits == 0 {
					i, _ := slices.BinarySearchFunc(ready[n.dst], n, func(a, b *hop) int { return a.number - b.number })
					ready[n.dst] = slices.Insert(ready[n.dst], i, n)
					going[n.src]++
				}
			}
		}
	}
	for k, outputs := range r.outputs {
		p := r.programs[k]
		for _, sum := range outputs {
			p.Outputs = append(p.Outputs, r.put(k, &p.Compute, sum()))
		}
	}
}

// receivers are a heap of those that may receive a message yet, the earliest first.
type receivers []receiver

type receiver struct{ dst, position, number int }

func (s receivers) Len() int           { return len(s) }
func (s receivers) Less(i, j int) bool { return s[i].number < s[j].number }
func (s receivers) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *receivers) Push(x any)        { *s = append(*s, x.(receiver)) }
func (s *receivers) Pop() any {
	x := *last(*s)
	*s = (*s)[:len(*s)-1]
	return x
}

func last[T any](list []T) *T { return &list[len(list)-1] }

// plan returns the plan when all is dealt out.
func (r *relay) plan() *plan.Materialized {
	m := &plan.Materialized{Programs: r.programs, Common: plan.Info{
		Algorithm: "relay", Parameters: fmt.Sprintf("pieces=%d", r.pieces), Arguments: [][]int{{r.pieces}}, Field: r.Field, Processors: len(r.Inputs), Ports: r.ports, Pieces: r.Pieces,
		Phases: []plan.Phase{{Name: "relay", Rounds: len(r.programs[0].Rounds)}},
	}}
	for k, p := range r.programs {
		var rows, columns []int
		for range p.Inputs {
			rows = append(rows, m.Common.Rows)
			m.Common.Rows++
		}
		for range r.outputs[k] {
			columns = append(columns, m.Common.Columns)
			m.Common.Columns++
		}
		m.Rows, m.Columns = append(m.Rows, rows), append(m.Columns, columns)
	}
	return m
}
