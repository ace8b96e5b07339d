package algo

import (
	"errors"
	"strings"
	"testing"

	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/sim"
	"volley/verify"
)

// TestLookupParameters checks that every plan of every algorithm is found again by the name
// that it has, alone among plans of other parameters.
func TestLookupParameters(t *testing.T) {
	n := 0
	for _, c := range []struct {
		field, matrix string
		k, r          int
	}{{"257", "dft", 16, 16}, {"257", "cauchy", 16, 16}, {"2^8", "cauchy", 24, 24}, {"2^8", "random:1", 12, 4}, {"2^8", "random:1", 3, 7}, {"257", "vandermonde", 48, 48}} {
		spec, err := matrices.ParseSpec(c.matrix)
		if err != nil {
			t.Fatal(err)
		}
		a, err := spec.Build(fieldtest.Parse(t, c.field), c.k, c.r)
		if err != nil {
			t.Fatal(err)
		}
		for ports := 1; ports <= 3; ports++ {
			p := &Problem{Matrix: a, Ports: ports}
			if err := p.Prepare(); err != nil {
				t.Fatal(err)
			}
			list, _ := Candidates(p, sim.Model{})
			for _, want := range list {
				info := want.Plan.Info()
				one, err := Lookup(info.Name())
				if err != nil {
					t.Fatal(err)
				}
				plans, err := one.Plans(p)
				if err != nil || len(plans) < 1 {
					t.Fatalf("%s: %d plans, %v", info.Name(), len(plans), err)
				}
				for _, q := range plans {
					if q.Info().Algorithm != info.Algorithm || q.Info().Parameters != info.Parameters {
						t.Errorf("%s is %s %s, want %s", info.Name(), q.Info().Algorithm, q.Info().Parameters, info.Parameters)
					}
				}
				n++
			}
		}
	}
	if n < 150 {
		t.Errorf("%d plans looked up, want more", n)
	}
}

// TestLookupOwnParameters checks plans that the algorithms do not offer by themselves, and
// parameters that do not fit.
func TestLookupOwnParameters(t *testing.T) {
	a, err := matrix.Random(fieldtest.Parse(t, "2^8"), 16, 16, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, want string }{
		{"universal:2,8", ""}, {"universal:16,1", ""}, {"universal:1,16", ""}, {"universal:5,4", ""},
		{"exchange:2,8/16", ""}, {"exchange:3,6", ""}, {"exchange:4,2,2/2,8", ""},
		{"universal:3,3", "want a window"}, {"universal:17,1", "want a window"}, {"universal:4", "want a window"}, {"universal:4,4/4,4", "want a window"},
		{"exchange:3", "their product is 3"}, {"exchange:4,4,4", "radix 4: want"}, {"exchange:1,16", "radix 1: want"}, {"exchange:17", "radix 17: want"},
		{"exchange:9223372036854775807", "radix 9223372036854775807: want"}, {"exchange:16/16/16", "3 lists of radices"},
		{"bruck-allgather:1", "there are only bruck-allgather"}, {"prepare-and-shoot:2,8", "there are only prepare-and-shoot:9,3"},
		{"exchange:", `"" is no number`}, {"exchange:4,x", `"x" is no number`}, {"exchange:0,4", `"0" is no number`}, {"nothing:4", "no algorithm"},
	} {
		one, err := Lookup(c.name)
		if err == nil {
			p, err2 := NewProblem(a, 2, Natural)
			if err2 != nil {
				t.Fatal(err2)
			}
			plans, err2 := one.Plans(p)
			if err = err2; err == nil {
				if len(plans) != 1 || plans[0].Info().Name() != c.name {
					t.Errorf("%s: %d plans, the first %s", c.name, len(plans), plans[0].Info().Name())
				}
				if err := verify.Check(t.Context(), plans[0], a); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			} else if !errors.Is(err, ErrStructure) {
				t.Errorf("%s: %v is no ErrStructure", c.name, err)
			}
		}
		if c.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
