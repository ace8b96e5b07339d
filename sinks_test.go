package volley_test

import (
	"bytes"
	"fmt"
	"testing"

	"volley"
	"volley/algo"
	"volley/field/fieldtest"
	"volley/matrix/matrices"
)

// TestSinks runs every plan for sources and sinks on packets of unequal lengths, and
// exchange where every processor is both, and compares with the dense product: also
// where packets are cut into more pieces than they have blocks.
func TestSinks(t *testing.T) {
	for _, c := range []struct {
		field, family string
		k, r          int
	}{
		{"257", "random", 7, 3}, {"2^8", "cauchy", 12, 4}, {"2^8", "cauchy", 9, 1}, {"3^4", "random", 3, 8}, {"2^16", "random", 1, 5}, {"2^8", "cauchy", 6, 6},
	} {
		f := fieldtest.Parse(t, c.field)
		spec := matrices.Spec{Family: c.family}
		if c.family == "random" {
			spec.Argument = "3"
		}
		a, err := spec.Build(f, c.k, c.r)
		if err != nil {
			t.Fatal(err)
		}
		for _, separate := range []bool{false, true} {
			p := &algo.Problem{Matrix: a, Separate: separate, Ports: 2}
			if err := p.Prepare(); err != nil {
				t.Fatal(err)
			}
			lengths := make([]int, p.Processors())
			for k := range c.k {
				lengths[k] = 1 + 300*k
			}
			packets := randomPackets(f, lengths...)
			want := product(a, packets[:c.k])
			for _, name := range []string{"sinks", "sinks-structured", "helpers", "exchange", algo.Auto} {
				if name != algo.Auto {
					algorithm, err := algo.Lookup(name)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := algorithm.Plans(p); err != nil {
						continue
					}
				}
				for _, model := range []volley.Option{volley.WithPaperModel(2, 0, volley.DefaultTau), volley.WithPaperModel(2, volley.DefaultBeta, 0), volley.WithNetwork(volley.DefaultNetwork())} {
					opts := []volley.Option{volley.WithAlgorithm(name), model}
					if separate {
						opts = append(opts, volley.WithSeparateSinks())
					}
					what := fmt.Sprintf("%s over %s, K=%d R=%d, separate %v, %s", c.family, c.field, c.k, c.r, separate, name)
					coded, report := mustEncode(t, alike(a, packets, opts...))
					for proc := range coded {
						sink, ok := p.Sink(proc)
						if !ok && len(coded[proc]) > 0 || ok && !bytes.Equal(coded[proc], want[sink]) {
							t.Errorf("%s (%s %s): processor %d differs", what, report.Algorithm, report.Parameters, proc)
						}
					}
					if report.Order != "natural" || len(report.Columns) > 0 {
						t.Errorf("%s: order %s, columns %v", what, report.Order, report.Columns)
					}
					if !report.Verified || report.K != c.k || report.Processors != p.Processors() {
						t.Errorf("%s: %+v", what, report)
					}
				}
			}
		}
	}
}
