package verify

import (
	"bytes"
	"slices"
	"sync"

	"volley/field"
)

// A Relation is what the packets x_i and the results y_j = Σ_i a_ij·x_i of all processors obey at every symbol, where all
// lie in one place: Σ_j w_j·y_j = Σ_i p_i·x_i, with w drawn at random and p_i = Σ_j w_j·a_ij. It is checked e times, each
// time with other w.
//
// Results that are right always obey it. If a y_j is wrong at some symbol, then take the differences d_j of all results at
// this symbol, and leave out w_j: whatever the others are, Σ_j w_j·d_j is zero for exactly one of the q values of w_j. So
// wrong results obey all e with a probability of exactly q^-e, and e is the least with which this is at most 2^-32. It
// does not matter how many symbols are wrong, and of how many results: one of them that does not obey is enough, and each
// is looked at. So all symbols share the same w. This takes results that do not depend on the seed.
//
// A relation is a linear map with e outputs, all of which are to be zero: it reads every packet and result once. It is
// safe for concurrent use.
type Relation struct {
	maps   []field.Map // of so many packets and results each, the last one of the rest
	sums   int         // e
	block  int         // bytes
	symbol int
}

// relationBytes is how long the sums of a block are together: they stay in the first cache.
const relationBytes = 16 << 10

// relationBlock is the most of a packet that is read at a time.
const relationBlock = 4 << 10

// relationColumns is how many packets and results are read side by side, a block of each. By measurement.
const relationColumns = 32

// zeros are what sums are to be.
var zeros [relationBytes]byte

// relationScratch is for one block: its sums, and its part of every packet.
type relationScratch struct {
	memory      [relationBytes]byte
	sums, parts [][]byte
}

var relationPool = sync.Pool{New: func() any { return new(relationScratch) }}

// relationSums returns e.
func relationSums(f field.Field) int {
	q := f.Order()
	e, power := 1, f.Order()
	for ; power.BitLen() <= 32; e++ {
		power.Mul(power, q)
	}
	return e
}

// RelationWeights returns random numbers for so many results, e symbols w for each.
func RelationWeights(f field.Field, seed Seed, results int) []byte {
	return weights(f, seed, 4, results*relationSums(f))
}

// RelationBytes returns how long the weights of a result are.
func RelationBytes(f field.Field) int { return relationSums(f) * f.SymbolBytes() }

// NewRelation returns the relation between packets, in the order of products, and results, in the order of weights. They
// are to have the e symbols p of each packet, and those of [RelationWeights].
func NewRelation(f field.Field, products, weights [][]byte) *Relation {
	n := f.SymbolBytes()
	r := &Relation{sums: len(weights[0]) / n, symbol: n}
	r.block = min(relationBytes/r.sums, relationBlock) / (64 * n) * 64 * n
	rows := make([][]field.Element, r.sums)
	for c := range rows {
		for _, p := range products {
			rows[c] = append(rows[c], field.Symbol(f, p[c*n:]))
		}
		for _, w := range weights {
			rows[c] = append(rows[c], f.Sub(field.Element{}, field.Symbol(f, w[c*n:])))
		}
	}
	for len(rows[0]) > 0 {
		columns, part := min(relationColumns, len(rows[0])), make([][]field.Element, r.sums)
		for c, row := range rows {
			part[c], rows[c] = row[:columns], row[columns:]
		}
		r.maps = append(r.maps, f.Map(part))
	}
	return r
}

// Wrong returns where a symbol begins at which packets and results, all of one length, do not obey the relation, or -1.
// Symbols belong to the field.
func (r *Relation) Wrong(packets, results [][]byte) int {
	s := relationPool.Get().(*relationScratch)
	defer func() {
		clear(s.parts)
		relationPool.Put(s)
	}()
	s.sums, s.parts = slices.Grow(s.sums[:0], r.sums)[:r.sums], slices.Grow(s.parts[:0], len(packets)+len(results))[:len(packets)+len(results)]
	for offset, size := 0, len(packets[0]); offset < size; offset += r.block {
		n := min(r.block, size-offset)
		for i, p := range packets {
			s.parts[i] = p[offset:][:n]
		}
		for j, y := range results {
			s.parts[len(packets)+j] = y[offset:][:n]
		}
		for c := range s.sums {
			s.sums[c] = s.memory[c*n:][:n]
		}
		for i, sumMap := range r.maps {
			parts := s.parts[i*relationColumns:]
			sumMap.Apply(s.sums, parts[:min(relationColumns, len(parts))], i > 0)
		}
		if sums := s.memory[:r.sums*n]; !bytes.Equal(sums, zeros[:len(sums)]) {
			first := slices.IndexFunc(sums, func(b byte) bool { return b != 0 }) % n
			return offset + first/r.symbol*r.symbol
		}
	}
	return -1
}
