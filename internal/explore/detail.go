package explore

import (
	"context"
	"fmt"

	"volley/field"
	"volley/matrix"
	"volley/plan"
)

// detail is every message and every slot of a plan, with the numbers in it, and how its
// transfer matrix comes about.
type detail struct {
	Inputs      [][]int     `json:"inputs"`  // by processor: rows of A
	Outputs     [][]output  `json:"outputs"` // by processor
	RowNames    []string    `json:"row_names"`
	ColumnNames []string    `json:"column_names"`
	Rounds      [][]message `json:"rounds"`
	Memory      [][]slot    `json:"memory"` // by processor
	Matrix      [][]string  `json:"matrix"` // A

	// Partial has, for t = 0 … C1, the entries of the transfer matrix that change when
	// what was received in round t-1 is counted: at t = 0 all that is received is zero,
	// and in the end it is A.
	Partial    [][]entry  `json:"partial"`
	Equal      bool       `json:"equal"` // in the end, to A
	Mismatches []mismatch `json:"mismatches"`
}

type output struct {
	Column int `json:"column"`
	Slot   int `json:"slot"`
}

type message struct {
	Src      int   `json:"src"`
	Dst      int   `json:"dst"`
	Port     int   `json:"port"`
	Slots    []int `json:"slots"`    // of the sender
	Received []int `json:"received"` // of the receiver
}

// A slot is one packet in the memory of a processor: Σ Coefs[i]·x_Rows[i].
type slot struct {
	Round   int      `json:"round"` // in which it was received, or before which computed; -1: an input
	Kind    string   `json:"kind"`  // input, computed, received
	From    int      `json:"from"`  // of a received one, as Port
	Port    int      `json:"port"`
	Formula string   `json:"formula,omitempty"` // of a computed one
	Label   string   `json:"label"`
	Rows    []int    `json:"rows"`
	Coefs   []string `json:"coefs"`
	Columns []int    `json:"columns"` // of the coded packets that it goes into
}

// An entry of a matrix goes to the page as [row, column, value].
type entry struct {
	row, column int
	value       string
}

// MarshalJSON returns the list.
func (e entry) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "[%d,%d,%q]", e.row, e.column, e.value), nil // digits only
}

type mismatch struct {
	Row    int    `json:"row"`
	Column int    `json:"column"`
	Got    string `json:"got"`
	Want   string `json:"want"`
}

// A tracer runs a plan on unit vectors and keeps all that it sees.
type tracer struct {
	*plan.Materialized
	flow    *plan.Flow
	field   field.Field
	vectors [][][]field.Element // by processor and slot: the coefficients of every row
	detail  *detail
}

// detailOf follows every packet through the plan, which computes a. Memory is that of all
// slots times the rows of a. The error is that of a program that cannot be made, or of ctx.
func detailOf(ctx context.Context, p plan.Plan, a matrix.Matrix) (*detail, error) {
	m, err := plan.Materialize(p)
	if err != nil {
		return nil, err
	}
	flow, err := plan.Follow(m)
	if err != nil {
		return nil, err
	}
	t := &tracer{Materialized: m, flow: flow, field: m.Common.Field, detail: &detail{}}
	t.vectors = make([][][]field.Element, m.Common.Processors)
	t.detail.Memory = make([][]slot, m.Common.Processors)
	t.detail.Rounds, t.detail.Mismatches = [][]message{}, []mismatch{}
	for row := range m.Common.Rows {
		t.detail.RowNames = append(t.detail.RowNames, m.Common.InitialName(row))
	}
	for column := range m.Common.Columns {
		t.detail.ColumnNames = append(t.detail.ColumnNames, m.Common.CodedName(column))
	}
	t.run(ctx)
	t.fill(ctx, a)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return t.detail, nil
}

// slotsOf returns the slots of all memories together, as one processor of each class has
// them.
func slotsOf(p plan.Plan) int {
	n := 0
	for _, c := range p.Classes() {
		n += c.Count * p.Schedule(c.Representative).Slots
	}
	return n
}

// coefficientBytes is what a coefficient takes at most: a number, its text, and that of the
// answer.
func coefficientBytes(f field.Field) int64 {
	const number = 48
	return number + 2*int64(len(f.Order().String()))
}

// run runs all rounds, or those before ctx ends.
func (t *tracer) run(ctx context.Context) {
	for k, prog := range t.Programs {
		for i := range prog.Inputs {
			v := make([]field.Element, t.Common.Rows)
			v[t.Rows[k][i]] = field.One
			t.add(k, slot{Round: -1, Kind: "input"}, v)
		}
		t.detail.Inputs = append(t.detail.Inputs, list(t.Rows[k]))
	}
	for r := range t.Common.Rounds() {
		if ctx.Err() != nil {
			return
		}
		for k, prog := range t.Programs {
			t.compute(k, r, prog.Rounds[r].Compute)
		}
		t.detail.Rounds = append(t.detail.Rounds, t.exchange(r))
	}
	for k, prog := range t.Programs {
		t.compute(k, t.Common.Rounds(), prog.Compute)
		outputs := []output{}
		for o, s := range prog.Outputs {
			outputs = append(outputs, output{t.Columns[k][o], s})
		}
		t.detail.Outputs = append(t.detail.Outputs, outputs)
	}
}

