package families

import (
	"fmt"

	"volley/algo"
	"volley/algo/schedule"
	"volley/field"
	"volley/plan"
)

// mostPieces bounds the pieces that packets are cut into for a pipeline.
const mostPieces = 64

// pipelinePlans returns the plans for large packets to one sink, or from one source: packets are
// cut into S pieces, which are broadcast on a circulant graph, or added up on it.
//
//	problem  R = 1 or K = 1, N >= 3 processors
//	cost     C1 = ⌈S/p⌉ - 1 + ⌈log2 N⌉, C2 = C1/S packets (TestPipelineCost)
//	source   J. L. Träff, arXiv:2407.18004
//
// While a tree leaves most of its processors idle, here all of them send a piece and receive
// one in every round. With p ports there are p such pipelines at once, with every p-th piece
// each.
func pipelinePlans(p *algo.Problem) ([]plan.Plan, error) {
	t := p.Task()
	k, r, n := t.Matrix.Rows(), t.Matrix.Cols(), t.Processors()
	if min(k, r) > 1 || n < 3 {
		return nil, schedule.Misfit(fmt.Sprintf("algo: pipeline for K = %d and R = %d: it is for one source or one sink, and 3 processors or more: take another algorithm, such as sinks", k, r))
	}
	var plans []plan.Plan
	for pieces := max(2, t.Ports); pieces <= mostPieces; pieces *= 2 {
		plans = append(plans, pipelinePlan(t, pieces))
	}
	return schedule.Undominated(t.Context, plans), nil
}

// pipelinePlan returns the plan with so many pieces, which are as many as ports or more.
func pipelinePlan(t schedule.Task, pieces int) plan.Plan {
	k, r, n := t.Matrix.Rows(), t.Matrix.Cols(), t.Processors()
	root := 0 // the processor with the one packet, or result
	if t.Separate && r == 1 {
		root = k
	}
	graph := newCirculant(n)
	phase := plan.Phase{Name: "reduce in pieces", Rounds: schedule.Ceil(pieces, t.Ports) - 1 + graph.q()}
	if r > 1 {
		phase.Name = "broadcast in pieces"
	}
	common := t.Info("pipeline", pieces, fmt.Sprintf("pieces=%d", pieces), []int{pieces})
	common.Phases = []plan.Phase{phase}
	return &schedule.Plan{
		Common: common,
		Write: func(b *schedule.Builder, proc int) []plan.Slot {
			var own []plan.Slot
			row, ok := t.Source(proc)
			if ok {
				own = b.Inputs(pieces)
			}
			weighted := func(slot plan.Slot, row, column int) []schedule.Addend {
				return schedule.Weighted([]plan.Slot{slot}, func(int) field.Element { return t.Matrix.At(row, column) })
			}
			if r == 1 {
				parts := make([][]schedule.Addend, pieces)
				for i, slot := range own {
					parts[i] = weighted(slot, row, 0)
				}
				return b.Transposed(func(forward *schedule.Builder) ([]plan.Slot, [][]schedule.Addend) {
					var result []plan.Slot
					if proc == root {
						result = forward.Inputs(pieces)
					}
					return graph.broadcast(forward, t.Ports, root, proc, result, pieces), parts
				})
			}
			packet := graph.broadcast(b, t.Ports, root, proc, own, pieces)
			sink, ok := t.Sink(proc)
			if !ok {
				return nil
			}
			for i, slot := range packet {
				packet[i] = b.Total(weighted(slot, 0, sink))
			}
			return packet
		},
	}
}

// broadcast writes the rounds of a processor of a broadcast in pieces from the root, which has the
// packet own, and returns the slots of the packet. Every port has its own stream: block i of it is
// piece i·ports + port. There are as many pieces as ports or more.
func (c circulant) broadcast(b *schedule.Builder, ports, root, proc int, own []plan.Slot, pieces int) []plan.Slot {
	have := make([]plan.Slot, pieces)
	copy(have, own)
	streams := make([]transfers, ports)
	for port := range streams {
		streams[port] = c.transfers((proc-root+c.n)%c.n, schedule.Ceil(pieces-port, ports))
	}
	for t := range streams[0].sends {
		for port, x := range streams {
			if t < len(x.sends) && x.sends[t] >= 0 {
				b.Send(port, (root+x.to[t])%c.n, []plan.Slot{have[x.sends[t]*ports+port]})
			}
		}
		for port, x := range streams {
			if t < len(x.receives) && x.receives[t] >= 0 {
				have[x.receives[t]*ports+port] = b.Receive(port, (root+x.from[t])%c.n, 1)[0]
			}
		}
		b.EndRound()
	}
	return have
}
