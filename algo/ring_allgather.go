package algo

import "volley/plan"

// ringAllgather passes every packet once around a ring; each processor computes
// its own result. It uses one port.
//
//	problem  every A, every K and p
//	cost     C1 = C2 = K-1 (TestBaselineCosts)
//	source   the ring allgather of MPI libraries; level 3 of the checkpoint library
//	         FTI encodes in this pattern
type ringAllgather struct{ size int }

func (ringAllgather) Parameters() string { return "" }

func (s ringAllgather) Phases() []plan.Phase { return []plan.Phase{{Name: "ring", Rounds: s.size - 1}} }

func (s ringAllgather) Classes() []plan.Class { return alike(s.size) }

func (s ringAllgather) Encode(b *Builder, g Group, in plan.Slot) plan.Slot {
	held := window{in} // held[i] is the packet of the member i places back
	for t := 1; t < s.size; t++ {
		if t < g.Size {
			b.Send(0, g.Member(g.around(1)), held[t-1:t:t])
			held = append(held, b.Receive(0, g.Member(g.around(-1)), 1)...)
		}
		b.EndRound()
	}
	return b.total(held.sum(g, 0))
}
