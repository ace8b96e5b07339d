package executor_test

import (
	"testing"

	"volley/algo/schedule"
	"volley/field"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/plan"
	"volley/verify"
)

// allgather returns a plan whose output i at every processor is the packet of
// processor i, in the rounds of the algorithm "bruck-allgather". Its matrix has K² columns:
// column K·k + i is output i of processor k. C1 = clog(K), C2 = ⌈(K-1)/p⌉.
func allgather(f field.Field, processors, ports int) plan.Plan {
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

// TestAllgatherPlan checks that every processor obtains every packet in its place.
func TestAllgatherPlan(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, k := range []int{1, 2, 3, 7, 16, 17} {
		for _, ports := range []int{1, 2, 3} {
			if ports > max(1, k-1) {
				continue
			}
			want := matrix.NewDense(f, k, k*k)
			for proc := range k {
				for i := range k {
					want.Set(i, proc*k+i, field.One)
				}
			}
			if err := verify.Check(allgather(f, k, ports), want); err != nil {
				t.Errorf("K=%d p=%d: %v", k, ports, err)
			}
		}
	}
}
