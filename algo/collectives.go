package algo

import (
	"volley/field"
	"volley/plan"
)

// The collectives are plans without coefficients, for control traffic. [Allgather] takes
// the fewest rounds. Among many processors, what all are to know goes up to processor 0
// by [Gather] and comes down by [Broadcast]: twice the rounds, and a K-th of the bytes.

// Allgather returns a plan whose output i at every processor is the packet of
// processor i, in the rounds of [bruckAllgather]. Its matrix has K² columns: column
// K·k + i is output i of processor k. C1 = clog(K), C2 = ⌈(K-1)/p⌉.
func Allgather(f field.Field, processors, ports int) plan.Plan {
	stages := stages(processors, ports)
	return &Plan{
		Common: plan.Info{
			Algorithm: "allgather", Field: f, Processors: processors, Ports: ports,
			Rows: processors, Columns: processors * processors,
			Phases: []plan.Phase{{Name: "gather", Rounds: len(stages)}},
		},
		Write: func(b *Builder, proc int) []plan.Slot {
			g := everyone(processors, proc)
			outputs := make([]plan.Slot, processors)
			for i, slot := range gather(b, g, stages, 1, processors, b.inputs(1)[0]) {
				outputs[g.around(-i)] = slot
			}
			return outputs
		},
		ColumnOf: func(proc, output int) int { return processors*proc + output },
		Kinds:    func() []plan.Class { return alike(processors) },
	}
}

// Gather returns a plan after which processor 0 has the packets of all: its output i
// is that of processor i, and the others have none. C1 = clog(K),
// C2 = ⌈(K-1)/p⌉; the tree is that of "central".
func Gather(f field.Field, processors, ports int) plan.Plan {
	tree := newCentral(processors, ports)
	return &Plan{
		Common: plan.Info{
			Algorithm: "gather", Field: f, Processors: processors, Ports: ports, Rows: processors, Columns: processors,
			Phases: []plan.Phase{{Name: "gather", Rounds: len(tree.stages)}},
		},
		Write: func(b *Builder, proc int) []plan.Slot {
			return tree.gather(b, everyone(processors, proc), b.inputs(1)[0])
		},
		ColumnOf: func(_, output int) int { return output },
	}
}

// Broadcast returns a plan after which all processors have the packet of processor 0,
// the only one there is. C1 = C2 = clog(K).
func Broadcast(f field.Field, processors, ports int) plan.Plan {
	stages := stages(processors, ports)
	return &Plan{
		Common: plan.Info{
			Algorithm: "broadcast", Field: f, Processors: processors, Ports: ports, Rows: 1, Columns: processors,
			Phases: []plan.Phase{{Name: "broadcast", Rounds: len(stages)}},
		},
		Write: func(b *Builder, proc int) []plan.Slot {
			all := crew{size: processors, at: proc, member: func(pos int) int { return pos }}
			if proc == 0 {
				all.have = b.inputs(1)
			}
			return spread(b, stages, []crew{all})[0]
		},
	}
}
