package field

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// A named field is a prime field that has a name of its own. Where build is nil the prime is below 2^31 and the field as
// [newPrime] makes it.
type named struct {
	name, doc string
	order     *big.Int
	build     func(name string) Field
}

// large are the prime fields with names, later registrations last.
var large = []named{
	{"babybear", "integers modulo 2^31-2^27+1 = 2013265921; symbols of 4 bytes", big.NewInt(1<<31 - 1<<27 + 1), nil},
	{"koalabear", "integers modulo 2^31-2^24+1 = 2130706433; symbols of 4 bytes", big.NewInt(1<<31 - 1<<24 + 1), nil},
}

// curveNames are the names that package field/curves registers.
var curveNames = []string{"goldilocks", "bls12-381", "bn254"}

// Register adds a prime field with a name, so that [Parse] reads its name and its order, and [Kinds] lists it with what
// doc says. Programs call it before they parse anything, such as from an init function: it must not run at the same time
// as anything else of this package. It returns an error for a field without a name, order or build, and for a name or
// an order that is taken.
func Register(name, doc string, order *big.Int, build func(name string) Field) error {
	if name == "" || order == nil || build == nil {
		return fmt.Errorf("field: cannot register field %q: want a name, an order, and a function that makes the field", name)
	}
	for _, text := range []string{name, order.String()} {
		if _, err := parse(text); err == nil {
			return fmt.Errorf("field: cannot register field %q: %s is taken", name, text)
		}
	}
	large = append(large, named{name, doc, order, build})
	return nil
}

// An UnregisteredError says that [Parse] knows a name, and that nothing in the program has registered the field.
type UnregisteredError struct{ Name string }

// Error says which package registers the field.
func (e *UnregisteredError) Error() string {
	return "this program lacks it: package field/curves registers it"
}

// largeNames returns the names for an error.
func largeNames() string {
	var names []string
	for _, l := range large {
		names = append(names, l.name)
	}
	return strings.Join(names, ", ")
}

// errNotLarge says that a name is not that of a large field.
var errNotLarge = errors.New("another field")

// parseLarge reads the name or the order of a large field, or returns errNotLarge.
func parseLarge(name string) (spec, error) {
	digits := strings.TrimLeft(name, "0")
	for _, l := range large {
		switch {
		case name != l.name && digits != l.order.String():
		case l.build == nil:
			return spec{p: l.order.Uint64(), m: 1}, nil
		default:
			return spec{large: l.name}, nil
		}
	}
	if slices.Contains(curveNames, name) {
		return spec{}, &UnregisteredError{name}
	}
	return spec{}, errNotLarge
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
