package field_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"volley/field"
)

// A shape is the numbers of outputs and inputs of a map, and the symbols of a packet.
type shape struct{ outputs, inputs, symbols int }

// maps compares maps with Combine, which the operations on elements have tested.
func (s *suite) maps(t *testing.T) {
	shapes := []shape{{1, 1, 0}, {3, 2, 0}, {2, 2, 5003}, {9, 9, 2049}, {40, 3, 100}, {3, 40, 100}, {12, 11, 1000}, {130, 140, 70}, {1, 300, 9}}
	for _, symbols := range []int{1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 257, 513} {
		for _, n := range []int{1, 2, 3, 4, 5} {
			shapes = append(shapes, shape{n, 1 + (symbols+n)%6, symbols})
		}
	}
	rng := newRand()
	for _, x := range shapes {
		for kind, rows := range s.mapRows(rng, x.outputs, x.inputs) {
			for _, add := range []bool{false, true} {
				what := fmt.Sprintf("%d outputs of %d inputs of %d symbols, coefficients %s, add %v", x.outputs, x.inputs, x.symbols, kind, add)
				s.compareMap(t, what, s.Map(rows), rows, x, rng, add)
				if x.outputs <= 2 { // some maps of few are others where packets are aligned
					s.compareMap(t, "aligned: "+what, alignedMap{s.Map(rows)}, rows, x, rng, add)
				}
			}
		}
	}
}

// alignedMap is a map of copies of packets, which lie at whole words.
type alignedMap struct{ field.Map }

func (m alignedMap) Apply(out, in [][]byte, add bool) {
	clone := func(packets [][]byte) (all [][]byte) {
		for _, p := range packets {
			all = append(all, bytes.Clone(p))
		}
		return all
	}
	sums := clone(out)
	m.Map.Apply(sums, clone(in), add)
	for i, p := range sums {
		copy(out[i], p)
	}
}

// planes does the same for the maps in planes.
func (s *suite) planes(t *testing.T) {
	p, ok := s.Field.(field.Planar)
	if !ok {
		t.Skip("no planes")
	}
	rng := newRand()
	for symbols := range 300 {
		want := s.randomize(rng, make([]byte, symbols*s.SymbolBytes()))
		planes, got := make([]byte, len(want)), make([]byte, len(want))
		p.ToPlanes(planes, want)
		p.FromPlanes(got, planes)
		if !bytes.Equal(got, want) {
			t.Fatalf("%d symbols: to planes and back is another packet", symbols)
		}
	}
	for _, symbols := range []int{1, 2, 31, 32, 33, 64, 65, 127, 128, 200, 256, 1000} {
		for _, n := range []int{1, 2, 3, 4, 9, 17} {
			x := shape{n, 1 + symbols%n, symbols}
			if n == 2 {
				x.inputs = 2
			}
			for kind, rows := range s.mapRows(rng, x.outputs, x.inputs) {
				for _, add := range []bool{false, true} {
					what := fmt.Sprintf("%d outputs of %d inputs of %d symbols in planes, coefficients %s, add %v", x.outputs, x.inputs, x.symbols, kind, add)
					s.compareMap(t, what, planarMap{p.PlanarMap(rows), p}, rows, x, rng, add)
				}
			}
		}
	}
}

// planarMap is a map in planes for packets that are not.
type planarMap struct {
	field.Map
	field.Planar
}

func (m planarMap) Apply(out, in [][]byte, add bool) {
	change := func(packets [][]byte, to func(dst, src []byte)) [][]byte {
		changed := make([][]byte, len(packets))
		for i, p := range packets {
			changed[i] = make([]byte, len(p))
			to(changed[i], p)
		}
		return changed
	}
	sums := change(out, m.ToPlanes)
	m.Map.Apply(sums, change(in, m.ToPlanes), add)
	for i, p := range change(sums, m.FromPlanes) {
		copy(out[i], p)
	}
}

// mapRows returns matrices with names.
func (s *suite) mapRows(rng *rand.Rand, outputs, inputs int) map[string][][]field.Element {
	special := []field.Element{{}, field.One, s.top, s.Sub(field.Element{}, field.One)}
	rows := func(entry func(i, j int) field.Element) [][]field.Element {
		all := make([][]field.Element, outputs)
		for i := range all {
			for j := range inputs {
				all[i] = append(all[i], entry(i, j))
			}
		}
		return all
	}
	kinds := map[string][][]field.Element{
		"random": rows(func(int, int) field.Element { return s.randomElement(rng) }),
	}
	if outputs*inputs < 1000 {
		kinds["of all kinds"] = rows(func(i, j int) field.Element {
			if rng.IntN(2) == 0 {
				return special[rng.IntN(len(special))]
			}
			return s.randomElement(rng)
		})
		kinds["0, 1, q-1 and -1"] = rows(func(i, j int) field.Element { return special[rng.IntN(len(special))] })
		kinds["1"] = rows(func(i, j int) field.Element { return field.One })
	}
	if outputs == 2 && inputs == 2 {
		c := s.randomElement(rng)
		kinds["of a butterfly"] = [][]field.Element{{field.One, c}, {field.One, s.Add(c, field.One)}}
		kinds["of the inverse of one"] = [][]field.Element{{s.Add(c, field.One), c}, {field.One, field.One}}
		kinds["of a sum and a difference"] = [][]field.Element{{field.One, field.One}, {field.One, special[3]}}
		kinds["1 and ±c"] = [][]field.Element{{field.One, c}, {field.One, s.Mul(special[3], c)}}
		kinds["±c and 1"] = [][]field.Element{{c, field.One}, {s.Mul(special[3], c), field.One}}
	}
	return kinds
}

// compareMap fails unless the map agrees with Combine and touches nothing else.
func (s *suite) compareMap(t *testing.T, what string, m field.Map, rows [][]field.Element, x shape, rng *rand.Rand, add bool) {
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
		if add {
			sum := bytes.Clone(want[i])
			s.Combine(want[i], []field.Element{field.One, field.One}, [][]byte{sum, bytes.Clone(out[i])})
		}
	}
	m.Apply(out, in, add)
	for i := range out {
		if !bytes.Equal(out[i], want[i]) {
			for k := range x.symbols {
				n := s.SymbolBytes()
				if got, want := field.Symbol(s, out[i][k*n:]), field.Symbol(s, want[i][k*n:]); got != want {
					t.Fatalf("%s: %s: output %d is %v at symbol %d, want %v", s.Name(), what, i, got, k, want)
				}
			}
		}
		checkGuards(t, buffers[i], out[i])
	}
	for j := range in {
		if !bytes.Equal(in[j], before[j]) {
			t.Fatalf("%s: %s: input %d changed", s.Name(), what, j)
		}
	}
}
