package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A laneKernel is a kernel for a field of odd characteristic, by AVX-512. It sets so many outputs (rows),
// or adds to them, from all inputs, a block of symbols at a time, in the lanes of vectors. Sums stay in
// registers until they are stored. Register names say what is in them; K1 to K4 are the symbols of the
// block that there are, and AX and R13 are for anything.
type laneKernel struct {
	name      string
	rows      int
	sums      []vector
	step      int         // what a block adds to rAt
	constants func()      // sets the registers of constants, and rEnd in the unit of rAt
	mask      func()      // sets K1 to K4
	begin     func(r int) // sets the sums of a row to what the output has
	inputs    func()      // adds all inputs
	finish    func()      // reduces and stores the sums
}

var (
	rOut, rIn       = reg.RDI, reg.RSI // slice headers
	rCoef           = reg.RDX          // the coefficients, input by input
	rInputs         = reg.R8
	rAt, rEnd       = reg.RCX, reg.RBX // where the block begins, and where the last one ends
	rNext, rFactors = reg.R10, reg.R11 // the next input, and its coefficients
	rLeft           = reg.R12          // inputs
)

const headerBytes = 24 // of a slice

func (k *laneKernel) write() {
	begin(laneEntry, k.name)
	Load(Param("out"), rOut)
	Load(Param("in"), rIn)
	Load(Param("coef"), rCoef)
	Load(Param("inputs"), rInputs)
	Load(Param("n"), rEnd)
	k.constants()
	XORQ(rAt, rAt)
	CMPQ(rAt, rEnd)
	JGE(LabelRef("done"))
	Label("block")
	k.mask()
	for _, sum := range k.sums {
		VPXORQ(sum, sum, sum)
	}
	ifAdd("begun", func() {
		for r := range k.rows {
			k.begin(r)
		}
	})
	MOVQ(rIn, rNext)
	MOVQ(rCoef, rFactors)
	MOVQ(rInputs, rLeft)
	k.inputs()
	k.finish()
	ADDQ(U32(k.step), rAt)
	CMPQ(rAt, rEnd)
	JLT(LabelRef("block"))
	Label("done")
	VZEROUPPER()
	RET()
}

// ifAdd runs body where outputs are added to.
func ifAdd(label string, body func()) {
	CMPB(parameter("add"), U8(0))
	JEQ(LabelRef(label))
	body()
	Label(label)
}

// each runs body, which adds so many inputs with coefficients of so many bytes in all, count times.
func each(label string, inputs, coefs int, count reg.GPPhysical, body func()) {
	Instruction(&ir.Instruction{Opcode: "PCALIGN", Operands: []Op{U8(64)}})
	Label(label)
	body()
	ADDQ(U32(inputs*headerBytes), rNext)
	ADDQ(U32(coefs), rFactors)
	DECQ(count)
	JNE(LabelRef(label))
}

// packet returns the block, whose offset is in units of so many bytes, of the slice at a header.
func packet(header reg.Register, index, scale int) Mem {
	MOVQ(Mem{Base: header, Disp: headerBytes * index}, reg.RAX)
	return Mem{Base: reg.RAX, Index: rAt, Scale: uint8(scale)}
}

// maskOf sets a mask to those of n lanes that there are, of 2^shift units of rAt for one.
func maskOf(n, shift int, move func(src, dst Op), mask Op) {
	MOVQ(rEnd, reg.RAX)
	SUBQ(rAt, reg.RAX)
	if shift > 0 {
		SHRQ(U8(shift), reg.RAX)
	}
	MOVQ(U32(n), reg.R10)
	CMPQ(reg.RAX, reg.R10)
	CMOVQGT(reg.R10, reg.RAX)
	MOVQ(I32(-1), reg.R10)
	SHLXQ(reg.RAX, reg.R10, reg.R10)
	NOTQ(reg.R10)
	move(reg.R10L, mask)
}

// broadcast sets all lanes of 64 bits.
func broadcast(x uint64, to vector) {
	MOVQ(U64(x), reg.RAX)
	VPBROADCASTQ(reg.RAX, to)
}
