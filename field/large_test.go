package field_test

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	bn254 "github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/consensys/gnark-crypto/field/babybear"
	"github.com/consensys/gnark-crypto/field/goldilocks"
	"github.com/consensys/gnark-crypto/field/koalabear"

	"volley/field"
	_ "volley/field/curves"
	"volley/field/fieldtest"
)

// large are the fields with names, as the literature has them.
var large = []struct {
	name    string
	order   string // in hexadecimal
	symbol  int
	factors map[string]int64 // the primes that divide q-1 and their exponents
	gnark   gnark
}{
	{"goldilocks", "ffffffff00000001", 8,
		map[string]int64{"2": 32, "3": 1, "5": 1, "17": 1, "257": 1, "65537": 1},
		gnarkOf[goldilocks.Element]()},
	{"babybear", "78000001", 4,
		map[string]int64{"2": 27, "3": 1, "5": 1},
		gnarkOf[babybear.Element]()},
	{"koalabear", "7f000001", 4,
		map[string]int64{"2": 24, "127": 1},
		gnarkOf[koalabear.Element]()},
	{"bls12-381", "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001", 32,
		map[string]int64{"2": 32, "3": 1, "11": 1, "19": 1, "10177": 1, "125527": 1, "859267": 1, "906349": 2,
			"2508409": 1, "2529403": 1, "52437899": 1, "254760293": 2},
		gnarkOf[bls12381.Element]()},
	{"bn254", "30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001", 32,
		map[string]int64{"2": 28, "3": 2, "13": 1, "29": 1, "983": 1, "11003": 1, "237073": 1, "405928799": 1,
			"1670836401704629": 1, "13818364434197438864469338081": 1},
		gnarkOf[bn254.Element]()},
}

// A gnark is the arithmetic of a field by gnark-crypto.
type gnark struct {
	add, sub, mul, div func(a, b *big.Int) *big.Int
}

func gnarkOf[E any, P interface {
	*E
	SetBigInt(*big.Int) *E
	BigInt(*big.Int) *big.Int
	Add(x, y *E) *E
	Sub(x, y *E) *E
	Mul(x, y *E) *E
	Div(x, y *E) *E
}]() gnark {
	op := func(f func(z P, x, y *E) *E) func(a, b *big.Int) *big.Int {
		return func(a, b *big.Int) *big.Int {
			var x, y, z E
			return P(f(&z, P(&x).SetBigInt(a), P(&y).SetBigInt(b))).BigInt(new(big.Int))
		}
	}
	return gnark{add: op(P.Add), sub: op(P.Sub), mul: op(P.Mul), div: op(P.Div)}
}

// integer reads a number that the test is sure of.
func integer(s string, base int) *big.Int {
	v, ok := new(big.Int).SetString(s, base)
	if !ok {
		panic("no number: " + s)
	}
	return v
}

// TestLarge checks the constants of the large fields. The generator is primitive
// and the smallest that is, given the factors of q-1, which are checked, too.
func TestLarge(t *testing.T) {
	one := big.NewInt(1)
	for _, c := range large {
		f := fieldtest.Parse(t, c.name)
		q := integer(c.order, 16)
		if f.Name() != c.name || f.Order().Cmp(q) != 0 || f.Characteristic().Cmp(q) != 0 || f.Degree() != 1 || f.SymbolBytes() != c.symbol || !q.ProbablyPrime(20) {
			t.Errorf("%s is %s: order %v, characteristic %v, degree %d, %d bytes to a symbol", c.name, f.Name(), f.Order(), f.Characteristic(), f.Degree(), f.SymbolBytes())
		}
		last := new(big.Int).Sub(q, one)
		product := big.NewInt(1)
		var primes []*big.Int
		for p, exponent := range c.factors {
			r := integer(p, 10)
			if !r.ProbablyPrime(20) {
				t.Errorf("%s: the factor %v is no prime", c.name, r)
			}
			primes = append(primes, r)
			product.Mul(product, new(big.Int).Exp(r, big.NewInt(exponent), nil))
		}
		if product.Cmp(last) != 0 {
			t.Fatalf("%s: the factors make %v, want q-1 = %v", c.name, product, last)
		}
		for g := int64(1); ; g++ {
			primitive := !slices.ContainsFunc(primes, func(r *big.Int) bool {
				return new(big.Int).Exp(big.NewInt(g), new(big.Int).Div(last, r), q).Cmp(one) == 0
			})
			if primitive != (field.Code(uint64(g)) == f.Generator()) {
				t.Fatalf("%s: the generator is %v; %d is primitive: %v", c.name, f.Generator(), g, primitive)
			}
			if primitive {
				break
			}
		}
		for _, name := range []string{c.name, q.String(), "00" + q.String()} {
			if g := fieldtest.Parse(t, name); g != f {
				t.Errorf("%s is %s, want %s itself", name, g.Name(), c.name)
			}
		}
	}
}

