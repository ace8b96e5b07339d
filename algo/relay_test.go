package algo_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
	if err := verify.Check(m, want); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m
}

// TestRelayStripes checks that rotated stripes of K-R sources and R sinks take K-1 rounds
// of one packet, the fewest packets that any schedule takes in all, and that nobody
// multiplies by more than a fair share of the coefficients.
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
						w.Coefficients[j] = append(w.Coefficients[j], field.Code(uint64(2+i*r+j)))
					}
				}
				p.Codewords = append(p.Codewords, w)
			}
			m := checkRelay(t, fmt.Sprintf("K = %d, R = %d", k, r), p)
			if cost := sim.Count(m); cost.C1 != k-1 || cost.C2 != k-1 {
				t.Errorf("K = %d, R = %d: C1 = %d, C2 = %d: want %d", k, r, cost.C1, cost.C2, k-1)
			} else if cost.C3 != r*(k-r) {
				t.Errorf("K = %d, R = %d: C3 = %d: want %d, for K processors multiply by K times as many coefficients", k, r, cost.C3, r*(k-r))
			}
		}
	}
}

// relayOf returns a problem without codewords of so many processors, in GF(2^8).
func relayOf(t *testing.T, processors, ports, pieces int) algo.RelayProblem {
	t.Helper()
	f, err := field.Parse("2^8")
	if err != nil {
		t.Fatal(err)
	}
	return algo.RelayProblem{Field: f, Ports: ports, Pieces: pieces, Inputs: make([]int, processors), Outputs: make([]int, processors)}
}

// addWord adds a codeword of one more input of each of some processors, and one more
// output of each of others. No coefficient is 0 or 1.
func addWord(p *algo.RelayProblem, sources, sinks []int) {
	var w algo.Codeword
	for _, k := range sources {
		w.Sources = append(w.Sources, algo.Place{Proc: k, Index: p.Inputs[k]})
		p.Inputs[k]++
	}
	for j, k := range sinks {
		w.Sinks = append(w.Sinks, algo.Place{Proc: k, Index: p.Outputs[k]})
		p.Outputs[k]++
		var c []field.Element
		for i := range sources {
			c = append(c, field.Code(uint64(2+(i*len(sinks)+j)%254)))
		}
		w.Coefficients = append(w.Coefficients, c)
	}
	p.Codewords = append(p.Codewords, w)
}

// upTo returns the numbers from one below another.
func upTo(from, to int) (list []int) {
	for k := from; k < to; k++ {
		list = append(list, k)
	}
	return list
}

// copies returns a list of n times the same.
func copies(k, n int) []int { return slices.Repeat([]int{k}, n) }

// relayTraffic returns what the processors send and receive.
func relayTraffic(m *plan.Materialized) (sent, received []int) {
	sent, received = make([]int, len(m.Programs)), make([]int, len(m.Programs))
	for k, p := range m.Programs {
		for _, round := range p.Rounds {
			for _, s := range round.Sends {
				sent[k] += len(s.Slots)
			}
			for _, r := range round.Recvs {
				received[k] += r.Count
			}
		}
	}
	return sent, received
}

// checkWay checks that a relay goes the way by which the busiest processor has less to
// do: through a sink unless chains take fewer elements. Either is how many elements the
// busiest one then sends or receives, by a formula, and the plan is to take as many.
func checkWay(t *testing.T, name string, p algo.RelayProblem, sink, chains int) *plan.Materialized {
	t.Helper()
	m := checkRelay(t, name, p)
	way := "through a sink"
	if chains < sink {
		way = "chains"
	}
	if got := m.Info().Parameters; got != way {
		t.Errorf("%s: %s: want %s, for it is %d through a sink and %d by chains", name, got, way, sink, chains)
	}
	sent, received := relayTraffic(m)
	if got := max(slices.Max(sent), slices.Max(received)); got != min(sink, chains) {
		t.Errorf("%s: the busiest has %d to do: want %d", name, got, min(sink, chains))
	}
	return m
}

// total returns the sum.
func total(list []int) (n int) {
	for _, x := range list {
		n += x
	}
	return n
}

