package field

import (
	"math/bits"
	"slices"
	"sync"
	"unsafe"
)

//go:generate env GOWORK=off go -C internal/gen run . -out ../../kernels_amd64.s -declarations ../../kernels_stubs_amd64.go
//go:generate env GOWORK=off go -C internal/gen run . -arch arm64 -out ../../kernels_arm64.s -declarations ../../kernels_stubs_arm64.go

// kernels say what those for one set of instructions need. They are functions that field/internal/gen
// declares, all called with the path:
//
//   - combineKernel sets out[i] = Σ_k coefs[k][i]·in[columns[k]] for so many rows i, or adds that, see howSet, in the
//     bytes from ≤ . < to of packets. columns are count offsets into the array of slices in; a coefficient
//     has the form that coefTable.append gives it. With 0 rows it sets one to the sum of the columns.
//   - butterflyKernel sets out0 = in0 + c·in1, out1 = out0 + in1; the inverse out1 = in0 + in1,
//     out0 = in0 + c·out1. butterfliesKernel does four, as for butterflyMap. Symbols of two bytes are
//     in planes.
//   - planesKernel changes the layout, to planes or back. Those three are for n bytes, a multiple of
//     planesGroup.
type kernels struct {
	path   int
	name   string
	affine bool // coefficients are matrices of bits, else tables of nibbles

	// granule is the power of two that to-from is a multiple of; planesGroup where symbols are in planes.
	granule  int
	rows     int // at most, in combineKernel
	byteRows int // rows at most of bytes; more than rows pay where they are all of a map

	streams bool // combineKernel knows howStream
}

// How combineKernel writes results, as field/internal/gen has it too.
const (
	howSet    = iota
	howAdd    // adds to what is there
	howStream // sets, past the caches; results begin with a line of a cache
)

func addOrSet(add bool) uint8 {
	if add {
		return howAdd
	}
	return howSet
}

const lineBytes = 64 // of a cache

// The layouts of symbols in combineKernel: bytes, pairs of them, and pairs in planes.
const (
	inBytes = iota
	inPairs
	inPlanes
)

// kernelPaths are the kernels that this processor can run, the best first.
var kernelPaths = findKernels()

// currentKernels are the ones in use; nil where all is done in Go.
var currentKernels = append(kernelPaths[:len(kernelPaths):len(kernelPaths)], nil)[0]

// Kernels returns the name of the kernels in use for binary fields: a set of instructions, or "generic Go".
func Kernels() string { return pathName(currentKernels) }

func pathName(path *kernels) string {
	if path == nil {
		return "generic Go"
	}
	return path.name
}

// A coefTable is what makes coefficients ready for kernels: the form of c, a string of
// words, is linear in c, and so the sum of those of its digits to the base 2^bits.
type coefTable struct {
	bits  int
	words int      // of a coefficient
	forms []uint64 // those of all values of the lowest digit, then of the next
}

// newCoefTable returns the table for the matrices of affine kernels, or for the tables
// of the others.
func newCoefTable(f *binaryField, affine bool) coefTable {
	t := coefTable{bits: 8, words: f.symbolBytes * f.symbolBytes}
	if !affine {
		t.words *= 4
		if f.symbolBytes == 2 { // 8 KiB of forms, not 64
			t.bits = 4
		}
	}
	digit := t.words << t.bits // words for all values of one
	t.forms = make([]uint64, 8*f.symbolBytes/t.bits*digit)
	form := make([]byte, 8*t.words)
	for bit := range f.m {
		var images [maxDegree]uint64 // X^bit times X^k, for the bits k of a symbol
		for k, c := 0, uint64(1)<<bit; k < 8*f.symbolBytes; k++ {
			images[k] = c
			c = f.times(c)
		}
		if clear(form); affine {
			setBitMatrices(form, &images, f.symbolBytes)
		} else {
			setNibbleTables(form, &images, f.symbolBytes)
		}
		known := t.words << (bit % t.bits)
		forms := t.forms[bit/t.bits*digit:][:2*known]
		for v := range known {
			forms[known+v] = forms[v] ^ le.Uint64(form[v%t.words*8:])
		}
	}
	return t
}

