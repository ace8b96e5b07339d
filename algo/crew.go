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

// reduce adds up the parts of crews on (p+1)-ary trees, all at once, in as many rounds
// as the largest crew takes: C1 = C2 = clog(size). A processor may be in two crews if
// it is in the last position of one of them and the first of the other. It returns,
// for each crew, the slot of the sum at position 0, and elsewhere -1.
func reduce(b *Builder, stages []stage, crews []crew) []plan.Slot {
	parts := make([][]plan.Slot, len(crews))
	for i, c := range crews {
		parts[i] = slices.Clone(c.have)
	}
	for _, st := range slices.Backward(stages) {
		for i, c := range crews {
			for port, ch := range st.chunks {
				if ch.at <= c.at && c.at < ch.at+ch.count {
					b.Send(port, c.member(c.at-ch.at), []plan.Slot{b.total(parts[i])})
				}
			}
		}
		for port, ch := range st.chunks {
			for i, c := range crews {
				if c.at < ch.count && c.at+ch.at < c.size {
					parts[i] = append(parts[i], b.Receive(port, c.member(c.at+ch.at), 1)...)
				}
			}
		}
		b.EndRound()
	}
	sums := make([]plan.Slot, len(crews))
	for i, c := range crews {
		sums[i] = -1
		if c.at == 0 {
			sums[i] = b.total(parts[i])
		}
	}
	return sums
}

// spread is the reverse of [reduce]: position 0 of each crew has a packet, and in the
// end all have it. It returns, for each crew, the slot of the packet.
func spread(b *Builder, stages []stage, crews []crew) []plan.Slot {
	have := make([]plan.Slot, len(crews))
	for i, c := range crews {
		if c.at == 0 {
			have[i] = c.have[0]
		}
	}
	for _, st := range stages { // positions below st.from have it
		for port, ch := range st.chunks {
			for i, c := range crews {
				if c.at < ch.count && c.at+ch.at < c.size {
					b.Send(port, c.member(c.at+ch.at), []plan.Slot{have[i]})
				}
			}
		}
		for port, ch := range st.chunks {
			for i, c := range crews {
				if ch.at <= c.at && c.at < ch.at+ch.count {
					have[i] = b.Receive(port, c.member(c.at-ch.at), 1)[0]
				}
			}
		}
		b.EndRound()
	}
	return have
}

// total returns the slot of the sum of the slots, of which there is one at least.
func (b *Builder) total(slots []plan.Slot) plan.Slot {
	if len(slots) == 1 {
		return slots[0]
	}
	return b.Compute(len(slots), func() plan.Combination {
		var list sum
		list.addAll(slots)
		return plan.Combination(list)
	})
}
