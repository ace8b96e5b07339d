package conditional

import (
	"fmt"
	"slices"

	"volley/algo/schedule"
	"volley/plan"
	"volley/sim"
)

// treeLift is a universal step like [lifted], in about 1.5·log K rounds: the elements
// that come in while sums are reduced along a tree are multiplied and passed on.
//
//	problem  composite K = R·Z; A for which K systems of less than n·h equations are regular,
//	         as they mostly are where A has few zeros and q is large
//	cost     C1 = clog(m) + clog(h) + clog(R) + clog(n), C2 = ⌈(m-1)/p⌉ + ⌈(h-1)/p⌉ + c for
//	         m·h >= Z and n·(m+h-1) >= Z; c = n·(R-1) for p = 1, else the least of two
//	         orders, see treeShape.cost (TestTreeLiftCost)
//	source   ours
//
// How far a packet's home is behind that of a result is r + R·z, 0 <= r < R, 0 <= z < Z:
// coset r, cell z.
//
//   - prepare: everybody obtains the packets of coset 0, cells z < m.
//   - tree: the sums of all of coset R-1, of h rows of m cells, are reduced along offsets
//     m·R. On the way a processor receives h-1 elements; these are its carriers.
//   - shoot: row (r, i), r < R-1, i < n, is what a processor adds to the result r + R·i·s
//     further on: packets that it has, and multiples of its carriers. The n rows cover
//     coset r of that result. Each of them covers m cells by packets; for the cells in
//     between there are equations in the factors of the carriers. The tree's sums are row
//     (R-1, 0). All rows for one result are reduced, over i and then r, or the other way
//     round.
type treeLift struct {
	treeShape
	coding *treeCoding // nil: only the schedule is wanted
}

// treeShape is the parameters of a tree-lift step.
type treeShape struct {
	size, ports int
	cosets      int // R
	m           int // packets that everybody has after the prepare phase
	h           int // rows of the tree
	n           int // rows of the shoot phase in each coset but the last
	stride      int // s, cells between these rows
}

// cells is Z.
func (s treeShape) cells() int { return s.size / s.cosets }

// offset returns how far the results of row (r, i) are from its processor.
func (s treeShape) offset(r, i int) int { return r + s.cosets*i*s.stride }

// rowsFirst reports whether the shoot phase reduces over i first: where that takes fewer
// packets, or as many.
func (s treeShape) rowsFirst() bool {
	return s.rowsFirstC2() <= s.cosetsFirstC2()
}

// rowsFirstC2 and cosetsFirstC2 return the packets of the shoot phase that reduces over
// i, or over r, first.
func (s treeShape) rowsFirstC2() int {
	return (s.cosets-1)*schedule.Ceil(s.n-1, s.ports) + schedule.Ceil(s.cosets-1, s.ports)
}

func (s treeShape) cosetsFirstC2() int {
	c2 := schedule.Ceil(s.n-1, s.ports)
	for _, st := range schedule.WindowRounds(s.cosets, s.ports) {
		largest := 0
		for _, c := range st.Ranges {
			elements := c.Count * s.n
			if c.At+c.Count == s.cosets {
				elements -= s.n - 1 // of the last coset there is one row
			}
			largest = max(largest, elements)
		}
		c2 += largest
	}
	return c2
}

func (s treeShape) cost() sim.Cost {
	return sim.Cost{
		C1: schedule.Clog(s.m, s.ports) + schedule.Clog(s.h, s.ports) + schedule.Clog(s.cosets, s.ports) + schedule.Clog(s.n, s.ports),
		C2: schedule.Ceil(s.m-1, s.ports) + schedule.Ceil(s.h-1, s.ports) + min(s.cosetsFirstC2(), s.rowsFirstC2()),
	}
}

func (s treeShape) String() string {
	return fmt.Sprintf("R=%d m=%d h=%d n=%d stride=%d", s.cosets, s.m, s.h, s.n, s.stride)
}

func (s *treeLift) Parameters() (string, []int) {
	return s.String(), []int{s.cosets, s.m, s.h, s.n, s.stride}
}

