package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// neon writes the kernels for arm64, as text: avo knows amd64 alone. Products are by tables of
// nibbles, with VTBL. Every kernel works on blocks of 64 bytes of a packet, which are four vectors:
// of bytes, of pairs (low, high, low, high; VLD2 and VST2 do this), or of planes (low, low, high,
// high). Its registers are
//
//	V0 to V3    a block of an input, then its low nibbles
//	V4 to V7    its high nibbles
//	V8 to V11   tables
//	V12, V14    products
//	V13         15 in every byte
//	V16 to V31  blocks of up to four outputs, or of the packets of butterflies
//
// PMULL would multiply without tables, and leave products of twice the length to be reduced after the
// last column. Instructions for a block and a coefficient, in a kernel of four rows:
//
//	         by VTBL                      by PMULL                                 reduction of a row
//	2^8      1 load, 16, 2 for nibbles    1 load, 8 PMULL, 8 VEOR                  32
//	2^16     2 loads, 32, 2 for nibbles   1 load, 12 PMULL (Karatsuba), 12 VEOR, 1 74
//
// So it saves nothing in 2^8 up to 16 columns, and 10 of 36 instructions in 2^16 beyond 7, where PMULL is
// as fast as VTBL. In butterflies, which reduce after each product, it costs 99 for 36.
type neon struct {
	text       strings.Builder
	labels     int
	parameters []string // of the function
}

// offsets returns where in a group of symbols blocks begin.
func (l layout) offsets() []int {
	if l == inPlanes {
		return []int{0, 32}
	}
	return []int{0, 64}
}

// neonRows is how many outputs the largest kernel has: as many as there are registers for.
const neonRows = 4

// writeNEON writes the file of assembly.
func writeNEON(out string) error {
	n := new(neon)
	n.text.WriteString(header() + "#include \"textflag.h\"\n")
	n.combination(combineEntry.kernel("sumNEON", 0, 0, 0), inBytes, 0)
	for _, l := range []layout{inBytes, inPairs, inPlanes} {
		for rows := 1; rows <= neonRows; rows++ {
			n.combination(combineEntry.kernel(fmt.Sprint(l.name(), rows, "NEON"), 0, rows, int(l)), l, rows)
		}
	}
	for _, inverse := range []bool{false, true} {
		for _, l := range []layout{inBytes, inPlanes} {
			n.butterfly(l, inverse)
			n.butterflies(l, inverse)
		}
	}
	n.planes(planesEntry.kernel("toPlanesNEON", 0, 1), true)
	n.planes(planesEntry.kernel("fromPlanesNEON", 0, 0), false)
	for _, e := range entries {
		if e.kernels != nil {
			n.start(e, e.name)
			e.write(n)
		}
	}
	return os.WriteFile(out, []byte(n.text.String()), 0o644)
}

// op writes an instruction.
func (n *neon) op(format string, args ...any) {
	name, operands, _ := strings.Cut(fmt.Sprintf(format, args...), " ")
	fmt.Fprintf(&n.text, "\t%s\n", strings.TrimSpace(fmt.Sprintf("%-8s %s", name, operands)))
}

func (n *neon) label(name string) { fmt.Fprintf(&n.text, "\n%s:\n", name) }

// next returns a label that is not in the function yet.
func (n *neon) next(name string) string {
	n.labels++
	return fmt.Sprint(name, n.labels)
}

// start begins a kernel of an entry, or the entry. Parameters are of 8 bytes, but for a byte in the end.
func (n *neon) start(e *entry, name string) {
	n.labels, n.parameters = 0, nil
	for parameter := range strings.SplitSeq(e.parameters(), ", ") {
		word, _, _ := strings.Cut(parameter, " ")
		n.parameters = append(n.parameters, word)
	}
	bytes := 8 * len(n.parameters)
	if strings.HasSuffix(e.rest, "bool") || strings.HasSuffix(e.rest, "uint8") {
		bytes -= 7
	}
	fmt.Fprintf(&n.text, "\n// func %s(%s)\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", name, e.parameters(), name, bytes)
}

// argument loads an argument.
func (n *neon) argument(move, name, register string) {
	n.op("%s %s+%d(FP), %s", move, name, 8*slices.Index(n.parameters, name), register)
}

// arguments loads arguments of 8 bytes.
func (n *neon) arguments(registers ...string) {
	for _, r := range registers {
		name, register, _ := strings.Cut(r, "=")
		n.argument("MOVD", name, register)
	}
}

// neon is a [jumper].

