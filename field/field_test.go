package field_test

import (
	"bytes"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/reedsolomon"

	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/race"
	"volley/internal/verifyall"
)

func TestFields(t *testing.T) {
	names := []string{
		"2", "3", "31", "163", "251", // symbols of one byte
		"257", "16411", "65521", // of two: sums in 32 and in 64 bits
		"65537", "2147483647", "babybear", "koalabear", // of four
		"goldilocks", "bls12-381", "bn254", // of eight and more
		"2^2", "2^4", "2^7", "2^8", "2^9", "2^12", "2^15", "2^16", "2^8:0x11b", "2^16:0x1002d",
		"3^2", "3^10", "5^3", "13^4", "251^2",
		"3^2:0xa", // X^2+1, where X is not primitive
	}
	if verifyall.Enabled { // more of each kind
		names = append(names, "5", "7", "61", "97", "4093", "16381", "1000003",
			"2^3", "2^5", "2^6", "2^10", "2^11", "2^13", "2^14", "2^4:0x1f", "2^12:0x1069",
			"3^4", "3^5", "3^7", "5^6", "7^2", "7^5", "17^2", "37^3")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fieldtest.Parse(t, name)
			if f.Name() != name {
				t.Errorf("the name of %s is %s", name, f.Name())
			}
			checkField(t, f)
		})
	}
}

// TestMul compares products with polynomials multiplied and divided by hand. It
// pins the default polynomials down, too.
func TestMul(t *testing.T) {
	for _, c := range []struct {
		name string
		p    uint64
		poly []uint64 // lowest coefficient first
	}{
		{"2^2", 2, bitsOf(0x7)},
		{"2^3", 2, bitsOf(0xb)},
		{"2^4", 2, bitsOf(0x13)},
		{"2^5", 2, bitsOf(0x25)},
		{"2^6", 2, bitsOf(0x43)},
		{"2^7", 2, bitsOf(0x83)},
		{"2^8", 2, bitsOf(0x11d)},
		{"2^8:0x11b", 2, bitsOf(0x11b)},
		{"2^9", 2, bitsOf(0x211)},
		{"2^10", 2, bitsOf(0x409)},
		{"2^11", 2, bitsOf(0x805)},
		{"2^12", 2, bitsOf(0x1053)},
		{"2^13", 2, bitsOf(0x201b)},
		{"2^14", 2, bitsOf(0x402b)},
		{"2^15", 2, bitsOf(0x8003)},
		{"2^16", 2, bitsOf(0x1100b)},
		{"2^16:0x1002d", 2, bitsOf(0x1002d)},
		{"3^2", 3, []uint64{2, 1, 1}},
		{"3^4", 3, []uint64{2, 1, 0, 0, 1}},
		{"5^2", 5, []uint64{2, 1, 1}},
		{"5^3", 5, []uint64{2, 3, 0, 1}},
		{"7^2", 7, []uint64{3, 1, 1}},
		{"3^4:0x59", 3, []uint64{2, 2, 0, 0, 1}},
		{"257", 257, []uint64{0, 1}},
		{"2147483647", 2147483647, []uint64{0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fieldtest.Parse(t, c.name)
			q := f.Order().Uint64()
			check := func(a, b uint64) {
				if got, want := f.Mul(field.Code(a), field.Code(b)), field.Code(mulCodes(a, b, c.p, c.poly)); got != want {
					t.Fatalf("%d·%d = %v, want %v", a, b, got, want)
				}
			}
			rng := rand.New(rand.NewPCG(3, 4))
			for i := range uint64(3000) {
				check(i%q, i/q%q)
				check(rng.Uint64N(q), rng.Uint64N(q))
				check(q-1-i%q, rng.Uint64N(q))
			}
		})
	}
}

// bitsOf returns the coefficients of a polynomial over F_2.
func bitsOf(code uint64) []uint64 {
	var v []uint64
	for ; code > 0; code >>= 1 {
		v = append(v, code&1)
	}
	return v
}

// mulCodes multiplies as at school.
func mulCodes(a, b, p uint64, poly []uint64) uint64 {
	m := len(poly) - 1
	x := make([]uint64, 2*m)
	for i := range m {
		rest := b
		for j := range m {
			x[i+j] = (x[i+j] + a%p*(rest%p)) % p
			rest /= p
		}
		if m > 1 {
			a /= p
		}
	}
	for i := 2*m - 1; i >= m && m > 1; i-- {
		for j := range m {
			x[i-m+j] = (x[i-m+j] + x[i]*(p-poly[j])) % p
		}
	}
	code := uint64(0)
	for i := m - 1; i >= 0; i-- {
		code = code*p + x[i]
	}
	return code
}

// TestKlauspost compares 2^8 with the arithmetic of klauspost/reedsolomon.
func TestKlauspost(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	var l reedsolomon.LowLevel
	in, out := make([]byte, 256), make([]byte, 256)
	for i := range in {
		in[i] = byte(i)
	}
	for c := range uint64(256) {
		l.GalMulSlice(byte(c), in, out)
		for x, want := range out {
			if got := f.Mul(field.Code(c), field.Code(uint64(x))); got != field.Code(uint64(want)) {
				t.Fatalf("%d·%d = %v, want %d", c, x, got, want)
			}
		}
		if got, want := f.Inv(field.Code(max(c, 1))), reedsolomon.Inv(byte(max(c, 1))); got != field.Code(uint64(want)) {
			t.Fatalf("1/%d = %v, want %d", max(c, 1), got, want)
		}
	}
}

