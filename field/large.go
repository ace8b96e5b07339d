package field

import (
	"math/big"
	"strings"
)

// large are the prime fields with names, those of proof systems. Where build is
// nil the prime is below 2^31 and the field as [newPrime] makes it.
var large = []struct {
	name  string
	order *big.Int
	doc   string
	build func(name string, order *big.Int) Field
}{
	{"goldilocks", hexadecimal("ffffffff00000001"), "integers modulo 2^64-2^32+1; symbols of 8 bytes",
		func(name string, _ *big.Int) Field { return newGoldilocks(name) }},
	{"babybear", big.NewInt(1<<31 - 1<<27 + 1), "integers modulo 2^31-2^27+1 = 2013265921; symbols of 4 bytes", nil},
	{"koalabear", big.NewInt(1<<31 - 1<<24 + 1), "integers modulo 2^31-2^24+1 = 2130706433; symbols of 4 bytes", nil},
	{"bls12-381", hexadecimal(bls12381), "scalars of BLS12-381: q = 0x" + bls12381 + "; 32 bytes",
		func(name string, order *big.Int) Field { return newScalars(name, order, 7) }},
	{"bn254", hexadecimal(bn254), "scalars of BN254: q = 0x" + bn254 + "; 32 bytes",
		func(name string, order *big.Int) Field { return newScalars(name, order, 5) }},
}

const (
	bls12381 = "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001"
	bn254    = "30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001"
)

// hexadecimal returns a number that is written as one.
func hexadecimal(digits string) *big.Int {
	v, ok := new(big.Int).SetString(digits, 16)
	if !ok {
		panic("field: " + digits + " is no number")
	}
	return v
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
			return l.build(name, l.order)
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
