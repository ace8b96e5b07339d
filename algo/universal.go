package algo

import (
	"fmt"
	"slices"

	"volley/plan"
)

// universal is the tuned universal step: prepare-and-shoot with a window m and
// n strides of any size instead of powers of p+1.
//
//	problem  every A, every K and p
//	cost     C1 = clog(m) + clog(n), C2 = ⌈(m-1)/p⌉ + ⌈(n-1)/p⌉, for the m, n with
//	         m·n >= K and C1 = clog(K) whose C2 is least (TestUniversalCost)
//	source   paper, section "Prepare and Shoot", generalised; the paper's own
//	         windows are [prepareAndShoot]'s
//
// The offset δ = (s-r) mod K between a packet's home r and a result's home s is
// split as δ = l·m + i with 0 <= i < m. Packet x_r reaches the intermediate
// r + i in the prepare phase; there it joins the partial sum for s = r + i + l·m,
// which the shoot phase reduces along the stride m. Each offset has exactly one
// intermediate, so nothing is counted twice when m·n > K.
type universal struct {
	size, m, n     int
	prepare, shoot []stage
	name           string // of its one phase; empty: prepare and shoot apart
}

// newUniversal returns the step with window m and n strides for groups of up to
// size processors, m·n >= size.
func newUniversal(size, ports, m, n int) *universal {
	return &universal{size: size, m: m, n: n, prepare: stages(m, ports), shoot: stages(n, ports)}
}

// tuned returns the step for groups of up to size processors with the best window.
func tuned(size, ports int) *universal {
	m, n := tune(size, ports, 0)
	return newUniversal(size, ports, m, n)
}

// tune returns the window and the strides of least C2 for groups of size
// processors; ties go to fewer rounds, then to the smaller window. The rounds
// are at most over more than the fewest possible.
func tune(size, ports, over int) (m, n int) {
	bestC1, bestC2 := 0, -1
	most := BoundC1(size, ports) + over
	for w := 1; w <= size; w++ {
		if bestC2 >= 0 && ceil(w-1, ports) > bestC2 {
			break // the window alone takes more
		}
		s := ceil(size, w)
		c := universalCost(w, s, ports)
		if c.c1 <= most && (bestC2 < 0 || c.c2 < bestC2 || c.c2 == bestC2 && c.c1 < bestC1) {
			m, n, bestC1, bestC2 = w, s, c.c1, c.c2
		}
	}
	return m, n
}

// universalC2 returns the packets of the universal step in at most so many rounds.
func universalC2(size, ports, rounds int) int {
	m, n := tune(size, ports, rounds-BoundC1(size, ports))
	return universalCost(m, n, ports).c2
}

// universalCost is the cost of the universal step with window m and n strides.
func universalCost(m, n, ports int) cost {
	return cost{clog(m, ports) + clog(n, ports), ceil(m-1, ports) + ceil(n-1, ports)}
}

func (s *universal) cost(ports int) cost { return universalCost(s.m, s.n, ports) }

// universalPlans returns the plan with the fewest rounds and, where a round more
// lowers C2, those with more, as far as the limits allow.
func universalPlans(p *Problem) ([]plan.Plan, error) {
	if err := p.mustBeSquare("universal"); err != nil {
		return nil, err
	}
	k := p.Matrix.Rows()
	var plans []plan.Plan
	most := p.Limits.Rounds.Over()
	for over := 0; over == 0 || most < 0 || over <= most; over++ {
		m, n := tune(k, p.Ports, over)
		step := newUniversal(k, p.Ports, m, n)
		plans = append(plans, compile("universal", step.Parameters(), p.Matrix.Field(), k, p.Ports, whole(step, k, p.Matrix.At)))
		if over > 0 && step.cost(p.Ports).c1 < BoundC1(k, p.Ports)+over {
			break // rounds are left over: more are of no use
		}
	}
	plans = undominated(plans)
	if p.Limits.Memory > 0 || p.Limits.Compute > 0 {
		plans = append(plans, frugal(p)...)
	}
	return plans, nil
}

