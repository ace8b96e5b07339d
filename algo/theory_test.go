package algo_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// A scheme is a run over F_2 of the game that docs/theory.md bounds, one symbol a message.
// Source i is processor i; so is sink i, unless sinks are separate. A functional is the set of
// symbols that it adds up: bit W·i+s is symbol s of source i.
type scheme struct {
	k, r, w int
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

// span returns all vectors of the spaces' sum, as a set of those of F_2^W.
func span(spaces ...[]int) (set uint64) {
	set = 1
	for _, v := range slices.Concat(spaces...) {
		if set&(1<<v) == 0 {
			for u := range 64 {
				if set&(1<<u) != 0 {
					set |= 1 << (u ^ v)
				}
			}
		}
	}
	return set
}

// members lists a set.
func members(set uint64) (list []int) {
	for ; set != 0; set &= set - 1 {
		list = append(list, bits.TrailingZeros64(set))
	}
	return list
}

// dim returns the dimension of a space that is a set.
func dim(set uint64) int { return bits.Len(uint(bits.OnesCount64(set))) - 1 }

func newScheme(k, r, w int, separate bool, rng *rand.Rand) *scheme {
	s := &scheme{k: k, r: r, w: w}
	processors := max(k, r)
	if separate {
		s.first, processors = k, k+r
	}
	s.known = make([]space2, processors)
	for i := range k * w {
		s.known[i/w] = s.known[i/w].with(1 << i)
	}
	for j := range r {
		var sources []int
		for i := range k {
			if separate || i != j || rng.IntN(2) == 0 {
				sources = append(sources, i)
			}
		}
		s.results = append(s.results, sources)
	}
	return s
}

// result returns the functional u·y_j.
func (s *scheme) result(j, u int) (f int) {
	for _, i := range s.results[j] {
		f |= u << (i * s.w)
	}
	return f
}

// out returns R_i: what of source i other processors have seen.
func (s *scheme) out(i int) uint64 {
	var seen []int
	for proc, known := range s.known {
		for _, f := range known {
			if proc != i {
				seen = append(seen, f>>(i*s.w)&(1<<s.w-1))
			}
		}
	}
	return span(seen)
}

// done returns C_j: what of result j is known to its sink.
func (s *scheme) done(j int) (set uint64) {
	for u := range 1 << s.w {
		if s.known[s.first+j].rest(s.result(j, u)) == 0 {
			set |= 1 << u
		}
	}
	return set
}

// potentials returns ΣC and D, the intersection over j of the sums of all C but C_j.
func (s *scheme) potentials() (sum, d uint64) {
	var all [][]int
	for j := range s.r {
		all = append(all, members(s.done(j)))
	}
	d = ^uint64(0)
	for j := range s.r {
		d &= span(slices.Delete(slices.Clone(all), j, j+1)...)
	}
	return span(all...), d
}

func (s *scheme) finished() bool {
	for j := range s.r {
		if dim(s.done(j)) < s.w {
			return false
		}
	}
	return true
}

// useful returns a message that takes its receiver nearer to its own result, if there is one.
func (s *scheme) useful() (dst, f int, ok bool) {
	for j := range s.r {
		dst := s.first + j
		near := s.known[dst]
		for u := range s.w {
			near = near.with(s.result(j, 1<<u))
		}
		for src, known := range s.known {
			if src == dst {
				continue
			}
			for f := range combinations(known) {
				if near.rest(f) == 0 && s.known[dst].rest(f) != 0 {
					return dst, f, true
				}
			}
		}
	}
	return 0, 0, false
}

// combinations yields all vectors of a space but 0.
func combinations(b space2) func(func(int) bool) {
	return func(yield func(int) bool) {
		for which := 1; which < 1<<len(b); which++ {
			f := 0
			for i, x := range b {
				if which>>i&1 != 0 {
					f ^= x
				}
			}
			if !yield(f) {
				return
			}
		}
	}
}

// least is what docs/theory.md says moves at least, in packets.
func least(k, r int, separate bool) int {
	if separate {
		return k + r - 1
	}
	return k + r - 2
}

// TestTrafficSteps checks every step of the proof of Theorem 1 and its corollary on random
// schemes, of which most messages are good ones.
func TestTrafficSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	met := 0
	for run := range 400 {
		k, r, w, separate := 2+rng.IntN(3), 2+rng.IntN(3), 1+rng.IntN(3), rng.IntN(3) == 0
		s := newScheme(k, r, w, separate, rng)
		name := fmt.Sprintf("run %d: K = %d, R = %d, W = %d, separate %t", run, k, r, w, separate)
		steps, both, grown, good := 0, 0, 0, rng.Float64()
		for !s.finished() {
			src, dst := rng.IntN(len(s.known)), rng.IntN(len(s.known))
			f := 0
			for _, x := range s.known[src] {
				f ^= x * rng.IntN(2)
			}
			if b, g, ok := s.useful(); ok && rng.Float64() < good {
				dst, f = b, g
				src = slices.IndexFunc(s.known, func(known space2) bool { return known.rest(f) == 0 })
			}
			if src == dst || s.known[dst].rest(f) == 0 {
				continue
			}
			outs, dones := s.spaces()
			sum, d := s.potentials()
			s.known[dst] = s.known[dst].with(f)
			steps++
			raisedOut, raisedDone := 0, 0
			newOuts, newDones := s.spaces()
			for i, set := range newOuts {
				if up := dim(set) - dim(outs[i]); up > 0 {
					raisedOut += up
					if i != src {
						t.Fatalf("%s: R_%d rises, and %d sends", name, i, src)
					}
				}
				for j, c := range newDones {
					if s.first+j != i && c&^set != 0 {
						t.Fatalf("%s: C_%d is not within R_%d", name, j, i)
					}
				}
			}
			for j, set := range newDones {
				if up := dim(set) - dim(dones[j]); up > 0 {
					raisedDone += up
					if s.first+j != dst {
						t.Fatalf("%s: C_%d rises, and %d receives", name, j, dst)
					}
				}
			}
			if raisedOut > 1 || raisedDone > 1 {
				t.Fatalf("%s: one message raises R by %d and C by %d", name, raisedOut, raisedDone)
			}
			if raisedOut+raisedDone == 2 {
				both++
				newSum, newD := s.potentials()
				up := dim(newSum) - dim(sum)
				if !separate {
					up += dim(newD) - dim(d)
				}
				if up < 1 {
					t.Fatalf("%s: neither ΣC nor D grows where R and C do", name)
				}
				grown += up
			}
		}
		bound := least(k, r, separate) * w
		if most := 2 * w; both > most || separate && both > w || grown < both || steps < (k+r)*w-both || steps < bound {
			t.Fatalf("%s: %d messages, %d raise both: the bound is %d", name, steps, both, bound)
		}
		if steps == bound {
			met++
		}
	}
	if met == 0 {
		t.Error("no scheme meets the bound: the random ones are too poor to test it")
	}
}

