package algo_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"volley/algo"
	"volley/field/fieldtest"
	"volley/internal/verifyall"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/matrix/matrixtest"
	"volley/sim"
)

// TestNetworkCrossings compares the planner with formulas, for K = 2^H on the presets: a stage
// of radix r has r-1 messages. Universal gathers with radices and reduces with others, at
// multiplicity v a stage moves (r-1)·v packets; split and exchange hand slices out and back,
// (1-1/r) packets a stage, around that. The formulas have all powers of two as radices; the planner has other radices as well,
// but only those that one number of ports makes.
func TestNetworkCrossings(t *testing.T) {
	f := fieldtest.Parse(t, "2^16")
	for _, name := range sim.Presets[:4] { // in one process nothing but rounds and messages counts
		n, err := sim.ParseNetwork(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range []int{3, 4, 5, 6, 8} {
			m := matrixtest.Random(t, f, 1<<h, 1)
			for bits := 6; bits <= 24; bits += verifyall.Pick(6, 2) {
				bytes := int64(1) << bits
				p := must(algo.NewProblem(m, 0, algo.Natural))(t)
				model := sim.Model{Network: n, Bytes: bytes, SymbolBytes: 2}
				q := must(algo.Choose(algo.Auto, p, model))(t)
				got, want := model.Time(sim.Count(q)), formulas(n, h, bytes, 0)
				what := fmt.Sprintf("%s, K = %d, %d bytes: %s %s takes %v, by formula %v", name, 1<<h, bytes, q.Info().Algorithm, q.Info().Parameters, got, want)
				if ratio := float64(got) / float64(want); ratio < 0.95 || ratio > 1.05 {
					t.Error(what)
				}
			}
		}
	}
}

// TestNetworkLayers checks that the planner runs the layers of a Lagrange matrix where that is
// the fastest by the formulas: small packets, and coding that takes long.
func TestNetworkLayers(t *testing.T) {
	chosen := 0
	for _, name := range sim.Presets {
		n := must(sim.ParseNetwork(name))(t)
		for _, h := range []int{6, 8, 10} {
			spec := must(matrices.ParseSpec("lagrange"))(t)
			p := must(algo.NewProblem(must(spec.Build(fieldtest.Parse(t, "goldilocks"), 1<<h, 1<<h))(t), 0, algo.Natural))(t)
			for _, gamma := range []sim.PerByte{0.1e-9, 1e-9} {
				for bytes := int64(64); bytes <= 1<<16; bytes *= 4 {
					model := sim.Model{Network: n, Bytes: bytes, SymbolBytes: 8, Gamma: gamma}
					if q := must(algo.Choose("folded-lagrange", p, model))(t); len(q.Info().Layers) < 3 {
						t.Errorf("%s, K = %d, %d bytes, γ %v: folded-lagrange in %s", name, 1<<h, bytes, gamma, q.Info().Parameters)
					}
					if float64(layered(n, h, bytes, gamma)) > 0.97*float64(formulas(n, h, bytes, gamma)) {
						continue
					}
					q := must(algo.Choose(algo.Auto, p, model))(t)
					if q.Info().Algorithm != "folded-lagrange" {
						t.Errorf("%s, K = %d, %d bytes, γ %v: %s %s takes %v, layers %v", name, 1<<h, bytes, gamma,
							q.Info().Algorithm, q.Info().Parameters, model.Time(sim.Count(q)), layered(n, h, bytes, gamma))
					}
					chosen++
				}
			}
		}
	}
	if chosen == 0 {
		t.Error("layers are nowhere the fastest")
	}
}

// layered returns the time of the best plan with b bits of the 2^h processors in each of j
// layers, the rest in the middle, and the j layers again. A stage of b bits has 2^b-1 messages
// and as many packets; a layer of s processors multiplies less than 2s times per symbol.
func layered(n sim.Network, h int, bytes int64, gamma sim.PerByte) time.Duration {
	best := math.Inf(1)
	for b := 1; b < h; b++ {
		for j := 1; b*j < h; j++ {
			middle := h - b*j
			if middle > 2*b {
				continue
			}
			stages := 2*j + (middle+b-1)/b
			messages := float64(stages * (1<<b - 1))
			multiplyAdds := float64(2*j*2<<b + 2<<middle)
			ns := float64(stages)*float64(n.Latency) + messages*(float64(n.Overhead)+float64(n.Gap)*float64(bytes)*1e9)
			best = min(best, ns+multiplyAdds*float64(gamma)*float64(bytes)*1e9)
		}
	}
	return time.Duration(best)
}

// formulas returns the time of the best plan for 2^h processors, of any radices. Universal and
// split multiply by every packet; what coding takes in an exchange is left out.
func formulas(n sim.Network, h int, bytes int64, gamma sim.PerByte) time.Duration {
	best := math.Inf(1)
	perPacket := float64(n.Gap) * float64(bytes) * 1e9
	rounds := func(exponents []int) float64 {
		ns := 0.0
		for _, e := range exponents {
			ns += float64(n.Latency) + float64(n.Overhead)*float64(int(1)<<e-1)
		}
		return ns
	}
	fewest := func(n int) float64 { // of all ways to gather or reduce
		least := math.Inf(1)
		for _, radices := range partitions(n, n) {
			least = min(least, rounds(radices))
		}
		return least
	}
	for split := 0; split <= h; split++ {
		pieces := int64(1) << split
		padded := float64((bytes/2+pieces-1)/pieces*pieces*2) / float64(bytes)
		for gathered := 0; gathered <= h-split; gathered++ {
			reduced := h - split - gathered
			middle, ends := float64(int(1)<<gathered-1+int(1)<<reduced-1), fewest(gathered)+fewest(reduced)
			for _, out := range partitions(split, split) {
				for _, back := range partitions(split, split) {
					packets := middle
					for _, e := range slices.Concat(out, back) {
						packets += 1 - 1/float64(int(1)<<e)
					}
					ways := rounds(out) + rounds(back) + packets*padded*perPacket
					if split < h {
						ways += float64(gamma) * float64(bytes<<h) * 1e9
					}
					best = min(best, ways+ends)
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
	p := must(algo.NewProblem(matrixtest.Random(t, fieldtest.Parse(t, "2^8"), 16, 1), 0, algo.Natural))(t)
	if q := must(algo.Choose(algo.Auto, p, model))(t); q.Info().Algorithm != "exchange" || q.Info().Ports != 15 {
		t.Errorf("%s with p = %d, want exchange with 15", q.Info().Algorithm, q.Info().Ports)
	}
	p.WholePackets = true
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

// TestNetworkArithmetic takes an allgather where all else is alike but what ranks multiply, and in one process,
// where bytes take no time either, an algorithm that sends less.
func TestNetworkArithmetic(t *testing.T) {
	a := matrixtest.Random(t, fieldtest.Parse(t, "2^8"), 16, 1)
	p := must(algo.NewProblem(a, 0, algo.Natural))(t)
	for name, want := range map[string]string{"200gbit/2us": "bruck-allgather", "process": "universal"} {
		n := must(sim.ParseNetwork(name))(t)
		model := sim.Model{Network: n, Bytes: 1 << 10, SymbolBytes: 1, Gamma: 1e-9}
		if got := must(algo.Choose(algo.Auto, p, model))(t).Info().Algorithm; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestProcessMessages has no rank of thousands in one process send to each other one.
func TestProcessMessages(t *testing.T) {
	n := must(sim.ParseNetwork("process"))(t)
	model := sim.Model{Network: n, Bytes: 64, SymbolBytes: 2, Gamma: sim.ProcessGamma}
	for k, most := range map[int]int{1024: 1023, 2000: 3, 10000: 4} {
		p := must(algo.NewProblem(matrixtest.Random(t, fieldtest.Parse(t, "2^16"), k, 1), 0, algo.Natural))(t)
		if q := must(algo.Choose(algo.Auto, p, model))(t); q.Info().Ports != most {
			t.Errorf("K = %d: %d ports, want %d", k, q.Info().Ports, most)
		}
	}
}
