package field_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
)

func BenchmarkCombine(b *testing.B) {
	for _, name := range []string{"2^8", "2^8:0x11b", "2^4", "2^16", "2^16:0x1002d", "2^12", "2", "3", "251", "257", "65521", "65537", "2147483647", "babybear", "goldilocks", "bls12-381", "bn254", "3^4", "5^3", "3^10", "13^4", "251^2"} {
		for _, sources := range []int{1, 2, 4, 8, 16, 64} {
			for _, size := range []int{64, 1 << 10, 1 << 20} {
				if sources != 16 && testing.Short() {
					continue
				}
				b.Run(fmt.Sprintf("field=%s/sources=%d/len=%s", name, sources, sizeName(size)), func(b *testing.B) {
					benchmarkCombine(b, fieldtest.Parse(b, name), sources, size)
				})
			}
		}
	}
}

// benchmarkCombine counts the bytes of all sources.
func benchmarkCombine(b *testing.B, f field.Field, sources, size int) {
	rng := rand.New(rand.NewPCG(1, 2))
	coef, src := make([]field.Element, sources), make([][]byte, sources)
	for i := range src {
		coef[i] = randomElement(f, rng)
		src[i] = randomPacket(f, rng, size/f.SymbolBytes())
	}
	dst := make([]byte, size)
	b.SetBytes(int64(sources * size))
	b.ReportAllocs()
	for b.Loop() {
		f.Combine(dst, coef, src)
	}
}

// BenchmarkMap counts the bytes of every input for every output: what is multiplied
// by a coefficient.
func BenchmarkMap(b *testing.B) {
	for _, name := range []string{"2^8", "2^8:0x11b", "2^16", "2^12", "257", "65537", "goldilocks", "bls12-381", "3^4"} {
		f := fieldtest.Parse(b, name)
		for _, side := range []int{1, 2, 4, 8, 16, 64, 128} {
			for _, size := range []int{512, 1 << 10, 4 << 10, 32 << 10} {
				if testing.Short() && (side != 8 || size != 4<<10) {
					continue
				}
				b.Run(fmt.Sprintf("field=%s/map=%dx%d/len=%s", name, side, side, sizeName(size)), func(b *testing.B) {
					benchmarkMap(b, f, f.Map, randomRows(f, side), size)
				})
			}
		}
	}
}

// BenchmarkPlanarMap is the same in planes, and has the butterflies of an FFT.
func BenchmarkPlanarMap(b *testing.B) {
	f := fieldtest.Parse(b, "2^16").(field.Planar)
	c, one := f.Generator(), field.One
	kinds := map[string][][]field.Element{
		"butterfly":        {{one, c}, {one, f.Add(c, one)}},
		"inverseButterfly": {{f.Add(c, one), c}, {one, one}},
	}
	kinds["butterflies"] = [][]field.Element{ // of 0 and 2, 1 and 3 by c, of 0 and 1 by 0, of 2 and 3 by 1
		{one, {}, c, {}}, {one, one, c, c}, {one, one, f.Add(c, one), f.Add(c, one)}, {one, {}, f.Add(c, one), {}},
	}
	for _, side := range []int{2, 4, 8, 64} {
		kinds[fmt.Sprintf("%dx%d", side, side)] = randomRows(f, side)
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		for _, size := range []int{512, 1 << 10, 4 << 10, 32 << 10} {
			b.Run(fmt.Sprintf("field=2^16/map=%s/len=%s", name, sizeName(size)), func(b *testing.B) {
				benchmarkMap(b, f, f.PlanarMap, kinds[name], size)
			})
		}
	}
}

func BenchmarkToPlanes(b *testing.B) {
	f := fieldtest.Parse(b, "2^16").(field.Planar)
	for _, size := range []int{1 << 10, 32 << 10} {
		b.Run("field=2^16/len="+sizeName(size), func(b *testing.B) {
			dst, src := make([]byte, size), make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				f.ToPlanes(dst, src)
			}
		})
	}
}

func benchmarkMap(b *testing.B, f field.Field, prepare func([][]field.Element) field.Map, rows [][]field.Element, size int) {
	rng := rand.New(rand.NewPCG(1, 2))
	m := prepare(rows)
	var out, in [][]byte
	for range rows {
		out = append(out, randomPacket(f, rng, size/f.SymbolBytes()))
	}
	for range rows[0] {
		in = append(in, randomPacket(f, rng, size/f.SymbolBytes()))
	}
	b.SetBytes(int64(len(out) * len(in) * size))
	b.ReportAllocs()
	for b.Loop() {
		m.Apply(out, in, false)
	}
}

func randomRows(f field.Field, side int) [][]field.Element {
	rng := rand.New(rand.NewPCG(3, 4))
	rows := make([][]field.Element, side)
	for i := range rows {
		for range side {
			rows[i] = append(rows[i], randomElement(f, rng))
		}
	}
	return rows
}

// BenchmarkNewMap makes maps ready.
func BenchmarkNewMap(b *testing.B) {
	for _, name := range []string{"2^8", "2^16"} {
		f := fieldtest.Parse(b, name)
		for _, side := range []int{2, 128} {
			b.Run(fmt.Sprintf("field=%s/map=%dx%d", name, side, side), func(b *testing.B) {
				rows := randomRows(f, side)
				b.ReportAllocs()
				for b.Loop() {
					f.Map(rows)
				}
			})
		}
	}
}

func sizeName(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return fmt.Sprintf("%dB", n)
}

func randomElement(f field.Field, rng *rand.Rand) field.Element {
	s := field.NewSampler(f)
	return s.Draw(rng.Uint64)
}

func randomPacket(f field.Field, rng *rand.Rand, symbols int) []byte {
	b, s := make([]byte, symbols*f.SymbolBytes()), field.NewSampler(f)
	s.Fill(b, rng.Uint64)
	return b
}

func BenchmarkMul(b *testing.B) {
	for _, name := range []string{"2^8", "2^16", "257", "2147483647", "goldilocks", "bls12-381", "3^4", "3^10"} {
		b.Run("field="+name, func(b *testing.B) {
			f := fieldtest.Parse(b, name)
			x, y := f.Generator(), field.One
			for b.Loop() {
				y = f.Mul(x, y)
			}
		})
	}
}

func BenchmarkAdd(b *testing.B) {
	for _, name := range []string{"2^8", "2^16", "257", "2147483647", "goldilocks", "bls12-381", "3^4", "3^10"} {
		b.Run("field="+name, func(b *testing.B) {
			f := fieldtest.Parse(b, name)
			x, y := f.Generator(), field.One
			for b.Loop() {
				y = f.Add(x, y)
			}
		})
	}
}
