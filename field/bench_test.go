package field_test

import (
	"fmt"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
)

// benchmarked are fields with every kind of kernel.
var benchmarked = []string{"2", "2^4", "2^8", "2^8:0x11b", "2^12", "2^16", "2^16:0x1002d", "3", "251", "257", "65521", "65537",
	"2147483647", "babybear", "goldilocks", "bls12-381", "bn254"}

// BenchmarkMap counts the bytes of every input for every output: what is multiplied
// by a coefficient. One output is that of Combine.
func BenchmarkMap(b *testing.B) {
	for _, name := range benchmarked {
		s := newSuite(fieldtest.Parse(b, name))
		for _, x := range []shape{{1, 1, 0}, {1, 16, 0}, {2, 2, 0}, {4, 4, 0}, {8, 8, 0}, {32, 32, 0}, {128, 128, 0}} {
			for kind, rows := range s.mapRows(newRand(), x.outputs, x.inputs) {
				for _, size := range []int{512, 4 << 10, 1 << 20} {
					if testing.Short() && (kind != "random" || size != 4<<10) {
						continue
					}
					what := fmt.Sprintf("field=%s/map=%dx%d/rows=%s/len=%d", name, x.outputs, x.inputs, kind, size)
					b.Run(what, func(b *testing.B) { s.benchmark(b, s.Map(rows), rows, size) })
					if p, ok := s.planar(); ok {
						b.Run(what+"/planar", func(b *testing.B) { s.benchmark(b, p.PlanarMap(rows), rows, size) })
					}
				}
			}
		}
	}
}

func (s *suite) benchmark(b *testing.B, m field.Map, rows [][]field.Element, size int) {
	out, in := make([][]byte, len(rows)), make([][]byte, len(rows[0]))
	for i := range out {
		out[i] = make([]byte, size)
	}
	for j := range in {
		in[j] = make([]byte, size)
		field.FillRandom(s, in[j], newRand().Uint64)
	}
	b.SetBytes(int64(len(out) * len(in) * size))
	b.ReportAllocs()
	for b.Loop() {
		m.Apply(out, in, false)
	}
}
