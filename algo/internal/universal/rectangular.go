package universal

import (
	"volley/algo/schedule"
	"volley/field"
	"volley/plan"
)

// Rectangular is the universal step for groups of which some processors have no packet, or want no result: packets that
// do not exist, sums of none and sums that nobody wants are left out.
//
//	problem  every matrix with a row or column for some of the processors of a group
//	cost     at most that of [Step] on groups of the largest size
//	source   [Step]
type Rectangular struct{ *Step }

// A SparseGroup is a group in which some processors are sources and some are sinks. At is asked for their entries only.
type SparseGroup struct {
	schedule.Group
	Holds func(i int) bool // whether the processor at i has a packet; one has
	Wants func(i int) bool // whether it wants a result
}

// Encode writes the rounds of a processor, with its packet in slot input if any, and returns its result's slot or -1.
func (s Rectangular) Encode(b *schedule.Builder, g SparseGroup, input plan.Slot) plan.Slot {
	var inputs []plan.Slot
	if g.Holds(g.Index) {
		inputs = []plan.Slot{input}
	}
	gathered := gather(b, g.Group, s.prepare, 1, min(s.m, g.Size), inputs, func(i, _, offset int) bool {
		return g.Holds((i - offset + g.Size) % g.Size)
	})
	strides := schedule.Ceil(g.Size, s.m)
	result := b.Transposed(func(forward *schedule.Builder) (outputs []plan.Slot, sums [][]schedule.Addend) {
		var wanted []plan.Slot
		if g.Wants(g.Index) {
			wanted = forward.Inputs(1)
		}
		for _, h := range gather(forward, g.Group, s.shoot, -s.m, strides, wanted, func(i, t, l int) bool {
			return g.Wants((i+l*s.m)%g.Size) && s.contributes(b, g, i, t+1, l)
		}) {
			outputs, sums = append(outputs, h.slot), append(sums, s.sum(b, g, gathered, h.offset*s.m))
		}
		return outputs, sums
	})
	if len(result) == 0 {
		return -1
	}
	return result[0]
}

// sum is [schedule.SlotWindow.Sums] of the packets that exist.
func (s Rectangular) sum(b *schedule.Builder, g SparseGroup, gathered []windowPacket, offset int) []schedule.Addend {
	var slots, offsets []int
	for _, h := range gathered {
		if b.Steps(1); offset+h.offset < g.Size {
			slots, offsets = append(slots, h.slot), append(offsets, h.offset)
		}
	}
	if slots == nil {
		return nil
	}
	return schedule.Weighted(slots, func(i int) field.Element { return g.At(g.Around(-offsets[i]), g.Around(offset)) })
}

// A windowPacket is the packet of the processor so many strides back.
type windowPacket struct{ offset, slot int }

// gather is [schedule.Gather] of packets that exist: in stage t the processor at i gets that of an offset if comes says
// so.
func gather(b *schedule.Builder, g schedule.Group, stages []schedule.WindowRound, stride, limit int, inputs []plan.Slot,
	comes func(i, t, offset int) bool) []windowPacket {
	var gathered []windowPacket
	if inputs != nil {
		gathered = append(gathered, windowPacket{0, inputs[0]})
	}
	for t, st := range stages {
		for port, c := range st.Ranges {
			c = c.Cut(limit)
			receiver := g.Around(c.Offset * stride)
			var slots []plan.Slot
			for _, h := range gathered {
				if b.Steps(1); h.offset < c.Count && comes(receiver, t, c.Offset+h.offset) {
					slots = append(slots, h.slot)
				}
			}
			if len(slots) > 0 {
				b.Send(port, g.Processor(receiver), slots)
			}
		}
		for port, c := range st.Ranges {
			c = c.Cut(limit)
			var offsets []int
			for offset := c.Offset; offset < c.Offset+c.Count; offset++ {
				b.Steps(1)
				if comes(g.Index, t, offset) {
					offsets = append(offsets, offset)
				}
			}
			if len(offsets) > 0 {
				for i, slot := range b.Receive(port, g.Processor(g.Around(-c.Offset*stride)), len(offsets)) {
					gathered = append(gathered, windowPacket{offsets[i], slot})
				}
			}
		}
		b.EndRound()
	}
	return gathered
}

// contributes reports whether the processor at i has anything to add up for the one l strides on after the rounds from t on.
func (s Rectangular) contributes(b *schedule.Builder, g SparseGroup, i, t, l int) bool {
	for offset := range min(s.m, g.Size-l*s.m) {
		b.Steps(1)
		if g.Holds((i - offset + g.Size) % g.Size) {
			return true
		}
	}
	strides := schedule.Ceil(g.Size, s.m)
	for u := t; u < len(s.shoot); u++ {
		for _, c := range s.shoot[u].Ranges {
			b.Steps(1)
			if c = c.Cut(strides); l < c.Count {
				sender := ((i-c.Offset*s.m)%g.Size + g.Size) % g.Size
				if s.contributes(b, g, sender, u+1, c.Offset+l) {
					return true
				}
			}
		}
	}
	return false
}
