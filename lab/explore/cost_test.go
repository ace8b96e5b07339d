package explore

import (
	"math"
	"slices"
	"testing"

	"volley/algo"
	"volley/field"
	"volley/matrix/matrices"
	"volley/sim"
)

// TestCosts compares the costs of some K with what is counted from the schedules.
func TestCosts(t *testing.T) {
	t.Parallel()
	a, fault := ask[costAnswer](t, "cost", `{
		"flags": {"field": "257", "matrix": "lagrange", "ports": "2", "beta": "3us", "tau": "1ns", "gamma": "0.5ns", "size": "2000B"},
		"processors": " 9,16..18 ", "only": "universal,folded-lagrange"}`)
	if fault != nil {
		t.Fatal(fault.Message)
	}
	if want := "volley-lab cost --beta 3us --field 257 --gamma 0.5ns -p 2 -k 9,16..18 --size 2000B --tau 1ns --matrix lagrange --algorithm universal,folded-lagrange"; a.Command != want {
		t.Errorf("%s, want %s", a.Command, want)
	}
	if !slices.Equal(a.Algorithms, []string{"universal", "folded-lagrange"}) || len(a.Rows) != 4 {
		t.Fatalf("%+v", a)
	}
	f := must(field.Parse("257"))(t)
	spec := must(matrices.ParseSpec("lagrange"))(t)
	model := sim.Model{Beta: 3000, Tau: 1e-9, Gamma: 0.5e-9, Bytes: 2 * field.PackingOf(f).Symbols(2000), SymbolBytes: 2}
	for i, k := range []int{9, 16, 17, 18} {
		r := a.Rows[i]
		m := must(spec.Build(f, k, k))(t)
		if r.K != k || r.Ports != 2 || r.BoundC1 != algo.BoundC1(k, 2) || r.BoundC2 != float64(r.BoundC1) || (r.Fewest != nil) != (k == 9) {
			t.Errorf("%+v", r)
		}
		chosen := ""
		least := math.Inf(1)
		problem := must(algo.NewProblem(m, 2, algo.Natural))(t)
		for _, x := range algo.Parts() {
			plans, err := x.Plans(problem)
			seconds := math.Inf(1)
			for _, p := range plans {
				cost := sim.Count(p)
				if cost.Pieces > 1 {
					continue // not unless asked
				}
				if s := model.Time(cost).Seconds(); s < seconds {
					seconds = s
				}
			}
			if seconds < least {
				chosen, least = x.Name, seconds
			}
			if cell, ok := r.Costs[x.Name]; ok != (err == nil && slices.Contains(a.Algorithms, x.Name)) || ok && cell.Seconds != seconds {
				t.Errorf("K = %d: %s: %+v, want %v s", k, x.Name, cell, seconds)
			}
		}
		if r.Chosen != chosen {
			t.Errorf("K = %d: chosen %q, want %q", k, r.Chosen, chosen)
		}
	}
}

// TestCostsOfAny checks known costs of the algorithms for any matrix.
func TestCostsOfAny(t *testing.T) {
	t.Parallel()
	a := result[costAnswer](t, "cost", `{"flags": {"processors": "5", "algorithm": "bruck-allgather"}}`)
	if len(a.Rows) != 63 || a.Command != "volley-lab cost -k 2..64" || a.Algorithms[0] != "universal" || slices.Contains(a.Algorithms, "cauchy") {
		t.Fatalf("%s: %d rows, %v", a.Command, len(a.Rows), a.Algorithms)
	}
	r := a.Rows[62]
	if c := r.Costs["universal"]; r.K != 64 || c.C1 != 6 || c.C2 != 14 || r.Fewest == nil || *r.Fewest != 14 || r.Chosen != "bruck-allgather" {
		t.Errorf("%+v", r)
	}
	if c := r.Costs["bruck-allgather"]; c.C1 != 6 || c.C2 != 63 {
		t.Errorf("%+v", c)
	}
	a, _ = ask[costAnswer](t, "cost", `{"flags": {"algorithm": "cauchy"}, "processors": "4"}`)
	if len(a.Rows) != 1 || a.Rows[0].Chosen != "" {
		t.Errorf("%+v: an algorithm that needs a matrix was chosen without one", a.Rows)
	}
}
