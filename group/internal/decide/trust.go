package decide

import (
	"fmt"
	"slices"
	"strings"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
)

// A Trust is what tells which manifests count.
type Trust struct {
	Key     []byte // nil: none was made with one
	NoKey   bool   // whether they were made with any does not matter
	Believe string // a node whose newest generation is in force
}

// Vouch takes from the states the manifests that the key does not vouch for. It reports whether
// the group was protected without a key, and protect is to give it one. What a run has left
// pending does not tell whether a group has a key, where another generation is committed.
func Vouch(states []*store.State, o Trust, protect bool) (adopt bool, err error) {
	var keyed, others []string // nodes with manifests that were made with any key; not with this one
	var plain, sealed, mine, any bool
	for _, s := range states {
		for _, h := range s.Held {
			if h.Keyed && !slices.Contains(keyed, s.Dir) {
				keyed = append(keyed, s.Dir)
			}
			if h.Keyed && !h.Vouched && !slices.Contains(others, s.Dir) {
				others = append(others, s.Dir)
			}
			plain = plain || h.Committed && !h.Keyed
			sealed = sealed || h.Committed && h.Keyed
			any = any || h.Vouched
			mine = mine || h.Committed && h.Vouched
		}
	}
	pending := func(h store.Held) bool { return h.Keyed }
	switch {
	case o.NoKey:
	case len(o.Key) == 0 && (sealed || keyed != nil && !plain):
		return false, &protection.RefusedError{Way: protection.WayKey, Err: fmt.Errorf("the group was protected with a key, as %s says: give the key", strings.Join(keyed, ", "))}
	case len(o.Key) == 0:
		withdraw(states, pending, true)
	case others != nil && !mine && (plain || !any):
		return false, &protection.RefusedError{Way: protection.WayKey, Err: fmt.Errorf("no manifest in force was made with this key, and %s has one that was made with another: give the key with which the group was protected", strings.Join(others, ", "))}
	case mine || !plain:
		withdraw(states, func(h store.Held) bool { return !h.Vouched }, false)
	case !protect:
		return false, store.Inputf("the group was protected without a key: protect it with the key first, or give no key")
	default:
		withdraw(states, pending, true)
		return true, nil
	}
	return false, nil
}

// withdraw takes manifests from the states: what interrupted runs have left, or what is not to be believed.
func withdraw(states []*store.State, which func(store.Held) bool, left bool) {
	for _, s := range states {
		before := len(s.Held)
		s.Held = slices.DeleteFunc(s.Held, func(h store.Held) bool {
			if !which(h) {
				return false
			}
			name := store.PendingDir(h.Generation)
			if h.Committed {
				name = store.GenerationDir(h.Generation)
			}
			if left {
				s.Left = append(s.Left, name)
			} else {
				s.Bad = append(s.Bad, fmt.Sprintf("%s: was not made with the key, and does not count", s.Path(tree.Name(store.MetaPath(name)))))
			}
			return true
		})
		if len(s.Held) < before {
			s.Say()
			s.Node = s.In(len(states))
		}
	}
}

// end takes from the states what a protection that has ended has left at nodes that could not be read then. Fewer nodes have
// it than say that it has ended: one node does not end it. With a key nobody does, as marks have no HMAC.
func end(states []*store.State) {
	ended, has := map[string]int{}, map[string]int{} // nodes, by group
	for _, s := range states {
		if s.Ended != "" {
			ended[s.Ended]++
		}
		if len(s.Held) > 0 {
			has[s.Held[0].Group]++
		}
	}
	withdraw(states, func(h store.Held) bool { return ended[h.Group] > has[h.Group] }, true)
}

// InForce finds out the generation in force among what the options let count, and whether it
// has no key and is to get one. That it does only where every node that is not lost holds it.
func InForce(states []*store.State, o Trust, protect bool) (c store.Current, adopt bool, err error) {
	if len(o.Key) == 0 {
		end(states)
	}
	if adopt, err = Vouch(states, o, protect); err == nil {
		c, err = Decide(states, o.Believe)
	}
	for _, x := range states {
		if err == nil && adopt && !x.Lost && x.Of(c) == nil {
			err = store.Inputf("%s does not hold generation %d, which the group has without a key: recover and protect it without a key, and then protect it with the key", x.Dir, c.Generation)
		}
	}
	return c, adopt, err
}
