package field

import (
	"math/bits"
	"sync"
	"unsafe"
)

//go:generate go -C internal/gen run . -out ../../kernels_amd64.s -stubs ../../kernels_stubs_amd64.go -pkg field

// A kernel sets out[i] = Σ_k coefs[k][i]·in[columns[k]], or adds that, in the bytes
// from ≤ . < to of packets, for the fixed number of outputs that it is written for.
// columns are count offsets into the array of slices in; a coefficient has the form
// that appendCoef gives it.
type kernel func(out, in *[]byte, columns *uint32, count int, coefs *byte, from, to int, add bool)

// kernels are those for one set of instructions.
type kernels struct {
	name   string
	affine bool // coefficients are matrices of bits, else tables of nibbles

	// granule is what to-from is a multiple of, in kernels of the usual layout.
	granule int

	sum    kernel   // for one output, all coefficients being 1
	bytes  []kernel // for symbols of one byte; bytes[i] for i+1 outputs
	pairs  []kernel // of two
	planes []kernel // of two in planes; to-from is a multiple of planesGroup

	// These are for n bytes in planes, a multiple of planesGroup.
	butterfly        func(out0, out1, in0, in1, coef *byte, n int) // out0 = in0 + c·in1, out1 = out0 + in1
	inverseButterfly func(out0, out1, in0, in1, coef *byte, n int) // out1 = in0 + in1, out0 = in0 + c·out1
	toPlanes         func(dst, src *byte, n int)
	fromPlanes       func(dst, src *byte, n int)
}

// kernelPaths are the kernels that this processor can run, the best first.
var kernelPaths = findKernels()

// currentKernels are the ones in use; nil where all is done in Go.
var currentKernels = bestKernels()

func bestKernels() *kernels {
	if len(kernelPaths) == 0 {
		return nil
	}
	return kernelPaths[0]
}

// images returns c·X^k for the bits k of a symbol.
func (f *binaryField) images(c uint64) (images [maxDegree]uint64) {
	for k := range 8 * f.symbolBytes {
		images[k] = c
		c = f.times(c)
	}
	return images
}

// setMatrices makes the table that coefficients come from.
func (f *binaryField) setMatrices() {
	words := f.symbolBytes * f.symbolBytes // of an element
	f.matrices = make([]uint64, words*256*f.symbolBytes)
	for bit := range f.m {
		table := f.matrices[words*256*(bit/8):]
		n := words << (bit % 8)
		for k, w := range bitMatrices(f.images(1<<bit), f.symbolBytes) {
			for v := k; v < n; v += words {
				table[n+v] = table[v] ^ w
			}
		}
	}
}

// bitMatrices returns the map with the given images of 1, X, X², … in the form of
// GF2P8AFFINEQB: the byte 7-i of a word has the bits of the input that bit i of the
// output is the sum of. With two bytes to a symbol the words are those of low → low,
// high → low, low → high and high → high.
func bitMatrices(images [maxDegree]uint64, symbolBytes int) []uint64 {
	m := make([]uint64, symbolBytes*symbolBytes)
	for k := range 8 * symbolBytes {
		for b := images[k]; b != 0; b &= b - 1 {
			i := bits.TrailingZeros64(b)
			m[i/8*symbolBytes+k/8] |= 1 << (8*(7-i%8) + k%8)
		}
	}
	return m
}

// appendCoef appends e in the form of the kernels: matrices, or for each byte of the
// product the table of what each nibble of a symbol gives, 16 bytes.
func (f *binaryField) appendCoef(dst []byte, path *kernels, e uint64) []byte {
	switch {
	case !path.affine:
		images, nibbles := f.images(e), 2*f.symbolBytes
		var tables [128]byte
		for nibble := range nibbles {
			var products [16]uint64
			for k := range 4 {
				for v, p := range products[:1<<k] {
					products[v+1<<k] = p ^ images[4*nibble+k]
				}
			}
			for v, p := range products {
				for b := range f.symbolBytes {
					tables[16*(nibbles*b+nibble)+v] = byte(p >> (8 * b))
				}
			}
		}
		return append(dst, tables[:32*f.symbolBytes*f.symbolBytes]...)
	case f.symbolBytes == 1:
		return le.AppendUint64(dst, f.matrices[e])
	default:
		low, high := f.matrices[4*(e&0xff):][:4], f.matrices[4*(256+e>>8):][:4]
		for k := range 4 {
			dst = le.AppendUint64(dst, low[k]^high[k])
		}
		return dst
	}
}

// sliceBytes is the distance of slices in an array.
const sliceBytes = uint32(unsafe.Sizeof([]byte(nil)))

// chunkBytes is how many bytes of coefficients a kernel goes through again and again
// for the parts of a packet: they stay in the first cache.
var chunkBytes = 16 << 10

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

