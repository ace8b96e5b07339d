package schedule

import (
	"context"

	"volley/internal/poll"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
)

// Programs are a plan: a function writes the program of each processor.
type Programs struct {
	Common plan.Info

	// Write writes the program of a processor, from its inputs if any, and returns the slots of its outputs.
	Write func(b *Builder, proc int) (outputs []plan.Slot)

	// JointProgram is that of [plan.Joint], or nil.
	JointProgram *plan.JointProgram

	// Kinds returns the classes, until the context ends, which may be nil. Where it is nil, or returns nil, every processor
	// is on its own.
	Kinds func(ctx context.Context) []plan.Class
	// Matrix, unless nil, is what Write asks for entries.
	Matrix matrix.Matrix

	// Least, where it has Nodes, is C1, C2 and a lower bound of the cost: the planner need not count dear plans.
	Least sim.Cost

	// ColumnOf says where outputs belong; nil: to the sinks in order, a result of each, piece by piece.
	ColumnOf func(proc, output int) int

	ctx context.Context // see Under; or nil
}

// WithContext returns the plan for what a context may end, such as to plan or to compile. Once the context has ended, Program
// returns its cause. The other methods unwind to the algo or executor function that called them, which returns the cause.
func (p *Programs) WithContext(ctx context.Context) plan.Plan {
	bound := *p
	bound.ctx = ctx
	return &bound
}

// Info returns what all processors have in common.
func (p *Programs) Info() plan.Info { return p.Common }

func (p *Programs) build(proc int, coding bool) *Builder {
	b := &Builder{Field: p.Common.Field, Coding: coding, poller: poll.New(p.ctx)}
	if coding && p.Matrix != nil && p.ctx != nil {
		poll.Must(matrix.StructureOf(p.Matrix).Ready(p.ctx))
	}
	b.program.Proc = proc
	b.program.Rounds = make([]plan.Round, 0, p.Common.Rounds())
	b.finish(p.Write(b, proc))
	return b
}

// Schedule returns the schedule of a processor.
func (p *Programs) Schedule(proc int) plan.Schedule { return p.build(proc, false).schedule() }

// Program returns the program of a processor. The error is nil, but for the cause of a context that has ended.
func (p *Programs) Program(proc int) (program *plan.Program, err error) {
	defer poll.Catch(&err)
	return &p.build(proc, true).program, nil
}

// Joint returns what all processors compute together, or nil.
func (p *Programs) Joint() *plan.JointProgram { return p.JointProgram }

// Classes partitions the processors by their schedules.
func (p *Programs) Classes() []plan.Class {
	if p.Kinds != nil {
		if classes := p.Kinds(p.ctx); classes != nil {
			return classes
		}
	}
	classes, steps := make([]plan.Class, p.Common.Processors), poll.New(p.ctx)
	for proc := range classes {
		steps.Steps(1)
		classes[proc] = plan.Class{Representative: proc, Count: 1}
	}
	return classes
}

// Row returns the row of the matrix that an input belongs to: sources are the first processors.
func (p *Programs) Row(proc, input int) int { return proc*p.Common.PieceCount() + input }

// Column returns the column of the matrix that an output is.
func (p *Programs) Column(proc, output int) int {
	if p.ColumnOf != nil {
		return p.ColumnOf(proc, output)
	}
	pieces := p.Common.PieceCount()
	if sources := p.Common.Rows / pieces; p.Common.Processors == sources+p.Common.Columns/pieces { // and then come sinks
		proc -= sources
	}
	return proc*pieces + output
}