// TestRelayWays compares which way is taken, and what the busiest processor then has to
// do, with formulas for kinds of problems where either is plain.
func TestRelayWays(t *testing.T) {
	// One codeword, whose N sources and S sinks are all on processors of their own. The
	// sink of L of the Q pieces receives N·L and Q-L, and sends the others S-1 each. With
	// chains a source sends, and receives, one element for each sink and piece.
	for n := 1; n <= 5; n++ {
		for s := 1; s <= 5; s++ {
			for q := range 4 {
				p := relayOf(t, n+s, 1, q)
				addWord(&p, upTo(0, n), upTo(n, n+s))
				q := max(1, q)
				l := (q + s - 1) / s
				sink, chains := max(l*n+q-l, l*(s-1)), q*s
				m := checkWay(t, fmt.Sprintf("%d sources, %d sinks, %d pieces", n, s, q), p, sink, chains)
				sent, _ := relayTraffic(m)
				want := q * (n + s - 1)
				if chains < sink {
					want = q * n * s
				}
				if total(sent) != want {
					t.Errorf("%d sources, %d sinks, %d pieces: %d elements: want %d", n, s, q, total(sent), want)
				}
			}
		}
	}
	// All N sources on one processor: it sends one sink the N, or S sums if they are fewer,
	// and that one sends the others theirs; or S sums, one to each, with chains of one.
	for n := 1; n <= 5; n++ {
		for s := 1; s <= 5; s++ {
			p := relayOf(t, 1+s, 1, 1)
			addWord(&p, copies(0, n), upTo(1, 1+s))
			checkWay(t, fmt.Sprintf("%d sources on one processor, %d sinks", n, s), p, max(min(n, s), s-1), s)
		}
	}
	// All S sinks on one processor: the only one that codewords can go through. By chains
	// of N sources each sends S sums.
	for n := 1; n <= 5; n++ {
		for s := 1; s <= 5; s++ {
			p := relayOf(t, n+1, 1, 1)
			addWord(&p, upTo(0, n), copies(n, s))
			checkWay(t, fmt.Sprintf("%d sources, %d sinks on one processor", n, s), p, n, s)
		}
	}
	// Two codewords of N sources each, all on processors of their own, with one sink on
	// one processor and S on another. Each of these takes one codeword through: the second
	// receives N, and S sums of the first.
	for n := 1; n <= 5; n++ {
		for s := 1; s <= 5; s++ {
			p := relayOf(t, 2*n+2, 1, 1)
			for w := range 2 {
				addWord(&p, upTo(w*n, w*n+n), append([]int{2 * n}, copies(2*n+1, s)...))
			}
			checkWay(t, fmt.Sprintf("2 codewords of %d sources, and 1 and %d sinks", n, s), p, n+s, max(2*s, s+1))
		}
	}
	// N processors that each have a source and a sink of one codeword: one of them
	// receives the others' N-1 and sends as many; by chains, of N-1 for each sink, each
	// sends one for every sink but its own.
	for n := 1; n <= 6; n++ {
		p := relayOf(t, n, 1, 1)
		addWord(&p, upTo(0, n), upTo(0, n))
		checkWay(t, fmt.Sprintf("%d sources that are sinks", n), p, n-1, n-1)
	}
}

// TestRelayTurns checks that sinks take turns: with M codewords for each of S sinks, all
// of the same N sources, each sink receives N packets of M codewords and an output of
// each of the others, and sends S-1 outputs of M. With pieces in place of codewords, or
// of both, it is the same.
func TestRelayTurns(t *testing.T) {
	for s := 1; s <= 4; s++ {
		for n := 1; n <= s*s-s+1; n++ { // else chains are better
			for m := 1; m <= 2; m++ {
				for _, pieces := range []int{1, s} {
					p := relayOf(t, n+s, 1, pieces)
					for range m * s / pieces {
						addWord(&p, upTo(0, n), upTo(n, n+s))
					}
					turns := checkRelay(t, "turns", p)
					sent, received := relayTraffic(turns)
					for k := range s {
						if sent[n+k] != m*(s-1) || received[n+k] != m*(n+s-1) {
							t.Errorf("%d of %d sources, %d pieces: sink %d of %d sends %d, receives %d: want %d, %d",
								m, n, pieces, k, s, sent[n+k], received[n+k], m*(s-1), m*(n+s-1))
						}
					}
				}
			}
		}
	}
}

