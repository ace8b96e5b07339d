package algo

import (
	"fmt"
	"slices"

	"volley/field"
	"volley/plan"
)

// A Place is a packet of a processor: one of its inputs or outputs.
type Place struct{ Proc, Index int }

// A Codeword says what some packets are to be: output Sinks[j] is the sum over i of
// Coefficients[j][i] times input Sources[i].
type Codeword struct {
	Sources, Sinks []Place
	Coefficients   [][]field.Element
}

// A RelayProblem is several codewords among processors that hold and obtain several
// packets each, such as the stripes of a group of storage nodes.
type RelayProblem struct {
	Field           field.Field
	Ports           int
	Inputs, Outputs []int // of every processor
	Pieces          int   // that packets are cut into, each of which takes other ways; 0 is 1
	Codewords       []Codeword
}

// Relay returns a plan for codewords that share the ports of their processors. Each goes
// one of two ways, by which the busiest processor has less to do:
//
//   - through one of its sinks, by turns, which obtains all sources and sends the others
//     their outputs: n+s-1 messages for sources and sinks on n+s processors, the fewest
//     that connect them;
//   - for each sink along a chain of all sources, of which each adds its own: s·n
//     messages, of which a sink receives one. With many codewords or pieces that is
//     repair pipelining (Li et al., USENIX ATC 2017).
//
// Messages are dealt out to rounds in order, each to the first in which both ports are
// free. It returns an error for places that do not exist or are obtained twice or never.
func Relay(p RelayProblem) (*plan.Materialized, error) {
	r, err := newRelay(p)
	if err != nil {
		return nil, err
	}
	r.choose()
	chained := r.busiest(true) < r.busiest(false)
	for i := range p.Codewords {
		for piece := range r.pieces {
			r.word(i, piece, chained)
		}
	}
	r.deal()
	return r.plan(chained), nil
}

// relay is a plan in the making.
type relay struct {
	RelayProblem
	pieces   int
	programs []*plan.Program
	slots    []int                // of every processor, so far
	outputs  [][]func() relayPart // of every processor, once all has come
	words    []relayWord
	hops     []*relayHop // in order
}

// A relayWord is a codeword as its processors see it.
type relayWord struct {
	*Codeword
	sources, sinks []share
	leads          []int // the sink through which each piece goes
}

// A share is which of the sources, or sinks, of a codeword are a processor's.
type share struct {
	proc int
	of   []int
}

// A relayHop is a message.
type relayHop struct {
	src, dst int
	count    int // elements, once it is sent
	waits    int // for so many others
	next     []*relayHop
	parts    func() []relayPart // what it carries
	arrive   func([]plan.Slot)
}

// A relayPart is an element of a message, or an output: a combination.
type relayPart = plan.Combination

func newRelay(p RelayProblem) (*relay, error) {
	n := len(p.Inputs)
	r := &relay{RelayProblem: p, pieces: max(1, p.Pieces)}
	if n < 1 || len(p.Outputs) != n {
		return nil, fmt.Errorf("algo: relay: inputs of %d processors and outputs of %d: want as many, and 1 or more", n, len(p.Outputs))
	}
	var err error
	if r.Ports, err = Ports(n, p.Ports); err != nil {
		return nil, err
	}
	obtained := make([][]bool, n)
	for k := range n {
		r.programs = append(r.programs, &plan.Program{Proc: k, Inputs: p.Inputs[k] * r.pieces})
		r.slots = append(r.slots, p.Inputs[k]*r.pieces)
		r.outputs = append(r.outputs, make([]func() relayPart, p.Outputs[k]*r.pieces))
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
		r.words = append(r.words, relayWord{Codeword: w, sources: sharesOf(w.Sources), sinks: sharesOf(w.Sinks)})
	}
	for k, all := range obtained {
		for o, is := range all {
			if !is {
				return nil, fmt.Errorf("algo: relay: nothing says what output %d of processor %d is", o, k)
			}
		}
	}
	return r, nil
}

// sharesOf returns the shares of all processors that have any, in order.
func sharesOf(places []Place) []share {
	var list []share
	index := map[int]int{}
	for i, p := range places {
		at, ok := index[p.Proc]
		if !ok {
			at = len(list)
			index[p.Proc] = at
			list = append(list, share{proc: p.Proc})
		}
		list[at].of = append(list[at].of, i)
	}
	return list
}