// add adds a slot with the packet v to the memory of processor k.
func (t *tracer) add(k int, s slot, v []field.Element) {
	content := t.flow.Content(k, len(t.vectors[k]))
	s.Label, s.Columns = content.String(), list(content.Columns)
	s.Rows, s.Coefs = []int{}, []string{}
	for row, x := range v {
		if !x.IsZero() {
			s.Rows = append(s.Rows, row)
			s.Coefs = append(s.Coefs, x.String())
		}
	}
	t.vectors[k] = append(t.vectors[k], v)
	t.detail.Memory[k] = append(t.detail.Memory[k], s)
}

func (t *tracer) compute(k, round int, combinations []plan.Combination) {
	for _, c := range combinations {
		v := make([]field.Element, t.Common.Rows)
		for _, term := range c {
			t.addTo(v, term.Coef, t.vectors[k][term.Slot])
		}
		t.add(k, slot{Round: round, Kind: "computed", Formula: c.String()}, v)
	}
}

// addTo sets v = v + c·w.
func (t *tracer) addTo(v []field.Element, c field.Element, w []field.Element) {
	for i, x := range w {
		if !x.IsZero() {
			v[i] = t.field.Add(v[i], t.field.Mul(c, x))
		}
	}
}

// exchange delivers the messages of a round and returns them, by receiver.
func (t *tracer) exchange(round int) []message {
	sent := map[[2]int]plan.Send{} // by sender and port
	for k, prog := range t.Programs {
		for _, s := range prog.Rounds[round].Sends {
			sent[[2]int{k, s.Port}] = s
		}
	}
	messages := []message{}
	for k, prog := range t.Programs {
		for _, r := range prog.Rounds[round].Recvs {
			m := message{Src: r.Src, Dst: k, Port: r.Port, Slots: sent[[2]int{r.Src, r.Port}].Slots}
			for _, s := range m.Slots {
				m.Received = append(m.Received, len(t.vectors[k]))
				t.add(k, slot{Round: round, Kind: "received", From: r.Src, Port: r.Port}, t.vectors[r.Src][s])
			}
			messages = append(messages, m)
		}
	}
	return messages
}

// fill finds out how the transfer matrix comes about, and compares it with a.
func (t *tracer) fill(ctx context.Context, a matrix.Matrix) {
	if ctx.Err() != nil {
		return
	}
	rounds := t.Common.Rounds()
	t.detail.Partial = make([][]entry, rounds+1)
	for step := range t.detail.Partial {
		t.detail.Partial[step] = []entry{}
	}
	for row := range a.Rows() {
		line := make([]string, a.Cols())
		for column := range line {
			line[column] = a.At(row, column).String()
		}
		t.detail.Matrix = append(t.detail.Matrix, line)
	}
	pieces := t.Common.PieceCount()
	for k, prog := range t.Programs {
		if ctx.Err() != nil {
			return
		}
		for o, s := range prog.Outputs {
			column := t.Columns[k][o]
			counted := make([]field.Element, t.Common.Rows)
			for step, part := range t.parts(k, s) {
				for row, x := range part {
					if !x.IsZero() {
						counted[row] = t.field.Add(counted[row], x)
						t.detail.Partial[step] = append(t.detail.Partial[step], entry{row, column, counted[row].String()})
					}
				}
			}
			for row, got := range counted {
				var want field.Element // a packet's pieces are coded each for itself
				if row%pieces == column%pieces {
					want = a.At(row/pieces, column/pieces)
				}
				if got != want {
					t.detail.Mismatches = append(t.detail.Mismatches, mismatch{row, column, got.String(), want.String()})
				}
			}
		}
	}
	t.detail.Equal = len(t.detail.Mismatches) == 0
}

// parts splits the packet in a slot of processor k by when what it is made of came: part 0
// is made of the processor's inputs, part r+1 of what it received in round r.
func (t *tracer) parts(k int, s plan.Slot) [][]field.Element {
	memory := t.detail.Memory[k]
	weights := make([]field.Element, s+1) // of every slot in slot s, once the later ones are done
	weights[s] = field.One
	combinations := t.combinations(k)
	parts := make([][]field.Element, t.Common.Rounds()+1)
	for i := range parts {
		parts[i] = make([]field.Element, t.Common.Rows)
	}
	for i := s; i >= 0; i-- {
		if weights[i].IsZero() {
			continue
		}
		if memory[i].Kind != "computed" {
			t.addTo(parts[memory[i].Round+1], weights[i], t.vectors[k][i])
			continue
		}
		for _, term := range combinations[i] {
			weights[term.Slot] = t.field.Add(weights[term.Slot], t.field.Mul(weights[i], term.Coef))
		}
	}
	return parts
}

// combinations returns those of processor k by slot.
func (t *tracer) combinations(k int) map[plan.Slot]plan.Combination {
	prog := t.Programs[k]
	of := map[plan.Slot]plan.Combination{}
	next := prog.Inputs
	take := func(combinations []plan.Combination) {
		for _, c := range combinations {
			of[next] = c
			next++
		}
	}
	for _, r := range prog.Rounds {
		take(r.Compute)
		for _, v := range r.Recvs {
			next += v.Count
		}
	}
	take(prog.Compute)
	return of
}
