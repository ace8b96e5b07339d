package group

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A current is the generation that is in force.
type current struct {
	generation int64  // 0: the group was never protected
	root       string // SHA-256 of its manifest
	version    int
	newest     int64 // generation of which any node has a file
}

// A claim is a generation as some nodes have it.
type claim struct {
	generation int64
	root       string
	version    int
	nodes      int
	tolerate   int
	has        []int // nodes
	committed  []int // of these
}

// decide finds out the generation that is in force: see the package's documentation. believe
// names a node, by its directory or number, whose newest generation it then is. The errors are
// [*InputError]s, the same at all ranks.
func decide(states []*state, believe string) (c current, err error) {
	k := len(states)
	group := ""
	for _, s := range states {
		c.newest = max(c.newest, s.Newest)
		for _, h := range s.Held {
			if h.Committed {
				group = cmp.Or(group, h.Group)
			}
		}
	}
	established := group != ""
	if established {
		if err := alikeGroup(states); err != nil {
			return c, err
		}
	}
	var claims []*claim
	counting := 0
	for n, s := range states {
		if s.Node >= 0 && slices.ContainsFunc(s.Held, func(h held) bool { return !established || h.Group == group }) {
			counting++
		}
		for _, h := range s.Held {
			if !h.Committed && !h.Complete || established && h.Group != group {
				continue
			}
			i := slices.IndexFunc(claims, func(x *claim) bool { return x.generation == h.Generation && x.root == h.Root })
			if i < 0 {
				i = len(claims)
				claims = append(claims, &claim{generation: h.Generation, root: h.Root, version: h.Version, nodes: h.Nodes, tolerate: h.Tolerate})
			}
			x := claims[i]
			if h.Committed {
				x.committed = append(x.committed, n)
			}
			if s.Node >= 0 { // else it has the manifest, and does not count
				x.has = append(x.has, n)
			}
		}
	}
	slices.SortStableFunc(claims, func(a, b *claim) int { return cmp.Compare(b.generation, a.generation) })
	if i := slices.IndexFunc(claims, func(x *claim) bool { return len(x.committed) > 0 }); i >= 0 && claims[i].nodes != k {
		return c, inputf("%s is of a group of %d nodes, and %d were given: give them all, lost ones too", states[claims[i].committed[0]].Dir, claims[i].nodes, k)
	}
	force := func(x *claim) (current, error) {
		return current{x.generation, x.root, x.version, c.newest}, alikeGroup(states)
	}
	if believe != "" {
		n, err := nodeNamed(states, believe)
		if err != nil {
			return c, err
		}
		for _, x := range claims {
			if slices.Contains(x.committed, n) {
				return force(x)
			}
		}
		return c, inputf("%s has no generation that was committed: it cannot be believed", states[n].Dir)
	}
	var in *claim
	doubt := false
	for _, x := range claims {
		switch enough := len(x.has) >= k-x.tolerate && 2*len(x.has) > counting; {
		case enough && x.nodes == k && (len(x.committed) > 0 || len(x.has) == counting && (established || everywhere(states, x))):
			in = x
		case x.nodes == k && len(x.committed) > 0 && len(x.has) == counting: // too many are lost, and nobody disagrees
			in = x
		default:
			doubt = doubt || len(x.committed) > 0
		}
		if in != nil {
			break
		}
	}
	if doubt && (in == nil || newerThan(claims, in)) {
		return c, &InputError{error: fmt.Errorf("cannot tell which generation is in force: %s", whoHas(states)), Way: WayBelieve}
	}
	if in == nil {
		return c, nil
	}
	return force(in)
}

// everywhere reports whether all nodes have a generation but those that are lost. A group that
// was never protected is not, while it is protected for the first time.
func everywhere(states []*state, x *claim) bool {
	for n, s := range states {
		if !s.Lost && s.Failing == "" && !slices.Contains(x.has, n) {
			return false
		}
	}
	return true
}

// newerThan reports whether a node has committed a generation after x.
func newerThan(claims []*claim, x *claim) bool {
	return slices.ContainsFunc(claims, func(y *claim) bool { return len(y.committed) > 0 && y.generation > x.generation })
}

// alikeGroup returns an error that names a node which is of another group, or another node of
// this one.
func alikeGroup(states []*state) error {
	var group string
	var named int // by this node
	for n, s := range states {
		if s.Node >= 0 && s.Node != n {
			return inputf("%s is node %d of its group and was given as node %d: give the directories in the order in which they were protected", s.Dir, s.Node, n)
		}
		names := []string{s.Group}
		for _, m := range s.Held {
			names = append(names, m.Group)
		}
		for _, name := range names {
			switch {
			case name == "":
			case group == "":
				group, named = name, n
			case name != group && named == n:
				return inputf("%s has files of two groups in its %s: move those of the other group away", s.Dir, metaName)
			case name != group:
				return inputf("%s belongs to another group than %s: give the directories of one group", s.Dir, states[named].Dir)
			}
		}
	}
	return nil
}

// whoHas tells which generations each node has.
func whoHas(states []*state) string {
	var list []string
	for _, s := range states {
		var has []string
		for _, h := range s.Held {
			switch {
			case h.Committed:
				has = append(has, fmt.Sprint("generation ", h.Generation))
			case h.Complete:
				has = append(has, fmt.Sprintf("generation %d, pending", h.Generation))
			}
		}
		switch {
		case s.Failing != "":
			has = []string{"cannot be read"}
		case s.Lost:
			has = []string{"nothing: it is lost"}
		case has == nil:
			has = []string{"none"}
		}
		list = append(list, s.Dir+" has "+strings.Join(has, " and "))
	}
	return strings.Join(list, "; ")
}

// nodeNamed returns the node of a directory as it was given, or of a number.
func nodeNamed(states []*state, name string) (int, error) {
	at := -1
	for n, s := range states {
		if s.Dir == name {
			if at >= 0 {
				return 0, inputf("%q is the directory of several nodes: name the node by its number, from 0", name)
			}
			at = n
		}
	}
	if n, err := strconv.Atoi(name); at < 0 && err == nil && n >= 0 && n < len(states) {
		at = n
	}
	if at < 0 {
		return 0, inputf("%q is no node of the group: name its directory, or its number, 0 to %d", name, len(states)-1)
	}
	return at, nil
}

// of returns what a node has of a generation in force, or nil.
func (s *state) of(c current) *held {
	for i := range s.Held {
		if h := &s.Held[i]; h.Generation == c.generation && h.Root == c.root {
			return h
		}
	}
	return nil
}
