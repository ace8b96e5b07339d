package field

import (
	"math/bits"
	"sync"
)

// powerBytes is how much of dst powersRow works on at a time.
const powerBytes = 4096

// powers are sums of sources, one for each power of X.
type powers [maxDegree][powerBytes + 64]byte // 64: keep equal offsets in different cache sets

var powerPool = sync.Pool{New: func() any { return new(powers) }}

// powersPay reports whether powersRow is faster than tables, by measurement.
func (f *binaryField) powersPay(sources, length int) bool {
	need := f.m
	if f.symbolBytes == 1 { // half as many steps for as many bytes
		need = f.m/2 + 1
	}
	return f.m > 1 && sources >= need && length >= 1024
}

// powersRow is the row for many sources. With c_ij the coefficient of X^j
// in coef[i],
//
//	Σ_i coef[i]·in[i] = Σ_j X^j · Σ_{i: c_ij = 1} in[i] :
//
// only xors for each source, and w-1 multiplications by X in the end.
func (f *binaryField) powersRow(dst []byte, coef []Element, in [][]byte, lo int, add bool) {
	p := powerPool.Get().(*powers)
	defer powerPool.Put(p)
	for from := 0; from < len(dst); from += powerBytes {
		d := dst[from:min(from+powerBytes, len(dst))]
		var used uint64 // bit j: power j has a sum
		if add {
			copy(p[0][:], d)
			used = 1
		}
		for i, s := range in {
			s = s[lo+from:][:len(d)]
			for c := coef[i][0]; c != 0; c &= c - 1 {
				j := bits.TrailingZeros64(c)
				if used>>j&1 == 0 {
					copy(p[j][:], s)
				} else {
					xor(p[j][:len(d)], s)
				}
				used |= 1 << j
			}
		}
		for j := range f.m {
			if used>>j&1 == 0 {
				clear(p[j][:len(d)])
			}
		}
		f.horner(d, p)
	}
}

// horner sets dst = Σ X^j·p[j]. It holds four words of symbols at a time to hide
// the latency of each step.
func (f *binaryField) horner(dst []byte, p *powers) {
	ones := ^uint64(0) / 0xff // 1 in each lane of a symbol
	if f.symbolBytes == 2 {
		ones = ^uint64(0) / 0xffff
	}
	top := uint(f.m-1) & 63
	rest := ones * (1<<top - 1)   // the bits that a shift keeps within the lane
	poly := f.poly & (1<<f.m - 1) // what X^w equals
	for k := 0; k < len(dst); k += 32 {
		t := p[f.m-1][k : k+32]
		a, b, c, d := le.Uint64(t), le.Uint64(t[8:]), le.Uint64(t[16:]), le.Uint64(t[24:])
		for j := f.m - 2; j >= 0; j-- {
			t := p[j&(maxDegree-1)][k : k+32]
			a = (a&rest)<<1 ^ le.Uint64(t) ^ (a>>top&ones)*poly
			b = (b&rest)<<1 ^ le.Uint64(t[8:]) ^ (b>>top&ones)*poly
			c = (c&rest)<<1 ^ le.Uint64(t[16:]) ^ (c>>top&ones)*poly
			d = (d&rest)<<1 ^ le.Uint64(t[24:]) ^ (d>>top&ones)*poly
		}
		if len(dst)-k >= 32 {
			o := dst[k : k+32]
			le.PutUint64(o, a)
			le.PutUint64(o[8:], b)
			le.PutUint64(o[16:], c)
			le.PutUint64(o[24:], d)
			continue
		}
		var o [32]byte
		le.PutUint64(o[:], a)
		le.PutUint64(o[8:], b)
		le.PutUint64(o[16:], c)
		le.PutUint64(o[24:], d)
		copy(dst[k:], o[:])
	}
}
