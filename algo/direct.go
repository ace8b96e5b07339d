package algo

import "volley/plan"

// direct sends A[i][j]·x_i from processor i straight to processor j, p cyclic
// shifts in a round.
//
//	problem  every A, every K and p
//	cost     C1 = C2 = ⌈(K-1)/p⌉ (TestBaselineCosts)
//	source   the pairwise alltoall of MPI libraries, with the addition at the receiver
type direct struct{ size, ports int }

func (direct) Parameters() string { return "" }

func (s direct) Phases() []plan.Phase {
	return []plan.Phase{{Name: "exchange", Rounds: (s.size - 1 + s.ports - 1) / s.ports}}
}

func (s direct) Classes() []plan.Class { return alike(s.size) }

func (s direct) Encode(b *Builder, g Group, in plan.Slot) plan.Slot {
	scaled := func(j int) func() plan.Combination {
		return func() plan.Combination {
			var c sum
			c.add(in, g.At(g.Index, j))
			return plan.Combination(c)
		}
	}
	var received []plan.Slot
	for first := 1; first < s.size; first += s.ports {
		last := min(first+s.ports, g.Size)
		for d := first; d < last; d++ {
			j := g.around(d)
			b.Send(d-first, g.Member(j), []plan.Slot{b.Compute(1, scaled(j))})
		}
		for d := first; d < last; d++ {
			received = append(received, b.Receive(d-first, g.Member(g.around(-d)), 1)...)
		}
		b.EndRound()
	}
	return b.Compute(1+len(received), func() plan.Combination {
		s := sum(scaled(g.Index)())
		s.addAll(received)
		return plan.Combination(s)
	})
}
