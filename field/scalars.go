package field

import (
	"math/big"
	"sync"
)

// scalars is F_q for a prime q of 32 bytes, the order of an elliptic curve's
// group, by gnark-crypto: E is its type of elements, with R = 2^256, and its
// vectors have vector instructions. As in [vectors], only one factor is taken into
// Montgomery form.
type scalars[E ~[4]uint64, PE Scalar[E]] struct {
	common
	vectors  Vectors[E]
	minusOne Element
	square   E         // limbs R^2 mod q: a product with it takes a code into Montgomery form
	unit     E         // limbs 1: a product with it takes it back
	operands sync.Pool // of *[2]E
	scratch  sync.Pool // of *vectorScratch[E]
	lift     E         // 2^260 in Montgomery form
}

// A Scalar is a pointer to an element of gnark-crypto. Each method sets it to
// its result and returns it.
type Scalar[E any] interface {
	*E
	Add(x, y *E) *E
	Sub(x, y *E) *E
	Mul(x, y *E) *E
	Inverse(x *E) *E
	SetBigInt(x *big.Int) *E
}

// NewScalars returns the field of so many elements, a prime of 32 bytes, by the elements and vectors of gnark-crypto, for
// [Register]. The generator is the least one.
func NewScalars[E ~[4]uint64, PE Scalar[E]](name string, order *big.Int, generator uint64, v Vectors[E]) Field {
	q, err := FromInt(order)
	if err != nil {
		panic(err) // a modulus of four limbs
	}
	f := &scalars[E, PE]{common: newCommon(name, q, 1, q, generator), vectors: v, unit: E{1}}
	f.operands.New = func() any { return new([2]E) }
	f.scratch.New = func() any { return new(vectorScratch[E]) }
	f.minusOne = f.Sub(Element{}, One)
	PE(&f.square).SetBigInt(new(big.Int).Lsh(big.NewInt(1), 256)) // R in Montgomery form
	PE(&f.lift).SetBigInt(new(big.Int).Lsh(big.NewInt(1), 260))
	f.block, f.row, f.simd = 32*vectorSymbols, f.vectorRow, newScalarLanes(order, f.lifted)
	return f
}

// operate returns what op makes of the limbs of a and b. On the stack they would not
// stay: the compiler does not see which methods are called.
func (f *scalars[E, PE]) operate(a, b Element, op func(x, y PE)) Element {
	t := f.operands.Get().(*[2]E)
	defer f.operands.Put(t)
	t[0], t[1] = E(a), E(b)
	op(&t[0], &t[1])
	return Element(t[0])
}

func (f *scalars[E, PE]) Add(a, b Element) Element {
	return f.operate(a, b, func(x, y PE) { x.Add(x, y) })
}

func (f *scalars[E, PE]) Sub(a, b Element) Element {
	return f.operate(a, b, func(x, y PE) { x.Sub(x, y) })
}

func (f *scalars[E, PE]) Mul(a, b Element) Element {
	return f.operate(a, b, func(x, y PE) { x.Mul(x, y.Mul(y, &f.square)) })
}

func (f *scalars[E, PE]) Inv(a Element) Element {
	f.checkInv(a)
	return f.operate(a, a, func(x, _ PE) { x.Mul(x.Inverse(x.Mul(x, &f.square)), &f.unit) })
}

// montgomery returns c in Montgomery form.
func (f *scalars[E, PE]) montgomery(c Element) E {
	return E(f.operate(c, c, func(x, _ PE) { x.Mul(x, &f.square) }))
}

// lifted returns 2^260·c, the Montgomery form of [newScalarLanes].
func (f *scalars[E, PE]) lifted(c Element) Element {
	return f.operate(c, c, func(x, _ PE) { x.Mul(x, &f.lift) })
}

func (f *scalars[E, PE]) Map(rows [][]Element) Map { return f.stepwiseMap(rows, false, noSteps) }

func (f *scalars[E, PE]) stepwiseMap(rows [][]Element, _ bool, steps func(int)) Map {
	shape := f.shapeOf(rows)
	for x := range 2 { // of x + c·y and x - c·y
		if y := 1 - x; shape == (mapShape{2, 2}) && rows[0][x] == One && rows[1][x] == One && f.Add(rows[0][y], rows[1][y]).IsZero() {
			m := &layerMap[E]{rowMap: f.newRowMap(rows, steps), vectors: &f.vectors, x: x}
			if c := rows[0][y]; c != One {
				m.product = f.Map([][]Element{{c}})
			}
			return m
		}
	}
	switch {
	case f.simd != nil && !f.unitary(rows):
		return f.simd.newMap(shape, rows, steps)
	case shape == mapShape{1, 1}:
		return &layerMap[E]{rowMap: f.newRowMap(rows, steps), vectors: &f.vectors, c: f.montgomery(rows[0][0])}
	}
	return f.newRowMap(rows, steps)
}

// loadScalars sets z to the symbols of src.
func loadScalars[E ~[4]uint64](z []E, src []byte) {
	for k := range z {
		z[k] = E(load32(src[32*k:]))
	}
}

// storeScalars is the inverse of loadScalars.
func storeScalars[E ~[4]uint64](dst []byte, z []E) {
	for k, x := range z {
		store32(dst[32*k:], Element(x))
	}
}
