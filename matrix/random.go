package matrix

import (
	"fmt"
	"math/bits"
	"math/rand/v2"

	"volley/field"
)

// Random returns the rows×cols matrix of independent uniform entries, on
// demand.
//
// A[i][j] is a function of q, seed, i and j, never to change: the first number
// below q among those drawn from [rand.PCG] with the seeds seed and i·2^32 + j.
// A number takes as many 64-bit words as q-1 has, least significant first, and
// keeps the low bits of the last, as many as q-1 has.
//
// It is an error where rows or cols is not in [1, 2^31).
func Random(f field.Field, rows, cols int, seed uint64) (Matrix, error) {
	if err := checkSize("rows", rows); err != nil {
		return nil, err
	}
	if err := checkSize("cols", cols); err != nil {
		return nil, err
	}
	last := lastCode(f)
	m := &random{f: f, rows: rows, cols: cols, seed: seed, last: last, words: 1}
	for w, limb := range last {
		if limb != 0 {
			m.words = w + 1
		}
	}
	m.mask = ^uint64(0) >> bits.LeadingZeros64(last[m.words-1])
	return m, nil
}

type random struct {
	f          field.Field
	rows, cols int
	seed       uint64
	last       field.Element // q-1
	words      int           // of last
	mask       uint64        // of the last word
}

func (m *random) Field() field.Field { return m.f }
func (m *random) Rows() int          { return m.rows }
func (m *random) Cols() int          { return m.cols }
func (m *random) ID() string         { return fmt.Sprintf("random:%d", m.seed) }

func (m *random) At(i, j int) field.Element {
	checkEntry(i, j, m.rows, m.cols)
	var pcg rand.PCG
	pcg.Seed(m.seed, uint64(i)<<32|uint64(j))
	for {
		var e field.Element
		for w := range m.words {
			e[w] = pcg.Uint64()
		}
		e[m.words-1] &= m.mask
		if !less(m.last, e) {
			return e
		}
	}
}

// lastCode returns q-1, the largest symbol code.
func lastCode(f field.Field) field.Element {
	last, err := field.FromInt(unitCount(f))
	if err != nil {
		panic(err) // an element holds every code
	}
	return last
}

// less reports whether a < b as integers.
func less(a, b field.Element) bool {
	for i := len(a) - 1; i > 0; i-- {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return a[0] < b[0]
}
