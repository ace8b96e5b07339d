package conditional

import (
	"math/big"
	"slices"
	"sync"

	"volley/algo"
	"volley/field"
	"volley/matrix"
)

// liftedCoding is the coefficients of a lifted step for a matrix. What several
// processors need is reckoned once, by the first to ask.
//
// One processor's coefficients take O(h⁴) multiply-adds, of which none is for others'
// only; corrected, O(h⁵), for the λ of its partners.
type liftedCoding struct {
	liftedShape
	field     field.Field
	entry     func(i, j int) field.Element
	processor func(i int) int // for messages
	corrected bool

	// By level below the last and group: the h processors k_t = (v, t, i+t), t < h, are
	// group v·h+i. For block s of the coset that level l of theirs is from,
	// group·h+s, there is a matrix of which row t is e_l,s(k_t).
	lambdas  [][]func() []field.Element
	inverses [][]func() *matrix.Dense
}

func newLiftedCoding(shape liftedShape, m matrix.Matrix, order []int, corrected bool) *liftedCoding {
	c := &liftedCoding{liftedShape: shape, field: m.Field(), corrected: corrected}
	c.processor, c.entry = ordered(m, order)
	for l := range shape.last() {
		lambdas := make([]func() []field.Element, shape.size()/shape.h)
		inverses := make([]func() *matrix.Dense, shape.size())
		for group := range lambdas {
			v, i := group/shape.h, group%shape.h
			lambdas[group] = sync.OnceValue(func() []field.Element { return c.choose(l, v, i) })
			for s := range shape.h {
				inverses[group*shape.h+s] = sync.OnceValue(func() *matrix.Dense { return c.invert(l, v, i, s) })
			}
		}
		c.lambdas, c.inverses = append(c.lambdas, lambdas), append(c.inverses, inverses)
	}
	return c
}

// lambda returns what is added to the elements of level l of processor (u, r, i).
func (c *liftedCoding) lambda(l, u, r, i int) field.Element {
	if !c.corrected {
		return field.Element{}
	}
	return c.lambdas[l][mod(u, c.cosets())*c.h+c.within(i-r)]()[r]
}

// inverse returns the inverse of the matrix of level l for block s and group (v, i),
// or nil.
func (c *liftedCoding) inverse(l, v, i, s int) *matrix.Dense {
	return c.inverses[l][(mod(v, c.cosets())*c.h+c.within(i))*c.h+s]()
}

// row returns row t of that matrix but for λ, which belongs in column i+t.
func (c *liftedCoding) row(l, v, i, s, t int) []field.Element {
	row := make([]field.Element, c.h)
	for x := range row {
		row[x] = c.entry(c.at(v+c.apart[l], s, x), c.at(v, t, i+t))
	}
	return row
}

// choose returns the least λ of level l for k_0, k_1, … of a group, one after the
// other, for which elimination of the group's h matrices, columns i, i+1, … in this
// order, meets no zero. The h matrices forbid h values at most.
func (c *liftedCoding) choose(l, v, i int) []field.Element {
	f := c.field
	lambdas := make([]field.Element, c.h)
	rows := make([][][]field.Element, c.h) // by block: reduced rows, column i first
	for t := range lambdas {
		forbidden := make([]field.Element, c.h)
		for s := range rows {
			row := c.row(l, v, i, s, t)
			row = slices.Concat(row[c.within(i):], row[:c.within(i)])
			for k, pivot := range rows[s] {
				if e := row[k]; !e.IsZero() {
					for x := k; x < c.h; x++ {
						row[x] = f.Sub(row[x], f.Mul(e, pivot[x]))
					}
				}
			}
			rows[s] = append(rows[s], row)
			forbidden[s] = f.Sub(field.Element{}, row[t])
		}
		code := uint64(0)
		for slices.Contains(forbidden, field.Code(code)) {
			code++
		}
		lambdas[t] = field.Code(code)
		for s := range rows {
			row := rows[s][t]
			row[t] = f.Add(row[t], lambdas[t])
			scale := f.Inv(row[t])
			for x := t; x < c.h; x++ {
				row[x] = f.Mul(row[x], scale)
			}
		}
	}
	return lambdas
}

func (c *liftedCoding) invert(l, v, i, s int) *matrix.Dense {
	d := matrix.NewDense(c.field, c.h, c.h)
	for t := range c.h {
		c.fill(d, t, c.corrects(l, v, i, s, t))
	}
	inverse, err := d.Inverse()
	if err != nil {
		return nil
	}
	return inverse
}

// corrects is row with λ in its place.
func (c *liftedCoding) corrects(l, v, i, s, t int) []field.Element {
	row := c.row(l, v, i, s, t)
	x := c.within(i + t)
	row[x] = c.field.Add(row[x], c.lambda(l, v, t, i+t))
	return row
}

