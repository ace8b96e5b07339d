package algo

import (
	"volley/algo/internal/baseline"
	"volley/algo/schedule"
	"volley/field"
	"volley/plan"
)

// The collectives are plans without coefficients, for control traffic. [Allgather] takes
// the fewest rounds. Among many processors, what all are to know goes up to processor 0
// by [Gather] and comes down by [Broadcast]: twice the rounds, and a K-th of the bytes.

// Allgather returns a plan whose output i at every processor is the packet of
// processor i, in the rounds of the algorithm "bruck-allgather". Its matrix has K² columns:
// column K·k + i is output i of processor k. C1 = clog(K), C2 = ⌈(K-1)/p⌉.
func Allgather(f field.Field, processors, ports int) plan.Plan {
	stages := schedule.WindowRounds(processors, ports)
	return &schedule.Plan{
		Common: plan.Info{
			Algorithm: "allgather", Field: f, Processors: processors, Ports: ports,
			Rows: processors, Columns: processors * processors,
			Phases: []plan.Phase{{Name: "gather", Rounds: len(stages)}},
		},
		Write: func(b *schedule.Builder, proc int) []plan.Slot {
			g := schedule.Everyone(processors, proc)
			outputs := make([]plan.Slot, processors)
			for i, slot := range schedule.Gather(b, g, stages, 1, processors, b.Inputs(1)) {
				outputs[g.Around(-i)] = slot
			}
			return outputs
		},
		ColumnOf: func(proc, output int) int { return processors*proc + output },
		Kinds:    func() []plan.Class { return schedule.Alike(processors) },
	}
}

// Gather returns a plan after which processor 0 has the packets of all: its output i
// is that of processor i, and the others have none. C1 = clog(K),
// C2 = ⌈(K-1)/p⌉; the tree is that of "central".
func Gather(f field.Field, processors, ports int) plan.Plan {
	tree := baseline.NewCentral(processors, ports)
	return &schedule.Plan{
		Common: plan.Info{
			Algorithm: "gather", Field: f, Processors: processors, Ports: ports, Rows: processors, Columns: processors,
			Phases: []plan.Phase{{Name: "gather", Rounds: len(tree.Stages)}},
		},
		Write: func(b *schedule.Builder, proc int) []plan.Slot {
			return tree.Gather(b, schedule.Everyone(processors, proc), b.Inputs(1)[0])
		},
		ColumnOf: func(_, output int) int { return output },
	}
}

// Broadcast returns a plan after which all processors have the packet of processor 0,
// the only one there is. C1 = C2 = clog(K).
func Broadcast(f field.Field, processors, ports int) plan.Plan {
	stages := schedule.WindowRounds(processors, ports)
	return &schedule.Plan{
		Common: plan.Info{
			Algorithm: "broadcast", Field: f, Processors: processors, Ports: ports, Rows: 1, Columns: processors,
			Phases: []plan.Phase{{Name: "broadcast", Rounds: len(stages)}},
		},
		Write: func(b *schedule.Builder, proc int) []plan.Slot {
			all := schedule.Communicator{Size: processors, At: proc, Member: func(pos int) int { return pos }}
			if proc == 0 {
				all.Have = b.Inputs(1)
			}
			return schedule.Broadcast(b, stages, []schedule.Communicator{all})[0]
		},
	}
}
