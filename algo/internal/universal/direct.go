package universal

import (
	"volley/algo/schedule"
	"volley/field"
	"volley/plan"
)

// Direct sends A[i][j]·x_i from processor i straight to processor j, p cyclic
// shifts in a round.
//
//	problem  every A, every K and p
//	cost     C1 = C2 = ⌈(K-1)/p⌉ (TestBaselineCosts)
//	source   the pairwise alltoall of MPI libraries, with the addition at the receiver
type Direct struct{ Size, Ports int }

func (Direct) Parameters() (string, []int) { return "", nil }

func (s Direct) Phases() []plan.Phase {
	return []plan.Phase{{Name: "exchange", Rounds: (s.Size - 1 + s.Ports - 1) / s.Ports}}
}

func (s Direct) Classes() []plan.Class { return schedule.OneClass(s.Size) }

func (s Direct) Encode(b *schedule.Builder, g schedule.Group, input plan.Slot) plan.Slot {
	scaled := func(j int) []schedule.Addend {
		return schedule.Weighted([]plan.Slot{input}, func(int) field.Element { return g.At(g.Index, j) })
	}
	var received []plan.Slot
	for first := 1; first < s.Size; first += s.Ports {
		last := min(first+s.Ports, g.Size)
		for d := first; d < last; d++ {
			j := g.Around(d)
			b.Send(d-first, g.Processor(j), []plan.Slot{b.Total(scaled(j))})
		}
		for d := first; d < last; d++ {
			received = append(received, b.Receive(d-first, g.Processor(g.Around(-d)), 1)...)
		}
		b.EndRound()
	}
	return b.Total(append(scaled(g.Index), schedule.Weighted(received, nil)...))
}
