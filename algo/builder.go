package algo

import (
	"volley/field"
	"volley/plan"
)

// A Builder writes one processor's program, round by round. Within a round,
// Compute and Send come before Receive, and Receive is called in port order.
type Builder struct {
	program plan.Program
	round   plan.Round
	slots   int
	terms   int // of all combinations
	field   field.Field
	coding  bool // false: only the schedule is wanted, combinations stay empty
}

// Compute makes the combination the next slot. It has so many terms where no
// coefficient is zero. When only the schedule is wanted the function is not called,
// so that a schedule costs no coefficients.
func (b *Builder) Compute(terms int, combination func() plan.Combination) plan.Slot {
	b.terms += terms
	var c plan.Combination
	if b.coding {
		c = combination()
	}
	b.round.Compute = append(b.round.Compute, c)
	b.slots++
	return b.slots - 1
}

// Send sends the packets in slots to processor dst in this round.
func (b *Builder) Send(port, dst int, slots []plan.Slot) {
	b.round.Sends = append(b.round.Sends, plan.Send{Port: port, Dst: dst, Slots: slots})
}

// Receive receives count elements from processor src in this round and returns
// the slots that they take.
func (b *Builder) Receive(port, src, count int) []plan.Slot {
	b.round.Recvs = append(b.round.Recvs, plan.Recv{Port: port, Src: src, Count: count})
	slots := make([]plan.Slot, count)
	for i := range slots {
		slots[i] = b.slots
		b.slots++
	}
	return slots
}

// EndRound closes the round, which may be empty, and opens the next.
func (b *Builder) EndRound() {
	b.program.Rounds = append(b.program.Rounds, b.round)
	b.round = plan.Round{}
}

// finish returns the program with its outputs; what was computed since the last
// round ended is its final computation.
func (b *Builder) finish(outputs []plan.Slot) *plan.Program {
	b.program.Compute = b.round.Compute
	b.program.Outputs = outputs
	return &b.program
}

// schedule returns the schedule of the finished program.
func (b *Builder) schedule() plan.Schedule {
	s := b.program.Schedule()
	s.Terms = b.terms
	return s
}

// A sum collects the terms of a combination. Zero coefficients are left out:
// they would be work without effect.
type sum plan.Combination

func (s *sum) add(slot plan.Slot, coef field.Element) {
	if !coef.IsZero() {
		*s = append(*s, plan.Term{Slot: slot, Coef: coef})
	}
}

func (s *sum) addAll(slots []plan.Slot) {
	for _, slot := range slots {
		s.add(slot, field.One)
	}
}
