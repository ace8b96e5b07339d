package judge

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
	var keyed, otherKey []string // nodes with manifests made with any key, and with another key than this one
	var plain, sealed, vouched, anyVouched bool
	for _, s := range states {
		for _, h := range s.Held {
			if h.Keyed && !slices.Contains(keyed, s.Dir) {
				keyed = append(keyed, s.Dir)
			}
			if h.Keyed && !h.Vouched && !slices.Contains(otherKey, s.Dir) {
				otherKey = append(otherKey, s.Dir)
			}
			plain = plain || h.Committed && !h.Keyed
			sealed = sealed || h.Committed && h.Keyed
			anyVouched = anyVouched || h.Vouched
			vouched = vouched || h.Committed && h.Vouched
		}
	}
	pending := func(h store.Held) bool { return h.Keyed }
	switch {
	case o.NoKey:
	case len(o.Key) == 0 && (sealed || keyed != nil && !plain):
		return false, &protection.RefusedError{Option: protection.OptionKey, Err: fmt.Errorf("the group was protected with a key, as %s says: give the key", strings.Join(keyed, ", "))}
	case len(o.Key) == 0:
		withdraw(states, pending, true)
	case otherKey != nil && !vouched && (plain || !anyVouched):
		return false, &protection.RefusedError{Option: protection.OptionKey, Err: fmt.Errorf("no manifest in force was made with this key, and %s has one that was made with another: give the key with which the group was protected", strings.Join(otherKey, ", "))}
	case vouched || !plain:
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
func withdraw(states []*store.State, match func(store.Held) bool, leftover bool) {
	for _, s := range states {
		count := len(s.Held)
		s.Held = slices.DeleteFunc(s.Held, func(h store.Held) bool {
			if !match(h) {
				return false
			}
			name := store.DirOf(h.Generation, h.Committed)
			if leftover {
				s.Leftovers = append(s.Leftovers, name)
			} else {
				s.Bad = append(s.Bad, fmt.Sprintf("%s: was not made with the key, and does not count", s.Path(tree.Name(store.MetaPath(name)))))
			}
			return true
		})
		if len(s.Held) < count {
			s.Say()
			s.Node = s.NumberAmong(len(states))
		}
	}
}

// withdrawEnded takes from the states what an ended protection has left at nodes that could not be read then. More nodes
// have to say that it has ended than have it: one node does not end it. With a key none does, as marks have no HMAC.
func withdrawEnded(states []*store.State) {
	ended, holders := map[string]int{}, map[string]int{} // nodes, by group
	for _, s := range states {
		if s.Ended != "" {
			ended[s.Ended]++
		}
		if len(s.Held) > 0 {
			holders[s.Held[0].Group]++
		}
	}
	withdraw(states, func(h store.Held) bool { return ended[h.Group] > holders[h.Group] }, true)
}

// InForce finds out the generation in force among what the options let count, and whether it
// has no key and is to get one. That it does only where every node that is not lost holds it.
func InForce(states []*store.State, o Trust, protect bool) (c store.Current, adopt bool, err error) {
	if len(o.Key) == 0 {
		withdrawEnded(states)
	}
	if adopt, err = Vouch(states, o, protect); err == nil {
		c, err = Decide(states, o.Believe)
	}
	for _, x := range states {
		if err == nil && adopt && !x.Lost && x.Holding(c) == nil {
			err = store.Inputf("%s does not hold generation %d, which the group has without a key: recover and protect it without a key, and then protect it with the key", x.Dir, c.Generation)
		}
	}
	return c, adopt, err
}
