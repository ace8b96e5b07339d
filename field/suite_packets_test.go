package field_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"volley/field"
)

func (s *suite) symbols(t *testing.T) {
	s.each(t, 1, func(t reporter, e []field.Element) {
		want := e[0].Int().FillBytes(make([]byte, s.SymbolBytes()))
		slices.Reverse(want)
		want = append(want, guard)
		got := bytes.Repeat([]byte{guard}, len(want))
		field.PutSymbol(s, got, e[0])
		if !bytes.Equal(got, want) {
			t.Fatalf("%s: PutSymbol(%v) left % x, want % x", s.Name(), e[0], got, want)
		}
		s.is(t, field.Symbol(s, got), e[0], "the symbol stored and read", e...)
	})
}

func (s *suite) firstInvalid(t *testing.T) {
	const symbols = 37
	n := s.SymbolBytes()
	valid := s.fill(make([]byte, symbols*n), func(int) field.Element { return s.top })
	for _, b := range [][]byte{nil, valid[:n], valid} {
		if i := s.FirstInvalid(b); i != -1 {
			t.Errorf("FirstInvalid of %d symbols q-1 is %d, want -1", len(b)/n, i)
		}
	}
	if s.q.BitLen() > 8*n {
		return // every symbol is an element
	}
	ones := bytes.Repeat([]byte{0xff}, n)
	order := s.q.FillBytes(make([]byte, n))
	slices.Reverse(order)
	for _, bad := range [][]byte{order, ones} {
		for want := range symbols {
			b := slices.Clone(valid)
			copy(b[want*n:], bad)
			copy(b[(symbols-1)*n:], bad)
			if i := s.FirstInvalid(b); i != want {
				t.Fatalf("FirstInvalid is %d with the symbol % x at %d", i, bad, want)
			}
		}
	}
}

func (s *suite) packing(t *testing.T) {
	p := field.PackingOf(s)
	bits := s.q.BitLen() - 1
	if bits > 16 {
		bits = bits / 8 * 8
	}
	if p.Bits() != bits {
		t.Fatalf("%d bits to a symbol, want %d", p.Bits(), bits)
	}
	rng := newRand()
	for _, n := range []int{0, 1, 2, 3, 7, 8, 31, 32, 33, 100, 1001} {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		for _, b := range [][]byte{data, bytes.Repeat([]byte{0xff}, n)} {
			packet := make([]byte, int(p.Symbols(int64(n)))*s.SymbolBytes())
			p.Pack(packet, b)
			if i := s.FirstInvalid(packet); i != -1 {
				t.Fatalf("%d bytes packed: symbol %d is no element", n, i)
			}
			got := make([]byte, n)
			if err := p.Unpack(got, packet); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, b) {
				t.Fatalf("%d bytes packed and unpacked: % x, want % x", n, got, b)
			}
		}
	}
}

// combine compares Combine with the operations on elements.
func (s *suite) combine(t *testing.T) {
	shapes := []struct{ sources, symbols int }{
		{0, 0}, {0, 1}, {0, 1000}, {1, 0}, {5, 0}, {300, 5},
		{1, 10001}, {3, 33001}, {20, 5003}, // across the blocks of kernels
	}
	for _, symbols := range []int{1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 257, 513, 1025, 2049} {
		for _, sources := range []int{1, 2, 3, 9, 17} {
			shapes = append(shapes, struct{ sources, symbols int }{sources, symbols})
		}
	}
	rng := newRand()
	some := func(int) field.Element { return s.randomElement(rng) }
	special := []field.Element{{}, field.One, s.top}
	for _, shape := range shapes {
		for _, kind := range []struct {
			name string
			coef func(i int) field.Element
		}{
			{"random", some},
			{"0, 1 and q-1", func(i int) field.Element { return special[i%3] }},
			{"of all kinds", func(i int) field.Element {
				if i%2 == 0 {
					return special[rng.IntN(3)]
				}
				return some(i)
			}},
		} {
			coef := make([]field.Element, shape.sources)
			src := make([][]byte, shape.sources)
			for i := range src {
				coef[i] = kind.coef(i)
				src[i] = s.randomize(rng, make([]byte, shape.symbols*s.SymbolBytes()+1)[1:])
			}
			what := fmt.Sprintf("%d sources of %d symbols, coefficients %s", shape.sources, shape.symbols, kind.name)
			s.compare(t, what, coef, src, shape.symbols)
			if shape.symbols > 1025 {
				break // the others have met every kernel
			}
		}
	}
}

// combineMany combines packets full of q-1 with coefficients q-1, the largest
// sums there are.
func (s *suite) combineMany(t *testing.T) {
	const symbols = 300
	packet := s.fill(make([]byte, symbols*s.SymbolBytes()), func(int) field.Element { return s.top })
	square := s.Mul(s.top, s.top)
	check := func(sources, symbols int, want field.Element) {
		t.Helper()
		n := symbols * s.SymbolBytes()
		dst := make([]byte, n)
		s.Combine(dst, slices.Repeat([]field.Element{s.top}, sources), slices.Repeat([][]byte{packet[:n]}, sources))
		for k := range symbols {
			if got := field.Symbol(s, dst[k*s.SymbolBytes():]); got != want {
				t.Fatalf("%d times (q-1)·(q-1) is %v at symbol %d of %d, want %v", sources, got, k, symbols, want)
			}
		}
	}
	sum := field.Element{}
	for sources := range 140 {
		check(sources, symbols, sum)
		sum = s.Add(sum, square)
	}
	// Beyond the sums of products of bytes that fit into 32 bits.
	const many = 70_000
	sum = field.Element{}
	for i := 16; i >= 0; i-- {
		sum = s.Add(sum, sum)
		if many>>i&1 == 1 {
			sum = s.Add(sum, square)
		}
	}
	check(many, 9, sum)
}

