// Package exchange has the plans for sources and sinks that differ, for packets in pieces, and for exchanges of slices.
package exchange

import (
	"context"
	"fmt"
	"strings"

	"volley/algo/internal/universal"
	"volley/algo/schedule"
	"volley/field"
	"volley/internal/poll"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
)

// Plans returns the plans for K sources and R other sinks, or R sinks among them.
//
//	problem  every A with K ≠ R, and every one where sinks are apart; every p
//	cost     with B the larger one of K and R and n groups, 1 <= n <= ⌊B/min(K, R)⌋:
//	         C1 = clog(⌈B/n⌉) + clog(n), C2 = Psi(⌈B/n⌉) + clog(n); clog(n+1) instead
//	         of clog(n) where sinks are apart, and then also n = ⌈B/min(K, R)⌉ groups
//	         of min(K, R) (TestSinksCost)
//	source   paper, remark on N > K processors, for one n; the others ours
//
// For K >= R the sources form n groups, each of which computes its part of every result in one universal step, all
// groups at once; then each result is added up on a (p+1)-ary tree. For K < R it goes the other way round: the packets
// are broadcast to n groups of sinks. Where ⌈B/min(K, R)⌉ groups are one too many for the processors, the last one is
// filled up with the processors of the other side.
func Plans(t schedule.Task) ([]plan.Plan, error) {
	if err := mustHaveSinks(t, "sinks"); err != nil {
		return nil, err
	}
	var plans []plan.Plan
	for _, w := range worthwhile(t, ways(t)) {
		plans = append(plans, grouped(t, "sinks", w))
	}
	return plans, nil
}

// mustHaveSinks returns an error that wraps [schedule.ErrStructure] where every processor is source and sink.
func mustHaveSinks(t schedule.Task, algorithm string) error {
	if !t.Square() {
		return nil
	}
	return fmt.Errorf("algo: %s for K = %d: %w: it is for sources and sinks, and here every processor is both: take another algorithm, such as universal",
		algorithm, t.Matrix.Rows(), schedule.ErrStructure)
}

// A grouping partitions the processors of the larger side, sources or sinks, into groups, each a part of them in order.
type grouping struct {
	sources, sinks int
	separate       bool
	n              int  // groups
	padded         bool // the last group is filled up with processors of the other side
}

// sides returns a grouping without groups.
func sides(t schedule.Task) grouping {
	return grouping{sources: t.Matrix.Rows(), sinks: t.Matrix.Cols(), separate: t.Separate}
}

func (g grouping) manyCount() int { return max(g.sources, g.sinks) }
func (g grouping) fewCount() int  { return min(g.sources, g.sinks) }
func (g grouping) gather() bool   { return g.sources >= g.sinks } // else packets go out to groups

// manyAt and fewAt return processor i of the larger and of the smaller side.
func (g grouping) manyAt(i int) int {
	if g.separate && !g.gather() {
		return g.sources + i
	}
	return i
}

func (g grouping) fewAt(i int) int {
	if g.separate && g.gather() {
		return g.sources + i
	}
	return i
}

// first returns the first of the larger side in a group.
func (g grouping) first(group int) int {
	if g.padded {
		return min(group*g.fewCount(), g.manyCount())
	}
	return group * g.manyCount() / g.n
}

// real returns how many of the larger side are in a group.
func (g grouping) real(group int) int { return g.first(group+1) - g.first(group) }

// size returns how many processors a group has, and largest how many the largest has.
func (g grouping) size(group int) int {
	if g.padded {
		return g.fewCount()
	}
	return g.real(group)
}

func (g grouping) largest() int {
	if g.padded {
		return g.fewCount()
	}
	return (g.manyCount() + g.n - 1) / g.n
}

func (g grouping) processor(group, i int) int {
	if i < g.real(group) {
		return g.manyAt(g.first(group) + i)
	}
	return g.fewAt(i)
}

// groupOf returns at which index of which group a processor is, and false for none.
func (g grouping) groupOf(proc int) (group, i int, ok bool) {
	position := proc - g.manyAt(0)
	switch {
	case position >= 0 && position < g.manyCount() && g.padded:
		group = position / g.fewCount()
	case position >= 0 && position < g.manyCount():
		group = ((position+1)*g.n - 1) / g.manyCount()
	default: // of the smaller side
		i := proc - g.fewAt(0)
		return g.n - 1, i, g.padded && i >= g.real(g.n-1)
	}
	return group, position - g.first(group), true
}

// group returns a group as the processor at index i sees it, for the groups' parts of a.
func (g grouping) group(a matrix.Matrix, group, i int) universal.SparseGroup {
	first, inside := g.first(group), g.real(group)
	isMany := func(i int) bool { return i < inside }
	isFew := func(i int) bool { return i < g.fewCount() }
	dense := schedule.Group{Size: g.size(group), Index: i, Processor: func(i int) int { return g.processor(group, i) }}
	if g.gather() {
		dense.At = func(i, j int) field.Element { return a.At(first+i, j) }
		return universal.SparseGroup{Group: dense, Holds: isMany, Wants: isFew}
	}
	dense.At = func(i, j int) field.Element { return a.At(i, first+j) }
	return universal.SparseGroup{Group: dense, Holds: isFew, Wants: isMany}
}

