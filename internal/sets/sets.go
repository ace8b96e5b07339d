// Package sets cuts the nodes of many hosts into sets, each of which is a group of its own (package group): [Choose]
// says which nodes are a set. As far as it can, it takes no two nodes of a set from one failure domain, such as a rack.
//
// Nothing but the groups themselves is stored: a directory says which node of which group it is, how many nodes that
// has, and which of how many sets it is. So the sets are found again in whatever order the nodes come, an assignment
// that was cut off between two sets is completed, and a set that is not there is missed.
package sets

import (
	"fmt"
	"maps"
	"slices"

	"volley/group"
	"volley/group/protection"
)

// A Member is a node that belongs to a set, or is to get a place in one.
type Member struct {
	Name   string `json:"dir"`
	Domain string `json:"domain,omitempty"` // what fails together has the same; "": nothing does
	protection.Identity
}

// A NodeSet is members that are a group.
type NodeSet struct {
	Members []int    // by node; those that are not there are left out
	Group   string   // that members name; "": none does
	Lost    bool     // it was chosen along with others, and has no members now, or empty ones only
	Notes   []string // of members that are lost together

	places  []int          // members by node; -1: free
	domains map[string]int // members of each, those of c.chosen too
	room    int            // places for more
}

// An assignment is one of nodes to sets, under way.
type assignment struct {
	members []Member
	free    []int // members that have no place: empty ones first, which may be in the place of lost ones
	empty   int   // so many are empty
	sets    []*NodeSet
	chosen  []*NodeSet // of members that had no place; nil: none
}

// Choose returns the sets of members. They keep the numbers that their groups have noted; others come in the order of
// their first members. A set that was chosen along with them is there, too, if it is lost.
//
// Members that say which node of which group they are keep their places. The others, empty ones first, take the places
// that are free there. Those that are left make new sets of at most size members, and of nearly the same number.
// Members of one domain come to different sets wherever that is possible. What is not possible is in Notes, or, where
// apart is set, an error for new sets.
//
// The assignment depends on nothing but its arguments. Members in the order in which they were chosen first, some of which
// say nothing any more, get the places that they had.
func Choose(members []Member, size int, apart bool) ([]NodeSet, error) {
	if size < 2 || len(members) < 2 {
		return nil, group.Inputf("%d directories in sets of at most %d: want 2 or more of both", len(members), size)
	}
	c := &assignment{members: members, chosen: make([]*NodeSet, len(members))}
	if err := c.find(size); err != nil {
		return nil, err
	}
	old, surplus := len(c.sets), len(c.free)
	for _, s := range c.sets {
		surplus -= s.room
	}
	if surplus > 0 {
		if err := c.cut(surplus, size); err != nil {
			return nil, err
		}
	}
	for _, c.free = range [][]int{c.free[:c.empty], c.free} {
		c.hint(size)
		c.deal()
	}
	if apart {
		if err := c.sharing(c.sets[old:]); err != nil {
			return nil, err
		}
	}
	var list []NodeSet
	for _, s := range c.sets {
		list = append(list, c.finish(s))
	}
	slices.SortFunc(list, func(a, b NodeSet) int { return slices.Min(a.Members) - slices.Min(b.Members) })
	return numbered(members, list), nil
}

// numbered puts each set where its members say that it is, and the others where there is room.
func numbered(members []Member, list []NodeSet) []NodeSet {
	old := 0
	for _, m := range members {
		if m.SetIndex.Valid() {
			old = max(old, m.Sets)
		}
	}
	positions := make([]NodeSet, max(old, len(list)))
	var rest []NodeSet
	for _, s := range list {
		i := slices.IndexFunc(s.Members, func(i int) bool {
			m := members[i]
			return m.Group == s.Group && m.Sets > 0 && m.SetIndex.Valid() && positions[m.Set].Members == nil
		})
		if i < 0 {
			rest = append(rest, s)
		} else {
			positions[members[s.Members[i]].Set] = s
		}
	}
	for i := range positions {
		if positions[i].Members == nil && len(rest) > 0 {
			positions[i], rest = rest[0], rest[1:]
			positions[i].Lost = i < old && !slices.ContainsFunc(positions[i].Members, func(i int) bool { return !members[i].Empty })
		}
		positions[i].Lost = positions[i].Lost || positions[i].Members == nil
	}
	return positions
}

// find finds the sets that members name, and the members that name none.
func (c *assignment) find(size int) error {
	inForce := map[string]bool{} // the other groups are left of protects that were cut off
	for _, m := range c.members {
		inForce[m.Group] = inForce[m.Group] || m.Held
	}
	for i, m := range c.members {
		switch {
		case m.Node < 0 && m.Empty:
			c.free = slices.Insert(c.free, c.empty, i)
			c.empty++
			continue
		case m.Node < 0 || !inForce[m.Group]:
			c.free = append(c.free, i)
			continue
		}
		index := slices.IndexFunc(c.sets, func(s *NodeSet) bool { return s.Group == m.Group })
		if index < 0 {
			index = len(c.sets)
			c.sets = append(c.sets, &NodeSet{Group: m.Group, domains: map[string]int{}})
		}
		s := c.sets[index]
		n := max(m.Nodes, m.Node+1)
		if n > size {
			return group.Inputf("%s is in a set of %d members, and sets of at most %d are asked for: a set keeps its members. To choose anew, move the .volley of all members away", m.Name, n, size)
		}
		s.add(n - len(s.places))
		if occupant := s.places[m.Node]; occupant >= 0 {
			return group.Inputf("%s and %s both say that they are node %d of a set: leave one of them out", c.members[occupant].Name, m.Name, m.Node)
		}
		s.places[m.Node] = i
		s.domains[m.Domain]++
		s.room--
	}
	return nil
}