// combineInvalid checks that symbols beyond q do no harm.
func (s *suite) combineInvalid(t *testing.T) {
	for _, sources := range []int{1, 20} {
		for _, symbols := range []int{3, 100, 1000, 5000} {
			ones := bytes.Repeat([]byte{0xff}, symbols*s.SymbolBytes())
			coef := slices.Repeat([]field.Element{s.top}, sources)
			buffer, dst := s.guarded(symbols)
			s.Combine(dst, coef, slices.Repeat([][]byte{ones}, sources))
			checkGuards(t, buffer, dst)
		}
	}
}

func (s *suite) combineConcurrent(t *testing.T) {
	const symbols = 3000
	rng := newRand()
	coef, src := make([]field.Element, 20), make([][]byte, 20)
	for i := range src {
		coef[i] = s.randomElement(rng)
		src[i] = s.randomize(rng, make([]byte, symbols*s.SymbolBytes()))
	}
	want := make([]byte, symbols*s.SymbolBytes())
	s.Combine(want, coef, src)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			got := make([]byte, len(want))
			for range 3 {
				s.Combine(got, coef, src)
				if !bytes.Equal(got, want) {
					t.Error("Combine gives another result when run concurrently")
				}
			}
		})
	}
	wg.Wait()
}

func (s *suite) panics(t *testing.T) {
	n := s.SymbolBytes()
	one := []field.Element{field.One}
	for _, c := range []struct {
		name string
		call func()
	}{
		{"Inv(0)", func() { s.Inv(field.Element{}) }},
		{"Combine of a source that is too short", func() { s.Combine(make([]byte, 2*n), one, [][]byte{make([]byte, n)}) }},
		{"Combine of a source that is too long", func() { s.Combine(make([]byte, n), one, [][]byte{make([]byte, 2*n)}) }},
		{"Combine of a source without a coefficient", func() { s.Combine(make([]byte, n), nil, [][]byte{make([]byte, n)}) }},
		{"Combine of a coefficient without a source", func() { s.Combine(make([]byte, n), one, nil) }},
		{"Combine of a part of a symbol", func() {
			if n == 1 {
				panic("every length is right")
			}
			s.Combine(make([]byte, n+1), one, [][]byte{make([]byte, n+1)})
		}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", c.name)
				}
			}()
			c.call()
		}()
	}
}

// compare fails unless Combine agrees with the operations on elements and
// leaves everything but dst alone.
func (s *suite) compare(t *testing.T, what string, coef []field.Element, src [][]byte, symbols int) {
	t.Helper()
	coefBefore, srcBefore := slices.Clone(coef), make([][]byte, len(src))
	for i := range src {
		srcBefore[i] = slices.Clone(src[i])
	}
	buffer, dst := s.guarded(symbols)
	s.Combine(dst, coef, src)
	checkGuards(t, buffer, dst)
	if !slices.Equal(coef, coefBefore) || !slices.EqualFunc(src, srcBefore, bytes.Equal) {
		t.Fatalf("%s: Combine changed its arguments", what)
	}
	n := s.SymbolBytes()
	for k := range symbols {
		want := field.Element{}
		for i := range src {
			want = s.Add(want, s.Mul(coef[i], field.Symbol(s, src[i][k*n:])))
		}
		if got := field.Symbol(s, dst[k*n:]); got != want {
			t.Fatalf("%s: symbol %d is %v, want %v", what, k, got, want)
		}
	}
}

// guard surrounds packets that must not be overrun.
const guard = 0xa5

// guarded returns a packet of guard bytes, at an odd address, within a larger
// buffer of them.
func (s *suite) guarded(symbols int) (buffer, packet []byte) {
	n := symbols * s.SymbolBytes()
	buffer = bytes.Repeat([]byte{guard}, 65+n+64)
	return buffer, buffer[65 : 65+n : 65+n]
}

func checkGuards(t *testing.T, buffer, packet []byte) {
	t.Helper()
	around := append(slices.Clone(buffer[:65]), buffer[65+len(packet):]...)
	if bytes.Count(around, []byte{guard}) != len(around) {
		t.Fatalf("Combine wrote outside of dst, %d bytes long", len(packet))
	}
}

// fill sets the symbols of packet and returns it.
func (s *suite) fill(packet []byte, element func(k int) field.Element) []byte {
	for k := range len(packet) / s.SymbolBytes() {
		field.PutSymbol(s, packet[k*s.SymbolBytes():], element(k))
	}
	return packet
}

// randomize sets the symbols of packet at random and returns it.
func (s *suite) randomize(rng *rand.Rand, packet []byte) []byte {
	n := s.SymbolBytes()
	copy(packet, s.pool[n*rng.IntN(pooled-len(packet)/n+1):])
	return packet
}

func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func (s *suite) randomElement(rng *rand.Rand) field.Element {
	if s.order64 > 0 {
		return field.Code(rng.Uint64N(s.order64))
	}
	return s.drawn[rng.IntN(len(s.drawn))]
}