// spaces returns all R_i and C_j.
func (s *scheme) spaces() (outs, dones []uint64) {
	for i := range s.k {
		outs = append(outs, s.out(i))
	}
	for j := range s.r {
		dones = append(dones, s.done(j))
	}
	return outs, dones
}

// TestTrafficLeast finds the least traffic of all schemes for few symbols: it is the bound, and
// less where a result does not depend on a source of another processor.
func TestTrafficLeast(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		k, r, w  int
		separate bool
	}{
		{2, 2, 3, false}, {3, 3, 1, false}, {3, 3, 2, false}, {3, 3, 3, false}, {4, 4, 1, false}, {4, 4, 2, false}, {3, 2, 2, false}, {2, 3, 2, false}, {2, 4, 2, false},
		{2, 2, 2, true}, {3, 2, 1, true}, {2, 3, 1, true}, {3, 3, 1, true},
	} {
		s := newScheme(c.k, c.r, c.w, c.separate, rng)
		if got, want := s.least(), least(c.k, c.r, c.separate)*c.w; got != want {
			t.Errorf("K = %d, R = %d, W = %d, separate %t: the least traffic is %d symbols, want %d", c.k, c.r, c.w, c.separate, got, want)
		}
	}
	s := newScheme(3, 3, 2, false, rng)
	s.results = [][]int{{0, 1}, {1, 2}, {2, 0}}
	if got := s.least(); got != 6 {
		t.Errorf("three results of two sources each: the least traffic is %d symbols, want 6", got)
	}
}

// least returns the fewest messages of all schemes.
func (s *scheme) least() (messages int) {
	for j := range s.r {
		messages += s.w - dim(s.done(j))
	}
	excess := 0 // that do not take the receiver nearer to its own result
	for !s.search(excess, map[string]bool{}) {
		excess++
	}
	return messages + excess
}

// search reports whether all sinks can end with so many messages that are not useful. A useful
// one is sent at once: it is needed in any case, and it only adds to what can be sent.
func (s *scheme) search(excess int, seen map[string]bool) bool {
	at := &scheme{s.k, s.r, s.w, s.first, s.results, slices.Clone(s.known)}
	for dst, f, ok := at.useful(); ok; dst, f, ok = at.useful() {
		at.known[dst] = at.known[dst].with(f)
	}
	if at.finished() {
		return true
	}
	state := fmt.Sprint(excess, at.known)
	if excess == 0 || seen[state] {
		return false
	}
	seen[state] = true
	for src := range at.known {
		for f := range combinations(at.known[src]) {
			for dst, known := range at.known {
				if dst == src || known.rest(f) == 0 {
					continue
				}
				next := &scheme{s.k, s.r, s.w, s.first, s.results, slices.Clone(at.known)}
				next.known[dst] = known.with(f)
				if next.search(excess-1, seen) {
					return true
				}
			}
		}
	}
	return false
}
