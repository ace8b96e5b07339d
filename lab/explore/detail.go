package explore

import (
	"context"
	"fmt"

	"volley/field"
	"volley/matrix"
	"volley/plan"
	"volley/verify"
)

// detail is every slot of a plan, with the numbers in it, and how its transfer matrix comes about.
type detail struct {
	Inputs      [][]int    `json:"inputs"`  // by processor: rows of A
	Outputs     [][]output `json:"outputs"` // by processor
	RowNames    []string   `json:"row_names"`
	ColumnNames []string   `json:"column_names"`
	Memory      [][]slot   `json:"memory"` // by processor
	Matrix      [][]string `json:"matrix"` // A

	// Partial has, for t = 0 … C1, the entries of the transfer matrix that change when what was received in round t-1
	// is counted: at t = 0 all that is received is zero, and in the end it is A.
	Partial    [][]entry  `json:"partial"`
	Mismatches []mismatch `json:"mismatches"` // with A in the end
}

type output struct {
	Column int `json:"column"`
	Slot   int `json:"slot"`
}

// A message has consecutive slots of the receiver.
type message struct {
	Src      int      `json:"src"`
	Dst      int      `json:"dst"`
	Port     int      `json:"port"`
	Slots    []int    `json:"slots"`    // of the sender
	Received int      `json:"received"` // the first slot of the receiver
	Labels   []string `json:"labels"`   // of the first mostLabels elements
}

// mostLabels is so many as a label on the page has room for, and a sentence that counts the rest.
const mostLabels = 16

// messagesOf returns what is sent, by round, and what people call it.
func messagesOf(m *plan.Materialized, flow *plan.Flow) [][]message {
	rounds := make([][]message, m.Common.Rounds())
	for r, round := range m.Messages() {
		rounds[r] = []message{}
		for _, x := range round {
			shown := message{Src: x.Src, Dst: x.Dst, Port: x.Port, Slots: x.Slots, Received: x.Received}
			for _, s := range x.Slots[:min(len(x.Slots), mostLabels)] {
				shown.Labels = append(shown.Labels, flow.Content(x.Src, s).String())
			}
			rounds[r] = append(rounds[r], shown)
		}
	}
	return rounds
}

