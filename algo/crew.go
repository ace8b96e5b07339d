package algo

import (
	"slices"

	"volley/plan"
)

// A crew is the processors that add up parts of one packet, or that all obtain one,
// as one of them sees it. Position 0 is where it begins or ends.
type crew struct {
	size   int
	at     int               // this one's position
	member func(pos int) int // the processor at a position
	have   []plan.Slot       // its own part, piece by piece; nil: none
}

// spread broadcasts in crews on (p+1)-ary trees, all at once, in as many rounds as the
// largest crew takes: C1 = C2 = clog(size). Position 0 of each crew has a packet, and in the
// end all have it. A processor may be in two crews if it is in the last position of one of
// them and the first of the other. It returns, for each crew, the slot of the packet.
func spread(b *Builder, stages []stage, crews []crew) [][]plan.Slot {
	have := make([][]plan.Slot, len(crews))
	for i, c := range crews {
		if c.at == 0 {
			have[i] = c.have
		}
	}
	for _, st := range stages { // positions below st.from have it
		for port, ch := range st.chunks {
			for i, c := range crews {
				if c.at < ch.count && c.at+ch.at < c.size {
					b.Send(port, c.member(c.at+ch.at), have[i])
				}
			}
		}
		for port, ch := range st.chunks {
			for i, c := range crews {
				if ch.at <= c.at && c.at < ch.at+ch.count {
					have[i] = b.Receive(port, c.member(c.at-ch.at), 1)
				}
			}
		}
		b.EndRound()
	}
	return have
}

// reduce is a broadcast in crews transposed: it adds up their parts. It returns, for each
// crew, the slots of the sums, piece by piece, at position 0, and elsewhere nil.
func reduce(b *Builder, pieces int, crews []crew, spread func(b *Builder, crews []crew) [][]plan.Slot) [][]plan.Slot {
	var own [][]Addend
	leads := -1 // the crew in which this processor is at position 0
	for i, c := range crews {
		for piece := range pieces {
			if own = append(own, nil); c.have != nil {
				own[len(own)-1] = InSlot(c.have[piece])
			}
		}
		if c.at == 0 {
			leads = i
		}
	}
	sums := b.transposed(own, func(forward *Builder) []plan.Slot {
		crews := slices.Clone(crews)
		if leads >= 0 {
			crews[leads].have = forward.inputs(pieces)
		}
		return slices.Concat(spread(forward, crews)...)
	})
	list := make([][]plan.Slot, len(crews))
	if leads >= 0 {
		list[leads] = sums
	}
	return list
}
