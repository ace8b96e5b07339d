package universal

import (
	"slices"

	"volley/algo/schedule"
	"volley/plan"
)

// Rectangular is the universal step for groups of which some members have no packet,
// or want no result: packets that do not exist, sums of none and sums that nobody
// wants are left out.
//
//	problem  every matrix with a row or column for some of the members of a group
//	cost     at most that of [Step] on groups of the largest size
//	source   [Step]
type Rectangular struct{ *Step }

// A SparseGroup is a group in which some members are sources and some are sinks, as one
// of them sees it. At is asked for the entries of sources and sinks only.
type SparseGroup struct {
	schedule.Group
	Has   func(i int) bool // whether member i has a packet; some member has
	Wants func(i int) bool // whether it wants a result
}

// A heldPacket is the packet of the member so far back.
type heldPacket struct{ back, slot int }

// Encode writes the rounds of one member, whose packet lies in slot in if it has one,
// and returns the slot of its result, or -1.
func (s Rectangular) Encode(b *schedule.Builder, g SparseGroup, in plan.Slot) plan.Slot {
	held := s.gather(b, g, in)
	strides := (g.Size + s.m - 1) / s.m
	received := map[int][]plan.Slot{}
	terms := func(l int) int {
		n := len(received[l])
		for _, h := range held {
			if l*s.m+h.back < g.Size {
				n++
			}
		}
		return n
	}
	total := func(l int) func() plan.Combination {
		return func() plan.Combination {
			var c schedule.Sum
			for _, h := range held {
				if l*s.m+h.back < g.Size {
					c.Add(h.slot, g.At(g.Around(-h.back), g.Around(l*s.m)))
				}
			}
			c.AddAll(received[l])
			return plan.Combination(c)
		}
	}
	for t, st := range slices.Backward(s.shoot) {
		for port, c := range st.Chunks {
			if c = c.Cut(strides); c.Count <= 0 {
				continue
			}
			var slots []plan.Slot
			for _, l := range s.sums(g, g.Index, t, c) {
				slots = append(slots, b.Compute(terms(l), total(l)))
			}
			if len(slots) > 0 {
				b.Send(port, g.Member(g.Around(c.At*s.m)), slots)
			}
		}
		for port, c := range st.Chunks {
			if c = c.Cut(strides); c.Count <= 0 {
				continue
			}
			back := g.Around(-c.At * s.m)
			if list := s.sums(g, back, t, c); len(list) > 0 {
				for i, slot := range b.Receive(port, g.Member(back), len(list)) {
					l := list[i] - c.At
					received[l] = append(received[l], slot)
				}
			}
		}
		b.EndRound()
	}
	if !g.Wants(g.Index) {
		return -1
	}
	return b.Compute(terms(0), total(0))
}

// gather is [schedule.Gather] of the packets that exist.
func (s Rectangular) gather(b *schedule.Builder, g SparseGroup, in plan.Slot) []heldPacket {
	window := min(s.m, g.Size)
	var held []heldPacket
	if g.Has(g.Index) {
		held = append(held, heldPacket{0, in})
	}
	for _, st := range s.prepare {
		for port, c := range st.Chunks {
			c = c.Cut(window)
			var slots []plan.Slot
			for _, h := range held {
				if h.back < c.Count {
					slots = append(slots, h.slot)
				}
			}
			if len(slots) > 0 {
				b.Send(port, g.Member(g.Around(c.At)), slots)
			}
		}
		for port, c := range st.Chunks {
			c = c.Cut(window)
			var backs []int
			for back := c.At; back < c.At+c.Count; back++ {
				if g.Has(g.Around(-back)) {
					backs = append(backs, back)
				}
			}
			if len(backs) > 0 {
				for i, slot := range b.Receive(port, g.Member(g.Around(-c.At)), len(backs)) {
					held = append(held, heldPacket{backs[i], slot})
				}
			}
		}
		b.EndRound()
	}
	return held
}

// sums returns which of the sums in a chunk member i sends in stage t of the shoot
// phase: those that are wanted, and of something.
func (s Rectangular) sums(g SparseGroup, i, t int, c schedule.Chunk) []int {
	var list []int
	for l := c.At; l < c.At+c.Count; l++ {
		if g.Wants((i+l*s.m)%g.Size) && s.some(g, i, t+1, l) {
			list = append(list, l)
		}
	}
	return list
}

// some reports whether member i has anything to add up for the member l strides on
// when the rounds from t on, which come first, are over.
func (s Rectangular) some(g SparseGroup, i, t, l int) bool {
	for back := range min(s.m, g.Size-l*s.m) {
		if g.Has((i - back + g.Size) % g.Size) {
			return true
		}
	}
	strides := (g.Size + s.m - 1) / s.m
	for u := t; u < len(s.shoot); u++ {
		for _, c := range s.shoot[u].Chunks {
			if c = c.Cut(strides); l < c.Count {
				from := ((i-c.At*s.m)%g.Size + g.Size) % g.Size
				if s.some(g, from, u+1, c.At+l) {
					return true
				}
			}
		}
	}
	return false
}
