package field_test

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"volley/field"
)

// A shape is the numbers of outputs and inputs of a map, and the symbols of a packet.
type shape struct{ outputs, inputs, symbols int }

// combine compares Combine with the operations on elements.
func (s *suite) combine(t *testing.T) {
	shapes := []shape{{1, 0, 0}, {1, 0, 1}, {1, 0, 1000}, {1, 1, 0}, {1, 5, 0}, {1, 300, 5},
		{1, 1, 10001}, {1, 3, 33001}, {1, 20, 5003}} // across the blocks of kernels
	for _, symbols := range []int{1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 257, 513, 1025, 2049} {
		for _, sources := range []int{1, 2, 3, 9, 17} {
			shapes = append(shapes, shape{1, sources, symbols})
		}
	}
	rng := newRand()
	for _, x := range shapes {
		for kind, rows := range s.mapRows(rng, 1, x.inputs) {
			if x.symbols > 1025 && kind != "random" {
				continue // the others have met every kernel
			}
			src := make([][]byte, x.inputs)
			for i := range src {
				src[i] = s.randomize(rng, make([]byte, x.symbols*s.SymbolBytes()+1)[1:])
			}
			s.compare(t, fmt.Sprintf("%d sources of %d symbols, coefficients %s", x.inputs, x.symbols, kind), rows[0], src, x.symbols)
		}
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

// maps compares maps with Combine, which the operations on elements have tested.
func (s *suite) maps(t *testing.T) {
	shapes := []shape{{1, 1, 0}, {3, 2, 0}, {2, 2, 5003}, {9, 9, 2049}, {40, 3, 100}, {3, 40, 100}, {130, 140, 70}, {1, 300, 9}}
	for symbols := range 68 {
		shapes = append(shapes, shape{1 + symbols%5, 1 + symbols%7, symbols})
	}
	for n := range 18 {
		shapes = append(shapes, shape{n + 1, 1 + 3*n%8, 33 + 14*n})
	}
	for _, symbols := range []int{1, 15, 32, 33, 64, 65, 127, 129, 257} {
		shapes = append(shapes, shape{2, 2, symbols}, shape{4, 4, symbols})
	}
	rng := newRand()
	for _, x := range shapes {
		for kind, rows := range s.mapRows(rng, x.outputs, x.inputs) {
			for way, apply := range s.ways(rows) {
				s.compareMap(t, fmt.Sprintf("%s of %v, coefficients %s", way, x, kind), apply, rows, x, rng)
			}
		}
	}
}

// planar returns the field's other layout, where kernels have one.
func (s *suite) planar() (field.Planar, bool) {
	p, ok := s.Field.(field.Planar)
	return p, ok && field.Kernels() != "generic Go"
}

// applied is a way to apply a map.
type applied func(out, in [][]byte, add bool)

// ways returns all that there are for the map of some rows.
func (s *suite) ways(rows [][]field.Element) map[string]applied {
	m := s.Map(rows)
	ways := map[string]applied{"Apply": m.Apply}
	if len(rows) <= 2 { // some maps of few are others where packets are aligned
		ways["Apply to aligned copies"] = through(m.Apply, aligned, bytes.Clone)
	}
	stream := func(m field.Map) (applied, bool) {
		x, ok := m.(field.Streamer)
		return func(out, in [][]byte, add bool) {
			if add {
				m.Apply(out, in, add)
			} else {
				x.Stream(out, in)
			}
		}, ok
	}
	if run, ok := stream(m); ok {
		ways["Stream"], ways["Stream to aligned copies"] = run, through(run, aligned, bytes.Clone)
	}
	if p, ok := s.planar(); ok {
		layout := func(change func(dst, src []byte)) func([]byte) []byte {
			return func(packet []byte) []byte {
				changed := aligned(packet)
				change(changed, packet)
				return changed
			}
		}
		m := p.PlanarMap(rows)
		ways["Apply to copies in planes"] = through(m.Apply, layout(p.ToPlanes), layout(p.FromPlanes))
		if run, ok := stream(m); ok {
			ways["Stream to copies in planes"] = through(run, layout(p.ToPlanes), layout(p.FromPlanes))
		}
	}
	return ways
}

// through applies a map to copies of packets that to makes, and writes back what from makes of its results.
func through(apply applied, to, from func([]byte) []byte) applied {
	return func(out, in [][]byte, add bool) {
		copies := func(packets [][]byte) (all [][]byte) {
			for _, p := range packets {
				all = append(all, to(p))
			}
			return all
		}
		sums := copies(out)
		apply(sums, copies(in), add)
		for i, p := range sums {
			copy(out[i], from(p))
		}
	}
}

// aligned returns a copy that begins with a line of a cache.
func aligned(packet []byte) []byte {
	buffer := make([]byte, len(packet)+64)
	return append(buffer[-uintptr(unsafe.Pointer(&buffer[0]))%64:][:0], packet...)
}

// mapRows returns matrices with names. Those of one butterfly, or of four, are so in characteristic 2.
func (s *suite) mapRows(rng *rand.Rand, outputs, inputs int) map[string][][]field.Element {
	one, minusOne := field.One, s.Sub(field.Element{}, field.One)
	special := []field.Element{{}, one, s.top, minusOne}
	rows := func(entry func(i, j int) field.Element) [][]field.Element {
		all := make([][]field.Element, outputs)
		for i := range all {
			for j := range inputs {
				all[i] = append(all[i], entry(i, j))
			}
		}
		return all
	}
	random := func(int, int) field.Element { return s.randomElement(rng) }
	kinds := map[string][][]field.Element{"random": rows(random)}
	if outputs*inputs < 1000 {
		kinds["of all kinds, 0, 1"] = rows(func(i, j int) field.Element {
			return []field.Element{special[rng.IntN(len(special))], random(i, j)}[rng.IntN(2)]
		})
		kinds["0, 1, q-1 and -1"] = rows(func(i, j int) field.Element { return special[rng.IntN(len(special))] })
		kinds["1"] = rows(func(i, j int) field.Element { return one })
		kinds["0"] = rows(func(i, j int) field.Element { return field.Element{} })
	}
	if outputs == 2 && inputs == 2 {
		c := s.randomElement(rng)
		d, minus := s.Add(c, one), s.Mul(minusOne, c)
		kinds["butterfly"] = [][]field.Element{{one, c}, {one, d}}
		kinds["butterfly, inputs swapped"] = [][]field.Element{{c, one}, {d, one}}
		kinds["butterfly, inverse"] = [][]field.Element{{d, c}, {one, one}}
		kinds["butterfly, inverse, outputs swapped"] = [][]field.Element{{one, one}, {d, c}}
		kinds["of a sum and a difference"] = [][]field.Element{{one, one}, {one, minusOne}}
		kinds["1 and ±c"] = [][]field.Element{{one, c}, {one, minus}}
		kinds["±c and 1"] = [][]field.Element{{c, one}, {minus, one}}
	}
	if outputs == 4 && inputs == 4 {
		a := [4]field.Element{random(0, 0), random(0, 0), random(0, 0), random(0, 0)}
		far, near := s.layer(false, a[0], a[1], 2), s.layer(false, a[2], a[3], 1)
		kinds["butterflies"], kinds["of butterflies in another order"] = s.times(near, far), s.times(far, near)
		far, near = s.layer(true, a[0], a[1], 2), s.layer(true, a[2], a[3], 1)
		kinds["butterflies, inverse"], kinds["of inverse butterflies in another order"] = s.times(far, near), s.times(near, far)
	}
	return kinds
}

// layer returns two butterflies of four packets, of packets that lie so far apart.
func (s *suite) layer(inverse bool, c, d field.Element, apart int) [][]field.Element {
	rows := make([][]field.Element, 4)
	for i := range rows {
		rows[i] = make([]field.Element, 4)
	}
	for first, k := range map[int]field.Element{0: c, 3 - apart: d} {
		x, y := rows[first], rows[first+apart]
		x[first], x[first+apart], y[first], y[first+apart] = field.One, k, field.One, s.Add(k, field.One)
		if inverse {
			x[first], x[first+apart], y[first], y[first+apart] = s.Add(k, field.One), k, field.One, field.One
		}
	}
	return rows
}

// times returns the product of two 4×4 matrices.
func (s *suite) times(l, r [][]field.Element) [][]field.Element {
	rows := make([][]field.Element, 4)
	for i := range rows {
		rows[i] = make([]field.Element, 4)
		for j := range rows {
			for k := range rows {
				rows[i][j] = s.Add(rows[i][j], s.Mul(l[i][k], r[k][j]))
			}
		}
	}
	return rows
}

// compareMap fails unless a map, set and added, agrees with Combine and touches nothing else.
func (s *suite) compareMap(t *testing.T, what string, apply applied, rows [][]field.Element, x shape, rng *rand.Rand) {
	t.Helper()
	packet := func() []byte {
		return s.randomize(rng, make([]byte, x.symbols*s.SymbolBytes()+1)[1:])
	}
	in, before := make([][]byte, x.inputs), make([][]byte, x.inputs)
	for j := range in {
		in[j] = packet()
		before[j] = bytes.Clone(in[j])
	}
	out, buffers, want := make([][]byte, x.outputs), make([][]byte, x.outputs), make([][]byte, x.outputs)
	for i := range out {
		buffers[i], out[i] = s.guarded(x.symbols)
		want[i] = make([]byte, len(out[i]))
		s.Combine(want[i], rows[i], in)
		copy(out[i], packet())
	}
	for _, add := range []bool{false, true} {
		apply(out, in, add)
		for i := range out {
			if !bytes.Equal(out[i], want[i]) {
				n := s.SymbolBytes()
				for k := range x.symbols {
					if got, want := field.Symbol(s, out[i][k*n:]), field.Symbol(s, want[i][k*n:]); got != want {
						t.Fatalf("%s: %s, add %t: output %d is %v at symbol %d, want %v", s.Name(), what, add, i, got, k, want)
					}
				}
			}
			checkGuards(t, buffers[i], out[i])
			s.Combine(want[i], []field.Element{field.One, field.One}, [][]byte{bytes.Clone(want[i]), bytes.Clone(want[i])})
		}
		for j := range in {
			if !bytes.Equal(in[j], before[j]) {
				t.Fatalf("%s: %s: input %d changed", s.Name(), what, j)
			}
		}
	}
}

// largest sums products of the largest codes as often as sums are reduced on the way, and more. The largest coefficients
// of odd characteristic are those that are so in Montgomery form: -1/2^shift.
func (s *suite) largest(t *testing.T) {
	coefs := []field.Element{s.top}
	for _, shift := range []uint{0, 16, 32, 256, 260} {
		power := new(big.Int).Lsh(one, shift)
		if c := s.element(power.Mod(power, s.p)); !c.IsZero() {
			coefs = append(coefs, s.Sub(field.Element{}, s.Inv(c)))
		}
	}
	check := func(what string, out []byte, want field.Element) {
		t.Helper()
		for k := range len(out) / s.SymbolBytes() {
			if got := field.Symbol(s, out[k*s.SymbolBytes():]); got != want {
				t.Fatalf("%s: %s are %v at symbol %d, want %v", s.Name(), what, got, k, want)
			}
		}
	}
	for i, n := range []int{1, 2, 3, 4, 15, 17, 31, 32, 33, 64, 65, 100, 127, 129, 254, 256, 258, 511, 513, 1025, 2049, 70_000, 300_000} {
		symbols, outputs := 1+5*i%37, 1+i%5
		if n > 5000 {
			symbols, coefs = 9, coefs[:1]
		}
		if n > 100_000 && (s.Degree() > 1 || s.SymbolBytes() > 2) {
			continue
		}
		packet := s.fill(make([]byte, symbols*s.SymbolBytes()+4)[i%4:][:symbols*s.SymbolBytes()], func(int) field.Element { return s.top })
		in := slices.Repeat([][]byte{packet}, n)
		for _, c := range coefs {
			what := fmt.Sprintf("%d products of %v and q-1", n, c)
			count := big.NewInt(int64(n))
			want := s.Mul(s.Mul(c, s.top), s.element(count.Mod(count, s.p)))
			row, sum := slices.Repeat([]field.Element{c}, n), make([]byte, len(packet))
			s.Combine(sum, row, in)
			check(what, sum, want)
			if n > 5000 || n > 100 && s.Degree() > 1 { // a matrix of matrices
				continue
			}
			out := make([][]byte, outputs)
			for i := range out {
				out[i] = bytes.Clone(packet)
			}
			m := s.Map(slices.Repeat([][]field.Element{row}, outputs))
			m.Apply(out, in, true)
			check(what+" and q-1", out[outputs-1], s.Add(want, s.top))
			m.Apply(out, in, false)
			check(what, out[0], want)
		}
	}
}

// invalid checks that symbols beyond q do no harm: nothing but the outputs changes.
func (s *suite) invalid(t *testing.T) {
	order := s.q.FillBytes(make([]byte, s.SymbolBytes()+1))
	slices.Reverse(order)
	for _, symbol := range [][]byte{bytes.Repeat([]byte{0xff}, s.SymbolBytes()), order[:s.SymbolBytes()]} {
		for i, symbols := range []int{1, 2, 3, 5, 7, 8, 9, 15, 17, 31, 33, 39, 100, 1000, 5000} {
			rows := s.mapRows(newRand(), 1+i%7, 1+i%9)["random"]
			in := slices.Repeat([][]byte{bytes.Repeat(symbol, symbols)}, len(rows[0]))
			buffers, out := make([][]byte, len(rows)), make([][]byte, len(rows))
			for i := range out {
				buffers[i], out[i] = s.guarded(symbols)
			}
			s.Map(rows).Apply(out, in, i%2 == 0)
			s.Combine(out[0], rows[0], in)
			for i := range out {
				checkGuards(t, buffers[i], out[i])
			}
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
		t.Fatalf("written outside of a packet of %d bytes", len(packet))
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
