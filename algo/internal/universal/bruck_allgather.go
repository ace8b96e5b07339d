package universal

import "volley/plan"

// bruckAllgather gathers all packets at every processor; each then computes its own result. It is the universal step
// with a window of all processors and one stride.
//
//	problem  every A, every K and p
//	cost     C1 = clog(K), C2 = ⌈(K-1)/p⌉ (TestBaselineCosts)
//	source   J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal and D. Weathersby, "Efficient
//	         Algorithms for All-to-All Communications in Multiport Message-Passing
//	         Systems", IEEE TPDS 8(11), 1997, where it is called concatenation
type bruckAllgather struct{ *Step }

// NewBruckAllgather returns the step for groups of up to size processors.
func NewBruckAllgather(size, ports int) bruckAllgather {
	return bruckAllgather{New(size, ports, size, 1)}
}

func (bruckAllgather) Parameters() (string, []int) { return "", nil }

func (s bruckAllgather) Phases() []plan.Phase {
	return []plan.Phase{{Name: "gather", Rounds: len(s.prepare)}}
}
