package field

import (
	"math/big"
	"math/bits"
)

// scalars is F_q for an odd prime q of 32 bytes below 2^255, the order of an elliptic
// curve's group. It multiplies in Montgomery's way, with R = 2^256: one factor is taken
// times R, and the product is a code again.
type scalars struct {
	common
	neg    uint64  // -1/q modulo 2^64
	square Element // R² modulo q

	simd *scalarLanes // nil without vector instructions
}

func newScalars(name string, order *big.Int, generator uint64) *scalars {
	element := func(v *big.Int) Element {
		e, err := FromInt(v.Mod(v, order))
		if err != nil {
			panic(err) // of a code
		}
		return e
	}
	q, err := FromInt(order)
	if err != nil {
		panic(err) // it has four limbs
	}
	f := &scalars{
		common: newCommon(name, q, 1, q, generator),
		square: element(new(big.Int).Lsh(big.NewInt(1), 2*256)),
	}
	inverse := q[0] // modulo 2^3; a step doubles the bits
	for range 5 {
		inverse *= 2 - q[0]*inverse
	}
	f.neg = -inverse
	lift := element(new(big.Int).Lsh(big.NewInt(1), 256+260)) // for kernels, with R = 2^260
	f.simd = newScalarLanes(order, func(c Element) Element { return f.product(c, lift) })
	return f
}

func (f *scalars) Add(a, b Element) Element {
	s0, carry := bits.Add64(a[0], b[0], 0)
	s1, carry := bits.Add64(a[1], b[1], carry)
	s2, carry := bits.Add64(a[2], b[2], carry)
	s3, _ := bits.Add64(a[3], b[3], carry)
	return f.reduced(Element{s0, s1, s2, s3})
}

func (f *scalars) Sub(a, b Element) Element {
	minus, _ := subLimbs(&f.order, &b)
	return f.Add(a, minus)
}

func (f *scalars) Mul(a, b Element) Element { return f.product(a, f.product(b, f.square)) }

func (f *scalars) Inv(a Element) Element {
	f.checkInv(a)
	inverse, err := FromInt(new(big.Int).ModInverse(a.Int(), f.Order()))
	if err != nil {
		panic(err) // of a code
	}
	return inverse
}

// subLimbs returns a - b modulo 2^256, and 1 where that is negative.
func subLimbs(a, b *Element) (d Element, borrow uint64) {
	d0, borrow := bits.Sub64(a[0], b[0], 0)
	d1, borrow := bits.Sub64(a[1], b[1], borrow)
	d2, borrow := bits.Sub64(a[2], b[2], borrow)
	d3, borrow := bits.Sub64(a[3], b[3], borrow)
	return Element{d0, d1, d2, d3}, borrow
}

// reduced returns a modulo q for a < 2q.
func (f *scalars) reduced(a Element) Element {
	if d, borrow := subLimbs(&a, &f.order); borrow == 0 {
		return d
	}
	return a
}

// product returns a·b/R modulo q: it adds a times a limb of b, and as many times q that the
// lowest limb of the sum is zero, which then goes. The sum stays below 2q.
func (f *scalars) product(a, b Element) Element {
	q := &f.order
	var s0, s1, s2, s3 uint64
	for _, limb := range b {
		var over, overQ uint64
		over, s0 = mulAdd(a[0], limb, s0, 0)
		m := s0 * f.neg
		overQ, _ = mulAdd(q[0], m, s0, 0)
		over, s1 = mulAdd(a[1], limb, s1, over)
		overQ, s0 = mulAdd(q[1], m, s1, overQ)
		over, s2 = mulAdd(a[2], limb, s2, over)
		overQ, s1 = mulAdd(q[2], m, s2, overQ)
		over, s3 = mulAdd(a[3], limb, s3, over)
		overQ, s2 = mulAdd(q[3], m, s3, overQ)
		s3 = over + overQ
	}
	return f.reduced(Element{s0, s1, s2, s3})
}

// mulAdd returns x·y + a + b.
func mulAdd(x, y, a, b uint64) (hi, lo uint64) {
	hi, lo = bits.Mul64(x, y)
	lo, carry := bits.Add64(lo, a, 0)
	hi += carry
	lo, carry = bits.Add64(lo, b, 0)
	return hi + carry, lo
}

// scalarBlock is how many bytes of a packet a map works on at a time.
const scalarBlock = 4096

func (f *scalars) Map(rows [][]Element) Map {
	if shape := shapeOf(f, rows); f.simd != nil {
		return f.simd.newMap(shape, rows)
	}
	return newRowMap(f, rows, scalarBlock, f.row)
}

func (f *scalars) Combine(dst []byte, coef []Element, src [][]byte) {
	f.checkCombine(dst, coef, src)
	if f.simd != nil && len(src) > 1 {
		f.simd.combine(dst, coef, src)
		return
	}
	for lo := 0; lo < len(dst); lo += scalarBlock {
		hi := min(lo+scalarBlock, len(dst))
		f.row(dst[lo:hi], coef, src, lo, hi, false)
	}
}

// row sets dst, a block, to Σ coef[j]·in[j][lo:hi], or adds that to dst.
func (f *scalars) row(dst []byte, coef []Element, in [][]byte, lo, hi int, add bool) {
	if !add {
		clear(dst)
	}
	for j, c := range coef {
		if c.IsZero() {
			continue
		}
		s, form := in[j][lo:hi], f.product(c, f.square)
		for k := 0; k < len(dst); k += 32 {
			store32(dst[k:], f.Add(load32(dst[k:]), f.product(load32(s[k:]), form)))
		}
	}
}
