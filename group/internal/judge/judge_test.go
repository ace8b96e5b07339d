package judge

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"volley/group/internal/store"
	"volley/group/protection"
	"volley/internal/verifyall"
)

// stateOf returns a state that a letter stands for.
func stateOf(letter byte, n, k, r int) *store.State {
	s := &store.State{Dir: fmt.Sprint("/n", n), Node: n, Group: "G", Files: true}
	has := func(g int64, committed, complete bool) {
		s.Held = append(s.Held, store.Held{Generation: g, Group: "G", Nodes: k, Tolerate: r, Root: fmt.Sprint("root ", g), Committed: committed, Complete: complete})
		s.Numbers = append(s.Numbers, g)
	}
	switch letter {
	case 'L': // lost
		*s = store.State{Dir: s.Dir, Node: -1, Lost: true}
	case 'F': // failing
		*s = store.State{Dir: s.Dir, Node: -1, Failing: "EIO"}
	case 'N': // nothing of Volley's
		*s = store.State{Dir: s.Dir, Node: -1, Files: true}
	case '1': // generation 1
		has(1, true, true)
	case 'a': // generation 1, and its node.json is lost
		has(1, true, true)
		s.Node, s.Group = -1, ""
	case 'e': // generation 1, and its manifest cannot be read
		s.Numbers, s.Unknown = []int64{1}, []store.Unknown{{Generation: 1, Committed: true, Reason: "EIO", Group: "G", Place: protection.Place{Node: n, Nodes: k}}}
	case 'm': // the same, and nothing says which node it is
		*s = store.State{Dir: s.Dir, Node: -1, Files: true, Numbers: []int64{1}, Unknown: []store.Unknown{{Generation: 1, Committed: true, Reason: "it is damaged"}}}
	case 'd': // generations 1 and 2, and the manifest of 2 is damaged
		has(1, true, true)
		s.Numbers, s.Unknown = []int64{1, 2}, []store.Unknown{{Generation: 2, Committed: true, Reason: "it is damaged", Group: "G", Place: protection.Place{Node: n, Nodes: k}}}
	case 'b': // both
		has(1, true, true)
		has(2, true, true)
	case 'i': // generation 1, and 2 not complete
		has(1, true, true)
		has(2, false, false)
	case 'p': // generation 1, and 2 pending
		has(1, true, true)
		has(2, false, true)
	case '2':
		has(2, true, true)
	case 'q': // the first generation, pending
		has(1, false, true)
	case 'j': // it, not complete
		has(1, false, false)
	case '9': // a forgery
		has(9, true, true)
	}
	return s
}

// statesOf returns those of nodes that letters stand for.
func statesOf(letters string, r int) (states []*store.State) {
	for n := range letters {
		states = append(states, stateOf(letters[n], n, len(letters), r))
	}
	return states
}

// supportOf is what the rule in docs/format.md asks of a generation.
type supportOf struct {
	has, committed, counting, there int
	holders, others                 int // of all nodes; that are there, and hold others or have files and no name
}

func support(states []*store.State, r int, g int64) supportOf {
	var x supportOf
	nameless := 0 // that may hold it
	for _, s := range states {
		if s.Lost || s.Failing != "" {
			continue
		}
		x.there++
		holds, committed := false, s.UnreadAt(g) != nil && s.UnreadAt(g).Committed
		for _, h := range s.Held {
			holds = holds || h.Generation == g && (h.Committed || h.Complete)
			committed = committed || h.Generation == g && h.Committed
		}
		if committed {
			x.committed++
		}
		switch {
		case holds:
			x.holders++
		case s.MayHold(g) && s.Node < 0:
			nameless++
		case !s.MayHold(g) && (len(s.Held) > 0 || s.Node < 0):
			x.others++
		}
		if s.Node >= 0 && holds {
			x.has++
		}
		if s.Node >= 0 && (holds || len(s.Held)+len(s.Unknown) > 0 && !s.MayHold(g)) {
			x.counting++
		}
	}
	if x.has < len(states)-r {
		x.others += nameless
	}
	return x
}

