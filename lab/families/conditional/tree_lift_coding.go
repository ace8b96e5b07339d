package conditional

import (
	"cmp"
	"slices"
	"sync"

	"volley/algo"
	"volley/algo/schedule"
	"volley/field"
	"volley/matrix"
)

// treeSystem is the equations of a tree-lift step but for the numbers in them.
//
// Base b is what result b+r is to have of coset r, 0 <= r < R-1: the packets of
// processors b - R·z. For each cell z between the rows there is an equation
//
//	Σ over carriers  factor·A[b-R·z][its result] = A[b-R·z][b+r]
//
// of which the left side is the same for all r.
type treeSystem struct {
	treeShape
	owner    []int         // the row i whose packets cover cell z, or -1: a gap
	gaps     []int         // those cells
	carriers []treeCarrier // of all rows, columns of the equations
	on       [][]int       // by cell: the carriers that hold its packet
}

// A treeCarrier is an element that processor b - R·i·s has received: what a
// result has of some cells of coset R-1.
type treeCarrier struct {
	i, y   int   // row and number at the processor
	result int   // b+R-1 + R·result is whose it is
	cells  []int // that it holds packets of
	gaps   int   // how many of them are
}

// newTreeSystem returns the system of a shape.
func newTreeSystem(shape treeShape) *treeSystem {
	s := &treeSystem{treeShape: shape}
	z := s.cells()
	s.owner, s.on = make([]int, z), make([][]int, z)
	for at := range s.owner {
		s.owner[at] = -1
	}
	for i := range s.n {
		for q := range s.m {
			if at := (i*s.stride + q) % z; s.owner[at] < 0 {
				s.owner[at] = i
			}
		}
	}
	for at, i := range s.owner {
		if i < 0 {
			s.gaps = append(s.gaps, at)
		}
	}
	// The tree, as treeLift.Encode has it: cells by row, and what comes in.
	rows := make([][]int, s.h)
	for row := range rows {
		for q := range min(s.m, z-row*s.m) {
			rows[row] = append(rows[row], q)
		}
	}
	type element struct {
		row   int
		cells []int
	}
	var elements []element
	for _, st := range slices.Backward(schedule.WindowRounds(s.h, s.ports)) {
		for _, c := range st.Ranges {
			for x := range c.Count {
				e := element{row: x}
				for _, cell := range rows[c.At+x] {
					e.cells = append(e.cells, cell+c.At*s.m)
				}
				elements = append(elements, e)
			}
		}
		for _, e := range elements[len(elements)-(st.To-st.From):] {
			rows[e.row] = append(rows[e.row], e.cells...)
		}
	}
	for i := range s.n {
		for y, e := range elements {
			c := treeCarrier{i: i, y: y, result: e.row*s.m - i*s.stride}
			for _, cell := range e.cells {
				at := (i*s.stride + cell) % z
				c.cells = append(c.cells, at)
				if s.owner[at] < 0 {
					c.gaps++
				}
			}
			s.carriers = append(s.carriers, c)
		}
	}
	slices.SortStableFunc(s.carriers, func(a, b treeCarrier) int { return cmp.Compare(a.gaps, b.gaps) })
	for x, c := range s.carriers {
		for _, at := range c.cells {
			s.on[at] = append(s.on[at], x)
		}
	}
	return s
}

// around is a processor's number modulo K.
func (s *treeSystem) around(k int) int { return mod(k, s.size) }

// source returns the processor whose packet is at cell z, and result the one whose
// result a carrier is of.
func (s *treeSystem) source(b, z int) int { return s.around(b - s.cosets*z) }

func (s *treeSystem) result(b, carrier int) int {
	return s.around(b + s.cosets - 1 + s.cosets*s.carriers[carrier].result)
}

// treeCoding is the coefficients of a tree-lift step for a matrix. What several
// processors need is reckoned once, by the first to ask, unless that is too much to keep.
//
// One processor's coefficients take n systems of less than n·h equations, O(n·(n·h)³)
// multiply-adds if nothing is zero, and few of these; to see that all K systems are
// regular, K/n times as many.
type treeCoding struct {
	*treeSystem
	field  field.Field
	entry  func(i, j int) field.Element
	solved []func() [][]field.Element // by base: factors by r and carrier, nil where there are none
}

func newTreeCoding(s *treeSystem, m matrix.Matrix, order []int) *treeCoding {
	c := &treeCoding{treeSystem: s, field: m.Field(), solved: make([]func() [][]field.Element, s.size)}
	_, c.entry = ordered(m, order)
	for b := range c.solved {
		c.solved[b] = func() [][]field.Element { return c.solve(b) }
		if s.size*s.cosets*len(s.carriers) <= mostTreeMemory {
			c.solved[b] = sync.OnceValue(c.solved[b])
		}
	}
	return c
}

// An equation is its coefficients that are not zero, in order of their columns: the
// carriers, then the right sides, by r.
type equation []treeEntry

