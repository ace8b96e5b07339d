package field

import "math/bits"

// maxDegree is the largest degree of a polynomial: 2^16 has it.
const maxDegree = 16

// A ring is F_2[X]/f for an f of degree m, 1 <= m <= maxDegree. Bit i of a polynomial is its coefficient of X^i.
type ring struct {
	degree int
	poly   uint64 // f
}

// times returns a·X.
func (r ring) times(a uint64) uint64 { return a<<1 ^ a>>(r.degree-1)*r.poly }

// mul returns a·b by Horner's rule in the coefficients of b.
func (r ring) mul(a, b uint64) uint64 {
	s := uint64(0)
	for i := r.degree - 1; i >= 0; i-- {
		s = r.times(s) ^ b>>i&1*a
	}
	return s
}

// isOne reports whether a^n = 1.
func (r ring) isOne(a, n uint64) bool {
	s := uint64(1)
	for i := bits.Len64(n) - 1; i >= 0; i-- {
		s = r.mul(s, s)
		if n>>i&1 == 1 {
			s = r.mul(s, a)
		}
	}
	return s == 1
}

// isPrimitive reports whether a has the multiplicative order q-1, whose prime
// factors are given. There being no more than q-1 units, all of them are then
// powers of a and the ring is a field.
func (r ring) isPrimitive(a uint64, primes []primePower) bool {
	n := uint64(1)<<r.degree - 1
	for _, f := range primes {
		if r.isOne(a, n/f.p) {
			return false
		}
	}
	return r.isOne(a, n)
}

// generator returns the primitive element with the smallest code. The ring must
// be a field.
func (r ring) generator() uint64 {
	primes := factor(1<<r.degree - 1)
	a := uint64(1)
	for !r.isPrimitive(a, primes) {
		a++
	}
	return a
}

// divisor returns the polynomial of smallest code that properly divides f, and false when f is irreducible.
func (r ring) divisor() (uint64, bool) {
	for g := uint64(2); g < 2<<(r.degree/2); g++ {
		rest := r.poly
		for bits.Len64(rest) >= bits.Len64(g) {
			rest ^= g << (bits.Len64(rest) - bits.Len64(g))
		}
		if rest == 0 {
			return g, true
		}
	}
	return 0, false
}

// defaultPolynomials has, by degree, the polynomial that defines F_{2^m} unless a name says otherwise: the primitive one of
// smallest code, except for 2^16, where it is that of GF-Complete and Jerasure. That of F_2 is X+1, for the tables: X would
// give the same field.
var defaultPolynomials = [maxDegree + 1]uint64{0, 0x3, 0x7, 0xb, 0x13, 0x25, 0x43, 0x83, 0x11d,
	0x211, 0x409, 0x805, 0x1053, 0x201b, 0x402b, 0x8003, 0x1100b}
