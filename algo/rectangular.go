package algo

import (
	"slices"

	"volley/plan"
)

// rectangular is the universal step for groups of which some members have no packet,
// or want no result: packets that do not exist, sums of none and sums that nobody
// wants are left out.
//
//	problem  every matrix with a row or column for some of the members of a group
//	cost     at most that of [universal] on groups of the largest size
//	source   [universal]
type rectangular struct{ *universal }

// A part is a group of which some members are sources and some are sinks, as one of
// them sees it. At is asked for those only.
type part struct {
	Group
	has   func(i int) bool // whether member i has a packet; some member has
	wants func(i int) bool // whether it wants a result
}

// A heldPacket is the packet of the member so far back.
type heldPacket struct{ back, slot int }

// encode writes the rounds of one member, whose packet lies in slot in if it has one,
// and returns the slot of its result, or -1.
func (s rectangular) encode(b *Builder, g part, in plan.Slot) plan.Slot {
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
			var c sum
			for _, h := range held {
				if l*s.m+h.back < g.Size {
					c.add(h.slot, g.At(g.around(-h.back), g.around(l*s.m)))
				}
			}
			c.addAll(received[l])
			return plan.Combination(c)
		}
	}
	for t, st := range slices.Backward(s.shoot) {
		for port, c := range st.chunks {
			if c = c.cut(strides); c.count <= 0 {
				continue
			}
			var slots []plan.Slot
			for _, l := range s.sums(g, g.Index, t, c) {
				slots = append(slots, b.Compute(terms(l), total(l)))
			}
			if len(slots) > 0 {
				b.Send(port, g.Member(g.around(c.at*s.m)), slots)
			}
		}
		for port, c := range st.chunks {
			if c = c.cut(strides); c.count <= 0 {
				continue
			}
			back := g.around(-c.at * s.m)
			if list := s.sums(g, back, t, c); len(list) > 0 {
				for i, slot := range b.Receive(port, g.Member(back), len(list)) {
					l := list[i] - c.at
					received[l] = append(received[l], slot)
				}
			}
		}
		b.EndRound()
	}
	if !g.wants(g.Index) {
		return -1
	}
	return b.Compute(terms(0), total(0))
}

// gather is [gather] of the packets that exist.
func (s rectangular) gather(b *Builder, g part, in plan.Slot) []heldPacket {
	window := min(s.m, g.Size)
	var held []heldPacket
	if g.has(g.Index) {
		held = append(held, heldPacket{0, in})
	}
	for _, st := range s.prepare {
		for port, c := range st.chunks {
			c = c.cut(window)
			var slots []plan.Slot
			for _, h := range held {
				if h.back < c.count {
					slots = append(slots, h.slot)
				}
			}
			if len(slots) > 0 {
				b.Send(port, g.Member(g.around(c.at)), slots)
			}
		}
		for port, c := range st.chunks {
			c = c.cut(window)
			var backs []int
			for back := c.at; back < c.at+c.count; back++ {
				if g.has(g.around(-back)) {
					backs = append(backs, back)
				}
			}
			if len(backs) > 0 {
				for i, slot := range b.Receive(port, g.Member(g.around(-c.at)), len(backs)) {
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
func (s rectangular) sums(g part, i, t int, c chunk) []int {
	var list []int
	for l := c.at; l < c.at+c.count; l++ {
		if g.wants((i+l*s.m)%g.Size) && s.some(g, i, t+1, l) {
			list = append(list, l)
		}
	}
	return list
}

// some reports whether member i has anything to add up for the member l strides on
// when the stages from t on, which come first, are over.
func (s rectangular) some(g part, i, t, l int) bool {
	for back := range min(s.m, g.Size-l*s.m) {
		if g.has((i - back + g.Size) % g.Size) {
			return true
		}
	}
	strides := (g.Size + s.m - 1) / s.m
	for u := t; u < len(s.shoot); u++ {
		for _, c := range s.shoot[u].chunks {
			if c = c.cut(strides); l < c.count {
				from := ((i-c.at*s.m)%g.Size + g.Size) % g.Size
				if s.some(g, from, u+1, c.at+l) {
					return true
				}
			}
		}
	}
	return false
}
