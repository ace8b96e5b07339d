package field_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/fuzzlimit"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, want string
		order      int64
		generator  uint64
	}{
		{"2", "2", 2, 1},
		{"2^1", "2", 2, 1},
		{"3", "3", 3, 2},
		{"0257", "257", 257, 3},
		{"257^1", "257", 257, 3},
		{"65537", "65537", 65537, 3},
		{"4", "2^2", 4, 2},
		{"2^8", "2^8", 256, 2},
		{"256", "2^8", 256, 2},
		{"2^8:0x11d", "2^8", 256, 2},
		{"2^8:285", "2^8", 256, 2},
		{"2^8:0x11b", "2^8:0x11b", 256, 3},
		{"2^16", "2^16", 65536, 2},
		{"2^16:0x1002d", "2^16:0x1002d", 65536, 2},
		{"2^4:0x1f", "2^4:0x1f", 16, 3},
		{"16:31", "2^4:0x1f", 16, 3},
		{"babybear", "babybear", 2013265921, 31},
		{"2013265921", "babybear", 2013265921, 31},
		{"2130706433", "koalabear", 2130706433, 3},
	} {
		f, err := field.Parse(c.name)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if f.Name() != c.want || f.Order().Cmp(big.NewInt(c.order)) != 0 || f.Generator() != field.Code(c.generator) {
			t.Errorf("%s is %s of order %v with generator %v, want %s, %d, %d",
				c.name, f.Name(), f.Order(), f.Generator(), c.want, c.order, c.generator)
		}
		if g := fieldtest.Parse(t, c.name); g != f {
			t.Errorf("%s parsed again is another field", c.name)
		}
	}
}

func TestParseErrors(t *testing.T) {
	const (
		wanted   = "; want a prime below 2^31, a power of 2 from 2^2 to 2^16, one with a polynomial such as 2^8:0x11b, or a name: babybear, koalabear, goldilocks, bls12-381, bn254"
		syntax   = "not a field" + wanted
		tooLarge = " is too large" + wanted
		odd      = " is a power of an odd prime" + wanted
	)
	long := strings.Repeat("9", 1000)
	type row struct{ name, want string }
	rows := []row{
		{"0", "no field has 0 elements; the smallest is 2"},
		{"1", "no field has 1 elements; the smallest is 2"},
		{"1^5", "no field has 1^5 elements; the smallest is 2"},
		{"2^0", "the exponent is 0; want 1 or more"},
		{"6", "6 = 2·3 is no prime power"},
		{"360", "360 = 2^3·3^2·5 is no prime power"},
		{"4^2", "the base 4 = 2^2 is no prime; write 2^4"},
		{"2^17", "q = 2^17" + tooLarge},
		{"3^4", "q = 3^4" + odd},
		{"81", "q = 81" + odd},
		{"9:10", "q = 9" + odd},
		{"257^2", "q = 257^2" + odd},
		{"3^17", "q = 3^17" + tooLarge},
		{"2147483648", "q = 2147483648" + tooLarge},
		{"18446744069414584320", "q = 18446744069414584320" + tooLarge},
		{"99999999999999999999^9999999999", "q = 99999999999999999999^9999999999" + tooLarge},
		{long, "q = " + long[:37] + "..." + tooLarge},
		{"2^8:", `"" is no polynomial; want a code Σ c_i·2^i such as 0x11b or 283`},
		{"2^8:11b", `"11b" is no polynomial; want a code Σ c_i·2^i such as 0x11b or 283`},
		{"2^8:0x11d:0x11d", `"0x11d:0x11d" is no polynomial; want a code Σ c_i·2^i such as 0x11b or 283`},
		{"2^8:0x1b", "0x1b is no polynomial of degree 8; want a code from 0x100 to 0x1ff"},
		{"2^8:0", "0 is no polynomial of degree 8; want a code from 0x100 to 0x1ff"},
		{"257:300", "a prime field has no polynomial; write 257"},
		{"2^1:0x3", "a prime field has no polynomial; write 2"},
		{"2013265921:2013265922", "a prime field has no polynomial; write 2013265921"},
		{"2^8:0x11a", "the polynomial 0x11a is reducible: 0x2 divides it; want an irreducible one such as 0x11d"},
		{"2^4:0x15", "the polynomial 0x15 is reducible: 0x7 divides it; want an irreducible one such as 0x13"},
	}
	for _, name := range []string{
		"", "x", "^", "2^", "^8", "2^8^2", " 257", "+257", "-257", "1_000",
		"0x101", "2^-1", "GF(256)", "Goldilocks", "goldilock", "goldilocks ", "goldilocks^2", "babybear:5", "bls12381", "bls12-377",
	} {
		rows = append(rows, row{name, syntax})
	}
	for _, c := range rows {
		f, err := field.Parse(c.name)
		if err == nil {
			t.Errorf("%q is the field %s, want an error", c.name, f.Name())
			continue
		}
		quoted := fmt.Sprintf("%q", c.name)
		if len(c.name) > 40 {
			quoted = fmt.Sprintf("%q", c.name[:37]+"...")
		}
		if want := "field " + quoted + ": " + c.want; err.Error() != want {
			t.Errorf("%q:\n got %s\nwant %s", c.name, err, want)
		}
	}
}

