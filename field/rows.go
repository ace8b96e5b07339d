package field

import "slices"

// A rowFunc sets dst, a block of a packet, to Σ coef[j]·in[j][lo:hi], or adds that to dst.
type rowFunc func(dst []byte, coef []Element, in [][]byte, lo, hi int, add bool)

// combineRow is Combine by a rowFunc, for blocks of so many bytes.
func combineRow(dst []byte, coef []Element, src [][]byte, block int, row rowFunc) {
	for lo := 0; lo < len(dst); lo += block {
		hi := min(lo+block, len(dst))
		row(dst[lo:hi], coef, src, lo, hi, false)
	}
}

// rowMap applies the rows one at a time, to a block of the packets.
type rowMap struct {
	mapShape
	symbolBytes, block int // bytes
	rows               [][]Element
	row                rowFunc
}

func newRowMap(f Field, rows [][]Element, block int, row rowFunc) *rowMap {
	m := &rowMap{mapShape: shapeOf(f, rows), symbolBytes: f.SymbolBytes(), block: block, row: row}
	for _, coef := range rows {
		m.rows = append(m.rows, slices.Clone(coef))
	}
	return m
}

func (m *rowMap) Apply(out, in [][]byte, add bool) {
	n := m.check(out, in, m.symbolBytes)
	for lo := 0; lo < n; lo += m.block {
		hi := min(lo+m.block, n)
		for i, dst := range out {
			m.row(dst[lo:hi], m.rows[i], in, lo, hi, add)
		}
	}
}
