package field

import "sync"

// packedMap is a map of a binary field in Go, of symbols of one byte or in planes. For a byte of an input a
// table has a word with its products for 8 bytes of outputs: those of 8 rows, or the low and high bytes of 4.
// Sums of such words are parted at the end.
type packedMap struct {
	*rowMap // for what is less than a unit
	field   *binaryField
}

// packedBytes is how many bytes of an input, neighbours in a plane, make a unit, and packedUnits how many units go
// through a table before the next one: their sums stay in the first cache.
const (
	packedBytes = planesGroup / 2
	packedUnits = 32
)

// packedScratch is the sums of units, and the tables of two bytes of inputs.
type packedScratch struct {
	sums   [packedUnits][packedBytes]uint64
	tables [2][256]uint64
}

var packedPool = sync.Pool{New: func() any { return new(packedScratch) }}

// packedMap returns the map; where it only adds up, words of packets need no tables.
func (f *binaryField) packedMap(rows [][]Element, steps func(int)) Map {
	m := f.newRowMap(rows, steps)
	for _, row := range rows {
		if !isSum(row) {
			return &packedMap{m, f}
		}
	}
	return m
}

func (m *packedMap) Apply(outputs, inputs [][]byte, add bool) {
	n := m.check(outputs, inputs, m.symbolBytes)
	unit, perWord := packedBytes*m.symbolBytes, 8/m.symbolBytes
	aligned := n / unit * unit
	t := packedPool.Get().(*packedScratch)
	for start := 0; start < aligned; start += packedUnits * unit {
		end := min(start+packedUnits*unit, aligned)
		for first := 0; first < len(outputs); first += perWord {
			last := min(first+perWord, len(outputs))
			m.sum(t, m.rows[first:last], inputs, start, end)
			t.part(outputs[first:last], start, end, unit, add)
		}
	}
	packedPool.Put(t)
	for i := range outputs {
		m.row(outputs[i][aligned:], m.rows[i], inputs, aligned, n, add)
	}
}

// sum sets the sums to those of the rows, for the bytes start ≤ . < end of packets.
func (m *packedMap) sum(t *packedScratch, rows [][]Element, inputs [][]byte, start, end int) {
	unit := packedBytes * m.symbolBytes
	clear(t.sums[:(end-start)/unit])
	var source [2][]byte // of the tables
	side := 0
	for j, p := range inputs {
		var word uint64
		for i, row := range rows {
			word |= row[j][0] << (8 * m.symbolBytes * i)
		}
		if word == 0 {
			continue
		}
		for b := range m.symbolBytes {
			word = m.field.fill(&t.tables[side], word)
			source[side] = p[start+packedBytes*b : end]
			if side = 1 - side; side == 0 {
				t.look(source[0], source[1], unit)
			}
		}
	}
	if side == 1 {
		clear(t.tables[1][:])
		t.look(source[0], source[0], unit)
	}
}

// look adds what the tables have for the bytes of a and of b, the first ones of each unit.
func (t *packedScratch) look(a, b []byte, unit int) {
	for u := range t.sums {
		if u*unit >= len(a) {
			return
		}
		x, y, sums := (*[packedBytes]byte)(a[u*unit:]), (*[packedBytes]byte)(b[u*unit:]), &t.sums[u]
		for k := range sums {
			sums[k] ^= t.tables[0][x[k]] ^ t.tables[1][y[k]]
		}
	}
}

// part sets the outputs to the sums, or adds them: byte i of a word belongs to plane i.
func (t *packedScratch) part(outputs [][]byte, start, end, unit int, add bool) {
	for u := range (end - start) / unit {
		sums := &t.sums[u]
		for k := 0; k < packedBytes; k += 8 {
			transpose((*[8]uint64)(sums[k:]))
		}
		for i, dst := range outputs {
			dst = dst[start+u*unit:][:unit]
			for plane := 0; plane*packedBytes < unit; plane++ {
				d := dst[packedBytes*plane:][:packedBytes]
				for k := 0; k < packedBytes; k += 8 {
					word := sums[k+i*unit/packedBytes+plane]
					if add {
						word ^= le.Uint64(d[k:])
					}
					le.PutUint64(d[k:], word)
				}
			}
		}
	}
}

// transpose has the bytes of words as a matrix, and transposes it.
func transpose(w *[8]uint64) {
	swap := func(a, b uint64, shift uint, mask uint64) (uint64, uint64) {
		t := (a>>shift ^ b) & mask
		return a ^ t<<shift, b ^ t
	}
	a, b, c, d, e, f, g, h := w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
	const fours, pairs, bytes = 1<<32 - 1, 0x0000ffff0000ffff, 0x00ff00ff00ff00ff
	a, e = swap(a, e, 32, fours)
	b, f = swap(b, f, 32, fours)
	c, g = swap(c, g, 32, fours)
	d, h = swap(d, h, 32, fours)
	a, c = swap(a, c, 16, pairs)
	b, d = swap(b, d, 16, pairs)
	e, g = swap(e, g, 16, pairs)
	f, h = swap(f, h, 16, pairs)
	w[0], w[1] = swap(a, b, 8, bytes)
	w[2], w[3] = swap(c, d, 8, bytes)
	w[4], w[5] = swap(e, f, 8, bytes)
	w[6], w[7] = swap(g, h, 8, bytes)
}

// fill sets the table to the products of all bytes with the symbols of a word, and returns X^8 times the word.
func (f *binaryField) fill(table *[256]uint64, word uint64) uint64 {
	ones := ^uint64(0) / (1<<(8*f.symbolBytes) - 1) // 1 in each symbol
	top := uint(f.m-1) & 63
	for n := 1; n < 256; n *= 2 {
		known, next := table[:n], table[n:2*n]
		for i, v := range known {
			next[i] = v ^ word
		}
		high := word >> top & ones
		word = (word^high<<top)<<1 ^ high*(f.poly&(1<<f.m-1))
	}
	return word
}
