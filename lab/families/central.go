package families

import (
	"volley/algo/schedule"
	"volley/field"
	"volley/plan"
)

// central gathers all packets at processor 0 on a (p+1)-ary tree, encodes there,
// and scatters the results on the same tree.
//
//	problem  every A, every K and p
//	cost     C1 = 2·clog(K), C2 = 2·⌈(K-1)/p⌉ (TestBaselineCosts)
//	source   MPI_Gather, encode at the root, MPI_Scatter with binomial trees; for
//	         p ports Bruck et al. (see bruck-allgather)
//
// The tree is that of the window schedule: in the stage from v to w a processor
// that answers for the processors [base, base+w) hands a range of [v, w) to each of
// up to p others.
type central struct {
	size   int
	Stages []schedule.WindowRound
}

// newCentral returns the step for groups of up to size processors.
func newCentral(size, ports int) central { return central{size, schedule.WindowRounds(size, ports)} }

func (central) Parameters() (string, []int) { return "", nil }

func (s central) Phases() []plan.Phase {
	return []plan.Phase{{Name: "gather", Rounds: len(s.Stages)}, {Name: "scatter", Rounds: len(s.Stages)}}
}

// Classes returns a class for each stage and number of processors that one begins
// to answer for there: what it does later depends on nothing else.
func (s central) Classes() []plan.Class {
	type kind struct{ stage, count int }
	type class struct {
		kind
		plan.Class
	}
	classes := []*class{{kind{-1, s.size}, plan.Class{Representative: 0, Count: 1}}}
	known := map[kind]*class{}
	for t := range s.Stages {
		st := s.Stages[len(s.Stages)-1-t]
		for _, parent := range classes {
			if parent.stage == t {
				break // begins in this stage itself
			}
			for _, c := range st.Ranges {
				if c = c.Cut(parent.count); c.Count <= 0 {
					break
				}
				child := kind{t, c.Count}
				if known[child] == nil {
					known[child] = &class{child, plan.Class{Representative: parent.Representative + c.Offset}}
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

// A branch is what one processor does in one stage of the scatter; a gather does
// the same in reverse.
type branch struct {
	parent   int              // the processor it gets its own range from in this stage, or -1
	port     int              // on this port
	children []schedule.Range // the ranges it hands on, as offsets from itself; port by port
	count    int              // processors it answers for after the stage, where it does for any
}

// tree returns the processor's branches, one for each stage, largest window first,
// as the scatter goes.
func (s central) tree(g schedule.Group) []branch {
	list := make([]branch, len(s.Stages))
	base, count := 0, g.Size // the processor lies in [base, base+count), for which base answers
	for t := range list {
		st := s.Stages[len(s.Stages)-1-t]
		br := branch{parent: -1}
		offset := g.Index - base
		stays := schedule.Range{Offset: 0, Count: min(count, st.Start)}
		for port, c := range st.Ranges {
			if c = c.Cut(count); c.Count <= 0 {
				break
			}
			if offset == 0 {
				br.children = append(br.children, c)
			} else if c.Offset <= offset && offset < c.Offset+c.Count {
				stays = c
				if offset == c.Offset {
					br.parent, br.port = base, port
				}
			}
		}
		base, count = base+stays.Offset, stays.Count
		br.count = count
		list[t] = br
	}
	return list
}

// scatter hands out one packet for each processor, of which processor 0 has those in slots, and
// returns the slot of the processor's own.
func (s central) scatter(b *schedule.Builder, g schedule.Group, slots []plan.Slot) plan.Slot {
	for _, br := range s.tree(g) {
		for port, c := range br.children {
			b.Send(port, g.Processor(g.Index+c.Offset), slots[c.Offset:c.Offset+c.Count])
		}
		if br.parent >= 0 {
			slots = b.Receive(br.port, g.Processor(br.parent), br.count)
		}
		b.EndRound()
	}
	return slots[0]
}

// gather is scatter transposed: it returns the slots of the packets of all processors at
// processor 0, and elsewhere nil.
func (s central) gather(b *schedule.Builder, g schedule.Group, input plan.Slot) []plan.Slot {
	return b.Transposed(func(forward *schedule.Builder) ([]plan.Slot, [][]schedule.Addend) {
		var inputs []plan.Slot
		if g.Index == 0 {
			inputs = forward.Inputs(g.Size)
		}
		return []plan.Slot{s.scatter(forward, g, inputs)}, [][]schedule.Addend{schedule.InSlot(input)}
	})
}

func (s central) Encode(b *schedule.Builder, g schedule.Group, input plan.Slot) plan.Slot {
	gathered := s.gather(b, g, input)
	var results []plan.Slot
	for j := range gathered { // at processor 0
		results = append(results, b.Total(schedule.Weighted(gathered, func(i int) field.Element { return g.At(i, j) })))
	}
	return s.scatter(b, g, results)
}
