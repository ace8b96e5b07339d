package field_test

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"volley/field"
	_ "volley/internal/rapidseed"
)

// laws checks that a field is finite and what [field.Field] says: the axioms, the meaning of symbol codes, the generator,
// symbols and the name. Fields of at most 64 elements are checked in full, others on constants likely to hurt and at random.
func (s *suite) laws(t *testing.T) {
	t.Run("Order", s.order)
	t.Run("Name", s.name)
	t.Run("Axioms", s.axioms)
	t.Run("Codes", s.codes)
	t.Run("Powers", s.powers)
	t.Run("Generator", s.generator)
	t.Run("Symbols", s.symbols)
	t.Run("FirstInvalid", s.firstInvalid)
	t.Run("Panics", s.panics)
}

// packets checks Combine and Map against the operations on elements.
func (s *suite) packets(t *testing.T) {
	t.Run("Combine", s.combine)
	t.Run("Map", s.maps)
	t.Run("Largest", s.largest)
	t.Run("Invalid", s.invalid)
}

// pooled is how many symbols there are to choose random packets from: more than the longest packet has.
const pooled = 1 << 16

// exhaustive is the order up to which all triples of elements are checked.
const exhaustive = 64

// A suite is a field under test, with what its tests share.
type suite struct {
	field.Field
	q, p    *big.Int
	top     field.Element   // q-1
	all     []field.Element // every element, if they are few
	nasty   []field.Element // elements at which implementations tend to fail
	random  *rapid.Generator[field.Element]
	order64 uint64          // q, unless it is larger
	drawn   []field.Element // at random, where q is: to draw one takes long
	pool    []byte          // pooled symbols at random and nasty ones, of which random packets are parts
}

func newSuite(f field.Field) *suite {
	s := &suite{Field: f, q: f.Order(), p: f.Characteristic()}
	s.top = s.element(big.NewInt(-1))
	if s.q.Cmp(big.NewInt(exhaustive)) <= 0 {
		for c := range s.q.Uint64() {
			s.all = append(s.all, field.Code(c))
		}
	}

	edges := []*big.Int{new(big.Int), s.q, s.p, new(big.Int).Rsh(s.q, 1)}
	for bits := uint(32); bits < 256; bits += 32 { // edges of limbs
		edges = append(edges, new(big.Int).Lsh(one, bits))
	}
	for _, v := range edges {
		for d := int64(-1); d <= 1 && v.Cmp(s.q) <= 0; d++ {
			s.add(new(big.Int).Add(v, big.NewInt(d)))
		}
	}
	s.add(f.Generator().Int())
	s.add(f.Inv(f.Generator()).Int())

	if s.q.IsUint64() {
		s.order64 = s.q.Uint64()
	} else {
		rng := newRand()
		for range 1 << 12 {
			v := new(big.Int)
			for range len(field.Element{}) + 1 { // longer than an element, so that the remainder is nearly uniform
				v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(rng.Uint64()))
			}
			s.drawn = append(s.drawn, s.element(v))
		}
	}
	rng := newRand()
	s.pool = s.fill(make([]byte, pooled*s.SymbolBytes()), func(k int) field.Element {
		if k%4 == 0 {
			return s.nasty[rng.IntN(len(s.nasty))]
		}
		return s.randomElement(rng)
	})
	s.random = rapid.Custom(func(t *rapid.T) field.Element {
		if rapid.IntRange(0, 3).Draw(t, "nasty") == 0 {
			return rapid.SampledFrom(s.nasty).Draw(t, "constant")
		}
		// Longer than an element, so that the remainder is nearly uniform.
		b := rapid.SliceOfN(rapid.Byte(), 40, 40).Draw(t, "bytes")
		return s.element(new(big.Int).SetBytes(b))
	})
	return s
}

// element returns the element whose code is v modulo q.
func (s *suite) element(v *big.Int) field.Element {
	e, err := field.FromInt(new(big.Int).Mod(v, s.q))
	if err != nil {
		panic(err) // a field has at most 2^256 elements
	}
	return e
}

// add makes v modulo q a nasty element.
func (s *suite) add(v *big.Int) {
	if e := s.element(v); !slices.Contains(s.nasty, e) {
		s.nasty = append(s.nasty, e)
	}
}

// each runs check on tuples of n elements: on all of them if the elements are
// few, otherwise on all tuples of nasty ones and on random ones.
func (s *suite) each(t *testing.T, n int, check func(t reporter, e []field.Element)) {
	t.Helper()
	from := s.nasty
	if s.all != nil {
		from = s.all
	}
	e := make([]field.Element, n)
	var tuples func(i int)
	tuples = func(i int) {
		if i == n {
			check(t, e)
			return
		}
		for _, e[i] = range from {
			tuples(i + 1)
		}
	}
	tuples(0)
	if s.all == nil {
		rapid.Check(t, func(t *rapid.T) {
			check(t, rapid.SliceOfN(s.random, n, n).Draw(t, "elements"))
		})
	}
}

// A reporter is a *testing.T or a *rapid.T.
type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
}

// is fails unless got = want and that is an element.
func (s *suite) is(t reporter, got, want field.Element, what string, e ...field.Element) {
	if got != want {
		t.Helper()
		t.Fatalf("%s: %s is %v, want %v, with (a, b, c) = %v", s.Name(), what, got, want, e)
	}
	if !s.contains(got) {
		t.Helper()
		t.Fatalf("%s: %s is %v, outside the field, with (a, b, c) = %v", s.Name(), what, got, e)
	}
}

// contains is [field.Contains] without its allocations.
func (s *suite) contains(e field.Element) bool {
	for i := len(e) - 1; i >= 0; i-- {
		if e[i] != s.top[i] {
			return e[i] < s.top[i]
		}
	}
	return true
}
