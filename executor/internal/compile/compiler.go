package compile

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"volley/field"
	"volley/internal/poll"
	"volley/plan"
)

// A compiler makes an executable: it follows the elements through the programs of a rank,
// as values.
type compiler struct {
	x        *Executable
	poller   *poll.Poller // of values and terms that are added or looked at
	field    field.Field
	planar   field.Planar    // unless nil, maps are those of planes
	programs []*plan.Program // of each processor

	// Lists have no pointers in them, and say where something is by its number. To fill memory takes page faults, in a
	// first run more time than all else, and the garbage collector has nothing to look for.
	values   []value
	terms    []term  // of all values
	batches  []batch // from 1
	maps     map[smallMatrix]field.Map
	entries  []coef          // of maps, and
	elements []field.Element // what those of one are
	short    bool            // codes fit into a coef; else there are
	coefs    []field.Element // by number, and
	numbers  map[field.Element]coef
	zero     int32 // the value that is zero, or -1
	rounds   []round
	steps    [][]int32 // the values that each has to compute or send
	ends     []int32   // the values of the outputs
	found    []int     // by sortedSources
}

// A round of the plan has messages of other ranks, with values for locations.
type round struct {
	number   int
	sends    []Send
	receives []Receive
}

// passes are what follows once the programs have been followed, in order.
var passes = []func(*compiler){
	(*compiler).inlineSums,   // sums are final, and it is known how often each is needed
	(*compiler).convert,      // when the number of operands tells whether planes pay
	(*compiler).assignSteps,  // which need every value, converted ones too
	(*compiler).assignMemory, // to what outlives its step
	(*compiler).order,        // and scratch memory to the rest
	(*compiler).locate,       // what messages and outputs are
}

// A value is an element: an input, one received, or a sum of others.
type value struct {
	kind        valueKind
	convert     Conversion // of its one source
	kept        bool       // in the memory of the segment
	uses        int32      // in sums
	firstTerm   int32      // of its terms, the first
	count       int32      // of these
	receive     int32      // with which it comes
	step        int32      // in which it is computed, or -1
	depth       int32      // operations that it is from what needs none
	last        int32      // batch that needs it
	converted   int32      // the value that it is converted to, or 0
	batch       int32      // that computes it
	nextInBatch int32      // the next value of its batch, or 0
	first       int32      // a batch of which it is the first source, or 0
	location    ElementOffset
}

type valueKind uint8

const (
	inputValue valueKind = iota
	receivedValue
	sumValue // of no terms: zero
)

type term struct {
	value int32
	coef  coef
}

// termsOf returns the terms of a value, which are looked at.
func (c *compiler) termsOf(id int32) []term {
	v := &c.values[id]
	c.poller.Steps(1 + int(v.count))
	return c.terms[v.firstTerm:][:v.count:v.count]
}

// A coef stands for a coefficient: its code where that is short, which keeps terms short.
type coef uint32

// The coefficients that are their own codes in every field.
const (
	zeroCoef coef = iota
	oneCoef
)

// coefOf returns what stands for an element.
func (c *compiler) coefOf(e field.Element) coef {
	if c.short || e == field.One || e.IsZero() {
		return coef(e[0])
	}
	if c.coefs == nil {
		c.coefs, c.numbers = []field.Element{{}, field.One}, map[field.Element]coef{}
	}
	x, ok := c.numbers[e]
	if !ok {
		x = coef(len(c.coefs))
		c.numbers[e], c.coefs = x, append(c.coefs, e)
	}
	return x
}

// element is the inverse of coefOf.
func (c *compiler) element(x coef) field.Element {
	if c.short || x <= oneCoef {
		return field.Code(uint64(x))
	}
	return c.coefs[x]
}

// plus returns the sum of coefficients.
func (c *compiler) plus(a, b coef) coef { return c.coefOf(c.field.Add(c.element(a), c.element(b))) }

// add returns a new value.
func (c *compiler) add(v value) int32 {
	v.step = -1
	c.values = append(c.values, v)
	return int32(len(c.values) - 1)
}

// followTogether follows what all processors compute together. It subtracts what their own programs leave out.
func (c *compiler) followTogether(ctx context.Context, joint *plan.JointProgram) error {
	x := c.x
	x.Work = joint.Terms
	c.makeRoom(x.Inputs + joint.Combinations)
	slots := make([]int32, 0, x.Inputs+joint.Combinations)
	for range x.Inputs {
		slots = append(slots, c.add(value{kind: inputValue, kept: true}))
	}
	outputs, zeros, err := joint.Walk(ctx, func(sum plan.Combination) { slots = append(slots, c.sum(sum, slots)) })
	if err != nil {
		return err
	}
	for _, slot := range outputs {
		c.ends = append(c.ends, slots[slot])
	}
	for i, n := range zeros {
		x.Processors[i].MultiplyAdds -= n
	}
	return nil
}

// makeRoom makes room for so many values, and for inputs and outputs that are converted.
func (c *compiler) makeRoom(values int) {
	converted := c.x.Inputs + len(c.x.Outputs)
	c.values, c.terms = slices.Grow(c.values, values+converted), slices.Grow(c.terms, c.x.Work+converted)
	c.ends = make([]int32, 0, len(c.x.Outputs))
}

