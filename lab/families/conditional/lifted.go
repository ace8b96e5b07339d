package conditional

import (
	"fmt"
	"slices"

	"volley/algo"
	"volley/algo/schedule"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
)

// lifted is a universal step whose results do double duty: what a processor
// receives for its own result it also passes on, multiplied, in the results of others.
//
//	problem  K = 3·h² (T = 2) or 6·h² (T = 3), h > 1: every A over q > h, corrected; where
//	         (T-1)·K minors of A, of size h, are not zero, as in every superregular A,
//	         without the correction and over any field
//	cost     C1 = clog(h) + (T-1)·⌈h/p⌉ + 1 + clog(⌈h/p⌉), C2 = ⌈(h-1)/p⌉ + T·⌈h/p⌉; both
//	         ⌈(T-1)/p⌉ more when corrected, less what finds a free port (TestLiftedCost)
//	source   ours
//
// Processor (u, t, i), 0 <= u < T·(T+1)/2, t and i cyclic below h, is number
// (u·h + t)·h + i; block (u, t) is the processors (u, t, ·), coset u the blocks (u, ·).
//
//   - prepare: everybody obtains the packets of its block.
//   - lift, levels l = 0 … T-2: (u, r, i) receives an element e_l,t from each of
//     k_t = (u+a_l, t, i+t), t < h. It covers the packets of k_t's block, and with
//     multiples of the e_l',s(k_t) of levels l' < l those of coset u+a_l+a_l': for each
//     block of it there are h equations in the h factors of k_0 … k_(h-1).
//   - shoot, the last level: the same, but as nobody passes these on, their
//     sums are reduced among k_0 … k_(h-1) for h results at once.
//
// The a_l are 1, 2 or 1, 5, 3, for which all cosets are covered, and nothing
// that comes along needs covering twice. The equations' matrices are blocks
// of A. Corrected, λ times the packet (u+a_l, t, i) is added to e_l,t, with λ such that
// the blocks, which have λ added to one entry of each row, are invertible. The last level
// subtracts it again: for that k_t has one more packet for each level before.
type lifted struct {
	liftedShape
	corrected bool
	coding    *liftedCoding // nil: only the schedule is wanted
}

// liftedShape is where the processors of a lifted step are.
type liftedShape struct {
	ports int
	h     int   // processors of a block, blocks of a coset
	apart []int // a_0 … a_(T-1): how many cosets level l's senders are further on
}

// newLiftedShape returns the shape for so many processors. ok is false where there is
// none.
func newLiftedShape(size, ports int) (s liftedShape, ok bool) {
	for _, apart := range [][]int{{1, 2}, {1, 5, 3}} {
		s = liftedShape{ports: ports, h: 2, apart: apart}
		for s.size() < size {
			s.h++
		}
		if s.size() == size {
			return s, true
		}
	}
	return s, false
}

func (s liftedShape) cosets() int { return len(s.apart) * (len(s.apart) + 1) / 2 }

func (s liftedShape) size() int { return s.cosets() * s.h * s.h }

// last is the last level.
func (s liftedShape) last() int { return len(s.apart) - 1 }

// at returns the number of processor (u, t, i), and place the reverse.
func (s liftedShape) at(u, t, i int) int {
	return (mod(u, s.cosets())*s.h+s.within(t))*s.h + s.within(i)
}

func (s liftedShape) coordinates(k int) (u, t, i int) { return k / s.h / s.h, k / s.h % s.h, k % s.h }

// within is an index modulo h.
func (s liftedShape) within(i int) int { return mod(i, s.h) }

// tree returns the rounds of the last level's reductions but for the final one, in which
// p sums go to their results side by side.
func (s liftedShape) tree() []schedule.WindowRound {
	return schedule.WindowRoundsFrom(min(s.ports, s.h), s.h, s.ports)
}

// corrections returns the rounds of the correction's own: for the packets that find no free
// port in the rounds of the prepare and lift phases.
func (s *lifted) corrections() int {
	if !s.corrected {
		return 0
	}
	free := 0
	for _, st := range schedule.WindowRounds(s.h, s.ports) {
		free += s.ports - len(st.Ranges)
	}
	for q := 0; q < s.h; q += s.ports {
		free += s.last() * (s.ports - min(s.ports, s.h-q))
	}
	return schedule.Ceil(max(0, s.last()-free), s.ports)
}

