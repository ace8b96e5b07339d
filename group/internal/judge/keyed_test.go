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
)

var testKey = []byte("a key for tests, no more")

// TestDecideKeyed lets any number of nodes of a group with a key say what they like: without a
// key, with another one, or again what nodes had at some time. What was not made with the key
// is never in force.
func TestDecideKeyed(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	tried, asked, in := 0, 0, 0
	for k := 2; k <= 6; k++ {
		for r := 1; r < k; r++ {
			list := forgeries(k, r)
			for hostile := 1; hostile < k; hostile++ {
				for _, alphabet := range honest {
					for _, letters := range words(alphabet, k-hostile) {
						for range 2 {
							var states []*store.State
							truly := func(letter byte, n int) *store.State {
								s := stateOf(letter, n, k, r)
								for i := range s.Held {
									s.Held[i].Keyed, s.Held[i].Vouched = true, true
								}
								return s
							}
							at := map[int]bool{}
							for len(at) < hostile {
								at[rng.IntN(k)] = true
							}
							there := false
							agreed := list[rng.IntN(len(list))] // what they may all say
							for n, rest := 0, letters; n < k; n++ {
								switch {
								case !at[n]:
									states = append(states, truly(rest[0], n))
									there = there || rest[0] != 'L'
									rest = rest[1:]
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
								tried++
								c, _, err := InForce(copies, Trust{Key: testKey}, protect)
								if err != nil {
									if asked++; !errors.As(err, new(*protection.RefusedError)) {
										t.Fatal(err)
									}
									continue
								}
								if c.Generation > 0 {
									in++
								}
								if strings.HasPrefix(c.Root, forgedRoot) && (there || !protect) {
									for _, s := range states {
										t.Logf("%+v", *s)
									}
									t.Fatalf("K=%d, R=%d, protect %v: %q is in force", k, r, protect, c.Root)
								}
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d groups: %d in force, %d refused", tried, in, asked)
	if in == 0 || asked == 0 {
		t.Error("nothing was tried")
	}
}
