package volley_test

import (
	"bytes"
	"context"
	"math/big"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	blsfft "github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
	"github.com/consensys/gnark-crypto/utils"
	"github.com/klauspost/reedsolomon"

	"volley"
	"volley/field"
	_ "volley/field/curves"
	"volley/field/fieldtest"
	"volley/internal/race"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/sim"
	"volley/transport"
	"volley/transport/local"
)

// build returns the matrix of a family.
func build(t testing.TB, f field.Field, spec matrices.Spec, k int) matrix.Matrix {
	t.Helper()
	a, err := spec.Build(f, k, k)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// transform runs the plan of an algorithm on one symbol per processor.
func transform(t *testing.T, spec matrices.Spec, f field.Field, algorithm string, x []field.Element) []field.Element {
	t.Helper()
	packets := make([][]byte, len(x))
	for k := range packets {
		packets[k] = make([]byte, f.SymbolBytes())
		field.PutSymbol(f, packets[k], x[k])
	}
	coded, err := volley.EncodeAll(t.Context(), build(t, f, spec, len(x)), packets, volley.WithAlgorithm(algorithm), paper(1), volley.WithCheck(false))
	if err != nil {
		t.Fatal(err)
	}
	y := make([]field.Element, len(x))
	for k := range y {
		y[k] = field.Symbol(f, coded[k])
	}
	return y
}

// TestDFTEqualsGnark compares transforms of 4,096 symbols, one per processor, with
// the fft package of gnark-crypto, in natural and reversed order, and back.
func TestDFTEqualsGnark(t *testing.T) {
	const k = 4096
	f := fieldtest.Parse(t, "bls12-381")
	x := make([]field.Element, k)
	theirs := make([]fr.Element, k)
	for i, packet := range randomPackets(f, slices.Repeat([]int{1}, k)...) {
		x[i] = field.Symbol(f, packet)
		theirs[i].SetBigInt(x[i].Int())
	}
	d := blsfft.NewDomain(k)
	d.FFT(theirs, blsfft.DIF)
	utils.BitReverse(theirs)
	root := field.Element(d.Generator.Bits())
	// Theirs may be another root of unity of the same order: ω = root^e.
	exponent := new(big.Int).Div(new(big.Int).Sub(f.Order(), big.NewInt(1)), big.NewInt(k))
	omega := field.ExpInt(f, f.Generator(), exponent)
	e, power := 0, field.One
	for power != omega {
		power = f.Mul(power, root)
		if e++; e > k {
			t.Fatal("ω is no power of gnark's root")
		}
	}
	natural := transform(t, matrices.Spec{Family: "dft"}, f, "dft", x)
	reversed := transform(t, matrices.Spec{Family: "dft", Order: "reversed"}, f, "dft", x)
	for j := range k {
		want, rev := field.Element(theirs[j*e%k].Bits()), bits.Reverse16(uint16(j))>>4
		if natural[j] != want || reversed[rev] != want {
			t.Fatalf("coefficient %d: %v and, reversed, %v, gnark has %v", j, natural[j], reversed[rev], want)
		}
	}
	if !slices.Equal(transform(t, matrices.Spec{Family: "dft", Inverse: true}, f, "dft", natural), x) {
		t.Error("another inverse")
	}
}

// TestLeopard obtains the parity of klauspost/reedsolomon's Leopard codes, in each
// byte, from a Lagrange matrix: their symbols are coordinates in a Cantor basis, and
// so are their points, parity first.
func TestLeopard(t *testing.T) {
	for _, c := range []struct {
		field  string
		bits   int
		option reedsolomon.Option
		ks     []int
	}{
		{"2^8", 8, reedsolomon.WithLeopardGF(true), []int{2, 8, 128}},
		{"2^16:0x1002d", 16, reedsolomon.WithLeopardGF16(true), []int{2, 64}},
	} {
		f := fieldtest.Parse(t, c.field)
		basis := []uint64{1}
		for i := 1; i < c.bits; i++ { // β_i² + β_i = β_(i-1); of the two roots the even one
			for z := uint64(0); len(basis) == i; z += 2 {
				if b := field.Code(z); f.Add(f.Mul(b, b), b) == field.Code(basis[i-1]) {
					basis = append(basis, z)
				}
			}
		}
		phi := make([]uint64, 1<<c.bits) // the element that a symbol stands for
		inverse := make([]uint64, 1<<c.bits)
		for s := range phi {
			for b, v := range basis {
				if s>>b&1 == 1 {
					phi[s] ^= v
				}
			}
			inverse[phi[s]] = uint64(s)
		}
		for _, k := range c.ks {
			points := func(first int) matrix.Points {
				list := make([]field.Element, k)
				for i := range list {
					list[i] = field.Code(phi[first+i])
				}
				p, err := matrix.NewPoints(f, list)
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			a, err := matrix.Lagrange(points(k), points(0))
			if err != nil {
				t.Fatal(err)
			}
			data := randomPackets(f, slices.Repeat([]int{64 * 8 / c.bits}, k)...)
			shards := make([][]byte, 2*k)
			packets := make([][]byte, k)
			for i := range data {
				shards[i] = toLeopard(f, data[i])
				shards[k+i] = make([]byte, 64)
				packets[i] = mapSymbols(f, data[i], phi)
			}
			leopard, err := reedsolomon.New(k, k, c.option)
			if err != nil {
				t.Fatal(err)
			}
			if err := leopard.Encode(shards); err != nil {
				t.Fatal(err)
			}
			coded, report := mustEncode(t, alike(a, packets, volley.WithPaperModel(1, 0, volley.DefaultTau)))
			for j := range k {
				if !bytes.Equal(toLeopard(f, mapSymbols(f, coded[j], inverse)), shards[k+j]) {
					t.Fatalf("%s, K=%d: parity %d differs", c.field, k, j)
				}
			}
			if k >= 64 && report.Algorithm != "folded-lagrange" {
				t.Errorf("%s, K=%d: by %s", c.field, k, report.Algorithm)
			}
		}
	}
}

// toLeopard returns 64 bytes of symbols in Leopard's layout: the low bytes of symbols
// of two, then the high ones.
func toLeopard(f field.Field, data []byte) []byte {
	out := make([]byte, 0, len(data))
	for b := range f.SymbolBytes() {
		for i := b; i < len(data); i += f.SymbolBytes() {
			out = append(out, data[i])
		}
	}
	return out
}

// mapSymbols puts each symbol of a packet through a table.
func mapSymbols(f field.Field, data []byte, table []uint64) []byte {
	out := make([]byte, len(data))
	for i := 0; i < len(data); i += f.SymbolBytes() {
		field.PutSymbol(f, out[i:], field.Code(table[field.Symbol(f, data[i:])[0]]))
	}
	return out
}

// onWrite is called by WriteAt.
type onWrite func()

func (f onWrite) WriteAt(p []byte, _ int64) (int, error) {
	f()
	return len(p), nil
}

// TestMemoryOfRanks bounds what each of 1,024 ranks of a process allocates in a run, by layers 128 KiB, and 414 where
// each has 1,024 coefficients; and what each holds, stack included, when all of them have their results: 39 and 38.
func TestMemoryOfRanks(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates, too")
	}
	const k, mostHeld = 1024, 48 << 10
	network, err := sim.ParseNetwork("process")
	if err != nil {
		t.Fatal(err)
	}
	a := build(t, fieldtest.Parse(t, "2^16"), matrices.Spec{Family: "cauchy"}, k)
	for _, c := range []struct {
		name string
		most uint64 // bytes
		opts []volley.Option
	}{
		{"layers", 190 << 10, []volley.Option{volley.WithNetwork(network), volley.WithGamma(sim.ProcessGamma), volley.WithTimeout(0)}},
		{"universal", 620 << 10, []volley.Option{volley.WithAlgorithm("universal"), volley.WithTimeout(0)}},
	} {
		e := mustEncoder(t, a, c.opts...)
		if _, err := e.Plan(t.Context(), nil, 32); err != nil {
			t.Fatal(err)
		}
		packet := make([]byte, 64)
		var before, held, after runtime.MemStats
		runtime.GC()
		runtime.GC() // what pools have of earlier tests goes with the second
		runtime.ReadMemStats(&before)
		var computed sync.WaitGroup
		computed.Add(k)
		measured := make(chan struct{})
		go func() {
			computed.Wait()
			runtime.GC()
			runtime.ReadMemStats(&held)
			close(measured)
		}()
		if err := local.Run(t.Context(), k, func(ctx context.Context, tr transport.Transport) error {
			_, err := e.Run(ctx, tr, volley.Packet{Data: packet, Coded: onWrite(func() {
				computed.Done()
				<-measured
			})})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		grown := int64(held.HeapAlloc+held.StackInuse) - int64(before.HeapAlloc+before.StackInuse) // less than 0 where more has gone
		if allocated := (after.TotalAlloc - before.TotalAlloc) / k; grown/k > mostHeld || allocated > c.most {
			t.Errorf("%s: each of %d ranks holds %d KiB, want %d at most, and allocates %d KiB, want %d at most", c.name, k, grown/k>>10, mostHeld>>10, allocated>>10, c.most>>10)
		}
	}
}
