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
	leads    [][]int              // by codeword and piece
	hops     []*relayHop          // in order
}

// A relayHop is a message.
type relayHop struct {
	src, dst int
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
		if len(w.Coefficients) != len(w.Sinks) || len(w.Sources) == 0 {
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
	for k, all := range obtained {
		for o, is := range all {
			if !is {
				return nil, fmt.Errorf("algo: relay: nothing says what output %d of processor %d is", o, k)
			}
		}
	}
	return r, nil
}

// processorsOf returns the processors of places, each once, in order.
func processorsOf(places []Place) []int {
	var list []int
	seen := map[int]bool{}
	for _, p := range places {
		if !seen[p.Proc] {
			seen[p.Proc] = true
			list = append(list, p.Proc)
		}
	}
	return list
}

// at returns which of the places are a processor's.
func at(places []Place, proc int) []int {
	var list []int
	for i, p := range places {
		if p.Proc == proc {
			list = append(list, i)
		}
	}
	return list
}

// choose sets the sink through which each codeword goes: of its sinks, the first of those
// that least others go through.
func (r *relay) choose() {
	through := make([]int, len(r.Inputs))
	for i := range r.Codewords {
		sinks := processorsOf(r.Codewords[i].Sinks)
		var leads []int
		for range r.pieces {
			lead := slices.MinFunc(sinks, func(a, b int) int { return through[a] - through[b] })
			through[lead]++
			leads = append(leads, lead)
		}
		r.leads = append(r.leads, leads)
	}
}

// chain returns the processors of the sources but one, in the order of a turn.
func chain(w *Codeword, turn, but int) []int {
	sources := processorsOf(w.Sources)
	var list []int
	for i := range sources {
		if k := sources[(i+turn)%len(sources)]; k != but {
			list = append(list, k)
		}
	}
	return list
}

// busiest returns the most elements that a processor sends, or receives.
func (r *relay) busiest(chained bool) int {
	sent, received := make([]int, len(r.Inputs)), make([]int, len(r.Inputs))
	count := func(src, dst, n int) { sent[src] += n; received[dst] += n }
	for i := range r.Codewords {
		w := &r.Codewords[i]
		for piece := range r.pieces {
			turn := i + piece
			if !chained {
				first := r.leads[i][piece]
				for _, k := range processorsOf(w.Sources) {
					if k != first {
						count(k, first, min(len(at(w.Sources, k)), len(w.Sinks)))
					}
				}
				for _, k := range processorsOf(w.Sinks) {
					if k != first {
						count(first, k, len(at(w.Sinks, k)))
					}
				}
				continue
			}
			for _, k := range processorsOf(w.Sinks) {
				list := append(chain(w, turn, k), k)
				for i, src := range list[:len(list)-1] {
					count(src, list[i+1], len(at(w.Sinks, k)))
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

// word adds the messages of a piece of a codeword.
func (r *relay) word(i, piece int, chained bool) {
	w := &r.Codewords[i]
	turn := i + piece
	slot := func(source int) plan.Slot { return w.Sources[source].Index*r.pieces + piece }
	// own is what a processor's sources add to a sink.
	own := func(proc, sink int) relayPart {
		var sum relayPart
		for _, s := range at(w.Sources, proc) {
			if c := w.Coefficients[sink][s]; c != (field.Element{}) {
				sum = append(sum, plan.Term{Slot: slot(s), Coef: c})
			}
		}
		return sum
	}
	obtain := func(sink int, sum func() relayPart) {
		p := w.Sinks[sink]
		r.outputs[p.Proc][p.Index*r.pieces+piece] = sum
	}
	if chained {
		for _, dst := range processorsOf(w.Sinks) {
			sinks := at(w.Sinks, dst)
			sums := make([]relayPart, len(sinks)) // as far as the chain has come
			list := append(chain(w, turn, dst), dst)
			extend := func(proc int, so []plan.Slot) {
				for n, sink := range sinks {
					sums[n] = own(proc, sink)
					if so != nil {
						sums[n] = append(sums[n], plan.Term{Slot: so[n], Coef: field.One})
					}
				}
			}
			extend(list[0], nil)
			var before []*relayHop
			for n, src := range list[:len(list)-1] {
				h := r.hop(src, list[n+1], before, func() []relayPart { return sums }, func(slots []plan.Slot) { extend(list[n+1], slots) })
				before = []*relayHop{h}
			}
			for n, sink := range sinks {
				obtain(sink, func() relayPart { return sums[n] })
			}
		}
		return
	}
	first := r.leads[i][piece]
	sums := make([]relayPart, len(w.Sinks))
	for sink := range sums {
		sums[sink] = own(first, sink)
	}
	var gathered []*relayHop
	for _, src := range chain(w, 0, first) {
		sources := at(w.Sources, src)
		raw := len(sources) <= len(w.Sinks)
		gathered = append(gathered, r.hop(src, first, nil, func() (parts []relayPart) {
			if raw {
				for _, s := range sources {
					parts = append(parts, relayPart{{Slot: slot(s), Coef: field.One}})
				}
				return parts
			}
			for sink := range sums {
				parts = append(parts, own(src, sink))
			}
			return parts
		}, func(slots []plan.Slot) {
			for sink := range sums {
				if !raw {
					sums[sink] = append(sums[sink], plan.Term{Slot: slots[sink], Coef: field.One})
					continue
				}
				for n, s := range sources {
					if c := w.Coefficients[sink][s]; c != (field.Element{}) {
						sums[sink] = append(sums[sink], plan.Term{Slot: slots[n], Coef: c})
					}
				}
			}
		}))
	}
	for _, dst := range processorsOf(w.Sinks) {
		sinks := at(w.Sinks, dst)
		if dst == first {
			for _, sink := range sinks {
				obtain(sink, func() relayPart { return sums[sink] })
			}
			continue
		}
		var have []plan.Slot
		r.hop(first, dst, gathered, func() (parts []relayPart) {
			for _, sink := range sinks {
				parts = append(parts, sums[sink])
			}
			return parts
		}, func(slots []plan.Slot) { have = slots })
		for n, sink := range sinks {
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
			round.Sends = append(round.Sends, s)
			sent = append(sent, h)
		}
		for dst, list := range arriving {
			round := last(r.programs[dst].Rounds)
			for port, h := range list {
				if h == nil {
					continue
				}
				sends := last(r.programs[h.src].Rounds).Sends
				count := 0
				for _, s := range sends {
					if s.Dst == dst && s.Port == port {
						count = len(s.Slots)
					}
				}
				round.Recvs = append(round.Recvs, plan.Recv{Port: port, Src: h.src, Count: count})
				slots := make([]plan.Slot, count)
				for i := range slots {
					slots[i] = r.slots[dst] + i
				}
				r.slots[dst] += count
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
