package field

import "slices"

// A rowFunc sets dst, a block of a packet, to Σ coef[j]·src[j][lo:hi], or adds that to dst.
type rowFunc func(dst []byte, coef []Element, src [][]byte, lo, hi int, add bool)

func (c *common) Combine(dst []byte, coef []Element, src [][]byte) {
	c.checkCombine(dst, coef, src)
	if c.simd != nil && len(src) > 0 {
		c.simd.combine(dst, coef, src)
		return
	}
	for lo := 0; lo < len(dst); lo += c.block {
		hi := min(lo+c.block, len(dst))
		c.row(dst[lo:hi], coef, src, lo, hi, false)
	}
}

func (c *common) Map(rows [][]Element) Map { return c.stepwiseMap(rows, false, noSteps) }

func (c *common) stepwiseMap(rows [][]Element, _ bool, steps func(int)) Map {
	if c.simd != nil {
		return c.simd.newMap(c.shapeOf(rows), rows, steps)
	}
	return c.newRowMap(rows, steps)
}

// rowMap applies the rows one at a time, to a block of the packets.
type rowMap struct {
	mapShape
	*common
	rows [][]Element
}

func (c *common) newRowMap(rows [][]Element, steps func(int)) *rowMap {
	m := &rowMap{c.shapeOf(rows), c, nil}
	for _, coef := range rows {
		steps(len(coef))
		m.rows = append(m.rows, slices.Clone(coef))
	}
	return m
}

func (m *rowMap) Apply(outputs, inputs [][]byte, add bool) {
	n := m.check(outputs, inputs, m.symbolBytes)
	for lo := 0; lo < n; lo += m.block {
		hi := min(lo+m.block, n)
		for i, dst := range outputs {
			m.row(dst[lo:hi], m.rows[i], inputs, lo, hi, add)
		}
	}
}