func (c *liftedCoding) fill(d *matrix.Dense, i int, row []field.Element) {
	for j, e := range row {
		d.Set(i, j, e)
	}
}

// regular reports whether all matrices have an inverse, and the rows and columns of A
// in the first that has none.
func (c *liftedCoding) regular(p *algo.Problem) (rows, columns []int, ok bool) {
	for l := range c.last() {
		for v := range c.cosets() {
			if p.Ended() != nil {
				return nil, nil, true
			}
			for i := range c.h {
				for s := range c.h {
					if c.inverse(l, v, i, s) != nil {
						continue
					}
					for t := range c.h {
						rows = append(rows, c.processor(c.at(v+c.apart[l], s, t)))
						columns = append(columns, c.processor(c.at(v, t, i+t)))
					}
					return rows, columns, false
				}
			}
		}
	}
	return nil, nil, true
}

// A liftedSum is what a processor contributes to one result at one level.
type liftedSum struct {
	raw     []field.Element   // of the packets of its block
	lifted  [][]field.Element // of its elements e_l,s, by level and s
	surplus []field.Element   // at the last level: of the packets for the correction, by level
}

// sums returns what processor k contributes at level l to the results (u, r, i), by
// r: those of which it is k_t.
func (c *liftedCoding) sums(k, l int) []liftedSum {
	f := c.field
	v, t, i := c.coordinates(k)
	i = c.within(i - t)
	u := v - c.apart[l]
	list := make([]liftedSum, c.h)
	for r := range list {
		j := c.at(u, r, i)
		of := liftedSum{raw: make([]field.Element, c.h)}
		for x := range of.raw {
			of.raw[x] = c.entry(c.at(v, t, x), j)
		}
		if l < c.last() {
			of.raw[i] = f.Add(of.raw[i], c.lambda(l, u, r, i))
		} else {
			for below := range l {
				of.surplus = append(of.surplus, f.Sub(field.Element{}, c.lambda(below, u, r, i)))
			}
		}
		for range l {
			of.lifted = append(of.lifted, make([]field.Element, c.h))
		}
		list[r] = of
	}
	for below := range l {
		for s := range c.h {
			column := make([]field.Element, c.h) // t, of the inverse
			for x := range column {
				column[x] = c.inverse(below, v, i, s).At(x, t)
			}
			for r := range list {
				e := &list[r].lifted[below][s]
				for x, y := range column {
					*e = f.Add(*e, f.Mul(c.entry(c.at(v+c.apart[below], s, x), c.at(u, r, i)), y))
				}
			}
		}
	}
	if l == 2 {
		spill := c.spill(v, t, i)
		for r, of := range list {
			for x := range of.raw {
				of.raw[x] = f.Sub(of.raw[x], spill.At(r, x))
			}
		}
	}
	return list
}

// spill returns the packets of block (v, t), v's coset, that come to the results
// (v-a_2, r, i), by r, in multiples of the elements e_1,s of k_0, k_1, …: they hold
// elements e_0, and those packets of that coset.
func (c *liftedCoding) spill(v, t, i int) *matrix.Dense {
	f := c.field
	h, sender := c.h, v+c.apart[1] // the coset of those who sent e_1 to k_0, k_1, …
	// parts[s] has in row x what comes of block (v, t) in e_1,s(k_x).
	parts := make([]*matrix.Dense, h)
	for s := range parts {
		parts[s] = matrix.NewDense(f, h, h)
	}
	for x := range h {
		inverse := c.inverse(0, sender, i+x, t)
		for s := range h {
			factor := field.Element{}
			for y := range h {
				factor = f.Add(factor, f.Mul(c.entry(c.at(v, t, y), c.at(v, x, i+x)), inverse.At(y, s)))
			}
			row := c.corrects(0, sender, i+x, t, s)
			for y, e := range row {
				row[y] = f.Mul(factor, e)
			}
			c.fill(parts[s], x, row)
		}
	}
	// With b the packets of block (v+a_1, s) in result r, these are multiplied by
	// b times the inverse.
	wanted, per := matrix.NewDense(f, h, h*h), matrix.NewDense(f, h*h, h)
	for s, part := range parts {
		product, err := matrix.Mul(c.inverse(1, v, i, s), part)
		if err != nil {
			panic(err) // both are h×h
		}
		for x := range h {
			copy(per.Row(s*h+x), product.Row(x))
			for r := range h {
				wanted.Set(r, s*h+x, c.entry(c.at(v+c.apart[1], s, x), c.at(v-c.apart[2], r, i)))
			}
		}
	}
	spill, err := matrix.Mul(wanted, per)
	if err != nil {
		panic(err) // h×h² and h²×h
	}
	return spill
}

// largerThan reports whether a field has more than n elements.
func largerThan(f field.Field, n int) bool { return f.Order().Cmp(big.NewInt(int64(n))) > 0 }
