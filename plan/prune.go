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
	u := &pruning{messages: m.Messages()}
	for _, prog := range m.Programs {
		u.memories = append(u.memories, memoryOf(prog))
	}
	u.findZeros()
	u.findNeeded()
	pruned := &Materialized{Common: m.Common, Rows: m.Rows, Columns: m.Columns}
	pruned.Common.Phases, pruned.Programs = u.rebuild(m.Common.PhaseOf())
	return pruned, nil
}

// A pruning has the memories of all processors, and the messages of each round.
type pruning struct {
	memories []*memory
	messages [][]Message
}

// A memory is what is known of each slot of a processor.
type memory struct {
	*Program
	first  []Slot // of what is computed in each round, and after the last
	zero   []bool // it is, whatever the packets are
	needed []bool // for a result, and not zero
	moved  []Slot // where it is in the pruned program
}

func memoryOf(prog *Program) *memory {
	x, next := &memory{Program: prog}, prog.Inputs
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
	return x
}

// computed returns what is computed in a round, or after the last.
func (x *memory) computed(t int) []Combination {
	if t < len(x.Rounds) {
		return x.Rounds[t].Compute
	}
	return x.Compute
}

// terms returns those of a combination that are not zero.
func (x *memory) terms(c Combination) Combination {
	return slices.DeleteFunc(slices.Clone(c), func(t Term) bool { return t.Coef == field.Element{} || x.zero[t.Slot] })
}

// messagesOf returns those of a round; after the last there are none.
func (u *pruning) messagesOf(t int) []Message {
	if t < len(u.messages) {
		return u.messages[t]
	}
	return nil
}

func (u *pruning) findZeros() {
	for t := range len(u.messages) + 1 {
		for _, x := range u.memories {
			for i, c := range x.computed(t) {
				x.zero[x.first[t]+i] = len(x.terms(c)) == 0
			}
		}
		for _, m := range u.messagesOf(t) {
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
	for t := len(u.messages); t >= 0; t-- {
		for _, m := range u.messagesOf(t) {
			for i, slot := range m.Slots {
				if u.memories[m.Dst].needed[m.Received+i] {
					u.memories[m.Src].needed[slot] = true
				}
			}
		}
		for _, x := range u.memories {
			for i, c := range x.computed(t) {
				if x.needed[x.first[t]+i] {
					for _, term := range x.terms(c) {
						x.needed[term.Slot] = true
					}
				}
			}
		}
	}
}

// rebuild writes the programs of what is needed, and the phases, of which each round has a name.
func (u *pruning) rebuild(phaseOf []string) (phases []Phase, programs []*Program) {
	writers := make([]*pruned, len(u.memories))
	for k, x := range u.memories {
		writers[k] = newPruned(x)
	}
	for t := range len(u.messages) + 1 {
		for _, w := range writers {
			w.compute(t)
		}
		sent := false
		for _, m := range u.messagesOf(t) {
			if slots := u.carried(m); len(slots) > 0 {
				writers[m.Src].send(m, slots)
				writers[m.Dst].receive(m, u.memories[m.Dst].needed)
				sent = true
			}
		}
		if !sent {
			continue // what is computed joins the next round
		}
		for _, w := range writers {
			w.endRound()
		}
		if last := len(phases) - 1; last >= 0 && phases[last].Name == phaseOf[t] {
			phases[last].Rounds++
		} else {
			phases = append(phases, Phase{phaseOf[t], 1})
		}
	}
	for _, w := range writers {
		programs = append(programs, w.finish())
	}
	return phases, programs
}

// carried returns the slots of the sender that the receiver needs.
func (u *pruning) carried(m Message) (slots []Slot) {
	for i, slot := range m.Slots {
		if u.memories[m.Dst].needed[m.Received+i] {
			slots = append(slots, slot)
		}
	}
	return slots
}

// A pruned is a program that is being written.
type pruned struct {
	*memory
	program Program
	round   Round
	next    Slot
}

func newPruned(x *memory) *pruned {
	w := &pruned{memory: x, program: Program{Proc: x.Proc, Inputs: x.Inputs}, next: x.Inputs}
	for i := range x.Inputs {
		x.moved[i] = i
	}
	return w
}

func (w *pruned) take(slot Slot) {
	w.moved[slot] = w.next
	w.next++
}

func (w *pruned) compute(t int) {
	for i, c := range w.computed(t) {
		if slot := w.first[t] + i; w.needed[slot] {
			terms := w.terms(c)
			for i := range terms {
				terms[i].Slot = w.moved[terms[i].Slot]
			}
			w.round.Compute = append(w.round.Compute, terms)
			w.take(slot)
		}
	}
}

func (w *pruned) send(m Message, slots []Slot) {
	moved := make([]Slot, len(slots))
	for i, slot := range slots {
		moved[i] = w.moved[slot]
	}
	w.round.Sends = append(w.round.Sends, Send{m.Port, m.Dst, moved})
}

func (w *pruned) receive(m Message, needed []bool) {
	r := Recv{Port: m.Port, Src: m.Src}
	for i := range m.Slots {
		if slot := m.Received + i; needed[slot] {
			w.take(slot)
			r.Count++
		}
	}
	w.round.Recvs = append(w.round.Recvs, r)
}

func (w *pruned) endRound() {
	slices.SortFunc(w.round.Sends, func(a, b Send) int { return cmp.Compare(a.Port, b.Port) })
	w.program.Rounds = append(w.program.Rounds, w.round)
	w.round = Round{}
}

func (w *pruned) finish() *Program {
	w.program.Compute = w.round.Compute
	for _, slot := range w.Outputs {
		if w.zero[slot] {
			w.program.Compute = append(w.program.Compute, Combination{})
			w.take(slot)
		}
		w.program.Outputs = append(w.program.Outputs, w.moved[slot])
	}
	return &w.program
}
