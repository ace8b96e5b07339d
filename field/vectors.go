package field

import (
	"cmp"
	"slices"
	"sync"
)

// vectors are operations of gnark-crypto on vectors of its elements E, which hold x
// in Montgomery form: as limbs x·R mod q, of which it multiplies a and b to a·b/R.
// The limbs of a code, used as they are, times a Montgomery form make a code; so
// only coefficients are taken into that form, and packets are vectors of codes.
//
// They are functions with types, not methods of a type parameter: of those the
// compiler does not know that they keep no pointers, and allocates the slices.
type vectors[E any] struct {
	add, sub func(z, x, y []E)       // z may be x
	scale    func(z, x []E, c *E)    // z = c·x, with c in Montgomery form
	load     func(z []E, src []byte) // the symbols of src
	store    func(dst []byte, z []E)

	field      *common
	minusOne   Element
	montgomery func(Element) E
	pool       sync.Pool // of *vectorScratch[E]
}

// vectorBytes is how much of a packet a map of vectors works on at a time.
const vectorBytes = 4096

// vectorScratch is for one application of a row. The vectors hold vectorBytes.
type vectorScratch[E any] struct {
	product, x, z []E
	terms         []vectorTerm[E] // of Combine
}

// complete sets what the operations do not say; f is the field v is for.
func (v *vectors[E]) complete(f Field, c *common, montgomery func(Element) E) *vectors[E] {
	v.field, v.minusOne, v.montgomery = c, Last(f), montgomery
	v.pool.New = func() any {
		n := vectorBytes / c.symbolBytes
		return &vectorScratch[E]{product: make([]E, n), x: make([]E, n), z: make([]E, n)}
	}
	return v
}

// A vectorTerm is a coefficient of an input of a map, other than 0.
type vectorTerm[E any] struct {
	input int
	kind  termKind
	c     E // in Montgomery form
}

// A termKind says how a term enters the sum. Sums begin with what needs no work
// and end with what cannot begin one.
type termKind int8

const (
	termOne termKind = iota
	termOther
	termMinusOne
)

// appendTerms appends the terms of a row, the cheap ones to begin with first.
func (v *vectors[E]) appendTerms(terms []vectorTerm[E], row []Element) []vectorTerm[E] {
	for j, c := range row {
		t := vectorTerm[E]{input: j, kind: termOther}
		switch c {
		case Element{}:
			continue
		case One:
			t.kind = termOne
		case v.minusOne:
			t.kind = termMinusOne
		default:
			t.c = v.montgomery(c)
		}
		terms = append(terms, t)
	}
	slices.SortStableFunc(terms, func(a, b vectorTerm[E]) int { return cmp.Compare(a.kind, b.kind) })
	return terms
}

// unitary reports whether rows have no coefficients but 0, 1 and -1.
func (v *vectors[E]) unitary(rows [][]Element) bool {
	for _, row := range rows {
		for _, c := range row {
			if c != v.minusOne && c != One && !c.IsZero() {
				return false
			}
		}
	}
	return true
}

// vectorMap is a map by vectors.
type vectorMap[E any] struct {
	mapShape
	*vectors[E]
	rows [][]vectorTerm[E]
}

func newVectorMap[E any](f Field, v *vectors[E], rows [][]Element) Map {
	m := &vectorMap[E]{mapShape: shapeOf(f, rows), vectors: v}
	for _, row := range rows {
		m.rows = append(m.rows, v.appendTerms(nil, row))
	}
	return m
}

func (m *vectorMap[E]) Apply(out, in [][]byte, add bool) {
	n := m.check(out, in, m.field.symbolBytes)
	t := m.pool.Get().(*vectorScratch[E])
	defer m.pool.Put(t)
	for lo := 0; lo < n; lo += vectorBytes {
		hi := min(lo+vectorBytes, n)
		for i, dst := range out {
			m.row(dst[lo:hi], m.rows[i], in, lo, hi, add, t)
		}
	}
}

func (v *vectors[E]) combine(dst []byte, coef []Element, src [][]byte) {
	v.field.checkCombine(dst, coef, src)
	t := v.pool.Get().(*vectorScratch[E])
	defer v.pool.Put(t)
	t.terms = v.appendTerms(t.terms[:0], coef)
	for lo := 0; lo < len(dst); lo += vectorBytes {
		hi := min(lo+vectorBytes, len(dst))
		v.row(dst[lo:hi], t.terms, src, lo, hi, false, t)
	}
}

// row sets dst to the sum of terms of in[j][lo:hi], or adds that to dst.
func (v *vectors[E]) row(dst []byte, terms []vectorTerm[E], in [][]byte, lo, hi int, add bool, t *vectorScratch[E]) {
	z, viewed := view[E](dst)
	if !viewed {
		z = t.z[:len(dst)*len(t.z)/vectorBytes]
		if add {
			v.load(z, dst)
		}
	}
	var sum []E // so far: nil for zero, z, or an input itself
	if add {
		sum = z
	}
	for k := range terms {
		term := &terms[k]
		x, ok := view[E](in[term.input][lo:hi])
		if !ok {
			x = t.x[:len(z)]
			if sum == nil && term.kind == termOne {
				x = z // where it stays
			}
			v.load(x, in[term.input][lo:hi])
		}
		switch {
		case term.kind == termOne && sum == nil:
			sum = x
			continue
		case term.kind == termOne:
			v.add(z, sum, x)
		case term.kind == termMinusOne:
			if sum == nil {
				clear(z)
				sum = z
			}
			v.sub(z, sum, x)
		case sum == nil:
			v.scale(z, x, &term.c)
		default:
			product := t.product[:len(z)]
			v.scale(product, x, &term.c)
			v.add(z, sum, product)
		}
		sum = z
	}
	switch {
	case sum == nil:
		clear(z)
	case len(z) > 0 && &sum[0] != &z[0]:
		copy(z, sum)
	}
	if !viewed {
		v.store(dst, z)
	}
}
