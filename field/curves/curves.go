// Package curves registers the large prime fields of proof systems: goldilocks, and the scalars of BLS12-381 and of
// BN254. A program that imports it parses their names by [field.Parse].
package curves

import (
	"math/big"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	bn254 "github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/consensys/gnark-crypto/field/goldilocks"

	"volley/field"
)

func init() {
	register("goldilocks", "integers modulo 2^64-2^32+1; symbols of 8 bytes", goldilocks.Modulus(), field.NewGoldilocks)
	register("bls12-381", "scalars of BLS12-381: q = 0x"+bls12381.Modulus().Text(16)+"; 32 bytes", bls12381.Modulus(), func(name string) field.Field {
		return field.NewScalars(name, bls12381.Modulus(), 7, field.Vectors[bls12381.Element]{
			Add:   func(z, x, y []bls12381.Element) { (*bls12381.Vector)(&z).Add(x, y) },
			Sub:   func(z, x, y []bls12381.Element) { (*bls12381.Vector)(&z).Sub(x, y) },
			Scale: func(z, x []bls12381.Element, c *bls12381.Element) { (*bls12381.Vector)(&z).ScalarMul(x, c) },
		})
	})
	register("bn254", "scalars of BN254: q = 0x"+bn254.Modulus().Text(16)+"; 32 bytes", bn254.Modulus(), func(name string) field.Field {
		return field.NewScalars(name, bn254.Modulus(), 5, field.Vectors[bn254.Element]{
			Add:   func(z, x, y []bn254.Element) { (*bn254.Vector)(&z).Add(x, y) },
			Sub:   func(z, x, y []bn254.Element) { (*bn254.Vector)(&z).Sub(x, y) },
			Scale: func(z, x []bn254.Element, c *bn254.Element) { (*bn254.Vector)(&z).ScalarMul(x, c) },
		})
	})
}

func register(name, doc string, order *big.Int, build func(name string) field.Field) {
	if err := field.Register(name, doc, order, build); err != nil {
		panic(err) // a name of ours that is taken
	}
}
