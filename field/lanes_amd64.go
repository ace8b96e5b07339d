//go:build !purego

package field

import (
	"math"
	"math/big"
	"math/bits"
	"sync"

	"github.com/klauspost/cpuid/v2"
)

// What kernels need: those of primes below 2^31, and those of larger ones.
var (
	avx512 = []cpuid.FeatureID{cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.AVX512VBMI2, cpuid.BMI2}
	ifma   = append(avx512[:len(avx512):len(avx512)], cpuid.AVX512IFMA)
)

// laneKernels say what the AVX-512 kernels for one field of odd characteristic need. laneKernel sets as many
// outputs (rows) from out on to what the given number of slices from in on make with coef, or adds that, n
// symbols of each.
type laneKernels struct {
	kind        int // in the order of field/internal/gen
	symbolBytes int
	rows        int       // at most
	inputs      int       // at most: beyond, sums might overflow
	words       int       // of a coefficient, where there may be more inputs
	constants   [6]uint64 // of the field

	// coefficients appends those of several rows as the kernels read them, input by input.
	coefficients func(dst []uint64, rows [][]Element) []uint64
}

// newPrimeLanes returns the kernels of a prime below 2^31, or nil without the instructions. They reduce sums in
// Montgomery's way: sums are kept below q·R, and x·(1/R) mod q is (x + (x·(-1/q) mod R)·q)/R, less q if need
// be. Each coefficient is stored times R, which the reduction divides by. R is 2^16 in narrow lanes, of 32 bits,
// where a product is of signed halves, and 2^32 in lanes of 64 bits. The constants are how many products, in narrow
// lanes pairs of them, may be added to a sum below q·R so that it stays below 2·q·R, which must fit; q; and -1/q mod R.
func newPrimeLanes(f *prime) *laneKernels {
	if !cpuid.CPU.Supports(avx512...) {
		return nil
	}
	narrow := f.q < 1<<15
	shift, l := 32, &laneKernels{kind: 1 + f.symbolBytes/2, symbolBytes: f.symbolBytes, rows: 4, inputs: math.MaxInt}
	if narrow {
		shift, l.kind = 16, f.symbolBytes-1
	}
	montgomery := func(c Element) uint64 { return reduce(c[0]<<(shift&63), f.q, f.inverse) }
	l.coefficients = func(dst []uint64, rows [][]Element) []uint64 {
		for j := 0; j < len(rows[0]); j++ {
			for _, row := range rows {
				c := montgomery(row[j])
				if narrow && j+1 < len(row) {
					c |= montgomery(row[j+1]) << 16
				}
				dst = append(dst, c)
			}
			if narrow { // pairs of inputs
				j++
			}
		}
		return dst
	}
	products := min(f.q<<shift/((f.q-1)*(f.q-1)), 1<<30)
	if narrow {
		products /= 2
	}
	l.constants = [6]uint64{products, f.q, -inverseOf(f.q) & (1<<shift - 1)}
	return l
}

// inverseOf returns 1/q modulo 2^64.
func inverseOf(q uint64) uint64 {
	inverse := q // modulo 2^3; a step doubles the bits
	for range 5 {
		inverse *= 2 - q*inverse
	}
	return inverse
}

// newGoldLanes returns the kernels of goldilocks, or nil without the instructions. They multiply 52 bits by 52:
// a coefficient is its code and the upper 12 bits, and 3 products of each input are added up in 64 bits.
func newGoldLanes() *laneKernels {
	if !cpuid.CPU.Supports(ifma...) {
		return nil
	}
	return &laneKernels{kind: 4, symbolBytes: 8, rows: 4, inputs: 1024, words: 2, coefficients: func(dst []uint64, rows [][]Element) []uint64 {
		for j := range rows[0] {
			for _, row := range rows {
				dst = append(dst, row[j][0], row[j][0]>>52)
			}
		}
		return dst
	}}
}

// newScalarLanes returns the kernels of a prime of 32 bytes, or nil without the instructions. They multiply 52
// bits by 52, sum the products and reduce the sums once, and so have R = 2^260, of which lifted returns the
// product with c; see also [newPrimeLanes]. With q < 2^255, products of 32 inputs stay below q·R. The constants
// are -1/q mod 2^52, and the words of q.
func newScalarLanes(q *big.Int, lifted func(c Element) Element) *laneKernels {
	if !cpuid.CPU.Supports(ifma...) || q.BitLen() > 255 {
		return nil
	}
	l := &laneKernels{kind: 5, symbolBytes: 32, rows: 2, inputs: 32, words: 5, coefficients: func(dst []uint64, rows [][]Element) []uint64 {
		for j := range rows[0] {
			for _, row := range rows {
				w := words52(lifted(row[j]))
				dst = append(dst, w[:]...)
			}
		}
		return dst
	}}
	code, _ := FromInt(q) // below 2^255
	words := words52(code)
	copy(l.constants[1:], words[:])
	l.constants[0] = -inverseOf(words[0]) & (1<<52 - 1)
	return l
}

// words52 returns the limbs of c in words of 52 bits.
func words52(c Element) [5]uint64 {
	const mask = 1<<52 - 1
	return [5]uint64{c[0] & mask, (c[0]>>52 | c[1]<<12) & mask, (c[1]>>40 | c[2]<<24) & mask, (c[2]>>28 | c[3]<<36) & mask, c[3] >> 16}
}

// apply sets as many rows of packets of so many bytes, or adds to them.
func (l *laneKernels) apply(rows int, outputs, inputs [][]byte, coef []uint64, bytes int, add bool) {
	n := bytes >> bits.TrailingZeros(uint(l.symbolBytes)) // no slow division
	for len(inputs) > 0 {
		count := min(len(inputs), l.inputs)
		laneKernel(l.kind, rows, &outputs[0], &inputs[0], &coef[0], &l.constants[0], count, n, add)
		inputs, coef, add = inputs[count:], coef[rows*count*l.words:], true
	}
}

// laneScratch is for combine: a matrix of one row, and its coefficients as a kernel reads them.
type laneScratch struct {
	rows [1][]Element
	coef []uint64
}

var lanePool = sync.Pool{New: func() any { return new(laneScratch) }}

// combine is Combine by the kernels, of one source or more.
func (l *laneKernels) combine(dst []byte, coef []Element, src [][]byte) {
	t := lanePool.Get().(*laneScratch)
	t.rows[0] = coef
	t.coef = l.coefficients(t.coef[:0], t.rows[:])
	t.rows[0] = nil
	l.apply(1, [][]byte{dst}, src, t.coef, len(dst), false)
	lanePool.Put(t)
}

// A laneGroup is the rows that a kernel takes at once: 4 (where there are), 2 or 1.
type laneGroup struct {
	first, rows int
	coef        []uint64
}

// laneMap is a map by kernels.
type laneMap struct {
	mapShape
	*laneKernels
	groups []laneGroup
}

func (l *laneKernels) newMap(shape mapShape, rows [][]Element, steps func(int)) Map {
	m := &laneMap{shape, l, nil}
	for first, r := 0, l.rows; first < len(rows); first += r {
		for first+r > len(rows) {
			r /= 2
		}
		steps(r * shape.inputs)
		m.groups = append(m.groups, laneGroup{first, r, l.coefficients(nil, rows[first:first+r])})
	}
	return m
}

func (m *laneMap) Apply(outputs, inputs [][]byte, add bool) {
	n := m.check(outputs, inputs, m.symbolBytes)
	for _, g := range m.groups {
		m.apply(g.rows, outputs[g.first:], inputs, g.coef, n, add)
	}
}
