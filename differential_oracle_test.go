package volley_test

import (
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/field/goldilocks"

	"volley/matrix"
)

// An oracle is the arithmetic of a field once more, from what the documentation says
// of symbols and polynomials: by math/big in a prime field, by the schoolbook on
// coefficients in others. It shares nothing with package field.
type oracle struct {
	p, q        *big.Int
	m           int
	modulus     []int // coefficients of the monic polynomial; nil in a prime field
	symbolBytes int
	generator   number // the primitive element of smallest code
}

// A number is an element: v in a prime field, else the coefficients d.
type number struct {
	v *big.Int
	d []int
}

func bigInt(s string) *big.Int {
	n, ok := new(big.Int).SetString(s, 0)
	if !ok {
		panic("no number: " + s)
	}
	return n
}

// Factors of q-1 that are out of reach of trial division.
var hardFactors = map[string][]string{
	"bls12-381": {"2", "3", "11", "19", "10177", "125527", "859267", "906349", "2508409", "2529403", "52437899", "254760293"},
	"bn254":     {"2", "3", "13", "29", "983", "11003", "237073", "405928799", "1670836401704629", "13818364434197438864469338081"},
}

// newOracle returns the field of p^m elements by the polynomial of that code, 0 being
// the default.
func newOracle(p *big.Int, m int, polynomial uint64) *oracle {
	o := &oracle{p: p, q: new(big.Int).Exp(p, big.NewInt(int64(m)), nil), m: m}
	last := new(big.Int).Sub(o.q, big.NewInt(1))
	for _, n := range []int{32, 8, 4, 2, 1} {
		if last.BitLen() <= 8*n {
			o.symbolBytes = n
		}
	}
	var factors []*big.Int
	rest := new(big.Int).Set(last)
	divide := func(r *big.Int) {
		for n := 0; new(big.Int).Rem(rest, r).Sign() == 0; n++ {
			if rest.Quo(rest, r); n == 0 {
				factors = append(factors, r)
			}
		}
	}
	for _, list := range hardFactors {
		if last.BitLen() > 64 {
			for _, r := range list {
				divide(bigInt(r))
			}
		}
	}
	for r := int64(2); r < 1<<20 && new(big.Int).Mul(big.NewInt(r), big.NewInt(r)).Cmp(rest) <= 0; r++ {
		divide(big.NewInt(r))
	}
	if rest.Cmp(big.NewInt(1)) > 0 {
		factors = append(factors, rest)
	}
	for _, r := range factors {
		if !r.ProbablyPrime(20) {
			panic(fmt.Sprintf("%v of %v is no prime", r, last))
		}
	}
	primitive := func(a number) bool {
		for _, r := range factors {
			if o.equal(o.pow(a, new(big.Int).Quo(last, r)), o.one()) {
				return false
			}
		}
		return o.equal(o.pow(a, last), o.one())
	}
	if m > 1 {
		if polynomial == 0 && o.q.Int64() == 1<<16 && m == 16 {
			polynomial = 0x1100b
		}
		o.modulus = digits(polynomial, p, m+1)
		for polynomial == 0 || o.modulus == nil { // the primitive one of smallest code
			polynomial = max(polynomial+1, o.q.Uint64())
			o.modulus = digits(polynomial, p, m+1)
			if x := o.element(p); !primitive(x) {
				o.modulus = nil
			}
		}
	}
	for c := int64(1); ; c++ {
		if a := o.code(c); primitive(a) {
			o.generator = a
			return o
		}
	}
}

// digits returns the lowest n digits of a code over p.
func digits(code uint64, p *big.Int, n int) []int {
	d := make([]int, n)
	for i := range d {
		d[i] = int(code % p.Uint64())
		code /= p.Uint64()
	}
	return d
}

// irreducible reports whether no polynomial of a lower degree divides the monic one of
// this code and degree m.
func irreducible(polynomial uint64, p *big.Int, m int) bool {
	q := p.Uint64()
	lead := q
	for d := 1; d <= m/2; d, lead = d+1, lead*q {
		for c := lead; c < 2*lead; c++ { // monic, of degree d
			g, rest := digits(c, p, d+1), digits(polynomial, p, m+1)
			if reduce(rest, g, int(q)); !slices.ContainsFunc(rest[:d], func(x int) bool { return x != 0 }) {
				return false
			}
		}
	}
	return true
}

// reduce takes a polynomial modulo a monic one, coefficients modulo p.
func reduce(acc, modulus []int, p int) {
	m := len(modulus) - 1
	for i := len(acc) - 1; i >= m; i-- {
		c := acc[i] % p
		for j, x := range modulus {
			acc[i-m+j] -= c * x
		}
	}
	for i := range min(m, len(acc)) {
		if acc[i] %= p; acc[i] < 0 {
			acc[i] += p
		}
	}
}