// TestDecide checks the rule for the generation in force in all groups of up to 3 nodes, and
// of 4 in some orders. With the tag verifyall it takes up to 5, in all orders.
func TestDecide(t *testing.T) {
	t.Parallel()
	most, ordered := verifyall.Pick(4, 5), verifyall.Pick(3, 5)
	for k := 2; k <= most; k++ {
		for r := 1; r < k; r++ {
			of := map[string]string{} // what was decided, by states in order
			for _, letters := range words("LFNemd1aip2qj9", k) {
				if k > ordered && !slices.IsSorted([]byte(letters)) && !slices.IsSortedFunc([]byte(letters), func(a, b byte) int { return int(b) - int(a) }) {
					continue
				}
				states := statesOf(letters, r)
				c, err := Decide(states, "")
				wrong := wrongAbstention(letters, r, c, err)
				if !strings.ContainsAny(letters, unreadable) || err == nil || strings.Contains(err.Error(), "cannot tell which") {
					wrong = cmp.Or(wrong, wrongDecision(states, k, r, c, err))
				}
				if wrong != "" {
					t.Fatalf("K=%d, R=%d, %s: generation %d, %v: %s", k, r, letters, c.Generation, err, wrong)
				}
				sorted := []byte(letters)
				slices.Sort(sorted)
				is := fmt.Sprint(c.Generation, c.Root, c.Newest, err != nil)
				if was, ok := of[string(sorted)]; ok && was != is {
					t.Fatalf("K=%d, R=%d, %s: %s, and in another order %s", k, r, letters, is, was)
				}
				of[string(sorted)] = is
			}
		}
	}
}

// unreadable are the letters of nodes that cannot be read, or not all of them.
const unreadable = "Femd"

// wrongAbstention says what is wrong with a decision of nodes of which some cannot be read, by all that these may have. A
// node commits only what all nodes have: so they have all that is committed, or newer, and what they have committed the
// others have.
func wrongAbstention(letters string, r int, c store.Current, err error) string {
	k := len(letters)
	at := slices.Collect(func(yield func(int) bool) {
		for n := range k {
			if strings.IndexByte(unreadable, letters[n]) >= 0 && !yield(n) {
				return
			}
		}
	})
	if len(at) == 0 {
		return ""
	}
	found := statesOf(letters, r)
	base, failed := decideKnown(found, "")
	if failed != nil {
		return map[bool]string{true: "", false: "it is decided, and what can be read is in doubt"}[err != nil]
	}
	if err != nil && strings.Count(letters, "d") > 1 { // what lacks generation 2 comes from a backup
		return ""
	}
	if !strings.ContainsAny(letters, "1ip2qj9d") { // no node that counts can be read, and no verb writes where one is failing
		return ""
	}
	differs := ""
	for _, some := range words("1p2qN", len(at)) {
		word := []byte(letters)
		consistent := true
		for i, n := range at {
			switch {
			case letters[n] == 'F' || some[i] == '1' && letters[n] != 'd':
				word[n] = some[i]
			case some[i] == '2' && letters[n] == 'd':
				word[n] = 'b'
			case some[i] == 'q': // it is damaged, and stays so
			default:
				consistent = false
			}
		}
		states := statesOf(string(word), r)
		for g := int64(1); g <= 9; g++ {
			committed, hidden, named := false, false, 0
			for n, s := range states {
				if u := found[n].UnreadAt(g); u != nil && u.Committed {
					named++
				}
				if u := s.UnreadAt(g); u != nil && u.Committed || slices.ContainsFunc(s.Held, func(h store.Held) bool { return h.Generation == g && h.Committed }) {
					committed, hidden = true, hidden || slices.Contains(at, n)
				}
			}
			for m, o := range states {
				has := slices.ContainsFunc(o.Held, func(x store.Held) bool { return x.Generation == g && counts(x) })
				newer := slices.ContainsFunc(o.Held, func(x store.Held) bool { return x.Generation >= g && counts(x) })
				if committed && !o.MayHold(g) && !o.Lost && letters[m] != 'N' && (hidden && named < 2 && !has || slices.Contains(at, m) && !newer) {
					consistent = false
				}
			}
		}
		if x, err := decideKnown(states, ""); consistent && (err != nil || x.Generation != base.Generation || x.Root != base.Root) {
			differs = string(word)
		}
	}
	switch {
	case differs == "" && err != nil && base.Generation > 0:
		return fmt.Sprintf("%v: whatever cannot be read, it is the same", err)
	case differs != "" && err == nil:
		return "it is another one if it is " + differs
	}
	return ""
}

