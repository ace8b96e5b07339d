package families

import (
	"fmt"
	"slices"
	"strings"

	"volley/algo"
	"volley/algo/schedule"
	"volley/field"
	"volley/matrix"
	"volley/plan"
)

// shiftPlans returns the plans of a DFT matrix by schedules of shifts.
func shiftPlans(p *algo.Problem) ([]plan.Plan, error) {
	const name = "dft-shifts"
	t := p.Task()
	if err := t.MustBeSquare(name); err != nil {
		return nil, err
	}
	fact, err := p.Factorisation(t.Context)
	if err != nil {
		return nil, err
	}
	var plans []plan.Plan
	if isFourier(t.Matrix, fact) {
		for _, s := range findShifts(t) {
			plans = append(plans, schedule.OnAll(name, s, t))
		}
	}
	if len(plans) == 0 {
		return nil, schedule.Misfit(fmt.Sprintf("algo: %s for K = %d, p = %d: it is for DFT matrices in natural order, of K that is a product of at most %d radices up to p+1: take another algorithm, such as dft",
			name, t.Matrix.Rows(), t.Ports, mostShiftRounds))
	}
	return schedule.Undominated(t.Context, plans), nil
}

// isFourier reports whether the entries are c·ω^(ij), ω of order K. Those of a matrix whose layers
// are a DFT's are c·ω^(σ(i)·τ(j)) for some orders σ of its rows and τ of its columns. Row and column
// 1 tell whether these multiply i and j.
func isFourier(m matrix.Matrix, fact *matrix.Factorisation) bool {
	if fact == nil || fact.Name != "dft" || m.Rows() < 2 {
		return false
	}
	f, c := m.Field(), m.At(0, 0)
	omega := f.Mul(m.At(1, 1), f.Inv(c))
	want := c
	for i := range m.Rows() {
		if m.At(1, i) != want || m.At(i, 1) != want || m.At(0, i) != c || m.At(i, 0) != c {
			return false
		}
		want = f.Mul(want, omega)
	}
	return true
}

// shifts computes a DFT in natural order on both sides without a round for
// reordering.
//
//	problem  A[i][j] = c·ω^(ij), ω of order K, K = r_0 … r_(H-1), all r_t <= p+1
//	cost     C1 = H, C2 = the ranks of blocks of A, one per round: 3/3 for
//	         K = abc with c | a, 4/5 for K = 16, p = 1
//	source   ours; at H = log K rounds a message needs as many elements as the rank
//	         of the block of A between those who have reached its sender and those
//	         whom its receiver will reach, and no more
//
// Round t shifts by the multiples of s_t below r_t·s_t. Each residue modulo K is one
// sum of such multiples, so there is one path between any two processors. A
// message holds the sums, over the inputs that its sender has seen, for a
// basis of the results that its receiver serves; from these the receiver has
// those for all the results.
type shifts struct {
	size   int
	rounds []shift
}

type shift struct {
	distance, radix int
	behind          []int // offsets of the inputs that a sender has seen
	ahead           []int // offsets of the results that a receiver serves
	basis           []int // indexes into ahead: columns that span all the columns
}

// newShifts returns the step, for a DFT matrix.
func newShifts(m matrix.Matrix, radices, distances []int) *shifts {
	s := &shifts{size: m.Rows()}
	behind := []int{0}
	for t := range distances {
		ahead := []int{0}
		for u := t + 1; u < len(distances); u++ {
			ahead = grow(ahead, distances[u], radices[u], s.size)
		}
		r := shift{distance: distances[t], radix: radices[t], behind: behind, ahead: ahead}
		// All blocks of the round are this one but for factors of rows and columns.
		_, r.basis = matrix.DenseFunc(m.Field(), len(behind), len(ahead), func(i, j int) field.Element {
			return m.At((s.size-behind[i])%s.size, ahead[j])
		}).Echelon()
		s.rounds = append(s.rounds, r)
		behind = grow(behind, distances[t], radices[t], s.size)
	}
	return s
}

// grow returns the sums of the offsets and the multiples of distance below radix·distance.
func grow(offsets []int, distance, radix, size int) []int {
	var list []int
	for d := range radix {
		for _, o := range offsets {
			list = append(list, (o+d*distance)%size)
		}
	}
	return list
}

func (s *shifts) Parameters() (string, []int) {
	distances, texts := make([]int, len(s.rounds)), make([]string, len(s.rounds))
	for t, r := range s.rounds {
		distances[t], texts[t] = r.distance, fmt.Sprint(r.distance)
	}
	return "shifts " + strings.Join(texts, ","), distances
}

func (s *shifts) Phases() []plan.Phase { return []plan.Phase{{Name: "shift", Rounds: len(s.rounds)}} }

func (s *shifts) Classes() []plan.Class { return schedule.OneClass(s.size) }

// c2 returns the elements of the largest messages, summed.
func (s *shifts) c2() int {
	n := 0
	for _, r := range s.rounds {
		n += len(r.basis)
	}
	return n
}

