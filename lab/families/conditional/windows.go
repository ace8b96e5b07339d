package conditional

import (
	"fmt"
	"slices"

	"volley/algo"
	"volley/algo/schedule"
	"volley/field"
	"volley/matrix"
	"volley/plan"
)

// windows is prepare-and-shoot with a phase in between, in which everybody receives B
// elements for its own result. It keeps them: in the results of others it passes them
// on, multiplied, in place of packets that it has not.
//
//	problem  every K and p; B >= 1 (B = 0 is "universal"); A whose pivots, B at each
//	         processor, are not zero. In a [windows.plain] step they are quotients of
//	         minors of A of size B and less: never zero where A is superregular
//	cost     C1 = clog(m) + ⌈B/p⌉ + clog(c+1), C2 = ⌈(m-1)/p⌉ + ⌈B/p⌉ + ⌈c/p⌉, for most
//	         K up to m·(1+B+c) + B·c, see [windowShape] (TestWindows, TestWindowTable)
//	source   ours
//
// Processor j says offset (j-i) mod K for the packet x_i. The schedule has a stride M
// and deals the offsets, see [windowShape.cells]:
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
// Pivot t of k, the coefficient of the last packet of z_t(k), divides. [windows.vanishing]
// finds pivots that are zero; Encode takes for granted that there are none. All groups
// of a layer have to be as large as the step's size.
type windows struct {
	windowShape
	ports          int
	owners         cells
	neighbours     [][]nearby // of slot s, at s+B
	prepare, shoot []schedule.WindowRound
}

// nearby is a slot that begins so many places after another one, or before if negative.
type nearby struct{ slot, after int }

// newWindows returns the step, for a shape that has cells.
func newWindows(w windowShape, ports int) *windows {
	return &windows{
		windowShape: w, ports: ports, owners: w.cells(), neighbours: w.neighbours(),
		prepare: schedule.WindowRounds(w.m, ports), shoot: schedule.WindowRounds(w.c+1, ports),
	}
}

// neighbours returns for each slot those whose m+B places overlap with its own, itself
// among them.
func (w windowShape) neighbours() [][]nearby {
	width := w.m + w.extra
	slots := make([]int, 1+w.extra+w.c) // in the order of their first offsets
	for i := range slots {
		slots[i] = i - w.extra
	}
	slices.SortFunc(slots, func(a, b int) int { return w.offset(a, 0) - w.offset(b, 0) })
	neighbours := make([][]nearby, len(slots))
	for i, s := range slots {
		neighbours[s+w.extra] = append(neighbours[s+w.extra], nearby{s, 0})
		for d := 1; d < len(slots); d++ {
			n := slots[(i+d)%len(slots)]
			after := w.wrap(w.offset(n, 0) - w.offset(s, 0))
			if after >= width || after == 0 && i+d >= len(slots) { // the latter have met already
				break
			}
			neighbours[s+w.extra] = append(neighbours[s+w.extra], nearby{n, after})
			neighbours[n+w.extra] = append(neighbours[n+w.extra], nearby{s, -after})
		}
	}
	return neighbours
}

func (s *windows) Parameters() (string, []int) { return s.String(), []int{s.extra, s.m, s.c, s.stride} }

func (s *windows) Phases() []plan.Phase {
	return []plan.Phase{
		{Name: "prepare", Rounds: len(s.prepare)},
		{Name: "window", Rounds: (s.extra + s.ports - 1) / s.ports},
		{Name: "shoot", Rounds: len(s.shoot)},
	}
}

func (s *windows) Classes() []plan.Class { return schedule.OneClass(s.size) }

