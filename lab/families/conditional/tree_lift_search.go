package conditional

import (
	"cmp"
	"fmt"
	"slices"

	"volley/algo"
	"volley/field"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
)

// Bounds of the search for tree-lift plans.
const (
	mostTreeSize   = 1 << 14 // K
	mostTreeWork   = 1 << 23 // K·equations·(equations+R): a second or so to see that all are regular
	mostTreeMemory = 1 << 20 // K·R·carriers, solutions that are kept
	mostSingular   = 32      // codings tried that turn out singular
	mostInVain     = 4       // times K solutions, in these
)

// treeShapes returns the shapes of at most so many rounds, if that is not negative,
// that have fewer packets than the universal step with as many rounds: fewest packets
// first, then fewest rounds, then fewest equations. Their strides are to be found.
func treeShapes(size, ports, rounds int) []treeShape {
	least := algo.BoundC1(size, ports)
	top := universalC2(size, ports, least) // more packets are of no use
	universal := map[int]int{}             // packets by rounds
	beats := func(c sim.Cost) bool {
		if c.C2 >= top || rounds >= 0 && c.C1 > rounds {
			return false
		}
		if _, ok := universal[c.C1]; !ok {
			universal[c.C1] = universalC2(size, ports, c.C1)
		}
		return c.C2 < universal[c.C1]
	}
	var list []treeShape
	for cosets := 2; cosets <= size/4; cosets++ {
		if size%cosets != 0 {
			continue
		}
		z := size / cosets
		for h := 2; h <= min(z/2, ports*top); h++ {
			for m := (z + h - 1) / h; m*(h-1) < z && m+h-2 < ports*top; m++ {
				n := (z + m + h - 2) / (m + h - 1)
				s := treeShape{size: size, ports: ports, cosets: cosets, m: m, h: h, n: n}
				if gaps := z - n*m; gaps >= 0 && size*gaps*(gaps+cosets) <= mostTreeWork && beats(s.cost()) {
					list = append(list, s)
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b treeShape) int {
		x, y := a.cost(), b.cost()
		return cmp.Or(cmp.Compare(x.C2, y.C2), cmp.Compare(x.C1, y.C1), cmp.Compare(a.cells()-a.n*a.m, b.cells()-b.n*b.m))
	})
	return list
}

// systems calls yield with the systems of a shape, by stride, that have enough
// carriers, until yield returns false.
func (s treeShape) systems(yield func(*treeSystem) bool) {
	z, seen := s.cells(), map[int]bool{}
	for _, stride := range []int{max(s.m, z/s.n), s.m, s.m + s.h - 1} {
		if seen[stride] || stride > s.m && (s.n-1)*stride+s.m > z {
			continue
		}
		seen[stride] = true
		s.stride = stride
		if system := newTreeSystem(s); len(system.gaps) <= len(system.carriers) && !yield(system) {
			return
		}
	}
}

// regular reports whether the equations are independent for most matrices: for one
// drawn over a large field.
func (s *treeSystem) regular() bool {
	f, err := field.Parse("2147483647")
	if err != nil {
		panic(err)
	}
	m, err := matrix.Random(f, s.size, s.size, 1)
	if err != nil {
		panic(err) // size is in range: there is a matrix of it
	}
	return newTreeCoding(s, m, nil).solve(0) != nil
}

// TreeLift returns the tree-lift plans for a problem of which none is worse than
// another in C1 and C2, nor than a universal one, fewest rounds first. Where equations of
// some processor depend on one another they are tried in other orders of the processors,
// then with other parameters. The error is an [schedule.ErrStructure].
func TreeLift(p *algo.Problem) ([]plan.Plan, error) {
	if err := p.Task().MustBeSquare("tree-lift"); err != nil {
		return nil, err
	}
	k, no := p.Matrix.Rows(), refusal("tree-lift", p)
	if k > mostTreeSize {
		return no("more than %d processors are too much reckoning", mostTreeSize)
	}
	shapes := treeShapes(k, p.Ports, p.MostRounds())
	if len(shapes) == 0 {
		return no("for no K = R·Z are there parameters within the limits that have fewer packets than universal with as many rounds")
	}
	var plans []plan.Plan
	var why string
	singular, vain := 0, 0
	enough := func() bool { return p.Ended() != nil || singular >= mostSingular || vain >= mostInVain*k }
	// try returns the plan for a shape, or nil.
	try := func(shape treeShape) plan.Plan {
		for system := range shape.systems {
			for seed := range 1 + mostRelabelled {
				order := seededOrder(k, seed)
				step := &treeLift{system.treeShape, newTreeCoding(system, p.Matrix, order)}
				base, ok := step.coding.singular(p)
				if !ok {
					return relabelledPlan("tree-lift", step, p.Task(), order)
				}
				if seed == 0 && !system.regular() {
					break // whatever the matrix
				}
				if singular++; singular == 1 {
					why = fmt.Sprintf("the equations of processor %d depend on one another for %v", base, step)
				}
				if vain += base + 1; enough() {
					return nil
				}
			}
		}
		return nil
	}
	fewest := -1
	for _, shape := range shapes {
		c1 := shape.cost().C1
		if enough() {
			break
		}
		if fewest >= 0 && c1 >= fewest || p.Hopeless(shape.cost()) {
			continue
		}
		if q := try(shape); q != nil {
			plans = append(plans, q)
			fewest = c1
		}
	}
	switch {
	case len(plans) > 0:
		slices.Reverse(plans)
		return plans, nil
	case singular > 0:
		return no("%s, and the like in other orders of the processors and with other parameters", why)
	}
	return no("the equations of all parameters that would pay depend on one another, whatever the matrix")
}