func (n *neon) jumpIfAtLeast(key string, value int, label string) {
	n.argument("MOVD", key, "R0")
	n.op("CMP $%d, R0", value)
	n.op("BGE %s", label)
}

func (n *neon) place(label string) { n.label(label) }

func (n *neon) jumpTo(kernel string) { n.op("B ·%s(SB)", kernel) }

// loop runs body while the register pos is below the register end; body moves on.
func (n *neon) loop(pos, end string, body func()) {
	n.label("loop")
	n.op("CMP %s, %s", end, pos)
	n.op("BGE end")
	body()
	n.op("JMP loop")
	n.label("end")
	n.op("RET")
}

// v returns so many registers from the first on, as an operand.
func v(first, number int) string {
	all := make([]string, number)
	for k := range all {
		all[k] = fmt.Sprintf("V%d.B16", first+k)
	}
	return strings.Join(all, ", ")
}

func (n *neon) load(l layout, at string, first int) {
	switch l {
	case inBytes:
		n.op("VLD1 (%s), [%s]", at, v(first, 4))
	case inPairs:
		n.op("VLD2.P 32(%s), [%s]", at, v(first, 2))
		n.op("VLD2 (%s), [%s]", at, v(first+2, 2))
	case inPlanes:
		n.op("VLD1 (%s), [%s]", at, v(first, 2))
		n.op("ADD $64, %s", at)
		n.op("VLD1 (%s), [%s]", at, v(first+2, 2))
	}
}

func (n *neon) store(l layout, first int, at string) {
	switch l {
	case inBytes:
		n.op("VST1 [%s], (%s)", v(first, 4), at)
	case inPairs:
		n.op("VST2.P [%s], 32(%s)", v(first, 2), at)
		n.op("VST2 [%s], (%s)", v(first+2, 2), at)
	case inPlanes:
		n.op("VST1 [%s], (%s)", v(first, 2), at)
		n.op("ADD $64, %s", at)
		n.op("VST1 [%s], (%s)", v(first+2, 2), at)
	}
}

// xor adds the block from one register on to that from another on.
func (n *neon) xor(from, to int) {
	for k := range 4 {
		n.op("VEOR %s, %s, %s", v(from+k, 1), v(to+k, 1), v(to+k, 1))
	}
}

// nibbles parts the block from a register on into nibbles.
func (n *neon) nibbles(from int) {
	for k := range 4 {
		n.op("VUSHR $4, %s, %s", v(from+k, 1), v(4+k, 1))
		n.op("VAND V13.B16, %s, %s", v(from+k, 1), v(k, 1))
	}
}

// products adds the products of the nibbles with the coefficient at the register coef, which moves
// on, to the block from a register on.
func (n *neon) products(l layout, coef string, sum int) {
	nibble := func(k int) string { return v(k, 1) }
	add := func(table, low, sum int) { // one table, of nibbles in two vectors of like bytes
		n.op("VTBL %s, [%s], V12.B16", nibble(low), v(table, 1))
		n.op("VEOR V12.B16, %s, %s", v(sum, 1), v(sum, 1))
	}
	if l == inBytes {
		n.op("VLD1.P 32(%s), [%s]", coef, v(8, 2))
		for half := range 2 {
			for k := range 4 {
				add(8+half, 4*half+k, sum+k)
			}
		}
		return
	}
	at := [2][2]int{{0, 2}, {1, 3}} // the vectors of low bytes, and those of high ones
	if l == inPlanes {
		at = [2][2]int{{0, 1}, {2, 3}}
	}
	for _, to := range at {
		n.op("VLD1.P 64(%s), [%s]", coef, v(8, 4))
		for b, from := range at {
			for half := range 2 {
				for k := range 2 {
					add(8+2*b+half, 4*half+from[k], sum+to[k])
				}
			}
		}
	}
}

// combination writes the kernel for so many rows; 0 is for one row of ones.
func (n *neon) combination(name string, l layout, rows int) {
	n.start(combineEntry, name)
	n.arguments("out=R0", "in=R1", "columns=R2", "count=R3", "coefs=R4", "from=R5", "to=R6")
	n.argument("MOVBU", "how", "R7")
	n.op("VMOVI $15, V13.B16")
	n.loop("R5", "R6", func() {
		steps := []int{64} // bytes to the next block
		if l == inPlanes {
			steps = []int{32, 96}
		}
		for _, step := range steps {
			n.combineBlock(l, rows)
			n.op("ADD $%d, R5", step)
		}
	})
}

