package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// scalars writes the kernel of primes of 32 bytes for so many outputs, eight symbols at a time, as sums of
// ten words of 52 bits and more, which Montgomery's way takes to five. The constants are -1/q mod 2^52 and
// the words of q.
func scalars(kind, rows int) {
	const words = 5
	x := []vector{reg.Z20, reg.Z25, reg.Z26, reg.Z27, reg.Z28} // an input
	four, pairs := zmm[20:24], zmm[25:29]                      // limbs of 64 bits, and on the way to them
	low52, t := reg.Z31, reg.Z25
	masks := []reg.Register{reg.K1, reg.K2, reg.K3, reg.K4} // for two symbols each
	rConstants := reg.R13
	negInverse := Mem{Base: rConstants}
	q := func(word int) Mem { return Mem{Base: rConstants, Disp: 8 + 8*word} }
	sums := zmm[:2*words*rows]
	sum := func(r int) []vector { return sums[2*words*r:][:2*words] }
	code := func(r int) []vector { return sum(r)[words:] } // once reduced

	k := &laneKernel{
		name: laneEntry.kernel(fmt.Sprint("scalars", rows), kind, rows), rows: rows, sums: sums, step: 256,
		constants: func() {
			Load(Param("constants"), rConstants)
			SHLQ(U8(5), rEnd)
			broadcast(1<<52-1, low52)
		},
		mask: func() {
			maskOf(32, 3, KMOVD, masks[0])
			for k, mask := range masks[1:] {
				KSHIFTRD(U8(8*(k+1)), masks[0], mask)
			}
		},
	}
	unpack := func() { // four → pairs
		for k := range 2 {
			VPUNPCKLQDQ(four[2*k+1], four[2*k], pairs[2*k])
			VPUNPCKHQDQ(four[2*k+1], four[2*k], pairs[2*k+1])
		}
	}
	shuffle := func(low, high uint8) { // pairs → four
		for k, how := range []uint8{low, high} {
			VSHUFI64X2(U8(how), pairs[2], pairs[0], four[2*k])
			VSHUFI64X2(U8(how), pairs[3], pairs[1], four[2*k+1])
		}
	}
	// load takes eight symbols to words of 52 bits and more, of which instructions use 52. They hold
	// symbols 0, 2, 1, 3, 4, 6, 5 and 7.
	load := func(at Mem) {
		for k, v := range four {
			VMOVDQU64_Z(at.Offset(64*k), masks[k], v)
		}
		unpack()
		shuffle(0x88, 0xdd)
		for k := range 3 {
			VPSHRDQ(U8(52-12*k), four[k+1], four[k], x[k+1])
		}
		VPSRLQ(U8(16), four[3], x[4])
	}
	k.begin = func(r int) {
		load(packet(rOut, r, 1))
		for k, v := range code(r) {
			VPANDQ(low52, x[k], v)
		}
	}
	k.inputs = func() {
		each("inputs", 1, 8*words*rows, rLeft, func() {
			load(packet(rNext, 0, 1))
			for r := range rows {
				for i := range words {
					c := Mem{Base: rFactors, Disp: 8 * (words*r + i)}
					for j := range words {
						VPMADD52LUQ_BCST(c, x[j], sum(r)[i+j])
					}
					for j := range words {
						VPMADD52HUQ_BCST(c, x[j], sum(r)[i+j+1])
					}
				}
			}
		})
	}
	carry := func(from, to vector) {
		VPSRLQ(U8(52), from, x[0])
		VPADDQ(x[0], to, to)
	}
	reduce := func(c []vector) {
		m := x[0]
		for i := range words { // c[i] becomes a multiple of 2^52
			VPXORQ(m, m, m)
			VPMADD52LUQ_BCST(negInverse, c[i], m)
			for j := range words {
				VPMADD52LUQ_BCST(q(j), m, c[i+j])
			}
			for j := range words {
				VPMADD52HUQ_BCST(q(j), m, c[i+j+1])
			}
			carry(c[i], c[i+1])
		}
		for i := words; i < 2*words-1; i++ {
			carry(c[i], c[i+1])
			VPANDQ(low52, c[i], c[i])
		}
	}
	subtract := func(c []vector) { // q, where that leaves no less than zero
		less := zmm[20:25]
		for k, v := range c {
			VPSUBQ_BCST(q(k), v, less[k])
		}
		for k := range words - 1 {
			VPSRAQ(U8(63), less[k], t)
			VPADDQ(t, less[k+1], less[k+1])
		}
		VPMOVQ2M(less[words-1], reg.K5)
		KNOTB(reg.K5, reg.K5)
		for k, v := range c {
			VPANDQ(low52, less[k], reg.K5, v)
		}
	}
	store := func(r int) {
		c := code(r)
		for k, v := range four {
			if k == 0 {
				VPSLLQ(U8(52), c[1], v)
				VPORQ(c[0], v, v)
				continue
			}
			VPSRLQ(U8(12*k), c[k], v)
			VPSLLQ(U8(52-12*k), c[k+1], t)
			VPORQ(t, v, v)
		}
		unpack()
		shuffle(0x44, 0xee)
		for _, v := range four {
			VSHUFI64X2(U8(0xd8), v, v, v)
		}
		at := packet(rOut, r, 1)
		for k, v := range four {
			VMOVDQU64(v, masks[k], at.Offset(64*k))
		}
	}
	k.finish = func() {
		all := func(do func(code []vector)) {
			for r := range rows {
				do(code(r))
			}
		}
		for r := range rows {
			reduce(sum(r))
		}
		all(subtract)
		ifAdd("store", func() { all(subtract) })
		for r := range rows {
			store(r)
		}
	}
	k.write()
}
