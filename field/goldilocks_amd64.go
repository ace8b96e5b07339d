//go:build !purego

package field

import (
	"github.com/consensys/gnark-crypto/utils/cpu"
)

// goldLanes is whether there are the instructions of the kernels.
var goldLanes = cpu.SupportAVX512IFMA

// goldLaneInputs is how many inputs the kernels take at once: 3 products of 52 bits
// of each are added up in 64.
const goldLaneInputs = 1024

// appendGoldCoefficients appends those of several rows as the kernels read them, input
// by input: a coefficient and its upper 12 bits.
func appendGoldCoefficients(words []uint64, rows [][]Element) []uint64 {
	for j := range rows[0] {
		for _, row := range rows {
			words = append(words, row[j][0], row[j][0]>>52)
		}
	}
	return words
}

func (f *gold) laneMap(rows [][]Element) Map {
	if !f.simd {
		return nil
	}
	coefficients := func(rows [][]Element) []uint64 { return appendGoldCoefficients(nil, rows) }
	return &laneMap[uint64]{shapeOf(f, rows), 8, laneGroups(rows, 4, coefficients), goldKernel}
}

// laneCombine is Combine by the kernels; it reports whether it was.
func (f *gold) laneCombine(dst []byte, coef []Element, src [][]byte) bool {
	if !f.simd || len(src) == 0 {
		return false
	}
	t := widePool.Get().(*laneScratch[uint64])
	t.rows[0] = coef
	t.coef = appendGoldCoefficients(t.coef[:0], t.rows[:])
	t.rows[0] = nil
	out := [1][]byte{dst}
	goldKernel(1, out[:], src, t.coef, len(dst)/8, false)
	widePool.Put(t)
	return true
}

// goldKernel multiplies 52 bits by 52. It sets as many rows of n symbols, or adds to them.
func goldKernel(rows int, out, in [][]byte, coef []uint64, n int, add bool) {
	for len(in) > 0 {
		inputs := min(len(in), goldLaneInputs)
		switch rows {
		case 4:
			goldKernel4(&out[0], &in[0], &coef[0], inputs, n, add)
		case 2:
			goldKernel2(&out[0], &in[0], &coef[0], inputs, n, add)
		default:
			goldKernel1(&out[0], &in[0], &coef[0], inputs, n, add)
		}
		in, coef, add = in[inputs:], coef[2*rows*inputs:], true
	}
}
