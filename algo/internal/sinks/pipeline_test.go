package sinks

import (
	"errors"
	"fmt"
	"testing"

	"volley/algo/schedule"
	"volley/field/fieldtest"
	"volley/internal/verifyall"
	"volley/matrix"
	"volley/plan"
)

// TestPipelineCost compares counted costs with the formulas.
func TestPipelineCost(t *testing.T) {
	f := fieldtest.Parse(t, "2^16")
	everySinks(verifyall.Most(12, 24), 3, func(k, r int, separate bool, ports int) {
		p := sinksProblem(t, randomMatrix(t, f, k, r), separate, ports)
		plans, err := PipelinePlans(p)
		if err != nil && !errors.Is(err, schedule.ErrStructure) {
			t.Fatal(err)
		}
		for _, q := range plans {
			w, pieces := q.(*groupPlan).way, q.Info().Pieces
			size := w.n
			if separate {
				size++
			}
			ports := p.Ports
			rounds := (pieces+min(ports, pieces)-1)/min(ports, pieces) - 1 + schedule.Clog(size, 1)
			c := pair{C1: w.C1 + rounds, C2: w.C2*pieces + rounds}
			if got := costOf(q); got.C1 != c.C1 || got.C2 > c.C2 {
				t.Errorf("%s: %v, want at most %v", describe(p, q), got, c)
			}
		}
	})
	for _, c := range []struct {
		k, r  int
		ports int
		want  string // of plans, in packets
	}{
		{100, 1, 1, "8/4 10/2.5 14/1.75 22/1.375 38/1.188 70/1.094"},
		{1, 100, 1, "8/4 10/2.5 14/1.75 22/1.375 38/1.188 70/1.094"},
		{100, 1, 3, "5/3 6/2.667 7/2 8/1.333 10/0.8333 14/0.5833 22/0.4583"},
		{100, 10, 1, "8/8 9/7.5 11/6.75 15/6.375 23/6.188 39/6.094 71/6.047"},
		{3, 1, 1, "3/1.5 5/1.25 9/1.125 17/1.062 33/1.031 65/1.016"},
	} {
		p := sinksProblem(t, randomMatrix(t, f, c.k, c.r), false, c.ports)
		plans, err := PipelinePlans(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := inPacketsAll(plans); got != c.want {
			t.Errorf("K=%d R=%d p=%d: %s, want %s", c.k, c.r, c.ports, got, c.want)
		}
	}
}

// TestPipelineStructured checks that blocks with structure go through pipelines too, unless that
// puts a processor into two communicators.
func TestPipelineStructured(t *testing.T) {
	for _, c := range []struct {
		family, field string
		k, r          int
		separate      bool
		want          string // of plans, in packets
	}{
		{"lch", "2^8", 64, 16, false, "7/5.5 9/5.25 13/5.125 21/5.062 37/5.031 69/5.016"},
		{"lch", "2^8", 64, 16, true, "8/6 10/5.5 14/5.25 22/5.125 38/5.062 70/5.031"},
		{"cauchy", "2^8", 128, 64, false, ""},
		{"cauchy", "2^8", 128, 64, true, "11/11.5 13/11.25 17/11.12 25/11.06 41/11.03 73/11.02"},
	} {
		a, err := matrix.Spec{Family: c.family}.Build(fieldtest.Parse(t, c.field), c.k, c.r)
		if err != nil {
			t.Fatal(err)
		}
		plans, err := PipelinePlans(sinksProblem(t, a, c.separate, 1))
		if got := inPacketsAll(plans); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s, K=%d R=%d separate=%t: %s with error %v, want %q", c.family, c.k, c.r, c.separate, got, err, c.want)
		}
	}
}

// inPacketsAll lists the costs of plans.
func inPacketsAll(plans []plan.Plan) string {
	s := ""
	for i, q := range plans {
		if i > 0 {
			s += " "
		}
		c1, c2 := inPackets(q)
		s += fmt.Sprintf("%d/%.4g", c1, c2)
	}
	return s
}
