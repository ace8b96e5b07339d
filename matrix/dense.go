package matrix

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync/atomic"

	"volley/field"
)

// Dense is a matrix whose entries are stored, row by row, as symbols of
// [field.Field.SymbolBytes] bytes each. Its methods may be called concurrently,
// except [Dense.Set], which must not overlap any other.
type Dense struct {
	f          field.Field
	rows, cols int
	size       int    // bytes of a symbol
	data       []byte // rows·cols symbols
	id         atomic.Pointer[string]
}

var _ Matrix = (*Dense)(nil)

// NewDense returns the rows×cols matrix of zeros. It panics when rows or cols
// is negative.
func NewDense(f field.Field, rows, cols int) *Dense {
	if rows < 0 || cols < 0 {
		panic(fmt.Sprintf("matrix: NewDense: shape %d×%d", rows, cols))
	}
	size := f.SymbolBytes()
	return &Dense{f: f, rows: rows, cols: cols, size: size, data: make([]byte, rows*cols*size)}
}

// DenseOf returns a dense copy of m.
func DenseOf(m Matrix) *Dense {
	d := NewDense(m.Field(), m.Rows(), m.Cols())
	if src := stored(m); src != nil {
		copy(d.data, src.data)
		return d
	}
	for i := range d.rows {
		for j := range d.cols {
			d.put(i, j, m.At(i, j))
		}
	}
	return d
}

// stored returns the dense matrix behind m, or nil where there is none.
func stored(m Matrix) *Dense {
	switch m := m.(type) {
	case *Dense:
		return m
	case named:
		return stored(m.Matrix)
	case inverted:
		return m.Dense
	}
	return nil
}

// Field returns the field of the entries.
func (d *Dense) Field() field.Field { return d.f }

// Rows returns the number of rows.
func (d *Dense) Rows() int { return d.rows }

// Cols returns the number of columns.
func (d *Dense) Cols() int { return d.cols }

// At returns the entry in row i and column j.
func (d *Dense) At(i, j int) field.Element {
	checkEntry(i, j, d.rows, d.cols)
	return field.Symbol(d.f, d.data[(i*d.cols+j)*d.size:])
}

// Set sets the entry in row i and column j to e, which must be an element of
// the field.
func (d *Dense) Set(i, j int, e field.Element) {
	checkEntry(i, j, d.rows, d.cols)
	if d.id.Load() != nil { // Load is cheaper than Store, and filling a matrix sets much
		d.id.Store(nil)
	}
	d.put(i, j, e)
}

func (d *Dense) put(i, j int, e field.Element) {
	field.PutSymbol(d.f, d.data[(i*d.cols+j)*d.size:], e)
}

// Row returns row i as a packet of Cols() symbols. It is the matrix's own
// memory, to be read only.
func (d *Dense) Row(i int) []byte {
	if uint(i) >= uint(d.rows) {
		panic(fmt.Sprintf("matrix: row %d of a %d×%d matrix", i, d.rows, d.cols))
	}
	n := d.cols * d.size
	return d.data[i*n : (i+1)*n : (i+1)*n]
}

// ID returns "dense:" and the SHA-256, in hexadecimal, of shape and entries.
func (d *Dense) ID() string {
	if id := d.id.Load(); id != nil {
		return *id
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d×%d\n", d.rows, d.cols)
	h.Write(d.data)
	id := fmt.Sprintf("dense:%x", h.Sum(nil))
	d.id.Store(&id)
	return id
}

// Mul returns a·b, with entries Σ_k a[i][k]·b[k][j]. The error says how fields
// or shapes (a.Cols() and b.Rows()) disagree.
func Mul(a, b Matrix) (*Dense, error) {
	f := a.Field()
	if !sameField(f, b.Field()) {
		return nil, fmt.Errorf("matrix: cannot multiply a matrix over %s by one over %s", f.Name(), b.Field().Name())
	}
	if a.Cols() != b.Rows() {
		return nil, fmt.Errorf("matrix: cannot multiply %d×%d by %d×%d: want as many rows as columns", a.Rows(), a.Cols(), b.Rows(), b.Cols())
	}
	right := stored(b)
	if right == nil {
		right = DenseOf(b)
	}
	src := make([][]byte, right.rows)
	for k := range src {
		src[k] = right.Row(k)
	}
	coef := make([]field.Element, right.rows)
	out := NewDense(f, a.Rows(), right.cols)
	for i := range out.rows {
		for k := range coef {
			coef[k] = a.At(i, k)
		}
		f.Combine(out.Row(i), coef, src)
	}
	return out, nil
}

// Rank returns the rank of the matrix, in O(rows·cols·rank) field operations.
func (d *Dense) Rank() int {
	return len(d.eliminate().rows)
}

// Inverse returns the inverse, in O(K³) field operations. The error wraps
// [ErrSingular] where there is none; a matrix that is not square is an error
// too.
func (d *Dense) Inverse() (*Dense, error) {
	if err := checkSquare(d); err != nil {
		return nil, err
	}
	e := d.eliminate()
	if len(e.rows) < d.rows {
		return nil, fmt.Errorf("%w: rank %d of %d", ErrSingular, len(e.rows), d.rows)
	}
	// Reduced row b has its left unit in column pivots[b], and keeps the right
	// half's column r where the left half's column pivots[r] was.
	out := NewDense(d.f, d.rows, d.cols)
	for b, row := range e.rows {
		dst := out.Row(e.pivots[b])
		for r, p := range e.pivots {
			copy(dst[r*d.size:(r+1)*d.size], row[p*d.size:])
		}
	}
	return out, nil
}

// panel is the number of rows eliminated together: enough for Combine to run
// over many sources at once, few against K.
const panel = 32

// An elimination is a set of reduced rows: row b of [A | I], brought to the
// form in which it has the unit at column pivots[b] of the left half and all
// others have a zero there.
//
// Pivot columns are unit columns, so they need no memory: the right half's
// column of the same row is kept in their place.
type elimination struct {
	d      *Dense
	rows   [][]byte
	pivots []int

	spare []byte // the next row to write
	coef  []field.Element
	src   [][]byte
}

// eliminate reduces the rows of d, leaving out those that depend on rows before
// them (Gauss–Jordan elimination by panels of rows).
func (d *Dense) eliminate() *elimination {
	e := &elimination{d: d, spare: make([]byte, d.cols*d.size)}
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

// normalize returns row / row[p], with the right half's unit in place of the
// pivot.
func (e *elimination) normalize(row []byte, p int) []byte {
	e.coef = append(e.coef[:0], e.d.f.Inv(e.symbol(row, p)))
	e.src = append(e.src[:0], row)
	e.setSymbol(row, p, field.One)
	return e.combine(row)
}

// combine returns Σ coef[i]·src[i]; the memory of row, which is a source, is
// used for a later result.
func (e *elimination) combine(row []byte) []byte {
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
