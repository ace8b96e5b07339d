package verbs

import (
	"math"
	"testing"

	"volley/sim"
)

// TestSweep compares the worth of exchange in one cell with the formulas: the second best plan
// there is split in two groups of 8, and takes 2.75 packets in three rounds instead of 1.875 in
// two.
func TestSweep(t *testing.T) {
	s := sweep{
		Cases:    []sweepCase{{Matrix: "random:1", Field: "2^16", Processors: []int{16}}},
		Networks: []string{"100mbit/1ms"}, Sizes: []int64{1 << 20}, Gammas: []sim.PerByte{0},
	}
	list, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n, err := sim.ParseNetwork("100mbit/1ms")
	if err != nil {
		t.Fatal(err)
	}
	l, o, packet := n.Latency.Seconds(), n.Overhead.Seconds(), float64(n.Gap(1))*(1<<20)
	want := (3*l+15*o+2.75*packet)/(2*l+30*o+1.875*packet) - 1
	if w := list[0]; w.Name != "exchange" || w.Chosen != 1 || math.Abs(w.Loss[0]-want) > 1e-6 {
		t.Errorf("%+v, want exchange in every cell, and a loss of %g", w, want)
	}
	for _, w := range list[1:] {
		if w.Chosen != 0 || w.Loss[0] != 0 {
			t.Errorf("%+v, want nothing", w)
		}
	}
	if len(list) < 5 {
		t.Errorf("%d families, want more", len(list))
	}
}

// TestSweepRefusals checks what a sweep cannot do.
func TestSweepRefusals(t *testing.T) {
	good := sweep{Cases: []sweepCase{{Matrix: "cauchy", Field: "2^8", Processors: []int{4}}}, Networks: []string{"wan"}, Sizes: []int64{64}, Gammas: []sim.PerByte{0}}
	for what, change := range map[string]func(s *sweep){
		"network": func(s *sweep) { s.Networks = []string{"slow"} },
		"field":   func(s *sweep) { s.Cases[0].Field = "6" },
		"matrix":  func(s *sweep) { s.Cases[0].Matrix = "none" },
		"size":    func(s *sweep) { s.Cases[0].Processors = []int{300} },
	} {
		s := good
		s.Cases = []sweepCase{good.Cases[0]}
		change(&s)
		if _, err := s.run(t.Context()); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if _, err := good.run(t.Context()); err != nil {
		t.Error(err)
	}
}
