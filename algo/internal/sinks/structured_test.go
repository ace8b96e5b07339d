package sinks

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"volley/algo/schedule"
	"volley/field/fieldtest"
	"volley/matrix"
)

// TestSinksStructured checks plans for blocks with structure: what they compute and
// what they cost, inside and apart.
func TestSinksStructured(t *testing.T) {
	scattered := 0 // problems whose layers leave results elsewhere
	for _, c := range []struct {
		spec         matrix.Spec
		field        string
		k, r, ports  int
		inside, away string // empty: no plans
	}{
		{matrix.Spec{Family: "cauchy"}, "2^8", 24, 8, 1, "6/6", "6/6"},
		{matrix.Spec{Family: "cauchy"}, "2^8", 96, 32, 1, "8/10", "8/10"},
		{matrix.Spec{Family: "rs:cauchy"}, "2^8", 96, 32, 1, "8/10", "8/10"},
		{matrix.Spec{Family: "rs:vandermonde"}, "2^8", 96, 32, 1, "8/10", "8/10"},
		{matrix.Spec{Family: "cauchy"}, "2^8", 128, 64, 1, "8/13 9/11", "9/14 10/12"},
		{matrix.Spec{Family: "rs:vandermonde"}, "2^8", 128, 64, 3, "5/5", "5/5"},
		{matrix.Spec{Family: "cauchy"}, "2^8", 64, 128, 1, "8/13 9/11", "9/14 10/12"},
		{matrix.Spec{Family: "lagrange"}, "257", 64, 32, 1, "7/9", "8/10"},
		{matrix.Spec{Family: "lagrange"}, "257", 32, 64, 1, "7/9", "8/10"},
		{matrix.Spec{Family: "vandermonde"}, "257", 64, 16, 1, "6/6", "7/7"},
		{matrix.Spec{Family: "vandermonde"}, "257", 16, 64, 1, "6/6", "7/7"},
		{matrix.Spec{Family: "vandermonde"}, "257", 64, 16, 3, "3/3", "4/4"},
		{matrix.Spec{Family: "vandermonde", Points: "powers"}, "17", 64, 16, 1, "7/7", "7/7"},
		{matrix.Spec{Family: "vandermonde", Points: "powers"}, "17", 48, 16, 3, "3/3", "3/3"},
		{matrix.Spec{Family: "lch"}, "2^8", 64, 16, 1, "6/6", "7/7"},
		{matrix.Spec{Family: "random", Argument: "1"}, "257", 64, 16, 1, "", ""},
		{matrix.Spec{Family: "lagrange"}, "257", 60, 16, 1, "", ""},
	} {
		a, err := c.spec.Build(fieldtest.Parse(t, c.field), c.k, c.r)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		for _, separate := range []bool{false, true} {
			if c.k == c.r && !separate {
				continue
			}
			want := c.inside
			if separate {
				want = c.away
			}
			p := sinksProblem(t, a, separate, c.ports)
			checkSinks(t, sinksFamily{"sinks-structured", StructuredPlans}, p)
			plans, err := StructuredPlans(p)
			if err != nil && !errors.Is(err, schedule.ErrStructure) {
				t.Fatal(err)
			}
			var got []string
			for _, q := range plans {
				got = append(got, fmt.Sprintf("%d/%d", costOf(q).C1, costOf(q).C2))
				if w := q.(*groupPlan).way; !separate && w.most() > w.n {
					scattered++
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%v, K=%d R=%d separate=%t p=%d: %v, want %q", c.spec, c.k, c.r, separate, c.ports, got, want)
			}
		}
	}
	if scattered == 0 {
		t.Error("no layers leave results in another order")
	}
}

// TestSameShape compares layers with groups of other sizes, or another number of them.
func TestSameShape(t *testing.T) {
	layers := func(k int) []matrix.Layer {
		m, err := matrix.DFT(fieldtest.Parse(t, "goldilocks"), k)
		if err != nil {
			t.Fatal(err)
		}
		return matrix.Factor(m, nil).Layers
	}
	for _, c := range []struct {
		a, b int
		want bool
	}{{6, 6, true}, {6, 10, false}, {8, 4, false}, {12, 12, true}, {20, 12, false}} {
		if got := sameShape(layers(c.a), layers(c.b)); got != c.want {
			t.Errorf("%d and %d: %v", c.a, c.b, got)
		}
	}
}
