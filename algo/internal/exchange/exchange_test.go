package exchange

import (
	"testing"
	"volley/algo/schedule"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/plan"
	"volley/sim"

	"volley/field/fieldtest"
	"volley/internal/verifyall"
)

// TestExchangeCost compares counted costs with the formulas: with those for sinks and
// sources that are the same, and with known ones for others.
func TestExchangeCost(t *testing.T) {
	f := fieldtest.Parse(t, "2^16")
	for _, ports := range []int{1, 2, 3} {
		for _, digits := range []int{1, 2, 3} {
			m := power(ports+1, digits)
			p := sinksProblem(t, randomMatrix(t, f, m, m), false, ports)
			plans, err := ExchangePlans(p, nil)
			if err != nil {
				t.Fatal(err)
			}
			first, last := costOf(plans[0]), costOf(plans[len(plans)-1])
			if want := (pair{C1: 2 * digits, C2: 2 * digits * m / (ports + 1)}); first != want {
				t.Errorf("K=%d p=%d: %v, want %v", m, ports, first, want)
			}
			direct := 2 * ((p.Matrix.Rows() - 1 + p.Ports - 1) / p.Ports)
			if want := (pair{C1: direct, C2: direct}); last != want {
				t.Errorf("K=%d p=%d: %v, want %v", m, ports, last, want)
			}
		}
	}
	for _, c := range []struct {
		k, r, ports int
		separate    bool
		want        string
	}{
		{64, 64, 1, false, "12/6 13/5.625 14/5.25 16/4.875 18/4.5 22/4.219 23/4 28/3.5 72/3.234 77/2.734 126/1.969"},
		{100, 10, 1, false, "14/5 16/4.52 18/4.26 20/4.03 22/3.8 36/3.6 107/3.25 110/2.89 198/1.98"},
		{64, 1, 1, false, "12/1.969"},
		{1, 64, 1, false, "12/1.969"},
		{12, 4, 1, true, "9/3.333 11/3.083 16/2.5 23/1.917"},
	} {
		p := sinksProblem(t, randomMatrix(t, f, c.k, c.r), c.separate, c.ports)
		plans, err := ExchangePlans(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := inPacketsAll(plans); got != c.want {
			t.Errorf("K=%d R=%d separate=%t p=%d: %s, want %s", c.k, c.r, c.separate, c.ports, got, c.want)
		}
	}
}

// TestExchangeSquare checks what exchanges compute where every processor is source and
// sink.
func TestExchangeSquare(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for k := 2; k <= verifyall.Pick(12, 20); k++ {
		for ports := 1; ports <= 3; ports++ {
			checkSinks(t, sinksFamilies[1], sinksProblem(t, randomMatrix(t, f, k, k), false, ports))
		}
	}
}

// exchangePlans are those of matrices whose structure nobody looks for.
func exchangePlans(t schedule.Task) ([]plan.Plan, error) { return ExchangePlans(t, nil) }

// TestExchangeLayers checks what exchanges compute, and how many multiply-adds they take,
// where a helper computes by the layers of the matrix.
func TestExchangeLayers(t *testing.T) {
	n := 0
	for _, c := range []struct{ field, matrix string }{
		{"257", "dft"}, {"7681", "dft"}, {"257", "lagrange"}, {"257", "cauchy"}, {"2^8", "lch"}, {"2^8", "cauchy"}, {"257", "vandermonde"},
	} {
		for k := 4; k <= 40; k += verifyall.Pick(2, 1) {
			spec, err := matrices.ParseSpec(c.matrix)
			if err != nil {
				t.Fatal(err)
			}
			a, err := spec.Build(fieldtest.Parse(t, c.field), k, k)
			if err != nil {
				continue // no such matrix
			}
			fact, err := matrix.Factor(t.Context(), a, nil)
			if err != nil {
				t.Fatal(err)
			}
			if local(fact) == nil {
				continue
			}
			sizes := 0
			for _, l := range fact.Layers {
				sizes += l.Size()
			}
			p := sinksProblem(t, a, false, 1+k%4)
			plans, err := ExchangePlans(p, fact)
			if err != nil {
				t.Fatal(err)
			}
			one := plans[k%len(plans):][:1]
			checkSinks(t, sinksFamily{"exchange", func(schedule.Task) ([]plan.Plan, error) { return one, nil }}, p)
			if got := sim.Count(plans[0]).PacketC3(); got > sizes {
				t.Errorf("%s, K=%d: %d multiply-adds per symbol, want the sizes of the layers, %d, at most", a.ID(), k, got, sizes)
			}
			n++
		}
	}
	if n < 25 {
		t.Errorf("%d matrices of layers, want more", n)
	}
}
