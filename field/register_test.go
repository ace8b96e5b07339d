package field

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"
)

// TestRegister registers a field, and refuses names and orders that are taken.
func TestRegister(t *testing.T) {
	defer func(list []named) { large = list }(slices.Clone(large))
	build := func(name string) Field { return newPrime(65537) }
	order := new(big.Int).Lsh(big.NewInt(1), 89)
	order.Sub(order, big.NewInt(1))
	for _, c := range []struct {
		name  string
		order *big.Int
		build func(string) Field
	}{
		{"", order, build}, {"mersenne", nil, build}, {"mersenne", order, nil}, {"babybear", order, build}, {"2^8", order, build}, {"fermat", big.NewInt(65537), build},
	} {
		if err := Register(c.name, "", c.order, c.build); err == nil {
			t.Errorf("%q, %v: no error", c.name, c.order)
		}
	}
	if err := Register("mersenne", "2^89-1", order, build); err != nil {
		t.Fatal(err)
	}
	if err := Register("other", "", order, build); err == nil {
		t.Error("an order twice: no error")
	}
	for _, name := range []string{"mersenne", order.String()} {
		if s, err := parse(name); err != nil || s.large != "mersenne" {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	if list := Kinds(); list[len(list)-1] != (Kind{"mersenne", "mersenne", "2^89-1"}) {
		t.Errorf("%+v", list)
	}
}

// TestUnregistered checks the error of names whose package a program lacks.
func TestUnregistered(t *testing.T) {
	defer func(list []named) { large = list }(large)
	large = large[:2] // as without field/curves
	for _, name := range curveNames {
		_, err := Parse(name)
		wrong := new(UnregisteredError)
		want := `field "` + name + `": this program lacks it: package field/curves registers it`
		if !errors.As(err, &wrong) || wrong.Name != name || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestCacheIsBounded parses more fields than are kept.
func TestCacheIsBounded(t *testing.T) {
	parsed := 0
	for order := 1000; parsed < 3*maxCached; order++ {
		if _, err := Parse(fmt.Sprint(order)); err == nil {
			parsed++
		}
		if len(cache.fields) > maxCached {
			t.Fatalf("%d fields are kept", len(cache.fields))
		}
	}
}
