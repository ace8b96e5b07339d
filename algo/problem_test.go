package algo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"volley/algo"
	"volley/algo/algotest"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/sim"
)

// TestProblem checks who is source and sink, and the bounds, by hand.
func TestProblem(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
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
		{4, 1, false, 1, 4, 1, 2, 1, false, "0 1 2 3", "0 - - -"},
		{4, 1, true, 1, 5, 1, 3, 1, false, "0 1 2 3 -", "- - - - 0"},
		{2, 5, false, 2, 5, 2, 2, 1, false, "0 1 - - -", "0 1 2 3 4"},
		{2, 3, true, 9, 5, 4, 1, 1, false, "0 1 - - -", "- - 0 1 2"},
	} {
		p := &algo.Problem{Matrix: must(matrix.Random(f, c.k, c.r, 1))(t), Separate: c.separate, Ports: c.ports}
		if err := p.Prepare(); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("K=%d R=%d separate=%v p=%d", c.k, c.r, c.separate, c.ports)
		c1, c2 := p.Bounds()
		if p.Processors() != c.processors || p.Ports != c.used || p.Square() != c.square || c1 != c.C1 || c2 != c.C2 {
			t.Errorf("%s: %d processors, p=%d, square %v, bounds %d/%d", name, p.Processors(), p.Ports, p.Square(), c1, c2)
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
	if p, err := algo.Ports(5, 0); err == nil || p != 0 || err.Error() != "algo: 0 ports: want 1 or more" {
		t.Errorf("no ports: %d, %v", p, err)
	}
}

// TestPhases checks the names of the rounds, which people read, and what is said of a
// plan's parameters.
func TestPhases(t *testing.T) {
	for _, c := range []struct{ algorithm, field, matrix, order string }{
		{"universal", "2^8", "cauchy", ""}, {"windows", "2^8", "cauchy", ""}, {"dft", "257", "dft", "reversed"}, {"dft", "257", "dft", ""},
		{"draw-and-loose", "97", "vandermonde", ""}, {"lagrange", "257", "lagrange", ""}, {"folded-lagrange", "257", "lagrange", ""},
		{"exchange", "2^8", "cauchy", ""},
		{"additive-fft", "2^8", "lch", ""},
	} {
		k := 16
		if c.algorithm == "draw-and-loose" || c.algorithm == "windows" {
			k = 24
		}
		p := algotest.Compile(t, c.algorithm, c.field, c.matrix, k, 1, func(s *matrices.Spec) { s.Order = c.order })
		var text strings.Builder
		for _, ph := range p.Info().Phases {
			fmt.Fprintf(&text, "%s %d, ", ph.Name, ph.Rounds)
		}
		text.WriteString(p.Info().Parameters)
		for _, note := range p.Info().Notes {
			text.WriteString("; " + note)
		}
		want := map[string]string{
			"universal": "prepare 2, shoot 2, m=4 n=4", "windows": "prepare 2, window 2, shoot 2, B=2 m=4 c=2 stride=15", "dft reversed": "stage 4, groups 2·2·2·2; structure: radices 2·2·2·2", "dft": "stage 4, permute 1, groups 2·2·2·2 permute; structure: radices 2·2·2·2; natural order by one round that permutes the results",
			"draw-and-loose": "loose 5, groups 3·2·2·2; structure: a coset of the multiplicative subgroup of order 24", "lagrange": "inverse loose 4, loose 4, groups 2·2·2·2·2·2·2·2; structure: both point sets a coset of the multiplicative subgroup of order 16",
			"folded-lagrange": "inverse loose 1, fused 3, loose 1, groups 2·8·2; structure: both point sets a coset of the multiplicative subgroup of order 16", "exchange": "hand out 15, hand back 15, pieces=16 radices 16, 16; structure: both point sets a coset of an additive subgroup of order 16; by its layers each processor computes its slice of the results",
			"additive-fft": "loose 4, groups 2·2·2·2; structure: a coset of an additive subgroup of order 16",
		}[strings.TrimSpace(c.algorithm+" "+c.order)]
		if got := text.String(); got != want {
			t.Errorf("%s %s: %s, want %s", c.algorithm, c.order, got, want)
		}
	}
}

// TestPlansAreFront checks that of the plans of a family none is worse than another one in
// both C1 and C2, the fewest rounds first, and what is said of them.
func TestPlansAreFront(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, c := range []struct {
		algorithm, matrix string
		k, r, ports       int
		want              string // of the first plan: parameters, notes and layers
	}{
		{"sinks", "cauchy", 25, 5, 1, "groups=4 m=2 n=4"},
		{"sinks-structured", "cauchy", 96, 32, 1, "groups=3 of 2·16·2; structure of the blocks: both point sets a coset of an additive subgroup of order 32; " +
			"layer 0 of each group, inverse loose: 16 groups of 2: {0 1} {2 3} {4 5} {6 7} …; layer 1 of each group, fused: 2 groups of 16: {0 2 4 6 …} {1 3 5 7 …}; " +
			"layer 2 of each group, loose: 16 groups of 2: {0 1} {2 3} {4 5} {6 7} …"},
		{"exchange", "cauchy", 16, 4, 1, "pieces=16 radices 2·2·2·2, 2·2·2·2"},
		{"folded-lagrange", "lagrange", 64, 64, 1, ""},
		{"cauchy", "cauchy", 64, 64, 1, ""},
		{"universal", "random:1", 128, 128, 1, "m=16 n=8"},
	} {
		spec := must(matrices.ParseSpec(c.matrix))(t)
		field := f
		if c.matrix == "lagrange" {
			field = fieldtest.Parse(t, "257")
		}
		p := &algo.Problem{Matrix: must(spec.Build(field, c.k, c.r))(t), Ports: c.ports}
		if err := p.Prepare(); err != nil {
			t.Fatal(err)
		}
		a := must(algo.Lookup(c.algorithm))(t)
		plans := must(a.Plans(p))(t)
		for i := 1; i < len(plans); i++ {
			x, y := sim.Count(plans[i-1]), sim.Count(plans[i])
			if x.C1 >= y.C1 || x.PacketC2() <= y.PacketC2() {
				t.Errorf("%s, K=%d R=%d p=%d: %d/%v before %d/%v", c.algorithm, c.k, c.r, c.ports, x.C1, x.PacketC2(), y.C1, y.PacketC2())
			}
		}
		info := plans[0].Info()
		if got := strings.Join(slices.Concat([]string{info.Parameters}, info.Notes, info.Layers), "; "); c.want != "" && got != c.want {
			t.Errorf("%s, K=%d R=%d p=%d: %s, want %s", c.algorithm, c.k, c.r, c.ports, got, c.want)
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
