package field

import (
	"math/bits"
	"strconv"
	"strings"
)

// A primePower is one factor p^m of an integer.
type primePower struct {
	p uint64
	m int
}

// factor returns the prime powers of n >= 1 in ascending order, by trial
// division: at most 2^15 divisions for n < 2^32.
func factor(n uint64) []primePower {
	var fs []primePower
	take := func(d uint64) {
		m := 0
		for ; n%d == 0; n /= d {
			m++
		}
		if m > 0 {
			fs = append(fs, primePower{d, m})
		}
	}
	take(2)
	for d := uint64(3); d*d <= n; d += 2 {
		take(d)
	}
	if n > 1 {
		take(n)
	}
	return fs
}

// product returns, for example, "2^2·3".
func product(fs []primePower) string {
	var parts []string
	for _, f := range fs {
		parts = append(parts, power(f.p, f.m))
	}
	return strings.Join(parts, "·")
}

// power returns, for example, "2^8", or "3" where m = 1.
func power(p uint64, m int) string {
	s := strconv.FormatUint(p, 10)
	if m > 1 {
		s += "^" + strconv.Itoa(m)
	}
	return s
}

// powMod returns a^n mod q for q < 2^32.
func powMod(a, n, q uint64) uint64 {
	r := 1 % q
	for i := bits.Len64(n) - 1; i >= 0; i-- {
		r = r * r % q
		if n>>i&1 == 1 {
			r = r * a % q
		}
	}
	return r
}

// primitiveRoot returns the smallest generator of the units modulo the odd
// prime q < 2^32.
func primitiveRoot(q uint64) uint64 {
	fs := factor(q - 1)
search:
	for g := uint64(2); ; g++ {
		for _, f := range fs {
			if powMod(g, (q-1)/f.p, q) == 1 {
				continue search
			}
		}
		return g
	}
}