// TestPrimesManySources sums products of bytes beyond 32 bits also where that
// takes more sources than the suite has.
func TestPrimesManySources(t *testing.T) {
	for _, q := range []uint64{127, 163, 257} {
		f := fieldtest.Parse(t, new(big.Int).SetUint64(q).String())
		last := field.Code(q - 1)
		packet := make([]byte, 9*f.SymbolBytes())
		for k := range 9 {
			field.PutSymbol(f, packet[k*f.SymbolBytes():], last)
		}
		const sources = 300_000
		coef, src := make([]field.Element, sources), make([][]byte, sources)
		for i := range src {
			coef[i], src[i] = last, packet
		}
		dst := make([]byte, len(packet))
		f.Combine(dst, coef, src)
		for k := range 9 { // (-1)·(-1)·sources
			if got := field.Symbol(f, dst[k*f.SymbolBytes():]); got != field.Code(sources%q) {
				t.Fatalf("F_%d: %d summands make %v, want %d", q, sources, got, sources%q)
			}
		}
	}
}

// TestCombineAllocations holds kernels to their promise for long packets, apart
// from scratch memory that the garbage collector took away.
func TestCombineAllocations(t *testing.T) {
	for _, name := range []string{"2^4", "2^8", "2^8:0x11b", "2^16", "257", "2147483647", "goldilocks", "bls12-381", "bn254", "3^4", "3^10"} {
		f := fieldtest.Parse(t, name)
		rng := rand.New(rand.NewPCG(5, 6))
		for _, sources := range []int{1, 20} {
			coef, src := make([]field.Element, sources), make([][]byte, sources)
			for i := range src {
				coef[i], src[i] = randomElement(f, rng), randomPacket(f, rng, 8192)
			}
			dst := make([]byte, len(src[0]))
			if n := testing.AllocsPerRun(50, func() { f.Combine(dst, coef, src) }); n >= 1 && !race.Enabled {
				t.Errorf("%s: Combine of %d sources allocates %v times", name, sources, n)
			}
			m := f.Map([][]field.Element{coef, coef})
			out := [][]byte{dst, make([]byte, len(dst))}
			most := 0.0
			if name == "2^8" { // slice headers in klauspost/reedsolomon, without kernels here
				most = 4
			}
			if n := testing.AllocsPerRun(50, func() { m.Apply(out, src, false); m.Apply(out, src, true) }); n >= most+1 && !race.Enabled {
				t.Errorf("%s: Apply of %d sources allocates %v times", name, sources, n)
			}
		}
	}
}

func TestElement(t *testing.T) {
	for _, want := range []string{"0", "1", "18446744073709551615", "18446744073709551616", "340282366920938463463374607431768211456",
		"115792089237316195423570985008687907853269984665640564039457584007913129639935"} {
		v, _ := new(big.Int).SetString(want, 10)
		e, err := field.FromInt(v)
		if err != nil || e.String() != want || e.Int().Cmp(v) != 0 || e.IsZero() != (want == "0") {
			t.Errorf("%s becomes %v, %v", want, e, err)
		}
	}
	for _, v := range []*big.Int{big.NewInt(-1), new(big.Int).Lsh(big.NewInt(1), 256)} {
		if e, err := field.FromInt(v); err == nil {
			t.Errorf("FromInt(%v) = %v, want an error", v, e)
		}
	}
	f := fieldtest.Parse(t, "257")
	for _, c := range []struct{ in, want string }{
		{"0", "0"}, {" 256\n", "256"},
		{"257", "257 is outside the field 257: want 0 to 256"},
		{"-1", "-1 is outside the field 257: want 0 to 256"},
		{strings.Repeat("9", 100), strings.Repeat("9", 37) + "... is outside the field 257: want 0 to 256"},
		{"", `"" is not a decimal number`},
		{"0x10", `"0x10" is not a decimal number`},
	} {
		e, err := field.ParseElement(f, c.in)
		got := e.String()
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q: got %s, want %s", c.in, got, c.want)
		}
	}
}

// TestCombinePanic checks that the message holds the values.
func TestCombinePanic(t *testing.T) {
	f := fieldtest.Parse(t, "2^16")
	defer func() {
		if got, want := recover(), "field 2^16: Combine: len(src[1])=6, len(dst)=4"; got != want {
			t.Errorf("panic %q, want %q", got, want)
		}
	}()
	f.Combine(make([]byte, 4), make([]field.Element, 2), [][]byte{make([]byte, 4), make([]byte, 6)})
}

// TestCombineOutside gives Combine symbols that are no elements: the result means
// nothing, but there is one, and no memory outside dst is touched.
func TestCombineOutside(t *testing.T) {
	for _, name := range []string{"2^4", "2^11", "7", "257", "3^4", "3^7", "251^2", "2147483647", "goldilocks", "bls12-381"} {
		f := fieldtest.Parse(t, name)
		size := f.SymbolBytes()
		for _, n := range []int{1, 7, 200, 3000} {
			src := bytes.Repeat([]byte{0xff}, n*size)
			if f.Order().BitLen() <= 16 { // the first symbol that is no element
				field.PutSymbol(f, src, field.Code(f.Order().Uint64()))
			}
			memory := bytes.Repeat([]byte{0x5a}, (n+2)*size)
			f.Combine(memory[size:][:n*size], []field.Element{field.One, field.Last(f)}, [][]byte{src, src})
			for _, edge := range [][]byte{memory[:size], memory[(n+1)*size:]} {
				if !bytes.Equal(edge, bytes.Repeat([]byte{0x5a}, size)) {
					t.Errorf("%s, %d symbols: memory beside dst is %x", name, n, edge)
				}
			}
		}
	}
}
