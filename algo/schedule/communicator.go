package schedule

import (
	"slices"

	"volley/plan"
)

// A Communicator is the processors that add up parts of one packet, or that all obtain one,
// as one of them sees it. Position 0 is where it begins or ends.
type Communicator struct {
	Size   int
	At     int               // this one's position
	Member func(pos int) int // the processor at a position
	Have   []plan.Slot       // its own part, piece by piece; nil: none
}

// Broadcast writes broadcasts in communicators on (p+1)-ary trees, all at once, in as many
// rounds as the largest takes: C1 = C2 = clog(size). Position 0 of each has a packet, and in
// the end all have it. A processor may be in two communicators if it is in the last position
// of one of them and the first of the other. It returns the slot of the packet of each.
func Broadcast(b *Builder, rounds []WindowRound, comms []Communicator) [][]plan.Slot {
	have := make([][]plan.Slot, len(comms))
	for i, c := range comms {
		if c.At == 0 {
			have[i] = c.Have
		}
	}
	for _, st := range rounds { // positions below st.From have it
		for port, ch := range st.Chunks {
			for i, c := range comms {
				if c.At < ch.Count && c.At+ch.At < c.Size {
					b.Send(port, c.Member(c.At+ch.At), have[i])
				}
			}
		}
		for port, ch := range st.Chunks {
			for i, c := range comms {
				if ch.At <= c.At && c.At < ch.At+ch.Count {
					have[i] = b.Receive(port, c.Member(c.At-ch.At), 1)
				}
			}
		}
		b.EndRound()
	}
	return have
}

// Reduce is a broadcast in communicators transposed: it adds up their parts. It returns, for each
// communicator, the slots of the sums, piece by piece, at position 0, and elsewhere nil.
func Reduce(b *Builder, pieces int, comms []Communicator, spread func(b *Builder, comms []Communicator) [][]plan.Slot) [][]plan.Slot {
	var own [][]Addend
	leads := -1 // the communicator in which this processor is at position 0
	for i, c := range comms {
		for piece := range pieces {
			if own = append(own, nil); c.Have != nil {
				own[len(own)-1] = InSlot(c.Have[piece])
			}
		}
		if c.At == 0 {
			leads = i
		}
	}
	sums := b.Transposed(func(forward *Builder) ([]plan.Slot, [][]Addend) {
		comms := slices.Clone(comms)
		if leads >= 0 {
			comms[leads].Have = forward.Inputs(pieces)
		}
		return slices.Concat(spread(forward, comms)...), own
	})
	list := make([][]plan.Slot, len(comms))
	if leads >= 0 {
		list[leads] = sums
	}
	return list
}
