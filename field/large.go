package field

import (
	"math/big"
	"strings"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	bn254 "github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/consensys/gnark-crypto/field/goldilocks"
)

// large are the prime fields with names, those of proof systems. Where build is
// nil the prime is below 2^31 and the field as [newPrime] makes it.
var large = []struct {
	name  string
	order *big.Int
	doc   string
	build func(name string) Field
}{
	{"goldilocks", goldilocks.Modulus(), "integers modulo 2^64-2^32+1; symbols of 8 bytes",
		func(name string) Field { return newGoldilocks(name) }},
	{"babybear", big.NewInt(1<<31 - 1<<27 + 1), "integers modulo 2^31-2^27+1 = 2013265921; symbols of 4 bytes", nil},
	{"koalabear", big.NewInt(1<<31 - 1<<24 + 1), "integers modulo 2^31-2^24+1 = 2130706433; symbols of 4 bytes", nil},
	{"bls12-381", bls12381.Modulus(), "scalars of BLS12-381: q = 0x" + bls12381.Modulus().Text(16) + "; 32 bytes",
		func(name string) Field {
			return newScalars(name, bls12381.Modulus(), 7, vectors[bls12381.Element]{
				add:   func(z, x, y []bls12381.Element) { (*bls12381.Vector)(&z).Add(x, y) },
				sub:   func(z, x, y []bls12381.Element) { (*bls12381.Vector)(&z).Sub(x, y) },
				scale: func(z, x []bls12381.Element, c *bls12381.Element) { (*bls12381.Vector)(&z).ScalarMul(x, c) },
			})
		}},
	{"bn254", bn254.Modulus(), "scalars of BN254: q = 0x" + bn254.Modulus().Text(16) + "; 32 bytes",
		func(name string) Field {
			return newScalars(name, bn254.Modulus(), 5, vectors[bn254.Element]{
				add:   func(z, x, y []bn254.Element) { (*bn254.Vector)(&z).Add(x, y) },
				sub:   func(z, x, y []bn254.Element) { (*bn254.Vector)(&z).Sub(x, y) },
				scale: func(z, x []bn254.Element, c *bn254.Element) { (*bn254.Vector)(&z).ScalarMul(x, c) },
			})
		}},
}

// largeNames returns the names for an error.
func largeNames() string {
	var names []string
	for _, l := range large {
		names = append(names, l.name)
	}
	return strings.Join(names, ", ")
}

// parseLarge reads the name or the order of a large field.
func parseLarge(name string) (spec, bool) {
	digits := strings.TrimLeft(name, "0")
	for _, l := range large {
		switch {
		case name != l.name && digits != l.order.String():
		case l.build == nil:
			return spec{p: l.order.Uint64(), m: 1}, true
		default:
			return spec{large: l.name}, true
		}
	}
	return spec{}, false
}

func buildLarge(name string) Field {
	for _, l := range large {
		if l.name == name {
			return l.build(name)
		}
	}
	panic("field: no large field " + name)
}

// primeName returns the canonical name of the field of q elements, q a prime
// below 2^31.
func primeName(q uint64) string {
	order := new(big.Int).SetUint64(q)
	for _, l := range large {
		if l.order.Cmp(order) == 0 {
			return l.name
		}
	}
	return order.String()
}
