//go:build !purego

package field

import (
	"math/big"

	"github.com/consensys/gnark-crypto/utils/cpu"
)

// scalarLanes are the AVX-512 kernels for a prime of 32 bytes. They multiply 52 bits
// by 52, sum the products and reduce the sums once, and so have R = 2^260; see also
// [primeLanes].
type scalarLanes struct {
	lifted    func(c Element) Element // R·c
	constants [6]uint64               // -1/q mod 2^52, and the words of q
}

// scalarInputs is how many inputs the kernels take at once: with q < 2^255, so many
// products stay below q·R.
const scalarInputs = 32

// newScalarLanes returns nil without the instructions.
func newScalarLanes(q *big.Int, lifted func(c Element) Element) *scalarLanes {
	if !cpu.SupportAVX512IFMA || q.BitLen() > 255 {
		return nil
	}
	l := &scalarLanes{lifted: lifted}
	code, _ := FromInt(q) // below 2^255
	words := words52(code)
	copy(l.constants[1:], words[:])
	inverse := words[0] // modulo 2^3; a step doubles the bits
	for range 5 {
		inverse *= 2 - words[0]*inverse
	}
	l.constants[0] = -inverse & (1<<52 - 1)
	return l
}

// words52 returns the limbs of c in words of 52 bits.
func words52(c Element) [5]uint64 {
	const mask = 1<<52 - 1
	return [5]uint64{c[0] & mask, (c[0]>>52 | c[1]<<12) & mask, (c[1]>>40 | c[2]<<24) & mask, (c[2]>>28 | c[3]<<36) & mask, c[3] >> 16}
}

// appendCoefficients appends those of several rows as the kernels read them, input by
// input.
func (l *scalarLanes) appendCoefficients(words []uint64, rows [][]Element) []uint64 {
	for j := range rows[0] {
		for _, row := range rows {
			w := words52(l.lifted(row[j]))
			words = append(words, w[:]...)
		}
	}
	return words
}

func (l *scalarLanes) newMap(shape mapShape, rows [][]Element) Map {
	coefficients := func(rows [][]Element) []uint64 { return l.appendCoefficients(nil, rows) }
	return &laneMap[uint64]{shape, 32, laneGroups(rows, 2, coefficients), l.kernel}
}

func (l *scalarLanes) combine(dst []byte, coef []Element, src [][]byte) {
	t := widePool.Get().(*laneScratch[uint64])
	t.rows[0] = coef
	t.coef = l.appendCoefficients(t.coef[:0], t.rows[:])
	t.rows[0] = nil
	out := [1][]byte{dst}
	l.kernel(1, out[:], src, t.coef, len(dst)/32, false)
	widePool.Put(t)
}

// kernel sets as many rows of n symbols, or adds to them.
func (l *scalarLanes) kernel(rows int, out, in [][]byte, coef []uint64, n int, add bool) {
	for len(in) > 0 {
		inputs := min(len(in), scalarInputs)
		if rows == 2 {
			scalarKernel2(&out[0], &in[0], &coef[0], &l.constants[0], inputs, n, add)
		} else {
			scalarKernel1(&out[0], &in[0], &coef[0], &l.constants[0], inputs, n, add)
		}
		in, coef, add = in[inputs:], coef[5*rows*inputs:], true
	}
}
