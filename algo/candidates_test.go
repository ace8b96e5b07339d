package algo

import (
	"testing"

	"volley/field/fieldtest"
	"volley/matrix/matrices"
	"volley/plan"
	"volley/sim"
)

// TestCandidatesCounted compares the candidates with those of counting every plan to its end.
func TestCandidatesCounted(t *testing.T) {
	network, err := sim.ParseNetwork("10gbit/20us")
	if err != nil {
		t.Fatal(err)
	}
	model := sim.Model{Network: network, Gamma: sim.ProcessGamma, Bytes: 1 << 16, SymbolBytes: 2}
	for _, c := range []struct {
		rows, columns int
		separate      bool
		limits        Limits
	}{
		{7, 7, false, Limits{}}, {12, 5, true, Limits{}}, {24, 6, false, Limits{}},
		{16, 16, false, Limits{Memory: 10}}, {24, 6, false, Limits{Compute: 30}},
	} {
		a, err := matrices.Spec{Family: "cauchy"}.Build(fieldtest.Parse(t, "2^16"), c.rows, c.columns)
		if err != nil {
			t.Fatal(err)
		}
		p := &Problem{Matrix: a, Separate: c.separate, Limits: c.limits}
		if err := p.Prepare(); err != nil {
			t.Fatal(err)
		}
		var all []Candidate
		for _, algorithm := range registry {
			for _, ports := range p.portsToTry() {
				plans, err := algorithm.Plans(p.withPorts(ports))
				if err != nil {
					continue // it has none
				}
				for _, q := range plans {
					all = append(all, p.Evaluate(q, model))
				}
			}
		}
		want := unbeaten(all)
		got, _ := Candidates(p, model)
		if len(got) != len(want) || len(want) == len(all) {
			t.Fatalf("%+v: %d candidates of %d plans, want %d", c, len(got), len(all), len(want))
		}
		name := func(p plan.Plan) string { return p.Info().Name() + " " + p.Info().Parameters }
		for i := range got {
			if name(got[i].Plan) != name(want[i].Plan) || got[i].Time != want[i].Time || got[i].Broken != want[i].Broken {
				t.Errorf("%+v: candidate %d is %s, want %s", c, i, name(got[i].Plan), name(want[i].Plan))
			}
		}
	}
}
