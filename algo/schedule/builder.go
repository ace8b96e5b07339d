package schedule

import (
	"slices"

	"volley/field"
	"volley/internal/poll"
	"volley/matrix"
	"volley/plan"
)

// A Builder writes one processor's program, round by round: Compute and Send, then Receive in port order.
type Builder struct {
	program plan.Program
	slots   int
	terms   int         // of all combinations
	Field   field.Field // of all coefficients; nil where there are none
	Coding  bool        // false: only the schedule is wanted, combinations stay empty

	// What rounds have, one after the other, as a list for each of them costs more than what is in it.
	compute []plan.Combination
	sends   []plan.Send
	recvs   []plan.Recv
	ended   [3]int      // how much of these belongs to rounds that have ended
	spare   []plan.Slot // from which lists of slots are cut

	poller *poll.Poller // of what is added; nil: nothing ends it

	backwards bool // whether totals are kept, for [Builder.Transposed]
	totals    []total
}

// A total is what [Builder.Total] has added up.
type total struct {
	slot  plan.Slot
	terms []Addend
}

// Steps counts steps of what adds nothing to the program, such as a search, so that a context can end it.
func (b *Builder) Steps(n int) { b.poller.Steps(n) }

// Ready makes what a layer takes long to make for the coefficients of a group, where these are wanted.
func (b *Builder) Ready(l matrix.Layer, group int) {
	if ctx := b.poller.Context(); ctx != nil && b.Coding {
		poll.Must(l.Ready(ctx, group))
	}
}

// Compute makes the combination the next slot. It has so many terms where no coefficient is zero. When only the
// schedule is wanted the function is not called, so that a schedule costs no coefficients.
func (b *Builder) Compute(terms int, combination func() plan.Combination) plan.Slot {
	b.Steps(1)
	b.terms += terms
	var c plan.Combination
	if b.Coding {
		c = combination()
	}
	b.compute = append(b.compute, c)
	b.slots++
	return b.slots - 1
}

// Send sends the packets in slots to processor dst in this round.
func (b *Builder) Send(port, dst int, slots []plan.Slot) {
	b.Steps(len(slots))
	b.sends = append(b.sends, plan.Send{Port: port, Dst: dst, Slots: slots})
}

// Receive receives count elements from processor src in this round and returns the slots that they take.
func (b *Builder) Receive(port, src, count int) []plan.Slot {
	b.Steps(count)
	b.recvs = append(b.recvs, plan.Recv{Port: port, Src: src, Count: count})
	slots := b.list(count)
	for i := range slots {
		slots[i] = b.slots
		b.slots++
	}
	return slots
}

// list returns a list of so many slots.
func (b *Builder) list(n int) []plan.Slot {
	if n > len(b.spare) {
		b.spare = make([]plan.Slot, max(n, 64))
	}
	list := b.spare[:n:n]
	b.spare = b.spare[n:]
	return list
}

// EndRound closes the round, which may be empty, and opens the next.
func (b *Builder) EndRound() {
	b.Steps(1)
	b.program.Rounds = append(b.program.Rounds, plan.Round{
		Compute: since(b.compute, &b.ended[0]), Sends: since(b.sends, &b.ended[1]), Recvs: since(b.recvs, &b.ended[2]),
	})
}

// since returns what a list has from an index on, nil for nothing, and moves the index to its end.
func since[T any](list []T, index *int) (part []T) {
	if n := len(list); n > *index {
		part = list[*index:n:n]
		*index = n
	}
	return part
}

