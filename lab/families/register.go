package families

import (
	"volley/algo"
	"volley/algo/schedule"
)

// Algorithms are the families of this package, in the order in which people should read them.
var Algorithms = []algo.Algorithm{
	{
		Name:       "dft-shifts",
		Title:      "natural order without a round for it: every round shifts all processors alike",
		Problem:    "DFT matrices in natural order and their inverses; K a product of radices up to p+1",
		C1:         "H for K a product of H radices",
		C2:         "3 for K = a*b*c, c | a; 5 for K = 16, 7 for K = 32, 9 for K = 64 at p = 1",
		Source:     "ours",
		Example:    "--field 257 --matrix dft -k 16",
		Structured: true,
		Make:       shiftPlans,
	},
	{
		Name:     "ring-allgather",
		Title:    "allgather around a ring, then local coding; FTI level 3",
		Problem:  "any A, K, p; uses one port",
		C1:       "K-1",
		C2:       "K-1",
		Source:   "MPI libraries; FTI",
		Example:  "-k 16",
		Baseline: true,
		Make:     algo.Stepped("ring-allgather", func(size, _ int) schedule.Step { return ringAllgather{Size: size} }),
	},
	{
		Name:     "direct",
		Title:    "every scaled packet straight to where it is needed",
		Problem:  "any A, K, p",
		C1:       "ceil((K-1)/p)",
		C2:       "ceil((K-1)/p)",
		Source:   "MPI libraries (pairwise alltoall)",
		Example:  "-k 16",
		Baseline: true,
		Make:     algo.Stepped("direct", algo.Direct),
	},
	{
		Name:     "central",
		Title:    "gather at processor 0, encode there, scatter",
		Problem:  "any A, K, p",
		C1:       "2*clog(K)",
		C2:       "2*ceil((K-1)/p)",
		Source:   "MPI libraries (binomial gather and scatter)",
		Example:  "-k 16",
		Baseline: true,
		Make:     algo.Stepped("central", func(size, ports int) schedule.Step { return newCentral(size, ports) }),
	},
}

func init() {
	for _, a := range Algorithms {
		a.ByName = true // so that programs with this module plan as volley does
		if err := algo.Register(a); err != nil {
			panic(err) // a name of ours that is taken
		}
	}
}
