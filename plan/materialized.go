package plan

import "fmt"

// A Materialized plan holds every program in memory: what a JSON file holds,
// and what a test changes to see a check fail.
type Materialized struct {
	Common   Info
	Programs []*Program // by processor
	Rows     [][]int    // by processor and input
	Columns  [][]int    // by processor and output
}

// Materialize makes every program of p. Its memory is that of all programs
// together. It returns the first error of [Plan].Program.
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

func indices(n int, of func(int) int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = of(i)
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
