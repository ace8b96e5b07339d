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
	return &collective{
		info: plan.Info{
			Algorithm: "allgather", Field: f, Processors: processors, Ports: ports,
			Rows: processors, Columns: processors * processors,
			Phases: []plan.Phase{{Name: "gather", Rounds: len(stages)}},
		},
		build: func(b *Builder, proc int) []plan.Slot {
			g := everyone(processors, proc)
			outputs := make([]plan.Slot, processors)
			for i, slot := range gather(b, g, stages, processors, b.inputs(1)[0]) {
				outputs[g.around(-i)] = slot
			}
			return outputs
		},
		column: func(proc, output int) int { return processors*proc + output },
		alike:  true,
	}
}

// Gather returns a plan after which processor 0 has the packets of all: its output i
// is that of processor i, and the others have none. C1 = clog(K),
// C2 = ⌈(K-1)/p⌉; the tree is that of "central".
func Gather(f field.Field, processors, ports int) plan.Plan {
	tree := newCentral(processors, ports)
	return &collective{
		info: plan.Info{
			Algorithm: "gather", Field: f, Processors: processors, Ports: ports, Rows: processors, Columns: processors,
			Phases: []plan.Phase{{Name: "gather", Rounds: len(tree.stages)}},
		},
		build: func(b *Builder, proc int) []plan.Slot {
			held := tree.gather(b, everyone(processors, proc), b.inputs(1)[0])
			if proc != 0 {
				return nil
			}
			return held
		},
		column: func(_, output int) int { return output },
	}
}

// Broadcast returns a plan after which all processors have the packet of processor 0,
// the only one there is. C1 = C2 = clog(K).
func Broadcast(f field.Field, processors, ports int) plan.Plan {
	stages := stages(processors, ports)
	return &collective{
		info: plan.Info{
			Algorithm: "broadcast", Field: f, Processors: processors, Ports: ports, Rows: 1, Columns: processors,
			Phases: []plan.Phase{{Name: "broadcast", Rounds: len(stages)}},
		},
		build: func(b *Builder, proc int) []plan.Slot {
			all := crew{size: processors, at: proc, member: func(pos int) int { return pos }}
			if proc == 0 {
				all.have = b.inputs(1)
			}
			return spread(b, stages, []crew{all})
		},
		column: func(proc, _ int) int { return proc },
	}
}

// A collective is a plan without coefficients.
type collective struct {
	info   plan.Info
	build  func(b *Builder, proc int) (outputs []plan.Slot)
	column func(proc, output int) int
	alike  bool // all processors have the same schedule
}

func (p *collective) Info() plan.Info { return p.info }

func (p *collective) Program(proc int) (*plan.Program, error) {
	b := &Builder{}
	b.program.Proc = proc
	return b.finish(p.build(b, proc)), nil
}

func (p *collective) Schedule(proc int) plan.Schedule {
	prog, _ := p.Program(proc) // cannot fail
	return prog.Schedule()
}

func (p *collective) Classes() []plan.Class {
	if p.alike {
		return alike(p.info.Processors)
	}
	return apart(p.info.Processors)
}

func (p *collective) Row(proc, _ int) int { return proc }

func (p *collective) Column(proc, output int) int { return p.column(proc, output) }
