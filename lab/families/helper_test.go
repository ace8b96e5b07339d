package families

import (
	_ "volley/field/curves"
	"volley/plan"
	"volley/sim"
)

// A pair is C1 and C2.
type pair struct{ C1, C2 int }

func costOf(p plan.Plan) pair {
	c := sim.Count(p)
	return pair{c.C1, c.C2}
}
