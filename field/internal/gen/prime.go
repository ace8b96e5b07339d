package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A primeSymbol is how lanes are filled with symbols of so many bytes, and stored.
type primeSymbol struct {
	bytes int
	load  func(src, mask, dst Op)
	store func(ops ...Op)
}

// A primeLane is a kind of lanes for primes below 2^31, with what instructions there are for it.
type primeLane struct {
	name    string
	lanes   int             // in a vector
	bits    int             // of R, half a lane
	spread  func(ops ...Op) // a word in memory
	symbols [2]primeSymbol

	add, sub, min, left, right func(ops ...Op)

	multiply                   func(coef Mem, x, product vector)
	timesInverse, timesModulus func(ops ...Op) // sum·(-1/q) mod R, and that times q
	pairs                      bool
}

// primeLanes: an instruction multiplies and adds two inputs, in the halves of a narrow lane, with
// coefficients likewise, a word for two; chunk counts such pairs, and the last input may be without a peer.
var primeLanes = []primeLane{
	{
		name: "Narrow", lanes: 16, bits: 16, spread: VPBROADCASTD,
		symbols: [2]primeSymbol{{1, VPMOVZXBD_Z, VPMOVDB}, {2, VPMOVZXWD_Z, VPMOVDW}},
		add:     VPADDD, sub: VPSUBD, min: VPMINUD, left: VPSLLD, right: VPSRLD,
		multiply: func(coef Mem, x, product vector) {
			VPBROADCASTD(coef, product)
			VPMADDWD(product, x, product)
		},
		timesInverse: VPMULLW,
		timesModulus: VPMULLD,
		pairs:        true,
	},
	{
		name: "Wide", lanes: 8, bits: 32, spread: VPBROADCASTQ,
		symbols: [2]primeSymbol{{2, VPMOVZXWQ_Z, VPMOVQW}, {4, VPMOVZXDQ_Z, VPMOVQD}},
		add:     VPADDQ, sub: VPSUBQ, min: VPMINUQ, left: VPSLLQ, right: VPSRLQ,
		multiply:     func(coef Mem, x, product vector) { VPMULUDQ_BCST(coef, x, product) },
		timesInverse: VPMULUDQ,
		timesModulus: VPMULUDQ,
	},
}

// kernel writes the kernel for so many outputs of symbols of so many bytes. Sums are kept below q·R, and
// as many products (chunk) as keep them below 2·q·R are added between. The constants are chunk, q and -1/q
// mod R.
func (l primeLane) kernel(kind int, symbol primeSymbol, rows int) {
	x, t, odd := reg.Z4, reg.Z5, reg.Z6
	q, neg, qR := reg.Z20, reg.Z21, reg.Z22
	rChunk, rChunkLeft := reg.R9, reg.R13
	sums := zmm[:rows]
	load := func(header reg.Register, index int, to vector) {
		symbol.load(packet(header, index, symbol.bytes), reg.K1, to)
	}
	k := &laneKernel{
		name: laneEntry.kernel(fmt.Sprintf("prime%s%dx%d", l.name, symbol.bytes, rows), kind, rows), rows: rows, sums: sums, step: l.lanes,
		mask: func() { maskOf(l.lanes, 0, KMOVW, reg.K1) },
	}
	k.constants = func() {
		Load(Param("constants"), reg.RAX)
		MOVQ(Mem{Base: reg.RAX}, rChunk)
		l.spread(Mem{Base: reg.RAX, Disp: 8}, q)
		l.spread(Mem{Base: reg.RAX, Disp: 16}, neg)
		l.left(U8(l.bits), q, qR)
	}
	k.begin = func(r int) {
		load(rOut, r, sums[r])
		l.left(U8(l.bits), sums[r], sums[r])
	}
	reduce := func(sum, modulus vector) { // below 2·modulus → below modulus
		l.sub(modulus, sum, t)
		l.min(t, sum, sum)
	}
	fold := func() {
		for _, sum := range sums {
			reduce(sum, qR)
		}
	}
	multiply := func() {
		for r, sum := range sums {
			l.multiply(Mem{Base: rFactors, Disp: 8 * r}, x, t)
			l.add(t, sum, sum)
		}
	}
	inputs := 1
	if l.pairs {
		inputs = 2
	}
	k.inputs = func() {
		if l.pairs {
			SHRQ(U8(1), rLeft)
			JEQ(LabelRef("last"))
		}
		Label("chunks")
		MOVQ(rChunk, rChunkLeft)
		CMPQ(rLeft, rChunkLeft)
		CMOVQLT(rLeft, rChunkLeft)
		SUBQ(rChunkLeft, rLeft)
		each("inputs", inputs, 8*rows, rChunkLeft, func() {
			load(rNext, 0, x)
			if l.pairs {
				load(rNext, 1, odd)
				VPSLLD(U8(16), odd, odd)
				VPORD(odd, x, x)
			}
			multiply()
		})
		fold()
		TESTQ(rLeft, rLeft)
		JNE(LabelRef("chunks"))
		if l.pairs {
			Label("last")
			TESTQ(U32(1), rInputs)
			JEQ(LabelRef("end"))
			load(rNext, 0, x)
			multiply()
			fold()
			Label("end")
		}
	}
	k.finish = func() {
		for r, sum := range sums {
			l.timesInverse(sum, neg, t)
			l.timesModulus(t, q, t)
			l.add(t, sum, sum)
			l.right(U8(l.bits), sum, sum)
			reduce(sum, q)
			symbol.store(sum, reg.K1, packet(rOut, r, symbol.bytes))
		}
	}
	k.write()
}