// own returns which sources are a processor's.
func (w *relayWord) own(proc int) []int {
	for _, s := range w.sources {
		if s.proc == proc {
			return s.of
		}
	}
	return nil
}

// choose sets the sinks through which codewords go: of each one's, the first of those that
// least others go through.
func (r *relay) choose() {
	through := make([]int, len(r.Inputs))
	for i := range r.words {
		w := &r.words[i]
		for range r.pieces {
			lead := slices.MinFunc(w.sinks, func(a, b share) int { return through[a.proc] - through[b.proc] }).proc
			through[lead]++
			w.leads = append(w.leads, lead)
		}
	}
}

// chain returns the sources but those of one processor, in the order of a turn.
func (w *relayWord) chain(turn, but int) []share {
	var list []share
	for i := range w.sources {
		if s := w.sources[(i+turn)%len(w.sources)]; s.proc != but {
			list = append(list, s)
		}
	}
	return list
}

// busiest returns the most elements that a processor sends, or receives.
func (r *relay) busiest(chained bool) int {
	sent, received := make([]int, len(r.Inputs)), make([]int, len(r.Inputs))
	count := func(src, dst, n int) { sent[src] += n; received[dst] += n }
	for i := range r.words {
		w := &r.words[i]
		for piece := range r.pieces {
			if !chained {
				lead := w.leads[piece]
				for _, s := range w.chain(0, lead) {
					count(s.proc, lead, min(len(s.of), len(w.Sinks)))
				}
				for _, s := range w.sinks {
					if s.proc != lead {
						count(lead, s.proc, len(s.of))
					}
				}
				continue
			}
			for _, sink := range w.sinks {
				list := append(w.chain(i+piece, sink.proc), sink)
				for i, s := range list[:len(list)-1] {
					count(s.proc, list[i+1].proc, len(sink.of))
				}
			}
		}
	}
	most := 0
	for k := range sent {
		most = max(most, sent[k], received[k])
	}
	return most
}

// hop adds a message.
func (r *relay) hop(src, dst int, after []*relayHop, parts func() []relayPart, arrive func([]plan.Slot)) *relayHop {
	h := &relayHop{src: src, dst: dst, waits: len(after), parts: parts, arrive: arrive}
	for _, before := range after {
		before.next = append(before.next, h)
	}
	r.hops = append(r.hops, h)
	return h
}

// sum is what some sources, which lie in so many slots, add to a sink.
func (w *relayWord) sum(sink int, sources []int, slot func(n int) plan.Slot) (sum relayPart) {
	for n, s := range sources {
		if c := w.Coefficients[sink][s]; c != (field.Element{}) {
			sum = append(sum, plan.Term{Slot: slot(n), Coef: c})
		}
	}
	return sum
}

