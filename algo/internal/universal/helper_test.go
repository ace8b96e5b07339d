package universal

import (
	"volley/plan"
	"volley/sim"
)

// A pair is C1 and C2.
type pair struct{ C1, C2 int }

func costOf(p plan.Plan) pair { return pairOf(sim.Count(p)) }

func pairOf(c sim.Cost) pair { return pair{c.C1, c.C2} }
