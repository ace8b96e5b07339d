package families

import (
	"volley/algo/schedule"
	"volley/plan"
)

// ringAllgather passes every packet once around a ring; each processor computes
// its own result. It uses one port.
//
//	problem  every A, every K and p
//	cost     C1 = C2 = K-1 (TestBaselineCosts)
//	source   the ring allgather of MPI libraries; level 3 of the checkpoint library
//	         FTI encodes in this pattern
type ringAllgather struct{ Size int }

func (ringAllgather) Parameters() (string, []int) { return "", nil }

func (s ringAllgather) Phases() []plan.Phase { return []plan.Phase{{Name: "ring", Rounds: s.Size - 1}} }

func (s ringAllgather) Classes() []plan.Class { return schedule.OneClass(s.Size) }

func (s ringAllgather) Encode(b *schedule.Builder, g schedule.Group, input plan.Slot) plan.Slot {
	gathered := schedule.SlotWindow{input} // have[i] is the packet of the processor i places back
	for t := 1; t < s.Size; t++ {
		if t < g.Size {
			b.Send(0, g.Processor(g.Around(1)), gathered[t-1:t:t])
			gathered = append(gathered, b.Receive(0, g.Processor(g.Around(-1)), 1)...)
		}
		b.EndRound()
	}
	return b.Total(gathered.Sums(g, 0, 1)[0])
}
