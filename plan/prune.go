package plan

import (
	"cmp"
	"slices"

	"volley/field"
)

// Prune returns a valid plan that computes the same matrix without what its coefficients make useless: messages carry
// nothing that is always zero and nothing that no result needs, nothing is computed that is not used, and rounds without
// messages are gone. It makes all programs, in memory, and returns the error of [Materialize].
func Prune(p Plan) (*Materialized, error) {
	m, err := Materialize(p)
	if err != nil {
		return nil, err
	}
	u := &pruning{messages: append(m.Messages(), nil)} // after the last round there are none
	for _, prog := range m.Programs {
		u.memories = append(u.memories, memoryOf(prog))
	}
	u.findZeros()
	u.findNeeded()
	pruned := &Materialized{Common: m.Common, Rows: m.Rows, Columns: m.Columns}
	pruned.Common.Phases = u.rebuild(m.Common.PhaseOf())
	for _, x := range u.memories {
		pruned.Programs = append(pruned.Programs, x.finished())
	}
	return pruned, nil
}

// A pruning has the memories of all processors, and the messages of each round.
type pruning struct {
	memories []*memory
	messages [][]Message
}

// A memory is what is known of each slot of a processor, and its pruned program.
type memory struct {
	*Program
	first  []Slot // of what is computed in each round, and after the last
	zero   []bool // it is, whatever the packets are
	needed []bool // for a result, and not zero
	moved  []Slot // where it is in the pruned program

	pruned Program
	round  Round // that is being written
	next   Slot
}

func memoryOf(prog *Program) *memory {
	x, next := &memory{Program: prog, pruned: Program{Proc: prog.Proc, Inputs: prog.Inputs}}, prog.Inputs
	for _, r := range prog.Rounds {
		x.first = append(x.first, next)
		next += len(r.Compute)
		for _, received := range r.Recvs {
			next += received.Count
		}
	}
	x.first = append(x.first, next)
	next += len(prog.Compute)
	x.zero, x.needed, x.moved = make([]bool, next), make([]bool, next), make([]Slot, next)
	for i := range prog.Inputs {
		x.take(i)
	}
	return x
}

// take gives a slot the next place in the pruned program.
func (x *memory) take(slot Slot) {
	x.moved[slot] = x.next
	x.next++
}

// computed returns what is computed in a round, or after the last: the terms that are not zero.
func (x *memory) computed(t int) []Combination {
	list := x.Compute
	if t < len(x.Rounds) {
		list = x.Rounds[t].Compute
	}
	list = slices.Clone(list)
	for i, c := range list {
		list[i] = slices.DeleteFunc(slices.Clone(c), func(t Term) bool { return t.Coef == field.Element{} || x.zero[t.Slot] })
	}
	return list
}

func (u *pruning) findZeros() {
	for t, messages := range u.messages {
		for _, x := range u.memories {
			for i, c := range x.computed(t) {
				x.zero[x.first[t]+i] = len(c) == 0
			}
		}
		for _, m := range messages {
			for i, slot := range m.Slots {
				u.memories[m.Dst].zero[m.Received+i] = u.memories[m.Src].zero[slot]
			}
		}
	}
}

func (u *pruning) findNeeded() {
	for _, x := range u.memories {
		for _, slot := range x.Outputs {
			x.needed[slot] = !x.zero[slot]
		}
	}
	for t, messages := range slices.Backward(u.messages) {
		for _, m := range messages {
			for i, slot := range m.Slots {
				if u.memories[m.Dst].needed[m.Received+i] {
					u.memories[m.Src].needed[slot] = true
				}
			}
		}
		for _, x := range u.memories {
			for i, c := range x.computed(t) {
				for _, term := range c {
					x.needed[term.Slot] = x.needed[term.Slot] || x.needed[x.first[t]+i]
				}
			}
		}
	}
}

// rebuild writes the programs of what is needed, and returns the phases: each round had the name of one.
func (u *pruning) rebuild(phaseOf []string) (phases []Phase) {
	for t, messages := range u.messages {
		for _, x := range u.memories {
			x.compute(t)
		}
		sent := false
		for _, m := range messages {
			sent = u.move(m) || sent
		}
		if !sent {
			continue // what is computed joins the next round
		}
		for _, x := range u.memories {
			slices.SortFunc(x.round.Sends, func(a, b Send) int { return cmp.Compare(a.Port, b.Port) })
			x.pruned.Rounds, x.round = append(x.pruned.Rounds, x.round), Round{}
		}
		if last := len(phases) - 1; last >= 0 && phases[last].Name == phaseOf[t] {
			phases[last].Rounds++
		} else {
			phases = append(phases, Phase{phaseOf[t], 1})
		}
	}
	return phases
}

func (x *memory) compute(t int) {
	for i, c := range x.computed(t) {
		if slot := x.first[t] + i; x.needed[slot] {
			for i := range c {
				c[i].Slot = x.moved[c[i].Slot]
			}
			x.round.Compute = append(x.round.Compute, c)
			x.take(slot)
		}
	}
}

// move writes the message with what its receiver needs, and reports whether that is anything.
func (u *pruning) move(m Message) bool {
	src, dst := u.memories[m.Src], u.memories[m.Dst]
	var slots []Slot
	for i, slot := range m.Slots {
		if received := m.Received + i; dst.needed[received] {
			slots = append(slots, src.moved[slot])
			dst.take(received)
		}
	}
	if len(slots) == 0 {
		return false
	}
	src.round.Sends = append(src.round.Sends, Send{m.Port, m.Dst, slots})
	dst.round.Recvs = append(dst.round.Recvs, Recv{m.Port, m.Src, len(slots)})
	return true
}

// finished returns the program, with a packet of zeros for each result that is one.
func (x *memory) finished() *Program {
	x.pruned.Compute = x.round.Compute
	for _, slot := range x.Outputs {
		if x.zero[slot] {
			x.pruned.Compute = append(x.pruned.Compute, Combination{})
			x.take(slot)
		}
		x.pruned.Outputs = append(x.pruned.Outputs, x.moved[slot])
	}
	return &x.pruned
}
