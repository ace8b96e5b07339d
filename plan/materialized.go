package plan

import (
	"fmt"
	"slices"
)

// A Materialized plan holds every program in memory, as a JSON file does.
type Materialized struct {
	Common   Info
	Programs []*Program // by processor
	Rows     [][]int    // by processor and input
	Columns  [][]int    // by processor and output
}

// Materialize makes every program of p, all in memory. It returns the first error of [Plan].Program.
func Materialize(p Plan) (*Materialized, error) {
	info := p.Info()
	m := &Materialized{Common: info}
	for k := range info.Processors {
		prog, err := p.Program(k)
		if err != nil {
			return nil, fmt.Errorf("plan: program of processor %d: %w", k, err)
		}
		m.Programs = append(m.Programs, prog)
		m.Rows = append(m.Rows, indices(prog.Inputs, func(i int) int { return p.Row(k, i) }))
		m.Columns = append(m.Columns, indices(len(prog.Outputs), func(o int) int { return p.Column(k, o) }))
	}
	return m, nil
}

func indices(n int, index func(int) int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = index(i)
	}
	return list
}

// Info returns what the processors have in common.
func (m *Materialized) Info() Info { return m.Common }

// Schedule returns the schedule of the processor's program.
func (m *Materialized) Schedule(proc int) Schedule { return m.Programs[proc].Schedule() }

// Program returns the processor's program, which is not a copy.
func (m *Materialized) Program(proc int) (*Program, error) { return m.Programs[proc], nil }

// Classes returns a class for every processor.
func (m *Materialized) Classes() []Class {
	list := make([]Class, len(m.Programs))
	for k := range list {
		list[k] = Class{k, 1}
	}
	return list
}

// Row returns the row of A of an input.
func (m *Materialized) Row(proc, input int) int { return m.Rows[proc][input] }

// Column returns the column of A of an output.
func (m *Materialized) Column(proc, output int) int { return m.Columns[proc][output] }

// A Message is what one processor sends another in a round, and where it lies at both.
type Message struct {
	Src, Dst, Port int
	Slots          []Slot // of the sender
	Received       Slot   // of the receiver: the first of as many, one after the other
}

// Messages returns the messages of every round of a valid plan: by receiver, and as it receives them.
func (m *Materialized) Messages() [][]Message {
	rounds := make([][]Message, m.Common.Rounds())
	for k, prog := range m.Programs {
		next := prog.Inputs
		for t, round := range prog.Rounds {
			next += len(round.Compute)
			for _, r := range round.Recvs {
				rounds[t] = append(rounds[t], Message{r.Src, k, r.Port, m.sent(t, r), next})
				next += r.Count
			}
		}
	}
	return rounds
}

// sent returns the slots that the message received as r in round t carries.
func (m *Materialized) sent(t int, r Recv) []Slot {
	sends := m.Programs[r.Src].Rounds[t].Sends
	return sends[slices.IndexFunc(sends, func(s Send) bool { return s.Port == r.Port })].Slots
}
