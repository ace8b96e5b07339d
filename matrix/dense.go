package matrix

import (
	"crypto/sha256"
	"fmt"
	"sync/atomic"

	"volley/field"
	"volley/internal/poll"
)

// Dense is a matrix whose entries are stored, row by row, as symbols of [field.Field.SymbolBytes] bytes each. Its
// methods may be called concurrently, except [Dense.Set], which must not overlap any other.
type Dense struct {
	shape
	size int    // bytes of a symbol
	data []byte // rows·cols symbols
	id   atomic.Pointer[string]
}

var _ Matrix = (*Dense)(nil)

// NewDense returns the rows×cols matrix of zeros. It panics when rows or cols is negative.
func NewDense(f field.Field, rows, cols int) *Dense {
	if rows < 0 || cols < 0 {
		panic(fmt.Sprintf("matrix: NewDense: shape %d×%d", rows, cols))
	}
	size := f.SymbolBytes()
	return &Dense{shape: shape{f, rows, cols}, size: size, data: make([]byte, rows*cols*size)}
}

// DenseFunc returns the rows×cols matrix of the entries entry(i, j) in the field. It panics for negative rows or cols.
func DenseFunc(f field.Field, rows, cols int, entry func(i, j int) field.Element) *Dense {
	return denseFunc(nil, f, rows, cols, entry)
}

func denseFunc(p *poll.Poller, f field.Field, rows, cols int, entry func(i, j int) field.Element) *Dense {
	d := NewDense(f, rows, cols)
	for i := range rows {
		for j := range cols {
			p.Steps(1)
			d.put(i, j, entry(i, j))
		}
	}
	return d
}

// DenseOf returns a dense copy of m.
func DenseOf(m Matrix) *Dense {
	if src := stored(m); src != nil {
		d := NewDense(src.f, src.rows, src.cols)
		copy(d.data, src.data)
		return d
	}
	return DenseFunc(m.Field(), m.Rows(), m.Cols(), m.At)
}

func stored(m Matrix) *Dense {
	switch m := m.(type) {
	case *Dense:
		return m
	case named:
		return stored(m.Matrix)
	}
	return nil
}

// At returns the entry in row i and column j.
func (d *Dense) At(i, j int) field.Element {
	d.check(i, j)
	return field.Symbol(d.f, d.data[(i*d.cols+j)*d.size:])
}

// Set sets the entry in row i and column j to e, which must be an element of the field.
func (d *Dense) Set(i, j int, e field.Element) {
	d.check(i, j)
	if d.id.Load() != nil { // Load is cheaper than Store, and filling a matrix sets much
		d.id.Store(nil)
	}
	d.put(i, j, e)
}

func (d *Dense) put(i, j int, e field.Element) {
	field.PutSymbol(d.f, d.data[(i*d.cols+j)*d.size:], e)
}

// Row returns row i as a packet of Cols() symbols. It is the matrix's own memory, to be read only.
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

// Mul returns a·b, with entries Σ_k a[i][k]·b[k][j]. The error says how fields or shapes disagree.
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
	product := NewDense(f, a.Rows(), right.cols)
	for i := range product.rows {
		for k := range coef {
			coef[k] = a.At(i, k)
		}
		f.Combine(product.Row(i), coef, src)
	}
	return product, nil
}
