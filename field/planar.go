package field

import (
	"fmt"
	"unsafe"
)

// planesGroup is the bytes of 64 symbols. In planes, each group of so many in a packet
// has first the low bytes of its symbols, then the high ones; symbols after the last
// group lie in the usual layout.
const planesGroup = 128

func (f *binary16) ToPlanes(dst, src []byte)   { f.change("ToPlanes", 1, dst, src) }
func (f *binary16) FromPlanes(dst, src []byte) { f.change("FromPlanes", 0, dst, src) }

// change changes the layout, in a direction of planesKernel.
func (f *binary16) change(op string, direction int, dst, src []byte) {
	if len(dst) != len(src) {
		panic(fmt.Sprintf("field %s: %s: len(dst)=%d, len(src)=%d", f.name, op, len(dst), len(src)))
	}
	if len(src)%f.symbolBytes != 0 {
		panic(fmt.Sprintf("field %s: %s: len(src)=%d is no multiple of the %d bytes of a symbol", f.name, op, len(src), f.symbolBytes))
	}
	n := len(src) &^ (planesGroup - 1)
	planesKernel(currentKernels.path, direction, unsafe.SliceData(dst), unsafe.SliceData(src), n)
	copy(dst[n:], src[n:])
}

func (f *binary16) PlanarMap(rows [][]Element) Map {
	return f.stepwiseMap(rows, true, noSteps)
}

// kernelMap returns the map by kernels. With one product for each butterfly it applies
//
//	[1  c]  (x, y) → (x+cy, x+cy+y)        [1+c  c]  (x, y) → (x+c(x+y), x+y)
//	[1 1+c]                         and    [ 1   1]
//
// also with inputs or outputs swapped. And of four packets the maps made of such
// butterflies: of the first kind on packets 0 and 2, 1 and 3, then 0 and 1, 2 and 3; or
// of the second kind, in the opposite order.
func (f *binaryField) kernelMap(rows [][]Element, planes bool, steps func(int)) Map {
	shape := f.shapeOf(rows)
	general := newKernelMap(f, shape, currentKernels, rows, planes, steps)
	switch {
	case f.symbolBytes == 2 && !planes:
	case shape == mapShape{2, 2}:
		return f.findButterfly(rows, general)
	case shape == mapShape{4, 4}:
		return f.findButterflies(rows, general)
	}
	return general
}

// findButterfly returns the map as a butterfly if it is one.
func (f *binaryField) findButterfly(rows [][]Element, general *kernelMap) Map {
	a, b, table := rows[0], rows[1], f.coefTable(general.path)
	for first := range 2 { // the input x of x + c·y and x + (c+1)·y
		if y := 1 - first; a[first] == One && b[first] == One && a[y][0]^b[y][0] == 1 {
			return &butterflyMap{general, 0, 0, first, table.append(nil, a[y][0])}
		}
	}
	for first := range 2 { // the output x + c·(x+y), the other being x+y
		if x, y := rows[first], rows[1-first]; y[0] == One && y[1] == One && x[0][0]^x[1][0] == 1 {
			return &butterflyMap{general, 1, first, 0, table.append(nil, x[1][0])}
		}
	}
	return general
}

// findButterflies returns the map as four butterflies if it is made of them.
func (f *binaryField) findButterflies(rows [][]Element, general *kernelMap) Map {
	var entries [4][4]uint64
	for i := range entries {
		for j := range entries {
			entries[i][j] = rows[i][j][0]
		}
	}
	inverse := 0
	a, b, c, d := entries[0][2], entries[0][3]^entries[1][3], entries[0][1], entries[2][1]
	product := [4][4]uint64{
		{1, c, a, f.mul(c, b)},
		{1, c ^ 1, a, f.mul(c^1, b)},
		{1, d, a ^ 1, f.mul(d, b^1)},
		{1, d ^ 1, a ^ 1, f.mul(d^1, b^1)},
	}
	if entries != product {
		inverse = 1
		a, b, c, d = entries[0][0]^entries[0][1]^1, entries[1][2], entries[2][1], entries[2][3]
		product = [4][4]uint64{
			{f.mul(a^1, c^1), f.mul(a^1, c), f.mul(a, d^1), f.mul(a, d)},
			{b ^ 1, b ^ 1, b, b},
			{c ^ 1, c, d ^ 1, d},
			{1, 1, 1, 1},
		}
	}
	if entries != product {
		return general
	}
	m := &butterflyMap{kernelMap: general, inverse: inverse}
	for _, k := range []uint64{a, b, c, d} {
		m.coefs = f.coefTable(general.path).append(m.coefs, k)
	}
	return m
}

// butterflyMap is a map of two packets that needs only one product, or one of four packets by four: one or
// two layers of a fast Fourier transform, which go through memory once.
type butterflyMap struct {
	*kernelMap           // does all else
	inverse       int    // 1 for the inverse
	output, input int    // which packets are out0 and in0, of two
	coefs         []byte // c, or those of the butterflies of 0 and 2, 1 and 3, 0 and 1, 2 and 3
}

func (m *butterflyMap) Apply(outputs, inputs [][]byte, add bool) {
	if add {
		m.kernelMap.Apply(outputs, inputs, add)
		return
	}
	n := m.check(outputs, inputs, m.symbolBytes)
	planar := n &^ (planesGroup - 1)
	if m.inputs == 4 {
		butterfliesKernel(m.path.path, m.symbolBytes, m.inverse, &outputs[0], &inputs[0], &m.coefs[0], planar)
	} else {
		butterflyKernel(m.path.path, m.symbolBytes, m.inverse, unsafe.SliceData(outputs[m.output]), unsafe.SliceData(outputs[1-m.output]), unsafe.SliceData(inputs[m.input]), unsafe.SliceData(inputs[1-m.input]), &m.coefs[0], planar)
	}
	if planar < n {
		m.usual(outputs, inputs, planar, n, howSet)
	}
}