func (s *windows) Encode(b *schedule.Builder, g schedule.Group, input plan.Slot) plan.Slot {
	if g.Size != s.size {
		panic(fmt.Sprintf("algo: windows for groups of %d in a group of %d", s.size, g.Size))
	}
	code := newWindowCoding(s, b.Field, g.At)
	held := schedule.Gather(b, g, s.prepare, 1, s.m, []plan.Slot{input})

	extra := make([]plan.Slot, 1+s.extra) // by t
	for first := 1; first <= s.extra; first += s.ports {
		last := min(first+s.ports-1, s.extra)
		for t := first; t <= last; t++ {
			receiver := g.Around(s.offset(-t, t))
			element := b.Compute(s.windowTerms(t), func() plan.Combination {
				c := make(schedule.Sum, 0, s.windowTerms(t))
				for i, e := range code.window(t, receiver) {
					c.Add(held[i], e)
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
		sums[l] = schedule.Combined(s.sumTerms(l), func() plan.Combination {
			return code.sum(l, g.Around(s.offset(l, 0)), held, extra)
		})
	}
	return b.Transposed(func(forward *schedule.Builder) ([]plan.Slot, [][]schedule.Addend) {
		return schedule.Gather(forward, g, s.shoot, -s.stride, s.c+1, forward.Inputs(1)), sums
	})[0]
}

// windowTerms returns the terms of window t, where no coefficient is zero.
func (s *windows) windowTerms(t int) int {
	n := 0
	for i := range s.m {
		if s.covers(t, i) || i == s.m-1 {
			n++
		}
	}
	return n
}

// sumTerms returns the terms of partial sum l where no coefficient is zero.
func (s *windows) sumTerms(l int) int {
	n := 0
	for i := range s.m {
		if s.owners[s.offset(l, i)] == s.rowCell(l) {
			n++
		}
	}
	for t := 1; t <= s.extra; t++ {
		if l == 0 || s.fills(l, t) {
			n++
		}
	}
	return n
}

// covers reports whether place i of window t is its own.
func (s *windows) covers(t, i int) bool { return s.owners[s.offset(-t, t+i)] == s.windowCell(t) }

// fills reports whether the gap at the end of window t, multiplied for row l, is filled so.
func (s *windows) fills(l, t int) bool { return s.owners[s.offset(l-t, s.m+t-1)] == s.gapCell(l, t) }

// visitWindows calls visit for every window above t that lies over places [low, high) of a slot: as
// it is where l = 0, or multiplied for row l, where that fills a gap. Its place 0 is at
// place start of the slot.
func (s *windows) visitWindows(slot, low, high, t int, visit func(l, u, start int)) {
	for _, n := range s.neighbours[slot+s.extra] {
		for u := max(t+1, -n.slot, low-n.after-s.m+1); u <= min(s.extra, s.c-n.slot, high-1-n.after); u++ {
			if l := n.slot + u; l == 0 || s.fills(l, u) {
				visit(l, u, n.after+u)
			}
		}
	}
}

// A windowCoding reckons the coefficients of a step for one matrix, each when it is asked
// for, and remembers those of windows and gaps.
type windowCoding struct {
	*windows
	f           field.Field
	coefficient func(i, j int) field.Element
	vectors     map[int64][]field.Element // windows, by t and processor
	entries     map[int64]field.Element   // of windows, by t, processor and place
	factors     map[int64]field.Element   // of gaps, by l, t and processor
	inverse     map[int64]field.Element   // of pivots, by t and processor
}

func newWindowCoding(s *windows, f field.Field, entry func(i, j int) field.Element) *windowCoding {
	return &windowCoding{
		windows: s, f: f, coefficient: entry,
		vectors: map[int64][]field.Element{}, entries: map[int64]field.Element{},
		factors: map[int64]field.Element{}, inverse: map[int64]field.Element{},
	}
}

// forget makes room.
func (c *windowCoding) forget() {
	clear(c.vectors)
	clear(c.entries)
	clear(c.factors)
	clear(c.inverse)
}

// key tells apart processors, for each n.
func (c *windowCoding) key(n, k int) int64 { return int64(n)*int64(c.size) + int64(k) }

// window returns the coefficients of z_t(k), by place: what is left for it to cover, and,
// where something else covers the offset, 0, or 1 at the last place, the pivot.
func (c *windowCoding) window(t, k int) []field.Element {
	key := c.key(t, k)
	list, ok := c.vectors[key]
	if !ok {
		list = c.uncovered(-t, t, t+c.m, k, t)
		for i := range list {
			if !c.covers(t, i) {
				list[i] = c.notCovered(i)
			}
		}
		c.vectors[key] = list
	}
	return list
}

func (c *windowCoding) notCovered(i int) field.Element {
	if i == c.m-1 {
		return field.One
	}
	return field.Element{}
}

// entry returns what window has at place i.
func (c *windowCoding) entry(t, k, i int) field.Element {
	if !c.covers(t, i) {
		return c.notCovered(i)
	}
	if list, ok := c.vectors[c.key(t, k)]; ok {
		return list[i]
	}
	key := c.key(t, k)*int64(c.m) + int64(i)
	e, ok := c.entries[key]
	if !ok {
		e = c.uncovered(-t, t+i, t+i+1, k, t)[0]
		c.entries[key] = e
	}
	return e
}

// pivot returns pivot t of k.
func (c *windowCoding) pivot(t, k int) field.Element { return c.entry(t, k, c.m-1) }

// factor returns γ_l,t(j).
func (c *windowCoding) factor(l, t, j int) field.Element {
	key := c.key(l*(c.extra+1)+t, j)
	e, ok := c.factors[key]
	if !ok {
		k := c.wrap(j - c.offset(l, 0))
		inverse, ok := c.inverse[c.key(t, k)]
		if !ok {
			inverse = c.f.Inv(c.pivot(t, k))
			c.inverse[c.key(t, k)] = inverse
		}
		e = c.f.Mul(c.uncovered(l-t, c.m+t-1, c.m+t, j, t)[0], inverse)
		c.factors[key] = e
	}
	return e
}

// uncovered returns what the windows and gaps above t leave to cover of the packets at
// places [low, high) of slot s, for the result of j.
func (c *windowCoding) uncovered(s, low, high, j, t int) []field.Element {
	list := make([]field.Element, high-low)
	for i := range list {
		list[i] = c.coefficient(c.wrap(j-c.offset(s, low+i)), j)
	}
	c.visitWindows(s, low, high, t, func(l, u, start int) {
		k := c.wrap(j - c.offset(l, 0))
		first, last := max(low, start), min(high, start+c.m)
		var entries []field.Element
		if last-first == 1 {
			entries = []field.Element{c.entry(u, k, first-start)}
		} else {
			entries = c.window(u, k)[first-start : last-start]
		}
		factor := field.One
		if l > 0 {
			factor = c.factor(l, u, j)
		}
		for i, e := range entries {
			if !e.IsZero() {
				list[first-low+i] = c.f.Sub(list[first-low+i], c.f.Mul(factor, e))
			}
		}
	})
	return list
}

// sum returns partial sum l, for j, of the packets held, by offset, and of the extra
// elements, by t.
func (c *windowCoding) sum(l, j int, held, extra []plan.Slot) plan.Combination {
	s := make(schedule.Sum, 0, c.sumTerms(l))
	for i, e := range c.uncovered(l, 0, c.m, j, 0) {
		if c.owners[c.offset(l, i)] == c.rowCell(l) {
			s.Add(held[i], e)
		}
	}
	for t := 1; t <= c.extra; t++ {
		switch {
		case l == 0:
			s.Add(extra[t], field.One)
		case c.fills(l, t):
			s.Add(extra[t], c.factor(l, t, j))
		}
	}
	return plan.Combination(s)
}

// vanishing returns a pivot that is zero, pivot t of processor k; ok is false where there
// is none.
func (s *windows) vanishing(p *algo.Problem, entry func(i, j int) field.Element) (t, k int, ok bool) {
	if s.plain() {
		return s.vanishingMinor(p, entry)
	}
	return s.vanishingPivot(p, entry)
}

// vanishingPivot is vanishing as pivots are coded.
func (s *windows) vanishingPivot(p *algo.Problem, entry func(i, j int) field.Element) (t, k int, ok bool) {
	code := newWindowCoding(s, p.Matrix.Field(), entry)
	for last := range s.size { // of processors whose pivots have much in common
		if p.Ended() != nil {
			break
		}
		for t := s.extra; t >= 1; t-- {
			if k := s.wrap(last - s.offset(t, 0)); code.pivot(t, k).IsZero() {
				return t, k, true
			}
		}
		code.forget()
	}
	return 0, 0, false
}

// work is about how many entries of A, or other work as long, vanishing takes.
func (s *windows) work() int {
	n := s.size * s.extra * s.extra
	if !s.plain() {
		n *= 16
	}
	return n
}

// plain reports whether every pivot is the quotient of two minors of A, as minor says:
// whether in each window's slot the places [m, m+B) are those of the window and of
// gaps, and no other slot's windows lie there.
func (s *windows) plain() bool {
	for t := 1; t <= s.extra; t++ {
		for i := s.m; i < s.m+s.extra; i++ {
			u := i - s.m + 1
			if u <= t && (i < t || !s.covers(t, i-t)) || u > t && (u-t > s.c || !s.fills(u-t, u)) {
				return false
			}
			alone := true
			s.visitWindows(-t, i, i+1, max(t, u), func(l, v, _ int) { alone = alone && l-v == -t })
			if !alone {
				return false
			}
		}
	}
	return true
}

// minor returns the rows and columns of the minor of A which, divided by the one without
// its first row and column, is pivot t of k in a plain step.
func (s *windows) minor(t, k int) (rows, columns []int) {
	for u := t; u <= s.extra; u++ {
		rows = append(rows, s.wrap(k+s.offset(t, 0)-s.m-(u-1)))
		columns = append(columns, s.wrap(k-s.offset(u-t, 0)))
	}
	return rows, columns
}

// reason says that pivot t of k is zero.
func (s *windows) reason(t, k int) string {
	text := fmt.Sprintf("pivot %d of processor %d is zero", t, k)
	if !s.plain() {
		return text
	}
	rows, columns := s.minor(t, k)
	if len(rows) == 1 {
		return fmt.Sprintf("%s, the entry in row %d and column %d", text, rows[0], columns[0])
	}
	return fmt.Sprintf("%s, the minor of rows %s and columns %s", text, abbreviate(rows), abbreviate(columns))
}

// vanishingMinor is vanishing in a plain step. Pivots whose minors have their last
// column in common are those of one matrix, eliminated from its end.
func (s *windows) vanishingMinor(p *algo.Problem, entry func(i, j int) field.Element) (t, k int, ok bool) {
	f := p.Matrix.Field()
	a := make([][]field.Element, s.extra) // by t-1
	for i := range a {
		a[i] = make([]field.Element, s.extra)
	}
	for first := range s.size { // processor of pivot 1
		if p.Ended() != nil {
			break
		}
		rows, columns := s.minor(1, first)
		for i, row := range rows {
			for u, column := range columns {
				a[i][u] = entry(row, column)
			}
		}
		for t := s.extra - 1; t >= 0; t-- {
			if a[t][t].IsZero() {
				return t + 1, columns[t], true
			}
			inverse := f.Inv(a[t][t])
			for i := range t {
				if a[i][t].IsZero() {
					continue
				}
				factor := f.Mul(a[i][t], inverse)
				for u := range t {
					a[i][u] = f.Sub(a[i][u], f.Mul(factor, a[t][u]))
				}
			}
		}
	}
	return 0, 0, false
}

// Bounds of what is tried for a matrix that is not known to be superregular.
const (
	mostWindowSize   = 1 << 15
	mostWindowOrders = 8       // numberings of the processors, for each choice of parameters
	mostWindowShapes = 3       // choices of parameters for a number of rounds
	mostWindowTries  = 64      // of both, for all numbers of rounds
	mostWindowWork   = 1 << 21 // entries of A for all of these, a second or so
)

// Windows returns the plans that need fewer packets than any other with as few
// rounds, and than universal. Where pivots of A are zero, the processors are
// numbered anew, in orders that all know, then other parameters are tried. The error
// is an [schedule.ErrStructure] where that does not help, or where nothing beats universal.
func Windows(p *algo.Problem) ([]plan.Plan, error) {
	if err := p.Task().MustBeSquare("windows"); err != nil {
		return nil, err
	}
	k, refuse := p.Matrix.Rows(), refusal("windows", p)
	if k > mostWindowSize {
		return refuse("parameters are searched up to K = %d only", mostWindowSize)
	}
	table := windowTable(k, p.Ports, p.Limits.Rounds.Excess())
	if len(table) == 0 {
		if limit := p.MostRounds(); limit >= 0 {
			return refuse("universal has as few packets in up to %d rounds", limit)
		}
		return refuse("universal has as few packets")
	}
	known := matrix.StructureOf(p.Matrix).Superregular()
	tries, work := mostWindowTries, mostWindowWork
	reason := ""
	// suited returns the plan of a shape, or nil, with the processors in the first order
	// in which no pivot is zero.
	suited := func(w windowShape) plan.Plan {
		s := newWindows(w, p.Ports)
		for seed := 0; seed < mostWindowOrders && tries > 0 && p.Ended() == nil; seed++ {
			order := seededOrder(k, seed)
			if !known || !s.plain() {
				if work -= s.work(); work < 0 {
					return nil
				}
				_, entry := ordered(p.Matrix, order)
				if t, k, zero := s.vanishing(p, entry); zero {
					if reason == "" {
						reason = s.reason(t, k)
					}
					tries--
					continue
				}
			}
			return relabelledPlan("windows", s, p.Task(), order)
		}
		return nil
	}
	var plans []plan.Plan
	for _, w := range table {
		shapes := 0
		for w := range w.alternatives(p.Ports) {
			if q := suited(w); q != nil {
				plans = append(plans, q)
				break
			}
			if shapes++; shapes == mostWindowShapes || tries == 0 || work < 0 {
				break
			}
		}
	}
	switch {
	case len(plans) > 0:
		return schedule.Undominated(p.Context, plans), nil
	case reason == "":
		return refuse("to look at the pivots of A is too much reckoning")
	}
	return refuse("%s; in other orders of the processors, another one", reason)
}