// words returns all words of a length.
func words(alphabet string, n int) []string {
	if n == 0 {
		return []string{""}
	}
	var list []string
	for _, w := range words(alphabet, n-1) {
		for _, c := range alphabet {
			list = append(list, w+string(c))
		}
	}
	return list
}

// wrongDecision says what is wrong with a decision, or nothing.
func wrongDecision(states []*store.State, k, r int, c store.Current, err error) string {
	established := slices.ContainsFunc(states, func(s *store.State) bool {
		return slices.ContainsFunc(s.Held, func(h store.Held) bool { return h.Committed })
	})
	enough := func(g int64) bool {
		x := support(states, r, g)
		all := x.has == x.counting && (established || x.has == x.there)
		return (x.holders > 1 || x.others == 0) && x.has >= k-r && 2*x.has > x.counting && (x.committed > 0 || all)
	}
	committedBy := func(s *store.State) (newest int64) {
		for g := int64(1); g <= 9; g++ {
			unread := s.UnreadAt(g) != nil && s.UnreadAt(g).Committed && support(states, r, g).holders > 0
			if unread || slices.ContainsFunc(s.Held, func(h store.Held) bool { return h.Committed && h.Generation == g }) {
				newest = g
			}
		}
		return newest
	}
	newestCommitted := int64(0)
	for _, s := range states {
		newestCommitted = max(newestCommitted, committedBy(s))
	}
	if err != nil {
		input := new(protection.RefusedError)
		switch {
		case !errors.As(err, &input) || input.Option != protection.OptionBelieve:
			return "the error names no way on"
		case newestCommitted == 0 || enough(newestCommitted):
			return "there is nothing to doubt"
		}
		for n, s := range states {
			if text := err.Error(); !strings.Contains(text, s.Dir+" has ") && !strings.Contains(text, s.Dir+" is lost") && !strings.Contains(text, s.Dir+" cannot be read") {
				return "the error does not say what " + s.Dir + " has"
			}
			b, err := Decide(states, s.Dir)
			byNumber, err2 := Decide(states, fmt.Sprint(n))
			if b != byNumber || (err == nil) != (err2 == nil) {
				return "a number and a directory are not the same"
			}
			want := committedBy(s)
			if (err == nil) != (want > 0) || b.Generation != want {
				return fmt.Sprintf("--believe %s: generation %d, %v: want %d", s.Dir, b.Generation, err, want)
			}
		}
		return ""
	}
	x := support(states, r, c.Generation)
	switch g := c.Generation; {
	case g == 0 && newestCommitted > 0:
		return "a generation that was committed is forgotten"
	case g == 0:
		for _, g := range []int64{1, 2} {
			if enough(g) {
				return "a generation that is complete is forgotten"
			}
		}
	case newestCommitted > g:
		return "a newer one was committed"
	case !enough(g) && (x.committed == 0 || x.has < x.counting):
		return "it has no support"
	case x.holders == 1 && x.others > 0:
		return "a single node decides for others"
	default:
		for _, newer := range []int64{2, 9} {
			if newer > g && enough(newer) {
				return "a newer one has as much support"
			}
		}
	}
	return ""
}