// element returns the element of a code, codeOf the reverse.
func (o *oracle) element(code *big.Int) number {
	if code.Sign() < 0 || code.Cmp(o.q) >= 0 {
		panic(fmt.Sprintf("no element of %v: %v", o.q, code))
	}
	if o.m == 1 {
		return number{v: code}
	}
	return number{d: digits(code.Uint64(), o.p, o.m)}
}

func (o *oracle) code(code int64) number { return o.element(big.NewInt(code)) }
func (o *oracle) one() number            { return o.code(1) }

func (o *oracle) codeOf(a number) *big.Int {
	if o.m == 1 {
		return a.v
	}
	c := uint64(0)
	for i := o.m - 1; i >= 0; i-- {
		c = c*o.p.Uint64() + uint64(a.d[i])
	}
	return new(big.Int).SetUint64(c)
}

// entries returns those of a.
func (o *oracle) entries(a matrix.Matrix) [][]number {
	e := make([][]number, a.Rows())
	for i := range e {
		for j := range a.Cols() {
			e[i] = append(e[i], o.element(a.At(i, j).Int()))
		}
	}
	return e
}

func (o *oracle) equal(a, b number) bool { return o.codeOf(a).Cmp(o.codeOf(b)) == 0 }
func (o *oracle) isZero(a number) bool   { return o.codeOf(a).Sign() == 0 }

// symbol reads a symbol, put writes one: little-endian.
func (o *oracle) symbol(b []byte) number {
	b = slices.Clone(b[:o.symbolBytes])
	slices.Reverse(b)
	return o.element(new(big.Int).SetBytes(b))
}

func (o *oracle) put(b []byte, a number) {
	o.codeOf(a).FillBytes(b[:o.symbolBytes])
	slices.Reverse(b[:o.symbolBytes])
}

// dot returns Σ a_i·b_i: all products are made of it.
func (o *oracle) dot(a, b []number) number {
	if o.m == 1 {
		sum, term := new(big.Int), new(big.Int)
		for i := range a {
			sum.Add(sum, term.Mul(a[i].v, b[i].v))
		}
		return number{v: sum.Mod(sum, o.p)}
	}
	acc := make([]int, 2*o.m-1)
	for n := range a {
		for i, x := range a[n].d {
			if x != 0 {
				for j, y := range b[n].d {
					acc[i+j] += x * y
				}
			}
		}
	}
	reduce(acc, o.modulus, int(o.p.Int64()))
	return number{d: acc[:o.m]}
}

func (o *oracle) mul(a, b number) number { return o.dot([]number{a}, []number{b}) }
func (o *oracle) add(a, b number) number {
	return o.dot([]number{a, b}, []number{o.one(), o.one()})
}

func (o *oracle) sub(a, b number) number {
	minus := new(big.Int).Sub(o.p, big.NewInt(1)) // -1, also as a code
	return o.dot([]number{a, b}, []number{o.one(), o.element(minus)})
}

func (o *oracle) pow(a number, n *big.Int) number {
	if o.m == 1 {
		return number{v: new(big.Int).Exp(a.v, n, o.p)}
	}
	r := o.one()
	for i := n.BitLen() - 1; i >= 0; i-- {
		if r = o.mul(r, r); n.Bit(i) == 1 {
			r = o.mul(r, a)
		}
	}
	return r
}

func (o *oracle) inv(a number) number {
	if o.isZero(a) {
		panic("oracle: 1/0")
	}
	return o.pow(a, new(big.Int).Sub(o.q, big.NewInt(2)))
}

// draw returns a random element.
func (o *oracle) draw(rng *rand.Rand) number {
	words := make([]big.Word, 0, 5)
	for range (o.q.BitLen() + 63 + 64) / 64 { // 64 bits more than it takes: nearly uniform
		words = append(words, big.Word(rng.Uint64()))
	}
	n := new(big.Int).SetBits(words)
	return o.element(n.Mod(n, o.q))
}

// A recipe names a matrix as a [matrices.Spec] does; lists stand for points from
// elsewhere.
type recipe struct {
	family               string
	seed                 uint64 // of random
	points, omega, alpha string
	lists                [2][]number // points, where the word is "list"; omega and alpha, or alpha
	reversed, inverse    bool
	k, r                 int
}

