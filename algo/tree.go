package algo

import (
	"volley/field"
	"volley/plan"
)

// The trees are plans of their own, for control traffic among many processors: what
// is to be known by all goes up to processor 0 and comes down again, in twice the
// rounds of [Allgather] and a K-th of its bytes.

// Gather returns a plan after which processor 0 has the packets of all: its output i
// is that of processor i, and the others have none. C1 = clog(K),
// C2 = ⌈(K-1)/p⌉; the tree is that of "central".
func Gather(f field.Field, processors, ports int) plan.Plan {
	tree := newCentral(processors, ports)
	return &treePlan{
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
	}
}

// Broadcast returns a plan after which all processors have the packet of processor 0,
// the only one there is. C1 = C2 = clog(K).
func Broadcast(f field.Field, processors, ports int) plan.Plan {
	stages := stages(processors, ports)
	return &treePlan{
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
	}
}

// everyone is the group of all processors, as one of them sees it.
func everyone(size, proc int) Group {
	return Group{Size: size, Index: proc, Member: func(i int) int { return i }}
}

// A treePlan is a plan without coefficients.
type treePlan struct {
	info  plan.Info
	build func(b *Builder, proc int) (outputs []plan.Slot)
}

func (p *treePlan) Info() plan.Info { return p.info }

func (p *treePlan) Program(proc int) (*plan.Program, error) {
	b := &Builder{}
	b.program.Proc = proc
	return b.finish(p.build(b, proc)), nil
}

func (p *treePlan) Schedule(proc int) plan.Schedule {
	prog, _ := p.Program(proc) // cannot fail
	return prog.Schedule()
}

func (p *treePlan) Classes() []plan.Class { return apart(p.info.Processors) }

func (p *treePlan) Row(proc, _ int) int { return proc }

// Column is i for output i of processor 0 of a gather, and k for the one output of
// processor k of a broadcast.
func (p *treePlan) Column(proc, output int) int { return proc + output }
