package volley_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"volley"
	"volley/algo"
)

// trialOf returns the trial of a field, a family and a shape, such as "257 dft 16x16", with options as they usually are.
func trialOf(t *testing.T, matrix string) *trial {
	t.Helper()
	c := &trial{algorithm: algo.Auto, memory: volley.DefaultMemory, beta: volley.DefaultBeta, tau: volley.DefaultTau, call: "Run", longest: []int{100}, lengths: "ascending"}
	words := strings.Fields(matrix)
	c.fieldChoice, c.style = fieldNamed(words[0]), "any"
	c.o = c.oracle()
	c.family, c.inverse = strings.CutPrefix(words[1], "inverse:")
	if style, styled := strings.CutPrefix(c.family, "dense:"); styled {
		c.family, c.style = "dense", style
	}
	if n, err := fmt.Sscanf(words[2], "%dx%d", &c.k, &c.r); n != 2 {
		t.Fatal(err)
	}
	return c
}

// models are ports and times by which plans of most rounds and of fewest are chosen, those of a network, and p+1 that is composite.
var models = []func(c *trial){
	func(c *trial) { c.ports, c.beta = 2, 0 },
	func(c *trial) { c.ports, c.tau, c.order = 1, 0, algo.AnyOrder },
	func(c *trial) { c.order = algo.AnyOrder },
	func(c *trial) { c.ports = 3 },
	func(c *trial) { c.ports, c.separate = 5, c.k != c.r },
}

// TestAlgorithms does a trial of every algorithm, in both orders, by all models.
func TestAlgorithms(t *testing.T) {
	ran := map[string]bool{}
	for _, x := range []struct{ matrix, algorithms string }{
		{"2 dense 1x1", "universal prepare-and-shoot bruck-allgather auto"},
		{"2 dense 7x7", "universal prepare-and-shoot bruck-allgather exchange auto"},
		{"97 random 9x9", "universal prepare-and-shoot bruck-allgather exchange auto"},
		{"2147483647 random 5x5", "universal prepare-and-shoot bruck-allgather exchange auto"},
		{"2^8 cauchy 16x16", "windows split"},
		{"2^16 cauchy 130x130", "universal"}, // more than all tell all
		{"257 dft 16x16", "dft auto"},
		{"goldilocks inverse:dft 12x12", "dft auto"},
		{"257 vandermonde 24x24", "draw-and-loose auto"},
		{"bls12-381 inverse:vandermonde 12x12", "draw-and-loose"},
		{"257 lagrange 24x24", "lagrange folded-lagrange auto"},
		{"bn254 inverse:lagrange 8x8", "lagrange folded-lagrange"},
		{"2^8 cauchy 24x24", "cauchy auto"},
		{"2^8 inverse:cauchy 24x24", "cauchy"},
		{"2^8 rs:vandermonde 16x16", "folded-lagrange"},
		{"2^16 fti 16x16", "cauchy"},
		{"2^8 lch 20x20", "additive-fft auto"},
		{"2^8 inverse:lch 20x20", "additive-fft"},
		{"2^8 dense:blocks 16x16", "sparse auto"},
		{"257 random 7x3", "sinks helpers exchange auto"},
		{"2^8 cauchy 16x8", "sinks sinks-structured helpers exchange auto"},
		{"97 random 3x8", "sinks exchange auto"},
		{"2^8 cauchy 9x1", "sinks helpers exchange auto"},
		{"2^16 random 1x5", "sinks exchange auto"},
	} {
		for _, algorithm := range strings.Fields(x.algorithms) {
			t.Run(x.matrix+" "+algorithm, func(t *testing.T) {
				c, done := trialOf(t, x.matrix), 0
				if !c.build(t) {
					t.Fatal("no such matrix")
				}
				for _, model := range models {
					c := *c
					c.algorithm = algorithm
					if model(&c); c.k > 100 {
						c.longest, c.call = []int{3}, "Encoder.Encode"
					}
					_, err := c.encoder(t).Plan(t.Context(), nil, int64(c.longest[0]))
					if errors.Is(err, algo.ErrStructure) {
						continue
					}
					r := c.run(t)
					if ran[r.Algorithm] = true; c.order == algo.Natural && r.Order != "natural" {
						t.Errorf("order %s", r.Order)
					}
					done++
				}
				if done == 0 {
					t.Error("no plan by any model")
				}
			})
		}
	}
	for _, a := range algo.Parts() {
		if a.Name != "relay" && !ran[a.Name] { // which is for traffic
			t.Errorf("%s never ran", a.Name)
		}
	}
}