func newKernelMap(f *binaryField, shape mapShape, path *kernels, rows [][]Element, planes bool) *kernelMap {
	m := &kernelMap{mapShape: shape, path: path, symbolBytes: f.symbolBytes, planes: planes}
	most := len(path.bytes)
	for first := 0; first < len(rows); {
		if isSum(rows[first]) {
			m.add(f, rows, first, 1)
			first++
			continue
		}
		end := first + 1
		for end < len(rows) && !isSum(rows[end]) {
			end++
		}
		for left := (end - first + most - 1) / most; left > 0; left-- { // nearly equal groups
			n := (end - first + left - 1) / left
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
		before := entries
		for _, row := range rows {
			if !row[j].IsZero() {
				entries++
			}
		}
		if entries > before {
			columns++
		}
	}
	return 2*entries < columns*len(rows)
}

// add appends the group of n rows from first on.
func (m *kernelMap) add(f *binaryField, rows [][]Element, first, n int) {
	g := rowGroup{first: first, rows: n, sum: n == 1 && isSum(rows[first])}
	group := rows[first : first+n]
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
				g.coefs = f.appendCoef(g.coefs, m.path, row[j][0])
			}
		}
	}
	m.groups = append(m.groups, g)
}

func (m *kernelMap) Apply(out, in [][]byte, add bool) {
	n := m.check(out, in, m.symbolBytes)
	done := 0
	if m.planes {
		done = n &^ (planesGroup - 1)
		m.run(m.path.planes, out, in, 0, done, add)
	}
	m.usual(out, in, done, n, add)
}

// usual applies the map to bytes in the usual layout.
func (m *kernelMap) usual(out, in [][]byte, from, to int, add bool) {
	table := m.path.pairs
	if m.symbolBytes == 1 {
		table = m.path.bytes
	}
	whole := to - (to-from)%m.path.granule
	m.run(table, out, in, from, whole, add)
	if whole < to {
		t := tailPool.Get().(*tail)
		o, i := t.begin(out, in, whole, add)
		m.run(table, o, i, 0, m.path.granule, add)
		t.end(out, whole)
	}
}

func (m *kernelMap) run(table []kernel, out, in [][]byte, from, to int, add bool) {
	for ; from < to; from += partBytes(m.inputs) {
		m.runPart(table, out, in, from, min(to, from+partBytes(m.inputs)), add)
	}
}

// partBytes returns how many bytes of that many inputs fit in the second cache, where
// one group after the other finds them.
func partBytes(inputs int) int {
	return max(1<<10, cacheBytes/inputs&^(1<<10-1))
}

var cacheBytes = 256 << 10

func (m *kernelMap) runPart(table []kernel, out, in [][]byte, from, to int, add bool) {
	for k := range m.groups {
		g := &m.groups[k]
		if g.sum {
			m.path.sum(&out[g.first], &in[0], unsafe.SliceData(g.columns), len(g.columns), nil, from, to, add)
			continue
		}
		apply, size := table[g.rows-1], len(g.coefs)/len(g.columns)
		chunk := max(1, chunkBytes/size)
		for at := 0; at < len(g.columns); at += chunk {
			apply(&out[g.first], &in[0], &g.columns[at], min(chunk, len(g.columns)-at), &g.coefs[at*size], from, to, add || at > 0)
		}
	}
}

// A tail stands in for the ends of packets, less than a granule, where kernels have
// no masks.
type tail struct {
	buffer  []byte
	out, in [][]byte
}

var tailPool = sync.Pool{New: func() any { return new(tail) }}

// tailBytes is the granule of all kernels that have one.
const tailBytes = 64

// begin returns packets of tailBytes that begin with the bytes of the given ones from
// an offset on. What comes after them is anything.
func (t *tail) begin(out, in [][]byte, from int, add bool) (outs, ins [][]byte) {
	if n := tailBytes * (len(out) + len(in)); len(t.buffer) < n {
		t.buffer = make([]byte, n)
	}
	t.out, t.in = t.out[:0], t.in[:0]
	rest := t.buffer
	next := func() []byte {
		p := rest[:tailBytes:tailBytes]
		rest = rest[tailBytes:]
		return p
	}
	for _, p := range in {
		t.in = append(t.in, next())
		copy(t.in[len(t.in)-1], p[from:])
	}
	for _, p := range out {
		t.out = append(t.out, next())
		if add {
			copy(t.out[len(t.out)-1], p[from:])
		}
	}
	return t.out, t.in
}

// end copies the outputs back, and the tail is not to be used any more.
func (t *tail) end(out [][]byte, from int) {
	for i, p := range out {
		copy(p[from:], t.out[i])
	}
	tailPool.Put(t)
}

// combination is what kernels need for one output.
type combination struct {
	out     [1][]byte
	in      [][]byte
	columns []uint32
	coefs   []byte
}

var combinationPool = sync.Pool{New: func() any { return new(combination) }}

// combineKernels is Combine by kernels; the arguments fit together.
func (f *binaryField) combineKernels(path *kernels, dst []byte, coef []Element, src [][]byte) {
	if len(dst) == 0 {
		return
	}
	if len(src) == 0 {
		clear(dst)
		return
	}
	t := combinationPool.Get().(*combination)
	t.columns, t.coefs = t.columns[:0], t.coefs[:0]
	sum := isSum(coef)
	for j, e := range coef {
		if e.IsZero() {
			continue
		}
		t.columns = append(t.columns, uint32(j)*sliceBytes)
		if !sum {
			t.coefs = f.appendCoef(t.coefs, path, e[0])
		}
	}
	m := kernelMap{mapShape{1, len(src)}, path, f.symbolBytes, false, nil}
	group := [1]rowGroup{{0, 1, sum, t.columns, t.coefs}}
	m.groups = group[:]
	t.out[0] = dst
	m.usual(t.out[:], src, 0, len(dst), false)
	t.out[0] = nil
	combinationPool.Put(t)
}
