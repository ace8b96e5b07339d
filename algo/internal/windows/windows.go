// Package windows has a step that needs fewer packets than the universal step, for most matrices: what a processor
// receives for its own result it also passes on.
package windows

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"volley/algo/schedule"
	"volley/field"
	"volley/plan"
	"volley/sim"
)

// A Step is prepare-and-shoot with a phase in between, in which everybody receives B
// elements for its own result. It keeps them: in the results of others it passes them
// on, multiplied, in place of packets that it has not.
//
//	problem  every K and p; B >= 1 (B = 0 is "universal"); A whose pivots, B at each
//	         processor, are not zero
//	cost     C1 = clog(m) + ⌈B/p⌉ + clog(c+1), C2 = ⌈(m-1)/p⌉ + ⌈B/p⌉ + ⌈c/p⌉, for most
//	         K up to m·(1+B+c) + B·c, see [shape] (TestWindows, TestWindowTable)
//	source   ours
//
// Processor j says offset (j-i) mod K for the packet x_i. The schedule has a stride M
// and deals the offsets, see [shape.cells]:
//
//   - prepare: everybody obtains the packets at offsets [0, m).
//   - window t = 1 … B: k receives from k + t·M - t the element z_t(k), which covers
//     offsets -t·M + t + [0, m) of its result.
//   - shoot, with stride M as in universal: the partial sum of k for j = k + l·M has the
//     packets of row l, offsets l·M + [0, m) of j, and for gap (l, t), an offset that
//     nothing else covers, γ_l,t·z_t(k). The factor γ_l,t gives the last packet of z_t(k)
//     the correct coefficient at that offset. What γ_l,t·z_t(k) adds at other offsets is
//     taken off rows, and off windows and gaps of smaller t, which are reckoned later.
//
// Pivot t of k, the coefficient of the last packet of z_t(k), divides. [Step.vanishing]
// finds pivots that are zero; Encode takes for granted that there are none. All groups
// of a layer have to be as large as the step's size.
type Step struct {
	shape
	ports          int
	cell           cells
	rows           [][]int   // by l: the places of row l that it covers
	windows        [][]int   // by t: the places of window t whose coefficient may not be zero
	passed         [][]int   // by l: the windows that partial sum l has
	overlaps       [][]piece // by offset: places of windows there that something else covers
	prepare, shoot []schedule.WindowRound
}

// A piece is a place of window t, multiplied for partial sum l.
type piece struct{ l, t, index int }

// newStep returns the step, for a shape that has cells.
func newStep(w shape, ports int) *Step {
	s := &Step{
		shape: w, ports: ports, cell: w.cells(),
		rows: make([][]int, 1+w.c), windows: make([][]int, 1+w.extra), passed: make([][]int, 1+w.c), overlaps: make([][]piece, w.size),
		prepare: schedule.WindowRounds(w.m, ports), shoot: schedule.WindowRounds(w.c+1, ports),
	}
	for l := range s.rows {
		for i := range s.m {
			if s.cell[s.offset(l, i)] == s.rowCell(l) {
				s.rows[l] = append(s.rows[l], i)
			}
		}
	}
	for t := 1; t <= s.extra; t++ {
		for i := range s.m {
			if s.covers(t, i) || i == s.m-1 {
				s.windows[t] = append(s.windows[t], i)
			}
		}
		for l := range s.passed {
			cell := s.windowCell(t)
			if l > 0 {
				if cell = s.gapCell(l, t); s.cell[s.offset(l-t, s.m+t-1)] != cell {
					continue
				}
			}
			s.passed[l] = append(s.passed[l], t)
			for _, i := range s.windows[t] {
				if o := s.offset(l-t, t+i); s.cell[o] != cell {
					s.overlaps[o] = append(s.overlaps[o], piece{l, t, i})
				}
			}
		}
	}
	return s
}

// covers reports whether window t covers the offset at its place i.
func (s *Step) covers(t, i int) bool { return s.cell[s.offset(-t, t+i)] == s.windowCell(t) }

func (s *Step) Parameters() (string, []int) { return s.String(), []int{s.extra, s.m, s.c, s.stride} }

func (s *Step) Phases() []plan.Phase {
	return []plan.Phase{
		{Name: "prepare", Rounds: len(s.prepare)},
		{Name: "window", Rounds: (s.extra + s.ports - 1) / s.ports},
		{Name: "shoot", Rounds: len(s.shoot)},
	}
}

func (s *Step) Classes() []plan.Class { return schedule.OneClass(s.size) }

