package judge

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

// orEmpty ends an error about what a directory says of itself.
const orEmpty = ". If one of them is not to be trusted, move it away and give an empty directory in its place"

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
	for _, group := range slices.Sorted(maps.Keys(latest)) {
		c := &claim{Held: latest[group], states: states}
		for n, s := range states {
			if s.Holds(c.Held) {
				c.holders = append(c.holders, n)
			}
		}
		if c.Nodes != len(states) {
			return nil, store.Inputf("the group was resized, as %s says: it has %d nodes now, and %d were given. Give those of all of them: %s%s", states[c.holders[0]].Dir, c.Nodes, len(states), strings.Join(namesOf(c.Names), ", "), orEmpty)
		}
		if c.alone() {
			delete(latest, group)
		}
	}
	list := slices.Clone(states)
	for i, s := range states {
		valid := slices.DeleteFunc(slices.Clone(s.Held), func(h store.Held) bool { return h.Epoch < latest[h.Group].Epoch })
		if len(valid) < len(s.Held) {
			x := *s
			x.Held = valid
			x.Say()
			x.Node = x.NumberAmong(len(states))
			list[i] = &x
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

// AlikeGroup returns an error that names a node which is of another group than most, or another node of this one.
func AlikeGroup(states []*store.State) error {
	if err := checkNumbers(states); err != nil {
		return err
	}
	nodes := map[string][]int{} // by group of which they have something
	for n, s := range states {
		names := []string{s.Group}
		for _, h := range s.Held {
			names = append(names, h.Group)
		}
		for _, name := range names {
			if name != "" && !slices.Contains(nodes[name], n) {
				nodes[name] = append(nodes[name], n)
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(nodes), func(a, b string) int { // that of most nodes first; alike at all ranks
		return cmp.Or(cmp.Compare(len(nodes[b]), len(nodes[a])), cmp.Compare(nodes[a][0], nodes[b][0]), cmp.Compare(a, b))
	})
	if len(names) < 2 {
		return nil
	}
	majority, n := nodes[names[0]], nodes[names[1]][0]
	if slices.Contains(majority, n) {
		return store.Inputf("%s has files of two groups: move those of the other group away%s", states[n].Path(tree.MetaName), orEmpty)
	}
	var dirs []string
	for _, n := range majority {
		dirs = append(dirs, states[n].Dir)
	}
	return store.Inputf("%s belongs to another group than %s: give the directories of one group%s", states[n].Dir, strings.Join(dirs, ", "), orEmpty)
}

// checkNumbers returns an error where nodes are of several groups, or other ones than they were given as.
func checkNumbers(states []*store.State) error {
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
	for n, s := range states {
		if s.Node >= len(states) {
			return store.Inputf("%s is node %d of its group, and %d directories were given: give them all, lost ones too%s", s.Dir, s.Node, len(states), orEmpty)
		}
		if s.Node >= 0 && s.Node != n {
			return store.Inputf("%s is node %d of its group and was given as node %d: give the directories in the order in which they were protected%s", s.Dir, s.Node, n, orEmpty)
		}
	}
	return nil
}

func whoHas(states []*store.State) string {
	var list []string
	for _, s := range states {
		generations := generationsOf(s, len(states))
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

// generationsOf says which generations a node of so many has.
func generationsOf(s *store.State, nodes int) (list []string) {
	for _, h := range s.Held {
		text := fmt.Sprint("generation ", h.Generation)
		if h.Committed && h.Nodes != nodes {
			text += fmt.Sprintf(" of a group of %d nodes", h.Nodes)
		}
		if !h.Committed {
			text += ", pending"
		}
		if counts(h) {
			list = append(list, text)
		}
	}
	for _, u := range s.Unknown {
		list = append(list, fmt.Sprintf("generation %d without a good manifest", u.Generation))
	}
	return list
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
