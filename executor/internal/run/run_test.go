package run_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"volley/algo/algotest"
	"volley/executor/internal/compile"
	"volley/executor/internal/run"
	"volley/field"
	"volley/field/fieldtest"
	"volley/plan"
	"volley/verify"
)

// A rank is one of a group without transport: its machine, and memory in which element i of packet r is 1 at symbol r.
type rank struct {
	x       *compile.Executable
	m       *run.Interpreter
	memory  [][]byte
	scratch [][]byte
	asked   []bool // receives that the machine has asked for
	arrived []bool
	sent    []bool // sends that it has named, and
	over    []bool // these that are over
	steps   []bool
}

// A stream is the messages that keep their order.
type stream struct{ src, dst, round, port int32 }

// A letter is a message under way.
type letter struct {
	from *rank
	send int
}

// A group has several ranks, and events that have not happened.
type group struct {
	t     *testing.T
	ranks []*rank
	mail  map[stream][]letter
}

func newGroup(t *testing.T, p plan.Plan, ranks int) *group {
	g := &group{t: t}
	for r := range ranks {
		x, err := compile.Prepare(t.Context(), p, r, ranks, false)
		if err != nil {
			t.Fatal(err)
		}
		g.ranks = append(g.ranks, &rank{x: x, m: run.New(x)})
	}
	return g
}

// begin begins with a segment at all ranks: the packet of row r is the r-th unit vector.
func (g *group) begin(p plan.Plan) {
	g.mail = map[stream][]letter{}
	info := p.Info()
	n := info.Field.SymbolBytes()
	for _, r := range g.ranks {
		empty := func(count int) (list [][]byte) {
			for range count {
				list = append(list, bytes.Repeat([]byte{0xee}, info.Rows*n))
			}
			return list
		}
		x := r.x
		r.memory, r.scratch = empty(x.Inputs+x.Headers+x.Received+x.Computed), empty(x.Scratch)
		for i, proc := range x.Processors {
			for in := proc.Inputs.First; in < proc.Inputs.End; in++ {
				clear(r.memory[in])
				field.PutSymbol(info.Field, r.memory[in][p.Row(x.First+i, in-proc.Inputs.First)*n:], field.One)
			}
		}
		r.asked, r.arrived = make([]bool, len(x.Receives)), make([]bool, len(x.Receives))
		r.sent, r.over, r.steps = make([]bool, len(x.Sends)), make([]bool, len(x.Sends)), make([]bool, len(x.Steps))
		r.m.Begin()
		g.do(r)
	}
}

// do has a rank do what its machine says until it is to wait.
func (g *group) do(r *rank) {
	once := func(list []bool, what run.Activity) {
		if list[what.Number] {
			g.t.Fatalf("rank %d: %+v for the second time", r.x.Rank, what)
		}
		list[what.Number] = true
	}
	for {
		switch do := r.m.Next(); do.Action {
		case run.Wait:
			return
		case run.Receive:
			once(r.asked, do)
		case run.Send:
			once(r.sent, do)
			m := r.x.Sends[do.Number]
			key := streamOf(&m.Message)
			g.mail[key] = append(g.mail[key], letter{r, do.Number})
		case run.Compute:
			once(r.steps, do)
			at := func(locations []compile.ElementOffset) (list [][]byte) {
				for _, l := range locations {
					if l < 0 {
						list = append(list, r.scratch[^l])
					} else {
						list = append(list, r.memory[l])
					}
				}
				return list
			}
			for i := range r.x.Steps[do.Number].Operations {
				op := &r.x.Steps[do.Number].Operations[i]
				r.x.Apply(op, at(op.Outputs), at(op.Inputs), false)
			}
		}
	}
}

// events returns what may happen next: messages that are sent and asked for arrive, and sends are over.
func (g *group) events() (list []func()) {
	for _, r := range g.ranks {
		for i, m := range r.x.Receives {
			key := streamOf(&m.Message)
			if letters := g.mail[key]; r.asked[i] && !r.arrived[i] && len(letters) > 0 {
				list = append(list, func() {
					g.mail[key] = letters[1:]
					from := letters[0].from
					slots := from.x.Sends[letters[0].send].Slots
					if len(slots) != int(m.Count) {
						g.t.Fatalf("rank %d: a message of %d elements, want %d", r.x.Rank, len(slots), m.Count)
					}
					for k, slot := range slots {
						copy(r.memory[int(m.Element)+k], from.memory[slot])
					}
					r.arrived[i] = true
					r.m.Received(i)
					g.do(r)
				})
			}
		}
		for k := range r.sent {
			delivered := !slices.Contains(g.mail[streamOf(&r.x.Sends[k].Message)], letter{r, k})
			if r.sent[k] && !r.over[k] && delivered {
				list = append(list, func() {
					r.over[k] = true
					r.m.Sent(k)
					g.do(r)
				})
			}
		}
	}
	return list
}

func streamOf(m *compile.Message) stream { return stream{m.Src, m.Dst, m.Round, m.Port} }