// setBitMatrices sets the zero form to that of the map with the given images of 1, X,
// X², … for GF2P8AFFINEQB: in a word, the byte 7-i has the bits of the input that bit
// i of the output is the sum of. With two bytes to a symbol the words are those of
// low → low, high → low, low → high and high → high.
func setBitMatrices(form []byte, images *[maxDegree]uint64, symbolBytes int) {
	for k := range 8 * symbolBytes {
		for b := images[k]; b != 0; b &= b - 1 {
			i := bits.TrailingZeros64(b)
			form[(i/8*symbolBytes+k/8)*8+7-i%8] |= 1 << (k % 8)
		}
	}
}

// setNibbleTables is the same for VPSHUFB and VTBL: for each byte of the output, for each nibble
// of the input, lowest first, a table of 16 bytes.
func setNibbleTables(form []byte, images *[maxDegree]uint64, symbolBytes int) {
	nibbles := 2 * symbolBytes
	for nibble := range nibbles {
		var products [16]uint64
		for k := range 4 {
			for v, p := range products[:1<<k] {
				products[v+1<<k] = p ^ images[4*nibble+k]
			}
		}
		for v, p := range products {
			for b := range symbolBytes {
				form[16*(nibbles*b+nibble)+v] = byte(p >> (8 * b))
			}
		}
	}
}

// append appends c in the form of the kernels.
func (t *coefTable) append(dst []byte, c uint64) []byte {
	switch {
	case t.words == 1:
		return le.AppendUint64(dst, t.forms[c])
	case t.words == 4 && len(t.forms) == 4<<8:
		for _, w := range t.forms[4*c:][:4] {
			dst = le.AppendUint64(dst, w)
		}
	case t.words == 4:
		low, high := t.forms[4*(c&0xff):][:4], t.forms[4*(256+c>>8):][:4]
		for k, w := range low {
			dst = le.AppendUint64(dst, w^high[k])
		}
	default:
		f0, f1 := t.forms[16*(c&0xf):][:16], t.forms[16*(16+c>>4&0xf):][:16]
		f2, f3 := t.forms[16*(32+c>>8&0xf):][:16], t.forms[16*(48+c>>12):][:16]
		for k, w := range f0 {
			dst = le.AppendUint64(dst, w^f1[k]^f2[k]^f3[k])
		}
	}
	return dst
}

// coefTable returns the table for the kernels.
func (f *binaryField) coefTable(path *kernels) *coefTable {
	if path.affine {
		return &f.affine
	}
	return &f.nibbles
}

// sliceBytes is the distance of slices in an array.
const sliceBytes = uint32(unsafe.Sizeof([]byte(nil)))

// columnsAtOnce is how many columns a kernel goes through for all of a part of the
// packets before the next ones: their coefficients, and the lines that are fetched
// ahead of so many packets, stay in the first cache. By measurement.
const columnsAtOnce = 32

// cacheBytes is a part of the second cache, for inputs.
const cacheBytes = 256 << 10

// rowGroup are rows of a map that one kernel computes.
type rowGroup struct {
	first, rows int
	sum         bool     // one row, of coefficients 0 and 1
	columns     []uint32 // with a coefficient other than 0, as offsets
	coefs       []byte
}

// kernelMap is a map of a binary field by kernels.
type kernelMap struct {
	mapShape
	path        *kernels
	symbolBytes int
	planes      bool
	groups      []rowGroup
}

func newKernelMap(f *binaryField, shape mapShape, path *kernels, rows [][]Element, planes bool, steps func(int)) *kernelMap {
	m := &kernelMap{mapShape: shape, path: path, symbolBytes: f.symbolBytes, planes: planes}
	limit := path.rows
	if f.symbolBytes == 1 && len(rows) <= path.byteRows {
		limit = path.byteRows
	}
	for first := 0; first < len(rows); {
		steps(len(rows[first]))
		if isSum(rows[first]) {
			m.add(f, rows, first, 1)
			first++
			continue
		}
		end := first + 1
		for end < len(rows) && !isSum(rows[end]) {
			steps(len(rows[end]))
			end++
		}
		for remaining := (end - first + limit - 1) / limit; remaining > 0; remaining-- { // nearly equal groups
			n := (end - first + remaining - 1) / remaining
			steps(n * len(rows[first]))
			if sparse(rows[first : first+n]) {
				for i := range n {
					m.add(f, rows, first+i, 1)
				}
			} else {
				m.add(f, rows, first, n)
			}
			first += n
		}
	}
	return m
}

