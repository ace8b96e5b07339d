package matrix

import (
	"context"
	"fmt"
	"slices"

	"volley/field"
	"volley/internal/poll"
)

// Basis returns the leftmost basis of all columns of the matrix, and the inverse of what these make: nil where the rows
// are not independent. It takes O(rows·cols·rank) field operations. Where the context ends the error is its cause.
func (d *Dense) Basis(ctx context.Context) (columns []int, inverse *Dense, err error) {
	defer poll.Catch(&err)
	p := poll.New(ctx)
	e := d.eliminate(p)
	columns = slices.Sorted(slices.Values(e.pivots))
	if len(columns) < d.rows {
		return columns, nil, nil
	}
	// Row b has its left unit in column pivots[b], and the right half's column r where the left's pivots[r] was.
	result := NewDense(d.f, d.rows, d.rows)
	for b, row := range e.rows {
		p.Steps(len(e.pivots))
		position, _ := slices.BinarySearch(columns, e.pivots[b])
		dst := result.Row(position)
		for r, p := range e.pivots {
			copy(dst[r*d.size:(r+1)*d.size], row[p*d.size:])
		}
	}
	return columns, result, nil
}

// Echelon returns the reduced row echelon form of the matrix, without rows of zeros, in O(rows·cols·rank) field
// operations. Row e of form has its leading one in column pivots[e], where the other rows have zeros; pivots ascend.
//
// The columns of the matrix at the pivots are the leftmost basis of all its columns,
// and column j is the sum of form[e][j] times column pivots[e].
func (d *Dense) Echelon() (form *Dense, pivots []int) {
	e := d.eliminate(nil)
	pivots = slices.Sorted(slices.Values(e.pivots))
	form = NewDense(d.f, len(pivots), d.cols)
	for b, row := range e.rows {
		r, _ := slices.BinarySearch(pivots, e.pivots[b])
		copy(form.Row(r), row)
		for i, p := range pivots { // where the row keeps its part of the right half
			form.put(r, p, unit(i == r))
		}
	}
	return form, pivots
}

// Inverse returns the inverse, in O(K³) field operations. The error wraps [ErrSingular] where there is none; a matrix
// that is not square is an error too.
func (d *Dense) Inverse() (*Dense, error) { return d.inverse(nil) }

func (d *Dense) inverse(p *poll.Poller) (*Dense, error) {
	if err := checkSquare(d); err != nil {
		return nil, err
	}
	columns, inverse, err := d.Basis(p.Context())
	if poll.Must(err); inverse == nil {
		return nil, fmt.Errorf("%w: rank %d of %d", ErrSingular, len(columns), d.rows)
	}
	return inverse, nil
}

// panel is the number of rows eliminated together: enough for Combine to run over many sources at once, few against K.
const panel = 32

// An elimination is a set of reduced rows: row b of [A | I], brought to the form in which it has the unit at column
// pivots[b] of the left half and all others have a zero there.
//
// Pivot columns are unit columns, and need no memory: the right half's column of the same row is kept in their place.
type elimination struct {
	d      *Dense
	steps  *poll.Poller // a row that is added to another, times a coefficient, is a step
	rows   [][]byte
	pivots []int

	spare []byte // the next row to write
	coef  []field.Element
	src   [][]byte
}

// eliminate reduces the rows of d, without those that depend on rows before (Gauss–Jordan by panels of rows).
func (d *Dense) eliminate(p *poll.Poller) *elimination {
	e := &elimination{d: d, steps: p, spare: make([]byte, d.cols*d.size)}
	isPivot := make([]bool, d.cols)
	for lo := 0; lo < d.rows; lo += panel {
		old := len(e.rows)
		for i := lo; i < min(lo+panel, d.rows); i++ {
			row := e.subtract(slices.Clone(d.Row(i)), e.rows[:old], e.pivots[:old])
			row = e.subtract(row, e.rows[old:], e.pivots[old:])
			p := 0
			for p < d.cols && (isPivot[p] || e.symbol(row, p).IsZero()) {
				p++
			}
			if p == d.cols {
				continue
			}
			isPivot[p] = true
			row = e.normalize(row, p)
			for b := old; b < len(e.rows); b++ {
				e.rows[b] = e.subtract(e.rows[b], [][]byte{row}, []int{p})
			}
			e.rows = append(e.rows, row)
			e.pivots = append(e.pivots, p)
		}
		for b := range old {
			e.rows[b] = e.subtract(e.rows[b], e.rows[old:], e.pivots[old:])
		}
	}
	return e
}

// subtract returns row - Σ row[pivots[b]]·rows[b], which is zero at the pivots.
func (e *elimination) subtract(row []byte, rows [][]byte, pivots []int) []byte {
	f := e.d.f
	e.coef = append(e.coef[:0], field.One)
	e.src = append(e.src[:0], row)
	for b, p := range pivots {
		v := e.symbol(row, p)
		if v.IsZero() {
			continue
		}
		e.setSymbol(row, p, field.Element{}) // from here on the right half's column
		e.coef = append(e.coef, f.Sub(field.Element{}, v))
		e.src = append(e.src, rows[b])
	}
	if len(e.src) == 1 {
		return row
	}
	return e.combine(row)
}

// normalize returns row / row[p], with the right half's unit in place of the pivot.
func (e *elimination) normalize(row []byte, p int) []byte {
	e.coef = append(e.coef[:0], e.d.f.Inv(e.symbol(row, p)))
	e.src = append(e.src[:0], row)
	e.setSymbol(row, p, field.One)
	return e.combine(row)
}

// combine returns Σ coef[i]·src[i]; the memory of row, which is a source, is used for a later result.
func (e *elimination) combine(row []byte) []byte {
	e.steps.Steps(len(e.src))
	dst := e.spare
	e.d.f.Combine(dst, e.coef, e.src)
	e.spare = row
	return dst
}

func (e *elimination) symbol(row []byte, i int) field.Element {
	return field.Symbol(e.d.f, row[i*e.d.size:])
}

func (e *elimination) setSymbol(row []byte, i int, v field.Element) {
	field.PutSymbol(e.d.f, row[i*e.d.size:], v)
}
