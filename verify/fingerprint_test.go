package verify_test

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"volley/field"
	"volley/verify"
)

var fingerprintFields = []string{"2", "2^4", "2^8", "2^8:0x11b", "2^16", "3^4", "257", "65537", "2147483647"}

// fieldNamed returns the field of that name.
func fieldNamed(t testing.TB, name string) field.Field {
	t.Helper()
	f, err := field.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

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
	p := verify.NewFingerprint(f, seed, 64)
	p.Add(packet)
	return p.Bytes()
}

// TestFingerprintDefinition compares with the sums by the schoolbook.
func TestFingerprintDefinition(t *testing.T) {
	const n = 200 // symbols: four blocks, the last one short
	for _, name := range fingerprintFields {
		f := fieldNamed(t, name)
		packet := symbols(f, rand.New(rand.NewPCG(1, 2)), n)
		seed := verify.Seed{7}
		sums := schoolbook(f, seed, symbolsOf(f, packet), 64, 32)
		seed[31] = 1
		want := schoolbook(f, seed, slices.Concat(sums...), max(1, 16/f.SymbolBytes()), 40)
		got := symbolsOf(f, fingerprint(f, verify.Seed{7}, packet))
		if !slices.Equal(got, slices.Concat(want...)) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// schoolbook returns random combinations of blocks, as many as misses of 2^-bits take.
func schoolbook(f field.Field, seed verify.Seed, x []field.Element, block, bits int) [][]field.Element {
	rng, draw := rand.NewChaCha8(seed), field.NewSampler(f)
	e := int(math.Ceil(float64(bits) / math.Log2(float64(f.Order().Uint64()))))
	sums := make([][]field.Element, e)
	for from := 0; from < len(x); from += block {
		for c := range sums {
			r := draw.Draw(rng.Uint64)
			if sums[c] == nil {
				sums[c] = make([]field.Element, block)
			}
			for s := range min(block, len(x)-from) {
				sums[c][s] = f.Add(sums[c][s], f.Mul(r, x[from+s]))
			}
		}
	}
	return sums
}

// symbolsOf returns the symbols of a packet.
func symbolsOf(f field.Field, packet []byte) (list []field.Element) {
	for i := 0; i < len(packet); i += f.SymbolBytes() {
		list = append(list, field.Symbol(f, packet[i:]))
	}
	return list
}

func TestFingerprintLinear(t *testing.T) {
	for _, name := range fingerprintFields {
		f := fieldNamed(t, name)
		rng := rand.New(rand.NewPCG(3, 4))
		for _, n := range []int{1, 63, 64, 65, 1000, 64 * 70} {
			x, y, sum := symbols(f, rng, n), symbols(f, rng, n), make([]byte, n*f.SymbolBytes())
			coefs := []field.Element{element(f, rng), element(f, rng)}
			f.Combine(sum, coefs, [][]byte{x, y})
			seed := verify.Seed{byte(n)}
			want := fingerprint(f, seed, sum)
			got := make([]byte, len(want))
			f.Combine(got, coefs, [][]byte{fingerprint(f, seed, x), fingerprint(f, seed, y)})
			if !bytes.Equal(got, want) {
				t.Errorf("%s, %d symbols: the fingerprint of a combination is not that of the fingerprints", name, n)
			}
		}
	}
}

// TestFingerprintPieces checks that it does not matter how a packet is cut, and
// that a seed always gives the same coefficients.
func TestFingerprintPieces(t *testing.T) {
	for _, name := range []string{"2", "2^8", "2^16", "257"} {
		f := fieldNamed(t, name)
		rng := rand.New(rand.NewPCG(5, 6))
		for _, n := range []int{0, 1, 64, 100, 5000, 1 << 16} {
			packet := symbols(f, rng, n)
			want := fingerprint(f, verify.Seed{1}, packet)
			for range 5 {
				p := verify.NewFingerprint(f, verify.Seed{1}, 64)
				for rest := packet; len(rest) > 0; {
					piece := min(len(rest), 64*f.SymbolBytes()*rng.IntN(50))
					p.Add(rest[:piece])
					rest = rest[piece:]
				}
				if !bytes.Equal(p.Bytes(), want) {
					t.Errorf("%s, %d symbols: pieces give another fingerprint", name, n)
				}
			}
			if n >= 64 && bytes.Equal(fingerprint(f, verify.Seed{2}, packet), want) {
				t.Errorf("%s, %d symbols: another seed gives the same fingerprint", name, n)
			}
		}
	}
}

// TestFingerprintKeepsNoData checks that what was added can be collected.
func TestFingerprintKeepsNoData(t *testing.T) {
	p := verify.NewFingerprint(fieldNamed(t, "2^8"), verify.Seed{1}, 64)
	data := make([]byte, 64*40)
	kept := weak.Make(&data[0])
	p.Add(data)
	runtime.GC()
	if kept.Value() != nil {
		t.Error("the fingerprint holds on to the packet")
	}
	runtime.KeepAlive(p)
}

// TestFingerprintSize checks m, with q^m >= 2^40 and no more than that takes, and
// B. A packet without symbols has a fingerprint too, of zeros.
func TestFingerprintSize(t *testing.T) {
	for _, name := range append([]string{"3", "2^5", "2^12", "65521", "bls12-381"}, fingerprintFields...) {
		f := fieldNamed(t, name)
		empty := fingerprint(f, verify.Seed{1}, nil)
		m := int64(len(empty) / max(16, f.SymbolBytes()))
		power := func(n int64) *big.Int { return new(big.Int).Exp(f.Order(), big.NewInt(n), nil) }
		want := new(big.Int).Lsh(big.NewInt(1), 40)
		if power(m).Cmp(want) < 0 || power(m-1).Cmp(want) >= 0 {
			t.Errorf("%s: %d combinations", name, m)
		}
		if !bytes.Equal(empty, make([]byte, len(empty))) {
			t.Errorf("%s: the fingerprint of nothing is %x", name, empty)
		}
	}
	for _, w := range []int64{0, 1, 63, 1000, 1 << 15, 1<<16 - 1, 1 << 16, 100_000, 1 << 20, 1<<21 - 1, 1 << 22, 1 << 40, math.MaxInt64} {
		b := verify.BlockSymbols(w, 1)
		least, most := max(64, min(2896, math.Sqrt(2*float64(w)))), max(64, math.Sqrt(8*(1+float64(w))))
		least, most = min(least, float64(max(1, w))), min(most, max(1, 2*float64(w)-1)) // no more than hold a packet
		if b&(b-1) != 0 || b > 4096 || float64(b) < least || float64(b) > most {
			t.Errorf("W = %d: blocks of %d symbols, want a power of two from %.0f to %.0f", w, b, least, most)
		}
	}
}

// TestFingerprintCatches changes a packet in one symbol, in two, in a block, or
// everywhere, and expects another fingerprint. A thousand misses of probability
// 2^-32 each do not happen, and seeds are fixed.
func TestFingerprintCatches(t *testing.T) {
	for _, name := range []string{"2", "2^8", "2^16", "3^4", "257"} {
		f := fieldNamed(t, name)
		size := f.SymbolBytes()
		rng := rand.New(rand.NewPCG(7, 8))
		nonzero := func() field.Element {
			for {
				if e := element(f, rng); !e.IsZero() {
					return e
				}
			}
		}
		change := func(packet []byte, at int, by field.Element) {
			at *= size
			field.PutSymbol(f, packet[at:], f.Add(field.Symbol(f, packet[at:]), by))
		}
		for trial := range 400 {
			n := 1 + rng.IntN(500)
			packet := symbols(f, rng, n)
			seed := verify.Seed{byte(trial), byte(trial >> 8)}
			want := fingerprint(f, seed, packet)
			at, by := rng.IntN(n), nonzero()
			changes := map[string]func([]byte){
				"one symbol": func(p []byte) { change(p, at, by) },
				"one everywhere": func(p []byte) {
					for s := range n {
						change(p, s, by)
					}
				},
			}
			if n > 64 {
				at = rng.IntN(n - 64)
				changes["two at one position"] = func(p []byte) {
					change(p, at, by)
					change(p, at+64, f.Sub(field.Element{}, by))
				}
				changes["two blocks swapped"] = func(p []byte) {
					for s := range min(64, n-64) {
						a, b := field.Symbol(f, packet[s*size:]), field.Symbol(f, packet[(64+s)*size:])
						change(p, s, f.Sub(b, a))
						change(p, 64+s, f.Sub(a, b))
					}
				}
			}
			for what, change := range changes {
				wrong := bytes.Clone(packet)
				change(wrong)
				if !bytes.Equal(wrong, packet) && bytes.Equal(fingerprint(f, seed, wrong), want) {
					t.Errorf("%s, trial %d: %d symbols, %s at %d by %v: not caught", name, trial, n, what, at, by)
				}
			}
		}
	}
}

// TestFingerprintRandom checks that single combinations are wrong as often as
// they should, by counting the coefficients: every value of a small field comes
// up equally often.
func TestFingerprintRandom(t *testing.T) {
	for _, name := range []string{"2", "3", "2^4", "3^4", "2^8", "257"} {
		f := fieldNamed(t, name)
		q := int(f.Order().Int64())
		count := make([]int, q)
		total := 0
		// The fingerprint of a unit vector holds the coefficients of its block.
		for seed := range 200 {
			unit := make([]byte, 64*f.SymbolBytes())
			for range 5 { // and a few blocks before it
				unit = append(make([]byte, 64*f.SymbolBytes()), unit...)
				field.PutSymbol(f, unit[len(unit)-64*f.SymbolBytes():], field.One)
				rs := fingerprint(f, verify.Seed{byte(seed), byte(seed >> 8), 3}, unit)
				for c := 0; c < len(rs); c += 64 * f.SymbolBytes() {
					count[field.Symbol(f, rs[c:])[0]]++
					total++
				}
			}
		}
		mean := float64(total) / float64(q)
		chi := 0.0
		for _, n := range count {
			chi += (float64(n) - mean) * (float64(n) - mean) / mean
		}
		// χ² of q-1 degrees has mean q-1 and variance 2(q-1).
		if dof := float64(q - 1); chi > dof+6*math.Sqrt(2*dof)+6 {
			t.Errorf("%s: χ² = %.1f for %d degrees of freedom", name, chi, q-1)
		}
	}
}

// BenchmarkFingerprint measures what the check adds to a run, a fingerprint of
// the input and one of the output, and reports it also in units of what coding
// with 16 terms per symbol takes.
func BenchmarkFingerprint(b *testing.B) {
	for _, name := range []string{"2^8", "2^16", "257", "3^4", "2"} {
		for _, n := range []int{1 << 16, 1 << 20} {
			b.Run(fmt.Sprintf("q=%s/len=%dKi", name, n>>10), func(b *testing.B) {
				f := fieldNamed(b, name)
				rng := rand.New(rand.NewPCG(1, 1))
				packet := symbols(f, rng, n)
				coefs, sources := make([]field.Element, 16), make([][]byte, 16)
				for i := range coefs {
					coefs[i], sources[i] = element(f, rng), packet
				}
				dst := make([]byte, len(packet))
				var coding time.Duration
				b.SetBytes(int64(len(packet)))
				b.ReportAllocs()
				for b.Loop() {
					for range 2 {
						p := verify.NewFingerprint(f, verify.Seed{1}, verify.BlockSymbols(int64(n), 1))
						p.Add(packet)
					}
					b.StopTimer()
					start := time.Now()
					f.Combine(dst, coefs, sources)
					coding += time.Since(start)
					b.StartTimer()
				}
				b.ReportMetric(float64(b.Elapsed())/float64(coding), "vs-coding-16")
			})
		}
	}
}

// TestFingerprintsSideBySide checks that packets that are added side by side have the fingerprints that each has by
// itself.
func TestFingerprintsSideBySide(t *testing.T) {
	for _, name := range fingerprintFields {
		f := fieldNamed(t, name)
		rng := rand.New(rand.NewPCG(7, 8))
		for _, n := range []int{1, 64, 1000, 20000} {
			packets := [][]byte{symbols(f, rng, n), symbols(f, rng, n), symbols(f, rng, n)}
			p := verify.NewFingerprints(f, verify.Seed{9}, 64, len(packets))
			half := n / 128 * 64 * f.SymbolBytes()
			p.Add(packets[0][:half], packets[1][:half], packets[2][:half])
			p.Add(packets[0][half:], packets[1][half:], packets[2][half:])
			for i, is := range p.Bytes() {
				if !bytes.Equal(is, fingerprint(f, verify.Seed{9}, packets[i])) {
					t.Errorf("%s, %d symbols: packet %d has another fingerprint than by itself", name, n, i)
				}
			}
		}
	}
}
