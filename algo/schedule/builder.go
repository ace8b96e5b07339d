package schedule

import (
	"slices"

	"volley/field"
	"volley/plan"
)

// A Builder writes one processor's program, round by round. Within a round,
// Compute and Send come before Receive, and Receive is called in port order.
type Builder struct {
	program plan.Program
	round   plan.Round
	slots   int
	terms   int         // of all combinations
	Field   field.Field // of all coefficients; nil where there are none
	Coding  bool        // false: only the schedule is wanted, combinations stay empty
}

// Compute makes the combination the next slot. It has so many terms where no
// coefficient is zero. When only the schedule is wanted the function is not called,
// so that a schedule costs no coefficients.
func (b *Builder) Compute(terms int, combination func() plan.Combination) plan.Slot {
	b.terms += terms
	var c plan.Combination
	if b.Coding {
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

// Inputs makes the processor's own packets, before anything else, and returns their
// slots.
func (b *Builder) Inputs(n int) []plan.Slot {
	b.slots, b.program.Inputs = n, n
	list := make([]plan.Slot, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// PerPiece writes a part of a program once for every piece of a packet: every slot,
// combination and message of what write does for one piece is there for each of them,
// next to each other, in the same rounds. The packet lies in slots in, if there is one,
// and the result in the slots returned. Write gets and returns -1 for none.
func (b *Builder) PerPiece(in []plan.Slot, pieces int, write func(one *Builder, in plan.Slot) plan.Slot) []plan.Slot {
	one := &Builder{Field: b.Field, Coding: b.Coding}
	packet := -1
	if in != nil {
		packet = one.Inputs(1)[0]
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

// An Addend is a part of a sum: a slot, or the terms of a combination that is not
// computed by itself.
type Addend struct {
	slot        plan.Slot
	terms       int // of the combination
	combination func() plan.Combination
}

// InSlot is the packet in a slot as an addend.
func InSlot(slot plan.Slot) []Addend { return []Addend{{slot: slot, terms: 1}} }

// Combined is a combination as an addend, of so many terms where no coefficient is zero.
func Combined(terms int, combination func() plan.Combination) []Addend {
	return []Addend{{terms: terms, combination: combination}}
}

// Total returns the slot of a sum of addends, of which there is one at least. Where that
// is a single slot nothing is computed.
func (b *Builder) Total(list []Addend) plan.Slot {
	if len(list) == 1 && list[0].combination == nil {
		return list[0].slot
	}
	terms := 0
	for _, a := range list {
		terms += a.terms
	}
	return b.Compute(terms, func() plan.Combination {
		c := make(Sum, 0, terms)
		for _, a := range list {
			if a.combination != nil {
				c = append(c, a.combination()...)
			} else {
				c.Add(a.slot, field.One)
			}
		}
		return plan.Combination(c)
	})
}

// Transposed writes a part of a program that only hands packets on, such as a broadcast,
// backwards: what it would send is received, what it would receive is sent, and what it
// would copy is added up. Write makes inputs and returns outputs of the part as it is
// forwards, -1 for none. Own has an input of the transposed part for each of these
// outputs, nil for none. Transposed returns the slot of a sum for each of these inputs.
func (b *Builder) Transposed(own [][]Addend, write func(forward *Builder) (outputs []plan.Slot)) []plan.Slot {
	forward := &Builder{}
	outputs := write(forward)
	sums := make([][]Addend, forward.slots)
	for i, slot := range outputs {
		if slot >= 0 {
			sums[slot] = append(sums[slot], own[i]...)
		}
	}
	end := forward.slots
	for _, r := range slices.Backward(forward.program.Rounds) {
		for _, x := range r.Recvs {
			end -= x.Count
		}
		at := end
		for _, x := range r.Recvs {
			slots := make([]plan.Slot, x.Count)
			for i := range slots {
				slots[i] = b.Total(sums[at+i])
			}
			at += x.Count
			b.Send(x.Port, x.Src, slots)
		}
		for _, x := range r.Sends {
			for i, slot := range b.Receive(x.Port, x.Dst, len(x.Slots)) {
				sums[x.Slots[i]] = append(sums[x.Slots[i]], InSlot(slot)...)
			}
		}
		b.EndRound()
	}
	slots := make([]plan.Slot, forward.program.Inputs)
	for i := range slots {
		slots[i] = b.Total(sums[i])
	}
	return slots
}

// A Sum collects the terms of a combination. Zero coefficients are left out:
// they would be work without effect.
type Sum plan.Combination

// Add adds a term.
func (s *Sum) Add(slot plan.Slot, coef field.Element) {
	if !coef.IsZero() {
		*s = append(*s, plan.Term{Slot: slot, Coef: coef})
	}
}

// AddAll adds the slots as they are, with coefficient one.
func (s *Sum) AddAll(slots []plan.Slot) {
	for _, slot := range slots {
		s.Add(slot, field.One)
	}
}
