// Package universal has prepare-and-shoot, and the universal step with a window and strides of any size.
package universal

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"volley/algo/schedule"
	"volley/field"
	"volley/internal/poll"
	"volley/plan"
	"volley/sim"
)

// Step is the tuned universal step: prepare-and-shoot with a window m and n strides of any size, not powers of p+1.
//
//	problem  every A, every K and p
//	cost     C1 = clog(m) + clog(n), C2 = ⌈(m-1)/p⌉ + ⌈(n-1)/p⌉, for the m, n with
//	         m·n >= K and C1 = clog(K) whose C2 is least (TestUniversalCost)
//	source   paper, section "Prepare and Shoot", generalised; the paper's own
//	         windows are [NewPrepareAndShoot]'s
//
// The offset δ = (s-r) mod K between a packet's home r and a result's home s is split as δ = l·m + i with 0 <= i < m.
// Packet x_r reaches the intermediate r + i in the prepare phase; there it joins the partial sum for s = r + i + l·m,
// which the shoot phase reduces along the stride m. Each offset has exactly one intermediate, so nothing is counted
// twice when m·n > K.
type Step struct {
	size, m, n     int
	prepare, shoot []schedule.WindowRound
	Name           string // of its one phase; empty: prepare and shoot apart
}

// New returns the step with window m and n strides for groups of up to size processors, m·n >= size.
func New(size, ports, m, n int) *Step {
	return &Step{size: size, m: m, n: n, prepare: schedule.WindowRounds(m, ports), shoot: schedule.WindowRounds(n, ports)}
}

// Tuned returns the step for groups of up to size processors with the best window.
func Tuned(size, ports int) *Step {
	m, n := Tune(size, ports, 0)
	return New(size, ports, m, n)
}

// Tune returns the window and the strides of least C2 for groups of size processors; ties go to fewer rounds, then to
// fewer multiply-adds, which are size+n-1, then to less memory. The rounds are at most excess more than the fewest possible.
func Tune(size, ports, excess int) (m, n int) {
	return tune(size, ports, excess, func(n, best int) bool { return n < best })
}

// TuneRectangular is [Tune] for [Rectangular]: ties go to the smaller window, as packets are sent to processors that
// want no result, and sums are not.
func TuneRectangular(size, ports, excess int) (m, n int) {
	return tune(size, ports, excess, func(_, _ int) bool { return false })
}

// tune looks at windows in ascending order: better says whether of two that cost the same the one with n strides is.
func tune(size, ports, excess int, better func(n, best int) bool) (m, n int) {
	bestC1, bestC2 := 0, -1
	limit := schedule.Clog(size, ports) + excess
	for w := 1; w <= size; w++ {
		if bestC2 >= 0 && schedule.Ceil(w-1, ports) > bestC2 {
			break // the window alone takes more
		}
		s := schedule.Ceil(size, w)
		c := Cost(w, s, ports)
		less := cmp.Or(cmp.Compare(c.C2, bestC2), cmp.Compare(c.C1, bestC1))
		if c.C1 <= limit && (bestC2 < 0 || less < 0 || less == 0 && better(s, n)) {
			m, n, bestC1, bestC2 = w, s, c.C1, c.C2
		}
	}
	return m, n
}

// TuneSteps returns about how many windows [Tune] looks at.
func TuneSteps(size int) int { return 1 + 2*int(math.Sqrt(float64(size))) }

// Cost is the cost of the universal step with window m and n strides.
func Cost(m, n, ports int) sim.Cost {
	return sim.Cost{C1: schedule.Clog(m, ports) + schedule.Clog(n, ports), C2: schedule.Ceil(m-1, ports) + schedule.Ceil(n-1, ports)}
}

// Cost is the cost of the step.
func (s *Step) Cost(ports int) sim.Cost { return Cost(s.m, s.n, ports) }

// Plans returns the plan with the fewest rounds and, where a round more lowers C2, those with more, up to limit above
// the fewest, or any number if that is negative; frugally, those as well that other windows make, see [frugal].
func Plans(t schedule.Task, limit int, frugally bool) ([]plan.Plan, error) {
	if err := t.MustBeSquare("universal"); err != nil {
		return nil, err
	}
	k, steps := t.Matrix.Rows(), poll.New(t.Context)
	var plans []plan.Plan
	for excess := 0; excess == 0 || limit < 0 || excess <= limit; excess++ {
		steps.Steps(TuneSteps(k))
		m, n := Tune(k, t.Ports, excess)
		step := New(k, t.Ports, m, n)
		plans = append(plans, schedule.OnAll("universal", step, t))
		if excess > 0 && step.Cost(t.Ports).C1 < schedule.Clog(k, t.Ports)+excess {
			break // rounds are left over: more are of no use
		}
	}
	plans = schedule.Undominated(t.Context, plans)
	if frugally {
		plans = append(plans, frugal(t)...)
	}
	return plans, nil
}