func (s *lifted) cost() sim.Cost {
	turns := schedule.Ceil(s.h, s.ports)
	return sim.Cost{
		C1: schedule.Clog(s.h, s.ports) + s.last()*turns + s.corrections() + len(s.tree()) + 1,
		C2: schedule.Ceil(s.h-1, s.ports) + (s.last()+1)*turns + s.corrections(),
	}
}

func (s *lifted) Parameters() (string, []int) {
	p := fmt.Sprintf("T=%d h=%d", len(s.apart), s.h)
	if s.corrected {
		p += " corrected"
	}
	return p, []int{len(s.apart), s.h}
}

func (s *lifted) Phases() []plan.Phase {
	return []plan.Phase{
		{Name: "prepare", Rounds: schedule.Clog(s.h, s.ports)},
		{Name: "lift", Rounds: s.last() * schedule.Ceil(s.h, s.ports)},
		{Name: "correct", Rounds: s.corrections()},
		{Name: "shoot", Rounds: len(s.tree()) + 1},
	}
}

func (s *lifted) Classes() []plan.Class { return schedule.Alike(s.size()) }

// A swap is a message out and one in, on the same port of a round.
type swap struct {
	to    int // an index in the group
	slots []plan.Slot
	from  int
	count int
	put   func([]plan.Slot) // takes what was received
}

// swaps writes a round: the first swap on port 0, the next on port 1, and so on.
func swaps(b *schedule.Builder, g schedule.Group, list []swap) {
	for port, x := range list {
		b.Send(port, g.Processor(x.to), x.slots)
	}
	for port, x := range list {
		x.put(b.Receive(port, g.Processor(x.from), x.count))
	}
	b.EndRound()
}

func (s *lifted) Encode(b *schedule.Builder, g schedule.Group, in plan.Slot) plan.Slot {
	v, t, c := s.coordinates(g.Index)
	last := s.last()
	i := c - t // of the results that this processor sends to

	// Beyond what it is to have, each processor obtains for the correction one packet for
	// each level, on ports that are free.
	var spare []swap
	surplus := make([]plan.Slot, last)
	if s.corrected {
		for l := range last {
			d := s.apart[last] - s.apart[l]
			spare = append(spare, swap{s.at(v+d, t, c+t), []plan.Slot{in}, s.at(v-d, t, i), 1, func(got []plan.Slot) { surplus[l] = got[0] }})
		}
	}
	round := func(list []swap) {
		n := min(len(spare), s.ports-len(list))
		swaps(b, g, append(list, spare[:n]...))
		spare = spare[n:]
	}

	// Prepare.
	have := append(make([]plan.Slot, 0, s.h), in) // have[d] is the packet of (v, t, c-d)
	for _, st := range schedule.WindowRounds(s.h, s.ports) {
		var list []swap
		for _, ch := range st.Ranges {
			list = append(list, swap{s.at(v, t, c+ch.At), have[:ch.Count:ch.Count], s.at(v, t, c-ch.At), ch.Count, func(got []plan.Slot) { have = append(have, got...) }})
		}
		round(list)
	}

	elements := make([][]plan.Slot, last) // e_l,t of this processor
	level, sums := -1, []liftedSum(nil)
	// element returns what this processor contributes to (v-a_l, r, i) at level l, and
	// the slots given.
	element := func(l, r int, more []plan.Slot) plan.Slot {
		terms := s.h + l*s.h + len(more)
		if s.corrected && l == last {
			terms += l
		}
		return b.Compute(terms, func() plan.Combination {
			if l > level {
				level, sums = l, s.coding.sums(g.Index, l)
			}
			of, list := sums[s.within(r)], schedule.Sum(nil)
			for x, coef := range of.raw {
				list.Add(have[s.within(c-x)], coef)
			}
			for below, coefs := range of.lifted {
				for from, coef := range coefs {
					list.Add(elements[below][from], coef)
				}
			}
			for below, coef := range of.surplus {
				list.Add(surplus[below], coef)
			}
			addAll(&list, more)
			return plan.Combination(list)
		})
	}

	// Lift.
	for l := range last {
		elements[l] = make([]plan.Slot, s.h)
		for first := 0; first < s.h; first += s.ports {
			var list []swap
			for q := first; q < min(s.h, first+s.ports); q++ {
				from := s.within(t + q)
				list = append(list, swap{
					s.at(v-s.apart[l], t-q, i), []plan.Slot{element(l, t-q, nil)},
					s.at(v+s.apart[l], from, c+from), 1, func(got []plan.Slot) { elements[l][from] = got[0] },
				})
			}
			round(list)
		}
	}
	for len(spare) > 0 {
		round(nil)
	}

	// Shoot: received[x] goes to (v-a_l, t+x, i).
	received := make([][]plan.Slot, s.h)
	for _, st := range slices.Backward(s.tree()) {
		var list []swap
		for _, ch := range st.Ranges {
			slots := make([]plan.Slot, ch.Count)
			for x := range slots {
				slots[x] = element(last, t+ch.At+x, received[ch.At+x])
			}
			list = append(list, swap{s.at(v, t+ch.At, c+ch.At), slots, s.at(v, t-ch.At, c-ch.At), ch.Count, func(got []plan.Slot) {
				for x, slot := range got {
					received[x] = append(received[x], slot)
				}
			}})
		}
		round(list)
	}
	var list []swap
	var mine []plan.Slot
	for x := range min(s.ports, s.h) {
		list = append(list, swap{
			s.at(v-s.apart[last], t+x, i), []plan.Slot{element(last, t+x, received[x])},
			s.at(v+s.apart[last], t-x, c+t-x), 1, func(got []plan.Slot) { mine = append(mine, got...) },
		})
	}
	round(list)
	return b.Compute(last*s.h+len(mine), func() plan.Combination {
		var list schedule.Sum
		for _, slots := range elements {
			addAll(&list, slots)
		}
		addAll(&list, mine)
		return plan.Combination(list)
	})
}

