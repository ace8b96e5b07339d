package exchange

import (
	"context"
	"fmt"
	"slices"

	"volley/algo/internal/layers"
	"volley/algo/internal/universal"
	"volley/algo/schedule"
	"volley/internal/poll"
	"volley/plan"
	"volley/sim"
)

// SplitPlans returns the plans between universal and exchange: the processors form groups of s, which split their
// packets into s slices by exchange, run universal on K/s groups, and join the slices of the results by an exchange.
//
//	problem  any A, K a multiple of s; every processor is source and sink
//	cost     with radices of s for the way there and back, C1 = Σ ⌈(r_t-1)/p⌉ of both +
//	         clog(K/s), C2 = their C2 in an exchange of s + Psi(K/s) packets. s = 2^h at
//	         p = 1, radices 2: C1 = h + clog(K), C2 = h + Psi(K/2^h) (TestSplitCost)
//	source   ours
func SplitPlans(t schedule.Task) ([]plan.Plan, error) {
	if err := t.MustBeSquare("split"); err != nil {
		return nil, err
	}
	type option struct {
		cost  sim.Cost
		build func() *schedule.Programs
	}
	var options []option
	k, steps := t.Matrix.Rows(), poll.New(t.Context)
	for size := 2; size < k && size <= mostSlices; size++ {
		steps.Steps(1)
		if k%size != 0 {
			continue
		}
		leg := exchange{helpers: size, ports: t.Ports, ends: size, peers: size}
		lists := radices(size, t.Ports)
		var costs []sim.Cost
		for _, list := range lists {
			costs = append(costs, leg.estimate(steps, list))
		}
		for excess := range 3 {
			steps.Steps(universal.TuneSteps(k / size))
			m, n := universal.Tune(k/size, t.Ports, excess)
			step := universal.New(k/size, t.Ports, m, n)
			c := step.Least()
			for i := range c.Nodes {
				c.Nodes[i].Elements *= float64(size)
			}
			for i, a := range costs {
				for j, b := range costs[i:] {
					steps.Steps(len(a.Nodes) + len(c.Nodes) + len(b.Nodes))
					cost := sim.Cost{C1: a.C1 + b.C1 + c.C1, C2: a.C2 + b.C2 + c.C2*size, Pieces: size, Nodes: slices.Concat(a.Nodes, c.Nodes, b.Nodes)}
					options = append(options, option{cost, func() *schedule.Programs {
						return splitPlan(t, size, lists[i], lists[i+j], step)
					}})
				}
			}
		}
	}
	if len(options) == 0 {
		return nil, schedule.Misfit(fmt.Sprintf("algo: split for K = %d: no s from 2 to K-1 divides it: take another algorithm, such as universal or exchange", k))
	}
	var plans []plan.Plan
	for _, o := range sim.Front(options, func(o option) sim.Cost { return o.cost }) {
		p := o.build()
		p.Least = o.cost
		plans = append(plans, p)
	}
	return plans, nil
}

// mostSlices bounds the pieces of a packet: a program has K terms for each.
const mostSlices = 512

// splitPlan returns the plan with groups of a size, radices for the ways there and back, and a step for the groups.
func splitPlan(t schedule.Task, size int, first, last []int, step *universal.Step) *schedule.Programs {
	leg := exchange{helpers: size, ports: t.Ports, ends: size, peers: size, step: 1}
	outbound, inbound := leg, leg
	inbound.step = -1
	outbound.stages, inbound.stages = leg.digitStages(first), leg.digitStages(last)
	k := t.Matrix.Rows()
	windows, window := step.Parameters()
	common := t.Info("split", size, fmt.Sprintf("pieces=%d radices %s, %s, %s", size, layers.Dotted(first), windows, layers.Dotted(last)), first, window, last)
	common.Phases = slices.Concat([]plan.Phase{{Name: "split", Rounds: outbound.rounds()}}, step.Phases(), []plan.Phase{{Name: "join", Rounds: inbound.rounds()}})
	return &schedule.Programs{
		Matrix: t.Matrix,
		Common: common,
		Write: func(b *schedule.Builder, proc int) []plan.Slot {
			outbound, inbound := outbound, inbound
			slice := proc % size
			outbound.firstEnd, outbound.firstHelper = proc-slice, proc-slice
			inbound.firstEnd, inbound.firstHelper = proc-slice, proc-slice
			collected := outbound.collect(b, proc, b.Inputs(size))
			inputs := make([]plan.Slot, size)
			for i, end := range collected.ends {
				inputs[end] = collected.raw[i]
			}
			results := step.EncodeUnit(b, schedule.Group{
				Size: k / size, Index: proc / size, At: t.Matrix.At,
				Processor: func(i int) int { return i*size + slice },
			}, inputs)
			return b.Transposed(func(forward *schedule.Builder) (slots []plan.Slot, addends [][]schedule.Addend) {
				collected := inbound.collect(forward, proc, forward.Inputs(size))
				for _, sink := range collected.ends {
					addends = append(addends, schedule.InSlot(results[sink]))
				}
				return collected.raw, addends
			})
		},
		Kinds: func(context.Context) []plan.Class { return schedule.OneClass(k) },
	}
}
