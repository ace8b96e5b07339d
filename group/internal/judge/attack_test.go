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
	tried, asked, alone := 0, 0, 0
	try := func(k, r, at int, letters string, hostile *store.State) {
		states := make([]*store.State, k)
		for n := range k {
			states[n] = hostile
			if n != at {
				states[n] = stateOf(letters[0], n, k, r)
				letters = letters[1:]
			}
		}
		tried++
		others := slices.ContainsFunc(states, func(s *store.State) bool { return s != hostile && !s.Lost })
		what := func() string {
			var list []string
			for _, s := range states {
				list = append(list, fmt.Sprintf("%+v", *s))
			}
			return fmt.Sprintf("K=%d, R=%d\n%s", k, r, strings.Join(list, "\n"))
		}
		c, err := Decide(states, "")
		if err == nil && strings.HasPrefix(c.Root, forgedRoot) {
			if alone++; others {
				t.Fatalf("%s\n%q is in force", what(), c.Root)
			}
		}
		if err == nil && c.Newest >= store.MostGeneration && c.Generation < 9 {
			t.Fatalf("%s\nno generation can follow", what())
		}
		if err == nil {
			return
		}
		asked++
		input := new(protection.RefusedError)
		if !errors.As(err, &input) || input.Option != protection.OptionBelieve && !strings.Contains(err.Error(), "an empty directory in its place") {
			t.Fatalf("%s\n%v: says no way on", what(), err)
		}
		for n, s := range states {
			if s == hostile || !slices.ContainsFunc(s.Held, func(h store.Held) bool { return h.Committed }) {
				continue
			}
			c, err := Decide(states, fmt.Sprint(n))
			if err == nil && strings.HasPrefix(c.Root, forgedRoot) || err != nil && !strings.Contains(err.Error(), "an empty directory in its place") {
				t.Fatalf("%s\nbelieving node %d: %q, %v", what(), n, c.Root, err)
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
	t.Logf("%d groups: in %d every verb stops and asks; in %d all but the hostile node are lost, and it is believed", tried, asked, alone)
	if asked == 0 || alone == 0 {
		t.Error("nothing was tried")
	}
}