func (s *NodeSet) add(n int) {
	for ; n > 0; n-- {
		s.places = append(s.places, -1)
		s.room++
	}
}

// cut makes new sets for so many members.
func (c *assignment) cut(members, size int) error {
	n := (members + size - 1) / size
	if members/n < 2 {
		return group.Inputf("directories that are in no set: %d; in sets of 2 to %d one of them would be alone: name more of them, or leave some out", members, size)
	}
	for i := range n {
		s := &NodeSet{domains: map[string]int{}}
		s.add((members + i) / n)
		c.sets = append(c.sets, s)
	}
	return nil
}

// hint gives members without a place the sets that they would have if nobody had one, so lost ones come back there.
func (c *assignment) hint(size int) {
	first := &assignment{members: c.members, chosen: make([]*NodeSet, len(c.members))}
	if len(c.free) == len(c.members) || first.cut(len(c.members), size) != nil {
		return
	}
	for i := range c.members {
		first.free = append(first.free, i)
	}
	first.deal()
	current, original, limit := map[*NodeSet]*NodeSet{}, map[*NodeSet]*NodeSet{}, len(c.members)
	for i, s := range first.chosen {
		index := slices.IndexFunc(c.sets, func(s *NodeSet) bool { return slices.Contains(s.places, i) })
		switch {
		case index < 0:
		case current[s] == nil && original[c.sets[index]] == nil:
			current[s], original[c.sets[index]] = c.sets[index], s
		case current[s] != c.sets[index]: // nobody comes where all are as they would be
			limit = 1
		}
	}
	for _, i := range c.free {
		if s := current[first.chosen[i]]; c.chosen[i] == nil && s != nil && s.room > 0 && c.fits(i, s, limit) {
			c.take(i, s)
		}
	}
}

// deal gives the members without a place their sets: as many as possible so that no domain has two in a set, as many of
// the others so that none has three, and so on. It augments a flow from domains to sets (L. Ford, D. Fulkerson, 1956).
func (c *assignment) deal() {
	waiting := slices.DeleteFunc(slices.Clone(c.free), func(i int) bool { return c.chosen[i] != nil })
	for limit := 1; len(waiting) > 0; limit++ {
		waiting = slices.DeleteFunc(waiting, func(i int) bool { return c.place(i, limit, map[*NodeSet]bool{}) })
	}
}

// place gives a member a set in which its domain has fewer than limit, for which another member may move.
func (c *assignment) place(i, limit int, seen map[*NodeSet]bool) bool {
	for _, s := range c.sets {
		if s.room > 0 && c.fits(i, s, limit) {
			c.take(i, s)
			return true
		}
	}
	for _, s := range c.sets {
		if seen[s] || !c.fits(i, s, limit) {
			continue
		}
		seen[s] = true
		for j, assigned := range c.chosen {
			if assigned == s && c.place(j, limit, seen) {
				s.domains[c.members[j].Domain]--
				s.room++
				c.take(i, s)
				return true
			}
		}
	}
	return false
}

func (c *assignment) fits(i int, s *NodeSet, limit int) bool {
	domain := c.members[i].Domain
	return domain == "" || s.domains[domain] < limit
}

func (c *assignment) take(i int, s *NodeSet) {
	c.chosen[i] = s
	s.domains[c.members[i].Domain]++
	s.room--
}

// sharing returns an error where two members of a new set are in one domain.
func (c *assignment) sharing(sets []*NodeSet) error {
	count, worst := map[string]int{}, ""
	for _, i := range c.free {
		count[c.members[i].Domain]++
	}
	count[worst] = 0 // members that are in none
	for _, i := range c.free {
		domain := c.members[i].Domain
		if count[domain] > count[worst] && c.chosen[i].domains[domain] > 1 && slices.Contains(sets, c.chosen[i]) {
			worst = domain
		}
	}
	if worst == "" {
		return nil
	}
	n, advice := count[worst], "name more directories of other failure domains"
	if size := (len(c.members) - 1) / (n - 1); len(sets) == len(c.sets) && len(c.members)/n > 1 {
		advice = fmt.Sprintf("sets of at most %d keep them apart", size)
	}
	return group.Inputf("failure domain %s has %d directories without a set, and there are %d new sets: two of them would be in one set, and be lost together; %s", worst, n, len(sets), advice)
}

// finish gives the members of a set that had no place the free ones, in order.
func (c *assignment) finish(s *NodeSet) NodeSet {
	for i, assigned := range c.chosen {
		if assigned == s {
			s.places[slices.Index(s.places, -1)] = i
		}
	}
	if places := slices.Clone(s.places); !slices.Contains(places, -1) {
		ids := make([]protection.Identity, len(places))
		for n, i := range places {
			ids[n] = c.members[i].Identity
		}
		for n, i := range group.Order(ids) {
			s.places[n] = places[i]
		}
	}
	for _, i := range s.places {
		if i >= 0 {
			s.Members = append(s.Members, i)
		}
	}
	for _, domain := range slices.Sorted(maps.Keys(s.domains)) {
		if n := s.domains[domain]; domain != "" && n > 1 {
			s.Notes = append(s.Notes, fmt.Sprintf("%d members are in failure domain %s, and are lost together", n, domain))
		}
	}
	return *s
}