// Least is that of [schedule.Bounded].
func (s *Step) Least() sim.Cost {
	c := s.cost(s.ports)
	c.Pieces = 1
	for _, st := range s.prepare {
		c.Nodes = append(c.Nodes, sim.NodeRound{Messages: len(st.Ranges), Elements: float64(st.End - st.Start)})
	}
	for unsent := s.extra; unsent > 0; unsent -= s.ports {
		n := min(unsent, s.ports)
		c.Nodes = append(c.Nodes, sim.NodeRound{Messages: n, Elements: float64(n)})
	}
	for _, st := range slices.Backward(s.shoot) {
		c.Nodes = append(c.Nodes, sim.NodeRound{Messages: len(st.Ranges), Elements: float64(st.End - st.Start)})
	}
	return c
}

func (s *Step) Encode(b *schedule.Builder, g schedule.Group, input plan.Slot) plan.Slot {
	if g.Size != s.size {
		panic(fmt.Sprintf("algo: windows for groups of %d in a group of %d", s.size, g.Size))
	}
	code := newCoding(s, b.Field, g.At)
	gathered := schedule.Gather(b, g, s.prepare, 1, s.m, []plan.Slot{input})

	extra := make([]plan.Slot, 1+s.extra) // by t
	for first := 1; first <= s.extra; first += s.ports {
		last := min(first+s.ports-1, s.extra)
		for t := first; t <= last; t++ {
			receiver := g.Around(s.offset(-t, t))
			element := b.Compute(len(s.windows[t]), func() plan.Combination {
				c := make(schedule.Sum, 0, len(s.windows[t]))
				for _, i := range s.windows[t] {
					c.Add(gathered[i], code.window(t, receiver, i))
				}
				return plan.Combination(c)
			})
			b.Send(t-first, g.Processor(receiver), []plan.Slot{element})
		}
		for t := first; t <= last; t++ {
			extra[t] = b.Receive(t-first, g.Processor(g.Around(-s.offset(-t, t))), 1)[0]
		}
		b.EndRound()
	}

	sums := make([][]schedule.Addend, s.c+1)
	for l := range sums {
		terms := len(s.rows[l]) + len(s.passed[l])
		sums[l] = schedule.Combined(terms, func() plan.Combination {
			receiver := g.Around(s.offset(l, 0))
			c := make(schedule.Sum, 0, terms)
			for _, i := range s.rows[l] {
				c.Add(gathered[i], code.uncovered(s.offset(l, i), receiver))
			}
			for _, t := range s.passed[l] {
				c.Add(extra[t], code.factor(l, t, receiver))
			}
			return plan.Combination(c)
		})
	}
	return b.Transposed(func(forward *schedule.Builder) ([]plan.Slot, [][]schedule.Addend) {
		return schedule.Gather(forward, g, s.shoot, -s.stride, s.c+1, forward.Inputs(1)), sums
	})[0]
}

// A coding reckons the coefficients of a step for one matrix, each when it is asked
// for, and remembers those of windows and gaps.
type coding struct {
	*Step
	f       field.Field
	entry   func(i, j int) field.Element
	entries map[piece]field.Element // of windows, by processor in place of l
	factors map[piece]field.Element // by l, t and processor; inverses of pivots for l = 0
}

func newCoding(s *Step, f field.Field, entry func(i, j int) field.Element) *coding {
	return &coding{s, f, entry, map[piece]field.Element{}, map[piece]field.Element{}}
}

// uncovered returns what the places of windows at an offset of j leave to what covers it.
func (c *coding) uncovered(offset, j int) field.Element {
	e := c.entry(c.wrap(j-offset), j)
	for _, p := range c.overlaps[offset] {
		e = c.f.Sub(e, c.f.Mul(c.factor(p.l, p.t, j), c.window(p.t, c.wrap(j-c.offset(p.l, 0)), p.index)))
	}
	return e
}

// window returns the coefficient of z_t(k) at a place: what is left for it to cover, or 1 at the last place, the pivot,
// where something else covers the offset.
func (c *coding) window(t, k, i int) field.Element {
	if !c.covers(t, i) {
		return field.One
	}
	key := piece{k, t, i}
	e, ok := c.entries[key]
	if !ok {
		e = c.uncovered(c.offset(-t, t+i), k)
		c.entries[key] = e
	}
	return e
}

// pivot returns pivot t of k.
func (c *coding) pivot(t, k int) field.Element { return c.window(t, k, c.m-1) }

// factor returns γ_l,t(j), which is 1 for l = 0.
func (c *coding) factor(l, t, j int) field.Element {
	if l == 0 {
		return field.One
	}
	key := piece{l, t, j}
	e, ok := c.factors[key]
	if !ok {
		k := c.wrap(j - c.offset(l, 0))
		inverse, ok := c.factors[piece{0, t, k}]
		if !ok {
			inverse = c.f.Inv(c.pivot(t, k))
			c.factors[piece{0, t, k}] = inverse
		}
		e = c.f.Mul(c.uncovered(c.offset(l-t, c.m+t-1), j), inverse)
		c.factors[key] = e
	}
	return e
}

