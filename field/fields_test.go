package field_test

import (
	"math/big"
	"strings"
	"testing"

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
		"2^4:0x1f", // where X is not primitive
	}
	if verifyall.Enabled { // more of each kind
		names = append(names, "5", "7", "61", "97", "4093", "16381", "1000003",
			"2^3", "2^5", "2^6", "2^10", "2^11", "2^13", "2^14", "2^12:0x1069")
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
	"babybear", "koalabear", "goldilocks", "bls12-381", "bn254"}

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

// large are the fields with names.
var large = []string{"goldilocks", "babybear", "koalabear", "bls12-381", "bn254"}

// FuzzLarge takes data for coefficients and packets, compares FirstInvalid with
// Contains and, where all are elements, Combine with the operations on elements.
func FuzzLarge(f *testing.F) {
	var suites []*suite
	for i, name := range large {
		suites = append(suites, newSuite(fieldtest.Parse(f, name)))
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
