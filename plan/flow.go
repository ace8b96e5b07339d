package plan

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"volley/field"
)

// A Flow says, for every slot of a plan, which initial packets it is made of and which coded packets it goes into. It
// looks at which coefficients are zero and not at their values, so it is a picture, not a proof: see package verify.
type Flow struct {
	slots   [][]flowSlot     // by processor and slot
	results map[int]*big.Int // by column: the rows that reach it
	pieces  int
}

// A flowSlot has sets: bit i of rows is for row i.
type flowSlot struct {
	rows, columns *big.Int
	raw           bool
}

// Content describes what lies in one slot.
type Content struct {
	Rows     []int // of the initial packets it combines, ascending
	Columns  []int // of the coded packets it goes into, ascending
	Raw      bool  // it is an initial packet itself, unscaled
	Complete bool  // it holds all that its one coded packet is made of
	Pieces   int   // that rows and columns count, where they are no whole packets
}

// InitialName names the packet of a row, and CodedName that of a column: "x3", "y4", or "x3.0" for the first piece of x3.
func (i Info) InitialName(row int) string  { return packetName("x", row, i.Pieces) }
func (i Info) CodedName(column int) string { return packetName("y", column, i.Pieces) }

func packetName(letter string, index, pieces int) string {
	if pieces > 1 {
		return fmt.Sprintf("%s%d.%d", letter, index/pieces, index%pieces)
	}
	return fmt.Sprintf("%s%d", letter, index)
}

// String returns what people call the content: "x3" for an initial packet, "y4" for a coded packet, "y4(x0,x2..x3)" for
// the part of y4 that comes from x0, x2 and x3, "x0+x1" for a combination for several coded packets, "0" for nothing.
func (c Content) String() string {
	switch {
	case len(c.Rows) == 0:
		return "0"
	case c.Raw:
		return packetName("x", c.Rows[0], c.Pieces)
	case len(c.Columns) != 1:
		return c.ranges("+")
	case c.Complete:
		return packetName("y", c.Columns[0], c.Pieces)
	default:
		return fmt.Sprintf("%s(%s)", packetName("y", c.Columns[0], c.Pieces), c.ranges(","))
	}
}

// ranges lists packets, runs of three or more shortened to "x2..x5".
func (c Content) ranges(separator string) string {
	var parts []string
	for _, r := range Runs(c.Rows) {
		parts = append(parts, r.Named(Info{Pieces: c.Pieces}.InitialName))
	}
	return strings.Join(parts, separator)
}

// A Run is consecutive numbers.
type Run struct{ First, Count int }

// Named returns names of packets, such as "x4..x6".
func (r Run) Named(name func(int) string) string {
	if r.Count == 1 {
		return name(r.First)
	}
	return name(r.First) + ".." + name(r.First+r.Count-1)
}

// Runs splits ascending numbers into runs of one number, or of three or more.
func Runs(list []int) []Run {
	var runs []Run
	for i := 0; i < len(list); {
		n := 1
		for i+n < len(list) && list[i+n] == list[i]+n {
			n++
		}
		if n == 2 {
			n = 1
		}
		runs = append(runs, Run{list[i], n})
		i += n
	}
	return runs
}

// Follow traces every packet through the plan, which has to be valid. It takes memory in proportion to all slots times
// rows and columns, so it is for plans that people look at. It returns the errors of [Plan].Program.
func Follow(p Plan) (*Flow, error) {
	m, err := Materialize(p)
	if err != nil {
		return nil, err
	}
	f := &Flow{slots: make([][]flowSlot, len(m.Programs)), results: map[int]*big.Int{}, pieces: m.Common.Pieces}
	rounds := m.Messages()
	f.forward(m, rounds)
	f.backward(m, rounds)
	return f, nil
}

// Content returns what lies in a slot of a processor at the end of the plan.
func (f *Flow) Content(proc int, slot Slot) Content {
	s := f.slots[proc][slot]
	c := Content{Rows: numbers(s.rows), Columns: numbers(s.columns), Raw: s.raw, Pieces: f.pieces}
	if len(c.Columns) == 1 {
		c.Complete = s.rows.Cmp(f.results[c.Columns[0]]) == 0
	}
	return c
}

// forward collects the rows of every slot, round by round.
func (f *Flow) forward(m *Materialized, rounds [][]Message) {
	grow := func(k int, s flowSlot) {
		s.columns = new(big.Int)
		f.slots[k] = append(f.slots[k], s)
	}
	compute := func(k int, list []Combination) {
		for _, c := range list {
			s := flowSlot{rows: new(big.Int)}
			for _, term := range c {
				if !term.Coef.IsZero() {
					operand := f.slots[k][term.Slot]
					s.rows.Or(s.rows, operand.rows)
					s.raw = operand.raw && len(c) == 1 && term.Coef == field.One
				}
			}
			grow(k, s)
		}
	}
	for k, prog := range m.Programs {
		for i := range prog.Inputs {
			grow(k, flowSlot{rows: new(big.Int).SetBit(new(big.Int), m.Rows[k][i], 1), raw: true})
		}
	}
	for t, messages := range rounds {
		for k, prog := range m.Programs {
			compute(k, prog.Rounds[t].Compute)
		}
		// Round t's messages carry what was there before it received.
		for _, x := range messages {
			for _, slot := range x.Slots {
				sent := f.slots[x.Src][slot]
				grow(x.Dst, flowSlot{rows: sent.rows, raw: sent.raw})
			}
		}
	}
	for k, prog := range m.Programs {
		compute(k, prog.Compute)
		for o, slot := range prog.Outputs {
			f.results[m.Columns[k][o]] = f.slots[k][slot].rows
		}
	}
}

// backward collects the columns of every slot, last round first.
func (f *Flow) backward(m *Materialized, rounds [][]Message) {
	next := make([]Slot, len(m.Programs)) // slots from here on are done
	uncompute := func(k int, list []Combination) {
		for i := len(list) - 1; i >= 0; i-- {
			next[k]--
			result := f.slots[k][next[k]].columns
			for _, term := range list[i] {
				if !term.Coef.IsZero() {
					columns := f.slots[k][term.Slot].columns
					columns.Or(columns, result)
				}
			}
		}
	}
	for k, prog := range m.Programs {
		next[k] = len(f.slots[k])
		for o, slot := range prog.Outputs {
			columns := f.slots[k][slot].columns
			columns.SetBit(columns, m.Columns[k][o], 1)
		}
		uncompute(k, prog.Compute)
	}
	for t, messages := range slices.Backward(rounds) {
		for _, x := range messages {
			next[x.Dst] -= len(x.Slots)
			for i, slot := range x.Slots {
				columns := f.slots[x.Src][slot].columns
				columns.Or(columns, f.slots[x.Dst][x.Received+i].columns)
			}
		}
		for k, prog := range m.Programs {
			uncompute(k, prog.Rounds[t].Compute)
		}
	}
}

// numbers returns the numbers of a set, which is the bits of an integer.
func numbers(s *big.Int) (list []int) {
	for i := range s.BitLen() {
		if s.Bit(i) == 1 {
			list = append(list, i)
		}
	}
	return list
}
