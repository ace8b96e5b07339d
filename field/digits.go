package field

import "sync"

// maxDigits is the degree up to which digits are faster than tables.
const maxDigits = 6

// digitsPay reports whether they are for a map, by measurement: taking packets apart
// costs m divisions for each symbol, and must serve enough products; tables are twice
// as fast for symbols of one byte.
func (f *extension) digitsPay(s mapShape) bool {
	return f.base != nil && (f.m == 2 || min(s.outputs, s.inputs) >= 4*f.m/f.symbolBytes)
}

// digitScratchBytes is how much the digits of a block of all packets take.
const digitScratchBytes = 128 << 10

// digitMap is a map of extension by one of F_p: a symbol Σ d_i·p^i is taken as its
// digits, the i-th of all symbols in a packet of its own, and a coefficient is the
// matrix of m times m that multiplies by it. That is m^2 products for one, but of
// lanes that do 16 at once.
type digitMap struct {
	mapShape
	*extension
	digits     Map    // of mapShape times m
	reciprocal uint64 // ⌈2^32/p⌉
	block      int    // symbols worked on at a time
	pool       sync.Pool
}

type digitScratch struct{ out, in [][]byte }

func (f *extension) newDigitMap(shape mapShape, rows [][]Element) Map {
	m := &digitMap{mapShape: shape, extension: f, reciprocal: 1<<32/f.p + 1}
	matrix := make([][]Element, m.outputs*f.m)
	for i := range matrix {
		matrix[i] = make([]Element, m.inputs*f.m)
	}
	for i, row := range rows {
		for j, c := range row {
			power := uint64(1)
			for k := range f.m { // the column of X^k
				column := vectorOf(f.mul(c[0], power), f.p)
				for d := range f.m {
					matrix[i*f.m+d][j*f.m+k] = Code(column[d])
				}
				power *= f.p
			}
		}
	}
	m.digits = f.base.Map(matrix)
	m.block = max(digitScratchBytes/(len(matrix)+len(matrix[0]))&^63, 64)
	m.pool.New = func() any {
		packets := func(n int) [][]byte {
			all := make([][]byte, n)
			for i := range all {
				all[i] = make([]byte, m.block)
			}
			return all
		}
		return &digitScratch{packets(len(matrix)), packets(len(matrix[0]))}
	}
	return m
}

func (m *digitMap) Apply(out, in [][]byte, add bool) {
	n := m.check(out, in, m.symbolBytes) / m.symbolBytes
	t := m.pool.Get().(*digitScratch)
	defer m.pool.Put(t)
	for lo := 0; lo < n; lo += m.block {
		symbols := min(m.block, n-lo)
		from, to := lo*m.symbolBytes, (lo+symbols)*m.symbolBytes
		for k := range t.in {
			t.in[k] = t.in[k][:symbols]
		}
		for k := range t.out {
			t.out[k] = t.out[k][:symbols]
		}
		for j, s := range in {
			m.split(t.in[j*m.m:][:m.m], s[from:to])
		}
		if add {
			for i, dst := range out {
				m.split(t.out[i*m.m:][:m.m], dst[from:to])
			}
		}
		m.digits.Apply(t.out, t.in, add)
		for i, dst := range out {
			m.join(dst[from:to], t.out[i*m.m:][:m.m])
		}
	}
}

// split sets digits to those of the symbols of src.
func (m *digitMap) split(digits [][]byte, src []byte) {
	p, reciprocal := m.p, m.reciprocal
	if m.m == 2 && m.symbolBytes == 2 {
		d, e := digits[0], digits[1][:len(digits[0])]
		src = src[:2*len(d)]
		for k := range d {
			x := uint64(le.Uint16(src[2*k:]))
			y := x * reciprocal >> 32 // exact for x below 2^16
			d[k], e[k] = byte(x-y*p), byte(y)
		}
		return
	}
	for k := range digits[0] {
		var x uint64
		if m.symbolBytes == 1 {
			x = uint64(src[k])
		} else {
			x = uint64(le.Uint16(src[2*k:]))
		}
		for _, d := range digits {
			y := x * reciprocal >> 32
			d[k] = byte(x - y*p)
			x = y
		}
	}
}

// join is the inverse of split.
func (m *digitMap) join(dst []byte, digits [][]byte) {
	p := m.p
	if m.m == 2 && m.symbolBytes == 2 {
		d, e := digits[0], digits[1][:len(digits[0])]
		dst = dst[:2*len(d)]
		for k := range d {
			le.PutUint16(dst[2*k:], uint16(uint64(d[k])+uint64(e[k])*p))
		}
		return
	}
	for k := range digits[0] {
		x := uint64(0)
		for i := len(digits) - 1; i >= 0; i-- {
			x = x*p + uint64(digits[i][k])
		}
		if m.symbolBytes == 1 {
			dst[k] = byte(x)
		} else {
			le.PutUint16(dst[2*k:], uint16(x))
		}
	}
}
