package exchange

import (
	"slices"

	"volley/algo/schedule"
	"volley/plan"
)

// A communicator is the processors that add up parts of one packet, or all obtain one; at position 0 it begins or ends.
type communicator struct {
	Size      int
	Position  int               // this one's position
	Processor func(pos int) int // the processor at a position
	Slot      plan.Slot         // that of its own part; -1: none
}

// broadcast writes broadcasts in communicators on (p+1)-ary trees, all at once, in as many rounds as the largest takes:
// C1 = C2 = clog(size). Position 0 of each has a packet, and all get it. A processor may be in two communicators if it
// is in the last position of one of them and the first of the other. It returns the slot of the packet of each.
func broadcast(b *schedule.Builder, rounds []schedule.WindowRound, comms []communicator) []plan.Slot {
	slots := make([]plan.Slot, len(comms))
	for i, c := range comms {
		slots[i] = c.Slot
	}
	for _, st := range rounds { // positions below st.Start have it
		for port, ch := range st.Ranges {
			for i, c := range comms {
				if c.Position < ch.Count && c.Position+ch.Offset < c.Size {
					b.Send(port, c.Processor(c.Position+ch.Offset), []plan.Slot{slots[i]})
				}
			}
		}
		for port, ch := range st.Ranges {
			for i, c := range comms {
				if ch.Offset <= c.Position && c.Position < ch.Offset+ch.Count {
					slots[i] = b.Receive(port, c.Processor(c.Position-ch.Offset), 1)[0]
				}
			}
		}
		b.EndRound()
	}
	return slots
}

// reduce is a transposed broadcast: it adds up parts and returns the sum's slot at position 0, and else -1.
func reduce(b *schedule.Builder, rounds []schedule.WindowRound, comms []communicator) plan.Slot {
	parts := make([][]schedule.Addend, len(comms))
	lead := slices.IndexFunc(comms, func(c communicator) bool { return c.Position == 0 })
	for i, c := range comms {
		if c.Slot >= 0 {
			parts[i] = schedule.InSlot(c.Slot)
		}
	}
	sums := b.Transposed(func(forward *schedule.Builder) ([]plan.Slot, [][]schedule.Addend) {
		comms := slices.Clone(comms)
		if lead >= 0 {
			comms[lead].Slot = forward.Inputs(1)[0]
		}
		return broadcast(forward, rounds, comms), parts
	})
	if lead < 0 {
		return -1
	}
	return sums[0]
}
