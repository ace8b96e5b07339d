package algo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"volley/algo"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrices"
)

// TestProblem checks who is source and sink, and the bounds, by hand.
func TestProblem(t *testing.T) {
	for _, c := range []struct {
		k, r     int
		separate bool
		ports    int

		processors, used, C1, C2 int
		square                   bool
		sources, sinks           string // the row or sink of each processor, - for none
	}{
		{1, 1, false, 3, 1, 1, 0, 0, true, "0", "0"},
		{4, 4, false, 1, 4, 1, 2, 2, true, "0 1 2 3", "0 1 2 3"},
		{1, 1, true, 1, 2, 1, 1, 1, false, "0 -", "- 0"},
		{4, 1, false, 1, 4, 1, 2, 2, false, "0 1 2 3", "0 - - -"},
		{4, 1, true, 1, 5, 1, 3, 3, false, "0 1 2 3 -", "- - - - 0"},
		{2, 5, false, 2, 5, 2, 2, 2, false, "0 1 - - -", "0 1 2 3 4"},
		{2, 3, true, 9, 5, 4, 1, 1, false, "0 1 - - -", "- - 0 1 2"},
	} {
		p := shaped(t, "2^8", matrices.Spec{Family: "cauchy"}, c.k, c.r, c.separate, c.ports)
		name := fmt.Sprintf("K=%d R=%d separate=%v p=%d", c.k, c.r, c.separate, c.ports)
		b := p.Bound(p.Ports, 1)
		if p.Processors() != c.processors || p.Ports != c.used || p.Square() != c.square || b.C1 != c.C1 || b.C2 != c.C2 {
			t.Errorf("%s: %d processors, p=%d, square %v, bounds %d/%d", name, p.Processors(), p.Ports, p.Square(), b.C1, b.C2)
		}
		var sources, sinks []string
		for proc := range p.Processors() {
			say := func(n int, ok bool) string {
				if ok {
					return fmt.Sprint(n)
				}
				return "-"
			}
			sources, sinks = append(sources, say(p.Source(proc))), append(sinks, say(p.Sink(proc)))
		}
		if a, b := strings.Join(sources, " "), strings.Join(sinks, " "); a != c.sources || b != c.sinks {
			t.Errorf("%s: sources %s, sinks %s", name, a, b)
		}
	}
	a := must(matrix.Random(fieldtest.Parse(t, "2^8"), 3, 3, 0))(t)
	if p := must(lookup(t, "universal").Compile(a, 7))(t); p.Info().Ports != 2 {
		t.Errorf("7 ports for 3 processors count as %d", p.Info().Ports)
	}
	if _, err := lookup(t, "universal").Compile(a, 0); err == nil {
		t.Error("0 ports were accepted")
	}
	if p, err := algo.Ports(5, 0); err == nil || p != 0 || err.Error() != "algo: 0 ports: want 1 or more" {
		t.Errorf("no ports: %d, %v", p, err)
	}
}

// TestPlansSay has the parameters, notes and layers of plans for sinks; package plan shows others.
func TestPlansSay(t *testing.T) {
	for _, c := range []struct {
		algorithm string
		k, r      int
		want      string
	}{
		{"sinks", 25, 5, "groups=4 m=2 n=4"},
		{"sinks-structured", 96, 32, "groups=3 of 2·16·2; structure of the blocks: both point sets a coset of an additive subgroup of order 32; " +
			"layer 0 of each group, inverse loose: 16 groups of 2: {0 1} {2 3} {4 5} {6 7} …; layer 1 of each group, fused: 2 groups of 16: {0 2 4 6 …} {1 3 5 7 …}; " +
			"layer 2 of each group, loose: 16 groups of 2: {0 1} {2 3} {4 5} {6 7} …"},
		{"windows", 24, 24, "B=2 m=4 c=2 stride=15"},
		{"exchange", 16, 4, "pieces=16 radices 2·2·2·2, 2·2·2·2"},
	} {
		p := shaped(t, "2^8", matrices.Spec{Family: "cauchy"}, c.k, c.r, false, 1)
		info := must(lookup(t, c.algorithm).Plans(p))(t)[0].Info()
		if got := strings.Join(slices.Concat([]string{info.Parameters}, info.Notes, info.Layers), "; "); got != c.want {
			t.Errorf("%s, K=%d R=%d: %s, want %s", c.algorithm, c.k, c.r, got, c.want)
		}
	}
}

// TestZeroLimits checks that limits of which only one is set leave the rounds alone.
func TestZeroLimits(t *testing.T) {
	if over := (algo.Limits{Memory: 8}).Rounds.Excess(); over != -1 {
		t.Errorf("Limits{Memory: 8} allow %d rounds over the fewest, want any number", over)
	}
	for over := -1; over < 3; over++ {
		if got := algo.FewestPlus(over).Excess(); got != over {
			t.Errorf("FewestPlus(%d) allows %d", over, got)
		}
	}
}
