package sets

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"volley/group/protection"
	"volley/internal/verifyall"
)

// membersOf returns members without a place, in the domains of the letters of a text; - is none.
func membersOf(domains string) []Member {
	var list []Member
	for i, d := range domains {
		m := Member{Name: fmt.Sprint("n", i), Domain: string(d), Identity: protection.Identity{Node: -1}}
		if d == '-' {
			m.Domain = ""
		}
		list = append(list, m)
	}
	return list
}

// settle gives members the places of an assignment, as protect does.
func settle(members []Member, list []NodeSet) {
	for n, s := range list {
		for node, i := range s.Members {
			members[i].Identity = protection.Identity{Group: fmt.Sprint("g", n), Node: node, Nodes: len(s.Members), SetIndex: protection.SetIndex{Set: n, Sets: len(list)}, Held: true}
		}
	}
}

// settled returns members of domains, with the places that they get in sets of a size.
func settled(t *testing.T, domains string, size int) ([]Member, []NodeSet) {
	t.Helper()
	members := membersOf(domains)
	list, err := Choose(members, size, false)
	if err != nil {
		t.Fatal(err)
	}
	settle(members, list)
	return members, list
}

// checked fails unless every member has one place, and members that had one have kept it. It reports whether
// two members of a set are in one domain.
func checked(t *testing.T, members []Member, list []NodeSet, size int) (shared bool) {
	t.Helper()
	seen := map[int]bool{}
	for _, s := range list {
		domains := map[string]int{}
		nodes := 0
		for _, i := range s.Members {
			if m := members[i]; m.Node >= 0 {
				nodes = m.Nodes
				if m.Group != s.Group {
					t.Fatalf("%+v is in set %+v", m, s)
				}
			}
			if seen[i] {
				t.Fatalf("member %d twice", i)
			}
			seen[i] = true
			if d := members[i].Domain; d != "" {
				domains[d]++
			}
		}
		if nodes == 0 && (len(s.Members) < 2 || len(s.Members) > size) {
			t.Fatalf("a new set of %d for size %d", len(s.Members), size)
		}
		if nodes > 0 && len(s.Members) == nodes {
			for node, i := range s.Members {
				if m := members[i]; m.Node >= 0 && m.Node != node {
					t.Fatalf("%+v is node %d", m, node)
				}
			}
		}
		crowded := slices.ContainsFunc(slices.Collect(maps.Values(domains)), func(n int) bool { return n > 1 })
		if crowded != (s.Notes != nil) {
			t.Fatalf("domains %v, notes %q", domains, s.Notes)
		}
		shared = shared || crowded
	}
	if len(seen) != len(members) {
		t.Fatalf("%d of %d members have a set", len(seen), len(members))
	}
	return shared
}

// possible reports, by trying all, whether members without a place can be put into sets with so many free places
// each so that no domain of them is twice in a set.
func possible(members []Member, free []int, rooms []int, domains []map[string]bool) bool {
	if len(free) == 0 {
		return true
	}
	d := members[free[0]].Domain
	for s := range rooms {
		if rooms[s] == 0 || d != "" && domains[s][d] {
			continue
		}
		rooms[s]--
		if d != "" {
			domains[s][d] = true
		}
		ok := possible(members, free[1:], rooms, domains)
		rooms[s]++
		if d != "" {
			delete(domains[s], d)
		}
		if ok {
			return true
		}
	}
	return false
}

// TestChooseAll compares all assignments of few members, in up to four domains, with trying all.
func TestChooseAll(t *testing.T) {
	t.Parallel()
	refused, kept := 0, 0
	for k := 2; k <= verifyall.Pick(6, 7); k++ {
		for size := 2; size <= k; size++ {
			sets := (k + size - 1) / size
			if k/sets < 2 {
				if list, err := Choose(membersOf(strings.Repeat("-", k)), size, true); err == nil {
					t.Fatalf("%d in sets of %d: %+v", k, size, list)
				}
				continue
			}
			for code := range 1 << (2 * k) {
				text := make([]byte, k)
				for i := range text {
					text[i] = "-abc"[code>>(2*i)&3]
				}
				if fits(t, string(text), size, sets) {
					kept++
				} else {
					refused++
				}
			}
		}
	}
	if refused < 1000 || kept < 1000 {
		t.Errorf("%d refused, %d kept", refused, kept)
	}
}

