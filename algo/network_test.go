package algo_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"volley/algo"
	"volley/algo/algotest"
	"volley/field/fieldtest"
	"volley/internal/verifyall"
	"volley/matrix"
	"volley/sim"
)

// TestNetworkCrossings compares the planner with formulas, for K = 2^H on the presets: a stage
// of radix r has r-1 messages. Universal gathers with radices and reduces with others, at
// multiplicity v a stage moves (r-1)·v packets; split and exchange hand slices out and back,
// (1-1/r) packets a stage, around that. The formulas have all powers of two as radices; the planner has other radices as well,
// but only those that one number of ports makes.
func TestNetworkCrossings(t *testing.T) {
	f := fieldtest.Parse(t, "2^16")
	for _, name := range sim.Presets {
		n, err := sim.ParseNetwork(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range []int{3, 4, 5, 6, 8} {
			m := algotest.Random(t, f, 1<<h, 1)
			for bits := 6; bits <= 24; bits += verifyall.Most(6, 2) {
				bytes := int64(1) << bits
				p := must(algo.NewProblem(m, 0, algo.Natural))(t)
				model := sim.Model{Network: n, Bytes: bytes, SymbolBytes: 2}
				q := must(algo.Choose(algo.Auto, p, model))(t)
				got, want := model.Time(sim.Count(q)), formulas(n, h, bytes)
				what := fmt.Sprintf("%s, K = %d, %d bytes: %s %s takes %v, by formula %v", name, 1<<h, bytes, q.Info().Algorithm, q.Info().Parameters, got, want)
				if ratio := float64(got) / float64(want); ratio < 0.95 || ratio > 1.05 {
					t.Error(what)
				}
			}
		}
	}
}

// formulas returns the time of the best plan for 2^h processors, of any radices.
func formulas(n sim.Network, h int, bytes int64) time.Duration {
	best := math.Inf(1)
	perPacket := float64(n.Gap(1)) * float64(bytes) * 1e9
	rounds := func(exponents []int) float64 {
		ns := 0.0
		for _, e := range exponents {
			ns += float64(n.Latency) + float64(n.Overhead)*float64(int(1)<<e-1)
		}
		return ns
	}
	for split := 0; split <= h; split++ {
		pieces := int64(1) << split
		padded := float64((bytes/2+pieces-1)/pieces*pieces*2) / float64(bytes)
		for gathered := 0; gathered <= h-split; gathered++ {
			reduced := h - split - gathered
			middle := float64(int(1)<<gathered - 1 + int(1)<<reduced - 1)
			for _, out := range partitions(split, split) {
				for _, back := range partitions(split, split) {
					packets := middle
					for _, e := range slices.Concat(out, back) {
						packets += 1 - 1/float64(int(1)<<e)
					}
					ways := rounds(out) + rounds(back) + packets*padded*perPacket
					for _, gather := range partitions(gathered, gathered) {
						for _, reduce := range partitions(reduced, reduced) {
							best = min(best, ways+rounds(gather)+rounds(reduce))
						}
					}
				}
			}
		}
	}
	return time.Duration(best)
}

// partitions returns the ways to write n as a sum of numbers up to most, in falling order.
func partitions(n, most int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var list [][]int
	for first := min(n, most); first > 0; first-- {
		for _, rest := range partitions(n-first, first) {
			list = append(list, append([]int{first}, rest...))
		}
	}
	return list
}

// TestNetworkWhole checks that packets stay whole on a network where they are to.
func TestNetworkWhole(t *testing.T) {
	n, err := sim.ParseNetwork("10gbit/20us")
	if err != nil {
		t.Fatal(err)
	}
	model := sim.Model{Network: n, Bytes: 1 << 20, SymbolBytes: 1}
	p := must(algo.NewProblem(algotest.Random(t, fieldtest.Parse(t, "2^8"), 16, 1), 0, algo.Natural))(t)
	if q := must(algo.Choose(algo.Auto, p, model))(t); q.Info().Algorithm != "exchange" || q.Info().Ports != 15 {
		t.Errorf("%s with p = %d, want exchange with 15", q.Info().Algorithm, q.Info().Ports)
	}
	p.Whole = true
	if q := must(algo.Choose(algo.Auto, p, model))(t); q.Info().Pieces > 1 {
		t.Errorf("%s cuts packets", q.Info().Algorithm)
	}
	if _, err := algo.Choose("exchange", p, model); err == nil {
		t.Error("exchange keeps packets whole")
	}
}

// TestFewestPlus asks for the fewest rounds where no plan meets the lower bound.
func TestFewestPlus(t *testing.T) {
	m := must(matrix.Random(fieldtest.Parse(t, "2^8"), 10, 18, 1))(t)
	p := &algo.Problem{Matrix: m, Separate: true, Ports: 1, Limits: algo.Limits{Rounds: algo.FewestPlus(0)}}
	if err := p.Prepare(); err != nil {
		t.Fatal(err)
	}
	q := must(algo.Choose(algo.Auto, p, sim.Model{}))(t)
	if bound, _ := p.Bounds(); q.Info().Rounds() != 6 || bound != 5 {
		t.Errorf("%d rounds, and the bound is %d: want 6 and 5", q.Info().Rounds(), bound)
	}
}
