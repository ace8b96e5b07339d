package field_test

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/reedsolomon"

	"volley/field"
	_ "volley/field/curves"
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
			s := newSuite(fieldtest.Parse(t, name))
			s.laws(t)
			s.packets(t)
		})
	}
}

// oddFields are fields of odd characteristic of all kinds: of narrow and of wide lanes,
// with symbols of every size, and at the limits of the lanes.
var oddFields = []string{"3", "127", "163", "251", "257", "32749", "32771", "65521", "65537", "2147483647",
	"babybear", "koalabear", "goldilocks", "bls12-381", "bn254", "3^4", "7^2", "251^2", "13^4", "3^10"}

// TestPortable checks the operations on packets as they are where there are no vector instructions.
func TestPortable(t *testing.T) {
	for _, name := range oddFields {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newSuite(field.Portable(name)).packets(t)
		})
	}
}

// TestKernelPaths does so with the kernels of every set of instructions that the processor has.
func TestKernelPaths(t *testing.T) {
	field.ForKernels(func(path string) {
		t.Logf("runs: %s", path)
		for _, name := range []string{"2^8", "2^8:0x11b", "2^5", "2", "2^16", "2^16:0x1002d", "2^12", "2^9"} {
			t.Run(path+"/"+name, newSuite(fieldtest.Parse(t, name)).packets)
		}
	})
}

// TestButterfliesAreFound pins down which maps get a kernel of their own.
func TestButterfliesAreFound(t *testing.T) {
	field.ForKernels(func(path string) {
		for _, name := range []string{"2^8", "2^16"} {
			s := newSuite(fieldtest.Parse(t, name))
			build := s.Map
			if p, ok := s.Field.(field.Planar); ok {
				build = p.PlanarMap
			}
			for _, side := range []int{2, 4} {
				for kind, rows := range s.mapRows(newRand(), side, side) {
					want := strings.HasPrefix(kind, "butterfl") && path != "generic Go"
					if got := field.IsButterfly(build(rows)); got != want && !strings.Contains(kind, "0, 1") {
						t.Errorf("%s: %s: coefficients %s: found to be a butterfly: %v", path, name, kind, got)
					}
				}
			}
		}
	})
}

// TestAllocations holds Combine and maps to their promise for long packets, apart
// from scratch memory that the garbage collector took away.
func TestAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has pools forget")
	}
	check := func(kind string, f field.Field) {
		s, rng := newSuite(f), newRand()
		for _, x := range []shape{{1, 1, 8192}, {2, 2, 64}, {2, 20, 700}, {8, 8, 65}} {
			in, out := make([][]byte, x.inputs), make([][]byte, x.outputs)
			for j := range in {
				in[j] = s.randomize(rng, make([]byte, x.symbols*s.SymbolBytes()))
			}
			for i := range out {
				out[i] = s.randomize(rng, make([]byte, len(in[0])))
			}
			rows := s.mapRows(rng, x.outputs, x.inputs)["random"]
			if x.outputs == 2 && x.inputs == 2 {
				rows = s.mapRows(rng, 2, 2)["of a sum and a difference"]
			}
			maps := map[string]func(){"Combine": func() { f.Combine(out[0], rows[0], in) }}
			for way, apply := range s.ways(rows) {
				if !strings.Contains(way, "copies") {
					maps[way] = func() { apply(out, in, false); apply(out, in, true) }
				}
			}
			for way, run := range maps {
				if n := testing.AllocsPerRun(20, run); n >= 1 {
					t.Errorf("%s%s: %s of %v allocates %v times", kind, f.Name(), way, x, n)
				}
			}
		}
	}
	for _, name := range oddFields {
		check("", fieldtest.Parse(t, name))
		check("portable ", field.Portable(name))
	}
	field.ForKernels(func(path string) {
		for _, name := range []string{"2^4", "2^8", "2^8:0x11b", "2^16"} {
			check(path+", ", fieldtest.Parse(t, name))
		}
	})
}

