package verify_test

import (
	"bytes"
	"math"
	"math/big"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"weak"

	"volley/field"
	_ "volley/field/curves"
	"volley/field/fieldtest"
	"volley/verify"
)

var fingerprintFields = []string{"2", "2^4", "2^8", "2^8:0x11b", "2^16", "97", "257", "65537", "2147483647"}

// symbols returns a random packet of n symbols.
func symbols(f field.Field, rng *rand.Rand, n int) []byte {
	packet := make([]byte, n*f.SymbolBytes())
	for i := range n {
		field.PutSymbol(f, packet[i*f.SymbolBytes():], element(f, rng))
	}
	return packet
}

func element(f field.Field, rng *rand.Rand) field.Element {
	return field.Code(rng.Uint64N(f.Order().Uint64()))
}

// fingerprint returns the fingerprint of a packet added at once, in blocks of 64
// symbols.
func fingerprint(f field.Field, seed verify.Seed, packet []byte) []byte {
	return fingerprints(f, seed, packet)[0]
}

// fingerprints does so for packets of one length.
func fingerprints(f field.Field, seed verify.Seed, packets ...[]byte) [][]byte {
	p := verify.NewFingerprints(f, seed, 64, len(packets))
	p.Add(packets...)
	return p.Bytes()
}

// TestFingerprintDefinition compares with the sums by the schoolbook.
func TestFingerprintDefinition(t *testing.T) {
	const n = 64*70 + 5 // symbols: two batches of blocks and some more, the last one short
	for _, name := range fingerprintFields {
		f := fieldtest.Parse(t, name)
		packet := symbols(f, rand.New(rand.NewPCG(1, 2)), n)
		seed := verify.Seed{7}
		e, m := least(f, 2), least(f, 4)
		sums, _ := schoolbook(f, seed, symbolsOf(f, packet), 64, e)
		seed[31] = 1
		short, draw := schoolbook(f, seed, slices.Concat(sums...), max(1, 32/f.SymbolBytes()), m)
		var want []field.Element
		for _, sum := range short {
			want = append(want, field.Element{})
			for i, r := range draw(len(sum)) {
				want[len(want)-1] = f.Add(want[len(want)-1], f.Mul(r, sum[i]))
			}
		}
		got := symbolsOf(f, fingerprint(f, verify.Seed{7}, packet))
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// least returns how many symbols it takes until all are zero with a probability of 2^-33 at most, where each is unless
// so many random elements are all other than one of q.
func least(f field.Field, elements int) int {
	q, _ := new(big.Float).SetInt(f.Order()).Float64()
	miss, all := 0.0, 1.0
	for range elements {
		miss += (1 - miss) / q
	}
	for n := 0; ; n++ {
		if all <= math.Ldexp(1, -33) {
			return n
		}
		all *= miss
	}
}

// schoolbook returns so many random combinations of blocks, and what draws more elements.
func schoolbook(f field.Field, seed verify.Seed, x []field.Element, block, count int) (sums [][]field.Element, draw func(int) []field.Element) {
	rng, sampler := rand.NewChaCha8(seed), field.NewSampler(f)
	draw = func(n int) []field.Element {
		packet := make([]byte, n*f.SymbolBytes())
		sampler.Fill(packet, rng.Uint64)
		return symbolsOf(f, packet)
	}
	var inner, outer [][]field.Element // by block of a batch, and by batch
	blocks := (len(x) + block - 1) / block
	for b := range blocks {
		if b < 32 {
			inner = append(inner, draw(count))
		}
		if b%32 == 31 || b == blocks-1 {
			outer = append(outer, draw(count))
		}
	}
	for c := range count {
		sums = append(sums, make([]field.Element, block))
		for s, e := range x {
			b := s / block
			sums[c][s%block] = f.Add(sums[c][s%block], f.Mul(f.Mul(inner[b%32][c], outer[b/32][c]), e))
		}
	}
	return sums, draw
}

// symbolsOf returns the symbols of a packet.
func symbolsOf(f field.Field, packet []byte) (list []field.Element) {
	for i := 0; i < len(packet); i += f.SymbolBytes() {
		list = append(list, field.Symbol(f, packet[i:]))
	}
	return list
}

// TestFingerprintPieces checks that it does not matter how packets are cut, nor which are added side by side, and
// that a seed always gives the same coefficients.
func TestFingerprintPieces(t *testing.T) {
	for _, name := range fingerprintFields {
		f := fieldtest.Parse(t, name)
		rng := rand.New(rand.NewPCG(5, 6))
		for _, n := range []int{0, 1, 64, 100, 5000, 1 << 15} {
			packets := [][]byte{symbols(f, rng, n), symbols(f, rng, n), symbols(f, rng, n)}
			p := verify.NewFingerprints(f, verify.Seed{1}, 64, len(packets))
			for first := 0; first < len(packets[0]); {
				piece := min(len(packets[0])-first, 64*f.SymbolBytes()*rng.IntN(50))
				p.Add(packets[0][first:][:piece], packets[1][first:][:piece], packets[2][first:][:piece])
				first += piece
			}
			for i, got := range p.Bytes() {
				if want := fingerprint(f, verify.Seed{1}, packets[i]); !bytes.Equal(got, want) {
					t.Errorf("%s, %d symbols: pieces give packet %d another fingerprint than all by itself", name, n, i)
				} else if n >= 64 && bytes.Equal(fingerprint(f, verify.Seed{2}, packets[i]), want) {
					t.Errorf("%s, %d symbols: another seed gives the same fingerprint", name, n)
				}
			}
		}
	}
}

// TestFingerprintKeepsNoData checks that what was added can be collected.
func TestFingerprintKeepsNoData(t *testing.T) {
	p := verify.NewFingerprints(fieldtest.Parse(t, "2^8"), verify.Seed{1}, 64, 1)
	data := make([]byte, 64*40)
	kept := weak.Make(&data[0])
	p.Add(data)
	runtime.GC()
	if kept.Value() != nil {
		t.Error("the fingerprint holds on to the packet")
	}
	runtime.KeepAlive(p)
}

// TestWeights has weights for each fingerprint, which a seed always gives, and which are not those of a fingerprint.
func TestWeights(t *testing.T) {
	for _, name := range fingerprintFields {
		f := fieldtest.Parse(t, name)
		each := len(fingerprint(f, verify.Seed{1}, nil))
		weights := verify.Weights(f, verify.Seed{1}, 100)
		if len(weights) != 100*each || f.FirstInvalid(weights) >= 0 || !bytes.Equal(weights, verify.Weights(f, verify.Seed{1}, 100)) {
			t.Errorf("%s: %d bytes of weights for fingerprints of %d, or not of the field, or not the same again", name, len(weights), each)
		}
		_, draw := schoolbook(f, verify.Seed{1}, nil, 64, 1)
		drawn := draw(len(weights) / f.SymbolBytes())
		if bytes.Equal(weights, verify.Weights(f, verify.Seed{2}, 100)) || slices.Equal(symbolsOf(f, weights), drawn) {
			t.Errorf("%s: the weights of another seed, or the numbers of the blocks", name)
		}
	}
}

// TestFingerprintSize checks m and B. A packet without symbols has a fingerprint too, of zeros.
func TestFingerprintSize(t *testing.T) {
	for _, name := range append([]string{"3", "2^5", "2^12", "65521", "bls12-381"}, fingerprintFields...) {
		f := fieldtest.Parse(t, name)
		empty := fingerprint(f, verify.Seed{1}, nil)
		if m := len(empty) / f.SymbolBytes(); m != least(f, 4) {
			t.Errorf("%s: %d symbols, want %d", name, m, least(f, 4))
		}
		if !bytes.Equal(empty, make([]byte, len(empty))) {
			t.Errorf("%s: the fingerprint of nothing is %x", name, empty)
		}
	}
	for _, w := range []int64{0, 1, 63, 1000, 1 << 15, 1<<16 - 1, 1 << 16, 100_000, 1 << 20, 1<<21 - 1, 1 << 22, 1 << 40, math.MaxInt64} {
		b := verify.BlockSymbols(w, 1)
		least, most := max(64, min(1448, math.Sqrt(float64(w)/2))), max(64, math.Sqrt(2*(1+float64(w))))
		least, most = min(least, float64(max(1, w))), min(most, max(1, 2*float64(w)-1)) // no more than hold a packet
		if b&(b-1) != 0 || b > 2048 || float64(b) < least || float64(b) > most {
			t.Errorf("W = %d: blocks of %d symbols, want a power of two from %.0f to %.0f", w, b, least, most)
		}
	}
}

// checkUniform has a χ² test of how often each of so many values came.
func checkUniform(t *testing.T, name string, count []float64) {
	t.Helper()
	mean, chi := 0.0, 0.0
	for _, n := range count {
		mean += n / float64(len(count))
	}
	for _, n := range count {
		chi += (n - mean) * (n - mean) / mean
	}
	// χ² of d degrees has mean d and variance 2·d.
	if d := float64(len(count) - 1); chi > d+6*math.Sqrt(2*d)+6 {
		t.Errorf("%s: χ² = %.1f for %v degrees of freedom", name, chi, d)
	}
}
