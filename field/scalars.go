package field

import (
	"math/big"
	"sync"
)

// scalars is F_q for a prime q of 32 bytes, the order of an elliptic curve's
// group, by gnark-crypto: E is its type of elements and V that of vectors, which
// have vector instructions.
//
// An E holds x in Montgomery form, as the limbs of x·R mod q with R = 2^256, and
// multiplies limbs x and y to x·y/R. The limbs of a code, used as they are, times
// a Montgomery form make a code; so only one factor is taken into that form, and
// no packet.
type scalars[E ~[4]uint64, V ~[]E, PE scalar[E], PV vectorOfScalars[E, V]] struct {
	common
	square E // limbs R^2 mod q: a product with it takes a code into Montgomery form
	one    E // limbs 1: a product with it takes it back
	pool   sync.Pool
}

// A scalar is a pointer to an element of gnark-crypto. Each method sets it to
// its result and returns it.
type scalar[E any] interface {
	*E
	Add(x, y *E) *E
	Sub(x, y *E) *E
	Mul(x, y *E) *E
	Inverse(x *E) *E
	SetBigInt(x *big.Int) *E
}

// A vectorOfScalars is a pointer to a vector of gnark-crypto. Each method sets
// it to its result.
type vectorOfScalars[E, V any] interface {
	*V
	Add(a, b V)
	ScalarMul(a V, b *E)
}

// scalarBlock is how many symbols Combine works on at a time.
const scalarBlock = 128

// scalarScratch holds operands of E and V. On the stack they would not stay: the
// compiler does not see which methods are called.
type scalarScratch[E, V any] struct {
	x, y         E
	sum, product V
}

func newScalars[E ~[4]uint64, V ~[]E, PE scalar[E], PV vectorOfScalars[E, V]](name string, order *big.Int, generator uint64) *scalars[E, V, PE, PV] {
	q, err := FromInt(order)
	if err != nil {
		panic(err) // a modulus of four limbs
	}
	f := &scalars[E, V, PE, PV]{common: newCommon(name, q, 1, q, generator), one: E{1}}
	PE(&f.square).SetBigInt(new(big.Int).Lsh(big.NewInt(1), 256)) // R in Montgomery form
	f.pool.New = func() any {
		return &scalarScratch[E, V]{sum: make(V, scalarBlock), product: make(V, scalarBlock)}
	}
	return f
}

// with returns what op makes of the limbs of a and b.
func (f *scalars[E, V, PE, PV]) with(a, b Element, op func(x, y PE)) Element {
	t := f.pool.Get().(*scalarScratch[E, V])
	defer f.pool.Put(t)
	t.x, t.y = E(a), E(b)
	op(&t.x, &t.y)
	return Element(t.x)
}

func (f *scalars[E, V, PE, PV]) Add(a, b Element) Element {
	return f.with(a, b, func(x, y PE) { x.Add(x, y) })
}

func (f *scalars[E, V, PE, PV]) Sub(a, b Element) Element {
	return f.with(a, b, func(x, y PE) { x.Sub(x, y) })
}

func (f *scalars[E, V, PE, PV]) Mul(a, b Element) Element {
	return f.with(a, b, func(x, y PE) { x.Mul(x, y.Mul(y, &f.square)) })
}

func (f *scalars[E, V, PE, PV]) Inv(a Element) Element {
	f.checkInv(a)
	return f.with(a, a, func(x, _ PE) { x.Mul(x.Inverse(x.Mul(x, &f.square)), &f.one) })
}

func (f *scalars[E, V, PE, PV]) Map(rows [][]Element) Map { return CombineMap(f, rows) }

func (f *scalars[E, V, PE, PV]) Combine(dst []byte, coef []Element, src [][]byte) {
	f.checkCombine(dst, coef, src)
	t := f.pool.Get().(*scalarScratch[E, V])
	defer f.pool.Put(t)
	for lo := 0; lo < len(dst); lo += 32 * scalarBlock {
		hi := min(lo+32*scalarBlock, len(dst))
		t.sum, t.product = t.sum[:(hi-lo)/32], t.product[:(hi-lo)/32]
		clear(t.sum)
		for i, s := range src {
			if coef[i].IsZero() {
				continue
			}
			s = s[lo:hi]
			for k := range t.product {
				t.product[k] = E(load32(s))
				s = s[32:]
			}
			if coef[i] != One {
				t.x = E(coef[i])
				PE(&t.x).Mul(&t.x, &f.square)
				PV(&t.product).ScalarMul(t.product, &t.x)
			}
			PV(&t.sum).Add(t.sum, t.product)
		}
		for k, x := range t.sum {
			store32(dst[lo+32*k:], Element(x))
		}
	}
}