// vanishing returns a pivot that is zero, pivot t of processor k; ok is false where there
// is none.
func (s *Step) vanishing(task schedule.Task, entry func(i, j int) field.Element) (t, k int, ok bool) {
	code := newCoding(s, task.Matrix.Field(), entry)
	for last := range s.size { // of processors whose pivots have much in common
		if task.Ended() != nil {
			break
		}
		for t := s.extra; t >= 1; t-- {
			if k := s.wrap(last - s.offset(t, 0)); code.pivot(t, k).IsZero() {
				return t, k, true
			}
		}
		clear(code.entries)
		clear(code.factors)
	}
	return 0, 0, false
}

// Bounds of what is tried for a matrix.
const (
	mostSize     = 1 << 14
	mostOrders   = 8       // numberings of the processors, for each choice of parameters
	mostAttempts = 3       // of parameters, for a number of rounds
	mostTries    = 64      // of both with a pivot that is zero, for all numbers of rounds
	mostWork     = 1 << 21 // entries of A for all of these, a second or so
)

// Plans returns the plans that need fewer packets than any other with as few rounds, and than universal, in at most
// excess rounds more than the fewest, or any number if that is negative. It leaves out those of a hopeless cost. Where
// pivots of A are zero, the processors are numbered anew, in orders that all know, then other parameters are tried. The
// error is an [schedule.ErrStructure] where that does not help, or where nothing beats universal.
func Plans(task schedule.Task, excess int, hopeless func(sim.Cost) bool) ([]plan.Plan, error) {
	if err := task.MustBeSquare("windows"); err != nil {
		return nil, err
	}
	size := task.Matrix.Rows()
	say := func(format string, args ...any) string {
		return fmt.Sprintf("algo: windows for K = %d, p = %d: ", size, task.Ports) + fmt.Sprintf(format, args...)
	}
	if size > mostSize {
		return nil, schedule.Misfit(say("parameters are searched up to K = %d only", mostSize))
	}
	list := front(size, task.Ports, excess)
	if len(list) == 0 {
		return nil, schedule.Misfit(say("universal has as few packets"))
	}
	tries, work, zero := mostTries, mostWork, ""
	// suited returns the plan of a step with the processors in the first order in which no pivot is zero, or nil.
	suited := func(s *Step) plan.Plan {
		for seed := 0; seed < mostOrders && tries > 0; seed++ {
			if work -= size * s.extra * s.extra; work < 0 || task.Ended() != nil {
				return nil
			}
			order := seededOrder(size, seed)
			t, k, vanishes := s.vanishing(task, func(i, j int) field.Element { return task.Matrix.At(order[i], order[j]) })
			if !vanishes {
				return relabelled(s, task, order)
			}
			if zero == "" {
				zero = say("pivot %d of processor %d is zero; in other orders of the processors, another one", t, k)
			}
			tries--
		}
		return nil
	}
	var plans []plan.Plan
	for _, w := range list {
		attempts := 0
		for w := range w.alternatives(task.Ports) {
			s := newStep(w, task.Ports)
			if attempts++; attempts > mostAttempts || hopeless(s.Least()) {
				break
			}
			if q := suited(s); q != nil {
				plans = append(plans, q)
				break
			}
		}
	}
	switch {
	case len(plans) > 0:
		return schedule.Undominated(task.Context, plans), nil
	case zero == "":
		return nil, schedule.Misfit(say("to look at the pivots of A is too much reckoning, or another plan is known to be cheaper"))
	}
	return nil, schedule.Unmet{Misfit: schedule.Misfit(zero)}
}

// seededOrder returns the processors in an order that all know: the natural one for seed 0, else one drawn by rand.PCG
// with the seeds seed and size.
func seededOrder(size, seed int) []int {
	draw := rand.NewPCG(uint64(seed), uint64(size))
	order := make([]int, size)
	for k := range order {
		order[k] = k
	}
	for k := size - 1; k > 0 && seed > 0; k-- {
		j := int(draw.Uint64() % uint64(k+1))
		order[k], order[j] = order[j], order[k]
	}
	return order
}

// relabelled returns the plan of the step on all processors in an order.
func relabelled(s *Step, t schedule.Task, order []int) plan.Plan {
	position := make([]int, len(order))
	for i, proc := range order {
		position[proc] = i
	}
	parameters, arguments := s.Parameters()
	var notes []string
	if !slices.IsSorted(order) {
		parameters += " relabelled"
		notes = []string{"relabelled: processors take their parts in an order drawn from a seed, as the matrix is singular in theirs"}
	}
	l := schedule.Compile(t.Info("windows", 0, parameters, arguments), schedule.Grouping{
		Step: s, Single: true, Uniform: true,
		Group: func(proc int) schedule.Group {
			return schedule.Group{
				Size: len(order), Index: position[proc],
				Processor: func(i int) int { return order[i] },
				At:        func(i, j int) field.Element { return t.Matrix.At(order[i], order[j]) },
			}
		},
	})
	l.Common.Notes, l.Matrix = notes, t.Matrix
	return l
}
