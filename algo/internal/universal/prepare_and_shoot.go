package universal

import (
	"volley/algo/schedule"
	"volley/plan"
)

// prepareAndShoot is the paper's universal step, its strides and rounds: prepare goes far to near, shoot near to far.
//
//	problem  every A, every K and p
//	cost     C1 = clog(K), C2 = (m-1)/p + (n-1)/p with m = (p+1)^Tp, n = (p+1)^Ts;
//	         with L the largest integer such that (p+1)^L < K, Tp = L/2+1, Ts = L/2
//	         for even L and Tp = Ts = (L+1)/2 for odd L; 0/0 for K = 1
//	         (TestPrepareAndShootCost)
//	source   paper, section "Prepare and Shoot", with three corrections: round t of
//	         shoot goes to k + ρ·m·(p+1)^(t-1), not k + ρ·m^t; C2 for even L is
//	         ((p+1)^(L/2+1) + (p+1)^(L/2) - 2)/p; and where K < m·n every offset is
//	         given to one intermediate, so that nothing has to be subtracted
//
// Elements that happen to be zero, also those for offsets of K and more, are sent and counted: a universal schedule
// does not look at A. Only messages to oneself are left out.
type prepareAndShoot struct {
	size, ports, m, n int
}

// NewPrepareAndShoot returns the step for groups of up to size processors.
func NewPrepareAndShoot(size, ports int) *prepareAndShoot {
	s := &prepareAndShoot{size: size, ports: ports, m: 1, n: 1}
	// One round more for prepare, then one for shoot, until m·n covers the group.
	for s.m*s.n < size {
		if s.m == s.n {
			s.m *= ports + 1
		} else {
			s.n *= ports + 1
		}
	}
	return s
}

func (s *prepareAndShoot) Parameters() (string, []int) { return windowed(s.m, s.n) }

func (s *prepareAndShoot) Phases() []plan.Phase {
	return []plan.Phase{{Name: "prepare", Rounds: schedule.Clog(s.m, s.ports)}, {Name: "shoot", Rounds: schedule.Clog(s.n, s.ports)}}
}

func (s *prepareAndShoot) Classes() []plan.Class { return schedule.OneClass(s.size) }

func (s *prepareAndShoot) Encode(b *schedule.Builder, g schedule.Group, input plan.Slot) plan.Slot {
	gathered := s.gather(b, g, s.m, 1, input)
	var sums [][]schedule.Addend
	for l := range s.n {
		sums = append(sums, gathered.Sums(g, l*s.m, 1)...)
	}
	return b.Transposed(func(forward *schedule.Builder) ([]plan.Slot, [][]schedule.Addend) {
		return s.gather(forward, g, s.n, -s.m, forward.Inputs(1)[0]), sums
	})[0]
}

// gather is [schedule.Gather] of a window that is a power of p+1, the farthest first.
func (s *prepareAndShoot) gather(b *schedule.Builder, g schedule.Group, window, stride int, input plan.Slot) schedule.SlotWindow {
	gathered := make(schedule.SlotWindow, window)
	gathered[0] = input
	known := []int{0} // the offsets of packets that are there, in the order of their arrival
	for step := window / (s.ports + 1); step > 0; step /= s.ports + 1 {
		slots := make([]plan.Slot, len(known))
		for i, offset := range known {
			slots[i] = gathered[offset]
		}
		for port := range s.ports {
			if d := (port + 1) * step * stride; d%g.Size != 0 {
				b.Send(port, g.Processor(g.Around(d)), slots)
			}
		}
		previous := known
		for port := range s.ports {
			d := (port + 1) * step
			arrived := slots
			if d*stride%g.Size != 0 {
				arrived = b.Receive(port, g.Processor(g.Around(-d*stride)), len(slots))
			}
			for i, offset := range previous {
				gathered[offset+d] = arrived[i]
				known = append(known, offset+d)
			}
		}
		b.EndRound()
	}
	return gathered
}