// TestDecideGroups checks that nodes of other groups, and in another order, are named, and what does not count.
func TestDecideGroups(t *testing.T) {
	t.Parallel()
	held := func(g int64, k int) store.Held {
		return store.Held{Generation: g, Group: "G", Nodes: k, Tolerate: 1, Root: fmt.Sprint("root ", g), Complete: true}
	}
	for _, x := range []struct {
		letters    string
		change     func(list []*store.State)
		want       string // the error
		generation int64  // in force, if there is none
	}{
		{"111", func(l []*store.State) { l[1].Group = "H" }, "/n1/.volley has files of two groups", 0},
		{"111", func(l []*store.State) { l[1].Group, l[1].Held[0].Group = "H", "H" }, "/n1 belongs to another group than /n0, /n2", 0},
		{"111", func(l []*store.State) { l[0].Group, l[0].Held[0].Group = "H", "H" }, "/n0 belongs to another group than /n1, /n2", 0},
		{"111", func(l []*store.State) { l[0].Held[0].Group = "H" }, "/n0/.volley has files of two groups", 0},
		{"111", func(l []*store.State) { l[1].Node, l[2].Node = 2, 1 }, "/n1 is node 2 of its group and was given as node 1", 0},
		{"111", func(l []*store.State) {
			for _, s := range l {
				s.Held[0].Nodes = 4
			}
		}, "of a group of 4 nodes, and 3 were given", 0},
		// Somebody gave fewer nodes once, and that run was interrupted: it does not count.
		{"111", func(l []*store.State) { l[0].Held = append(l[0].Held, held(2, 2)) }, "", 1},
		// Nor does a newer one that is pending, beside a forgery of the one in force.
		{"22222", func(l []*store.State) { l[0].Held[0].Root = "forged"; l[1].Held = append(l[1].Held, held(3, 5)) }, "", 2},
		// What is not complete hides nothing that is.
		{"jjjjj", func(l []*store.State) {
			for _, s := range l {
				s.Held = append(s.Held, held(2, 5))
			}
		}, "", 2},
		{"LFN1p2", func([]*store.State) {}, "cannot tell which generation is in force: /n0 is lost; /n1 cannot be read; /n2 has none; " +
			"/n3 has generation 1; /n4 has generation 1 and generation 2, pending; /n5 has generation 2", 0},
	} {
		states := statesOf(x.letters, 1)
		x.change(states)
		c, err := Decide(states, "")
		if x.want == "" && (err != nil || c.Generation != x.generation || c.Root != fmt.Sprint("root ", x.generation)) {
			t.Errorf("%s: generation %d, %s, %v", x.letters, c.Generation, c.Root, err)
		}
		if x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want) || !errors.As(err, new(*protection.RefusedError))) {
			t.Errorf("%s: %v: want %q", x.letters, err, x.want)
		}
	}
	// Two groups side by side: no order of these directories would do.
	two := append(statesOf("11", 1), statesOf("11", 1)...)
	two[2].Group, two[3].Group = "H", "H"
	if err, input := AlikeGroup(two), new(protection.RefusedError); !errors.As(err, &input) || input.Option != protection.OptionSets {
		t.Errorf("two groups: %v", err)
	}
}

// TestNodeNamed finds a node by its directory, and else by its number.
func TestNodeNamed(t *testing.T) {
	t.Parallel()
	states := statesOf("11111", 1)
	states[2].Dir, states[0].Dir = states[1].Dir, "3"
	for name, want := range map[string]int{"/n1": -1, "5": -1, "-1": -1, "x": -1, "2": 2, "3": 0} {
		if n, err := NodeNamed(states, name); (err == nil) != (want >= 0) || err == nil && n != want {
			t.Errorf("%q is node %d, %v: want %d", name, n, err, want)
		}
	}
	if _, err := Decide(statesOf("LFN1p2", 1), "/n2"); err == nil || err.Error() != "/n2 has no generation that was committed: it cannot be believed" {
		t.Errorf("%v", err)
	}
}