// TestMul compares products with polynomials multiplied and divided by hand. It
// pins the default polynomials down, too.
func TestMul(t *testing.T) {
	for name, code := range map[string]uint64{ // of the polynomial
		"2^2": 0x7, "2^3": 0xb, "2^4": 0x13, "2^5": 0x25, "2^6": 0x43, "2^7": 0x83, "2^8": 0x11d, "2^8:0x11b": 0x11b,
		"2^9": 0x211, "2^10": 0x409, "2^11": 0x805, "2^12": 0x1053, "2^13": 0x201b, "2^14": 0x402b, "2^15": 0x8003,
		"2^16": 0x1100b, "2^16:0x1002d": 0x1002d,
		"3^2": 2 + 3 + 9, "3^4": 2 + 3 + 81, "3^4:0x59": 2 + 2*3 + 81, "5^2": 2 + 5 + 25, "5^3": 2 + 3*5 + 125, "7^2": 3 + 7 + 49,
		"257": 257, "2147483647": 2147483647,
	} {
		f := fieldtest.Parse(t, name)
		p, q := f.Characteristic().Uint64(), f.Order().Uint64()
		check := func(a, b uint64) {
			if got, want := f.Mul(field.Code(a), field.Code(b)), field.Code(mulCodes(a, b, p, f.Degree(), code)); got != want {
				t.Fatalf("%s: %d·%d = %v, want %v", name, a, b, got, want)
			}
		}
		rng := rand.New(rand.NewPCG(3, 4))
		for i := range uint64(3000) {
			check(i%q, i/q%q)
			check(rng.Uint64N(q), rng.Uint64N(q))
			check(q-1-i%q, rng.Uint64N(q))
		}
	}
}

