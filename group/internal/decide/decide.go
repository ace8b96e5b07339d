// Package decide finds out which generation of a group is in force, from what is found at all nodes. It reads nothing.
package decide

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/printable"
)

type claim struct {
	generation int64
	root       string
	nodes      int
	tolerate   int
	holders    []int // nodes
	counted    []int // the holders that count
	committed  []int // the holders that have committed it
}

// mostAhead is how far a name in .volley may be ahead of the generation in force: more is made up, and leaves none.
const mostAhead = 1 << 20

// NewestOf returns the newest generation of which any node has a file, g being in force.
func NewestOf(states []*store.State, g int64) int64 {
	newest := g
	for _, s := range states {
		for _, number := range s.Numbers {
			if number-g <= mostAhead {
				newest = max(newest, number)
			}
		}
	}
	return newest
}

// Decide finds out the generation that is in force, by docs/format.md. believe names a node by its directory or number: its
// newest generation is then in force. A node whose generations cannot be read abstains. There is a decision only where it
// would be the same whatever that node has. The errors are [*protection.RefusedError]s, the same at all ranks.
func Decide(states []*store.State, believe string) (store.Current, error) {
	states, err := withoutVoid(states)
	if err != nil {
		return store.Current{}, err
	}
	c, err := DecideKnown(states, believe)
	if err == nil && believe == "" {
		err = checkUnread(c, states)
	}
	return c, err
}

// withoutVoid returns the states without generations that a later epoch of their group has made void. It returns an error
// where the directories are not those of the latest epoch.
func withoutVoid(states []*store.State) ([]*store.State, error) {
	latest := map[string]store.Held{} // of a group
	for _, s := range states {
		for _, h := range s.Held {
			if h.Committed && h.Epoch > latest[h.Group].Epoch {
				latest[h.Group] = h
			}
		}
	}
	if len(latest) == 0 {
		return states, nil
	}
	for _, group := range slices.Sorted(maps.Keys(latest)) {
		h := latest[group]
		witness := slices.IndexFunc(states, func(s *store.State) bool { return s.Holds(h) })
		if h.Nodes != len(states) {
			return nil, store.Inputf("the group was resized, as %s says: it has %d nodes now, and %d were given. Give those of all of them: %s%s", states[witness].Dir, h.Nodes, len(states), strings.Join(namesOf(h.Names), ", "), orEmpty)
		}
		x := claim{generation: h.Generation, root: h.Root}
		for n, s := range states {
			if s.Holds(h) {
				x.holders = append(x.holders, n)
			}
		}
		if x.alone(states) {
			delete(latest, group)
		}
	}
	list := slices.Clone(states)
	for i, s := range states {
		void := func(h store.Held) bool { return h.Epoch < latest[h.Group].Epoch }
		if !slices.ContainsFunc(s.Held, void) {
			continue
		}
		remaining := *s
		remaining.Held = slices.DeleteFunc(slices.Clone(s.Held), void)
		if list[i] = &remaining; len(remaining.Held) == 0 {
			remaining.Node, remaining.Group = -1, ""
		}
	}
	return list, nil
}

func namesOf(list []tree.Name) []string {
	var names []string
	for _, name := range list {
		names = append(names, printable.Text(string(name)))
	}
	return names
}