// nastyOf returns elements at which arithmetic in limbs and Montgomery forms may
// fail, and random ones.
func nastyOf(f field.Field, rng *rand.Rand) []field.Element {
	q := f.Order()
	var es []field.Element
	for shift := range uint(257) {
		if shift%32 != 0 {
			continue
		}
		for d := int64(-2); d <= 2; d++ {
			v := new(big.Int).Lsh(big.NewInt(1), shift)
			e, _ := field.FromInt(v.Mod(v.Add(v, big.NewInt(d)), q))
			es = append(es, e)
		}
	}
	half := new(big.Int).Rsh(q, 1)
	e, _ := field.FromInt(half)
	es = append(es, e, field.Last(f), f.Generator())
	for range 50 {
		es = append(es, randomElement(f, rng))
	}
	return es
}

// TestLargeArithmetic compares the operations on elements with math/big and with
// gnark-crypto.
func TestLargeArithmetic(t *testing.T) {
	for _, c := range large {
		f := fieldtest.Parse(t, c.name)
		q := f.Order()
		es := nastyOf(f, rand.New(rand.NewPCG(11, 12)))
		for _, a := range es {
			for _, b := range es {
				x, y := a.Int(), b.Int()
				check := func(op string, got field.Element, want, peer *big.Int) {
					want.Mod(want, q)
					if got.Int().Cmp(want) != 0 || peer.Cmp(want) != 0 {
						t.Fatalf("%s: %v %s %v = %v, want %v; gnark-crypto has %v", c.name, a, op, b, got, want, peer)
					}
				}
				check("+", f.Add(a, b), new(big.Int).Add(x, y), c.gnark.add(x, y))
				check("-", f.Sub(a, b), new(big.Int).Sub(x, y), c.gnark.sub(x, y))
				check("·", f.Mul(a, b), new(big.Int).Mul(x, y), c.gnark.mul(x, y))
				if !b.IsZero() {
					check("/", f.Mul(a, f.Inv(b)), x.Mul(x, new(big.Int).ModInverse(y, q)), c.gnark.div(a.Int(), y))
				}
			}
		}
	}
}

// TestLargeCombine compares Combine with sums by math/big and by gnark-crypto,
// of packets full of nasty elements, across the blocks of the kernels.
func TestLargeCombine(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for _, c := range large {
		f := fieldtest.Parse(t, c.name)
		nasty := nastyOf(f, rng)
		for _, symbols := range []int{1, 7, 8, 9, 15, 16, 17, 127, 128, 129, 300} {
			for _, sources := range []int{1, 2, 4, 5, 11} {
				coef, src := make([]field.Element, sources), make([][]byte, sources)
				for i := range src {
					coef[i] = nasty[rng.IntN(len(nasty))]
					src[i] = make([]byte, symbols*f.SymbolBytes())
					for k := range symbols {
						field.PutSymbol(f, src[i][k*f.SymbolBytes():], nasty[rng.IntN(len(nasty))])
					}
				}
				checkCombine(t, f, coef, src, c.gnark)
			}
		}
	}
}