// atMost reports whether n <= q+more.
func (o *oracle) atMost(n, more int) bool {
	return big.NewInt(int64(n-more)).Cmp(o.q) <= 0
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// unitGCD returns gcd(n, q-1).
func (o *oracle) unitGCD(n int) int {
	last := new(big.Int).Sub(o.q, big.NewInt(1))
	return int(last.GCD(nil, nil, last, big.NewInt(int64(n))).Int64())
}

// pool returns n distinct elements that are, as far as they go, fibres of one map:
// cosets of a subgroup around a centre, translates of a subspace, roots of cubics; or
// any elements. It returns nil where the field has not so many.
func (o *oracle) pool(rng *rand.Rand, kind string, n, fibre int) []number {
	if !o.atMost(n, 0) {
		return nil
	}
	var list []number
	seen := map[string]bool{}
	add := func(points ...number) {
		for _, z := range points { // all or none
			if seen[o.codeOf(z).String()] {
				return
			}
		}
		for _, z := range points {
			seen[o.codeOf(z).String()] = true
			list = append(list, z)
		}
	}
	centre := o.draw(rng)
	if rng.IntN(2) == 0 {
		centre = o.code(0)
	}
	var basis []number
	for range bits.Len(uint(max(1, fibre))) - 1 {
		basis = append(basis, o.draw(rng))
	}
	linear, small := o.draw(rng), o.q.BitLen() <= 12
	z := o.unitGCD(fibre)
	for range 4 * n {
		if len(list) >= n {
			break
		}
		a := o.draw(rng)
		switch {
		case kind == "cosets":
			beta := o.pow(o.generator, new(big.Int).Quo(new(big.Int).Sub(o.q, big.NewInt(1)), big.NewInt(int64(z))))
			var coset []number
			for j := range z {
				coset = append(coset, o.add(centre, o.mul(a, o.pow(beta, big.NewInt(int64(j))))))
			}
			if z == 1 || !o.isZero(a) {
				add(coset...)
			}
		case kind == "subspaces" && o.p.BitLen() < 4:
			space := []number{a}
			for _, b := range basis {
				for _, x := range space[:len(space):len(space)] {
					for c := int64(1); c < o.p.Int64(); c++ {
						space = append(space, o.add(x, o.mul(o.code(c), b)))
					}
				}
				if len(space) >= fibre {
					break
				}
			}
			distinct := map[string]bool{}
			for _, x := range space {
				distinct[o.codeOf(x).String()] = true
			}
			if len(distinct) == len(space) {
				add(space...)
			}
		case kind == "cubics" && small:
			cubic := func(z number) number { return o.mul(z, o.add(o.mul(z, z), linear)) }
			var roots []number
			for c := range o.q.Int64() {
				if z := o.code(c); o.equal(cubic(z), cubic(a)) {
					roots = append(roots, o.add(z, centre))
				}
			}
			if len(roots) == 3 {
				add(roots...)
			}
		default:
			add(a)
		}
	}
	for c := int64(0); len(list) < n; c++ { // what the field has left
		add(o.code(c))
	}
	return list[:n]
}

// TestOracle compares the oracle with values from elsewhere: AES, FIPS 197, section
// 4.2, and gnark-crypto.
func TestOracle(t *testing.T) {
	aes := newOracle(big.NewInt(2), 8, 0x11b)
	if got := aes.codeOf(aes.mul(aes.code(0x57), aes.code(0x83))).Int64(); got != 0xc1 {
		t.Errorf("57·83 = %x over AES's field, want c1", got)
	}
	for p, m := range map[int64]int{2: 8, 3: 4, 7: 2} {
		o := newOracle(big.NewInt(p), m, 0)
		for c := int64(1); c < o.q.Int64(); c++ {
			if a := o.code(c); !o.equal(o.mul(a, o.inv(a)), o.one()) {
				t.Fatalf("%d^%d: no inverse of %d", p, m, c)
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	gold, bls := newOracle(goldilocks.Modulus(), 1, 0), newOracle(fr.Modulus(), 1, 0)
	for range 100 {
		var x, y, z goldilocks.Element
		a, b := gold.draw(rng), gold.draw(rng)
		z.Mul(x.SetBigInt(a.v), y.SetBigInt(b.v)).Add(&z, &x)
		if got := gold.add(gold.mul(a, b), a).v; got.Cmp(z.BigInt(new(big.Int))) != 0 {
			t.Errorf("goldilocks: %v·%v+%v = %v, gnark has %v", a.v, b.v, a.v, got, &z)
		}
		var u, v, w fr.Element
		a, b = bls.draw(rng), bls.draw(rng)
		w.Div(u.SetBigInt(a.v), v.SetBigInt(b.v)).Sub(&w, &u)
		if got := bls.sub(bls.mul(a, bls.inv(b)), a).v; got.Cmp(w.BigInt(new(big.Int))) != 0 {
			t.Errorf("bls12-381: %v/%v-%v = %v, gnark has %v", a.v, b.v, a.v, got, &w)
		}
	}
}
