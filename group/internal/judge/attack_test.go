package judge

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"volley/group/internal/store"
	"volley/group/protection"
	"volley/internal/verifyall"
)

// honest are the states in which runs leave nodes that do nothing else, and lost ones.
var honest = []string{
	"L1ip", // protected, or a run that was interrupted before anyone has committed
	"Lp2",  // while they commit
	"LNjq", // the first run
	"Lq1",  // while they commit it
}

// forgedRoot is what manifests that are made up begin with.
const forgedRoot = "forged "

// forgeries are manifests that a node of a group of K may make up.
func forgeries(k, r int) []store.Held {
	var list []store.Held
	for _, g := range []int64{1, 2, 9, store.MostGeneration} {
		for _, tolerate := range []int{0, r, k - 1, k} {
			for _, nodes := range []int{k, k + 1} {
				for _, group := range []string{"G", "H"} {
					for _, committed := range []bool{true, false} {
						h := store.Held{Generation: g, Group: group, Nodes: nodes, Tolerate: tolerate, Committed: committed, Complete: true}
						h.Root = fmt.Sprint(forgedRoot, g, nodes, tolerate, group)
						list = append(list, h)
					}
				}
			}
		}
	}
	return list
}

// hostileState is what a node says that makes manifests up, and may hold true ones too.
func hostileState(dir string, node int, list ...store.Held) *store.State {
	s := &store.State{Dir: dir, Node: node, Files: true, Held: list}
	if node >= 0 {
		s.Group = list[0].Group
	}
	for _, h := range list {
		s.Numbers = append(s.Numbers, h.Generation)
	}
	return s
}

// TestDecideHostile lets one node of a group of up to 6 say what it likes, whatever others are
// lost and wherever runs were interrupted: what it alone has is never in force, unless all
// others are lost. Where every verb stops, the error says how to go on.
func TestDecideHostile(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	asked, alone := 0, 0
	try := func(k, r, at int, letters string, hostile *store.State) {
		states := make([]*store.State, k)
		for n := range k {
			states[n] = hostile
			if n != at {
				states[n] = stateOf(letters[0], n, k, r)
				letters = letters[1:]
			}
		}
		others := slices.ContainsFunc(states, func(s *store.State) bool { return s != hostile && !s.Lost })
		c, err := Decide(states, "")
		if err == nil && strings.HasPrefix(c.Root, forgedRoot) {
			if alone++; others {
				t.Fatalf("%s\n%q is in force", told(states), c.Root)
			}
		}
		if err == nil && c.Newest >= store.MostGeneration && c.Generation < 9 {
			t.Fatalf("%s\nno generation can follow", told(states))
		}
		if err == nil {
			return
		}
		asked++
		input := new(protection.RefusedError)
		if !errors.As(err, &input) || input.Option != protection.OptionBelieve && !strings.Contains(err.Error(), "an empty directory in its place") {
			t.Fatalf("%s\n%v: says no way on", told(states), err)
		}
		for n, s := range states {
			if s == hostile || !slices.ContainsFunc(s.Held, func(h store.Held) bool { return h.Committed }) {
				continue
			}
			c, err := Decide(states, fmt.Sprint(n))
			if err == nil && strings.HasPrefix(c.Root, forgedRoot) || err != nil && !strings.Contains(err.Error(), "an empty directory in its place") {
				t.Fatalf("%s\nbelieving node %d: %q, %v", told(states), n, c.Root, err)
			}
		}
	}
	for k := 2; k <= 6; k++ {
		for r := 1; r < k; r++ {
			list := forgeries(k, r)
			for _, alphabet := range honest {
				for _, letters := range words(alphabet, k-1) {
					for range verifyall.Pick(2, 6) {
						var some []store.Held
						if rng.IntN(3) == 0 { // what others have
							some = append(some, stateOf('2', 0, k, r).Held...)
						}
						for len(some) == 0 || rng.IntN(2) == 0 {
							h := list[rng.IntN(len(list))]
							some = append(slices.DeleteFunc(some, func(o store.Held) bool { return o.Generation == h.Generation }), h)
						}
						at := rng.IntN(k)
						try(k, r, at, letters, hostileState(fmt.Sprint("/n", at), []int{at, at, rng.IntN(k), -1}[rng.IntN(4)], some...))
					}
					if k > 3 {
						continue
					}
					for _, h := range list {
						for at := range k {
							for _, node := range []int{-1, at, (at + 1) % k} {
								try(k, r, at, letters, hostileState(fmt.Sprint("/n", at), node, h))
							}
						}
					}
				}
			}
		}
	}
	if asked == 0 || alone == 0 {
		t.Error("nothing was tried")
	}
}

// TestDecideKeyed lets any number of nodes of a group with a key say what they like: without a
// key, with another one, or again what nodes had at some time. What was not made with the key
// is never in force.
func TestDecideKeyed(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	refused, inForce := 0, 0
	try := func(k, r, hostile int, letters string, list []store.Held) {
		truly := func(letter byte, n int) *store.State {
			s := stateOf(letter, n, k, r)
			for i := range s.Held {
				s.Held[i].Keyed, s.Held[i].Vouched = true, true
			}
			return s
		}
		var states []*store.State
		there, agreed := false, list[rng.IntN(len(list))] // what they may all say
		liars := rng.Perm(k)[:hostile]
		for n := range k {
			switch {
			case !slices.Contains(liars, n):
				states = append(states, truly(letters[0], n))
				there = there || letters[0] != 'L'
				letters = letters[1:]
			case rng.IntN(3) == 0:
				states = append(states, truly("1p2q"[rng.IntN(4)], n))
			default:
				h := agreed
				if rng.IntN(3) == 0 {
					h = list[rng.IntN(len(list))]
				}
				h.Keyed = rng.IntN(2) == 0
				some := []store.Held{h}
				if rng.IntN(3) == 0 && h.Generation != 2 {
					some = append(some, truly('2', n).Held...)
				}
				states = append(states, hostileState(fmt.Sprint("/n", n), []int{n, n, n, -1}[rng.IntN(4)], some...))
			}
		}
		for _, protect := range []bool{false, true} {
			copies := make([]*store.State, k)
			for n, s := range states {
				c := *s
				c.Held = slices.Clone(s.Held)
				copies[n] = &c
			}
			c, _, err := InForce(copies, Trust{Key: []byte("a key for tests, no more")}, protect)
			switch {
			case err != nil && !errors.As(err, new(*protection.RefusedError)):
				t.Fatal(err)
			case err != nil:
				refused++
			case c.Generation > 0:
				inForce++
			}
			if err == nil && strings.HasPrefix(c.Root, forgedRoot) && (there || !protect) {
				t.Fatalf("protect %v: %q is in force of %s", protect, c.Root, told(states))
			}
		}
	}
	for k := 2; k <= 6; k++ {
		for r := 1; r < k; r++ {
			list := forgeries(k, r)
			for hostile := 1; hostile < k; hostile++ {
				for _, alphabet := range honest {
					for _, letters := range words(alphabet, k-hostile) {
						try(k, r, hostile, letters, list)
					}
				}
			}
		}
	}
	if inForce == 0 || refused == 0 {
		t.Error("nothing was tried")
	}
}

// told is what nodes say.
func told(states []*store.State) string {
	var list []string
	for _, s := range states {
		list = append(list, fmt.Sprintf("%+v", *s))
	}
	return strings.Join(list, "\n")
}