// TestRelayRounds checks in how many rounds a codeword is through, and in which order.
func TestRelayRounds(t *testing.T) {
	for ports := 1; ports <= 4; ports++ {
		bound := func(processors int) int { return max(1, min(ports, processors-1)) }
		over := func(messages, processors int) int { return (messages + bound(processors) - 1) / bound(processors) }
		for n := 1; n <= 6; n++ {
			// Through the first of as many sinks: it receives from the sources in their order,
			// on as many ports as it has, and when it has all sends to the others likewise.
			p := relayOf(t, 2*n, ports, 1)
			addWord(&p, upTo(0, n), upTo(n, 2*n))
			name := fmt.Sprintf("%d sources and sinks, %d ports", n, ports)
			m := checkRelay(t, name, p)
			gather := over(n, 2*n)
			if want := gather + over(n-1, 2*n); m.Info().Rounds() != want || m.Info().Ports != bound(2*n) {
				t.Errorf("%s: %d rounds of %d ports: want %d of %d", name, m.Info().Rounds(), m.Info().Ports, want, bound(2*n))
			}
			for i := range n - 1 {
				b := bound(2 * n)
				from := m.Programs[n].Rounds[i/b].Recvs[i%b]
				to := m.Programs[n].Rounds[gather+i/b].Sends[i%b]
				if from.Src != i || from.Port != i%b || to.Dst != n+1+i || to.Port != i%b {
					t.Errorf("%s: message %d: from %d at port %d, and to %d at port %d", name, i, from.Src, from.Port, to.Dst, to.Port)
				}
			}
			// By chains of n sources to one sink, one for each piece, that begin at a source
			// each: none arrives before round n, and then as many a round as there are ports.
			for pieces := 1; pieces <= n; pieces++ {
				p := relayOf(t, n+1, ports, pieces)
				addWord(&p, upTo(0, n), []int{n})
				name := fmt.Sprintf("%d sources, 1 sink, %d pieces, %d ports", n, pieces, ports)
				m := checkWay(t, name, p, n*pieces, pieces)
				if want := n - 1 + over(pieces, n+1); m.Info().Rounds() != want {
					t.Errorf("%s: %d rounds: want %d", name, m.Info().Rounds(), want)
				}
			}
		}
	}
}

// TestRelayRaw checks who multiplies: sources of one processor go to a sink as they are
// while no more than the codeword has sinks, and else one sum for each sink does.
func TestRelayRaw(t *testing.T) {
	for n := 1; n <= 5; n++ {
		for s := 1; s <= 5; s++ {
			p := relayOf(t, 2, 1, 1)
			addWord(&p, copies(0, n), copies(1, s))
			m := checkRelay(t, fmt.Sprintf("%d sources, %d sinks", n, s), p)
			sources, sinks := n*s, 0
			if n <= s {
				sources, sinks = 0, n*s
			}
			if a, b := m.Programs[0].Terms(), m.Programs[1].Terms(); a != sources || b != sinks {
				t.Errorf("%d sources, %d sinks: %d and %d multiply-adds: want %d and %d", n, s, a, b, sources, sinks)
			}
		}
	}
}