// checkCombine compares Combine with sums by math/big and by gnark-crypto.
func checkCombine(t *testing.T, f field.Field, coef []field.Element, src [][]byte, peer gnark) {
	t.Helper()
	n := f.SymbolBytes()
	dst := bytes.Repeat([]byte{0xa5}, len(src[0]))
	f.Combine(dst, coef, src)
	for k := 0; k < len(dst); k += n {
		want, other := new(big.Int), new(big.Int)
		for i, s := range src {
			c, x := coef[i].Int(), field.Symbol(f, s[k:]).Int()
			other = peer.add(other, peer.mul(c, x))
			want.Add(want, x.Mul(c, x))
		}
		want.Mod(want, f.Order())
		if got := field.Symbol(f, dst[k:]); got.Int().Cmp(want) != 0 || other.Cmp(want) != 0 {
			t.Fatalf("%s: symbol %d of %d is %v, want %v; gnark-crypto has %v, coefficients %v", f.Name(), k/n, len(dst)/n, got, want, other, coef)
		}
	}
}

// FuzzLarge takes data for coefficients and packets, compares FirstInvalid with
// Contains and, where all are elements, Combine with math/big and gnark-crypto.
func FuzzLarge(f *testing.F) {
	for i := range large {
		f.Add(byte(i), byte(2), bytes.Repeat([]byte{0xff, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f}, 40))
		f.Add(byte(i), byte(0), bytes.Repeat([]byte{0xff}, 320))
		f.Add(byte(i), byte(5), bytes.Repeat([]byte("volley"), 300))
	}
	f.Fuzz(func(t *testing.T, which, count byte, data []byte) {
		c := large[int(which)%len(large)]
		g := fieldtest.Parse(t, c.name)
		n, sources := g.SymbolBytes(), int(count)%9+1
		data = data[:min(len(data), 1<<12)]
		symbols := len(data)/n/sources - 1 // and the coefficients
		if symbols < 0 {
			return
		}
		data = data[:sources*(symbols+1)*n]
		invalid := -1
		for k := 0; k < len(data) && invalid < 0; k += n {
			if !field.Contains(g, field.Symbol(g, data[k:])) {
				invalid = k / n
			}
		}
		if got := g.FirstInvalid(data); got != invalid {
			t.Fatalf("%s: FirstInvalid(% x) = %d, want %d", c.name, data, got, invalid)
		}
		for k := 0; k < len(data); k += n { // now make elements of all
			e := field.Symbol(g, data[k:])
			if !field.Contains(g, e) {
				e, _ = field.FromInt(new(big.Int).Mod(e.Int(), g.Order()))
				field.PutSymbol(g, data[k:], e)
			}
		}
		coef, src := make([]field.Element, sources), make([][]byte, sources)
		for i := range src {
			coef[i] = field.Symbol(g, data[i*n:])
			src[i] = data[(sources+i*symbols)*n:][:symbols*n]
		}
		checkCombine(t, g, coef, src, c.gnark)
	})
}

// BenchmarkGnark is Combine by the vectors of gnark-crypto alone, with packets
// that are vectors already, to compare with BenchmarkCombine.
func BenchmarkGnark(b *testing.B) {
	benchmarkGnark[goldilocks.Element, goldilocks.Vector](b, "goldilocks", 8)
	benchmarkGnark[babybear.Element, babybear.Vector](b, "babybear", 4)
	benchmarkGnark[bls12381.Element, bls12381.Vector](b, "bls12-381", 32)
}

func benchmarkGnark[E any, V ~[]E, P interface {
	*V
	ScalarMul(V, *E)
	Add(a, b V)
	MustSetRandom()
}](b *testing.B, name string, symbolBytes int) {
	const sources, size, block = 16, 1 << 20, 128
	b.Run(fmt.Sprintf("field=%s/sources=%d/len=%s", name, sources, sizeName(size)), func(b *testing.B) {
		var src [sources]V
		for i := range src {
			src[i] = make(V, size/symbolBytes)
			P(&src[i]).MustSetRandom()
		}
		coef, dst, product := make(V, sources), make(V, size/symbolBytes), make(V, block)
		P(&coef).MustSetRandom()
		b.SetBytes(sources * size)
		for b.Loop() {
			for lo := 0; lo < len(dst); lo += block {
				sum := dst[lo : lo+block]
				clear(sum)
				for i, s := range src {
					P(&product).ScalarMul(s[lo:lo+block], &coef[i])
					P(&sum).Add(sum, product)
				}
			}
		}
	})
}