// A scheme is how the groups compute their parts, and in which groups.
type scheme struct {
	grouping
	sim.Cost                              // of the groups' steps
	step            universal.Rectangular // one step, or
	layers          [][]schedule.Grouping // for each group those of its own
	inputs, outputs []matrix.Labels
	parameters      string
	arguments       []int
	notes           []string
	layerNotes      []string
}

// phases names the rounds of the groups' steps.
func (w *scheme) phases() []plan.Phase {
	if w.layers == nil {
		return w.step.Phases()
	}
	var list []plan.Phase
	for _, l := range w.layers[0] {
		list = append(list, l.Step.Phases()...)
	}
	return list
}

// encode writes the rounds of a processor in a group, with its packet in slot input if any, and returns its result's slot
// or -1.
func (w *scheme) encode(b *schedule.Builder, a matrix.Matrix, group, i int, input plan.Slot) plan.Slot {
	if w.layers == nil {
		return w.step.Encode(b, w.group(a, group, i), input)
	}
	for _, l := range w.layers[group] {
		l.Ready(b, i)
		g := l.Group(i)
		index := g.Processor
		g.Processor = func(i int) int { return w.processor(group, index(i)) }
		input = l.Step.Encode(b, g, input)
	}
	return input
}

// carrier returns the index in a group of who ends with the part of result s, or begins with packet s.
func (w *scheme) carrier(group, s int) int { return w.across(group, s, w.gather()) }

// carries is the inverse of carrier.
func (w *scheme) carries(group, i int) int { return w.across(group, i, !w.gather()) }

// across returns the processor that begins where another one ends, by the layers of a group, or the other way round.
func (w *scheme) across(group, i int, reverse bool) int {
	switch {
	case w.layers == nil:
		return i
	case reverse:
		return w.inputs[group].Processor(w.outputs[group].Label(i))
	}
	return w.outputs[group].Processor(w.inputs[group].Label(i))
}

// merged reports whether the one that communicator s is for is a processor of a group that carries the same.
func (w *scheme) merged(s int) bool {
	if w.separate {
		return w.padded && s >= w.real(w.n-1)
	}
	return w.carrier(0, s) == s
}

// communicator returns communicator s: at position 0 the one of the smaller side, then one processor of each group,
// where they are others than that one. Group 0 is last if its processor leads a communicator as well.
func (w *scheme) communicator(s int) communicator {
	c := communicator{Size: w.n + 1}
	if w.merged(s) {
		c.Size = w.n
	}
	c.Processor = func(pos int) int {
		switch {
		case pos == 0:
			return w.fewAt(s)
		case w.separate:
			pos--
		case pos == w.n:
			pos = 0
		}
		return w.processor(pos, w.carrier(pos, s))
	}
	return c
}

// communicators returns a processor's communicators, the one it leads first, and which is of what it carries; -1: none.
func (w *scheme) communicators(proc int) (list []communicator, carried int) {
	lead := proc - w.fewAt(0)
	if lead >= 0 && lead < w.fewCount() {
		list = append(list, w.communicator(lead))
	}
	group, i, ok := w.groupOf(proc)
	if !ok {
		return list, -1
	}
	s := w.carries(group, i)
	switch {
	case s >= w.fewCount():
		return list, -1
	case s == lead && w.merged(s):
		return list, 0
	}
	c := w.communicator(s)
	switch {
	case w.separate:
		c.Position = group + 1
	case group == 0:
		c.Position = w.n
	default:
		c.Position = group
	}
	return append(list, c), len(list)
}

// communicatorSize returns the size of the largest communicator.
func (w *scheme) communicatorSize() int {
	for s := range w.fewCount() {
		if !w.merged(s) {
			return w.n + 1
		}
	}
	return w.n
}

// ways returns the schemes of one universal step in groups, with the fewest rounds and with one more.
func ways(t schedule.Task) []*scheme {
	base, steps := sides(t), poll.New(t.Context)
	var list []*scheme
	add := func(g grouping) {
		size := g.largest()
		for excess := range 2 {
			steps.Steps(universal.TuneSteps(size))
			m, n := universal.TuneRectangular(size, t.Ports, excess)
			step := universal.New(size, t.Ports, m, n)
			windows, window := step.Parameters()
			list = append(list, &scheme{
				grouping: g, step: universal.Rectangular{Step: step},
				Cost:       step.Cost(t.Ports),
				parameters: fmt.Sprintf("groups=%d %s", g.n, windows), arguments: append([]int{g.n}, window...),
			})
		}
	}
	for n := 1; n <= base.manyCount()/base.fewCount(); n++ {
		steps.Steps(1)
		g := base
		g.n = n
		if n == 1 || g.largest() < (grouping{sources: g.sources, sinks: g.sinks, n: n - 1}).largest() {
			add(g)
		}
	}
	if n := (base.manyCount() + base.fewCount() - 1) / base.fewCount(); t.Separate && n > base.manyCount()/base.fewCount() {
		base.n, base.padded = n, true
		add(base)
	}
	return list
}