// TestRelayErrors checks what is refused, and what is said of it.
func TestRelayErrors(t *testing.T) {
	good := func() algo.RelayProblem {
		p := relayOf(t, 3, 1, 1)
		addWord(&p, []int{0, 1}, []int{1, 2})
		addWord(&p, []int{0}, []int{2})
		return p
	}
	checkRelay(t, "nothing wrong", good())
	for name, test := range map[string]struct {
		spoil func(*algo.RelayProblem)
		want  string // in the text, besides "algo: "
	}{
		"no processors":         {func(p *algo.RelayProblem) { p.Inputs, p.Outputs = nil, nil }, "inputs of 0 processors and outputs of 0"},
		"no inputs":             {func(p *algo.RelayProblem) { p.Inputs = nil }, "inputs of 0 processors and outputs of 3"},
		"more outputs":          {func(p *algo.RelayProblem) { p.Outputs = append(p.Outputs, 0) }, "inputs of 3 processors and outputs of 4"},
		"more inputs":           {func(p *algo.RelayProblem) { p.Inputs = append(p.Inputs, 0) }, "inputs of 4 processors and outputs of 3"},
		"no port":               {func(p *algo.RelayProblem) { p.Ports = 0 }, "0 ports"},
		"an input too many":     {func(p *algo.RelayProblem) { p.Codewords[1].Sources[0].Index = 2 }, "codeword 1: no input 2 of processor 0"},
		"an input below 0":      {func(p *algo.RelayProblem) { p.Codewords[1].Sources[0].Index = -1 }, "codeword 1: no input -1 of processor 0"},
		"a source too many":     {func(p *algo.RelayProblem) { p.Codewords[0].Sources[1].Proc = 3 }, "codeword 0: no input 0 of processor 3"},
		"a source below 0":      {func(p *algo.RelayProblem) { p.Codewords[0].Sources[1].Proc = -1 }, "codeword 0: no input 0 of processor -1"},
		"an output too many":    {func(p *algo.RelayProblem) { p.Codewords[1].Sinks[0].Index = 2 }, "codeword 1: no output 2 of processor 2"},
		"an output below 0":     {func(p *algo.RelayProblem) { p.Codewords[1].Sinks[0].Index = -1 }, "codeword 1: no output -1 of processor 2"},
		"a sink too many":       {func(p *algo.RelayProblem) { p.Codewords[0].Sinks[1].Proc = 3 }, "codeword 0: no output 0 of processor 3"},
		"a sink below 0":        {func(p *algo.RelayProblem) { p.Codewords[0].Sinks[1].Proc = -1 }, "codeword 0: no output 0 of processor -1"},
		"obtained twice":        {func(p *algo.RelayProblem) { p.Codewords[1].Sinks[0].Index = 0 }, "codeword 1: no output 0 of processor 2, or one obtained twice"},
		"obtained twice in one": {func(p *algo.RelayProblem) { p.Codewords[0].Sinks[0] = p.Codewords[0].Sinks[1] }, "codeword 0: no output 0 of processor 2, or one obtained twice"},
		"never obtained":        {func(p *algo.RelayProblem) { p.Outputs[1] = 2 }, "output 1 of processor 1"},
		"no codeword":           {func(p *algo.RelayProblem) { p.Codewords = p.Codewords[:1] }, "output 1 of processor 2"},
		"no sources": {func(p *algo.RelayProblem) {
			p.Codewords[1].Sources, p.Codewords[1].Coefficients = nil, [][]field.Element{nil}
		},
			"codeword 1: 0 sources, 1 sinks and coefficients of 1"},
		"no sinks": {func(p *algo.RelayProblem) { p.Codewords[1].Sinks, p.Codewords[1].Coefficients = nil, nil },
			"codeword 1: 1 sources, 0 sinks and coefficients of 0"},
		"coefficients of one sink more": {func(p *algo.RelayProblem) {
			c := &p.Codewords[1].Coefficients
			*c = append(*c, (*c)[0])
		}, "codeword 1: 1 sources, 1 sinks and coefficients of 2"},
		"coefficients of one sink less": {func(p *algo.RelayProblem) { p.Codewords[0].Coefficients = p.Codewords[0].Coefficients[:1] },
			"codeword 0: 2 sources, 2 sinks and coefficients of 1"},
		"a coefficient less": {func(p *algo.RelayProblem) { p.Codewords[0].Coefficients[1] = p.Codewords[0].Coefficients[1][:1] },
			"codeword 0, sink 1: 1 coefficients for 2 sources"},
		"a coefficient more": {func(p *algo.RelayProblem) {
			c := p.Codewords[0].Coefficients
			c[0] = append(c[0], field.One)
		}, "codeword 0, sink 0: 3 coefficients for 2 sources"},
	} {
		p := good()
		test.spoil(&p)
		if _, err := algo.Relay(p); err == nil {
			t.Errorf("%s: no error", name)
		} else if text := err.Error(); !strings.HasPrefix(text, "algo: ") || !strings.Contains(text, test.want) {
			t.Errorf("%s: %v: want %q", name, err, test.want)
		}
	}
}