// check compares what all ranks have computed with the plan's transfer matrix.
func (g *group) check(p plan.Plan) {
	m, err := plan.Materialize(p)
	if err != nil {
		g.t.Fatal(err)
	}
	memories, err := verify.Trace(g.t.Context(), m)
	if err != nil {
		g.t.Fatal(err)
	}
	f := p.Info().Field
	n := f.SymbolBytes()
	for _, r := range g.ranks {
		if !r.m.Complete() || !r.m.Settled() || r.m.Missing() != (run.Activity{}) {
			g.t.Fatalf("rank %d waits for %+v, and nothing more happens", r.x.Rank, r.m.Missing())
		}
		for what, list := range map[string][]bool{"receives": r.asked, "sends": r.sent, "steps": r.steps} {
			if slices.Contains(list, false) {
				g.t.Fatalf("rank %d: %s were left out: %v", r.x.Rank, what, list)
			}
		}
		for i, proc := range r.x.Processors {
			for o := proc.Outputs.First; o < proc.Outputs.End; o++ {
				k := r.x.First + i
				slot := m.Programs[k].Outputs[o-proc.Outputs.First]
				for row := range m.Common.Rows {
					got, want := field.Symbol(f, r.memory[r.x.Outputs[o].Element][row*n:][:n]), memories[k].Coefficient(slot, row)
					if got != want {
						g.t.Fatalf("processor %d, output %d: %v times packet %d, want %v", k, o, got, row, want)
					}
				}
			}
		}
	}
}

var plans = []struct {
	algorithm, field, matrix string
	k, ports                 int
	ranks                    []int
}{
	{"universal", "2^8", "random:1", 16, 1, []int{1, 3, 16}},
	{"universal", "257", "random:1", 17, 2, []int{4, 17}},
	{"bruck-allgather", "17", "random:1", 13, 1, []int{13}},
	{"dft", "257", "dft", 16, 1, []int{4, 16}},
	{"additive-fft", "2^16", "lch", 16, 1, []int{1, 8}},
	{"exchange", "2^8", "random:1", 7, 1, []int{2, 7}},
	{"cauchy", "2^8", "cauchy", 16, 1, []int{16}},
}

// TestRandomOrders has messages arrive and sends end in random orders: every rank computes its part of the plan's matrix, in
// segments one after the other.
func TestRandomOrders(t *testing.T) {
	for _, c := range plans {
		p := algotest.Compile(t, c.algorithm, c.field, c.matrix, c.k, c.ports)
		for _, ranks := range c.ranks {
			t.Run(fmt.Sprint(c.algorithm, " ranks=", ranks), func(t *testing.T) {
				g := newGroup(t, p, ranks)
				for seed := range uint64(20) {
					rng := rand.New(rand.NewPCG(seed, 1))
					g.begin(p)
					for {
						events := g.events()
						if len(events) == 0 {
							break
						}
						events[rng.IntN(len(events))]()
					}
					g.check(p)
				}
			})
		}
	}
}

// TestAhead has processor 0 send in 30 rounds and receive in rounds 0, 1 and 12. Processor 1 asks for the messages of 8 rounds,
// from the oldest one that is missing on. What processor 0 sends waits for the last message that it was to have 8 rounds ago,
// also where that came in an earlier round.
func TestAhead(t *testing.T) {
	programs := []*plan.Program{{Proc: 0, Inputs: 1}, {Proc: 1, Inputs: 1}}
	for r := range 30 {
		to, from := plan.Round{Sends: []plan.Send{{Dst: 1, Slots: []plan.Slot{0}}}}, plan.Round{Recvs: []plan.Recv{{Src: 0, Count: 1}}}
		if r == 0 || r == 1 || r == 12 {
			to.Recvs = []plan.Recv{{Src: 1, Count: 1}}
			from.Sends = []plan.Send{{Dst: 0, Slots: []plan.Slot{0}}}
		}
		programs[0].Rounds, programs[1].Rounds = append(programs[0].Rounds, to), append(programs[1].Rounds, from)
	}
	p := &plan.Materialized{
		Common:   plan.Info{Algorithm: "many rounds", Field: fieldtest.Parse(t, "2^8"), Processors: 2, Rows: 2, Ports: 1, Phases: []plan.Phase{{Name: "all", Rounds: 30}}},
		Programs: programs, Rows: [][]int{{0}, {1}}, Columns: [][]int{{}, {}},
	}
	if err := plan.Validate(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	type step struct{ received, want int }
	for rank, c := range []struct {
		counts run.Action
		steps  []step
	}{
		{run.Send, []step{{-1, 8}, {0, 9}, {1, 20}, {2, 30}}},
		{run.Receive, []step{{-1, 8}, {1, 8}, {0, 10}, {3, 10}, {2, 12}, {4, 13}}},
	} {
		x, err := compile.Prepare(t.Context(), p, rank, 2, false)
		if err != nil {
			t.Fatal(err)
		}
		m := run.New(x)
		m.Begin()
		count := 0
		for _, s := range c.steps {
			if s.received >= 0 {
				m.Received(s.received)
			}
			for do := m.Next(); do.Action != run.Wait; do = m.Next() {
				if do.Action == c.counts {
					count++
				}
			}
			if count != s.want {
				t.Errorf("rank %d after message %d: %d, want %d", rank, s.received, count, s.want)
			}
		}
	}
}
