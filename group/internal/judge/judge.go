// Package judge finds out which generation of a group is in force, from what is found at all nodes, what becomes of each
// entry of a node, and how many more nodes may be lost. It reads nothing. Its rules are tables: of what nodes claim, of one
// claim, of what cannot be read, and of an entry.
package judge

import (
	"fmt"
	"slices"

	"volley/group/internal/store"
	"volley/group/protection"
)

// A row of a table is a case of what nodes hold, or of an entry. Of those that apply the first one counts.
type row[Case, Verdict any] struct {
	name    string
	applies func(Case) bool // nil: in all cases
	verdict Verdict
	says    string // docs/format.md of the case, or docs/protect.md of an entry
}

func rowOf[Case, Verdict any](table []row[Case, Verdict], x Case) row[Case, Verdict] {
	return table[slices.IndexFunc(table, func(r row[Case, Verdict]) bool { return r.applies == nil || r.applies(x) })]
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
	c, err := decideKnown(states, believe)
	if err == nil && believe == "" {
		err = checkUnread(c, states)
	}
	return c, err
}

// decideKnown is [Decide], by what can be read.
func decideKnown(states []*store.State, believe string) (store.Current, error) {
	x, err := newContest(states, believe)
	if err != nil {
		return store.Current{}, err
	}
	return rowOf(contests, x).verdict(x)
}

// A contest is what nodes claim to be in force.
type contest struct {
	states   []*store.State
	claims   []*claim // the newest first
	believed *claim   // by the operator's word; nil: there is none
	chosen   *claim   // the newest that is in force by itself; nil: none is
	disputed *claim   // the newest that a node has committed, if it is newer; else nil
}

func newContest(states []*store.State, believe string) (x *contest, err error) {
	x = &contest{states: states}
	group := committedGroup(states)
	if group != "" {
		err = AlikeGroup(states)
	}
	x.claims = claimsOf(states, group)
	if err == nil && believe != "" {
		x.believed, err = x.newestOf(believe)
	}
	if err != nil {
		return nil, err
	}
	x.chosen = x.find(func(c *claim) bool { return rowOf(claims, c).verdict })
	x.disputed = x.find(func(c *claim) bool {
		return c.committers != nil && (x.chosen == nil || c.Generation > x.chosen.Generation)
	})
	return x, nil
}

var contests = []row[*contest, func(*contest) (store.Current, error)]{
	{"an operator says whom to believe", func(x *contest) bool { return x.believed != nil },
		func(x *contest) (store.Current, error) { return x.accept(x.believed) },
		"`--believe` names the node whose newest committed generation is then in force."},
	{"one is in force", func(x *contest) bool { return x.chosen != nil && x.disputed == nil },
		func(x *contest) (store.Current, error) { return x.accept(x.chosen) },
		"The generation *in force* is the newest for which all of this is so:"},
	{"none was committed", func(x *contest) bool { return x.disputed == nil },
		func(x *contest) (store.Current, error) { return store.Current{Newest: NewestOf(x.states, 0)}, nil },
		"Where none is, and no node has committed one, the group is not protected."},
	{"other directories", func(x *contest) bool { return x.otherSize() != nil },
		func(x *contest) (store.Current, error) { return x.accept(x.otherSize()) },
		"Where it has another number of `nodes`, the error says so."},
	{"a newer one cannot be read", func(x *contest) bool { return x.unread() != nil },
		func(x *contest) (store.Current, error) { return store.Current{}, x.unread().abstention() },
		"A node that cannot be read abstains, and so does one whose manifest of a generation cannot be read, or is damaged or missing in `generation.<g>`."},
	{"nodes contradict each other", nil,
		func(x *contest) (store.Current, error) {
			return store.Current{}, &protection.RefusedError{Err: &protection.UnclearError{Err: fmt.Errorf("cannot tell which generation is in force: %s", whoHas(x.states))}, Option: protection.OptionBelieve}
		},
		"A node has committed a newer generation than the one in force, or none is in force and a node has committed one: every verb stops."},
}

// find returns the newest claim of which something is so, or nil.
func (x *contest) find(matches func(*claim) bool) *claim {
	if i := slices.IndexFunc(x.claims, matches); i >= 0 {
		return x.claims[i]
	}
	return nil
}

// newestOf returns the newest generation that a node has committed, which has the name.
func (x *contest) newestOf(name string) (*claim, error) {
	n, err := NodeNamed(x.states, name)
	if err != nil {
		return nil, err
	}
	c := x.find(func(c *claim) bool { return slices.Contains(c.committers, n) })
	if c == nil {
		return nil, store.Inputf("%s has no generation that was committed: it cannot be believed", x.states[n].Dir)
	}
	return c, nil
}

// otherSize returns what was committed by enough of another number of nodes, or nil. Where no node has committed what is of
// as many as are given, it is the disputed one.
func (x *contest) otherSize() *claim {
	if x.chosen == nil && x.find(func(c *claim) bool { return c.committers != nil && c.Nodes == len(x.states) }) == nil {
		return x.disputed
	}
	return x.find(func(c *claim) bool {
		return c.committers != nil && c.Nodes != len(x.states) && len(c.counted) >= c.Nodes-c.Tolerate && !c.alone()
	})
}

// unread returns the doubt about a generation that no node holds, and that is newer than all that are committed, or nil.
func (x *contest) unread() *doubt {
	for _, d := range doubtsOf(store.Current{Generation: x.disputed.Generation}, x.states) {
		if d.hidden() {
			return d
		}
	}
	return nil
}

// accept puts a generation in force, unless the directories are not those of its group.
func (x *contest) accept(c *claim) (store.Current, error) {
	if c.Nodes != len(x.states) {
		return store.Current{}, store.Inputf("%s is of a group of %d nodes, and %d were given: give all of the group, lost ones too, and no others%s", x.states[c.committers[0]].Dir, c.Nodes, len(x.states), orEmpty)
	}
	return store.Current{Generation: c.Generation, Root: c.Root, Newest: NewestOf(x.states, c.Generation)}, AlikeGroup(x.states)
}
