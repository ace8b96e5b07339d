//go:build mpi

package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"volley/internal/exit"
)

// TestGroupJobPairs runs two jobs at once on one group: of two that do not only read, one wins
// at most, and whichever did, the group is whole. Where member 0 is there, it decides, and one
// wins exactly.
func TestGroupJobPairs(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	protected, fresh := newPairGroup(t, 300_000, true), newPairGroup(t, 300_000, false)
	first := pairVerb{name: "first protect", args: []string{"protect", "--tolerate", "2"}, codes: []int{0}}
	pairs := [][2]pairVerb{{first, first}}
	for i, a := range pairVerbs {
		for _, b := range pairVerbs[i:] {
			pairs = append(pairs, [2]pairVerb{a, b})
		}
	}
	if *groupPairs == 1 { // a job takes long to start
		rng.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
		pairs = pairs[:6]
	}
	for _, verbs := range pairs {
		g, names := protected, verbs[0].name+" "+verbs[1].name
		if verbs[0].name == first.name {
			g = fresh
		}
		met, both := 0, 0
		for time := range *groupPairs {
			when := fmt.Sprintf("%s with %s, time %d", verbs[0].name, verbs[1].name, time)
			g.restore(t)
			want := g.befall(t, names)
			var results [2]result
			var wg sync.WaitGroup
			for i, v := range verbs {
				j := newJob(t, 4, g.with(append(slices.Clone(v.args), "--comm", "mpi", "--timeout", "1m")...)...)
				wg.Go(func() {
					code, lines := j.do(t)
					results[i] = result{code, j.out.String(), strings.Join(lines, "\n")}
				})
			}
			wg.Wait()
			busy := 0
			for i, r := range results {
				v, other := verbs[i], verbs[1-i]
				switch {
				case strings.Contains(r.stderr, " is busy: "):
					busy++
					// Each process names who has its own node.
					if r.code != exit.Failed || strings.Count(r.stderr, " is busy: ") != strings.Count(r.stderr, "volley "+other.args[0]+" has used it since") {
						t.Errorf("%s: it does not say who is busy: %+v", when, r)
					}
				case !slices.Contains(v.codes, r.code):
					t.Fatalf("%s: %s: %+v", when, v.name, r)
				}
			}
			reading := verbs[0].reads && verbs[1].reads
			switch {
			case busy > 0 && reading, busy == 2 && !strings.Contains(names, toLose):
				t.Errorf("%s: %d found the other one there: %+v", when, busy, results)
			case busy == 2:
				both++
			case busy == 1:
				met++
			}
			done := verbs[0].name != first.name && !strings.Contains(names, toChange) || verbs[0].protects(results[0]) || verbs[1].protects(results[1])
			g.complete(t, when, rng, want, done)
		}
		t.Logf("%s with %s: %d times, %d of them met, in %d both gave way", verbs[0].name, verbs[1].name, *groupPairs, met, both)
	}
}

// TestGroupJobKilled kills one process of a job on a group, or all, at random moments.
func TestGroupJobKilled(t *testing.T) {
	t.Parallel()
	const n = 5
	testKilled(t, *groupKills, 200_000, func(t *testing.T, rng *rand.Rand, limit time.Duration, args []string) bool {
		begun := time.Now()
		j := newJob(t, n, append(slices.Clone(args), "--comm", "mpi", "--timeout", "1m")...)
		j.id()
		if err := j.Start(); err != nil {
			t.Fatal(err)
		}
		if limit > 0 {
			moment := time.Duration(rng.Int64N(int64(limit)))
			for slices.Contains(j.processesOf(n), 0) && time.Since(begun) < limit {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(moment/2 - time.Since(begun)/4)
			ids := j.processesOf(n)
			victim := rng.IntN(n + 1) // n are all
			for rank, pid := range ids {
				if pid != 0 && (victim == n || victim == rank) {
					syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
		err := j.wait(n)
		if ended := new(exec.ExitError); err != nil && !errors.As(err, &ended) {
			t.Fatalf("%v: %s", err, &j.out)
		}
		j.ended(t, n)
		if code := j.ProcessState.ExitCode(); limit == 0 && code != exit.OK {
			t.Fatalf("%s: %d: %s", args, code, &j.out)
		}
		return err != nil
	})
}