// checkUnread returns an error where another generation would be in force if an unreadable node had one that others have.
// It also returns one where only an unreadable node may have what counts. A node commits only what all nodes have. So what
// a readable node lacks, while it has others, no node has committed.
func checkUnread(c store.Current, states []*store.State) error {
	lacks := func(g int64) bool {
		return slices.ContainsFunc(states, func(s *store.State) bool {
			return len(s.Numbers) > 0 && !s.MayHold(g) && !slices.ContainsFunc(s.Held, func(h store.Held) bool { return h.Generation == g && (h.Committed || h.Complete) })
		})
	}
	tried := map[string]bool{}
	newest := int64(0) // that was committed, so that all nodes had it
	for _, s := range states {
		for _, h := range s.Held {
			if h.Committed {
				newest = max(newest, h.Generation)
			}
		}
	}
	for _, s := range states {
		for _, h := range s.Held {
			if tried[h.Root] || !h.Committed && !h.Complete || h.Generation < newest {
				continue
			}
			tried[h.Root] = true
			for _, committed := range []bool{true, false} {
				if committed && lacks(h.Generation) {
					continue
				}
				for _, node := range append([]int{-1}, abstainers(states, h.Generation)...) {
					if decided, err := DecideKnown(supposing(c, states, h, committed, node), ""); err != nil || decided.Generation != c.Generation || decided.Root != c.Root {
						return abstention(states, h.Generation)
					}
				}
			}
		}
	}
	committed := slices.ContainsFunc(states, func(s *store.State) bool { h := s.Holding(c); return h != nil && h.Committed })
	if c.Generation > 0 && !committed { // it is in force only as all have it
		for n, s := range states {
			if s.Failing == "" {
				continue
			}
			list := slices.Clone(states)
			list[n] = &store.State{Dir: s.Dir, Node: -1, Files: true}
			if decided, err := DecideKnown(list, ""); err != nil || decided.Generation != c.Generation {
				return abstention(states, c.Generation)
			}
		}
	}
	for _, s := range states {
		for _, u := range s.Unknown {
			known := slices.ContainsFunc(states, func(s *store.State) bool {
				return slices.ContainsFunc(s.Held, func(h store.Held) bool { return h.Generation == u.Generation })
			})
			if known || u.Generation <= c.Generation {
				continue
			}
			if c.Generation == 0 || !lacks(u.Generation) || countNamed(states, u.Generation) > 1 { // what lacks it may come from a backup
				return abstention(states, u.Generation)
			}
		}
	}
	return nil
}

// countNamed returns how many nodes have committed a generation, by its name alone.
func countNamed(states []*store.State, g int64) (n int) {
	for _, s := range states {
		if slices.ContainsFunc(s.Unknown, func(u store.Unknown) bool { return u.Committed && u.Generation == g }) {
			n++
		}
	}
	return n
}

func abstainers(states []*store.State, g int64) (list []int) {
	for n, s := range states {
		if s.MayHold(g) {
			list = append(list, n)
		}
	}
	return list
}

// supposing returns the states as they would be if all abstaining nodes had a generation, or only the given node: -1 is all.
// A node has a pending generation beside the one in force.
func supposing(c store.Current, states []*store.State, h store.Held, committed bool, node int) []*store.State {
	var inForce *store.Held
	for _, s := range states {
		if inForce == nil {
			inForce = s.Holding(c)
		}
	}
	list := slices.Clone(states)
	for _, n := range abstainers(states, h.Generation) {
		if node >= 0 && n != node {
			continue
		}
		s := *states[n]
		h.Committed, h.Complete, h.Node = committed, true, n
		s.Held = append(slices.Clone(s.Held), h)
		if s.Failing != "" && !committed && inForce != nil && inForce.Generation < h.Generation {
			earlier := *inForce
			earlier.Committed, earlier.Node = true, n
			s.Held = append(s.Held, earlier)
		}
		s.Failing, s.Lost, s.Node, s.Group = "", false, n, h.Group
		list[n] = &s
	}
	return list
}

func abstention(states []*store.State, g int64) error {
	var list, metas []string
	for _, n := range abstainers(states, g) {
		s := states[n]
		metas = append(metas, s.Path(tree.MetaName))
		reason := s.Failing
		for _, u := range s.Unknown {
			if u.Generation == g {
				reason = u.Reason
			}
		}
		list = append(list, fmt.Sprintf("%s (%s)", s.Dir, reason))
	}
	return store.Inputf("cannot tell whether generation %d is in force without what cannot be read: %s. Make it readable, as by running as the user who has protected it; where a disk is dead, give an empty directory in its place, and where a manifest is damaged at all nodes that are left, move away %s", g, strings.Join(list, ", "), strings.Join(metas, ", "))
}

