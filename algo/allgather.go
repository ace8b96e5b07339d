package algo

import (
	"volley/algo/schedule"
	"volley/field"
	"volley/plan"
)

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
