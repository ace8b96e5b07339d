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

// TestFillRandom checks that packets have symbols of the field only, and all of a small one.
func TestFillRandom(t *testing.T) {
	for _, name := range []string{"2^8", "2^16", "257", "31", "3^4", "goldilocks", "bls12-381"} {
		f, err := Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		packet := make([]byte, 8005*f.SymbolBytes())
		FillRandom(f, packet, rand.New(rand.NewPCG(1, 1)).Uint64)
		if i := f.FirstInvalid(packet); i >= 0 {
			t.Errorf("%s: symbol %d is none", name, i)
		}
		seen := map[Element]bool{}
		for i := 0; i < len(packet); i += f.SymbolBytes() {
			seen[Symbol(f, packet[i:])] = true
		}
		if q := f.Order(); q.IsInt64() && q.Int64() <= 257 && len(seen) != int(q.Int64()) || len(seen) < 31 {
			t.Errorf("%s: %d elements of %v", name, len(seen), q)
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
