package algo_test

import (
	"errors"
	"strings"
	"testing"

	"volley/algo"
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
		for ports := 1; ports <= 3; ports++ {
			p := shaped(t, c.field, must(matrices.ParseSpec(c.matrix))(t), c.k, c.r, false, ports)
			list, _ := algo.Candidates(p, sim.Model{})
			for _, want := range list {
				name := want.Plan.Info().Name()
				for _, q := range must(lookup(t, name).Plans(p))(t) {
					if q.Info().Name() != name || q.Info().Parameters != want.Plan.Info().Parameters {
						t.Errorf("%s is %s %s, want %s", name, q.Info().Name(), q.Info().Parameters, want.Plan.Info().Parameters)
					}
					n++
				}
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
	p := shaped(t, "2^8", matrices.Spec{Family: "random", Argument: "1"}, 16, 16, false, 2)
	for _, name := range []string{"universal:2,8", "universal:16,1", "universal:1,16", "universal:5,4", "exchange:2,8/16", "exchange:3,6", "exchange:4,2,2/2,8", "helpers:3/0,2,1,1,1,1,1,1,1,1,1,1,1,1,1,9"} {
		plans := must(lookup(t, name).Plans(p))(t)
		if len(plans) != 1 || plans[0].Info().Name() != name {
			t.Errorf("%s: %d plans, the first %s", name, len(plans), plans[0].Info().Name())
		}
		if err := verify.Check(t.Context(), plans[0], p.Matrix); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []struct{ name, want string }{
		{"layers", "no such structure: take another"}, {"universal:3,3", "want a window"}, {"universal:17,1", "want a window"}, {"universal:4", "want a window"}, {"universal:4,4/4,4", "want a window"},
		{"exchange:3", "their product is 3"}, {"exchange:4,4,4", "radix 4: want"}, {"exchange:1,16", "radix 1: want"}, {"exchange:17", "radix 17: want"},
		{"exchange:9223372036854775807", "radix 9223372036854775807: want"}, {"exchange:16/16/16", "3 lists of radices"},
		{"helpers:8", "slower links"}, {"helpers:8/1,2", "the slices of each of 16 processors"}, {"helpers:2/0" + strings.Repeat(",0", 15), "2 batches of 0"},
		{"helpers:9223372036854775807/1" + strings.Repeat(",1", 15), "1 to 4096 slices"}, {"helpers:8/0" + strings.Repeat(",9223372036854775807", 15), "1 to 4096 slices"},
		{"bruck-allgather:1", "there are only bruck-allgather"}, {"prepare-and-shoot:2,8", "there are only prepare-and-shoot:9,3"},
	} {
		if _, err := lookup(t, c.name).Plans(p); !errors.Is(err, algo.ErrStructure) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an ErrStructure with %q", c.name, err, c.want)
		}
	}
	for name, want := range map[string]string{
		"exchange:": `"" is no number`, "dft:": `"" is no number`, "exchange:4,x": `"x" is no number`, "exchange:0,4": `"0" is no number`, "helpers:4/0,-1": `"-1" is no number`, "nothing:4": "no algorithm", "fastest": "no algorithm",
	} {
		if _, err := algo.Lookup(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestLayersParts checks that the one algorithm for products of layers has the plans of its parts that no other one
// beats, by their names.
func TestLayersParts(t *testing.T) {
	p := shaped(t, "257", matrices.Spec{Family: "lagrange"}, 64, 64, false, 1)
	var names []string
	for _, q := range must(lookup(t, "layers").Plans(p))(t) {
		names = append(names, q.Info().Name())
	}
	if got := strings.Join(names, " "); got != "folded-lagrange:2,32,2 folded-lagrange:2,2,16,2,2" {
		t.Errorf("layers: %s", got)
	}
	for _, name := range []string{"lagrange", "lagrange:8,8,8,8", "layers:8,8,8,8", "layers:8,8,8"} {
		q := must(lookup(t, name).Compile(p.Matrix, 1))(t)
		if want := strings.Replace(strings.Replace(name, "layers:8,8,8,8", "lagrange:8,8,8,8", 1), "layers:", "folded-lagrange:", 1); !strings.HasPrefix(q.Info().Name(), want) {
			t.Errorf("%s: %s", name, q.Info().Name())
		}
	}
}
