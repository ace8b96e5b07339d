package exchange

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"volley/algo/internal/layers"
	"volley/algo/schedule"
	_ "volley/field/curves"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrices"
)

// TestSinksStructured checks plans for blocks with structure: what they compute and
// what they cost, inside and apart.
func TestSinksStructured(t *testing.T) {
	scattered := 0 // problems whose layers leave results elsewhere
	for _, c := range []struct {
		spec         matrices.Spec
		field        string
		k, r, ports  int
		inside, away string // empty: no plans
	}{
		{matrices.Spec{Family: "cauchy"}, "2^8", 24, 8, 1, "6/6", "6/6"},
		{matrices.Spec{Family: "cauchy"}, "2^8", 96, 32, 1, "8/10", "8/10"},
		{matrices.Spec{Family: "rs:cauchy"}, "2^8", 96, 32, 1, "8/10", "8/10"},
		{matrices.Spec{Family: "rs:vandermonde"}, "2^8", 96, 32, 1, "8/10", "8/10"},
		{matrices.Spec{Family: "cauchy"}, "2^8", 128, 64, 1, "8/13 9/11", "9/14 10/12"},
		{matrices.Spec{Family: "rs:vandermonde"}, "2^8", 128, 64, 3, "5/5", "5/5"},
		{matrices.Spec{Family: "cauchy"}, "2^8", 64, 128, 1, "8/13 9/11", "9/14 10/12"},
		{matrices.Spec{Family: "lagrange"}, "257", 64, 32, 1, "7/9", "8/10"},
		{matrices.Spec{Family: "lagrange"}, "257", 32, 64, 1, "7/9", "8/10"},
		{matrices.Spec{Family: "vandermonde"}, "257", 64, 16, 1, "6/6", "7/7"},
		{matrices.Spec{Family: "vandermonde"}, "257", 16, 64, 1, "6/6", "7/7"},
		{matrices.Spec{Family: "vandermonde"}, "257", 64, 16, 3, "3/3", "4/4"},
		{matrices.Spec{Family: "vandermonde", Points: "powers"}, "17", 64, 16, 1, "7/7", "7/7"},
		{matrices.Spec{Family: "vandermonde", Points: "powers"}, "17", 48, 16, 3, "3/3", "3/3"},
		{matrices.Spec{Family: "lch"}, "2^8", 64, 16, 1, "6/6", "7/7"},
		{matrices.Spec{Family: "random", Argument: "1"}, "257", 64, 16, 1, "", ""},
		{matrices.Spec{Family: "lagrange"}, "257", 60, 16, 1, "", ""},
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
				if w := q.(*groupPlan).scheme; !separate && w.communicatorSize() > w.n {
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
		fact, err := matrix.Factor(t.Context(), m, nil)
		if err != nil {
			t.Fatal(err)
		}
		return fact.Layers
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

// TestSinksStructuredDigits checks plans of blocks whose digits may come in several orders: what they compute, and that
// no plan in the matrix's own order costs less in C1 and C2. Some cost more.
func TestSinksStructuredDigits(t *testing.T) {
	problems, cheaper := 0, 0
	for _, c := range []struct {
		family, field string
		few           []int
	}{
		{"vandermonde", "241", []int{12, 20, 24, 30, 40}},
		{"vandermonde", "2521", []int{12, 18, 20, 24, 28, 36, 60, 72}},
		{"lagrange", "2521", []int{12, 18, 20, 36}},
		{"cauchy", "2521", []int{12, 18, 24, 30}},
		{"cauchy", "3^6", []int{18, 26, 28, 36, 52}},
	} {
		for _, few := range c.few {
			for _, groups := range []int{2, 3} {
				for ports := 1; ports <= 5; ports++ {
					for _, gather := range []bool{false, true} {
						k, r := few, groups*few
						if gather {
							k, r = r, k
						}
						points := ""
						if c.family == "cauchy" {
							points = "coset"
						}
						a, err := (matrices.Spec{Family: c.family, Omega: points, Alpha: points}).Build(fieldtest.Parse(t, c.field), k, r)
						if err != nil {
							continue
						}
						p := sinksProblem(t, a, gather, ports)
						plans, err := StructuredPlans(p)
						if errors.Is(err, schedule.ErrStructure) {
							continue
						}
						if err != nil {
							t.Fatal(err)
						}
						problems++
						checkSinks(t, sinksFamily{"sinks-structured", StructuredPlans}, p)
						own, why := blockFactors(p, nil)
						if why != "" {
							t.Fatal(why)
						}
						g := sides(p)
						g.n = len(own)
						var ways []*scheme
						for _, cuts := range layers.Fusions(p.Context, own[0].Layers, p.Ports, func(_, _ int) bool { return true }) {
							ways = append(ways, fusedGroups(p, g, own, cuts))
						}
						least := func(w *scheme) string { return fmt.Sprint(costOf(grouped(p, "", w))) }
						for _, w := range worthwhile(p, ways) {
							before, beaten := costOf(grouped(p, "", w)), false
							for _, q := range plans {
								now := costOf(q)
								beaten = beaten || now.C1 <= before.C1 && now.C2 <= before.C2
								if now.C1 <= before.C1 && now.C2 <= before.C2 && now != before {
									cheaper++
								}
							}
							if !beaten {
								t.Errorf("%s over %s, %d to %d, p = %d: no plan costs as little as %s in the own order", c.family, c.field, k, r, ports, least(w))
							}
						}
					}
				}
			}
		}
	}
	if problems < 100 || cheaper < 5 {
		t.Errorf("%d problems, of which %d plans are cheaper by other digits: want more", problems, cheaper)
	}
}