// combineBlock works on the block at R5.
func (n *neon) combineBlock(l layout, rows int) {
	for k := range 4 * max(rows, 1) {
		n.op("VEOR %[1]s, %[1]s, %[1]s", v(16+k, 1))
	}
	n.op("MOVD R2, R8")
	n.op("MOVD R3, R10")
	n.op("MOVD R4, R9")
	column, summed := n.next("column"), n.next("summed")
	n.op("CBZ R10, %s", summed)
	n.label(column)
	n.op("MOVWU.P 4(R8), R11")
	n.op("MOVD (R1)(R11), R11")
	n.op("ADD R5, R11")
	n.load(l, "R11", 0)
	if rows == 0 {
		n.xor(0, 16)
	} else {
		n.nibbles(0)
	}
	for r := range rows {
		n.products(l, "R9", 16+4*r)
	}
	n.op("SUB $1, R10")
	n.op("CBNZ R10, %s", column)
	n.label(summed)
	for r := range max(rows, 1) {
		store := n.next("store")
		n.op("MOVD %d(R0), R11", 24*r)
		n.op("ADD R5, R11")
		n.op("CBZ R7, %s", store)
		n.op("MOVD R11, R12")
		n.load(l, "R12", 0)
		n.xor(0, 16+4*r)
		n.label(store)
		n.store(l, 16+4*r, "R11")
	}
}

// butterfly writes the kernel of two packets with one product by c:
// (x, y) → (x + c·y, x + c·y + y), or its inverse (x, y) → (x + c·(x+y), x + y).
func (n *neon) butterfly(l layout, inverse bool) {
	n.start(butterflyEntry, butterflyEntry.butterfly("NEON", 0, l.symbol(), inverse))
	n.arguments("out0=R0", "out1=R1", "in0=R4", "in1=R5", "coef=R8", "n=R9")
	n.network(l, inverse, 2, [][2]int{{0, 1}})
}

// butterflies writes the kernel of four packets with four butterflies: of packets 0 and 2, 1 and 3,
// 0 and 1, 2 and 3; or the inverse.
func (n *neon) butterflies(l layout, inverse bool) {
	n.start(butterfliesEntry, butterfliesEntry.butterfly("NEON", 0, l.symbol(), inverse))
	n.arguments("out=R12", "in=R13", "coefs=R8", "n=R9")
	for k := range 4 {
		n.op("MOVD %d(R12), R%d", 24*k, k)
		n.op("MOVD %d(R13), R%d", 24*k, 4+k)
	}
	n.network(l, inverse, 4, [][2]int{{0, 2}, {1, 3}, {0, 1}, {2, 3}})
}

// network writes the butterflies of pairs of packets, from R4 on into those from R0 on, or their
// inverses from the last pair to the first.
func (n *neon) network(l layout, inverse bool, packets int, pairs [][2]int) {
	n.op("VMOVI $15, V13.B16")
	n.op("MOVD ZR, R10")
	n.loop("R10", "R9", func() {
		for _, offset := range l.offsets() {
			address := func(packet int) {
				n.op("ADD R10, R%d, R12", packet)
				if offset > 0 {
					n.op("ADD $%d, R12", offset)
				}
			}
			for k := range packets {
				address(4 + k)
				n.load(l, "R12", 16+4*k)
			}
			for k := range pairs {
				if inverse {
					k = len(pairs) - 1 - k
				}
				x, y := 16+4*pairs[k][0], 16+4*pairs[k][1]
				if inverse {
					n.xor(x, y)
				}
				n.nibbles(y)
				n.op("ADD $%d, R8, R11", k*l.symbol()*l.symbol()*32)
				n.products(l, "R11", x)
				if !inverse {
					n.xor(x, y)
				}
			}
			for k := range packets {
				address(k)
				n.store(l, 16+4*k, "R12")
			}
		}
		n.op("ADD $%d, R10", groupBytes)
	})
}

// planes writes the change of layout of whole groups.
func (n *neon) planes(name string, to bool) {
	n.start(planesEntry, name)
	n.arguments("dst=R0", "src=R1", "n=R2")
	n.op("ADD R1, R2")
	n.loop("R1", "R2", func() {
		if to {
			for k := range 4 {
				n.op("VLD2.P 32(R1), [%s]", v(2*k, 2))
			}
		}
		for half := range 2 {
			for k := range 4 {
				if to {
					n.op("VST1.P [%s], 16(R0)", v(2*k+half, 1))
				} else {
					n.op("VLD1.P 16(R1), [%s]", v(2*k+half, 1))
				}
			}
		}
		if !to {
			for k := range 4 {
				n.op("VST2.P [%s], 32(R0)", v(2*k, 2))
			}
		}
	})
}
