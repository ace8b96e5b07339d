// Package verify establishes what a plan computes, independently of the algorithm that made it, and whether a run has.
//
// A plan computes exactly one matrix, its transfer matrix: run it on unit vectors and read off the results. A plan is
// right exactly when that equals the matrix asked for. [Check] checks this; it takes K² symbols and more, so it is for
// tests and for people who want to be sure.
//
// A run on real packets is checked by random linear combinations: of all packets where they lie in one place, see
// [Relation], else by [Fingerprints] of a few bytes.
package verify

import (
	"bytes"
	"context"
	"fmt"

	"volley/field"
	"volley/internal/poll"
	"volley/matrix"
	"volley/plan"
)

// A Mismatch is an entry of the transfer matrix that is not the one asked for.
type Mismatch struct {
	Proc, Slot  int // whose output it is, and where it lies
	Row, Column int // the entry of A
	Got, Want   field.Element
}

func (m Mismatch) String() string {
	return fmt.Sprintf("processor %d, slot %d: coefficient of x%d in y%d is %v, want %v", m.Proc, m.Slot, m.Row, m.Column, m.Got, m.Want)
}

// maxMismatches bounds what a MismatchError holds.
const maxMismatches = 100

// A MismatchError lists entries that differ, at most 100 of them.
type MismatchError struct {
	Mismatches []Mismatch
	Count      int // of all that differ
}

// Error shows the first mismatch and how many others there are.
func (e *MismatchError) Error() string {
	s := "verify: " + e.Mismatches[0].String()
	if e.Count > 1 {
		s += fmt.Sprintf(" (and %d more)", e.Count-1)
	}
	return s
}

// Check checks that p obeys the rules of the model and computes a, exactly, over the field of both. It returns nil, a
// *plan.ValidationError, a *MismatchError, or an error when the shapes or fields of p and a differ or a program cannot
// be made, and the cause of ctx where that ends. Where p cuts packets into pieces, a may be of whole packets, all pieces of which are coded alike.
func Check(ctx context.Context, p plan.Plan, a matrix.Matrix) (err error) {
	defer poll.Catch(&err)
	info := p.Info()
	if info.Field.Name() != a.Field().Name() {
		return fmt.Errorf("verify: a plan over %s and a matrix over %s", info.Field.Name(), a.Field().Name())
	}
	pieces := 1
	if n := info.PieceCount(); info.Rows == n*a.Rows() && info.Columns == n*a.Cols() {
		pieces = n
	}
	if info.Rows != pieces*a.Rows() || info.Columns != pieces*a.Cols() {
		return fmt.Errorf("verify: a plan of %d rows and %d columns and a matrix of %d and %d", info.Rows, info.Columns, a.Rows(), a.Cols())
	}
	poll.Must(matrix.StructureOf(a).Ready(ctx))
	p = &remembered{poll.WithContext(ctx, p), map[int]*plan.Program{}}
	if err := plan.Validate(ctx, p); err != nil {
		return err
	}
	m, err := plan.Materialize(p)
	if err != nil {
		return err
	}
	memories, err := Trace(ctx, m)
	if err != nil {
		return err
	}
	var wrong MismatchError
	size := info.Field.SymbolBytes()
	column := make([]byte, info.Rows*size) // of A, as a packet
	steps := poll.New(ctx)
	for k, memory := range memories {
		for o, slot := range m.Programs[k].Outputs {
			j := m.Column(k, o)
			clear(column)
			for i := range a.Rows() {
				steps.Steps(1)
				e := a.At(i, j/pieces)
				if !field.Contains(info.Field, e) {
					return fmt.Errorf("verify: entry (%d, %d) of the matrix is %v, outside the field %s", i, j/pieces, e, info.Field.Name())
				}
				field.PutSymbol(info.Field, column[(i*pieces+j%pieces)*size:], e)
			}
			if !bytes.Equal(memory.slots[slot], column) {
				wrong.add(Mismatch{Proc: k, Slot: slot, Column: j}, memory, &Memory{memory.field, memory.bytes, [][]byte{column}})
			}
		}
	}
	if wrong.Count > 0 {
		return &wrong
	}
	return nil
}

// add adds what differs in the slot that x names from what is wanted, which is in slot 0.
func (e *MismatchError) add(x Mismatch, got, want *Memory) {
	for x.Row = range got.bytes / got.field.SymbolBytes() {
		x.Got, x.Want = got.Coefficient(x.Slot, x.Row), want.Coefficient(0, x.Row)
		if x.Got == x.Want {
			continue
		}
		e.Count++
		if len(e.Mismatches) < maxMismatches {
			e.Mismatches = append(e.Mismatches, x)
		}
	}
}

// A remembered plan makes every program once.
type remembered struct {
	plan.Plan
	programs map[int]*plan.Program
}

func (r *remembered) Program(proc int) (*plan.Program, error) {
	if p, ok := r.programs[proc]; ok {
		return p, nil
	}
	p, err := r.Plan.Program(proc)
	if err == nil {
		r.programs[proc] = p
	}
	return p, err
}

// A Memory is what lies in the slots of one processor, as combinations of the initial packets.
type Memory struct {
	field field.Field
	bytes int      // of a packet
	slots [][]byte // packets, symbol i of which is the coefficient of initial packet i
}

// Coefficient returns that of the initial packet of a row in a slot.
func (m *Memory) Coefficient(slot plan.Slot, row int) field.Element {
	return field.Symbol(m.field, m.slots[slot][row*m.field.SymbolBytes():])
}

func (m *Memory) compute(steps *poll.Poller, list []plan.Combination) {
	for _, c := range list {
		steps.Steps(1 + len(c))
		coefs := make([]field.Element, len(c))
		sources := make([][]byte, len(c))
		for i, term := range c {
			coefs[i], sources[i] = term.Coef, m.slots[term.Slot]
		}
		packet := make([]byte, m.bytes)
		m.field.Combine(packet, coefs, sources)
		m.slots = append(m.slots, packet)
	}
}

// Trace runs a valid plan on unit vectors and returns all memories in the end. The error is the cause of ctx.
func Trace(ctx context.Context, p *plan.Materialized) (memories []*Memory, err error) {
	defer poll.Catch(&err)
	steps := poll.New(ctx)
	f := p.Common.Field
	memories = make([]*Memory, p.Common.Processors)
	for k := range memories {
		memories[k] = &Memory{field: f, bytes: p.Common.Rows * f.SymbolBytes()}
		for i := range p.Programs[k].Inputs {
			steps.Steps(1)
			unit := make([]byte, memories[k].bytes)
			field.PutSymbol(f, unit[p.Row(k, i)*f.SymbolBytes():], field.One)
			memories[k].slots = append(memories[k].slots, unit)
		}
	}
	for t, messages := range p.Messages() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for k, prog := range p.Programs {
			memories[k].compute(steps, prog.Rounds[t].Compute)
		}
		for _, x := range messages {
			for _, slot := range x.Slots {
				steps.Steps(1)
				memories[x.Dst].slots = append(memories[x.Dst].slots, memories[x.Src].slots[slot])
			}
		}
	}
	for k, prog := range p.Programs {
		memories[k].compute(steps, prog.Compute)
	}
	return memories, nil
}