// DecideKnown is [Decide], by what can be read.
func DecideKnown(states []*store.State, believe string) (c store.Current, err error) {
	k := len(states)
	c.Newest = NewestOf(states, 0)
	group := ""
	for _, s := range states {
		for _, h := range s.Held {
			if h.Committed {
				group = cmp.Or(group, h.Group)
			}
		}
	}
	established := group != ""
	if established {
		if err := AlikeGroup(states); err != nil {
			return c, err
		}
	}
	var claims []*claim
	counting := 0
	for n, s := range states {
		if s.Node >= 0 && slices.ContainsFunc(s.Held, func(h store.Held) bool { return !established || h.Group == group }) {
			counting++
		}
		for _, h := range s.Held {
			if !h.Committed && !h.Complete || established && h.Group != group {
				continue
			}
			i := slices.IndexFunc(claims, func(x *claim) bool { return x.generation == h.Generation && x.root == h.Root })
			if i < 0 {
				i = len(claims)
				claims = append(claims, &claim{generation: h.Generation, root: h.Root, nodes: h.Nodes, tolerate: h.Tolerate})
			}
			x := claims[i]
			if x.holders = append(x.holders, n); h.Committed {
				x.committed = append(x.committed, n)
			}
			if s.Node >= 0 { // else it has the manifest, and does not count
				x.counted = append(x.counted, n)
			}
		}
	}
	slices.SortStableFunc(claims, func(a, b *claim) int { return cmp.Compare(b.generation, a.generation) })
	accept := func(x *claim) (store.Current, error) {
		if x.nodes != k {
			return c, store.Inputf("%s is of a group of %d nodes, and %d were given: give all of the group, lost ones too, and no others%s", states[x.committed[0]].Dir, x.nodes, k, orEmpty)
		}
		return store.Current{Generation: x.generation, Root: x.root, Newest: NewestOf(states, x.generation)}, AlikeGroup(states)
	}
	if believe != "" {
		n, err := NodeNamed(states, believe)
		if err != nil {
			return c, err
		}
		for _, x := range claims {
			if slices.Contains(x.committed, n) {
				return accept(x)
			}
		}
		return c, store.Inputf("%s has no generation that was committed: it cannot be believed", states[n].Dir)
	}
	var chosen *claim
	doubt := false
	for _, x := range claims {
		switch enough := len(x.counted) >= k-x.tolerate && 2*len(x.counted) > counting; {
		case x.alone(states):
			doubt = doubt || len(x.committed) > 0
		case enough && x.nodes == k && (len(x.committed) > 0 || len(x.counted) == counting && (established || everywhere(states, x))):
			chosen = x
		case x.nodes == k && len(x.committed) > 0 && len(x.counted) == counting: // too many are lost, and nobody disagrees
			chosen = x
		default:
			doubt = doubt || len(x.committed) > 0
		}
		if chosen != nil {
			break
		}
	}
	sameSize := func(x *claim) bool { return len(x.committed) > 0 && x.nodes == k }
	if doubt && chosen == nil && !slices.ContainsFunc(claims, sameSize) {
		return accept(claims[slices.IndexFunc(claims, func(x *claim) bool { return len(x.committed) > 0 })])
	}
	newer := func(x *claim) bool { return len(x.committed) > 0 && x.generation > chosen.generation }
	if doubt && (chosen == nil || slices.ContainsFunc(claims, newer)) {
		i := slices.IndexFunc(claims, func(x *claim) bool {
			return len(x.committed) > 0 && x.nodes != k && len(x.counted) >= x.nodes-x.tolerate && !x.alone(states)
		})
		if i >= 0 { // it was resized
			return accept(claims[i])
		}
		return c, &protection.RefusedError{Err: &protection.UnclearError{Err: fmt.Errorf("cannot tell which generation is in force: %s", whoHas(states))}, Option: protection.OptionBelieve}
	}
	if chosen == nil {
		return c, nil
	}
	return accept(chosen)
}

// alone reports whether a single node holds a generation, while another node that is there has other manifests, or has
// files and nothing that says that it is of a group: one node does not decide about what lies at others.
func (x *claim) alone(states []*store.State) bool {
	return len(x.holders) == 1 && slices.ContainsFunc(states, func(s *store.State) bool {
		return s != states[x.holders[0]] && !s.Lost && s.Failing == "" && (len(s.Held) > 0 || s.Node < 0)
	})
}

// orEmpty ends an error about what a directory says of itself.
const orEmpty = ". If one of them is not to be trusted, move it away and give an empty directory in its place"

