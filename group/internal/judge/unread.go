package judge

import (
	"fmt"
	"slices"
	"strings"

	"volley/group/internal/store"
	"volley/group/internal/tree"
)

// A doubt is about a generation that nodes may have of which nobody can read whether they do.
type doubt struct {
	*claim                // without root: no node has a manifest of it that can be read
	current store.Current // by what can be read
}

var doubts = []row[*doubt, bool]{
	{"another one is in force if they hold it", func(d *doubt) bool { return d.Root != "" && d.changesIfComplete() }, true,
		"The verbs go on only where the same generation would be in force whatever this node has."},
	{"another one is in force if they lack it", func(d *doubt) bool { return d.Root != "" && d.Root == d.current.Root && d.changesIfLacking() }, true,
		"The verbs go on only where the same generation would be in force whatever this node has."},
	{"nobody else holds it", (*doubt).hidden, true,
		"A node that can be read and lacks a generation proves that no node has committed it, unless two nodes or more have: it then comes from a backup."},
	{"none", nil, false,
		"A node that cannot be read abstains, and so does one whose manifest of a generation cannot be read, or is damaged or missing in `generation.<g>`."},
}

// checkUnread returns an error where another generation would be in force if a node that abstains had something else. A node
// commits only what all nodes have. So what a readable node lacks, while it has others, no node has committed.
func checkUnread(c store.Current, states []*store.State) error {
	for _, d := range doubtsOf(c, states) {
		if rowOf(doubts, d).verdict {
			return d.abstention()
		}
	}
	return nil
}

// doubtsOf returns those about generations that nodes hold, none older than one that is committed, and about those of which
// no node has a manifest that can be read.
func doubtsOf(c store.Current, states []*store.State) (list []*doubt) {
	group, readable, newest := committedGroup(states), map[int64]bool{}, int64(0)
	for _, x := range claimsOf(states, group) {
		if x.Generation < newest {
			break
		}
		if list = append(list, &doubt{x, c}); x.committers != nil { // all nodes had it
			newest = x.Generation
		}
	}
	for _, s := range states {
		for _, h := range s.Held {
			readable[h.Generation] = readable[h.Generation] || counts(h)
		}
	}
	for _, s := range states {
		for _, u := range s.Unknown {
			if !readable[u.Generation] {
				readable[u.Generation] = true
				list = append(list, &doubt{newClaim(store.Held{Generation: u.Generation}, states, group), c})
			}
		}
	}
	return list
}

// abstainers returns the nodes that may hold the generation.
func (d *doubt) abstainers() (nodes []int) {
	for n, s := range d.states {
		if s.MayHold(d.Generation) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// hidden reports whether a newer generation may be in force of which no node has a manifest that can be read.
func (d *doubt) hidden() bool {
	ahead := d.Generation - d.current.Generation
	return d.Root == "" && ahead > 0 && (d.current.Generation == 0 || ahead <= mostAhead && (!d.lacked() || len(d.committers) > 1))
}

// lacked reports whether a node that can be read, and has generations, lacks this one.
func (d *doubt) lacked() bool {
	return slices.ContainsFunc(d.states, func(s *store.State) bool {
		return len(s.Numbers) > 0 && !s.MayHold(d.Generation) && !slices.ContainsFunc(s.Held, func(h store.Held) bool { return counts(h) && h.Generation == d.Generation })
	})
}

// changesIfComplete reports whether another generation is in force if all abstaining nodes hold this one, or one of them.
func (d *doubt) changesIfComplete() bool {
	nodes := d.abstainers()
	for _, several := range slices.Insert(slices.Collect(slices.Chunk(nodes, 1)), 0, nodes) {
		for _, committed := range []bool{true, false} {
			if !(committed && d.lacked()) && d.changes(several, func(n int) *store.State { return d.holder(n, committed) }) {
				return true
			}
		}
	}
	return false
}

// changesIfLacking reports whether another generation is in force if an abstaining node lacks this one. No node has committed
// it: it is in force only as all hold it.
func (d *doubt) changesIfLacking() bool {
	return d.committers == nil && slices.ContainsFunc(d.abstainers(), func(n int) bool { return d.changes([]int{n}, d.lacker) })
}

// changes reports whether another generation is in force if several nodes have something else.
func (d *doubt) changes(nodes []int, state func(n int) *store.State) bool {
	list := slices.Clone(d.states)
	for _, n := range nodes {
		list[n] = state(n)
	}
	c, err := decideKnown(list, "")
	return err != nil || c.Generation != d.current.Generation || c.Root != d.current.Root
}

// holder returns the state of an abstaining node if it holds the generation. Where nobody can read its name, it may be
// committed, or pending beside the one in force.
func (d *doubt) holder(n int, committed bool) *store.State {
	s, h := *d.states[n], d.Held
	if u := s.UnreadAt(h.Generation); u != nil {
		committed = u.Committed
	}
	h.Committed, h.Complete, h.Node = committed, true, n
	s.Held = append(slices.Clone(s.Held), h)
	for _, x := range d.states {
		if earlier := x.Holding(d.current); s.Failing != "" && !committed && earlier != nil && earlier.Generation < h.Generation {
			e := *earlier
			e.Committed, e.Node = true, n
			s.Held = append(s.Held, e)
			break
		}
	}
	s.Failing, s.Lost, s.Node, s.Group, s.Unknown = "", false, n, h.Group, d.remaining(s.Unknown)
	return &s
}

// lacker returns the state of an abstaining node if it lacks the generation.
func (d *doubt) lacker(n int) *store.State {
	s := *d.states[n]
	if s.Failing != "" {
		return &store.State{Dir: s.Dir, Node: -1, Files: true}
	}
	s.Unknown = d.remaining(s.Unknown)
	return &s
}

func (d *doubt) remaining(list []store.Unknown) []store.Unknown {
	return slices.DeleteFunc(slices.Clone(list), func(u store.Unknown) bool { return u.Generation == d.Generation })
}

func (d *doubt) abstention() error {
	var list, dirs []string
	for _, n := range d.abstainers() {
		s, reason := d.states[n], d.states[n].Failing
		if u := s.UnreadAt(d.Generation); u != nil {
			reason = u.Reason
			dirs = append(dirs, s.Path(tree.Name(store.MetaPath(store.DirOf(u.Generation, u.Committed)))))
		}
		list = append(list, fmt.Sprintf("%s (%s)", s.Dir, reason))
	}
	advice := ""
	if dirs != nil {
		advice = ", and where a manifest is damaged or missing at all nodes that are left, move away " + strings.Join(dirs, ", ")
	}
	return store.Inputf("cannot tell whether generation %d is in force without what cannot be read: %s. Make it readable, as by running as the user who has protected it; where a disk is dead, give an empty directory in its place%s", d.Generation, strings.Join(list, ", "), advice)
}