// A slot is one packet in the memory of a processor: Σ Coefs[i]·x_Rows[i].
type slot struct {
	Round   int      `json:"round"` // in which it was received, or before which computed; -1: an input
	Kind    string   `json:"kind"`  // input, computed, received
	Source  int      `json:"from"`  // of a received one, as Port
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

// A tracer reads the detail off a plan that has run on unit vectors.
type tracer struct {
	*plan.Materialized
	flow     *plan.Flow
	memories []*verify.Memory
	sums     [][]plan.Combination // by processor and slot, of those computed
	detail   *detail
}

// detailOf follows every packet through the plan, which computes a. Memory is that of all
// slots times the rows of a. The error is that of ctx.
func detailOf(ctx context.Context, m *plan.Materialized, flow *plan.Flow, a matrix.Matrix) (*detail, error) {
	memories, err := verify.Trace(ctx, m)
	if err != nil {
		return nil, err
	}
	t := &tracer{m, flow, memories, make([][]plan.Combination, m.Common.Processors), &detail{Mismatches: []mismatch{}}}
	for row := range m.Common.Rows {
		t.detail.RowNames = append(t.detail.RowNames, m.Common.InitialName(row))
	}
	for column := range m.Common.Columns {
		t.detail.ColumnNames = append(t.detail.ColumnNames, m.Common.CodedName(column))
	}
	t.detail.Memory = make([][]slot, m.Common.Processors)
	for k := range m.Programs {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		t.remember(k)
	}
	if err := t.fill(ctx, a); err != nil {
		return nil, err
	}
	return t.detail, nil
}

// slotsOf returns the slots of all memories together, as one processor of each class has them.
func slotsOf(p plan.Plan) int {
	n := 0
	for _, c := range p.Classes() {
		n += c.Count * p.Schedule(c.Representative).Slots
	}
	return n
}

// remember lists what processor k holds, slot by slot, and where it came from.
func (t *tracer) remember(k int) {
	prog := t.Programs[k]
	for range prog.Inputs {
		t.add(k, slot{Round: -1, Kind: "input"}, nil)
	}
	for r, round := range prog.Rounds {
		t.addComputed(k, r, round.Compute)
		for _, v := range round.Recvs {
			for range v.Count {
				t.add(k, slot{Round: r, Kind: "received", Source: v.Src, Port: v.Port}, nil)
			}
		}
	}
	t.addComputed(k, t.Common.Rounds(), prog.Compute)
	outputs := []output{}
	for o, s := range prog.Outputs {
		outputs = append(outputs, output{t.Columns[k][o], s})
	}
	t.detail.Inputs = append(t.detail.Inputs, list(t.Rows[k]))
	t.detail.Outputs = append(t.detail.Outputs, outputs)
}

func (t *tracer) addComputed(k, round int, sums []plan.Combination) {
	for _, c := range sums {
		t.add(k, slot{Round: round, Kind: "computed", Formula: c.String()}, c)
	}
}

// add adds the next slot of processor k, and what it is computed by, if it is.
func (t *tracer) add(k int, s slot, sum plan.Combination) {
	next := len(t.sums[k])
	content := t.flow.Content(k, next)
	s.Label, s.Columns = content.String(), list(content.Columns)
	s.Rows, s.Coefs = []int{}, []string{}
	for row := range t.Common.Rows {
		if x := t.memories[k].Coefficient(next, row); !x.IsZero() {
			s.Rows = append(s.Rows, row)
			s.Coefs = append(s.Coefs, x.String())
		}
	}
	t.sums[k] = append(t.sums[k], sum)
	t.detail.Memory[k] = append(t.detail.Memory[k], s)
}

// fill finds out how the transfer matrix comes about, and compares it with a. The error is the cause of ctx.
func (t *tracer) fill(ctx context.Context, a matrix.Matrix) error {
	f := t.Common.Field
	for row := range a.Rows() {
		line := make([]string, a.Cols())
		for column := range line {
			line[column] = a.At(row, column).String()
		}
		t.detail.Matrix = append(t.detail.Matrix, line)
	}
	t.detail.Partial = make([][]entry, t.Common.Rounds()+1)
	for step := range t.detail.Partial {
		t.detail.Partial[step] = []entry{}
	}
	pieces := t.Common.PieceCount()
	for k, prog := range t.Programs {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for o, s := range prog.Outputs {
			column := t.Columns[k][o]
			counted := make([]field.Element, t.Common.Rows)
			for step, part := range t.parts(k, s) {
				for row, x := range part {
					if !x.IsZero() {
						counted[row] = f.Add(counted[row], x)
						t.detail.Partial[step] = append(t.detail.Partial[step], entry{row, column, counted[row].String()})
					}
				}
			}
			for row, got := range counted {
				var want field.Element
				if row%pieces == column%pieces {
					want = a.At(row/pieces, column/pieces)
				}
				if got != want {
					t.detail.Mismatches = append(t.detail.Mismatches, mismatch{row, column, got.String(), want.String()})
				}
			}
		}
	}
	return nil
}

// parts splits a slot of processor k: part 0 is made of its inputs, part r+1 of what it received in round r.
func (t *tracer) parts(k int, s plan.Slot) [][]field.Element {
	f, memory := t.Common.Field, t.detail.Memory[k]
	weights := make([]field.Element, s+1) // of every slot in slot s, once the later ones are done
	weights[s] = field.One
	parts := make([][]field.Element, t.Common.Rounds()+1)
	for i := range parts {
		parts[i] = make([]field.Element, t.Common.Rows)
	}
	for i := s; i >= 0; i-- {
		switch {
		case weights[i].IsZero():
		case memory[i].Kind == "computed":
			for _, term := range t.sums[k][i] {
				weights[term.Slot] = f.Add(weights[term.Slot], f.Mul(weights[i], term.Coef))
			}
		default:
			part := parts[memory[i].Round+1]
			for _, row := range memory[i].Rows {
				part[row] = f.Add(part[row], f.Mul(weights[i], t.memories[k].Coefficient(i, row)))
			}
		}
	}
	return parts
}