// Bounds of what lifted is tried for.
const (
	mostLifted     = 32 // h: beyond, to look at the minors of A takes long
	mostRelabelled = 3  // numberings of the processors tried after the natural one
)

// Lifted returns the one lifted plan for a problem: without the correction where A
// is seen to need none, in some numbering of the processors. The error is an
// [schedule.ErrStructure] where K or q is not as it should be, or where the plan would not have
// fewer packets than the universal one with as many rounds.
func Lifted(p *algo.Problem) ([]plan.Plan, error) {
	k, no := p.Matrix.Rows(), refusal("lifted", p)
	if err := p.Task().MustBeSquare("lifted"); err != nil {
		return nil, err
	}
	shape, ok := newLiftedShape(k, p.Ports)
	if !ok {
		return no("K is neither 3·h² nor 6·h² with h > 1")
	}
	if shape.h > mostLifted {
		return no("h = %d: more than %d is too much reckoning", shape.h, mostLifted)
	}
	// pays says why a step is not worth a plan.
	pays := func(s *lifted) string {
		c := s.cost()
		if most := p.MostRounds(); most >= 0 && c.C1 > most {
			return fmt.Sprintf("%d rounds, more than the %d allowed", c.C1, most)
		}
		if c2 := universalC2(k, p.Ports, c.C1); c.C2 >= c2 {
			return fmt.Sprintf("%d packets, universal has %d with as many rounds", c.C2, c2)
		}
		return ""
	}
	step := &lifted{liftedShape: shape}
	if why := pays(step); why != "" {
		return no("%s", why)
	}
	made := func(s *lifted, order []int, note string) ([]plan.Plan, error) {
		return []plan.Plan{relabelledPlan("lifted", s, p.Task(), order, note)}, nil
	}
	var zero string
	known := matrix.StructureOf(p.Matrix).Superregular()
	for try := range 1 + mostRelabelled {
		order := seededOrder(k, try)
		step.coding = newLiftedCoding(shape, p.Matrix, order, false)
		if known {
			return made(step, order, "not corrected: A is superregular")
		}
		rows, columns, ok := step.coding.regular(p)
		if ok {
			return made(step, order, fmt.Sprintf("not corrected: %d minors of A are not zero", shape.last()*k))
		}
		if try == 0 {
			zero = fmt.Sprintf("the minor of rows %d to %d and columns %s is zero", rows[0], rows[shape.h-1], some(columns))
		}
	}
	step = &lifted{liftedShape: shape, corrected: true}
	if !largerThan(p.Matrix.Field(), shape.h) {
		return no("%s, and to correct it takes a field of more than h = %d elements", zero, shape.h)
	}
	if why := pays(step); why != "" {
		return no("%s, and corrected it has %s", zero, why)
	}
	step.coding = newLiftedCoding(shape, p.Matrix, nil, true)
	return made(step, nil, "corrected: "+zero)
}
