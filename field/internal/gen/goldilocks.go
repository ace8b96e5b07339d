package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// goldilocks writes the kernel of q = 2^64-2^32+1 for so many outputs, eight symbols at a time, as sums of
// three words of 52 bits and more. A coefficient is 16 bytes: its code, and the upper 12 bits of that.
func goldilocks(kind, rows int) {
	x, high, t := reg.Z12, reg.Z13, reg.Z14 // an input, and its upper 12 bits
	low52, low32, q := reg.Z20, reg.Z21, reg.Z22
	sums := zmm[:3*rows]
	row := func(r int) (low, mid, high vector) { return sums[3*r], sums[3*r+1], sums[3*r+2] }
	k := &laneKernel{
		name: laneEntry.kernel(fmt.Sprint("goldilocks", rows), kind, rows), rows: rows, sums: sums, step: 8,
		constants: func() {
			broadcast(1<<52-1, low52)
			broadcast(1<<32-1, low32)
			broadcast(1<<64-1<<32+1, q)
		},
		mask: func() { maskOf(8, 0, KMOVW, reg.K1) },
	}
	k.begin = func(r int) {
		low, mid, _ := row(r)
		VMOVDQU64_Z(packet(rOut, r, 8), reg.K1, low)
		VPSRLQ(U8(52), low, mid)
		VPANDQ(low52, low, low)
	}
	k.inputs = func() {
		each("inputs", 1, 16*rows, rLeft, func() {
			VMOVDQU64_Z(packet(rNext, 0, 8), reg.K1, x)
			VPSRLQ(U8(52), x, high)
			for r := range rows {
				s0, s1, s2 := row(r)
				c := Mem{Base: rFactors, Disp: 16 * r}
				VPMADD52LUQ_BCST(c, x, s0) // the instructions take the lower 52 bits of each factor
				VPMADD52HUQ_BCST(c, x, s1)
				VPMADD52HUQ_BCST(c, high, s2)
				VPMADD52LUQ_BCST(c, high, s1)
				VPMADD52HUQ_BCST(c.Offset(8), x, s2)
				VPMADD52LUQ_BCST(c.Offset(8), x, s1)
				VPMADD52LUQ_BCST(c.Offset(8), high, s2)
			}
		})
	}
	carry := func(from, to vector) { // what is beyond 52 bits
		VPSRLQ(U8(52), from, t)
		VPADDQ(t, to, to)
		VPANDQ(low52, from, from)
	}
	wrap := func(fix func(ops ...Op), low vector) { fix(low32, low, reg.K2, low) }
	k.finish = func() {
		for r := range rows { // three words of 64 bits, then a code as wideSum.mod makes it
			low, mid, high := row(r)
			carry(low, mid)
			carry(mid, high)
			VPSLLQ(U8(52), mid, t)
			VPORQ(t, low, low)
			VPSRLQ(U8(12), mid, mid)
			VPSLLQ(U8(40), high, t)
			VPORQ(t, mid, mid)
			VPSRLQ(U8(24), high, high)

			VPSRLQ(U8(32), mid, t)
			VPCMPUQ(U8(1), t, low, reg.K2)
			VPSUBQ(t, low, low)
			wrap(VPSUBQ, low)
			VPANDQ(low32, mid, mid)
			VPSLLQ(U8(32), mid, t)
			VPSUBQ(mid, t, t)
			VPADDQ(t, low, low)
			VPCMPUQ(U8(1), t, low, reg.K2)
			wrap(VPADDQ, low)
			VPSLLQ(U8(32), high, high)
			VPCMPUQ(U8(1), high, low, reg.K2)
			VPSUBQ(high, low, low)
			wrap(VPSUBQ, low)
			VPSUBQ(q, low, t)
			VPMINUQ(t, low, low)
			VMOVDQU64(low, reg.K1, packet(rOut, r, 8))
		}
	}
	k.write()
}
