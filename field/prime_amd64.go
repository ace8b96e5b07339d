//go:build !purego

package field

import (
	"github.com/consensys/gnark-crypto/utils/cpu"
)

// primeLanes are the constants of the AVX-512 kernels for symbols of a prime field,
// in Montgomery's way: sums are kept below q·R, and x·(1/R) mod q is
// (x + (x·(-1/q) mod R)·q)/R, less q if need be. Coefficients times R so make codes
// of codes.
type primeLanes struct {
	shift uint   // R = 2^shift: 16 in lanes of 32 bits (narrow), 32 in those of 64 (wide)
	neg   uint64 // -1/q mod R
	chunk int    // products that make a sum below q·R one below 2·q·R, which must fit
}

func newPrimeLanes(q uint64) *primeLanes {
	if !cpu.SupportAVX512 { // with VBMI2, which no processor has without BW
		return nil
	}
	l := &primeLanes{shift: 32}
	if q < 1<<15 { // signed, in half a lane
		l.shift = 16
	}
	inverse := q // modulo 2^3; a step doubles the bits
	for range 4 {
		inverse *= 2 - q*inverse
	}
	l.neg = -inverse & (1<<l.shift - 1)
	l.chunk = int(min(q<<l.shift/((q-1)*(q-1)), 1<<30))
	return l
}

func (l *primeLanes) narrow() bool { return l.shift == 16 }

// appendCoefficients appends those of several rows as the kernels read them: input by
// input, and 64 bits each, or pair by pair of inputs, and 16 bits each.
func (l *primeLanes) appendCoefficients(words []uint32, f *prime, rows [][]Element) []uint32 {
	montgomery := func(c Element) uint32 { return uint32(reduce(c[0]<<l.shift, f.q, f.inverse)) }
	inputs := len(rows[0])
	for j := 0; j < inputs; j++ {
		for _, row := range rows {
			words = append(words, montgomery(row[j]))
			switch {
			case !l.narrow():
				words = append(words, 0)
			case j+1 < inputs:
				words[len(words)-1] |= montgomery(row[j+1]) << 16
			}
		}
		if l.narrow() {
			j++
		}
	}
	return words
}

func (f *prime) laneMap(rows [][]Element) Map {
	if f.simd == nil {
		return nil
	}
	coefficients := func(rows [][]Element) []uint32 { return f.simd.appendCoefficients(nil, f, rows) }
	return &laneMap[uint32]{shapeOf(f, rows), f.symbolBytes, laneGroups(rows, 4, coefficients), f.kernels}
}

// kernels applies the kernel for as many rows.
func (f *prime) kernels(rows int, out, in [][]byte, coef []uint32, n int, add bool) {
	f.kernel(rows, &out[0], &in[0], &coef[0], len(in), n, add)
}

// laneCombine is Combine by the kernels; it reports whether it was.
func (f *prime) laneCombine(dst []byte, coef []Element, src [][]byte) bool {
	if f.simd == nil || len(src) == 0 {
		return false
	}
	t := narrowPool.Get().(*laneScratch[uint32])
	t.rows[0] = coef
	t.coef = f.simd.appendCoefficients(t.coef[:0], f, t.rows[:])
	t.rows[0] = nil
	out := [1][]byte{dst}
	f.kernel(1, &out[0], &src[0], &t.coef[0], len(src), len(dst)/f.symbolBytes, false)
	narrowPool.Put(t)
	return true
}

// kernel applies the one for as many rows. The calls are direct, so that the compiler
// sees that they keep no pointers.
func (f *prime) kernel(rows int, out, in *[]byte, coef *uint32, inputs, n int, add bool) {
	l := f.simd
	switch {
	case l.narrow() && f.symbolBytes == 1 && rows == 4:
		primeNarrow1x4(out, in, coef, inputs, l.chunk/2, n, f.q, l.neg, add)
	case l.narrow() && f.symbolBytes == 1 && rows == 2:
		primeNarrow1x2(out, in, coef, inputs, l.chunk/2, n, f.q, l.neg, add)
	case l.narrow() && f.symbolBytes == 1:
		primeNarrow1x1(out, in, coef, inputs, l.chunk/2, n, f.q, l.neg, add)
	case l.narrow() && rows == 4:
		primeNarrow2x4(out, in, coef, inputs, l.chunk/2, n, f.q, l.neg, add)
	case l.narrow() && rows == 2:
		primeNarrow2x2(out, in, coef, inputs, l.chunk/2, n, f.q, l.neg, add)
	case l.narrow():
		primeNarrow2x1(out, in, coef, inputs, l.chunk/2, n, f.q, l.neg, add)
	case f.symbolBytes == 2 && rows == 4:
		primeWide2x4(out, in, coef, inputs, l.chunk, n, f.q, l.neg, add)
	case f.symbolBytes == 2 && rows == 2:
		primeWide2x2(out, in, coef, inputs, l.chunk, n, f.q, l.neg, add)
	case f.symbolBytes == 2:
		primeWide2x1(out, in, coef, inputs, l.chunk, n, f.q, l.neg, add)
	case rows == 4:
		primeWide4x4(out, in, coef, inputs, l.chunk, n, f.q, l.neg, add)
	case rows == 2:
		primeWide4x2(out, in, coef, inputs, l.chunk, n, f.q, l.neg, add)
	default:
		primeWide4x1(out, in, coef, inputs, l.chunk, n, f.q, l.neg, add)
	}
}