// isSum reports whether all coefficients are 0 or 1.
func isSum(row []Element) bool {
	for _, c := range row {
		if c[0] > 1 {
			return false
		}
	}
	return true
}

// sparse reports whether the rows are cheaper one by one: a kernel for several has no
// use for a zero.
func sparse(rows [][]Element) bool {
	columns, entries := 0, 0
	for j := range rows[0] {
		previous := entries
		for _, row := range rows {
			if !row[j].IsZero() {
				entries++
			}
		}
		if entries > previous {
			columns++
		}
	}
	return 2*entries < columns*len(rows)
}

// add appends the group of n rows from first on.
func (m *kernelMap) add(f *binaryField, rows [][]Element, first, n int) {
	g := rowGroup{first: first, rows: n, sum: n == 1 && isSum(rows[first])}
	group := rows[first : first+n]
	table := f.coefTable(m.path)
	if !g.sum {
		g.coefs = make([]byte, 0, 8*table.words*n*m.inputs)
	}
	g.columns = make([]uint32, 0, m.inputs)
	for j := range m.inputs {
		used := false
		for _, row := range group {
			used = used || !row[j].IsZero()
		}
		if !used {
			continue
		}
		g.columns = append(g.columns, uint32(j)*sliceBytes)
		for _, row := range group {
			if !g.sum {
				g.coefs = table.append(g.coefs, row[j][0])
			}
		}
	}
	m.groups = append(m.groups, g)
}

func (m *kernelMap) Apply(outputs, inputs [][]byte, add bool) {
	m.apply(outputs, inputs, addOrSet(add))
}

// Stream is [Streamer].
func (m *kernelMap) Stream(outputs, inputs [][]byte) {
	mode := uint8(howSet)
	if m.path.streams && !slices.ContainsFunc(outputs, func(p []byte) bool { return uintptr(unsafe.Pointer(unsafe.SliceData(p)))%lineBytes > 0 }) {
		mode = howStream
	}
	m.apply(outputs, inputs, mode)
}

func (m *kernelMap) apply(outputs, inputs [][]byte, mode uint8) {
	n := m.check(outputs, inputs, m.symbolBytes)
	planar := 0
	if m.planes {
		planar = n &^ (planesGroup - 1)
		m.run(inPlanes, outputs, inputs, 0, planar, mode)
	}
	m.usual(outputs, inputs, planar, n, mode)
}

// usual applies the map to bytes in the usual layout.
func (m *kernelMap) usual(outputs, inputs [][]byte, start, end int, mode uint8) {
	layout := inBytes + m.symbolBytes - 1
	aligned := start + (end-start)&^(m.path.granule-1)
	m.run(layout, outputs, inputs, start, aligned, mode)
	if aligned < end {
		add := mode == howAdd
		t := tailPool.Get().(*tail)
		o, i := t.begin(outputs, inputs, aligned, add)
		m.run(layout, o, i, 0, m.path.granule, addOrSet(add))
		t.end(outputs, aligned)
	}
}

func (m *kernelMap) run(layout int, outputs, inputs [][]byte, start, end int, mode uint8) {
	for ; start < end; start += partBytes(m.inputs) {
		m.runPart(layout, outputs, inputs, start, min(end, start+partBytes(m.inputs)), mode)
	}
}

// partBytes returns how many bytes of each of so many inputs are kept in the second
// cache, where one group after the other finds them.
func partBytes(inputs int) int {
	return max(1<<10, cacheBytes/inputs&^(1<<10-1))
}

