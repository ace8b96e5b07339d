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
				got, want := model.Time(sim.Count(q)), formulas(n, h, bytes)
				what := fmt.Sprintf("%s, K = %d, %d bytes: %s %s takes %v, by formula %v", name, 1<<h, bytes, q.Info().Algorithm, q.Info().Parameters, got, want)
				if ratio := float64(got) / float64(want); ratio < 0.95 || ratio > 1.05 {
					t.Error(what)
				}
			}
		}
	}
}

// formulas returns the time of the best plan for 2^h processors, of any radices, but for coding.
func formulas(n sim.Network, h int, bytes int64) time.Duration {
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
					best = min(best, rounds(out)+rounds(back)+packets*padded*perPacket+ends)
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