func (s *treeLift) Phases() []plan.Phase {
	return []plan.Phase{
		{Name: "prepare", Rounds: schedule.Clog(s.m, s.ports)},
		{Name: "tree", Rounds: schedule.Clog(s.h, s.ports)},
		{Name: "shoot", Rounds: schedule.Clog(s.cosets, s.ports) + schedule.Clog(s.n, s.ports)},
	}
}

func (s *treeLift) Classes() []plan.Class { return schedule.Alike(s.size) }

func (s *treeLift) Encode(b *schedule.Builder, g schedule.Group, in plan.Slot) plan.Slot {
	// Prepare.
	have := schedule.Gather(b, g, schedule.WindowRounds(s.m, s.ports), s.cosets, s.m, []plan.Slot{in})

	// move is the swap of slots with the processors d further on and d back.
	move := func(d int, slots []plan.Slot, put func(got []plan.Slot)) swap {
		return swap{g.Around(d), slots, g.Around(-d), len(slots), put}
	}

	// Tree.
	sums := make([][]plan.Slot, s.h) // received, by row
	branch := func(row int) (terms int, combination func() plan.Combination) {
		more, cells := sums[row], min(s.m, s.cells()-row*s.m)
		return cells + len(more), func() plan.Combination {
			var list schedule.Sum
			for z := range cells {
				list.Add(have[z], g.At(g.Around(-z*s.cosets), g.Around(row*s.m*s.cosets+s.cosets-1)))
			}
			addAll(&list, more)
			return plan.Combination(list)
		}
	}
	var carriers []plan.Slot
	for _, st := range slices.Backward(schedule.WindowRounds(s.h, s.ports)) {
		var list []swap
		for _, c := range st.Ranges {
			slots := make([]plan.Slot, c.Count)
			for x := range slots {
				slots[x] = b.Compute(branch(c.At + x))
			}
			list = append(list, move(c.At*s.m*s.cosets, slots, func(got []plan.Slot) {
				carriers = append(carriers, got...)
				for x, slot := range got {
					sums[x] = append(sums[x], slot)
				}
			}))
		}
		swaps(b, g, list)
	}

	// Shoot.
	type position struct{ r, i int }
	received := map[position][]plan.Slot{}
	var factors *treeFactors
	row := func(at position) plan.Slot {
		more := received[at]
		if at.r == s.cosets-1 {
			return b.Compute(branch(0))
		}
		return b.Compute(s.m+len(carriers)+len(more), func() plan.Combination {
			if factors == nil {
				factors = s.coding.factors(g.Index)
			}
			var list schedule.Sum
			for z, coef := range factors.raw[at.r][at.i] {
				list.Add(have[z], coef)
			}
			for y, coef := range factors.carried[at.r][at.i] {
				list.Add(carriers[y], coef)
			}
			addAll(&list, more)
			return plan.Combination(list)
		})
	}
	pass := func(d int, from, to []position) swap {
		slots := make([]plan.Slot, len(from))
		for x, at := range from {
			slots[x] = row(at)
		}
		return move(d, slots, func(got []plan.Slot) {
			for x, slot := range got {
				received[to[x]] = append(received[to[x]], slot)
			}
		})
	}
	overRows := func(cosets int) {
		for _, st := range slices.Backward(schedule.WindowRounds(s.n, s.ports)) {
			var list []swap
			for _, c := range st.Ranges {
				var from, to []position
				for x := range c.Count {
					for r := range cosets {
						from, to = append(from, position{r, c.At + x}), append(to, position{r, x})
					}
				}
				list = append(list, pass(s.offset(0, c.At), from, to))
			}
			swaps(b, g, list)
		}
	}
	overCosets := func(rows int) {
		for _, st := range slices.Backward(schedule.WindowRounds(s.cosets, s.ports)) {
			var list []swap
			for _, c := range st.Ranges {
				var from, to []position
				for x := range c.Count {
					r := c.At + x
					for i := range rows {
						if i == 0 || r < s.cosets-1 {
							from, to = append(from, position{r, i}), append(to, position{x, i})
						}
					}
				}
				list = append(list, pass(c.At, from, to))
			}
			swaps(b, g, list)
		}
	}
	if s.rowsFirst() {
		overRows(s.cosets - 1)
		overCosets(1)
	} else {
		overCosets(s.n)
		overRows(1)
	}
	return row(position{0, 0})
}
