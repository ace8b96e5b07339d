package comparison_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"volley"
	"volley/algo"
	"volley/internal/comparison"
	"volley/internal/selection"
)

// compare returns a comparison for flags of a selection, with all plans.
func compare(t *testing.T, args ...string) *comparison.Comparison {
	t.Helper()
	s, f := new(selection.Selection), pflag.NewFlagSet("", pflag.ContinueOnError)
	s.AddMatrix(f)
	s.AddProcessors(f)
	s.AddPlan(f, selection.PaperModel)
	s.AddSize(f)
	if !slices.Contains(args, "network") {
		args = append([]string{"--beta", "20us", "--tau", "0.8ns"}, args...)
	}
	if err := f.Parse(append([]string{"--gamma", "0"}, args...)); err != nil {
		t.Fatal(err)
	}
	s.SetDefaults()
	c := &comparison.Comparison{
		Selection: s, HasMatrix: f.Changed("matrix"), Processors: []int{s.Processors},
		Settings: []comparison.PortSetting{{Ports: s.Ports, Excess: s.Limits.Rounds.Excess()}}, Planner: s.Algorithm, AllPlans: true,
	}
	if s.Algorithm == algo.Auto {
		s.Algorithm = ""
	}
	bytes, err := s.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Prepare(s.Algorithm, bytes); err != nil {
		t.Fatal(err)
	}
	return c
}

// row returns the only row of a comparison.
func row(t *testing.T, c *comparison.Comparison) comparison.CostRow {
	t.Helper()
	rows, err := c.Rows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	return rows[0]
}

// TestChosen checks that what is chosen is what the library would run.
func TestChosen(t *testing.T) {
	for _, args := range [][]string{
		{"--matrix", "cauchy"},
		{"--matrix", "cauchy", "--size", "64MiB"},
		{"--matrix", "cauchy", "--size", "64MiB", "--model", "network", "--network", "10gbit/20us"},
		{"--matrix", "cauchy", "-p", "3", "--rounds-over", "1"},
		{"--matrix", "cauchy", "--gamma", "1ns", "--max-memory", "20"},
		{"--matrix", "cauchy", "--algorithm", "exchange"},
		{"--matrix", "dft", "--field", "257", "--order", "any", "--size", "1KiB"},
		{"--matrix", "cauchy", "--sinks", "3", "--separate"},
	} {
		for k := 1; k <= 32; k++ {
			c := compare(t, append(args, "-k", fmt.Sprint(k))...)
			planner := c.Planner
			a, err := c.Selection.Build()
			if err != nil {
				continue // no dft for this K
			}
			c.Selection.Algorithm = planner
			encoder, err := volley.NewEncoder(t.Context(), a, c.Selection.Options(c.Model)...)
			if err != nil {
				t.Fatal(err)
			}
			c.Selection.Algorithm = "universal" // that the plans compared may cut is no matter
			p, err := encoder.Plan(t.Context(), nil, c.Model.Symbols())
			rows, rowsErr := c.Rows(t.Context())
			switch {
			case err != nil && rowsErr == nil && rows[0].Chosen != nil:
				t.Errorf("%v, K = %d: chosen %v, want none: %v", args, k, rows[0].Chosen, err)
			case err != nil:
			case rowsErr != nil || rows[0].Chosen == nil:
				t.Errorf("%v, K = %d: none chosen, %v", args, k, rowsErr)
			case rows[0].Chosen.Algorithm != p.Info().Algorithm || rows[0].Chosen.Parameters != p.Info().Parameters:
				t.Errorf("%v, K = %d: chosen %+v, want %s %s", args, k, rows[0].Chosen, p.Info().Algorithm, p.Info().Parameters)
			}
		}
	}
}

// TestFront checks that no plan of a row beats one of its front, and that each other one is
// beaten.
func TestFront(t *testing.T) {
	r := row(t, compare(t, "--matrix", "cauchy", "-k", "64", "--sinks", "20"))
	if len(r.Front) < 3 || len(r.Front) == len(r.Plans) {
		t.Fatalf("a front of %v, of %v", r.Front, r.Plans)
	}
	for _, p := range r.Plans {
		on, beaten := false, false
		for _, q := range r.Front {
			on = on || q.String() == p.String()
			beaten = beaten || q.Cost.C1 <= p.Cost.C1 && q.Cost.PacketC2() <= p.Cost.PacketC2() && q.String() != p.String()
		}
		if on == beaten {
			t.Errorf("%s %v: on the front %v, beaten %v", p.Algorithm, p, on, beaten)
		}
	}
}

// TestRows checks that rows come one setting after the other, none where the matrix does not exist, and that algorithms
// that exist nowhere are left out.
func TestRows(t *testing.T) {
	c := compare(t, "--matrix", "dft", "--field", "257")
	c.Processors, c.Settings, c.AllPlans = []int{3, 4}, []comparison.PortSetting{{Ports: 1, Excess: -1}, {Ports: 2, Excess: 0}}, false
	rows, err := c.Rows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ k, ports, c1 int }{{4, 1, 2}, {4, 2, 2}} {
		if r := rows[i]; r.K != want.k || r.Used != want.ports || r.C1 != want.c1 || len(r.Costs) == 0 || r.Plans != nil {
			t.Errorf("row %d: %+v, want %+v", i, r, want)
		}
	}
	for _, a := range c.Algorithms {
		if rows[0].Costs[a.Name].Cost.C1 == 0 && rows[1].Costs[a.Name].Cost.C1 == 0 {
			t.Errorf("%s exists nowhere", a.Name)
		}
	}
}
