package crossings

import (
	"cmp"
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"volley/internal/comparison"
	"volley/internal/selection"
)

// compare returns a comparison for flags of a selection, and its plans.
func compare(t *testing.T, args ...string) (*comparison.Comparison, []comparison.PlanCost) {
	t.Helper()
	s, f := new(selection.Selection), pflag.NewFlagSet("", pflag.ContinueOnError)
	s.AddMatrix(f)
	s.AddProcessors(f)
	s.AddPlan(f, selection.PaperModel)
	if !slices.Contains(args, "network") {
		args = append([]string{"--beta", "20us", "--tau", "0.8ns"}, args...)
	}
	parsed := f.Parse(append([]string{"--gamma", "0"}, args...))
	s.SetDefaults()
	c := &comparison.Comparison{
		Selection: s, HasMatrix: f.Changed("matrix"), Processors: []int{s.Processors},
		Settings: []comparison.PortSetting{{Ports: s.Ports, Excess: s.Limits.Rounds.Excess()}}, AllPlans: true,
	}
	s.Algorithm = ""
	prepared := c.Prepare("", 1)
	rows, err := c.Rows(t.Context())
	if err := cmp.Or(parsed, prepared, err); err != nil {
		t.Fatal(err)
	}
	return c, rows[0].Plans
}

// TestCrossings checks that on either side of a crossing the cheapest plan is as it says,
// and the same all the way to the next one, but for ties: pieces are filled up to symbols.
func TestCrossings(t *testing.T) {
	found := 0
	for _, args := range [][]string{
		{"--matrix", "cauchy", "-k", "64"},
		{"--matrix", "cauchy", "-k", "64", "--model", "network", "--network", "10gbit/20us"},
		{"--matrix", "lagrange", "--field", "257", "-k", "64", "-p", "2"},
		{"--matrix", "cauchy", "-k", "20", "--sinks", "6"},
		{"-k", "64", "--gamma", "0.1ns"},
		{"-k", "30", "--rounds-over", "0"},
		{"--matrix", "cauchy", "-k", "64", "--beta", "100ns"}, // at some bytes
	} {
		c, plans := compare(t, args...)
		sizes := Sizes(1, 1<<30)
		if len(plans) == 0 || sizes[0] != 1 || sizes[len(sizes)-1] != 1<<30 || !slices.IsSorted(sizes) {
			t.Fatalf("%v: %d plans, sizes %v", args, len(plans), sizes)
		}
		list := Find(c, plans, sizes)
		found += len(list)
		is, at := cheapest(c, plans, sizes[0]), sizes[0]
		for _, x := range append(list, Crossing{Bytes: sizes[len(sizes)-1], Plan: -1}) {
			before := min(x.Bytes-1, x.Bytes/1.0005)
			for _, bytes := range []float64{at, (at + before) / 2, before} {
				if now := cheapest(c, plans, bytes); bytes >= at && now != is && Seconds(c, plans[now], bytes) < 0.999*Seconds(c, plans[is], bytes) {
					t.Errorf("%v: at %.0f bytes %v is the cheapest, want %v", args, bytes, plans[now], plans[is])
				}
			}
			if x.Plan < 0 {
				break
			}
			if x.Plan == is || x.Plan != cheapest(c, plans, x.Bytes) || x.Seconds != Seconds(c, plans[x.Plan], x.Bytes) {
				t.Errorf("%v: from %v to %+v", args, plans[is], x)
			}
			if short := Find(c, plans, []float64{sizes[0], at, x.Bytes}); len(short) == 0 || short[len(short)-1].Plan != x.Plan {
				t.Errorf("%v: up to %.0f bytes %+v, want %+v at last", args, x.Bytes, short, x)
			}
			is, at = x.Plan, x.Bytes
		}
	}
	if found < 6 {
		t.Errorf("%d crossings", found)
	}
}
