package field

import "github.com/klauspost/reedsolomon"

// blockBytes is how much of dst a kernel keeps in the cache while it goes
// through the sources.
const blockBytes = 16 << 10

// binaryField is F_{2^w}, w <= 16, without a kernel; the types that embed it add
// one.
type binaryField struct {
	logarithms
	poly uint64

	affine, nibbles coefTable // where there are kernels
}

func newBinary(name string, r *ring) Field {
	b := binaryField{logarithms: newLogarithms(name, r), poly: r.f.code(2)}
	if len(kernelPaths) > 0 {
		b.affine, b.nibbles = newCoefTable(&b, true), newCoefTable(&b, false)
	}
	switch {
	case r.m > 8:
		return &binary16{b}
	case b.poly == 0x11d:
		return &binaryVector{b}
	default:
		return newBinary8(b)
	}
}

func (f *binaryField) Add(a, b Element) Element { return Code(a[0] ^ b[0]) }
func (f *binaryField) Sub(a, b Element) Element { return Code(a[0] ^ b[0]) }

// times returns a·X.
func (f *binaryField) times(a uint64) uint64 {
	return a<<1 ^ a>>(f.m-1)*f.poly
}

var lowLevel reedsolomon.LowLevel

// xor sets dst = dst + src.
func xor(dst, src []byte) { lowLevel.GalMulSliceXor(1, src, dst) }

// binaryVector is F_{2^8} by 0x11d, the field of klauspost/reedsolomon, whose
// kernels it uses where there are none here: NEON and SVE on arm64.
type binaryVector struct{ binaryField }

func (f *binaryVector) Map(rows [][]Element) Map {
	shape := shapeOf(f, rows)
	if currentKernels != nil {
		return newKernelMap(&f.binaryField, shape, currentKernels, rows, false)
	}
	if shape.outputs*shape.inputs < minEncoder {
		return CombineMap(f, rows)
	}
	return newEncoderMap(shape, rows)
}

func (f *binaryVector) Combine(dst []byte, coef []Element, src [][]byte) {
	f.checkCombine(dst, coef, src)
	if currentKernels != nil {
		f.combineKernels(currentKernels, dst, coef, src)
		return
	}
	for lo := 0; lo < len(dst); lo += blockBytes {
		hi := min(lo+blockBytes, len(dst))
		d, empty := dst[lo:hi], true
		for i, s := range src {
			switch c := byte(coef[i][0]); {
			case c == 0:
			case empty:
				lowLevel.GalMulSlice(c, s[lo:hi], d)
				empty = false
			default:
				lowLevel.GalMulSliceXor(c, s[lo:hi], d)
			}
		}
		if empty {
			clear(d)
		}
	}
}

// binary8 is F_{2^w}, w <= 8, with its whole multiplication table.
type binary8 struct {
	binaryField
	rows [][256]byte // rows[c][x] = c·x, linear in x also beyond q
}

func newBinary8(b binaryField) *binary8 {
	f := &binary8{b, make([][256]byte, b.q)}
	for c := range f.rows {
		row, cx := &f.rows[c], uint64(c)
		for n := 1; n < 256; n *= 2 {
			for i, v := range row[:n] {
				row[n+i] = v ^ byte(cx)
			}
			cx = f.times(cx)
		}
	}
	return f
}

func (f *binary8) Map(rows [][]Element) Map {
	if currentKernels != nil {
		return newKernelMap(&f.binaryField, shapeOf(f, rows), currentKernels, rows, false)
	}
	return CombineMap(f, rows)
}

func (f *binary8) Combine(dst []byte, coef []Element, src [][]byte) {
	f.checkCombine(dst, coef, src)
	if currentKernels != nil {
		f.combineKernels(currentKernels, dst, coef, src)
		return
	}
	if f.powersPay(len(src), len(dst)) {
		f.combinePowers(dst, coef, src)
		return
	}
	for lo := 0; lo < len(dst); lo += blockBytes {
		hi := min(lo+blockBytes, len(dst))
		d := dst[lo:hi]
		clear(d)
		for i, s := range src {
			switch c := coef[i][0]; c {
			case 0:
			case 1:
				xor(d, s[lo:hi])
			default:
				mulAdd8(d, s[lo:hi], &f.rows[c])
			}
		}
	}
}

// mulAdd8 sets dst = dst + c·src, row being that of c.
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

// binary16 is F_{2^w}, 8 < w <= 16.
type binary16 struct{ binaryField }

// minTable is the number of bytes from which making a table for a coefficient
// pays.
const minTable = 512

func (f *binary16) Map(rows [][]Element) Map {
	if currentKernels != nil {
		return newKernelMap(&f.binaryField, shapeOf(f, rows), currentKernels, rows, false)
	}
	return CombineMap(f, rows)
}

func (f *binary16) Combine(dst []byte, coef []Element, src [][]byte) {
	f.checkCombine(dst, coef, src)
	if currentKernels != nil {
		f.combineKernels(currentKernels, dst, coef, src)
		return
	}
	if f.powersPay(len(src), len(dst)) {
		f.combinePowers(dst, coef, src)
		return
	}
	if len(dst) < minTable {
		f.combineShort(dst, coef, src)
		return
	}
	var t table16
	for lo := 0; lo < len(dst); lo += blockBytes {
		hi := min(lo+blockBytes, len(dst))
		d := dst[lo:hi]
		clear(d)
		for i, s := range src {
			switch c := coef[i][0]; c {
			case 0:
			case 1:
				xor(d, s[lo:hi])
			default:
				f.setTable(&t, c)
				t.mulAdd(d, s[lo:hi])
			}
		}
	}
}

// combineShort is Combine without any preparation.
func (f *binary16) combineShort(dst []byte, coef []Element, src [][]byte) {
	clear(dst)
	for i, s := range src {
		c := coef[i][0]
		if c == 0 {
			continue
		}
		logc := int(f.log[c])
		for k := 0; k+2 <= len(dst); k += 2 {
			if x := uint64(le.Uint16(s[k:])) & (f.q - 1); x != 0 {
				le.PutUint16(dst[k:], le.Uint16(dst[k:])^f.exp[logc+int(f.log[x])])
			}
		}
	}
}

// table16 holds the products of one coefficient with the symbols that have only
// a low or only a high byte. Words of 64 bits spare the kernel conversions.
type table16 struct {
	lo, hi [256]uint64
}

func (f *binary16) setTable(t *table16, c uint64) {
	for _, half := range []*[256]uint64{&t.lo, &t.hi} {
		for n := 1; n < 256; n *= 2 {
			known, next := half[:n], half[n:2*n]
			for i, v := range known {
				next[i] = v ^ c
			}
			c = f.times(c)
		}
	}
}

// mulAdd sets dst = dst + c·src for the coefficient c of the table.
func (t *table16) mulAdd(dst, src []byte) {
	n := len(dst) &^ 7
	for k := 0; k < n; k += 8 {
		s, d := src[k:k+8], dst[k:k+8]
		y := (t.lo[s[6]]^t.hi[s[7]])<<48 ^ (t.lo[s[4]]^t.hi[s[5]])<<32 ^
			(t.lo[s[2]]^t.hi[s[3]])<<16 ^ t.lo[s[0]] ^ t.hi[s[1]]
		le.PutUint64(d, le.Uint64(d)^y)
	}
	for k := n; k < len(dst); k += 2 {
		le.PutUint16(dst[k:], le.Uint16(dst[k:])^uint16(t.lo[src[k]]^t.hi[src[k+1]]))
	}
}
