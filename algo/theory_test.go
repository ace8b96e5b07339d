package algo_test

import (
	"fmt"
	"slices"
	"testing"
)

// A scheme is a run over F_2 of the game that docs/theory.md bounds, one symbol a message.
// Source i is processor i; so is sink i, unless sinks are separate. A functional is the set of
// symbols that it adds up: bit W·i+s is symbol s of source i.
type scheme struct {
	w       int
	first   int      // processor of sink 0
	results [][]int  // of each sink, the sources that it depends on
	known   []space2 // of each processor
}

// A space2 is a basis over F_2, each vector with a highest bit of its own.
type space2 []int

// rest returns what is left of a vector, 0 where the space has it.
func (b space2) rest(v int) int {
	for _, x := range b {
		v = min(v, v^x)
	}
	return v
}

// with returns the space with another vector, as the one basis that is reduced and sorted.
func (b space2) with(v int) space2 {
	if v = b.rest(v); v == 0 {
		return b
	}
	list := space2{v}
	for _, x := range b {
		list = append(list, min(x, x^v)) // has the highest bit of v, or not
	}
	slices.Sort(list)
	slices.Reverse(list)
	return list
}

// nonzero returns all vectors of a space but 0.
func (b space2) nonzero() (all []int) {
	sums := []int{0}
	for _, x := range b {
		for _, v := range slices.Clone(sums) {
			sums = append(sums, v^x)
		}
	}
	return sums[1:]
}

func newScheme(k, r, w int, separate bool) *scheme {
	s := &scheme{w: w, known: make([]space2, max(k, r))}
	if separate {
		s.first, s.known = k, make([]space2, k+r)
	}
	for i := range k * w {
		s.known[i/w] = s.known[i/w].with(1 << i)
	}
	for j := range r {
		var sources []int
		for i := range k {
			if separate || i != j || j%2 == 0 { // a result depends on the source beside it, or does not
				sources = append(sources, i)
			}
		}
		s.results = append(s.results, sources)
	}
	return s
}

// near returns what the processor of a sink knows, and its result.
func (s *scheme) near(j int) space2 {
	near := s.known[s.first+j]
	for u := range s.w {
		f := 0
		for _, i := range s.results[j] {
			f |= 1 << (u + i*s.w)
		}
		near = near.with(f)
	}
	return near
}

// lacking returns how many symbols of results sinks lack.
func (s *scheme) lacking() (n int) {
	for j := range s.results {
		n += len(s.near(j)) - len(s.known[s.first+j])
	}
	return n
}

// settle sends messages that take their receivers nearer to their own results, while there are any: they
// are needed in any case, and only add to what can be sent.
func (s *scheme) settle() {
	for again := true; again; {
		again = false
		for j := range s.results {
			dst, near := s.first+j, s.near(j)
			for _, known := range s.known {
				for _, f := range known.nonzero() {
					if near.rest(f) == 0 && s.known[dst].rest(f) != 0 {
						s.known[dst], again = s.known[dst].with(f), true
					}
				}
			}
		}
	}
}

// least returns the fewest messages of all schemes.
func (s *scheme) least() int {
	excess := 0 // messages that do not take the receiver nearer to its own result
	for !s.search(excess, map[string]bool{}) {
		excess++
	}
	return s.lacking() + excess
}

// search reports whether all sinks can end with so many messages in excess.
func (s *scheme) search(excess int, seen map[string]bool) bool {
	now := &scheme{s.w, s.first, s.results, slices.Clone(s.known)}
	now.settle()
	if now.lacking() == 0 {
		return true
	}
	state := fmt.Sprint(excess, now.known)
	if excess == 0 || seen[state] {
		return false
	}
	seen[state] = true
	for src := range now.known {
		for _, f := range now.known[src].nonzero() {
			for dst, known := range now.known {
				if known.rest(f) == 0 {
					continue
				}
				next := &scheme{s.w, s.first, s.results, slices.Clone(now.known)}
				next.known[dst] = known.with(f)
				if next.search(excess-1, seen) {
					return true
				}
			}
		}
	}
	return false
}

// TestTrafficLeast finds the least traffic of all schemes for few symbols: it is the bound, and
// less where a result does not depend on a source of another processor.
func TestTrafficLeast(t *testing.T) {
	for _, c := range []struct {
		k, r, w  int
		separate bool
	}{
		{2, 2, 3, false}, {3, 3, 1, false}, {3, 3, 2, false}, {4, 4, 1, false}, {4, 4, 2, false}, {3, 2, 2, false}, {2, 3, 2, false}, {2, 4, 2, false},
		{2, 2, 2, true}, {3, 2, 1, true}, {2, 3, 1, true}, {3, 3, 1, true},
	} {
		want := (c.k + c.r - 2) * c.w
		if c.separate {
			want += c.w
		}
		if got := newScheme(c.k, c.r, c.w, c.separate).least(); got != want {
			t.Errorf("K = %d, R = %d, W = %d, separate %t: the least traffic is %d symbols, want %d", c.k, c.r, c.w, c.separate, got, want)
		}
	}
	s := newScheme(3, 3, 2, false)
	s.results = [][]int{{0, 1}, {1, 2}, {2, 0}}
	if got := s.least(); got != 6 {
		t.Errorf("three results of two sources each: the least traffic is %d symbols, want 6", got)
	}
}
