package field

import "github.com/klauspost/reedsolomon"

// blockBytes is how much of dst a kernel keeps in the cache while it goes
// through the sources.
const blockBytes = 16 << 10

// binaryField is F_{2^w}, w <= 16.
type binaryField struct {
	logarithms
	poly uint64

	affine, nibbles coefTable // where there are kernels

	row rowFunc // where there are none
}

func newBinary(name string, r *ring) Field {
	f := &binaryField{logarithms: newLogarithms(name, r), poly: r.f.code(2)}
	if len(kernelPaths) > 0 {
		f.affine, f.nibbles = newCoefTable(f, true), newCoefTable(f, false)
	}
	switch {
	case r.m > 8:
		f.row = f.row16
		return &binary16{f}
	case f.vectors():
		f.row = vectorRow
	default:
		f.row = newTable8(f).row
	}
	return f
}

// vectors reports whether the field is that of klauspost/reedsolomon, F_{2^8} by 0x11d.
// Where there are no kernels here, the library may have some, as for ppc64le.
func (f *binaryField) vectors() bool { return libraryVectors && f.poly == 0x11d }

func (f *binaryField) Map(rows [][]Element) Map {
	if currentKernels != nil {
		return f.kernelMap(rows, false)
	}
	if f.symbolBytes == 1 && len(rows) > 2 && !f.vectors() {
		return f.packedMap(rows)
	}
	return newRowMap(f, rows, blockBytes, f.row)
}

func (f *binaryField) Combine(dst []byte, coef []Element, src [][]byte) {
	f.checkCombine(dst, coef, src)
	if currentKernels != nil {
		f.combineKernels(currentKernels, dst, coef, src)
		return
	}
	combineRow(dst, coef, src, blockBytes, f.row)
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

// vectorRow is the row by the library.
func vectorRow(dst []byte, coef []Element, in [][]byte, lo, hi int, add bool) {
	for j, s := range in {
		switch c := byte(coef[j][0]); {
		case c == 0:
		case add:
			lowLevel.GalMulSliceXor(c, s[lo:hi], dst)
		default:
			lowLevel.GalMulSlice(c, s[lo:hi], dst)
			add = true
		}
	}
	if !add {
		clear(dst)
	}
}

// tableRow is the row by tables: mulAdd sets dst = dst + c·src, c neither 0 nor 1.
// Of many sources sums for each power of X are faster.
func (f *binaryField) tableRow(dst []byte, coef []Element, in [][]byte, lo, hi int, add bool, mulAdd func(dst, src []byte, c uint64)) {
	if f.powersPay(len(in), len(dst)) {
		f.powersRow(dst, coef, in, lo, add)
		return
	}
	if !add {
		clear(dst)
	}
	for j, s := range in {
		switch c := coef[j][0]; c {
		case 0:
		case 1:
			xor(dst, s[lo:hi])
		default:
			mulAdd(dst, s[lo:hi], c)
		}
	}
}

// table8 is the whole multiplication table of F_{2^w}, w <= 8.
type table8 struct {
	*binaryField
	rows [][256]byte // rows[c][x] = c·x, linear in x also beyond q
}

func newTable8(f *binaryField) *table8 {
	t := &table8{f, make([][256]byte, f.q)}
	for c := range t.rows {
		row, cx := &t.rows[c], uint64(c)
		for n := 1; n < 256; n *= 2 {
			for i, v := range row[:n] {
				row[n+i] = v ^ byte(cx)
			}
			cx = f.times(cx)
		}
	}
	return t
}

func (t *table8) row(dst []byte, coef []Element, in [][]byte, lo, hi int, add bool) {
	t.tableRow(dst, coef, in, lo, hi, add, func(dst, src []byte, c uint64) { mulAdd8(dst, src, &t.rows[c]) })
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

// binary16 is F_{2^w}, 8 < w <= 16: it is [Planar].
type binary16 struct{ *binaryField }

// minTable is the number of bytes from which making a table for a coefficient
// pays.
const minTable = 512

// row16 is the row for symbols of two bytes.
func (f *binaryField) row16(dst []byte, coef []Element, in [][]byte, lo, hi int, add bool) {
	if len(dst) < minTable {
		f.tableRow(dst, coef, in, lo, hi, add, f.mulAddShort)
		return
	}
	var t table16
	f.tableRow(dst, coef, in, lo, hi, add, func(dst, src []byte, c uint64) {
		f.setTable(&t, c)
		t.mulAdd(dst, src)
	})
}

// mulAddShort sets dst = dst + c·src without any preparation.
func (f *binaryField) mulAddShort(dst, src []byte, c uint64) {
	logc := int(f.log[c])
	for k := 0; k+2 <= len(dst); k += 2 {
		if x := uint64(le.Uint16(src[k:])) & (f.q - 1); x != 0 {
			le.PutUint16(dst[k:], le.Uint16(dst[k:])^f.exp[logc+int(f.log[x])])
		}
	}
}

// table16 holds the products of one coefficient with the symbols that have only
// a low or only a high byte. Words of 64 bits spare the kernel conversions.
type table16 struct {
	lo, hi [256]uint64
}

func (f *binaryField) setTable(t *table16, c uint64) {
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