// TestPlaces does trials of packets and ranks that lie in other places, and says what the report is to show.
func TestPlaces(t *testing.T) {
	segments := func(least, most int) func(r *volley.Report) bool {
		return func(r *volley.Report) bool { return r.Segments >= least && r.Segments <= most }
	}
	bySlices := func(r *volley.Report) bool {
		return slices.ContainsFunc(r.Notes, func(note string) bool { return strings.Contains(note, "hosts exchange slices") })
	}
	shared := func(r *volley.Report) bool { return r.C1 == 0 && r.BytesSentMax == 0 }
	exchanged := func(hosts, ranks, bytes int) func(r *volley.Report) bool { // 2n(H-1)/H packets out of each of H hosts of n ranks
		n := hosts * ranks
		return func(r *volley.Report) bool {
			return bySlices(r) && r.C1 == 2 && r.C2 == 2 && r.Pieces == hosts &&
				r.Rounds[1].Messages == n*(hosts-1) && r.BytesSentMax <= int64(2*(hosts-1)*bytes/hosts+64*hosts)
		}
	}
	for _, x := range []struct {
		name, matrix string
		change       func(c *trial)
		want         func(r *volley.Report) bool
	}{
		{"one segment", "2^16 random 5x5", func(c *trial) { c.longest = []int{4000, 7} }, segments(1, 1)},
		{"many segments", "2^16 random 5x5", func(c *trial) { c.longest, c.ports, c.memory = []int{4000}, 1, 5000 }, segments(20, 22)},
		{"few segments", "2^16 random 5x5", func(c *trial) { c.longest, c.ports, c.memory = []int{4000}, 1, 16000 }, segments(6, 8)},
		{"a given plan", "2^8 random 6x6", func(c *trial) { c.giveItself, c.algorithm, c.ports = true, "bruck-allgather", 3 }, segments(1, 1)},
		{"a given plan of pieces", "2^8 random 6x6", func(c *trial) { c.giveItself, c.algorithm = true, "exchange" }, func(r *volley.Report) bool { return r.Pieces > 1 }},
		{"a given plan for sinks", "2^8 random 4x2", func(c *trial) { c.giveItself, c.separate = true, true }, segments(1, 1)},
		{"relabelled", "257 dft 128x128", func(c *trial) { c.longest, c.algorithm, c.ports, c.order = []int{1}, "dft", 1, algo.AnyOrder }, func(r *volley.Report) bool {
			return r.C1 == 7 && r.C2 == 7 && len(r.Columns) == 128 && r.Columns[1] == 64
		}},
		{"natural", "257 dft 128x128", func(c *trial) { c.longest, c.algorithm, c.ports = []int{1}, "dft", 1 }, func(r *volley.Report) bool {
			return r.C1 == 8 && r.C2 == 8 && r.Columns == nil
		}},
		{"more ports than partners", "2^16 random 16x16", func(c *trial) { c.ports = 100 }, func(r *volley.Report) bool { return r.Ports == 15 && r.C1 == 1 }},
		{"ranks with several", "2^8 random 9x9", func(c *trial) { c.ranks = 4 }, segments(1, 1)},
		{"one rank", "257 dft 16x16", func(c *trial) { c.ranks, c.call = 1, "Bind" }, segments(1, 1)},
		{"shared memory", "2^8 random 2x2", func(c *trial) { c.hosts, c.longest = []int{2}, []int{1} }, shared},
		{"shared memory of many", "2^8 random 16x16", func(c *trial) { c.hosts, c.longest, c.unchecked = []int{16}, []int{64, 20_000}, true }, shared},
		{"shared memory, unlike sinks", "2^16 random 3x7", func(c *trial) { c.hosts, c.longest = []int{7}, []int{1000} }, shared},
		{"shared memory of few ranks", "65537 random 6x6", func(c *trial) { c.hosts, c.longest, c.memory = []int{3}, []int{20_000}, 60_000 }, shared},
		{"shared memory, apart", "2^8 random 4x2", func(c *trial) { c.hosts, c.separate, c.longest = []int{4}, true, []int{63} }, shared},
		{"shared memory, uneven segments", "257 dft 4x4", func(c *trial) { c.hosts, c.longest, c.memory, c.lengths, c.call = []int{4}, []int{608}, 640, "", "Run" }, func(r *volley.Report) bool { return r.Segments == 4 }},
		{"hosts", "257 random 12x12", func(c *trial) { c.hosts, c.longest, c.memory = []int{3, 3, 3}, []int{20_000}, 60_000 }, nil},
		{"hosts, and several at a rank", "2^16 random 11x11", func(c *trial) { c.hosts, c.longest = []int{2, 2, 2}, []int{1000} }, nil},
		{"hosts, and sinks apart", "2^8 random 8x4", func(c *trial) { c.hosts, c.separate, c.longest = []int{3, 3, 3, 3}, true, []int{1000} }, nil},
		{"two hosts exchange slices", "2^8 random 4x4", func(c *trial) { c.hosts, c.longest = []int{2, 2}, []int{100_000} }, exchanged(2, 2, 100_000)},
		{"four hosts exchange slices", "2^8 random 8x8", func(c *trial) { c.hosts, c.longest, c.memory = []int{2, 2, 2, 2}, []int{100_000}, 400_000 }, exchanged(4, 2, 100_000)},
		{"a plan is faster", "2^8 random 16x16", func(c *trial) { c.hosts, c.longest = slices.Repeat([]int{2}, 8), []int{64} }, func(r *volley.Report) bool { return !bySlices(r) }},
		{"hosts of unlike ranks", "2^8 random 5x5", func(c *trial) { c.hosts, c.longest = []int{3, 2}, []int{100_000} }, func(r *volley.Report) bool { return !bySlices(r) }},
		{"hosts of one rank", "2^8 random 3x3", func(c *trial) { c.hosts, c.longest = []int{1, 1, 1}, []int{100_000} }, func(r *volley.Report) bool { return !bySlices(r) }},
	} {
		for _, call := range []string{"Run", "Bind", "window"} {
			t.Run(x.name+" "+call, func(t *testing.T) {
				c := trialOf(t, x.matrix)
				c.call = call
				if x.change(c); call == "window" && c.hosts == nil {
					c.call, c.ranks = "Encoder.Encode", 0
				}
				if !c.build(t) {
					t.Fatal("no such matrix")
				}
				if r := c.run(t); x.want != nil && !x.want(r) {
					t.Errorf("report %+v", r)
				}
			})
		}
	}
}
