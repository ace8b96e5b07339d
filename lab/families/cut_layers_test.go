package families

import (
	"fmt"
	"testing"

	"volley/algo"
	"volley/field/fieldtest"
	"volley/internal/verifyall"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/sim"
	"volley/verify"
)

// TestCutLayersCost compares costs with those of README.md and others.
func TestCutLayersCost(t *testing.T) {
	for _, c := range []struct {
		k, ports int
		any      string // C1/C2 in packets, of each radix that no other one beats
		natural  string
	}{
		{16, 1, "5/2.5 9/2.25", "6/3 10/2.5"},
		{64, 1, "7/3.5 12/3 21/2.625", "8/4 13/3.25 22/2.75"},
		{64, 3, "4/1", "5/1.25 9/1.125"},
		{256, 1, "9/4.5 15/3.75 45/2.8125", "10/5 16/4 46/2.875"},
	} {
		for order, want := range map[algo.Order]string{algo.Any: c.any, algo.Natural: c.natural} {
			p, _ := dftProblem(t, "257", c.k, c.ports)
			p.Order = order
			plans, err := cutPlans(p)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, q := range plans {
				cost := sim.Count(q)
				got += fmt.Sprintf(" %d/%v", cost.C1, cost.PacketC2())
			}
			if got != " "+want {
				t.Errorf("K=%d p=%d, %v:%s, want %s", c.k, c.ports, order, got, want)
			}
		}
	}
}

// TestCutLayersTransfer compares transfer matrices with A, for the matrices of products of layers.
func TestCutLayersTransfer(t *testing.T) {
	plans := map[string]int{}
	check := func(m matrix.Matrix, ports int, order algo.Order) {
		p, err := algo.NewProblem(m, ports, order)
		if err != nil {
			t.Fatal(err)
		}
		list, err := cutPlans(p)
		if err != nil {
			return // none for this problem
		}
		for _, q := range list {
			plans[m.ID()]++
			if err := verify.Check(t.Context(), q, m); err != nil {
				t.Errorf("%s over %s, K=%d p=%d, %v, %s: %v", m.ID(), m.Field().Name(), m.Rows(), ports, order, q.Info().Parameters, err)
			}
		}
	}
	for _, name := range []string{"257", "163", "2^8", "2^16", "61"} {
		f := fieldtest.Parse(t, name)
		for _, k := range []int{4, 8, 9, 16, 25, 27, 32, 36, 64, 81, 100, 121, 128, 144} {
			if k > verifyall.Most(36, 144) {
				continue
			}
			for _, family := range []string{"dft", "vandermonde", "lch"} {
				for _, inverse := range []bool{false, true} {
					m, err := matrices.Spec{Family: family, Inverse: inverse}.Build(f, k, k)
					if err != nil {
						continue // not over this field
					}
					for ports := 1; ports <= min(4, k-1); ports++ {
						for _, order := range []algo.Order{algo.Natural, algo.Any} {
							check(m, ports, order)
							check(matrix.Transpose(m), ports, order)
						}
					}
				}
			}
		}
	}
	for _, id := range []string{"dft", "inverse(dft)", "transpose(dft)", "vandermonde(coset)", "lch", "transpose(inverse(lch))"} {
		if plans[id] == 0 {
			t.Errorf("no plan of %s was checked: %v", id, plans)
		}
	}
}
