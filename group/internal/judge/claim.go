package judge

import (
	"cmp"
	"slices"

	"volley/group/internal/store"
)

// A claim is a generation that nodes hold, and that may be in force.
type claim struct {
	store.Held
	states     []*store.State // of all nodes
	group      string         // of which a node has committed something; "": none has
	holders    []int          // nodes
	counted    []int          // the holders that count
	committers []int          // nodes that have committed it, also where its manifest is damaged there
	counting   int            // nodes that count, and do not abstain
}

var claims = []row[*claim, bool]{
	{"alone", (*claim).alone, false,
		"It does not count: one node decides nothing about others"},
	{"of another number of nodes", func(c *claim) bool { return c.Nodes != len(c.states) }, false,
		"Its `nodes` are as many as the run has directories."},
	{"committed", func(c *claim) bool { return c.enough() && c.committers != nil }, true,
		"One node has committed it, or all that count hold it."},
	{"complete", func(c *claim) bool { return c.enough() && c.unanimous() && (c.group != "" || c.everywhere()) }, true,
		"Where no node has committed anything, all nodes that are not lost have to hold it."},
	{"too many are lost", func(c *claim) bool { return c.committers != nil && c.unanimous() }, true,
		"Where more than R nodes are lost, a committed generation that all nodes that count hold is in force, too."},
	{"too few", nil, false,
		"At least K−R of the nodes that count hold it, and more than half of them."},
}

// committedGroup returns the group of which a node has committed something; "": none has.
func committedGroup(states []*store.State) string {
	for _, s := range states {
		for _, h := range s.Held {
			if h.Committed {
				return h.Group
			}
		}
	}
	return ""
}

// claimsOf returns what nodes hold, the newest first: of a group, or of any if that is "".
func claimsOf(states []*store.State, group string) (list []*claim) {
	for _, s := range states {
		for _, h := range s.Held {
			if !counts(h) || group != "" && h.Group != group || slices.ContainsFunc(list, func(c *claim) bool { return c.matches(h) }) {
				continue
			}
			list = append(list, newClaim(h, states, group))
		}
	}
	slices.SortStableFunc(list, func(a, b *claim) int { return cmp.Compare(b.Generation, a.Generation) })
	return list
}

func newClaim(h store.Held, states []*store.State, group string) *claim {
	c := &claim{Held: h, states: states, group: group}
	for n, s := range states {
		c.count(n, s)
	}
	return c
}

func counts(h store.Held) bool { return h.Committed || h.Complete }

func (c *claim) matches(h store.Held) bool {
	return counts(h) && h.Generation == c.Generation && h.Root == c.Root
}

// count takes in what a node says of the claim.
func (c *claim) count(n int, s *store.State) {
	ours := func(group string) bool { return c.group == "" || group == c.group }
	i := slices.IndexFunc(s.Held, c.matches)
	if i >= 0 {
		c.holders = append(c.holders, n)
	}
	if u := s.UnreadAt(c.Generation); i >= 0 && s.Held[i].Committed || u != nil && u.Committed {
		c.committers = append(c.committers, n)
	}
	switch {
	case s.Node < 0: // it has the manifest, at most, and does not count
	case i >= 0:
		c.counted = append(c.counted, n)
		c.counting++
	case !s.MayHold(c.Generation) && (slices.ContainsFunc(s.Held, func(h store.Held) bool { return ours(h.Group) }) || s.Unknown != nil && ours(s.Group)):
		c.counting++
	}
}

// enough reports whether no more nodes than may be lost do not hold it, and most of those that count do.
func (c *claim) enough() bool { return c.few() && 2*len(c.counted) > c.counting }

func (c *claim) few() bool { return len(c.counted) >= len(c.states)-c.Tolerate }

func (c *claim) unanimous() bool { return len(c.counted) == c.counting }

// everywhere reports whether all nodes but lost ones have it. Before the first generation is complete they do not.
func (c *claim) everywhere() bool {
	for n, s := range c.states {
		if !s.Lost && s.Failing == "" && !slices.Contains(c.counted, n) {
			return false
		}
	}
	return true
}

// alone reports whether a single node holds it, while another node that is there has other generations, or has files and
// nothing that says that it is of a group: one node does not decide about what lies at others. One that may hold it is no
// such node. Where more than may be lost do not say which nodes they are, none of them is taken for a holder.
func (c *claim) alone() bool {
	return len(c.holders) == 1 && slices.ContainsFunc(c.states, func(s *store.State) bool {
		switch {
		case s == c.states[c.holders[0]] || s.Lost || s.Failing != "":
			return false
		case s.MayHold(c.Generation):
			return s.Node < 0 && !c.few()
		}
		return len(s.Held) > 0 || s.Node < 0
	})
}