// worthwhile returns the schemes that no other scheme beats by the formula, the fewest rounds
// first. [universal.Rectangular] leaves out elements, which changes no front: of 9,480
// problems with K and R up to 40 none had a plan below the formulas.
func worthwhile(t schedule.Task, ways []*scheme) []*scheme {
	steps := poll.New(t.Context)
	return sim.Front(ways, func(w *scheme) sim.Cost {
		steps.Steps(w.fewCount())
		tree := schedule.Clog(w.communicatorSize(), t.Ports)
		return sim.Cost{C1: w.C1 + tree, C2: w.C2 + tree}
	})
}

// A groupPlan is a plan of steps in groups and communicators that add up or spread packets.
type groupPlan struct {
	*scheme
	*schedule.Programs
	task   schedule.Task
	stages []schedule.WindowRound // of the communicators' trees
	rounds int                    // of the groups' steps
}

// grouped returns the plan for a scheme.
func grouped(t schedule.Task, name string, w *scheme) plan.Plan {
	q := &groupPlan{
		scheme: w, task: t, stages: schedule.WindowRounds(w.communicatorSize(), t.Ports),
		Programs: &schedule.Programs{Common: t.Info(name, 0, w.parameters, w.arguments)},
	}
	q.Common.Notes, q.Common.Layers = w.notes, w.layerNotes
	phases := w.phases()
	for _, ph := range phases {
		q.rounds += ph.Rounds
	}
	if w.gather() {
		phases = append(phases, plan.Phase{Name: "reduce", Rounds: len(q.stages)})
	} else {
		phases = append([]plan.Phase{{Name: "broadcast", Rounds: len(q.stages)}}, phases...)
	}
	if w.layers == nil {
		q.Programs.Matrix = t.Matrix
	}
	q.Common.Phases = schedule.Joined(phases)
	q.Write, q.Kinds = q.write, q.kinds
	return q
}

func (q *groupPlan) write(b *schedule.Builder, proc int) []plan.Slot {
	packet := -1
	if _, ok := q.task.Source(proc); ok {
		packet = b.Inputs(1)[0]
	}
	group, i, grouped := q.groupOf(proc)
	comms, carried := q.communicators(proc)
	for number := range comms {
		comms[number].Slot = -1
	}
	step := func(input plan.Slot) plan.Slot {
		if grouped {
			return q.encode(b, q.task.Matrix, group, i, input)
		}
		for range q.rounds {
			b.EndRound()
		}
		return -1
	}
	result := -1
	if q.gather() {
		if part := step(packet); carried >= 0 {
			comms[carried].Slot = part
		}
		result = reduce(b, q.stages, comms)
	} else {
		if len(comms) > 0 && comms[0].Position == 0 {
			comms[0].Slot = packet
		}
		input := -1
		if got := broadcast(b, q.stages, comms); carried >= 0 {
			input = got[carried]
		}
		result = step(input)
	}
	if result < 0 {
		return nil
	}
	return []plan.Slot{result}
}

// kinds puts together the processors at the same place in groups of one size that send and receive alike.
func (q *groupPlan) kinds(ctx context.Context) []plan.Class {
	steps := poll.New(ctx)
	type position struct{ index, size int }
	type kind struct {
		source, sink  bool
		size, real    int // of the group
		index         int // in it; -1: of no group
		communicators string
	}
	names := map[position]string{}
	name := func(c communicator) string {
		location := position{c.Position, c.Size}
		if names[location] == "" {
			steps.Steps(len(q.stages))
			names[location] = q.duties(c)
		}
		return names[location]
	}
	index := map[kind]int{}
	var classes []plan.Class
	for proc := range q.Common.Processors {
		steps.Steps(1)
		k := kind{index: -1}
		_, k.source = q.task.Source(proc)
		_, k.sink = q.task.Sink(proc)
		if group, i, ok := q.groupOf(proc); ok {
			k.size, k.real, k.index = q.size(group), q.real(group), i
			if q.layers != nil || k.real == k.size && k.size == q.fewCount() {
				k.index = 0 // all do the same, in a group of layers or of a square matrix
			}
		}
		var comms []string
		list, _ := q.communicators(proc)
		for _, c := range list {
			comms = append(comms, name(c))
		}
		k.communicators = strings.Join(comms, "/")
		class, ok := index[k]
		if !ok {
			class = len(classes)
			index[k] = class
			classes = append(classes, plan.Class{Representative: proc})
		}
		classes[class].Count++
	}
	return classes
}

// duties has a character for each range of the stages, in order: '>' where the position sends, else '<' where it receives,
// else '.'. Processors of one class have equal duties.
func (q *groupPlan) duties(c communicator) string {
	var s strings.Builder
	for _, st := range q.stages {
		for _, r := range st.Ranges {
			switch {
			case c.Position < r.Count && c.Position+r.Offset < c.Size:
				s.WriteByte('>')
			case r.Offset <= c.Position && c.Position < r.Offset+r.Count:
				s.WriteByte('<')
			default:
				s.WriteByte('.')
			}
		}
	}
	return s.String()
}
