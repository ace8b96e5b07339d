package field

import "math/bits"

// maxDegree is the largest degree over a prime field: 2^16 has it.
const maxDegree = 16

// A vector is a polynomial over F_p of degree at most maxDegree, coefficient of
// X^i at index i.
type vector [maxDegree + 1]uint64

// vectorOf returns the polynomial with the given code.
func vectorOf(code, p uint64) vector {
	var v vector
	for i := 0; code > 0; i++ {
		v[i] = code % p
		code /= p
	}
	return v
}

// code returns Σ v_i·p^i.
func (v *vector) code(p uint64) uint64 {
	c := uint64(0)
	for i := maxDegree; i >= 0; i-- {
		c = c*p + v[i]
	}
	return c
}

// degree returns the degree of v, and -1 when v is zero.
func (v *vector) degree() int {
	d := maxDegree
	for d >= 0 && v[d] == 0 {
		d--
	}
	return d
}

// A ring is F_p[X]/f for a monic f of degree m, with p^m <= 2^16.
type ring struct {
	p   uint64
	m   int
	f   vector
	neg vector // -f without its leading term, which is what X^m equals
}

func newRing(p uint64, m int, poly uint64) *ring {
	r := &ring{p: p, m: m, f: vectorOf(poly, p)}
	for i := range m {
		r.neg[i] = (p - r.f[i]) % p
	}
	return r
}

// order returns p^m.
func (r *ring) order() uint64 { return pow(r.p, r.m) }

// mul returns a·b by Horner's rule in the coefficients of b.
func (r *ring) mul(a, b *vector) vector {
	var s vector
	for i := b.degree(); i >= 0; i-- {
		top := s[r.m-1]
		for j := r.m - 1; j > 0; j-- {
			s[j] = (s[j-1] + top*r.neg[j] + a[j]*b[i]) % r.p
		}
		s[0] = (top*r.neg[0] + a[0]*b[i]) % r.p
	}
	return s
}

// isOne reports whether a^n = 1.
func (r *ring) isOne(a *vector, n uint64) bool {
	s := vector{1}
	for i := bits.Len64(n) - 1; i >= 0; i-- {
		s = r.mul(&s, &s)
		if n>>i&1 == 1 {
			s = r.mul(&s, a)
		}
	}
	return s == vector{1}
}

// isPrimitive reports whether a has the multiplicative order q-1, whose prime
// factors are given. There being no more than q-1 units, all of them are then
// powers of a and the ring is a field.
func (r *ring) isPrimitive(a *vector, primes []primePower) bool {
	n := r.order() - 1
	for _, f := range primes {
		if r.isOne(a, n/f.p) {
			return false
		}
	}
	return r.isOne(a, n)
}

// generator returns the primitive element with the smallest code. The ring must
// be a field.
func (r *ring) generator() uint64 {
	primes := factor(r.order() - 1)
	for c := uint64(1); ; c++ {
		if a := vectorOf(c, r.p); r.isPrimitive(&a, primes) {
			return c
		}
	}
}

// divisor returns the monic polynomial of smallest code that properly divides
// f, and false when f is irreducible.
func (r *ring) divisor() (vector, bool) {
	// Codes from p^d to 2p^d - 1 are the monic polynomials of degree d.
	for d, lead := 1, r.p; d <= r.m/2; d, lead = d+1, lead*r.p {
		for c := lead; c < 2*lead; c++ {
			if g := vectorOf(c, r.p); r.divides(&g, d) {
				return g, true
			}
		}
	}
	return vector{}, false
}

// divides reports whether the monic g of degree d divides f.
func (r *ring) divides(g *vector, d int) bool {
	rest := r.f
	for i := r.m; i >= d; i-- {
		c := r.p - rest[i]
		for j := range d + 1 {
			rest[i-d+j] = (rest[i-d+j] + c*g[j]) % r.p
		}
	}
	return rest == vector{}
}

// defaultPolynomial returns the code of the polynomial that defines F_{p^m},
// m >= 2, unless a name says otherwise: the smallest primitive one, except for
// 2^16.
func defaultPolynomial(p uint64, m int) uint64 {
	if p == 2 && m == 16 {
		return 0x1100b // as in GF-Complete and Jerasure
	}
	lead := pow(p, m)
	primes := factor(lead - 1)
	for c := lead + 1; ; c++ {
		if newRing(p, m, c).isPrimitive(&vector{0, 1}, primes) {
			return c
		}
	}
}
