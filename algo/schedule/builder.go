package schedule

import (
	"slices"

	"volley/field"
	"volley/plan"
)

// A Builder writes one processor's program, round by round: Compute and Send, then Receive in port order.
type Builder struct {
	program plan.Program
	round   plan.Round
	slots   int
	terms   int // of all combinations
	totals  map[plan.Slot][]Addend
	Field   field.Field // of all coefficients; nil where there are none
	Coding  bool        // false: only the schedule is wanted, combinations stay empty
}

// Compute makes the combination the next slot. It has so many terms where no coefficient is zero. When only the
// schedule is wanted the function is not called, so that a schedule costs no coefficients.
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

// Receive receives count elements from processor src in this round and returns the slots that they take.
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

// finish returns the program with its outputs; what was computed since the last round ended is its final computation.
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

// Inputs makes the processor's own packets, before anything else, and returns their slots.
func (b *Builder) Inputs(n int) []plan.Slot {
	b.slots, b.program.Inputs = n, n
	list := make([]plan.Slot, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// An Addend is a part of a sum: slots, weighted or not, or the terms of a combination that is not computed by itself.
type Addend struct {
	slots       []plan.Slot
	coef        func(i int) field.Element // of slots[i]; nil: one
	terms       int
	combination func() plan.Combination
}

// InSlot is the packet in a slot as an addend.
func InSlot(slot plan.Slot) []Addend { return Weighted([]plan.Slot{slot}, nil) }

// Weighted is the sum of coef(i) times slots[i] as an addend; coef nil: of slots as they are.
func Weighted(slots []plan.Slot, coef func(i int) field.Element) []Addend {
	return []Addend{{slots: slots, coef: coef, terms: len(slots)}}
}

// Combined is a combination as an addend, of so many terms where no coefficient is zero.
func Combined(terms int, combination func() plan.Combination) []Addend {
	return []Addend{{terms: terms, combination: combination}}
}

// Total returns the slot of a sum of addends, a packet of zeros for none. For a single slot nothing is computed.
func (b *Builder) Total(list []Addend) plan.Slot {
	if len(list) == 1 && len(list[0].slots) == 1 && list[0].coef == nil {
		return list[0].slots[0]
	}
	terms := 0
	for _, a := range list {
		terms += a.terms
	}
	slot := b.Compute(terms, func() plan.Combination {
		c := make(Sum, 0, terms)
		for _, a := range list {
			if a.combination != nil {
				c = append(c, a.combination()...)
			}
			for i, slot := range a.slots {
				c.Add(slot, a.weight(i))
			}
		}
		return plan.Combination(c)
	})
	if b.totals != nil {
		b.totals[slot] = list
	}
	return slot
}

func (a Addend) weight(i int) field.Element {
	if a.coef == nil {
		return field.One
	}
	return a.coef(i)
}

// Transposed writes a part of a program backwards: what the part would send is received, what it would receive is sent,
// and what it would copy is added up. Write makes inputs, computes by [Builder.Total] of slots, weighted or not, and
// returns outputs of the part as it is forwards, -1 for none. Own has an input of the transposed part for each of these
// outputs, nil for none. Transposed returns the slot of a sum for each of these inputs.
func (b *Builder) Transposed(write func(forward *Builder) (outputs []plan.Slot, own [][]Addend)) []plan.Slot {
	forward := &Builder{totals: map[plan.Slot][]Addend{}}
	outputs, own := write(forward)
	sums := make([][]Addend, forward.slots)
	for i, slot := range outputs {
		if slot >= 0 {
			sums[slot] = append(sums[slot], own[i]...)
		}
	}
	end := forward.slots
	scale := func(computed int) { // the computed slots of a round, which are its first
		for range computed {
			end--
			total := b.Total(sums[end])
			for _, a := range forward.totals[end] {
				for i, slot := range a.slots {
					addend := InSlot(total)
					if a.coef != nil {
						addend[0].coef = func(int) field.Element { return a.coef(i) }
					}
					sums[slot] = append(sums[slot], addend...)
				}
			}
		}
	}
	scale(len(forward.round.Compute))
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
		scale(len(r.Compute))
	}
	slots := make([]plan.Slot, forward.program.Inputs)
	for i := range slots {
		slots[i] = b.Total(sums[i])
	}
	return slots
}

// A Sum collects the terms of a combination. Zero coefficients are left out: they would be work without effect.
type Sum plan.Combination

// Add adds a term.
func (s *Sum) Add(slot plan.Slot, coef field.Element) {
	if !coef.IsZero() {
		*s = append(*s, plan.Term{Slot: slot, Coef: coef})
	}
}
