package schedule

import (
	"context"

	"volley/field"
	"volley/plan"
	"volley/sim"
)

// A Group is a set of processors that together compute one matrix, as one of them sees it.
type Group struct {
	Size      int                          // processors
	Index     int                          // of this processor, in [0, Size)
	Processor func(i int) int              // the processor at index i, 0 <= i < Size
	At        func(i, j int) field.Element // the group's matrix: row i is the packet at index i
}

// Around returns the index d places further on, cyclically; d may be negative.
func (g Group) Around(d int) int {
	return ((g.Index+d)%g.Size + g.Size) % g.Size
}

// Everyone is the group of all processors, as one of them sees it.
func Everyone(size, proc int) Group {
	return Group{Size: size, Index: proc, Processor: func(i int) int { return i }}
}

// A Step is a schedule for one group, made for a number of ports and a largest size: smaller groups keep its rounds.
type Step interface {
	// Parameters says what the step chose, for people, such as "m=4 n=4", and as numbers.
	Parameters() (text string, arguments []int)

	// Phases names the rounds, in order.
	Phases() []plan.Phase

	// Classes partitions the processors of a largest group by their schedules, as plan.Plan's does the processors.
	Classes() []plan.Class

	// Encode writes the rounds of a processor, with its packet in slot input, and returns the slot of Σ_i At(i, Index)·x_i.
	Encode(b *Builder, g Group, input plan.Slot) plan.Slot
}

// A Grouping is a partition of the processors into groups that run one step side by side.
type Grouping struct {
	Step  Step
	Group func(proc int) Group // as the processor sees it
	// Ready, unless nil, makes what the entries of a processor's group take long to make; see [Builder.Ready].
	Ready   func(b *Builder, proc int)
	Single  bool // all processors are one group
	Uniform bool // all groups are as large as the step's largest
}

// OneGroup returns the partition that runs a step on all as one group; entry may be nil for a schedule alone.
func OneGroup(s Step, size int, entry func(i, j int) field.Element) Grouping {
	return Grouping{Step: s, Single: true, Uniform: true, Group: func(proc int) Group {
		g := Everyone(size, proc)
		g.At = entry
		return g
	}}
}

// OneClass is the classes of a group whose processors all have the same schedule.
func OneClass(size int) []plan.Class { return []plan.Class{{Representative: 0, Count: size}} }

// Compile returns the plan that runs the layers in order: A is the product of their block matrices, first leftmost.
// Every processor is source and sink; the phases are those of the layers.
func Compile(common plan.Info, layers ...Grouping) *Programs {
	var phases []plan.Phase
	for _, l := range layers {
		phases = append(phases, l.Step.Phases()...)
	}
	common.Rows, common.Columns, common.Phases = common.Processors, common.Processors, Joined(phases)
	return &Programs{
		Common: common,
		Least:  least(layers),
		Write: func(b *Builder, proc int) []plan.Slot {
			slots := b.Inputs(1)
			for _, l := range layers {
				if l.Ready != nil {
					l.Ready(b, proc)
				}
				slots = []plan.Slot{l.Step.Encode(b, l.Group(proc), slots[0])}
			}
			return slots
		},
		Kinds: func(context.Context) []plan.Class { return kinds(common.Processors, layers) },
	}
}

// A Bounded step knows what a processor of a largest group sends in each round, and C1 and C2.
type Bounded interface{ Least() sim.Cost }

// least returns the sum of what the steps of layers know, or nothing where one does not.
func least(layers []Grouping) sim.Cost {
	sum := sim.Cost{Pieces: 1, Nodes: []sim.NodeRound{}}
	for _, l := range layers {
		step, ok := l.Step.(Bounded)
		if !ok || !l.Uniform {
			return sim.Cost{}
		}
		c := step.Least()
		sum.C1, sum.C2, sum.Nodes = sum.C1+c.C1, sum.C2+c.C2, append(sum.Nodes, c.Nodes...)
	}
	return sum
}

// kinds returns the classes of the one layer with several schedules, if it spans all processors, and else nil.
func kinds(processors int, layers []Grouping) []plan.Class {
	classes := OneClass(processors)
	differ := 0
	for _, l := range layers {
		switch layerClasses := l.Step.Classes(); {
		case l.Uniform && len(layerClasses) == 1:
		case l.Single:
			classes = layerClasses
			differ++
		default:
			differ = 2
		}
	}
	if differ < 2 {
		return classes
	}
	return nil
}

// OnAll returns the plan that runs one step on all processors of a square task.
func OnAll(name string, s Step, t Task) *Programs {
	text, arguments := s.Parameters()
	p := Compile(t.Info(name, 0, text, arguments), OneGroup(s, t.Matrix.Rows(), t.Matrix.At))
	p.Matrix = t.Matrix
	return p
}

// Joined returns the phases without those of no rounds, and with neighbours of one name as one.
func Joined(phases []plan.Phase) []plan.Phase {
	var list []plan.Phase
	for _, ph := range phases {
		switch n := len(list); {
		case ph.Rounds == 0:
		case n > 0 && list[n-1].Name == ph.Name:
			list[n-1].Rounds += ph.Rounds
		default:
			list = append(list, ph)
		}
	}
	return list
}