func (m *kernelMap) runPart(layout int, outputs, inputs [][]byte, start, end int, mode uint8) {
	for k := range m.groups {
		g := &m.groups[k]
		if g.sum {
			combineKernel(m.path.path, 0, layout, &outputs[g.first], &inputs[0], unsafe.SliceData(g.columns), len(g.columns), nil, start, end, mode)
			continue
		}
		size, limit := len(g.coefs)/len(g.columns), columnsAtOnce
		mode := mode
		if len(g.columns) > limit && mode == howStream { // sums are read again
			mode = howSet
		}
		for column := 0; column < len(g.columns); column += limit {
			combineKernel(m.path.path, g.rows, layout, &outputs[g.first], &inputs[0], &g.columns[column], min(limit, len(g.columns)-column), &g.coefs[column*size], start, end, mode)
			mode = howAdd
		}
	}
}

// A tail stands in for the ends of packets, less than a granule, where kernels have
// no masks.
type tail struct {
	buffer          []byte
	outputs, inputs [][]byte
}

var tailPool = sync.Pool{New: func() any { return new(tail) }}

// tailBytes is the granule of all kernels that have one.
const tailBytes = 64

// begin returns packets of tailBytes that begin with the bytes of the given ones from
// an offset on. What comes after them is anything.
func (t *tail) begin(outputs, inputs [][]byte, start int, add bool) (outs, ins [][]byte) {
	if n := tailBytes * (len(outputs) + len(inputs)); len(t.buffer) < n {
		t.buffer = make([]byte, n)
	}
	t.outputs, t.inputs = t.outputs[:0], t.inputs[:0]
	rest := t.buffer
	next := func() []byte {
		p := rest[:tailBytes:tailBytes]
		rest = rest[tailBytes:]
		return p
	}
	for _, p := range inputs {
		t.inputs = append(t.inputs, next())
		copy(t.inputs[len(t.inputs)-1], p[start:])
	}
	for _, p := range outputs {
		t.outputs = append(t.outputs, next())
		if add {
			copy(t.outputs[len(t.outputs)-1], p[start:])
		}
	}
	return t.outputs, t.inputs
}

// end copies the outputs back, and the tail is not to be used any more.
func (t *tail) end(outputs [][]byte, start int) {
	for i, p := range outputs {
		copy(p[start:], t.outputs[i])
	}
	tailPool.Put(t)
}

// combineColumns is how many sources combineKernels takes at a time: their
// coefficients are on the stack.
const combineColumns = 16

// combineKernels is Combine by kernels; the arguments fit together.
func (f *binaryField) combineKernels(path *kernels, dst []byte, coef []Element, src [][]byte) {
	if path.affine {
		var scratch [combineColumns * 32]byte
		f.combineWith(path, dst, coef, src, scratch[:0])
	} else {
		var scratch [combineColumns * 128]byte
		f.combineWith(path, dst, coef, src, scratch[:0])
	}
}

// combineWith does it, with room for coefficients.
func (f *binaryField) combineWith(path *kernels, dst []byte, coef []Element, src [][]byte, coefs []byte) {
	aligned := len(dst) &^ (path.granule - 1)
	if aligned < len(dst) {
		t := tailPool.Get().(*tail)
		outs, ins := t.begin([][]byte{dst}, src, aligned, false)
		f.combineWith(path, outs[0], coef, ins, coefs)
		t.end([][]byte{dst}, aligned)
	}
	table, rows, outputs := f.coefTable(path), 1, [1][]byte{dst}
	if isSum(coef) {
		rows = 0
	}
	for start := 0; start < aligned; start += blockBytes {
		end := min(start+blockBytes, aligned)
		for column, add := 0, false; column < len(src) || !add; add = true {
			var columns [combineColumns]uint32
			n := 0
			for coefs = coefs[:0]; column < len(src) && n < combineColumns; column++ {
				if coef[column].IsZero() {
					continue
				}
				columns[n] = uint32(column) * sliceBytes
				n++
				if rows > 0 {
					coefs = table.append(coefs, coef[column][0])
				}
			}
			combineKernel(path.path, rows, inBytes+f.symbolBytes-1, &outputs[0], unsafe.SliceData(src), &columns[0], n, unsafe.SliceData(coefs), start, end, addOrSet(add))
		}
	}
}
