package field

import (
	"math/rand/v2"
	"testing"
)

// TestSampler checks that a sampler draws every element of a small field about
// equally often, and nothing else.
func TestSampler(t *testing.T) {
	for _, name := range []string{"2", "3", "2^4", "31", "3^4"} {
		f, err := Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		q := int(f.Order().Int64())
		s, rng := NewSampler(f), rand.New(rand.NewPCG(1, 1))
		seen := make([]int, q)
		for range 1000 * q {
			e := s.Draw(rng.Uint64)
			if !Contains(f, e) || Last(f).Less(e) {
				t.Fatalf("%s: drew %v", name, e)
			}
			seen[e[0]]++
		}
		for code, n := range seen {
			if n < 800 || n > 1200 { // over six standard deviations
				t.Errorf("%s: %d came %d times of %d", name, code, n, 1000*q)
			}
		}
	}
}

// TestSamplerWords checks what Draw promises of the words that it takes.
func TestSamplerWords(t *testing.T) {
	f, err := Parse("bls12-381")
	if err != nil {
		t.Fatal(err)
	}
	last := Last(f)
	words := []uint64{
		1, 2, 3, ^uint64(0), // too large, as 2^255-1 is above q
		last[0], last[1], last[2], last[3] | 1<<63, // q-1, as the bit is cut off
		5, 6, 7, 8,
	}
	s := NewSampler(f)
	next := func() uint64 {
		w := words[0]
		words = words[1:]
		return w
	}
	for _, want := range []Element{last, {5, 6, 7, 8}} {
		if got := s.Draw(next); got != want {
			t.Errorf("drew %v, want %v", got, want)
		}
	}
}

func TestLess(t *testing.T) {
	ordered := []Element{{}, {1}, {^uint64(0)}, {0, 1}, {5, 1}, {0, 0, 0, 1}, {9, 0, 0, 1}}
	for i, a := range ordered {
		for j, b := range ordered {
			if a.Less(b) != (i < j) {
				t.Errorf("%v < %v: %v", a, b, a.Less(b))
			}
		}
	}
}
