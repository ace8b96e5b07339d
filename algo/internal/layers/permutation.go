package layers

import (
	"volley/algo/schedule"
	"volley/plan"
	"volley/sim"
)

// permutation is one round in which packets change places: that of processor k goes to processor target(k), and source(k) is
// where its new one comes from. It takes 1/1, or nothing at all at processors that keep their own.
type permutation struct {
	size           int
	target, source func(k int) int
}

func (s *permutation) Parameters() (string, []int) { return "", nil }

func (s *permutation) Phases() []plan.Phase { return []plan.Phase{{Name: "permute", Rounds: 1}} }

func (s *permutation) Classes() []plan.Class {
	var moved, fixed plan.Class
	for k := range s.size {
		c := &moved
		if s.target(k) == k {
			c = &fixed
		}
		if c.Count == 0 {
			c.Representative = k
		}
		c.Count++
	}
	var list []plan.Class
	for _, c := range []plan.Class{moved, fixed} {
		if c.Count > 0 {
			list = append(list, c)
		}
	}
	return list
}

// Least is that of [schedule.Bounded].
func (s *permutation) Least() sim.Cost {
	for k := range s.size {
		if s.target(k) != k {
			return sim.Cost{C1: 1, C2: 1, Nodes: []sim.NodeRound{{Messages: 1, Elements: 1}}}
		}
	}
	return sim.Cost{C1: 1, Nodes: make([]sim.NodeRound, 1)}
}

func (s *permutation) Encode(b *schedule.Builder, g schedule.Group, input plan.Slot) plan.Slot {
	defer b.EndRound()
	if s.target(g.Index) == g.Index {
		return input
	}
	b.Send(0, s.target(g.Index), []plan.Slot{input})
	return b.Receive(0, s.source(g.Index), 1)[0]
}