type treeEntry struct {
	at   int
	coef field.Element
}

// minus returns e without its first entry, by taking away a multiple of pivot, which
// begins with a 1 in the same column.
func (e equation) minus(f field.Field, pivot equation) equation {
	factor := e[0].coef
	left := make(equation, 0, len(e)+len(pivot)-2)
	e, pivot = e[1:], pivot[1:]
	for len(e) > 0 || len(pivot) > 0 {
		switch {
		case len(pivot) == 0 || len(e) > 0 && e[0].at < pivot[0].at:
			left = append(left, e[0])
			e = e[1:]
			continue
		case len(e) == 0 || pivot[0].at < e[0].at:
			left = append(left, treeEntry{pivot[0].at, f.Sub(field.Element{}, f.Mul(factor, pivot[0].coef))})
		default:
			if v := f.Sub(e[0].coef, f.Mul(factor, pivot[0].coef)); !v.IsZero() {
				left = append(left, treeEntry{e[0].at, v})
			}
			e = e[1:]
		}
		pivot = pivot[1:]
	}
	return left
}

// solve returns factors of carriers for the results b+r, by r: a solution of the
// equations, or nil where they depend on one another. Carriers of few cells come first,
// which leaves most coefficients zero.
func (c *treeCoding) solve(b int) [][]field.Element {
	f, carriers := c.field, len(c.carriers)
	first := make([][]equation, carriers) // by the column in which they begin
	put := func(e equation) bool {
		ok := len(e) > 0 && e[0].at < carriers
		if ok {
			first[e[0].at] = append(first[e[0].at], e)
		}
		return ok
	}
	for _, z := range c.gaps {
		from := c.source(b, z)
		e := make(equation, 0, len(c.on[z])+c.cosets-1)
		for _, y := range c.on[z] {
			e = e.with(y, c.entry(from, c.result(b, y)))
		}
		for r := range c.cosets - 1 {
			e = e.with(carriers+r, c.entry(from, c.around(b+r)))
		}
		if !put(e) {
			return nil
		}
	}
	for _, list := range first {
		for n, e := range list {
			if n > 0 {
				if !put(e.minus(f, list[0])) {
					return nil
				}
				continue
			}
			scale := f.Inv(e[0].coef)
			for x := range e {
				e[x].coef = f.Mul(e[x].coef, scale)
			}
		}
	}
	factors := make([][]field.Element, c.cosets-1)
	for r := range factors {
		factors[r] = make([]field.Element, carriers)
		for y, list := range slices.Backward(first) {
			if len(list) == 0 {
				continue // this carrier is not needed
			}
			for _, x := range list[0][1:] {
				switch {
				case x.at < carriers:
					factors[r][y] = f.Sub(factors[r][y], f.Mul(x.coef, factors[r][x.at]))
				case x.at == carriers+r:
					factors[r][y] = f.Add(factors[r][y], x.coef)
				}
			}
		}
	}
	return factors
}

// with returns the equation with one more coefficient.
func (e equation) with(at int, coef field.Element) equation {
	if coef.IsZero() {
		return e
	}
	return append(e, treeEntry{at, coef})
}

// singular returns the first base whose equations depend on one another, as far as it looks
// before the problem's context ends.
func (c *treeCoding) singular(p *algo.Problem) (base int, ok bool) {
	for b := range c.size {
		if p.Ended() != nil {
			break
		}
		if c.solved[b]() == nil {
			return b, true
		}
	}
	return 0, false
}

// treeFactors is what a processor multiplies by in its rows (r, i).
type treeFactors struct {
	raw     [][][]field.Element // by r, i and cell: of the packets that it has
	carried [][][]field.Element // by r, i and number: of its carriers
}

// factors returns those of processor k.
func (c *treeCoding) factors(k int) *treeFactors {
	f := c.field
	t := &treeFactors{make([][][]field.Element, c.cosets-1), make([][][]field.Element, c.cosets-1)}
	for i := range c.n {
		b := c.around(k + c.offset(0, i))
		solved := c.solved[b]()
		for r := range c.cosets - 1 {
			raw, carried := make([]field.Element, c.m), make([]field.Element, c.h-1)
			for q := range raw {
				z := (i*c.stride + q) % c.cells()
				if c.owner[z] != i {
					continue
				}
				from := c.source(b, z)
				raw[q] = c.entry(from, c.around(b+r))
				for _, y := range c.on[z] {
					if v := solved[r][y]; !v.IsZero() {
						raw[q] = f.Sub(raw[q], f.Mul(c.entry(from, c.result(b, y)), v))
					}
				}
			}
			for x, carrier := range c.carriers {
				if carrier.i == i {
					carried[carrier.y] = solved[r][x]
				}
			}
			t.raw[r], t.carried[r] = append(t.raw[r], raw), append(t.carried[r], carried)
		}
	}
	return t
}
