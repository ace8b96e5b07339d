package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/field/goldilocks"
)

// never is the delay of a worker that does not finish before K others have.
const never = time.Hour

func randomVector(n int) []goldilocks.Element {
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	x := make([]goldilocks.Element, n)
	for i := range x {
		x[i].SetUint64(rng.Uint64())
	}
	return x
}

// TestLate has every set of as many late workers as there are parity workers, in each step.
func TestLate(t *testing.T) {
	const workers, parity = 4, 2
	for _, shape := range [][2]int{{4, 4}, {16, 4}, {4, 16}, {32, 8}} {
		x := randomVector(shape[0] * shape[1])
		want := direct(x)
		c, err := NewTransform(workers, parity, shape[0], shape[1])
		if err != nil {
			t.Fatal(err)
		}
		for a := range workers + parity {
			for b := range a {
				sets := [2][]int{{b, a}, {(a + 1) % (workers + parity), (b + 1) % (workers + parity)}}
				var steps [2]*Step
				for i, set := range sets {
					steps[i] = c.NewStep(map[int]time.Duration{set[0]: never, set[1]: never})
				}
				got, runs, err := simulate(t.Context(), c, x, steps)
				if err != nil {
					t.Fatal(err)
				}
				if i := differ(got, want); i >= 0 {
					t.Errorf("%v, late %v: point %d is wrong", shape, sets, i)
				}
				for i, set := range sets {
					for _, w := range set {
						if slices.Contains(steps[i].present, w) {
							t.Errorf("step %d: worker %d never finishes, and is present", i+1, w)
						}
					}
					decoded := slices.ContainsFunc(runs, func(r Run) bool { return len(r.Decoded[i]) > 0 })
					if want := min(set[0], set[1]) < workers; decoded != want {
						t.Errorf("step %d, late %v: decoded %v, want %v", i+1, set, decoded, want)
					}
				}
			}
		}
	}
}

func TestErrors(t *testing.T) {
	for _, test := range [][3]int{{4, 8, 12}, {3, 8, 8}, {16, 16, 8}, {0, 8, 8}} {
		if _, err := NewTransform(test[0], 1, test[1], test[2]); err == nil || !strings.Contains(err.Error(), "want a power of two") {
			t.Errorf("%v: %v", test, err)
		}
	}
}

// TestPage compares the output with that in README.md, but for times. Which worker is late
// depends on them, so phases of decoding are left out.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := demonstrate(t.Context(), &out, 1, 100*time.Millisecond, 1<<9); err != nil {
		t.Fatal(err)
	}
	times := regexp.MustCompile(`(?m) +\d+ ms|^  decode .*\n| +`) // columns are as wide as the times
	fixed := func(text []byte) []byte { return times.ReplaceAll(text, []byte(" ")) }
	if want := fixed(fmt.Appendf(nil, "```text\n%s```\n", out.String())); !bytes.Contains(fixed(page), want) {
		t.Errorf("README.md has another output than this:\n%s", out.String())
	}
}