// follow runs the programs side by side, round by round, on values.
func (c *compiler) follow() error {
	x := c.x
	slots := make([][]int32, len(c.programs)) // of each program: values
	rounds, size := 0, 0
	for _, program := range c.programs {
		c.poller.Steps(1 + len(program.Compute))
		size += program.Inputs + len(program.Compute)
		for _, r := range program.Rounds {
			c.poller.Steps(1 + len(r.Compute))
			size += len(r.Compute)
		}
		rounds = max(rounds, len(program.Rounds))
		x.Work += program.Terms()
	}
	c.makeRoom(size)
	for i, program := range c.programs {
		slots[i] = make([]int32, 0, program.Inputs+len(program.Compute))
		for range program.Inputs {
			slots[i] = append(slots[i], c.add(value{kind: inputValue, kept: true}))
		}
	}
	sentTo, heardFrom := map[int32]bool{}, map[int32]bool{}
	for t := range rounds {
		r, err := c.followRound(t, slots)
		if err != nil {
			return err
		}
		for i := range r.sends {
			m := &r.sends[i]
			m.First, sentTo[m.Rank] = !sentTo[m.Rank], true
		}
		for i := range r.receives {
			m := &r.receives[i]
			m.First, heardFrom[m.Rank] = !heardFrom[m.Rank], true
		}
		if len(r.sends)+len(r.receives) > 0 {
			c.rounds = append(c.rounds, r)
		}
	}
	for i, program := range c.programs {
		for _, sum := range program.Compute {
			slots[i] = append(slots[i], c.sum(sum, slots[i]))
		}
		for _, slot := range program.Outputs {
			c.poller.Steps(1)
			c.ends = append(c.ends, slots[i][slot])
		}
	}
	return nil
}

// followRound adds the values of round t to the slots, and returns the messages of other
// ranks. Those of processors here take none.
func (c *compiler) followRound(t int, slots [][]int32) (round, error) {
	type port struct{ dst, port int }
	x := c.x
	k := x.Plan.Info().Processors
	local := map[port][]int32{} // messages between processors here
	r := round{number: t}
	for i, program := range c.programs {
		if t >= len(program.Rounds) {
			continue
		}
		for _, sum := range program.Rounds[t].Compute {
			slots[i] = append(slots[i], c.sum(sum, slots[i]))
		}
		for _, s := range program.Rounds[t].Sends {
			c.poller.Steps(1 + len(s.Slots))
			values := make([]int32, len(s.Slots))
			for n, slot := range s.Slots {
				values[n] = slots[i][slot]
			}
			if rank := RankOf(s.Dst, k, x.Ranks); rank != x.Rank {
				r.sends = append(r.sends, Send{Message: messageOf(x.First+i, s.Dst, rank, t, s.Port), Slots: values})
			} else {
				local[port{s.Dst, s.Port}] = values
			}
		}
	}
	for i, program := range c.programs {
		if t >= len(program.Rounds) {
			continue
		}
		for _, v := range program.Rounds[t].Recvs {
			c.poller.Steps(1 + v.Count)
			proc := x.First + i
			if rank := RankOf(v.Src, k, x.Ranks); rank != x.Rank {
				r.receives = append(r.receives, Receive{messageOf(v.Src, proc, rank, t, v.Port), int32(len(c.values)), int32(v.Count), nil})
				for range v.Count {
					slots[i] = append(slots[i], c.add(value{kind: receivedValue, kept: true}))
				}
				continue
			}
			values := local[port{proc, v.Port}]
			if len(values) != v.Count {
				return r, fmt.Errorf("processor %d: round %d: %d elements from processor %d on port %d, which sends %d: the plan is wrong",
					proc, t, v.Count, v.Src, v.Port, len(values))
			}
			slots[i] = append(slots[i], values...)
			delete(local, port{proc, v.Port})
		}
	}
	if len(local) > 0 {
		return r, fmt.Errorf("round %d: %d messages that nobody receives: the plan is wrong", t, len(local))
	}
	// Messages of one round, port and pair of ranks arrive in order: that of their senders. Both
	// ranks have to find the same one first.
	slices.SortStableFunc(r.sends, func(a, b Send) int { return int(cmp.Or(a.Port-b.Port, a.Src-b.Src)) })
	slices.SortStableFunc(r.receives, func(a, b Receive) int { return int(cmp.Or(a.Port-b.Port, a.Src-b.Src)) })
	return r, nil
}

// sum returns the value of a combination of the values in slots.
func (c *compiler) sum(x plan.Combination, slots []int32) int32 {
	c.poller.Steps(1 + len(x))
	start := len(c.terms)
	for _, t := range x {
		c.terms = append(c.terms, term{slots[t.Slot], c.coefOf(t.Coef)})
	}
	terms := c.tidy(c.terms[start:])
	c.terms = c.terms[:start+len(terms)]
	switch {
	case len(terms) == 0 && c.zero >= 0:
		return c.zero
	case len(terms) == 0:
		c.zero = int32(len(c.values))
	case len(terms) == 1 && terms[0].coef == oneCoef:
		c.terms = c.terms[:start]
		return terms[0].value
	}
	return c.add(value{kind: sumValue, firstTerm: int32(start), count: int32(len(terms))})
}

// byValue is the order of terms.
func byValue(a, b term) int { return int(a.value - b.value) }

// sortTerms puts terms in the order of their values.
func sortTerms(terms []term) {
	if !slices.IsSortedFunc(terms, byValue) {
		slices.SortStableFunc(terms, byValue)
	}
}

// tidy puts terms in the order of their values, adds up those of one value, and
// leaves out what is zero.
func (c *compiler) tidy(terms []term) []term {
	sortTerms(terms)
	kept := terms[:0]
	for _, t := range terms {
		if v := &c.values[t.value]; v.kind == sumValue && v.count == 0 {
			continue
		}
		if n := len(kept); n > 0 && kept[n-1].value == t.value {
			kept[n-1].coef = c.plus(kept[n-1].coef, t.coef)
			continue
		}
		kept = append(kept, t)
	}
	return slices.DeleteFunc(kept, func(t term) bool { return t.coef == zeroCoef })
}