// fits reports whether members of the domains can be kept apart in sets. It fails where [Choose] finds otherwise, or
// advises what does not help.
func fits(t *testing.T, text string, size, sets int) bool {
	t.Helper()
	members := membersOf(text)
	var rooms, all []int
	var domains []map[string]bool
	for i := range sets {
		rooms, domains = append(rooms, (len(text)+i)/sets), append(domains, map[string]bool{})
	}
	for i := range members {
		all = append(all, i)
	}
	list, err := Choose(members, size, true)
	if want := possible(members, all, rooms, domains); want != (err == nil) {
		t.Fatalf("%s in sets of %d: possible %v, got %v", text, size, want, err)
	}
	if err == nil {
		if checked(t, members, list, size) {
			t.Fatalf("%s in sets of %d: %+v", text, size, list)
		}
		return true
	}
	if _, advice, ok := strings.Cut(err.Error(), "sets of at most "); ok {
		var n int
		fmt.Sscan(advice, &n)
		if _, err := Choose(members, n, true); err != nil && len(text)/((len(text)+n-1)/n) > 1 {
			t.Fatalf("%s: sets of %d do not help: %v", text, n, err)
		}
	}
	if list, err = Choose(members, size, false); err != nil || !checked(t, members, list, size) {
		t.Fatalf("%s: %v", text, err)
	}
	return false
}

// TestChooseAgain loses members of an assignment: the same order gives all their places back; any other order, with other
// hosts for those that are lost, keeps the places of the rest, and domains apart where trying all says that it can be.
func TestChooseAgain(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(32, 5))
	found, broken := 0, 0
	for range 3000 {
		k, size := 4+rng.IntN(9), 2+rng.IntN(4)
		text := make([]byte, k)
		for i := range text {
			text[i] = "-abcdef"[rng.IntN(7)]
		}
		if k/((k+size-1)/size) < 2 {
			continue
		}
		members, list := settled(t, string(text), size)
		again := slices.Clone(members)
		empty := rng.IntN(2) == 0
		for i := range again {
			if rng.IntN(3) == 0 {
				again[i].Identity = protection.Identity{Node: -1, Empty: empty}
			}
		}
		if !chosenAgain(t, again, list, size) {
			continue
		}
		var rooms, free []int // before members come in another order
		var domains []map[string]bool
		for _, s := range list {
			room, there := 0, map[string]bool{}
			for _, i := range s.Members {
				if again[i].Node < 0 {
					room++
				} else {
					there[members[i].Domain] = true
				}
			}
			rooms, domains = append(rooms, room), append(domains, there)
		}
		for i := range again {
			if again[i].Node < 0 {
				again[i].Domain = string("abcdefgh"[rng.IntN(8)])
			}
		}
		rng.Shuffle(k, func(i, j int) { again[i], again[j] = again[j], again[i] })
		for i, m := range again {
			if m.Node < 0 {
				free = append(free, i)
			}
		}
		met := meets(t, again, size)
		if want := possible(again, free, rooms, domains); want == met {
			t.Fatalf("%s: now %+v: possible %v", text, again, want)
		}
		if met {
			broken++
		} else {
			found++
		}
	}
	if found < 100 || broken < 100 {
		t.Errorf("%d found, %d broken", found, broken)
	}
}

// chosenAgain fails unless members have the places of an assignment. It reports whether no set of it is lost.
func chosenAgain(t *testing.T, members []Member, list []NodeSet, size int) bool {
	t.Helper()
	for _, s := range list {
		if !slices.ContainsFunc(s.Members, func(i int) bool { return members[i].Node >= 0 }) {
			return false
		}
	}
	same, err := Choose(members, size, false)
	if err != nil {
		t.Fatal(err)
	}
	for n, s := range same {
		if !slices.Equal(s.Members, list[n].Members) {
			t.Fatalf("set %d is %v, was %v", n, s.Members, list[n].Members)
		}
	}
	return true
}

// meets chooses sets, twice alike, and reports whether a member without a place meets its own domain there.
func meets(t *testing.T, members []Member, size int) (met bool) {
	t.Helper()
	list, err := Choose(members, size, false)
	if err != nil {
		t.Fatal(err)
	}
	if twice, _ := Choose(members, size, false); fmt.Sprint(twice) != fmt.Sprint(list) {
		t.Fatal("not the same twice")
	}
	checked(t, members, list, size)
	for _, s := range list {
		for _, i := range s.Members {
			met = met || members[i].Node < 0 && slices.ContainsFunc(s.Members, func(j int) bool { return i != j && members[i].Domain == members[j].Domain })
		}
	}
	return met
}

