package schedule

import (
	"volley/field"
	"volley/plan"
)

// A WindowRound is one round of a window schedule: the window of offsets grows from [0, Start) to [0, End), or shrinks
// the other way, and ranges hold the offsets in between, one for each port.
type WindowRound struct {
	Start, End int
	Ranges     []Range
}

// A Range is the offsets [Offset, Offset+Count).
type Range struct{ Offset, Count int }

// WindowRounds grows a window from 1 to m in clog(m) rounds: each round takes it (p+1)-fold, only the last one stops
// short. The new offsets are dealt to the ports in ranges of equal size, so that the round's largest message has
// ⌈(end-start)/p⌉ elements and all of them together ⌈(m-1)/p⌉.
func WindowRounds(m, ports int) []WindowRound {
	var list []WindowRound
	for start := 1; start < m; {
		end := min(m, start*(ports+1))
		s := WindowRound{Start: start, End: end}
		size := Ceil(end-start, ports)
		for offset := start; offset < end; offset += size {
			s.Ranges = append(s.Ranges, Range{offset, min(size, end-offset)})
		}
		list = append(list, s)
		start = end
	}
	return list
}

// Cut returns the part of the range below limit; its count is 0 or less when there is none.
func (r Range) Cut(limit int) Range { return Range{r.Offset, min(r.Count, limit-r.Offset)} }

// A SlotWindow is the slots of what the processors 0, 1, … places back have: a packet each, or a unit of several.
type SlotWindow []plan.Slot

// Sums returns what the window adds to each part of the result of the processor offset places on. With a unit of more
// than one packet entry i·unit + x of the group's matrix is that of part x of the packet at index i.
func (w SlotWindow) Sums(g Group, offset, unit int) [][]Addend {
	w = w[:max(0, min(len(w), (g.Size-offset)*unit))]
	sums := make([][]Addend, unit)
	for part := range sums {
		if len(w) > 0 {
			sums[part] = Weighted(w, func(i int) field.Element {
				return g.At(g.Around(-i/unit)*unit+i%unit, g.Around(offset)*unit+part)
			})
		}
	}
	return sums
}

// Gather runs the rounds as an allgather of windows: it returns the slots of what the processors 0 … limit-1 strides
// back have, in as many slots as the unit inputs. Rounds that would take the window beyond limit are empty.
func Gather(b *Builder, g Group, stages []WindowRound, stride, limit int, inputs []plan.Slot) SlotWindow {
	unit := len(inputs)
	gathered := append(make(SlotWindow, 0, limit*unit), inputs...)
	for _, st := range stages {
		for port, c := range st.Ranges {
			if c = c.Cut(limit); c.Count > 0 {
				b.Send(port, g.Processor(g.Around(c.Offset*stride)), gathered[:c.Count*unit:c.Count*unit])
			}
		}
		for port, c := range st.Ranges {
			if c = c.Cut(limit); c.Count > 0 {
				gathered = append(gathered, b.Receive(port, g.Processor(g.Around(-c.Offset*stride)), c.Count*unit)...)
			}
		}
		b.EndRound()
	}
	return gathered
}