// frugal returns the plans that no other window beats in rounds, packets, memory and
// multiply-adds together: where these are limited, another window than the tuned
// one may do.
func frugal(p *Problem) []plan.Plan {
	k := p.Matrix.Rows()
	type window struct {
		m, n int
		cost
		memory, compute int
	}
	var list []window
	for m := 1; m <= k; m++ {
		n := ceil(k, m)
		if m > 1 && ceil(k, m-1) == n {
			continue // a smaller window has as many strides
		}
		list = append(list, window{
			m, n, universalCost(m, n, p.Ports),
			m + 2*n - 1, // packets held; sums sent, and the result; sums received
			k + n - 1,
		})
	}
	var plans []plan.Plan
	for _, w := range list {
		if !slices.ContainsFunc(list, func(v window) bool {
			return v != w && v.c1 <= w.c1 && v.c2 <= w.c2 && v.memory <= w.memory && v.compute <= w.compute
		}) {
			step := newUniversal(k, p.Ports, w.m, w.n)
			plans = append(plans, compile("universal", step.Parameters(), p.Matrix.Field(), k, p.Ports, whole(step, k, p.Matrix.At)))
		}
	}
	return plans
}

func (s *universal) Parameters() string { return fmt.Sprintf("m=%d n=%d", s.m, s.n) }

func (s *universal) Phases() []plan.Phase {
	if s.name != "" {
		return []plan.Phase{{Name: s.name, Rounds: len(s.prepare) + len(s.shoot)}}
	}
	return []plan.Phase{{Name: "prepare", Rounds: len(s.prepare)}, {Name: "shoot", Rounds: len(s.shoot)}}
}

func (s *universal) Classes() []plan.Class { return alike(s.size) }

func (s *universal) Encode(b *Builder, g Group, in plan.Slot) plan.Slot {
	// Prepare.
	held := gather(b, g, s.prepare, min(s.m, g.Size), in)

	// Shoot, the mirror image at stride m: sums[l] is for the member l·m places on.
	sums := newPartialSums(g, held, s.m)
	strides := (g.Size + s.m - 1) / s.m // beyond these there is no offset below g.Size
	for i := len(s.shoot) - 1; i >= 0; i-- {
		st := s.shoot[i]
		for port, c := range st.chunks {
			if c = c.cut(strides); c.count > 0 {
				slots := make([]plan.Slot, c.count)
				for l := range slots {
					slots[l] = b.Compute(sums.terms(c.at+l), sums.of(c.at+l))
				}
				b.Send(port, g.Member(g.around(c.at*s.m)), slots)
			}
		}
		for port, c := range st.chunks {
			if c = c.cut(strides); c.count > 0 {
				for l, slot := range b.Receive(port, g.Member(g.around(-c.at*s.m)), c.count) {
					sums.receive(l, slot)
				}
			}
		}
		b.EndRound()
	}
	return b.Compute(sums.terms(0), sums.of(0))
}

// gather runs the stages as an allgather of windows: it returns the slots of the
// packets of the members 0 … window-1 places back. Stages beyond the window are
// empty rounds.
func gather(b *Builder, g Group, stages []stage, window int, in plan.Slot) []plan.Slot {
	held := append(make([]plan.Slot, 0, window), in)
	for _, st := range stages {
		for port, c := range st.chunks {
			if c = c.cut(window); c.count > 0 {
				b.Send(port, g.Member(g.around(c.at)), held[:c.count:c.count])
			}
		}
		for port, c := range st.chunks {
			if c = c.cut(window); c.count > 0 {
				held = append(held, b.Receive(port, g.Member(g.around(-c.at)), c.count)...)
			}
		}
		b.EndRound()
	}
	return held
}

// partialSums are the sums that one member of a group collects for the members
// at multiples of a stride after it.
type partialSums struct {
	group    Group
	held     []plan.Slot         // held[i] is the packet of the member i places back
	stride   int                 // m
	received map[int][]plan.Slot // by l: what others have summed for the same member
}

func newPartialSums(g Group, held []plan.Slot, stride int) *partialSums {
	return &partialSums{g, held, stride, map[int][]plan.Slot{}}
}

// of returns sum l: of the packets held at offsets δ = l·m + i below the size
// of the group, and of what was received for it.
func (p *partialSums) of(l int) func() plan.Combination {
	return func() plan.Combination {
		s := make(sum, 0, p.terms(l))
		for i, slot := range p.held {
			if l*p.stride+i < p.group.Size {
				s.add(slot, p.group.At(p.group.around(-i), p.group.around(l*p.stride)))
			}
		}
		s.addAll(p.received[l])
		return plan.Combination(s)
	}
}

// terms returns how many terms sum l has.
func (p *partialSums) terms(l int) int {
	return max(0, min(len(p.held), p.group.Size-l*p.stride)) + len(p.received[l])
}

// receive adds a slot to sum l.
func (p *partialSums) receive(l int, slot plan.Slot) {
	p.received[l] = append(p.received[l], slot)
}
