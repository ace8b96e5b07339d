package algo_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"volley/algo"
	"volley/field"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
	"volley/verify"
)

// TestRelay compares transfer matrices of relays with what was asked for: random
// codewords on random places.
func TestRelay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"2^8", "257"} {
		f, err := field.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		for run := range 200 {
			n := 1 + rng.IntN(9)
			p := algo.RelayProblem{Field: f, Ports: 1 + rng.IntN(3), Pieces: rng.IntN(4), Inputs: make([]int, n), Outputs: make([]int, n)}
			for k := range n {
				p.Inputs[k] = rng.IntN(4)
			}
			p.Inputs[rng.IntN(n)]++
			for range 1 + rng.IntN(5) {
				var w algo.Codeword
				for k := range n {
					for i := range p.Inputs[k] {
						if rng.IntN(2) == 0 {
							w.Sources = append(w.Sources, algo.Place{Proc: k, Index: i})
						}
					}
				}
				if len(w.Sources) == 0 {
					continue
				}
				for range 1 + rng.IntN(5) {
					k := rng.IntN(n)
					w.Sinks = append(w.Sinks, algo.Place{Proc: k, Index: p.Outputs[k]})
					p.Outputs[k]++
					var c []field.Element
					for range w.Sources {
						c = append(c, field.Code(uint64(rng.IntN(256))))
					}
					w.Coefficients = append(w.Coefficients, c)
				}
				p.Codewords = append(p.Codewords, w)
			}
			if len(p.Codewords) == 0 {
				continue
			}
			checkRelay(t, fmt.Sprintf("%s, run %d", name, run), p)
		}
	}
}

// checkRelay compares the transfer matrix of a relay with its codewords.
func checkRelay(t *testing.T, name string, p algo.RelayProblem) *plan.Materialized {
	t.Helper()
	m, err := algo.Relay(p)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	pieces := max(1, p.Pieces)
	before := func(list []int, k int) (n int) {
		for _, x := range list[:k] {
			n += x
		}
		return n * pieces
	}
	want := matrix.NewDense(p.Field, m.Common.Rows, m.Common.Columns)
	for _, w := range p.Codewords {
		for j, sink := range w.Sinks {
			for i, source := range w.Sources {
				for piece := range pieces {
					row := before(p.Inputs, source.Proc) + source.Index*pieces + piece
					want.Set(row, before(p.Outputs, sink.Proc)+sink.Index*pieces+piece, w.Coefficients[j][i])
				}
			}
		}
	}
	if err := verify.Plan(m, want); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m
}

// TestRelayStripes checks that rotated stripes of K-R sources and R sinks take K-1 rounds
// of one packet, the fewest packets that any schedule takes in all.
func TestRelayStripes(t *testing.T) {
	f, err := field.Parse("2^8")
	if err != nil {
		t.Fatal(err)
	}
	for k := 2; k <= 24; k++ {
		for r := 1; r < k; r++ {
			p := algo.RelayProblem{Field: f, Ports: 1, Inputs: make([]int, k), Outputs: make([]int, k)}
			for stripe := range k {
				var w algo.Codeword
				for i := range k {
					node := (stripe + i) % k
					if i < r {
						w.Sinks = append(w.Sinks, algo.Place{Proc: node, Index: p.Outputs[node]})
						p.Outputs[node]++
						w.Coefficients = append(w.Coefficients, nil)
					} else {
						w.Sources = append(w.Sources, algo.Place{Proc: node, Index: p.Inputs[node]})
						p.Inputs[node]++
					}
				}
				for j := range r {
					for i := range k - r {
						w.Coefficients[j] = append(w.Coefficients[j], field.Code(uint64(1+i*r+j)%256))
					}
				}
				p.Codewords = append(p.Codewords, w)
			}
			m := checkRelay(t, fmt.Sprintf("K = %d, R = %d", k, r), p)
			if cost := sim.Count(m); cost.C1 != k-1 || cost.C2 != k-1 {
				t.Errorf("K = %d, R = %d: C1 = %d, C2 = %d: want %d", k, r, cost.C1, cost.C2, k-1)
			}
		}
	}
}

// TestRelayErrors checks what is refused.
func TestRelayErrors(t *testing.T) {
	f, _ := field.Parse("2^8")
	good := func() algo.RelayProblem {
		return algo.RelayProblem{Field: f, Ports: 1, Inputs: []int{1, 0}, Outputs: []int{0, 1}, Codewords: []algo.Codeword{{
			Sources: []algo.Place{{Proc: 0}}, Sinks: []algo.Place{{Proc: 1}}, Coefficients: [][]field.Element{{field.One}},
		}}}
	}
	if _, err := algo.Relay(good()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*algo.RelayProblem){
		"no processors":       func(p *algo.RelayProblem) { p.Inputs, p.Outputs = nil, nil },
		"no port":             func(p *algo.RelayProblem) { p.Ports = 0 },
		"no such input":       func(p *algo.RelayProblem) { p.Codewords[0].Sources[0].Index = 1 },
		"no such processor":   func(p *algo.RelayProblem) { p.Codewords[0].Sinks[0].Proc = 2 },
		"obtained twice":      func(p *algo.RelayProblem) { p.Codewords = append(p.Codewords, p.Codewords[0]) },
		"never obtained":      func(p *algo.RelayProblem) { p.Outputs[0] = 1 },
		"no sources":          func(p *algo.RelayProblem) { p.Codewords[0].Sources = nil },
		"no sinks":            func(p *algo.RelayProblem) { p.Codewords[0].Sinks, p.Codewords[0].Coefficients = nil, nil },
		"missing coefficient": func(p *algo.RelayProblem) { p.Codewords[0].Coefficients[0] = nil },
	} {
		p := good()
		if spoil(&p); name != "" {
			if _, err := algo.Relay(p); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
	}
}
