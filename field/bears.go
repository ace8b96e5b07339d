package field

import (
	"github.com/consensys/gnark-crypto/field/babybear"
	"github.com/consensys/gnark-crypto/field/koalabear"
	"github.com/consensys/gnark-crypto/utils/cpu"
)

// bear is a prime field of symbols of four bytes for which gnark-crypto has vector
// instructions. On amd64 they are faster, by measurement, for the sum of two inputs
// (fourfold where the coefficients are 1 and -1), and the lanes of [prime] for more
// (twice): their sums stay in registers. E is the type of elements, with R = 2^32.
type bear[E ~[1]uint32] struct {
	*prime
	*vectors[E]
}

// vectorInputs is how many inputs the vectors of gnark-crypto are faster for, where
// there are lanes.
const vectorInputs = 2

// buildPrime returns F_q for an odd prime q < 2^31.
func buildPrime(q uint64) Field {
	f := newPrime(q)
	if !cpu.SupportAVX512 && !cpu.SupportNEON {
		return f
	}
	switch q {
	case babybear.Modulus().Uint64():
		return newBear(f, &vectors[babybear.Element]{
			add:   func(z, x, y []babybear.Element) { (*babybear.Vector)(&z).Add(x, y) },
			sub:   func(z, x, y []babybear.Element) { (*babybear.Vector)(&z).Sub(x, y) },
			scale: func(z, x []babybear.Element, c *babybear.Element) { (*babybear.Vector)(&z).ScalarMul(x, c) },
		})
	case koalabear.Modulus().Uint64():
		return newBear(f, &vectors[koalabear.Element]{
			add:   func(z, x, y []koalabear.Element) { (*koalabear.Vector)(&z).Add(x, y) },
			sub:   func(z, x, y []koalabear.Element) { (*koalabear.Vector)(&z).Sub(x, y) },
			scale: func(z, x []koalabear.Element, c *koalabear.Element) { (*koalabear.Vector)(&z).ScalarMul(x, c) },
		})
	}
	return f
}

func newBear[E ~[1]uint32](f *prime, v *vectors[E]) *bear[E] {
	v.load, v.store = loadBears[E], storeBears[E]
	return &bear[E]{f, v.complete(f, &f.common, func(c Element) E { return E{uint32(c[0] << 32 % f.q)} })}
}

func (f *bear[E]) Map(rows [][]Element) Map {
	if f.simd != nil && shapeOf(f, rows).inputs > vectorInputs {
		return f.prime.Map(rows)
	}
	return newVectorMap(f, f.vectors, rows)
}

func (f *bear[E]) Combine(dst []byte, coef []Element, src [][]byte) {
	if f.simd != nil && len(src) > vectorInputs {
		f.prime.Combine(dst, coef, src)
		return
	}
	f.combine(dst, coef, src)
}

// loadBears sets z to the symbols of src.
func loadBears[E ~[1]uint32](z []E, src []byte) {
	for k := range z {
		z[k] = E{le.Uint32(src[4*k:])}
	}
}

// storeBears is the inverse of loadBears.
func storeBears[E ~[1]uint32](dst []byte, z []E) {
	for k, x := range z {
		le.PutUint32(dst[4*k:], x[0])
	}
}
