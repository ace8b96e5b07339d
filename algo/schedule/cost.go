package schedule

import (
	"context"
	"math"
	"slices"

	"volley/internal/poll"
	"volley/plan"
	"volley/sim"
)

// Ceil is ⌈n/d⌉ for n >= 0, d > 0.
func Ceil(n, d int) int { return (n + d - 1) / d }

// Clog returns the least t with (ports+1)^t >= n.
func Clog(n, ports int) int {
	t := 0
	for v := 1; v < n; t++ {
		if v > math.MaxInt/(ports+1) {
			return t + 1
		}
		v *= ports + 1
	}
	return t
}

// BoundByRates returns the packets that one of K links of these rates carries at least, as many as one of rate 1 meanwhile,
// whatever matrix without zeros off the diagonal is computed: docs/theory.md has the proof (Theorem 3).
func BoundByRates(rates []float64) float64 {
	if len(rates) == 1 {
		return 0
	}
	sum := 0.0
	for _, rate := range rates {
		sum += rate
	}
	return max(1/slices.Min(rates), 2*float64(len(rates)-1)/sum)
}

// Undominated returns the plans that no other one beats, the fewest rounds first; of equal ones the first. The context,
// unless it is nil, ends it as a part of planning.
func Undominated(ctx context.Context, plans []plan.Plan) []plan.Plan {
	return sim.Front(plans, func(p plan.Plan) sim.Cost {
		if c, known := Least(p); known {
			return c
		}
		return sim.Count(poll.WithContext(ctx, p))
	})
}

// Least returns the C1 and C2 of a plan and a bound of what else it costs, where these are known without counting.
func Least(p plan.Plan) (c sim.Cost, known bool) {
	if scheduled, ok := p.(*Programs); ok && scheduled.Least.Nodes != nil {
		return scheduled.Least, true
	}
	return sim.Cost{}, false
}
