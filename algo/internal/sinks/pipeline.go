package sinks

import (
	"errors"
	"fmt"

	"volley/algo/schedule"
	"volley/plan"
	"volley/sim"
)

// mostPieces bounds the pieces that packets are cut into for a pipeline.
const mostPieces = 64

// PipelinePlans returns the plans for large packets, to few sinks or from few sources:
// those of [Plans] and [StructuredPlans] with packets cut into S pieces, each
// of which goes through the communicators on its own.
//
//	problem  as sinks, where communicators have three members or more, or two and p >= 2
//	cost     with B the larger one of K and R, n groups, c the size of their communicators, and S
//	         pieces: C1 = clog(⌈B/n⌉) + ⌈S/p⌉ - 1 + ⌈log2 c⌉,
//	         C2 = Psi(⌈B/n⌉) + (⌈S/p⌉ - 1 + ⌈log2 c⌉)/S packets; c = n, or n+1 where
//	         sinks are apart (TestPipelineCost)
//	source   J. L. Träff, arXiv:2407.18004, for broadcast and reduction through one port
//
// While a tree leaves most of its members idle, here all of them send a piece and
// receive one in every round. With p ports there are p such pipelines at once, with
// every p-th piece each.
func PipelinePlans(t schedule.Task) ([]plan.Plan, error) {
	const name = "pipeline"
	if err := mustHaveSinks(t, name); err != nil {
		return nil, err
	}
	ways := ways(t)
	structured, err := structuredWays(t, name)
	if err != nil && !errors.Is(err, schedule.ErrStructure) {
		return nil, err
	}
	for _, w := range structured {
		if t.Separate || w.most() == w.n { // else a processor is in two communicators
			ways = append(ways, w)
		}
	}
	type choice struct {
		*way
		pieces int
		cost   sim.Cost
	}
	var choices []choice
	add := func(w *way, pieces, rounds int) {
		choices = append(choices, choice{w, pieces, sim.Cost{C1: w.C1 + rounds, C2: w.C2*pieces + rounds, Pieces: pieces}})
	}
	for _, w := range ways {
		add(w, 1, schedule.Clog(w.most(), t.Ports))        // a plan of Plans, here to be better than
		if w.most() < 2 || w.most() == 2 && t.Ports == 1 { // nothing to overlap
			continue
		}
		for pieces := max(2, t.Ports); pieces <= mostPieces; pieces *= 2 {
			add(w, pieces, schedule.PipelineRounds(w.most(), pieces, t.Ports))
		}
	}
	var plans []plan.Plan
	for _, c := range sim.Front(choices, func(c choice) sim.Cost { return c.cost }) {
		if c.pieces > 1 {
			plans = append(plans, grouped(t, name, c.way, c.pieces))
		}
	}
	if len(plans) == 0 {
		return nil, fmt.Errorf("algo: %s for K = %d and R = %d: %w: too few processors add up or obtain the same packet: take another algorithm, such as sinks",
			name, t.Matrix.Rows(), t.Matrix.Cols(), schedule.ErrStructure)
	}
	return plans, nil
}
