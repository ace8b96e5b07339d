package field

import "math/bits"

// gold is F_q for q = 2^64-2^32+1. Its kernels are many times as fast as the vectors of gnark-crypto, which lack vector
// instructions.
type gold struct{ common }

const (
	goldOrder     = 1<<64 - 1<<32 + 1
	goldGenerator = 7
)

// NewGoldilocks returns the integers modulo 2^64-2^32+1, for [Register].
func NewGoldilocks(name string) Field {
	q := Code(goldOrder)
	f := &gold{newCommon(name, q, 1, q, goldGenerator)}
	f.block, f.row, f.simd = 8*goldBlock, goldRow, newGoldLanes()
	return f
}

// Add returns a + b.
func (f *gold) Add(a, b Element) Element { return f.Sub(a, f.Sub(Element{}, b)) }

// Sub returns a - b.
func (f *gold) Sub(a, b Element) Element {
	x, borrow := bits.Sub64(a[0], b[0], 0)
	return Code(x - -borrow&(1<<32-1)) // 2^64 = 2^32-1
}

// Mul returns a · b.
func (f *gold) Mul(a, b Element) Element { return Code(wideSum{}.mulAdd(a[0], b[0]).mod()) }

// Inv returns 1/a = a^(q-2).
func (f *gold) Inv(a Element) Element {
	f.checkInv(a)
	return Exp(f, a, goldOrder-2)
}

// goldBlock is how many symbols are worked on at a time.
const goldBlock = 128

// goldRow sets dst, a block, to Σ coef[j]·src[j][lo:hi], or adds that to dst. It sums
// products in three words and reduces the sums once. Inputs are added four at a time,
// which saves loads and stores of the sums.
func goldRow(dst []byte, coef []Element, src [][]byte, lo, hi int, add bool) {
	var sums [goldBlock]wideSum
	acc := sums[:(hi-lo)/8]
	if add {
		for k := range acc {
			acc[k].lo = le.Uint64(dst[8*k:])
		}
	}
	var c [4]uint64
	var s [4][]byte
	n := 0
	for j := range src {
		if coef[j].IsZero() {
			continue
		}
		c[n], s[n] = coef[j][0], src[j][lo:hi]
		if n++; n == len(s) {
			mulAddGold4(acc, &c, &s)
			n = 0
		}
	}
	for j := range n {
		mulAddGold(acc, c[j], s[j])
	}
	for k := range acc {
		le.PutUint64(dst[8*k:], acc[k].mod())
	}
}

// mulAddGold adds c·s to acc.
func mulAddGold(acc []wideSum, c uint64, s []byte) {
	for k := range acc {
		acc[k] = acc[k].mulAdd(c, le.Uint64(s[8*k:]))
	}
}

// mulAddGold4 adds Σ c[i]·s[i] to acc.
func mulAddGold4(acc []wideSum, c *[4]uint64, s *[4][]byte) {
	c0, c1, c2, c3 := c[0], c[1], c[2], c[3]
	s0, s1, s2, s3 := s[0], s[1], s[2], s[3]
	for k := range acc {
		x := acc[k].mulAdd(c0, le.Uint64(s0[8*k:]))
		x = x.mulAdd(c1, le.Uint64(s1[8*k:]))
		x = x.mulAdd(c2, le.Uint64(s2[8*k:]))
		acc[k] = x.mulAdd(c3, le.Uint64(s3[8*k:]))
	}
}

// A wideSum is a sum of products of words, of fewer than 2^32 of them.
type wideSum struct{ lo, mid, hi uint64 }

// mulAdd returns s + x·y.
func (s wideSum) mulAdd(x, y uint64) wideSum {
	hi, lo := bits.Mul64(x, y)
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, lo, 0)
	s.mid, carry = bits.Add64(s.mid, hi, carry)
	s.hi, _ = bits.Add64(s.hi, 0, carry)
	return s
}

// mod returns s modulo q, where 2^64 = 2^32-1, 2^96 = -1 and 2^128 = -2^32. A
// carry or borrow out of a word is so made good by 2^32-1, and that has none:
// what is added or subtracted before is at most 2^64-2^32.
func (s wideSum) mod() uint64 {
	const fold = 1<<32 - 1
	x, carry := bits.Sub64(s.lo, s.mid>>32, 0)
	x -= -carry & fold
	x, carry = bits.Add64(x, s.mid&fold*fold, 0)
	x += -carry & fold
	x, carry = bits.Sub64(x, s.hi<<32, 0)
	x -= -carry & fold
	if x >= goldOrder {
		x -= goldOrder
	}
	return x
}