// TestChooseLost leaves out the members of some sets: their numbers stay free, or go to new sets. What members say that
// cannot be counts for nothing.
func TestChooseLost(t *testing.T) {
	t.Parallel()
	members, list := settled(t, "--------", 2)
	choose := func(members ...Member) (names []string) {
		list, err := Choose(members, 2, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			text := ""
			for _, i := range s.Members {
				text += members[i].Name
			}
			if s.Lost {
				text += "?"
			}
			names = append(names, text)
		}
		return names
	}
	of := func(set int) []Member { // one that is left, and one that is not
		lost := members[list[set].Members[1]]
		lost.Identity = protection.Identity{Node: -1, Empty: true}
		return []Member{members[list[set].Members[0]], lost}
	}
	three, two := slices.Concat(of(3), of(1), of(0)), slices.Concat(of(3), of(1))
	a, b, d := choose(of(0)...)[0], choose(of(1)...)[1], choose(of(3)...)[3]
	if got := choose(three...); !slices.Equal(got, []string{a, b, "?", d}) {
		t.Errorf("three of four: %q", got)
	}
	if got := choose(append(two, membersOf("--")...)...); !slices.Equal(got, []string{"n0n1", b, "?", d}) {
		t.Errorf("two of four, and a new one: %q", got)
	}
	empty := membersOf("--")
	empty[0].Empty, empty[1].Empty = true, true
	if got := choose(append(two, empty...)...); !slices.Equal(got, []string{"n0n1?", b, "?", d}) {
		t.Errorf("two of four, and an empty one: %q", got)
	}
	for _, part := range []protection.SetIndex{{}, {Set: -1, Sets: 4}, {Set: math.MaxInt / 4, Sets: math.MaxInt / 2}, {Set: 4, Sets: 4}, {Sets: -1}} {
		wrong := slices.Clone(two)
		wrong[0].SetIndex = part
		if got := choose(wrong...); !slices.Equal(got, []string{d, b, "?", "?"}) {
			t.Errorf("%+v: %q", part, got)
		}
	}
}

// TestChooseEmpty has a lost node come back along with new ones: it gets the place that is free.
func TestChooseEmpty(t *testing.T) {
	t.Parallel()
	members, _ := settled(t, "----", 4)
	members[1].Identity = protection.Identity{Node: -1, Empty: true}
	list, err := Choose(slices.Concat(membersOf("--"), members), 4, false)
	if err != nil || len(list) != 2 || !slices.Equal(list[0].Members, []int{2, 3, 4, 5}) {
		t.Errorf("%v, %+v", err, list)
	}
}

// TestChooseMany chooses sets for many members, in racks as full as can be, of which one is lost and comes back with
// other hosts.
func TestChooseMany(t *testing.T) {
	t.Parallel()
	members, _ := settled(t, strings.Repeat("abcdefghijklmnop", 64), 16)
	for i := range 64 {
		members[16*i].Identity = protection.Identity{Node: -1}
	}
	slices.Reverse(members)
	list, err := Choose(members, 16, true)
	if err != nil || len(list) != 64 || checked(t, members, list, 16) {
		t.Fatalf("%v, %v", err, list)
	}
}

// TestChooseErrors has members that contradict each other or what is asked for.
func TestChooseErrors(t *testing.T) {
	t.Parallel()
	placed := func(size int, edit func(members []Member) []Member) error {
		members, _ := settled(t, "abcdefgh", 4)
		_, err := Choose(edit(members), size, true)
		return err
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{placed(4, func(m []Member) []Member { return m }), ""},
		{placed(5, func(m []Member) []Member { return m }), ""},
		{placed(3, func(m []Member) []Member { return m }), "n0 is in a set of 4 members, and sets of at most 3"},
		{placed(1, func(m []Member) []Member { return m }), "want 2 or more"},
		{placed(4, func(m []Member) []Member { m[5] = m[6]; m[5].Name = "x"; return m }), "x and n6 both say that they are node 2"},
		{placed(4, func(m []Member) []Member { return append(m, membersOf("x")...) }), "in no set: 1; in sets of 2 to 4 one of them would be alone"},
		{placed(4, func(m []Member) []Member { return append(m, membersOf("xyz")...) }), ""},
		{placed(4, func(m []Member) []Member { return append(m, membersOf("xxz")...) }), "failure domain x has 2 directories without a set, and there are 1 new sets"},
		{placed(4, func(m []Member) []Member { return m[:7] }), ""},
		{placed(4, func(m []Member) []Member { m[3] = membersOf("a")[0]; return m }), ""}, // where it is lost, it is only noted
		{placed(4, func(m []Member) []Member { return m[:1] }), "want 2 or more"},
	} {
		switch code := (interface{ ExitCode() int })(nil); {
		case c.want == "" && c.err == nil:
		case c.want == "", c.err == nil, !strings.Contains(c.err.Error(), c.want), !errors.As(c.err, &code) || code.ExitCode() != 2:
			t.Errorf("%v: want %q", c.err, c.want)
		}
	}
}