// PlanWith returns the plan with the window and the strides of parameters, m and n.
func PlanWith(t schedule.Task, parameters [][]int) (plan.Plan, error) {
	if err := t.MustBeSquare("universal"); err != nil {
		return nil, err
	}
	k := t.Matrix.Rows()
	if len(parameters) != 1 || len(parameters[0]) != 2 || parameters[0][0] > k || parameters[0][1] != schedule.Ceil(k, parameters[0][0]) {
		return nil, schedule.Misfit(fmt.Sprintf("algo: universal for K = %d: parameters %v: want a window m of 1 to K and ceil(K/m) strides, such as %d,%d",
			k, parameters, schedule.Ceil(k, 2), schedule.Ceil(k, schedule.Ceil(k, 2))))
	}
	return schedule.OnAll("universal", New(k, t.Ports, parameters[0][0], parameters[0][1]), t), nil
}

// frugal returns the plans that no other window beats in rounds, packets, memory and multiply-adds together: where
// these are limited, another window than the tuned one may do.
func frugal(t schedule.Task) []plan.Plan {
	k, steps := t.Matrix.Rows(), poll.New(t.Context)
	type window struct {
		m, n int
		sim.Cost
		memory, compute int
	}
	var list []window
	for m := 1; m <= k; m++ {
		steps.Steps(1)
		n := schedule.Ceil(k, m)
		if m > 1 && schedule.Ceil(k, m-1) == n {
			continue // a smaller window has as many strides
		}
		list = append(list, window{
			m, n, Cost(m, n, t.Ports),
			m + 2*n - 1, // packets held; sums sent, and the result; sums received
			k + n - 1,
		})
	}
	var plans []plan.Plan
	for _, w := range list {
		if !slices.ContainsFunc(list, func(v window) bool {
			steps.Steps(1)
			return v.m != w.m && v.C1 <= w.C1 && v.C2 <= w.C2 && v.memory <= w.memory && v.compute <= w.compute
		}) {
			step := New(k, t.Ports, w.m, w.n)
			plans = append(plans, schedule.OnAll("universal", step, t))
		}
	}
	return plans
}

// Home returns the index in a group of who multiplies the packet at i for the result at j.
func (s *Step) Home(size, i, j int) int { return (i + (j-i+size)%size%s.m) % size }

func (s *Step) Parameters() (string, []int) { return windowed(s.m, s.n) }

// windowed is what a step with window m and n strides chose.
func windowed(m, n int) (text string, arguments []int) {
	return fmt.Sprintf("m=%d n=%d", m, n), []int{m, n}
}

func (s *Step) Phases() []plan.Phase {
	if s.Name != "" {
		return []plan.Phase{{Name: s.Name, Rounds: len(s.prepare) + len(s.shoot)}}
	}
	return []plan.Phase{{Name: "prepare", Rounds: len(s.prepare)}, {Name: "shoot", Rounds: len(s.shoot)}}
}

func (s *Step) Classes() []plan.Class { return schedule.OneClass(s.size) }

// Least is that of [schedule.Bounded].
func (s *Step) Least() (c sim.Cost) {
	for i, stages := range [][]schedule.WindowRound{s.prepare, s.shoot} {
		limit := []int{min(s.m, s.size), schedule.Ceil(s.size, s.m)}[i]
		for _, st := range stages {
			var round sim.NodeRound
			largest := 0
			for _, part := range st.Ranges {
				if n := part.Cut(limit).Count; n > 0 {
					round.Messages, round.Elements, largest = round.Messages+1, round.Elements+float64(n), max(largest, n)
				}
			}
			c.C1, c.C2, c.Nodes = c.C1+1, c.C2+largest, append(c.Nodes, round)
		}
	}
	return c
}

func (s *Step) Encode(b *schedule.Builder, g schedule.Group, input plan.Slot) plan.Slot {
	return s.EncodeUnit(b, g, []plan.Slot{input})[0]
}

// EncodeUnit is Encode where each processor has, and obtains, a unit of several packets, see
// [schedule.SlotWindow.Sums].
func (s *Step) EncodeUnit(b *schedule.Builder, g schedule.Group, inputs []plan.Slot) []plan.Slot {
	gathered := schedule.Gather(b, g, s.prepare, 1, min(s.m, g.Size), inputs)
	strides := schedule.Ceil(g.Size, s.m) // beyond these there is no offset below g.Size
	var sums [][]schedule.Addend
	for l := range strides {
		sums = append(sums, gathered.Sums(g, l*s.m, len(inputs))...)
	}
	return b.Transposed(func(forward *schedule.Builder) ([]plan.Slot, [][]schedule.Addend) {
		return schedule.Gather(forward, g, s.shoot, -s.m, strides, forward.Inputs(len(inputs))), sums
	})
}

// OnComponents returns the plan that runs the step on each component of the processors, which have to do with nobody
// outside: component[k] is the same number for all of one.
func OnComponents(t schedule.Task, component []int) plan.Plan {
	processors, largest := map[int][]int{}, 0
	index := make([]int, len(component))
	for k, c := range component {
		index[k] = len(processors[c])
		processors[c] = append(processors[c], k)
		largest = max(largest, len(processors[c]))
	}
	step := Tuned(largest, t.Ports)
	text, arguments := step.Parameters()
	return schedule.Compile(t.Info("universal", 0, fmt.Sprintf("%s in each of %d components", text, len(processors)), arguments), schedule.Grouping{
		Step: step,
		Group: func(proc int) schedule.Group {
			group := processors[component[proc]]
			return schedule.Group{
				Size: len(group), Index: index[proc], Processor: func(i int) int { return group[i] },
				At: func(i, j int) field.Element { return t.Matrix.At(group[i], group[j]) },
			}
		},
	})
}