// mulCodes multiplies as at school, modulo a polynomial of degree m.
func mulCodes(a, b, p uint64, m int, poly uint64) uint64 {
	digits := func(code uint64) []uint64 { // lowest first
		v := make([]uint64, m+1)
		for i := range v {
			v[i] = code % p
			code /= p
		}
		return v
	}
	u, v, d, x := digits(a), digits(b), digits(poly), make([]uint64, 2*m)
	for i := range m {
		for j := range m {
			x[i+j] = (x[i+j] + u[i]*v[j]) % p
		}
	}
	for i := 2*m - 1; i >= m; i-- {
		for j := range m {
			x[i-m+j] = (x[i-m+j] + x[i]*(p-d[j])) % p
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
	for _, c := range []struct{ in, want string }{
		{"0", "0"}, {" 256\n", "256"},
		{"257", "257 is outside the field 257: want 0 to 256"},
		{"-1", "-1 is outside the field 257: want 0 to 256"},
		{strings.Repeat("9", 100), strings.Repeat("9", 37) + "... is outside the field 257: want 0 to 256"},
		{"", `"" is not a decimal number`},
		{"0x10", `"0x10" is not a decimal number`},
	} {
		e, err := field.ParseElement(fieldtest.Parse(t, "257"), c.in)
		got := e.String()
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q: got %s, want %s", c.in, got, c.want)
		}
	}
	ordered := []field.Element{{}, {1}, {^uint64(0)}, {0, 1}, {5, 1}, {0, 0, 0, 1}, {9, 0, 0, 1}}
	for i, a := range ordered {
		for j, b := range ordered {
			if a.Less(b) != (i < j) {
				t.Errorf("%v < %v: %v", a, b, a.Less(b))
			}
		}
	}
}

// large are the fields with names, as the literature has them.
var large = []struct {
	name, order string           // in hexadecimal
	factors     map[string]int64 // the primes that divide q-1 and their exponents
}{
	{"goldilocks", "ffffffff00000001", map[string]int64{"2": 32, "3": 1, "5": 1, "17": 1, "257": 1, "65537": 1}},
	{"babybear", "78000001", map[string]int64{"2": 27, "3": 1, "5": 1}},
	{"koalabear", "7f000001", map[string]int64{"2": 24, "127": 1}},
	{"bls12-381", "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001",
		map[string]int64{"2": 32, "3": 1, "11": 1, "19": 1, "10177": 1, "125527": 1, "859267": 1, "906349": 2,
			"2508409": 1, "2529403": 1, "52437899": 1, "254760293": 2}},
	{"bn254", "30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001",
		map[string]int64{"2": 28, "3": 2, "13": 1, "29": 1, "983": 1, "11003": 1, "237073": 1, "405928799": 1,
			"1670836401704629": 1, "13818364434197438864469338081": 1}},
}

// TestLarge checks the constants of the large fields. The generator is primitive
// and the smallest that is, given the factors of q-1, which are checked, too.
func TestLarge(t *testing.T) {
	one := big.NewInt(1)
	for _, c := range large {
		f := fieldtest.Parse(t, c.name)
		q, _ := new(big.Int).SetString(c.order, 16)
		if f.Order().Cmp(q) != 0 || f.Degree() != 1 {
			t.Errorf("%s is %s: order %v, degree %d", c.name, f.Name(), f.Order(), f.Degree())
		}
		last, product := new(big.Int).Sub(q, one), big.NewInt(1)
		var primes []*big.Int
		for p, exponent := range c.factors {
			r, _ := new(big.Int).SetString(p, 10)
			if !r.ProbablyPrime(20) {
				t.Errorf("%s: the factor %v is no prime", c.name, r)
			}
			primes = append(primes, r)
			product.Mul(product, new(big.Int).Exp(r, big.NewInt(exponent), nil))
		}
		if product.Cmp(last) != 0 {
			t.Fatalf("%s: the factors make %v, want q-1 = %v", c.name, product, last)
		}
		newSuite(f).isLeastPrimitive(t, primes)
		for _, name := range []string{c.name, q.String(), "00" + q.String()} {
			if g := fieldtest.Parse(t, name); g != f {
				t.Errorf("%s is %s, want %s itself", name, g.Name(), c.name)
			}
		}
	}
}

// FuzzLarge takes data for coefficients and packets, compares FirstInvalid with
// Contains and, where all are elements, Combine with the operations on elements.
func FuzzLarge(f *testing.F) {
	var suites []*suite
	for i, c := range large {
		suites = append(suites, newSuite(fieldtest.Parse(f, c.name)))
		f.Add(byte(i), byte(2), []byte(strings.Repeat("\xff\x00\x00\x00\xff\xff\xff\x7f", 40)))
		f.Add(byte(i), byte(0), []byte(strings.Repeat("\xff", 320)))
		f.Add(byte(i), byte(5), []byte(strings.Repeat("volley", 300)))
	}
	f.Fuzz(func(t *testing.T, which, count byte, data []byte) {
		s := suites[int(which)%len(large)]
		n, sources := s.SymbolBytes(), int(count)%9+1
		symbols := min(len(data), 1<<12)/n/sources - 1 // and the coefficients
		if symbols < 0 {
			return
		}
		data = data[:sources*(symbols+1)*n]
		invalid := -1
		for k := len(data) - n; k >= 0; k -= n {
			if !field.Contains(s, field.Symbol(s, data[k:])) {
				invalid = k / n
			}
		}
		if got := s.FirstInvalid(data); got != invalid {
			t.Fatalf("%s: FirstInvalid(% x) = %d, want %d", s.Name(), data, got, invalid)
		}
		elements := make([]byte, len(data))
		s.fill(elements, func(k int) field.Element { return s.element(field.Symbol(s, data[k*n:]).Int()) })
		coef, src := make([]field.Element, sources), make([][]byte, sources)
		for i := range src {
			coef[i] = field.Symbol(s, elements[i*n:])
			src[i] = elements[(sources+i*symbols)*n:][:symbols*n]
		}
		s.compare(t, "fuzzed", coef, src, symbols)
	})
}