// everywhere reports whether all nodes but lost ones have a generation. Before the first is complete they do not.
func everywhere(states []*store.State, x *claim) bool {
	for n, s := range states {
		if !s.Lost && s.Failing == "" && !slices.Contains(x.counted, n) {
			return false
		}
	}
	return true
}

// AlikeGroup returns an error that names a node which is of another group than most, or another node of this one.
func AlikeGroup(states []*store.State) error {
	count := map[string]int{} // of nodes that say which group they are of
	for _, s := range states {
		if s.Node >= 0 {
			count[s.Group]++
		}
	}
	maps.DeleteFunc(count, func(_ string, n int) bool { return n == 1 })
	if len(count) > 1 {
		return &protection.RefusedError{Option: protection.OptionSets, Err: fmt.Errorf("the directories are of %d groups: give those of one", len(count))}
	}
	nodesOf := map[string][]int{} // nodes, by group
	largest := ""
	for _, s := range states {
		if s.Node >= len(states) {
			return store.Inputf("%s is node %d of its group, and %d directories were given: give them all, lost ones too%s", s.Dir, s.Node, len(states), orEmpty)
		}
	}
	for n, s := range states {
		if s.Node >= 0 && s.Node != n {
			return store.Inputf("%s is node %d of its group and was given as node %d: give the directories in the order in which they were protected%s", s.Dir, s.Node, n, orEmpty)
		}
		names := []string{s.Group}
		for _, h := range s.Held {
			names = append(names, h.Group)
		}
		for _, name := range names {
			if name != "" && !slices.Contains(nodesOf[name], n) {
				nodesOf[name] = append(nodesOf[name], n)
			}
		}
	}
	dirs := func(nodes []int) string {
		var list []string
		for _, n := range nodes {
			list = append(list, states[n].Dir)
		}
		return strings.Join(list, ", ")
	}
	names := slices.Sorted(maps.Keys(nodesOf)) // alike at all ranks
	for _, name := range names {
		if largest == "" || len(nodesOf[name]) > len(nodesOf[largest]) || len(nodesOf[name]) == len(nodesOf[largest]) && nodesOf[name][0] < nodesOf[largest][0] {
			largest = name
		}
	}
	for _, name := range names {
		for _, n := range nodesOf[name] {
			switch {
			case name == largest:
			case slices.Contains(nodesOf[largest], n):
				return store.Inputf("%s has files of two groups: move those of the other group away%s", states[n].Path(tree.MetaName), orEmpty)
			default:
				return store.Inputf("%s belongs to another group than %s: give the directories of one group%s", states[n].Dir, dirs(nodesOf[largest]), orEmpty)
			}
		}
	}
	return nil
}

func whoHas(states []*store.State) string {
	var list []string
	for _, s := range states {
		var generations []string
		for _, h := range s.Held {
			switch {
			case h.Committed:
				generations = append(generations, fmt.Sprint("generation ", h.Generation))
				if h.Nodes != len(states) {
					generations[len(generations)-1] += fmt.Sprintf(" of a group of %d nodes", h.Nodes)
				}
			case h.Complete:
				generations = append(generations, fmt.Sprintf("generation %d, pending", h.Generation))
			}
		}
		switch {
		case s.Failing != "":
			list = append(list, s.Dir+" cannot be read")
		case s.Lost:
			list = append(list, s.Dir+" is lost")
		case generations == nil:
			list = append(list, s.Dir+" has none")
		default:
			list = append(list, s.Dir+" has "+strings.Join(generations, " and "))
		}
	}
	return strings.Join(list, "; ")
}

func NodeNamed(states []*store.State, name string) (int, error) {
	index := -1
	for n, s := range states {
		if s.Dir == name {
			if index >= 0 {
				return 0, store.Inputf("%q is the directory of several nodes: name the node by its number, from 0", name)
			}
			index = n
		}
	}
	if n, err := strconv.Atoi(name); index < 0 && err == nil && n >= 0 && n < len(states) {
		index = n
	}
	if index < 0 {
		return 0, store.Inputf("%q is no node of the group: name its directory, or its number, 0 to %d", name, len(states)-1)
	}
	return index, nil
}
