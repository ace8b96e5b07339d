package field

import (
	"crypto/subtle"
	"sync"
)

// blockBytes is how much of dst a kernel keeps in the cache while it goes
// through the sources.
const blockBytes = 16 << 10

// binaryField is F_{2^w}, w <= 16. It multiplies by tables of logarithms to the base of the generator.
type binaryField struct {
	common
	ring
	q   uint64
	log []uint16 // of every element but zero
	exp []uint16 // of 0 … 2(q-2), so that a sum of two logarithms needs no reduction

	affine, nibbles coefTable // where there are kernels

	mulAdd func(dst, src []byte, c uint64) // where there are none: sets dst = dst + c·src, c neither 0 nor 1
}

func newBinary(name string, r ring) Field {
	q, g := uint64(1)<<r.degree, r.generator()
	f := &binaryField{common: newCommon(name, Code(2), r.degree, Code(q), g), ring: r, q: q, log: make([]uint16, q), exp: make([]uint16, 2*(q-1))}
	a := uint64(1)
	for k := range int(q - 1) {
		f.log[a] = uint16(k)
		f.exp[k], f.exp[k+int(q-1)] = uint16(a), uint16(a)
		a = r.mul(a, g)
	}
	if len(kernelPaths) > 0 {
		f.affine, f.nibbles = newCoefTable(f, true), newCoefTable(f, false)
	}
	f.block, f.row = blockBytes, f.tableRow
	if r.degree <= 8 {
		table := sync.OnceValue(f.products)
		f.mulAdd = func(dst, src []byte, c uint64) { mulAdd8(dst, src, &table()[c]) }
		return f
	}
	f.mulAdd = f.mulAdd16
	if len(kernelPaths) == 0 {
		return f
	}
	return &binary16{f}
}

func (f *binaryField) Map(rows [][]Element) Map { return f.stepwiseMap(rows, false, noSteps) }

func (f *binaryField) stepwiseMap(rows [][]Element, planar bool, steps func(int)) Map {
	if currentKernels == nil {
		return f.newRowMap(rows, steps)
	}
	return f.kernelMap(rows, planar, steps)
}

func (f *binaryField) Combine(dst []byte, coef []Element, src [][]byte) {
	if currentKernels == nil {
		f.common.Combine(dst, coef, src)
		return
	}
	f.checkCombine(dst, coef, src)
	f.combineKernels(currentKernels, dst, coef, src)
}

func (f *binaryField) Add(a, b Element) Element { return Code(a[0] ^ b[0]) }
func (f *binaryField) Sub(a, b Element) Element { return Code(a[0] ^ b[0]) }

func (f *binaryField) Mul(a, b Element) Element { return Code(f.mul(a[0], b[0])) }

func (f *binaryField) mul(a, b uint64) uint64 {
	if a == 0 || b == 0 {
		return 0
	}
	return uint64(f.exp[int(f.log[a])+int(f.log[b])])
}

func (f *binaryField) Inv(a Element) Element {
	f.checkInv(a)
	return Code(uint64(f.exp[int(f.q-1)-int(f.log[a[0]])]))
}

// tableRow is the row by mulAdd.
func (f *binaryField) tableRow(dst []byte, coef []Element, src [][]byte, lo, hi int, add bool) {
	if !add {
		clear(dst)
	}
	for j, s := range src {
		switch c := coef[j][0]; c {
		case 0:
		case 1:
			subtle.XORBytes(dst, dst, s[lo:hi])
		default:
			f.mulAdd(dst, s[lo:hi], c)
		}
	}
}

// products returns the whole multiplication table of F_{2^w}, w <= 8: [c][x] is c·x, linear in x also beyond q.
func (f *binaryField) products() [][256]byte {
	table := make([][256]byte, f.q)
	for c := range table {
		row, cx := &table[c], uint64(c)
		for n := 1; n < 256; n *= 2 {
			for i, v := range row[:n] {
				row[n+i] = v ^ byte(cx)
			}
			cx = f.times(cx)
		}
	}
	return table
}

// mulAdd8 is mulAdd for symbols of one byte, row having the products with c.
func mulAdd8(dst, src []byte, row *[256]byte) {
	n := len(dst) &^ 7
	for k := 0; k < n; k += 8 {
		s, d := src[k:k+8], dst[k:k+8]
		y := uint64(row[s[0]]) | uint64(row[s[1]])<<8 | uint64(row[s[2]])<<16 | uint64(row[s[3]])<<24 |
			uint64(row[s[4]])<<32 | uint64(row[s[5]])<<40 | uint64(row[s[6]])<<48 | uint64(row[s[7]])<<56
		le.PutUint64(d, le.Uint64(d)^y)
	}
	for k := n; k < len(dst); k++ {
		dst[k] ^= row[src[k]]
	}
}

// binary16 is F_{2^w}, 8 < w <= 16, where there are kernels: it is [Planar].
type binary16 struct{ *binaryField }

// minTable is the number of bytes from which making tables for a coefficient pays.
const minTable = 512

// mulAdd16 is mulAdd for symbols of two bytes: by tables of the products with symbols that have only a low or only a
// high byte, or without any preparation. Words of 64 bits spare it conversions.
func (f *binaryField) mulAdd16(dst, src []byte, c uint64) {
	if len(dst) < minTable {
		logc := int(f.log[c])
		for k := 0; k+2 <= len(dst); k += 2 {
			if x := uint64(le.Uint16(src[k:])) & (f.q - 1); x != 0 {
				le.PutUint16(dst[k:], le.Uint16(dst[k:])^f.exp[logc+int(f.log[x])])
			}
		}
		return
	}
	var low, high [256]uint64
	for _, half := range []*[256]uint64{&low, &high} {
		for n := 1; n < 256; n *= 2 {
			known, next := half[:n], half[n:2*n]
			for i, v := range known {
				next[i] = v ^ c
			}
			c = f.times(c)
		}
	}
	for k := 0; k < len(dst); k += 8 {
		x := load8(src[k:])
		y := (low[x>>48&0xff]^high[x>>56])<<48 ^ (low[x>>32&0xff]^high[x>>40&0xff])<<32 ^
			(low[x>>16&0xff]^high[x>>24&0xff])<<16 ^ low[x&0xff] ^ high[x>>8&0xff]
		store8(dst[k:], load8(dst[k:])^y)
	}
}