// word adds the messages of a piece of a codeword.
func (r *relay) word(i, piece int, chained bool) {
	w := &r.words[i]
	slot := func(source int) plan.Slot { return w.Sources[source].Index*r.pieces + piece }
	own := func(sources []int, sink int) relayPart {
		return w.sum(sink, sources, func(n int) plan.Slot { return slot(sources[n]) })
	}
	obtain := func(sink int, sum func() relayPart) {
		p := w.Sinks[sink]
		r.outputs[p.Proc][p.Index*r.pieces+piece] = sum
	}
	if chained {
		for _, dst := range w.sinks {
			sums := make([]relayPart, len(dst.of)) // as far as the chain has come
			list := append(w.chain(i+piece, dst.proc), share{dst.proc, w.own(dst.proc)})
			extend := func(sources []int, so []plan.Slot) {
				for n, sink := range dst.of {
					sums[n] = own(sources, sink)
					if so != nil {
						sums[n] = append(sums[n], plan.Term{Slot: so[n], Coef: field.One})
					}
				}
			}
			extend(list[0].of, nil)
			var before []*relayHop
			for n, src := range list[:len(list)-1] {
				next := list[n+1]
				h := r.hop(src.proc, next.proc, before, func() []relayPart { return sums }, func(slots []plan.Slot) { extend(next.of, slots) })
				before = []*relayHop{h}
			}
			for n, sink := range dst.of {
				obtain(sink, func() relayPart { return sums[n] })
			}
		}
		return
	}
	lead := w.leads[piece]
	sums := make([]relayPart, len(w.Sinks))
	for sink := range sums {
		sums[sink] = own(w.own(lead), sink)
	}
	var gathered []*relayHop
	for _, src := range w.chain(0, lead) {
		raw := len(src.of) <= len(w.Sinks)
		gathered = append(gathered, r.hop(src.proc, lead, nil, func() (parts []relayPart) {
			if raw {
				for _, s := range src.of {
					parts = append(parts, relayPart{{Slot: slot(s), Coef: field.One}})
				}
				return parts
			}
			for sink := range sums {
				parts = append(parts, own(src.of, sink))
			}
			return parts
		}, func(slots []plan.Slot) {
			for sink := range sums {
				if raw {
					sums[sink] = append(sums[sink], w.sum(sink, src.of, func(n int) plan.Slot { return slots[n] })...)
				} else {
					sums[sink] = append(sums[sink], plan.Term{Slot: slots[sink], Coef: field.One})
				}
			}
		}))
	}
	for _, dst := range w.sinks {
		if dst.proc == lead {
			for _, sink := range dst.of {
				obtain(sink, func() relayPart { return sums[sink] })
			}
			continue
		}
		var have []plan.Slot
		r.hop(lead, dst.proc, gathered, func() (parts []relayPart) {
			for _, sink := range dst.of {
				parts = append(parts, sums[sink])
			}
			return parts
		}, func(slots []plan.Slot) { have = slots })
		for n, sink := range dst.of {
			obtain(sink, func() relayPart { return relayPart{{Slot: have[n], Coef: field.One}} })
		}
	}
}

// put returns the slot of a combination, computed now unless it is there.
func (r *relay) put(proc int, list *[]plan.Combination, sum relayPart) plan.Slot {
	if len(sum) == 1 && sum[0].Coef == field.One {
		return sum[0].Slot
	}
	*list = append(*list, sum)
	r.slots[proc]++
	return r.slots[proc] - 1
}

// deal deals the messages out to rounds.
func (r *relay) deal() {
	ready := make([]*relayHop, 0, len(r.hops))
	for _, h := range r.hops {
		if h.waits == 0 {
			ready = append(ready, h)
		}
	}
	for len(ready) > 0 {
		n := len(r.programs)
		out, in := make([]int, n), make([]int, n) // ports in use
		arriving := make([][]*relayHop, n)
		for _, p := range r.programs {
			p.Rounds = append(p.Rounds, plan.Round{})
		}
		var later, sent []*relayHop
		for _, h := range ready {
			port := max(out[h.src], in[h.dst]) // the same at both ends
			if port == r.Ports {
				later = append(later, h)
				continue
			}
			out[h.src], in[h.dst] = port+1, port+1
			for len(arriving[h.dst]) < port {
				arriving[h.dst] = append(arriving[h.dst], nil)
			}
			arriving[h.dst] = append(arriving[h.dst], h)
			round := last(r.programs[h.src].Rounds)
			s := plan.Send{Port: port, Dst: h.dst}
			for _, part := range h.parts() {
				s.Slots = append(s.Slots, r.put(h.src, &round.Compute, part))
			}
			h.count = len(s.Slots)
			round.Sends = append(round.Sends, s)
			sent = append(sent, h)
		}
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
		ready = later
		for _, h := range sent {
			for _, next := range h.next {
				if next.waits--; next.waits == 0 {
					ready = append(ready, next)
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

func last[T any](list []T) *T { return &list[len(list)-1] }

// plan returns the plan when all is dealt out.
func (r *relay) plan(chained bool) *plan.Materialized {
	way := "through a sink"
	if chained {
		way = "chains"
	}
	m := &plan.Materialized{Programs: r.programs, Common: plan.Info{
		Algorithm: "relay", Parameters: way, Field: r.Field, Processors: len(r.Inputs), Ports: r.Ports, Pieces: r.Pieces,
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
