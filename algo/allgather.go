package algo

import (
	"volley/field"
	"volley/plan"
)

// allgather is the plan by which every processor obtains the packets of all, in
// the rounds of [bruckAllgather]. It is what control traffic runs on.
type allgather struct {
	info   plan.Info
	stages []stage
}

// Allgather returns a plan whose output i at every processor is the packet of
// processor i. Its matrix has K² columns: column K·k + i is output i of
// processor k. C1 = clog(K), C2 = ⌈(K-1)/p⌉.
func Allgather(f field.Field, processors, ports int) plan.Plan {
	s := stages(processors, ports)
	return &allgather{
		info: plan.Info{
			Algorithm: "allgather", Field: f, Processors: processors, Ports: ports,
			Rows: processors, Columns: processors * processors,
			Phases: []plan.Phase{{Name: "gather", Rounds: len(s)}},
		},
		stages: s,
	}
}

func (p *allgather) Info() plan.Info { return p.info }

func (p *allgather) Program(proc int) (*plan.Program, error) {
	k := p.info.Processors
	b := &Builder{slots: 1}
	b.program.Proc, b.program.Inputs = proc, 1
	g := everyone(k, proc)
	outputs := make([]plan.Slot, k)
	for i, slot := range gather(b, g, p.stages, k, 0) {
		outputs[g.around(-i)] = slot
	}
	return b.finish(outputs), nil
}

func (p *allgather) Schedule(proc int) plan.Schedule {
	prog, _ := p.Program(proc) // has no coefficients, cannot fail
	return prog.Schedule()
}

func (p *allgather) Classes() []plan.Class {
	return []plan.Class{{Representative: 0, Count: p.info.Processors}}
}

func (p *allgather) Row(proc, _ int) int { return proc }

func (p *allgather) Column(proc, output int) int { return p.info.Processors*proc + output }
