package field_test

import (
	"fmt"
	"math/rand/v2"
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
	n := f.SymbolBytes()
	b := make([]byte, symbols*n)
	for k := range symbols {
		field.PutSymbol(f, b[k*n:], randomElement(f, rng))
	}
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
