// Command gen writes the kernels of package field for amd64, or with -arch arm64 for that. It is a module of its own, so that the library does not depend on the generator.
package main

import (
	"flag"
	"fmt"
	"log"
	"sync"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// An isa is a set of instructions to write kernels in.
type isa struct {
	path   int    // its index
	name   string // of which the names of the kernels end
	bytes  int    // of a vector
	affine bool   // products by GF2P8AFFINEQB, else by tables of nibbles
	wide   int    // rows up to which a kernel works on two groups at a time
	rows   int    // of the largest kernel
	most   int    // rows of the largest kernel for bytes, which works on half a group above rows
}

var isas = []isa{
	{0, "GFNI512", 64, true, 4, 8, 16},
	{0, "GFNI256", 32, true, 0, 4, 4},
	{0, "AVX512", 64, false, 0, 8, 8},
	{0, "AVX2", 32, false, 0, 4, 4},
}

func main() {
	arch := flag.String("arch", "amd64", "architecture of the kernels: amd64 or arm64")
	declarations := flag.String("declarations", "", "Go file of the entries")
	flag.Parse()
	if *arch == "arm64" {
		if err := writeNEON(flag.Lookup("out").Value.String()); err != nil {
			log.Fatal(err)
		}
	} else {
		writeAMD64()
	}
	if err := writeDeclarations(*declarations); err != nil {
		log.Fatal(err)
	}
}

// writeAMD64 writes the kernels for amd64.
func writeAMD64() {
	ConstraintExpr("!purego")
	for path, i := range isas {
		i.path = path
		i.sum()
		for _, l := range []layout{inBytes, inPairs, inPlanes} {
			for rows := 1; rows <= i.rows || l == inBytes && rows <= i.most; rows++ {
				i.product(l, rows)
			}
		}
		for symbol := 1; symbol <= 2; symbol++ {
			for _, inverse := range []bool{false, true} {
				i.butterfly(symbol, inverse)
				i.butterflies(symbol, inverse)
			}
		}
		i.planes("toPlanes", true)
		i.planes("fromPlanes", false)
	}
	kind := 0
	for _, l := range primeLanes {
		for _, symbol := range l.symbols {
			for _, rows := range []int{1, 2, 4} {
				l.kernel(kind, symbol, rows)
			}
			kind++
		}
	}
	for _, rows := range []int{1, 2, 4} {
		goldilocks(kind, rows)
	}
	kind++
	for _, rows := range []int{1, 2} {
		scalars(kind, rows)
	}
	for _, e := range entries {
		begin(e, e.name)
		Pragma("noescape")
		e.write(avoJumper{})
	}
	Generate()
}

// begin begins a kernel of an entry, or the entry.
func begin(e *entry, name string) { TEXT(name, NOSPLIT, "func("+e.parameters()+")") }

// avoJumper is a [jumper].
type avoJumper struct{}

func (avoJumper) jumpIfAtLeast(key string, value int, label string) {
	CMPQ(parameter(key), U8(value))
	JGE(LabelRef(label))
}

func (avoJumper) place(label string) { Label(label) }

func (avoJumper) jumpTo(kernel string) {
	Instruction(&ir.Instruction{Opcode: "JMP", Operands: []Op{LabelRef("·" + kernel + "(SB)")}, IsTerminal: true})
}

// parameter returns where a parameter of the function is.
func parameter(name string) Mem {
	p, err := Param(name).Resolve()
	if err != nil {
		log.Fatal(err)
	}
	return p.Addr
}

// groupBytes is the length of a group of symbols in planes: so many low bytes as high
// ones.
const groupBytes = 128

// ahead is how many bytes before they are needed the largest kernels fetch inputs into the second
// cache: the processor follows fewer streams by itself than they have.
const ahead = 1024

// used is how many registers of vectors are taken. They are dealt out here, as avo
// would take Y16 to Y31 for what must do without AVX-512.
var used int

// release gives back the registers taken since there were so many.
func release(before int) { used = before }

func (i isa) vector() vector {
	used++
	if i.bytes == 64 {
		return zmm[used-1]
	}
	return ymm[used-1]
}

var (
	ymm = []vector{
		reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
		reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15,
	}
	zmm = []vector{
		reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
		reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
		reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
		reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
	}
)

type vector = reg.VecPhysical

func (i isa) vectors(n int) []vector {
	v := make([]vector, n)
	for k := range v {
		v[k] = i.vector()
	}
	return v
}

func (i isa) move(src, dst Op) {
	if i.bytes == 64 {
		VMOVDQU64(src, dst)
	} else {
		VMOVDQU(src, dst)
	}
}

// xor sets dst = dst + src.
func (i isa) xor(src Op, dst vector) {
	if i.bytes == 64 {
		VPXORQ(src, dst, dst)
	} else {
		VPXOR(src, dst, dst)
	}
}

// xor2 sets dst = dst + a + b.
func (i isa) xor2(a Op, b, dst vector) {
	if i.bytes == 64 {
		VPTERNLOGQ(U8(0x96), a, b, dst)
		return
	}
	i.xor(a, dst)
	i.xor(b, dst)
}

// mask sets v to v·mask, bit by bit.
func (i isa) mask(mask, v vector) {
	if i.bytes == 64 {
		VPANDQ(mask, v, v)
	} else {
		VPAND(mask, v, v)
	}
}

// Shuffles and permutations of vectors.
var (
	// halves moves the low bytes of the symbols in 16 bytes before the high ones.
	halves = vectorData("halves", func(k int) uint64 { return []uint64{0x0e0c0a0806040200, 0x0f0d0b0907050301}[k%2] })

	// order puts the even quarters of 16 bytes before the odd ones, and disorder is its inverse.
	order    = vectorData("order", func(k int) uint64 { return uint64(2*(k%4) + k/4) })
	disorder = vectorData("disorder", func(k int) uint64 { return uint64(k/2 + 4*(k%2)) })
)

// vectorData returns what returns the memory of a vector of these words, and has it written where it is first used.
func vectorData(name string, word func(k int) uint64) func() Mem {
	return sync.OnceValue(func() Mem {
		m := GLOBL(name, RODATA|NOPTR)
		for k := range 8 {
			DATA(8*k, U64(word(k)))
		}
		return m
	})
}

// split parts the symbols in a and b into low bytes, left in a, and high ones, left
// in b, each in an order that join undoes.
func (i isa) split(a, b, halves vector) {
	defer release(used)
	t := i.vector()
	VPSHUFB(halves, a, a)
	VPSHUFB(halves, b, b)
	VPUNPCKLQDQ(b, a, t)
	VPUNPCKHQDQ(b, a, b)
	i.move(t, a)
}

// join is the inverse of split.
func (i isa) join(a, b vector) {
	defer release(used)
	t := i.vector()
	VPUNPCKLBW(b, a, t)
	VPUNPCKHBW(b, a, b)
	i.move(t, a)
}

// products is the arithmetic of one kernel.
type products struct {
	isa
	low vector // 15 in every byte, for tables of nibbles
}

func (i isa) newProducts() products {
	p := products{isa: i}
	if !i.affine {
		p.low = i.vector()
		t := GP32()
		MOVL(U32(0x0f0f0f0f), t)
		VMOVD(t, p.low.AsX())
		VPBROADCASTD(p.low.AsX(), p.low)
	}
	return p
}

// coefBytes returns the bytes of a coefficient made ready.
func (i isa) coefBytes(symbol int) int {
	n := symbol * symbol * 8
	if !i.affine {
		n *= 4
	}
	return n
}

// nibbles returns the low and the high nibbles of v, which it uses up.
func (p products) nibbles(v vector) (low, high vector) {
	high = p.vector()
	VPSRLQ(U8(4), v, high)
	p.mask(p.low, v)
	p.mask(p.low, high)
	return v, high
}

// table loads a table of nibbles.
func (p products) table(at Mem, dst vector) {
	if p.bytes == 64 {
		VBROADCASTI32X4(at, dst)
	} else {
		VBROADCASTI128(at, dst)
	}
}

// addOne adds the products of the bytes in each of x with coefficients of rows, from
// coefs on, to sums[row][k]. With affine products there may be twice as many x as
// sums in a row: the second half belongs to another column.
func (p products) addOne(rows int, coefs reg.Register, x []vector, sums [][]vector) {
	defer release(used)
	if p.affine {
		m, n, t, u := p.vector(), p.vector(), p.vector(), p.vector()
		for r := range rows {
			at, of := Mem{Base: coefs, Disp: 8 * r}, Mem{Base: coefs, Disp: 8 * (rows + r)}
			if len(sums[r]) == 1 && len(x) == 2 {
				VGF2P8AFFINEQB_BCST(U8(0), at, x[0], t)
				VGF2P8AFFINEQB_BCST(U8(0), of, x[1], u)
				p.xor2(t, u, sums[r][0])
				continue
			}
			VPBROADCASTQ(at, m)
			if len(x) == len(sums[r]) {
				for k := range x {
					VGF2P8AFFINEQB(U8(0), m, x[k], t)
					p.xor(t, sums[r][k])
				}
				continue
			}
			VPBROADCASTQ(of, n)
			for k, sum := range sums[r] {
				VGF2P8AFFINEQB(U8(0), m, x[k], t)
				VGF2P8AFFINEQB(U8(0), n, x[len(sums[r])+k], u)
				p.xor2(t, u, sum)
			}
		}
		return
	}
	parts := make([][2]vector, len(x))
	for k := range x {
		parts[k][0], parts[k][1] = p.nibbles(x[k])
	}
	m, u := p.vector(), p.vector()
	if p.bytes == 64 { // registers for two tables, for one xor of two products
		n, t := p.vector(), p.vector()
		for r := range rows {
			p.table(Mem{Base: coefs, Disp: 32 * r}, m)
			p.table(Mem{Base: coefs, Disp: 32*r + 16}, n)
			for k := range x {
				VPSHUFB(parts[k][0], m, t)
				VPSHUFB(parts[k][1], n, u)
				p.xor2(t, u, sums[r][k])
			}
		}
		return
	}
	for r := range rows {
		for half := range 2 {
			p.table(Mem{Base: coefs, Disp: 32*r + 16*half}, m)
			for k := range x {
				t := m
				if k < len(x)-1 {
					t = u
				}
				VPSHUFB(parts[k][half], m, t)
				p.xor(t, sums[r][k])
			}
		}
	}
}

// addTwo is addOne for symbols of two bytes: x and sums[row] are pairs of low and high
// bytes.
func (p products) addTwo(rows int, coefs reg.Register, x []vector, sums [][]vector) {
	defer release(used)
	if p.affine {
		low, high, a, b := p.vector(), p.vector(), p.vector(), p.vector()
		for r := range rows {
			for half := range 2 {
				at := Mem{Base: coefs, Disp: 32*r + 16*half}
				if len(x) == 2 && p.bytes == 64 {
					VGF2P8AFFINEQB_BCST(U8(0), at, x[0], a)
					VGF2P8AFFINEQB_BCST(U8(0), at.Offset(8), x[1], b)
					p.xor2(a, b, sums[r][half])
					continue
				}
				VPBROADCASTQ(at, low)
				VPBROADCASTQ(at.Offset(8), high)
				for k := 0; k < len(x); k += 2 {
					VGF2P8AFFINEQB(U8(0), low, x[k], a)
					VGF2P8AFFINEQB(U8(0), high, x[k+1], b)
					p.xor2(a, b, sums[r][k+half])
				}
			}
		}
		return
	}
	if len(x) != 2 {
		panic("tables of nibbles leave registers for one pair only")
	}
	var parts [4]vector
	parts[0], parts[1] = p.nibbles(x[0])
	parts[2], parts[3] = p.nibbles(x[1])
	t, u := p.vector(), p.vector()
	for r := range rows {
		for half := range 2 {
			for k := 0; k < len(parts); k += 2 {
				at := Mem{Base: coefs, Disp: 128*r + 64*half + 16*k}
				p.table(at, t)
				VPSHUFB(parts[k], t, t)
				p.table(at.Offset(16), u)
				VPSHUFB(parts[k+1], u, u)
				p.xor2(t, u, sums[r][half])
			}
		}
	}
}

// A part is where a vector of a block is.
type part struct {
	disp int
	mask reg.Register // of the bytes that there are, or nil for all
}

func (i isa) load(at Mem, p part, dst vector) {
	if p.mask != nil {
		VMOVDQU8_Z(at.Offset(p.disp), p.mask, dst)
	} else {
		i.move(at.Offset(p.disp), dst)
	}
}

func (i isa) store(src vector, at Mem, p part) {
	if p.mask != nil {
		VMOVDQU8(src, p.mask, at.Offset(p.disp))
	} else {
		i.move(src, at.Offset(p.disp))
	}
}

// A kernel is what the blocks of one function share.
type kernel struct {
	isa
	symbol, rows      int // symbol 0: sums
	products          products
	halves            vector
	out, in, columns  reg.Register
	count, coefs, pos reg.Register
	to, how           reg.Register
	blocks            int
}

// start begins the function and loads its arguments.
func (i isa) start(name string, l layout, rows int) *kernel {
	used = 0
	begin(combineEntry, combineEntry.kernel(name+i.name, i.path, rows, int(l)))
	k := &kernel{isa: i, rows: max(rows, 1)}
	if rows > 0 {
		k.symbol = l.symbol()
	}
	k.out = Load(Param("out"), GP64())
	k.in = Load(Param("in"), GP64())
	k.columns = Load(Param("columns"), GP64())
	k.count = Load(Param("count"), GP64())
	if k.symbol > 0 {
		k.coefs = Load(Param("coefs"), GP64())
	}
	k.pos = Load(Param("from"), GP64())
	k.to = Load(Param("to"), GP64())
	k.how = Load(Param("how"), GP8())
	k.products = i.newProducts()
	return k
}

// block works on the parts of a block at pos; pairs of parts are to be split into
// bytes where interleaved.
func (k *kernel) block(parts []part, interleaved bool) {
	defer release(used)
	k.blocks++
	name := func(s string) string { return fmt.Sprintf("%s%d", s, k.blocks) }
	sums := make([][]vector, k.rows)
	for r := range sums {
		sums[r] = k.vectors(len(parts))
		for _, v := range sums[r] {
			k.xor(v, v) // to zero
		}
	}
	column, coef, left := GP64(), GP64(), GP64()
	MOVQ(k.columns, column)
	if k.symbol > 0 {
		MOVQ(k.coefs, coef)
	}
	MOVQ(k.count, left)
	if k.symbol == 1 && k.affine { // by two, for one xor of two products
		SUBQ(U32(2), left)
		JLT(LabelRef(name("last")))
		Label(name("columns"))
		for range k.streams(parts)/2 - 1 {
			k.next(2, column, coef, parts, sums, interleaved)
			SUBQ(U32(2), left)
			JLT(LabelRef(name("last")))
		}
		k.next(2, column, coef, parts, sums, interleaved)
		SUBQ(U32(2), left)
		JGE(LabelRef(name("columns")))
		Label(name("last"))
		ADDQ(U32(2), left)
		JE(LabelRef(name("summed")))
		k.next(1, column, coef, parts, sums, interleaved)
	} else {
		TESTQ(left, left)
		JE(LabelRef(name("summed")))
		Label(name("column"))
		for range k.streams(parts) - 1 {
			k.next(1, column, coef, parts, sums, interleaved)
			DECQ(left)
			JEQ(LabelRef(name("summed")))
		}
		k.next(1, column, coef, parts, sums, interleaved)
		DECQ(left)
		JNE(LabelRef(name("column")))
	}

	Label(name("summed"))
	if k.symbol == 2 && interleaved {
		for r := range sums {
			for n := 0; n < len(parts); n += 2 {
				k.join(sums[r][n], sums[r][n+1])
			}
		}
	}
	if parts[0].mask == nil {
		CMPB(k.how, U8(howStream))
		JEQ(LabelRef(name("stream")))
	}
	CMPB(k.how, U8(howAdd))
	JEQ(LabelRef(name("add")))
	k.finish(parts, sums, howSet)
	JMP(LabelRef(name("done")))
	Label(name("add"))
	k.finish(parts, sums, howAdd)
	if parts[0].mask == nil {
		JMP(LabelRef(name("done")))
		Label(name("stream"))
		k.finish(parts, sums, howStream)
	}
	Label(name("done"))
}

// streams returns how many inputs are read by instructions of their own, which is by what processors tell streams apart
// and fetch them ahead: the kernels that read inputs from memory take half the time so where these are 16.
func (k *kernel) streams(parts []part) int {
	switch {
	case parts[0].mask != nil || k.symbol != 1:
		return 1
	case k.rows > k.isa.rows, k.name == "AVX2" && k.rows == k.isa.rows:
		return 16
	}
	return 1
}

// next adds the products with so many columns to the sums, and moves on.
func (k *kernel) next(columns int, column, coef reg.Register, parts []part, sums [][]vector, interleaved bool) {
	defer release(used)
	var x []vector
	for c := range columns {
		p := GP64()
		MOVL(Mem{Base: column, Disp: 4 * c}, p.As32())
		MOVQ(Mem{Base: k.in, Index: p, Scale: 1}, p)
		at := Mem{Base: p, Index: k.pos, Scale: 1}
		if k.symbol == 0 && parts[0].mask == nil {
			for n, part := range parts {
				k.xor(at.Offset(part.disp), sums[0][n])
			}
			continue
		}
		for _, part := range parts {
			v := k.vector()
			if k.rows > k.isa.rows && part.mask == nil {
				PREFETCHT1(at.Offset(part.disp + ahead))
			}
			k.load(at, part, v)
			x = append(x, v)
		}
	}
	switch k.symbol {
	case 0:
		for n := range x {
			k.xor(x[n], sums[0][n])
		}
	case 1:
		k.products.addOne(k.rows, coef, x, sums)
	default:
		for n := 0; interleaved && n < len(x); n += 2 {
			k.split(x[n], x[n+1], k.halves)
		}
		k.products.addTwo(k.rows, coef, x, sums)
	}
	ADDQ(U32(4*columns), column)
	if k.symbol > 0 {
		ADDQ(U32(columns*k.rows*k.coefBytes(k.symbol)), coef)
	}
}

// How a combineKernel writes results, as package field has it too.
const (
	howSet = iota
	howAdd
	howStream // past the caches, to whole lines of them
)

// finish stores the sums, or adds them.
func (k *kernel) finish(parts []part, sums [][]vector, how int) {
	for r := range sums {
		p := GP64()
		MOVQ(Mem{Base: k.out, Disp: 24 * r}, p)
		at := Mem{Base: p, Index: k.pos, Scale: 1}
		for n, part := range parts {
			if how == howStream {
				VMOVNTDQ(sums[r][n], at.Offset(part.disp))
				continue
			}
			if how == howAdd && part.mask == nil {
				k.xor(at.Offset(part.disp), sums[r][n])
			} else if how == howAdd {
				t := k.vector()
				k.load(at, part, t)
				k.xor(t, sums[r][n])
				release(used - 1)
			}
			k.store(sums[r][n], at, part)
		}
	}
}

// loop runs the block while there are so many bytes.
func (k *kernel) loop(bytes int, blocks ...func()) {
	name := fmt.Sprintf("%d", k.blocks)
	Label("loop" + name)
	t := GP64()
	LEAQ(Mem{Base: k.pos, Disp: bytes}, t)
	CMPQ(t, k.to)
	JGT(LabelRef("end" + name))
	for _, block := range blocks {
		block()
	}
	ADDQ(U32(bytes), k.pos)
	JMP(LabelRef("loop" + name))
	Label("end" + name)
}

// rest works on what is less than a block, by masks.
func (k *kernel) rest() {
	if k.bytes != 64 {
		return
	}
	Label("rest")
	n, ones, zero, mask := GP64(), GP64(), GP64(), GP64()
	MOVQ(k.to, n)
	SUBQ(k.pos, n)
	JLE(LabelRef("end"))
	parts := []part{{0, K()}, {64, K()}}
	XORQ(zero, zero)
	MOVQ(I32(-1), ones)
	CMPQ(n, U32(64))
	full := GP64()
	MOVQ(n, full)
	t := GP64()
	MOVQ(U32(64), t)
	CMOVQGT(t, full)
	BZHIQ(full, ones, mask)
	KMOVQ(mask, parts[0].mask)
	if k.rows > k.isa.rows {
		parts = parts[:1]
	} else {
		SUBQ(U32(64), n)
		CMOVQLT(zero, n)
		CMPQ(n, t)
		CMOVQGT(t, n)
		BZHIQ(n, ones, mask)
		KMOVQ(mask, parts[1].mask)
	}
	k.block(parts, true)
	ADDQ(U32(128), k.pos)
	JMP(LabelRef("rest"))
	Label("end")
}

// end ends the function.
func (i isa) end() {
	VZEROUPPER()
	RET()
}

// end ends the function. What has gone past the caches is then there for others.
func (k *kernel) end() {
	CMPB(k.how, U8(howStream))
	JNE(LabelRef("written"))
	SFENCE()
	Label("written")
	k.isa.end()
}

// sum writes the kernel for one row of ones.
func (i isa) sum() {
	k := i.start("sum", inBytes, 0)
	var parts []part
	for n := range 4 {
		parts = append(parts, part{n * i.bytes, nil})
	}
	if i.bytes == 64 {
		k.loop(256, func() { k.block(parts, false) })
	} else {
		k.loop(128, func() { k.block(parts, false) })
		k.loop(64, func() { k.block(parts[:2], false) })
	}
	k.rest()
	k.end()
}

// product writes the kernel for so many rows.
func (i isa) product(l layout, rows int) {
	planes := l == inPlanes
	k := i.start(fmt.Sprint(l.name(), rows), l, rows)
	if l == inPairs {
		k.halves = i.vector()
		i.move(halves(), k.halves)
	}
	parts := func(disps ...int) func() {
		return func() {
			var all []part
			for _, d := range disps {
				all = append(all, part{d, nil})
			}
			k.block(all, !planes)
		}
	}
	switch {
	case i.bytes == 64:
		if rows <= i.wide {
			k.loop(256, parts(0, 64, 128, 192))
		}
		switch {
		case rows > i.rows:
			k.loop(64, parts(0))
		case rows > i.wide || planes:
			k.loop(128, parts(0, 64))
		}
		if !planes {
			k.rest()
		}
	case planes:
		k.loop(128, parts(0, 64), parts(32, 96))
	default:
		k.loop(64, parts(0, 32))
	}
	k.end()
}

// groups calls do for what of each of the groups in n bytes is worked on at a time: with the place of the group, and the
// offsets of a vector, or of one with low bytes and one with high ones. It ends the function.
func (i isa) groups(n reg.Register, symbol int, do func(pos reg.Register, disps []int)) {
	pos := GP64()
	XORQ(pos, pos)
	CMPQ(pos, n)
	JGE(LabelRef("end"))
	Label("loop")
	before := used
	for d := 0; d < groupBytes/symbol; d += i.bytes {
		release(before)
		do(pos, []int{d, d + 64}[:symbol])
	}
	ADDQ(U32(groupBytes), pos)
	CMPQ(pos, n)
	JLT(LabelRef("loop"))
	Label("end")
	i.end()
}

// addTo adds the product of x with the coefficient to sum. The matrices are in registers, or nil.
func (p products) addTo(sum, x, matrices []vector, coefs reg.Register, coef int) {
	defer release(used)
	symbol := len(x)
	if !p.affine {
		copies := p.vectors(symbol)
		for half := range x {
			p.move(x[half], copies[half])
		}
		at := GP64()
		LEAQ(Mem{Base: coefs, Disp: coef * p.coefBytes(symbol)}, at)
		if symbol == 1 {
			p.addOne(1, at, copies, [][]vector{sum})
		} else {
			p.addTwo(1, at, copies, [][]vector{sum})
		}
		return
	}
	parts := p.vectors(symbol)
	for half := range sum {
		for k := range x {
			n := symbol*(symbol*coef+half) + k
			m := parts[k]
			if matrices != nil {
				m = matrices[n]
			} else {
				VPBROADCASTQ(Mem{Base: coefs, Disp: 8 * n}, m)
			}
			VGF2P8AFFINEQB(U8(0), m, x[k], parts[k])
		}
		if symbol == 1 {
			p.xor(parts[0], sum[half])
		} else {
			p.xor2(parts[0], parts[1], sum[half])
		}
	}
}

// loadMatrices returns registers with so many coefficients, or nil where there are too few.
func (p products) loadMatrices(coefs reg.Register, symbol, n int) []vector {
	n *= symbol * symbol
	if !p.affine || n > 4 && p.bytes != 64 {
		return nil
	}
	matrices := p.vectors(n)
	for k, m := range matrices {
		VPBROADCASTQ(Mem{Base: coefs, Disp: 8 * k}, m)
	}
	return matrices
}

// butterfly writes the kernel of two packets with one product by c:
// (x, y) → (x + c·y, x + c·y + y), or its inverse (x, y) → (x + c·(x+y), x + y).
func (i isa) butterfly(symbol int, inverse bool) {
	used = 0
	begin(butterflyEntry, butterflyEntry.butterfly(i.name, i.path, symbol, inverse))
	var out, in [2]reg.Register
	for k := range out {
		out[k] = Load(Param(fmt.Sprintf("out%d", k)), GP64())
		in[k] = Load(Param(fmt.Sprintf("in%d", k)), GP64())
	}
	i.network(symbol, inverse, out[:], in[:], Load(Param("coef"), GP64()), [][2]int{{0, 1}})
}

// butterflies writes the kernel of four packets that four butterflies turn into four, by the coefficients
// a to d: that of packets 0 and 2 by a, of 1 and 3 by b, then of 0 and 1 by c, and of 2 and 3 by d; or
// the inverse.
func (i isa) butterflies(symbol int, inverse bool) {
	used = 0
	begin(butterfliesEntry, butterfliesEntry.butterfly(i.name, i.path, symbol, inverse))
	var out, in [4]reg.Register
	o, e := Load(Param("out"), GP64()), Load(Param("in"), GP64())
	for k := range out {
		out[k], in[k] = GP64(), GP64()
		MOVQ(Mem{Base: o, Disp: 24 * k}, out[k])
		MOVQ(Mem{Base: e, Disp: 24 * k}, in[k])
	}
	i.network(symbol, inverse, out[:], in[:], Load(Param("coefs"), GP64()), [][2]int{{0, 2}, {1, 3}, {0, 1}, {2, 3}})
}

// network writes the butterflies of pairs of packets, one after the other, or their inverses from the last.
func (i isa) network(symbol int, inverse bool, out, in []reg.Register, coefs reg.Register, pairs [][2]int) {
	n := Load(Param("n"), GP64())
	p := i.newProducts()
	matrices := p.loadMatrices(coefs, symbol, len(pairs))
	i.groups(n, symbol, func(pos reg.Register, disps []int) {
		x := make([][]vector, len(in))
		for k := range x {
			x[k] = i.vectors(symbol)
			for half, d := range disps {
				i.move(Mem{Base: in[k], Index: pos, Scale: 1, Disp: d}, x[k][half])
			}
		}
		for k := range pairs {
			coef := k
			if inverse {
				coef = len(pairs) - 1 - k
			}
			x, y := x[pairs[coef][0]], x[pairs[coef][1]]
			xor := func(now bool) {
				for half := range y {
					if now {
						i.xor(x[half], y[half])
					}
				}
			}
			xor(inverse)
			p.addTo(x, y, matrices, coefs, coef)
			xor(!inverse)
		}
		for k := range x {
			for half, d := range disps {
				i.move(x[k][half], Mem{Base: out[k], Index: pos, Scale: 1, Disp: d})
			}
		}
	})
}

// planes writes the change of layout of whole groups.
func (i isa) planes(name string, to bool) {
	used = 0
	begin(planesEntry, planesEntry.kernel(name+i.name, i.path, flagOf(to)))
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	n := Load(Param("n"), GP64())
	shuffle, permute := i.vector(), i.vector()
	if to {
		i.move(halves(), shuffle)
	}
	if i.bytes == 64 {
		if to {
			i.move(order(), permute)
		} else {
			i.move(disorder(), permute)
		}
	}
	reorder := func(v vector) {
		if i.bytes == 64 {
			VPERMQ(v, permute, v)
		} else {
			VPERMQ(U8(0b11011000), v, v)
		}
	}
	i.groups(n, 2, func(pos reg.Register, halves []int) {
		pairs := []int{2 * halves[0], 2*halves[0] + i.bytes}
		v := i.vectors(2)
		from, into := pairs, halves
		if !to {
			from, into = halves, pairs
		}
		for k := range v {
			i.move(Mem{Base: src, Index: pos, Scale: 1, Disp: from[k]}, v[k])
		}
		if to {
			i.split(v[0], v[1], shuffle)
		}
		for k := range v {
			reorder(v[k])
		}
		if !to {
			i.join(v[0], v[1])
		}
		for k := range v {
			i.move(v[k], Mem{Base: dst, Index: pos, Scale: 1, Disp: into[k]})
		}
	})
}
