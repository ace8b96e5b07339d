package field_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
	"github.com/consensys/gnark-crypto/utils"

	"volley/field"
	"volley/field/fieldtest"
)

// BenchmarkOddMap is Apply of fields of odd characteristic. It counts the bytes of
// all products: outputs · inputs · length.
func BenchmarkOddMap(b *testing.B) {
	for _, name := range []string{"bls12-381", "bn254", "goldilocks", "babybear", "2147483647", "65537", "257", "251", "3", "3^4", "251^2", "7^2", "5^3", "13^4", "5^6", "3^10"} {
		f := fieldtest.Parse(b, name)
		rng := rand.New(rand.NewPCG(1, 2))
		for _, shape := range []string{"1x1", "2x2", "±", "4x4", "8x8", "32x32", "128x128"} {
			for _, size := range []int{512, 2 << 10, 16 << 10} {
				if testing.Short() && (size != 2<<10 || shape == "4x4" || shape == "128x128") {
					continue
				}
				b.Run(fmt.Sprintf("field=%s/map=%s/len=%s", name, shape, sizeName(size)), func(b *testing.B) {
					benchmarkOddMap(b, f, oddRows(f, shape, rng), size, rng)
				})
			}
		}
	}
}

// oddRows returns random rows of a shape like 2x2, or those of a sum and a
// difference.
func oddRows(f field.Field, shape string, rng *rand.Rand) [][]field.Element {
	if shape == "±" {
		return [][]field.Element{{field.One, field.One}, {field.One, f.Sub(field.Element{}, field.One)}}
	}
	var outputs, inputs int
	if _, err := fmt.Sscanf(shape, "%dx%d", &outputs, &inputs); err != nil {
		panic(err)
	}
	rows := make([][]field.Element, outputs)
	for i := range rows {
		for range inputs {
			rows[i] = append(rows[i], randomElement(f, rng))
		}
	}
	return rows
}

func benchmarkOddMap(b *testing.B, f field.Field, rows [][]field.Element, size int, rng *rand.Rand) {
	out, in := make([][]byte, len(rows)), make([][]byte, len(rows[0]))
	for i := range out {
		out[i] = make([]byte, size)
	}
	for j := range in {
		in[j] = randomPacket(f, rng, size/f.SymbolBytes())
	}
	m := f.Map(rows)
	b.SetBytes(int64(len(out) * len(in) * size))
	b.ReportAllocs()
	for b.Loop() {
		m.Apply(out, in, false)
	}
}

// BenchmarkOddDFT is the discrete Fourier transform of 1,024 packets of 64 symbols,
// symbol by symbol, by maps of one scaling and of one sum and difference; then that
// of gnark-crypto, with the symbols of a transform beside one another and after
// taking them there and back.
func BenchmarkOddDFT(b *testing.B) {
	const n, symbols = 1 << 10, 64
	f := fieldtest.Parse(b, "bls12-381")
	rng := rand.New(rand.NewPCG(1, 2))
	domain := fft.NewDomain(n)
	var in [n][]byte
	for i := range in {
		in[i] = randomPacket(f, rng, symbols)
	}
	vectors := make([][]bls12381.Element, symbols)
	toVectors := func() {
		for k := range vectors {
			if vectors[k] == nil {
				vectors[k] = make([]bls12381.Element, n)
			}
			for i := range in {
				vectors[k][i] = bls12381.Element(field.Symbol(f, in[i][32*k:]))
			}
		}
	}
	d := newDFT(f, field.Element(domain.Generator.Bits()), n, symbols*32)
	out := d.transform(in[:])
	toVectors()
	for k, v := range vectors {
		domain.FFT(v, fft.DIF, fft.WithNbTasks(1))
		utils.BitReverse(v)
		for i := range v {
			if got := field.Symbol(f, out[i][32*k:]); got != field.Element(v[i]) {
				b.Fatalf("symbol %d of packet %d is %v, gnark-crypto has %v", k, i, got, field.Element(v[i]))
			}
		}
	}
	b.Run("by=maps", func(b *testing.B) {
		for b.Loop() {
			d.transform(in[:])
		}
	})
	gnark := func() {
		for _, v := range vectors {
			domain.FFT(v, fft.DIF, fft.WithNbTasks(1))
		}
	}
	b.Run("by=gnark", func(b *testing.B) {
		for b.Loop() {
			gnark()
		}
	})
	b.Run("by=gnark,transposed", func(b *testing.B) {
		packets := make([]byte, symbols*32)
		for b.Loop() {
			toVectors()
			gnark()
			for i := range n {
				for k := range vectors {
					field.PutSymbol(f, packets[32*k:], field.Element(vectors[k][i]))
				}
			}
		}
	})
}

// dft transforms by decimation in time, depth first as gnark-crypto.
type dft struct {
	scale   []field.Map // by powers of the root
	sum     field.Map   // and difference
	buffers [2][][]byte
	scaled  []byte
}

func newDFT(f field.Field, root field.Element, n, size int) *dft {
	d := &dft{sum: f.Map(oddRows(f, "±", nil)), scaled: make([]byte, size)}
	c := field.One
	for range n / 2 {
		d.scale = append(d.scale, f.Map([][]field.Element{{c}}))
		c = f.Mul(c, root)
	}
	for i := range d.buffers {
		d.buffers[i] = make([][]byte, n)
		for j := range n {
			d.buffers[i][j] = make([]byte, size)
		}
	}
	return d
}

func (d *dft) transform(in [][]byte) [][]byte {
	n := len(in)
	levels := bits.Len(uint(n)) - 1
	var recurse func(first, stride, at, n, level int) [][]byte
	recurse = func(first, stride, at, n, level int) [][]byte {
		if n == 1 {
			return in[first : first+1]
		}
		m := n / 2
		even := recurse(first, 2*stride, at, m, level-1)
		odd := recurse(first+stride, 2*stride, at+m, m, level-1)
		out := d.buffers[level%2][at : at+n]
		for i := range m {
			x := odd[i]
			if i > 0 {
				d.scale[i*stride].Apply([][]byte{d.scaled}, [][]byte{x}, false)
				x = d.scaled
			}
			d.sum.Apply([][]byte{out[i], out[i+m]}, [][]byte{even[i], x}, false)
		}
		return out
	}
	return recurse(0, 1, 0, n, levels)
}
