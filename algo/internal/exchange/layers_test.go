package exchange

import (
	"errors"
	"strings"
	"testing"

	"volley/algo/internal/layers"
	"volley/algo/schedule"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/plan"
	"volley/sim"
)

// TestSinksStructured checks plans for blocks with structure: what they compute and
// what they cost, inside and apart.
func TestSinksStructured(t *testing.T) {
	scattered := 0 // problems whose layers leave results elsewhere
	cauchy, lagrange, vandermonde := matrices.Spec{Family: "cauchy"}, matrices.Spec{Family: "lagrange"}, matrices.Spec{Family: "vandermonde"}
	powers := matrices.Spec{Family: "vandermonde", Points: "powers"}
	for _, c := range []struct {
		spec         matrices.Spec
		field        string
		k, r, ports  int
		inside, away string // empty: no plans
	}{
		{cauchy, "2^8", 24, 8, 1, "6/6", "6/6"},
		{matrices.Spec{Family: "rs:cauchy"}, "2^8", 96, 32, 1, "8/10", "8/10"},
		{matrices.Spec{Family: "rs:vandermonde"}, "2^8", 128, 64, 3, "5/5", "5/5"},
		{cauchy, "2^8", 128, 64, 1, "8/13 9/11", "9/14 10/12"},
		{cauchy, "2^8", 64, 128, 1, "8/13 9/11", "9/14 10/12"},
		{lagrange, "257", 64, 32, 1, "7/9", "8/10"},
		{lagrange, "257", 32, 64, 1, "7/9", "8/10"},
		{vandermonde, "257", 64, 16, 1, "6/6", "7/7"},
		{vandermonde, "257", 16, 64, 1, "6/6", "7/7"},
		{vandermonde, "257", 64, 16, 3, "3/3", "4/4"},
		{powers, "17", 64, 16, 1, "7/7", "7/7"},
		{powers, "17", 48, 16, 3, "3/3", "3/3"},
		{matrices.Spec{Family: "lch"}, "2^8", 64, 16, 1, "6/6", "7/7"},
		{matrices.Spec{Family: "random", Argument: "1"}, "257", 64, 16, 1, "", ""},
		{lagrange, "257", 60, 16, 1, "", ""},
	} {
		a, err := c.spec.Build(fieldtest.Parse(t, c.field), c.k, c.r)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		for separate, want := range map[bool]string{false: c.inside, true: c.away} {
			plans := checkSinks(t, task(a, separate, c.ports), StructuredPlans)
			for _, q := range plans {
				if w := q.(*groupPlan).scheme; !separate && w.communicatorSize() > w.n {
					scattered++
				}
			}
			if got := inPackets(plans); got != want {
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
	coset := matrices.Spec{Family: "cauchy", Omega: "coset", Alpha: "coset"}
	for _, c := range []struct {
		spec  matrices.Spec
		field string
		few   []int
	}{
		{matrices.Spec{Family: "vandermonde"}, "241", []int{12, 20, 24, 30, 40}},
		{matrices.Spec{Family: "vandermonde"}, "2521", []int{12, 18, 20, 24, 28, 36, 60, 72}},
		{matrices.Spec{Family: "lagrange"}, "2521", []int{12, 18, 20, 36}},
		{coset, "2521", []int{12, 18, 24, 30}},
		{coset, "1093", []int{12, 26, 28, 42, 52}},
	} {
		for _, few := range c.few {
			for _, shape := range [][2]int{{few, 2 * few}, {few, 3 * few}, {2 * few, few}, {3 * few, few}} {
				a, err := c.spec.Build(fieldtest.Parse(t, c.field), shape[0], shape[1])
				for ports := 1; ports <= 5 && err == nil; ports++ {
					p := task(a, shape[0] > shape[1], ports)
					if plans := checkSinks(t, p, StructuredPlans); len(plans) > 0 {
						problems++
						cheaper += checkDigits(t, p, plans)
					}
				}
			}
		}
	}
	if problems < 100 || cheaper < 5 {
		t.Errorf("%d problems, of which %d plans are cheaper by other digits: want more", problems, cheaper)
	}
}

// TestCosetsNamed names points coset where a block has no layers, and would have some on them.
func TestCosetsNamed(t *testing.T) {
	for _, c := range []struct {
		field, matrix string
		k, r          int
		want          bool
	}{
		{"257", "cauchy", 24, 8, true}, {"goldilocks", "cauchy", 24, 8, true}, {"257", "cauchy", 8, 24, true},
		{"257", "cauchy", 21, 7, false}, {"257", "cauchy", 6, 2, false}, {"257", "cauchy", 193, 64, false}, {"257", "random:1", 24, 8, false},
	} {
		spec, err := matrices.ParseSpec(c.matrix)
		if err != nil {
			t.Fatal(err)
		}
		a, err := spec.Build(fieldtest.Parse(t, c.field), c.k, c.r)
		if err != nil {
			t.Fatal(err)
		}
		_, err = StructuredPlans(task(a, false, 1))
		if !errors.Is(err, schedule.ErrStructure) || strings.Contains(err.Error(), "would have some on points coset") != c.want {
			t.Errorf("%s over %s, K = %d, R = %d: %v", c.matrix, c.field, c.k, c.r, err)
		}
	}
}

// checkDigits compares plans with those in the matrix's own order. It returns how many of these cost more.
func checkDigits(t *testing.T, p schedule.Task, plans []plan.Plan) (cheaper int) {
	t.Helper()
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
	for _, w := range worthwhile(p, ways) {
		before, beaten := sim.Count(grouped(p, "", w)), false
		for _, q := range plans {
			if now := sim.Count(q); now.C1 <= before.C1 && now.C2 <= before.C2 {
				beaten = true
				if now.C1+now.C2 < before.C1+before.C2 {
					cheaper++
				}
			}
		}
		if !beaten {
			t.Errorf("%s, %d to %d, p = %d: no plan costs as little as %d/%d in the own order", p.Matrix.ID(), p.Matrix.Rows(), p.Matrix.Cols(), p.Ports, before.C1, before.C2)
		}
	}
	return cheaper
}