// finish returns the program with its outputs; what was computed since the last round ended is its final computation.
func (b *Builder) finish(outputs []plan.Slot) *plan.Program {
	b.program.Compute = since(b.compute, &b.ended[0])
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
		b.Steps(1)
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
		b.Steps(1)
		terms += a.terms
	}
	slot := b.Compute(terms, func() plan.Combination {
		c := make(Sum, 0, terms)
		for _, a := range list {
			if a.combination != nil {
				b.Steps(a.terms)
				c = append(c, a.combination()...)
			}
			for i, slot := range a.slots {
				b.Steps(1)
				c.Add(slot, a.weight(i))
			}
		}
		return plan.Combination(c)
	})
	if b.backwards {
		b.totals = append(b.totals, total{slot, list})
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
// returns outputs of the part as it is forwards, -1 for none. Addends has an input of the transposed part for each of these
// outputs, nil for none. Transposed returns the slot of a sum for each of these inputs.
func (b *Builder) Transposed(write func(forward *Builder) (outputs []plan.Slot, addends [][]Addend)) []plan.Slot {
	forward := &Builder{backwards: true, poller: b.poller}
	outputs, addends := write(forward)
	sums := forward.roomForSums(outputs, addends)
	for i, slot := range outputs {
		if slot >= 0 {
			b.Steps(len(addends[i]))
			sums[slot] = append(sums[slot], addends[i]...)
		}
	}
	end := forward.slots
	scale := func(computed int) { // the computed slots of a round, which are its first
		for range computed {
			end--
			sum := b.Total(sums[end])
			for _, a := range forward.total(end) {
				for i, slot := range a.slots {
					b.Steps(1)
					addend := b.addend(sum)
					if a.coef != nil {
						addend.coef = func(int) field.Element { return a.coef(i) }
					}
					sums[slot] = append(sums[slot], addend)
				}
			}
		}
	}
	scale(len(forward.compute) - forward.ended[0])
	for _, r := range slices.Backward(forward.program.Rounds) {
		for _, x := range r.Recvs {
			end -= x.Count
		}
		start := end
		for _, x := range r.Recvs {
			slots := b.list(x.Count)
			for i := range slots {
				slots[i] = b.Total(sums[start+i])
			}
			start += x.Count
			b.Send(x.Port, x.Src, slots)
		}
		for _, x := range r.Sends {
			for i, slot := range b.Receive(x.Port, x.Dst, len(x.Slots)) {
				sums[x.Slots[i]] = append(sums[x.Slots[i]], b.addend(slot))
			}
		}
		b.EndRound()
		scale(len(r.Compute))
	}
	slots := b.list(forward.program.Inputs)
	for i := range slots {
		slots[i] = b.Total(sums[i])
	}
	return slots
}

// roomForSums returns an empty list for each slot, with room for all that [Builder.Transposed] adds up.
func (b *Builder) roomForSums(outputs []plan.Slot, addends [][]Addend) [][]Addend {
	counts, sum := make([]int, b.slots), 0
	count := func(slot plan.Slot, n int) {
		b.Steps(1)
		counts[slot] += n
		sum += n
	}
	for i, slot := range outputs {
		if slot >= 0 {
			count(slot, len(addends[i]))
		}
	}
	for _, x := range b.sends {
		for _, slot := range x.Slots {
			count(slot, 1)
		}
	}
	for _, t := range b.totals {
		for _, a := range t.terms {
			for _, slot := range a.slots {
				count(slot, 1)
			}
		}
	}
	sums, room := make([][]Addend, b.slots), make([]Addend, sum)
	for slot, n := range counts {
		b.Steps(1)
		sums[slot], room = room[:0:n], room[n:]
	}
	return sums
}

// total returns what was added up for a slot. It is asked for the last slot first.
func (b *Builder) total(slot plan.Slot) []Addend {
	last := len(b.totals) - 1
	if last < 0 || b.totals[last].slot != slot {
		return nil
	}
	list := b.totals[last].terms
	b.totals = b.totals[:last]
	return list
}

// addend is [InSlot].
func (b *Builder) addend(slot plan.Slot) Addend {
	list := b.list(1)
	list[0] = slot
	return Addend{slots: list, terms: 1}
}

// A Sum collects the terms of a combination. Zero coefficients are left out: they would be work without effect.
type Sum plan.Combination

// Add adds a term.
func (s *Sum) Add(slot plan.Slot, coef field.Element) {
	if !coef.IsZero() {
		*s = append(*s, plan.Term{Slot: slot, Coef: coef})
	}
}
