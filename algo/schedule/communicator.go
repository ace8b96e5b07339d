package schedule

import (
	"slices"

	"volley/plan"
)

// A Communicator is the processors that add up parts of one packet, or all obtain one; at position 0 it begins or ends.
type Communicator struct {
	Size   int
	At     int               // this one's position
	Member func(pos int) int // the processor at a position
	Have   plan.Slot         // that of its own part; -1: none
}

// Broadcast writes broadcasts in communicators on (p+1)-ary trees, all at once, in as many rounds as the largest takes:
// C1 = C2 = clog(size). Position 0 of each has a packet, and all get it. A processor may be in two communicators if it
// is in the last position of one of them and the first of the other. It returns the slot of the packet of each.
func Broadcast(b *Builder, rounds []WindowRound, comms []Communicator) []plan.Slot {
	have := make([]plan.Slot, len(comms))
	for i, c := range comms {
		have[i] = c.Have
	}
	for _, st := range rounds { // positions below st.From have it
		for port, ch := range st.Chunks {
			for i, c := range comms {
				if c.At < ch.Count && c.At+ch.At < c.Size {
					b.Send(port, c.Member(c.At+ch.At), []plan.Slot{have[i]})
				}
			}
		}
		for port, ch := range st.Chunks {
			for i, c := range comms {
				if ch.At <= c.At && c.At < ch.At+ch.Count {
					have[i] = b.Receive(port, c.Member(c.At-ch.At), 1)[0]
				}
			}
		}
		b.EndRound()
	}
	return have
}

// Reduce is a transposed broadcast: it adds up parts and returns the sum's slot at position 0, and else -1.
func Reduce(b *Builder, rounds []WindowRound, comms []Communicator) plan.Slot {
	own := make([][]Addend, len(comms))
	lead := slices.IndexFunc(comms, func(c Communicator) bool { return c.At == 0 })
	for i, c := range comms {
		if c.Have >= 0 {
			own[i] = InSlot(c.Have)
		}
	}
	sums := b.Transposed(func(forward *Builder) ([]plan.Slot, [][]Addend) {
		comms := slices.Clone(comms)
		if lead >= 0 {
			comms[lead].Have = forward.Inputs(1)[0]
		}
		return Broadcast(forward, rounds, comms), own
	})
	if lead < 0 {
		return -1
	}
	return sums[0]
}