// TestIrreducible parses all polynomials of a degree and compares the number of
// fields with Gauss's formula Σ_{d|m} μ(d)·2^(m/d) / m.
func TestIrreducible(t *testing.T) {
	for _, c := range []struct{ m, want int }{{2, 1}, {3, 2}, {4, 3}, {6, 9}, {8, 30}} {
		n := 0
		for code := 1 << c.m; code < 2<<c.m; code++ {
			if _, err := field.Parse(fmt.Sprintf("2^%d:%d", c.m, code)); err == nil {
				n++
			}
		}
		if n != c.want {
			t.Errorf("%d polynomials of degree %d make fields, want %d", n, c.m, c.want)
		}
	}
}

// TestPrimes compares the primes that Parse knows with those of a sieve.
func TestPrimes(t *testing.T) {
	const n = 3000
	var composite [n]bool
	for i := 2; i < n; i++ {
		for j := 2 * i; j < n; j += i {
			composite[j] = true
		}
		f, err := field.Parse(fmt.Sprint(i))
		if prime := err == nil && f.Degree() == 1; prime == composite[i] {
			t.Errorf("%d: the sieve says composite = %v, Parse says %v", i, composite[i], err)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, k := range field.Kinds() {
		if k.Pattern == "" || k.Doc == "" {
			t.Errorf("incomplete: %+v", k)
		}
		f := fieldtest.Parse(t, k.Example)
		if _, hex, ok := strings.Cut(k.Doc, "q = 0x"); ok && !strings.HasPrefix(hex, f.Order().Text(16)+";") {
			t.Errorf("%s: %s, and q is %x", k.Pattern, k.Doc, f.Order())
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{
		"2", "257", "2^8", "2^8:0x11b", "2^16:0x1002d", "3^4", "81", "2147483647", "4^2", "360",
		"99999999999999999999^9999999999", "2^8:0xffffffffffffffffffffffff", "1^1", "0", "", "^", ":", "2^8:0x11a",
		"goldilocks", "18446744069414584321", "babybear", "2013265921:2013265922", "bls12-381", "bn254",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		defer fuzzlimit.Hold(t, len(name))()
		a, err := field.Parse(name)
		if err != nil {
			if len(err.Error()) > 400 {
				t.Errorf("the error has %d bytes: %v", len(err.Error()), err)
			}
			return
		}
		b, err := field.Parse(a.Name())
		if err != nil {
			t.Fatal(err)
		}
		if b.Name() != a.Name() || b.Order().Cmp(a.Order()) != 0 || b.Generator() != a.Generator() {
			t.Errorf("%q is %s, which is %s", name, a.Name(), b.Name())
		}
		if g := a.Generator(); a.Mul(g, a.Inv(g)) != field.One {
			t.Errorf("%s: g·(1/g) is not 1", a.Name())
		}
	})
}
