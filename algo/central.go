package algo

import (
	"slices"

	"volley/plan"
)

// central gathers all packets at processor 0 on a (p+1)-ary tree, encodes there,
// and scatters the results on the same tree.
//
//	problem  every A, every K and p
//	cost     C1 = 2·clog(K), C2 = 2·⌈(K-1)/p⌉ (TestBaselineCosts)
//	source   MPI_Gather, encode at the root, MPI_Scatter with binomial trees; for
//	         p ports Bruck et al. (see [bruckAllgather])
//
// The tree is that of the window schedule: in the stage from v to w a processor
// that answers for the members [base, base+w) hands a chunk of [v, w) to each of
// up to p others.
type central struct {
	size   int
	stages []stage
}

func newCentral(size, ports int) central { return central{size, stages(size, ports)} }

func (central) Parameters() string { return "" }

func (s central) Phases() []plan.Phase {
	return []plan.Phase{{Name: "gather", Rounds: len(s.stages)}, {Name: "scatter", Rounds: len(s.stages)}}
}

// Classes returns a class for each stage and number of members that processors
// begin to answer for there: what they do later depends on nothing else.
func (s central) Classes() []plan.Class {
	type kind struct{ stage, count int }
	type class struct {
		kind
		plan.Class
	}
	classes := []*class{{kind{-1, s.size}, plan.Class{Representative: 0, Count: 1}}}
	known := map[kind]*class{}
	for t := range s.stages {
		st := s.stages[len(s.stages)-1-t]
		for _, parent := range classes {
			if parent.stage == t {
				break // begins in this stage itself
			}
			for _, c := range st.chunks {
				if c = c.cut(parent.count); c.count <= 0 {
					break
				}
				child := kind{t, c.count}
				if known[child] == nil {
					known[child] = &class{child, plan.Class{Representative: parent.Representative + c.at}}
					classes = append(classes, known[child])
				}
				known[child].Count += parent.Count
			}
		}
	}
	list := make([]plan.Class, len(classes))
	for i, c := range classes {
		list[i] = c.Class
	}
	return list
}

// A branch is what one member does in one stage of the scatter; a gather does
// the same in reverse.
type branch struct {
	parent   int     // the member it gets its own range from in this stage, or -1
	port     int     // on this port
	children []chunk // the ranges it hands on, as offsets from itself; port by port
	count    int     // members it answers for after the stage, where it does for any
}

// tree returns the member's branches, one for each stage, largest window first,
// as the scatter goes.
func (s central) tree(g Group) []branch {
	list := make([]branch, len(s.stages))
	base, count := 0, g.Size // the member lies in [base, base+count), for which base answers
	for t := range list {
		st := s.stages[len(s.stages)-1-t]
		br := branch{parent: -1}
		offset := g.Index - base
		stays := chunk{0, min(count, st.from)}
		for port, c := range st.chunks {
			if c = c.cut(count); c.count <= 0 {
				break
			}
			if offset == 0 {
				br.children = append(br.children, c)
			} else if c.at <= offset && offset < c.at+c.count {
				stays = c
				if offset == c.at {
					br.parent, br.port = base, port
				}
			}
		}
		base, count = base+stays.at, stays.count
		br.count = count
		list[t] = br
	}
	return list
}

// gather returns the slots of the packets that the member has collected: held[i] is
// that of the member i places on.
func (s central) gather(b *Builder, g Group, in plan.Slot) []plan.Slot {
	held := []plan.Slot{in}
	for _, br := range slices.Backward(s.tree(g)) {
		if br.parent >= 0 {
			b.Send(br.port, g.Member(br.parent), held)
		}
		for port, c := range br.children {
			held = append(held, b.Receive(port, g.Member(g.Index+c.at), c.count)...)
		}
		b.EndRound()
	}
	return held
}

func (s central) Encode(b *Builder, g Group, in plan.Slot) plan.Slot {
	branches := s.tree(g)
	held := s.gather(b, g, in)

	// Encode at member 0: results[i] is for the member i places on.
	var results []plan.Slot
	if g.Index == 0 {
		for j := range g.Size {
			results = append(results, b.Compute(len(held), func() plan.Combination {
				var c sum
				for i, slot := range held {
					c.add(slot, g.At(i, j))
				}
				return plan.Combination(c)
			}))
		}
	}

	for _, br := range branches {
		for port, c := range br.children {
			b.Send(port, g.Member(g.Index+c.at), results[c.at:c.at+c.count])
		}
		if br.parent >= 0 {
			results = b.Receive(br.port, g.Member(br.parent), br.count)
		}
		b.EndRound()
	}
	return results[0]
}
