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

// inputs makes the processor's own packets, before anything else, and returns their
// slots.
func (b *Builder) inputs(n int) []plan.Slot {
	b.slots, b.program.Inputs = n, n
	list := make([]plan.Slot, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// perPiece writes a part of a program once for every piece of a packet: every slot,
// combination and message of what write does for one piece is there for each of them,
// next to each other, in the same rounds. The packet lies in slots in, if there is one,
// and the result in the slots returned. Write gets and returns -1 for none.
func (b *Builder) perPiece(in []plan.Slot, pieces int, write func(one *Builder, in plan.Slot) plan.Slot) []plan.Slot {
	one := &Builder{field: b.field, coding: b.coding}
	packet := -1
	if in != nil {
		packet = one.inputs(1)[0]
	}
	result := write(one, packet)

	inputs, base := one.program.Inputs, b.slots
	slot := func(s plan.Slot, piece int) plan.Slot {
		if s < inputs {
			return in[piece]
		}
		return base + (s-inputs)*pieces + piece
	}
	compute := func(list []plan.Combination) {
		for _, c := range list {
			for piece := range pieces {
				var each plan.Combination
				for _, term := range c {
					each = append(each, plan.Term{Slot: slot(term.Slot, piece), Coef: term.Coef})
				}
				b.round.Compute = append(b.round.Compute, each)
			}
		}
	}
	for _, r := range one.program.Rounds {
		compute(r.Compute)
		for _, x := range r.Sends {
			slots := make([]plan.Slot, 0, len(x.Slots)*pieces)
			for _, s := range x.Slots {
				for piece := range pieces {
					slots = append(slots, slot(s, piece))
				}
			}
			b.Send(x.Port, x.Dst, slots)
		}
		for _, x := range r.Recvs {
			x.Count *= pieces
			b.round.Recvs = append(b.round.Recvs, x)
		}
		b.EndRound()
	}
	compute(one.round.Compute)
	b.slots += (one.slots - inputs) * pieces
	b.terms += one.terms * pieces

	if result < 0 {
		return nil
	}
	slots := make([]plan.Slot, pieces)
	for piece := range slots {
		slots[piece] = slot(result, piece)
	}
	return slots
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
