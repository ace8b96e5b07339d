package families

import (
	"errors"
	"testing"

	"volley/algo"
	_ "volley/field/curves"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrixtest"
	"volley/sim"
)

// TestRegistered checks that the planner knows the algorithms.
func TestRegistered(t *testing.T) {
	for _, a := range Algorithms {
		if err := algo.Register(a); err == nil {
			t.Errorf("%s was registered twice", a.Name)
		}
	}
}

// TestBoundCut checks that no plan of these algorithms is below the bound for packets in pieces.
func TestBoundCut(t *testing.T) {
	plans := map[string]int{}
	check := func(a matrix.Matrix, ports int) {
		p := &algo.Problem{Matrix: a, Ports: ports}
		if err := p.Prepare(); err != nil {
			t.Fatal(err)
		}
		bound, ok := p.BoundCut()
		if !ok {
			t.Fatalf("%s over %s, K=%d p=%d: no bound", a.ID(), a.Field().Name(), a.Rows(), ports)
		}
		for _, algorithm := range Algorithms {
			list, err := algorithm.Plans(p)
			if err != nil && !errors.Is(err, algo.ErrStructure) {
				t.Fatal(err)
			}
			for _, q := range list {
				plans[algorithm.Name]++
				if c2 := sim.Count(q).PacketC2(); c2 < bound {
					t.Errorf("%s %s, %s over %s, K=%d p=%d: C2 = %v, the bound is %v", algorithm.Name, q.Info().Parameters, a.ID(), a.Field().Name(), a.Rows(), ports, c2, bound)
				}
			}
		}
	}
	for _, k := range []int{7, 16, 24, 60, 75} {
		for _, ports := range []int{1, 2} {
			check(matrixtest.Cauchy(t, fieldtest.Parse(t, "2^8"), k), ports)
			check(matrixtest.Random(t, fieldtest.Parse(t, "bls12-381"), k, 1), ports)
		}
	}
	dft, err := matrix.DFT(fieldtest.Parse(t, "257"), 16)
	if err != nil {
		t.Fatal(err)
	}
	check(dft, 1)
	for _, a := range Algorithms {
		if plans[a.Name] == 0 {
			t.Errorf("no plan of %s was checked", a.Name)
		}
	}
}