func (s *shifts) Encode(b *schedule.Builder, g schedule.Group, input plan.Slot) plan.Slot {
	var received []shiftedSums
	// result is the sum, over the inputs seen, for the result of processor j.
	result := func(j int) func() plan.Combination {
		return func() plan.Combination {
			var c schedule.Sum
			c.Add(input, g.At(g.Index, j))
			for _, r := range received {
				r.addTo(&c, j)
			}
			return plan.Combination(c)
		}
	}
	terms := func(j int) int {
		n := 1
		for _, r := range received {
			if r.serves(j) {
				n += len(r.slots)
			}
		}
		return n
	}
	for _, r := range s.rounds {
		for d := 1; d < r.radix; d++ {
			receiver := g.Around(d * r.distance)
			slots := make([]plan.Slot, len(r.basis))
			for e, x := range r.basis {
				j := (receiver + r.ahead[x]) % g.Size
				slots[e] = b.Compute(terms(j), result(j))
			}
			b.Send(d-1, g.Processor(receiver), slots)
		}
		var arrived []shiftedSums
		for d := 1; d < r.radix; d++ {
			sender := g.Around(-d * r.distance)
			sums := shiftedSums{slots: b.Receive(d-1, g.Processor(sender), len(r.basis)), column: make(map[int]int, len(r.ahead))}
			for x, o := range r.ahead {
				sums.column[g.Around(o)] = x
			}
			if b.Coding {
				sums.basis, _ = matrix.DenseFunc(b.Field, len(r.behind), len(r.ahead), func(i, x int) field.Element {
					return g.At((sender+g.Size-r.behind[i])%g.Size, g.Around(r.ahead[x]))
				}).Echelon()
			}
			arrived = append(arrived, sums)
		}
		received = append(received, arrived...)
		b.EndRound()
	}
	return b.Compute(terms(g.Index), result(g.Index))
}

// shiftedSums are sums received for some results, as combinations of a basis.
type shiftedSums struct {
	slots  []plan.Slot
	basis  *matrix.Dense // entry (e, x): coefficient of slot e in sum x
	column map[int]int   // x by processor
}

// serves reports whether there is a sum for the processor.
func (s shiftedSums) serves(proc int) bool {
	_, ok := s.column[proc]
	return ok
}

func (s shiftedSums) addTo(c *schedule.Sum, proc int) {
	x, ok := s.column[proc]
	if !ok {
		return
	}
	for e, slot := range s.slots {
		c.Add(slot, s.basis.At(e, x))
	}
}

// Bounds of the search for shifts.
const (
	mostShiftRounds = 6
	mostShiftSize   = 1 << 12
	mostShiftWork   = 1 << 16 // steps looked at, times K
)

// findShifts returns the step of least C2 for each number of rounds that has one,
// over all mixed radices with r_t <= p+1 and all orders of their weights, the fewest rounds
// first until it has looked at many. Once the problem's context has ended it looks at no more.
func findShifts(task schedule.Task) []*shifts {
	m, size := task.Matrix, task.Matrix.Rows()
	if size > mostShiftSize {
		return nil
	}
	best := map[int]*shifts{}
	work := 0
	lists := factorisations(size, task.Ports+1, mostShiftRounds)
	slices.SortStableFunc(lists, func(a, b []int) int { return len(a) - len(b) })
	for _, radices := range lists {
		if work > mostShiftWork && best[len(radices)] == nil {
			break
		}
		weights, w := make([]int, len(radices)), 1
		for t, r := range radices {
			weights[t] = w
			w *= r
		}
		permutations(len(radices), func(order []int) {
			if task.Ended() != nil {
				return
			}
			distances, rs := make([]int, len(order)), make([]int, len(order))
			for t, o := range order {
				distances[t], rs[t] = weights[o], radices[o]
			}
			work += size
			s := newShifts(m, rs, distances)
			if b := best[len(distances)]; b == nil || s.c2() < b.c2() {
				best[len(distances)] = s
			}
		})
	}
	var list []*shifts
	for h := range mostShiftRounds + 1 {
		if s := best[h]; s != nil {
			list = append(list, s)
		}
	}
	return list
}

// factorisations returns the lists of at most length numbers from 2 to limit whose
// product is n, in every order.
func factorisations(n, limit, length int) [][]int {
	if n == 1 {
		return [][]int{nil}
	}
	if length == 0 {
		return nil
	}
	var list [][]int
	for r := 2; r <= min(n, limit); r++ {
		if n%r == 0 {
			for _, rest := range factorisations(n/r, limit, length-1) {
				list = append(list, append([]int{r}, rest...))
			}
		}
	}
	return list
}

// permutations calls visit with every permutation of 0 … n-1.
func permutations(n int, visit func([]int)) {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	var assign func(int)
	assign = func(position int) {
		if position == n {
			visit(list)
			return
		}
		for i := position; i < n; i++ {
			list[position], list[i] = list[i], list[position]
			assign(position + 1)
			list[position], list[i] = list[i], list[position]
		}
	}
	assign(0)
}
