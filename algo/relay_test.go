package algo_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"volley/algo"
	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/verifyall"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/plan"
	"volley/sim"
	"volley/verify"
)

// A relayProblem is traffic for a number of ports.
type relayProblem struct {
	algo.Traffic
	Ports int
}

// relayPlan returns the plan of the registry.
func relayPlan(t *testing.T, p relayProblem) (*plan.Materialized, error) {
	q := &algo.Problem{Traffic: &p.Traffic, Ports: p.Ports}
	if err := q.Prepare(); err != nil {
		return nil, err
	}
	plans, err := lookup(t, "relay").Plans(q)
	if err != nil {
		return nil, err
	}
	return plans[0].(*plan.Materialized), nil
}

// TestRelay compares transfer matrices of relays with what was asked for: random
// codewords on random places.
func TestRelay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"2^8", "257"} {
		for run := range 200 {
			n := 1 + rng.IntN(9)
			p := relayOf(t, n, 1+rng.IntN(3), rng.IntN(4))
			p.Field = fieldtest.Parse(t, name)
			for range 1 + rng.IntN(5) {
				var sources, sinks []int
				for k := range n {
					sources = append(sources, copies(k, rng.IntN(3))...)
				}
				for range 1 + rng.IntN(5) {
					sinks = append(sinks, rng.IntN(n))
				}
				if len(sources) > 0 {
					addWord(&p, sources, sinks)
				}
			}
			for _, w := range p.Codewords {
				shared := map[int]int{} // by processor, how many inputs before those of the word
				for i, source := range w.Sources {
					if _, ok := shared[source.Proc]; !ok {
						shared[source.Proc] = rng.IntN(source.Index + 1)
					}
					w.Sources[i].Index -= shared[source.Proc]
					for j := range w.Sinks {
						w.Coefficients[j][i] = field.Code(uint64(rng.IntN(256)))
					}
				}
			}
			checkRelay(t, fmt.Sprintf("%s, run %d", name, run), p)
		}
	}
}

// checkRelay compares the transfer matrix of a relay with its codewords.
func checkRelay(t *testing.T, name string, p relayProblem) *plan.Materialized {
	t.Helper()
	m := must(relayPlan(t, p))(t)
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
	if err := verify.Check(t.Context(), m, want); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m
}

// TestRelayStripes checks that rotated stripes of K-R sources and R sinks take K-1 rounds
// of one packet, the fewest packets that any schedule takes in all, and that nobody
// multiplies by more than a fair share of the coefficients.
func TestRelayStripes(t *testing.T) {
	for k := 2; k <= 24; k++ {
		for r := 1; r < k; r++ {
			p := relayOf(t, k, 1, 0)
			for stripe := range k {
				var nodes []int
				for i := range k {
					nodes = append(nodes, (stripe+i)%k)
				}
				addWord(&p, nodes[r:], nodes[:r])
			}
			cost := sim.Count(checkRelay(t, fmt.Sprintf("K = %d, R = %d", k, r), p))
			if cost.C1 != k-1 || cost.C2 != k-1 || cost.C3 != r*(k-r) { // K processors multiply by K times as many coefficients
				t.Errorf("K = %d, R = %d: %d/%d, C3 = %d: want %d/%d, %d", k, r, cost.C1, cost.C2, cost.C3, k-1, k-1, r*(k-r))
			}
		}
	}
}

// relayOf returns a problem without codewords of so many processors, in GF(2^8).
func relayOf(t *testing.T, processors, ports, pieces int) relayProblem {
	t.Helper()
	return relayProblem{algo.Traffic{Field: fieldtest.Parse(t, "2^8"), Pieces: pieces, Inputs: make([]int, processors), Outputs: make([]int, processors)}, ports}
}

// addWord adds a codeword of one more input of each of some processors, and one more
// output of each of others. No coefficient is 0 or 1.
func addWord(p *relayProblem, sources, sinks []int) {
	var w algo.Codeword
	for _, k := range sources {
		w.Sources = append(w.Sources, algo.Packet{Proc: k, Index: p.Inputs[k]})
		p.Inputs[k]++
	}
	for j, k := range sinks {
		w.Sinks = append(w.Sinks, algo.Packet{Proc: k, Index: p.Outputs[k]})
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

// relayTraffic returns what all processors send, and the most that one of them sends, or receives.
func relayTraffic(m *plan.Materialized) (total, busiest int) {
	for _, p := range m.Programs {
		sent, received := 0, 0
		for _, round := range p.Rounds {
			for _, s := range round.Sends {
				sent += len(s.Slots)
			}
			for _, r := range round.Recvs {
				received += r.Count
			}
		}
		total, busiest = total+sent, max(busiest, sent, received)
	}
	return total, busiest
}

// TestRelayLeads compares what the busiest processor has to do with formulas for kinds of
// problems where the best leads are plain.
func TestRelayLeads(t *testing.T) {
	check := func(name string, p relayProblem, want int) (total int) {
		t.Helper()
		total, busiest := relayTraffic(checkRelay(t, name, p))
		if busiest != want {
			t.Errorf("%s: the busiest has %d to do: want %d", name, busiest, want)
		}
		return total
	}
	for n := 1; n <= 5; n++ {
		for s := 1; s <= 5; s++ {
			// One codeword, whose N sources and S sinks are all on processors of their own. A lead
			// that is a source receives N-1 and sends S; a sink receives N and sends S-1.
			p := relayOf(t, n+s, 1, 1)
			addWord(&p, upTo(0, n), upTo(n, n+s))
			name := fmt.Sprintf("%d sources, %d sinks", n, s)
			if total := check(name, p, min(max(n-1, s), max(n, s-1))); total != n+s-1 {
				t.Errorf("%s: %d elements: want %d", name, total, n+s-1)
			}
			// All N sources on one processor: it leads and sends each sink its sum, or one of the
			// sinks does, which obtains the N, or S sums if they are fewer.
			p = relayOf(t, 1+s, 1, 1)
			addWord(&p, copies(0, n), upTo(1, 1+s))
			check(fmt.Sprintf("%d sources on one processor, %d sinks", n, s), p, min(s, max(min(n, s), s-1)))
			// All S sinks on one processor: it leads and obtains the N, or one of the sources leads
			// and obtains N-1 and sends S.
			p = relayOf(t, n+1, 1, 1)
			addWord(&p, upTo(0, n), copies(n, s))
			check(fmt.Sprintf("%d sources, %d sinks on one processor", n, s), p, min(max(n, min(1, s)), max(n-1, s)))
		}
	}
	// N processors that each have a source and a sink of one codeword: one of them
	// receives the others' N-1 and sends as many. With N pieces each of them does.
	for n := 2; n <= 6; n++ {
		for _, pieces := range []int{1, n} {
			p := relayOf(t, n, 1, pieces)
			addWord(&p, upTo(0, n), upTo(0, n))
			want := n - 1
			if pieces == n {
				want = 2 * (n - 1)
			}
			check(fmt.Sprintf("%d sources that are sinks, %d pieces", n, pieces), p, want)
		}
	}
}

// recoveryOf returns the stripes of K nodes, of which the last F are lost, that bring these
// back: K-R of the others are the sources of a stripe, one after the other those from each on.
func recoveryOf(t *testing.T, k, r, f, pieces int) relayProblem {
	p := relayOf(t, k, 1, pieces)
	for first := range k - f {
		var sources []int
		for i := range k - r {
			sources = append(sources, (first+i)%(k-f))
		}
		addWord(&p, sources, upTo(k-f, k))
	}
	return p
}

// TestRelayRecovery checks what recovery takes: in packets a stripe, at the busiest node. Of
// leads that are sources by turns it is max(1, (K-R+F-1)/(K-F)); of sinks it is the N, and the
// other sinks' packets; chains of all sources, one for each sink, take F·N/(K-F). The mixture is
// never above the least of these.
func TestRelayRecovery(t *testing.T) {
	for k := 2; k <= verifyall.Pick(9, 16); k++ {
		for r := 1; r < k; r++ {
			for f := 1; f <= r; f++ {
				n, survivors, lost := float64(k-r), float64(k-f), float64(f)
				sources := max(1, (n+lost-1)/survivors)
				sinks := max((n+lost-1)/lost, n/survivors)
				chains := max(1, lost*n/survivors)
				pieces := f * ((15 + f) / f) // sinks by turns come out even
				p := recoveryOf(t, k, r, f, pieces)
				_, busiest := relayTraffic(checkRelay(t, fmt.Sprintf("K = %d, R = %d, F = %d", k, r, f), p))
				if got, most := float64(busiest)/float64(len(p.Codewords)*pieces), min(sources, sinks, chains); got > most+1e-9 {
					t.Errorf("K = %d, R = %d, F = %d: %.4f packets a stripe: want %.4f at most (%.3f, %.3f, %.3f)", k, r, f, got, most, sources, sinks, chains)
				}
			}
		}
	}
	// The best mixtures of leads that are sources and leads that are sinks, by a search over
	// their shares.
	for _, x := range []struct {
		k, r, f int
		want    string
	}{{16, 4, 1, "1.00"}, {16, 4, 2, "1.00"}, {16, 4, 4, "1.23"}, {64, 8, 4, "1.00"}, {16, 8, 8, "1.44"}, {8, 2, 2, "1.16"}, {64, 8, 8, "1.12"}} {
		m := must(relayPlan(t, recoveryOf(t, x.k, x.r, x.f, 16)))(t)
		_, busiest := relayTraffic(m)
		stripes := float64(16 * (x.k - x.f))
		if got := fmt.Sprintf("%.2f", float64(busiest)/stripes); got != x.want {
			t.Errorf("%+v: %s packets a stripe", x, got)
		}
		// Results leave while others are gathered.
		if c2 := float64(sim.Count(m).C2); c2 > 1.1*float64(busiest) {
			t.Errorf("%+v: C2 is %.2f packets a stripe, for %.2f at the busiest", x, c2/stripes, float64(busiest)/stripes)
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
	good := func() relayProblem {
		p := relayOf(t, 3, 1, 1)
		addWord(&p, []int{0, 1}, []int{1, 2})
		addWord(&p, []int{0}, []int{2})
		return p
	}
	checkRelay(t, "nothing wrong", good())
	for name, test := range map[string]struct {
		spoil func(*relayProblem)
		want  string // in the text, besides "algo: "
	}{
		"no processors":         {func(p *relayProblem) { p.Inputs, p.Outputs = nil, nil }, "inputs of 0 processors and outputs of 0"},
		"more outputs":          {func(p *relayProblem) { p.Outputs = append(p.Outputs, 0) }, "inputs of 3 processors and outputs of 4"},
		"no port":               {func(p *relayProblem) { p.Ports = 0 }, "0 ports"},
		"an input too many":     {func(p *relayProblem) { p.Codewords[1].Sources[0].Index = 2 }, "codeword 1: no input 2 of processor 0"},
		"a source too many":     {func(p *relayProblem) { p.Codewords[0].Sources[1].Proc = 3 }, "codeword 0: no input 0 of processor 3"},
		"an output too many":    {func(p *relayProblem) { p.Codewords[1].Sinks[0].Index = 2 }, "codeword 1: no output 2 of processor 2"},
		"a sink too many":       {func(p *relayProblem) { p.Codewords[0].Sinks[1].Proc = 3 }, "codeword 0: no output 0 of processor 3"},
		"obtained twice":        {func(p *relayProblem) { p.Codewords[1].Sinks[0].Index = 0 }, "codeword 1: no output 0 of processor 2, or one obtained twice"},
		"obtained twice in one": {func(p *relayProblem) { p.Codewords[0].Sinks[0] = p.Codewords[0].Sinks[1] }, "codeword 0: no output 0 of processor 2, or one obtained twice"},
		"never obtained":        {func(p *relayProblem) { p.Outputs[1] = 2 }, "output 1 of processor 1"},
		"no codeword":           {func(p *relayProblem) { p.Codewords = p.Codewords[:1] }, "output 1 of processor 2"},
		"coefficients of one sink less": {func(p *relayProblem) { p.Codewords[0].Coefficients = p.Codewords[0].Coefficients[:1] },
			"codeword 0: 2 sources, 2 sinks and coefficients of 1"},
		"a coefficient less": {func(p *relayProblem) { p.Codewords[0].Coefficients[1] = p.Codewords[0].Coefficients[1][:1] },
			"codeword 0, sink 1: 1 coefficients for 2 sources"},
		"no sources": {func(p *relayProblem) {
			p.Codewords[1].Sources, p.Codewords[1].Coefficients = nil, make([][]field.Element, 1)
		},
			"codeword 1: 0 sources, 1 sinks and coefficients of 1"},
		"no sinks": {func(p *relayProblem) { p.Codewords[1].Sinks, p.Codewords[1].Coefficients = nil, nil },
			"codeword 1: 1 sources, 0 sinks and coefficients of 0"},
	} {
		p := good()
		test.spoil(&p)
		if _, err := relayPlan(t, p); err == nil || !strings.HasPrefix(err.Error(), "algo: ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v: want %q", name, err, test.want)
		}
	}
}

// TestRelayChosen checks what the planner chooses for traffic: many ports where messages wait for the latency, fewer
// pieces where the transport carries no more rounds. Algorithms for a matrix take no traffic, and relay no matrix.
func TestRelayChosen(t *testing.T) {
	traffic := recoveryOf(t, 8, 2, 2, 16).Traffic
	problem := func(carry func(rounds, ports int) error) *algo.Problem {
		p := &algo.Problem{Traffic: &traffic, Carry: carry}
		if err := p.Prepare(); err != nil {
			t.Fatal(err)
		}
		return p
	}
	chosen := func(name, network string, bytes int64, carry func(rounds, ports int) error) (plan.Plan, error) {
		n := must(sim.ParseNetwork(network))(t)
		return algo.Choose(name, problem(carry), sim.Model{Network: n, Bytes: bytes, SymbolBytes: 1})
	}
	for _, x := range []struct {
		network string
		bytes   int64
		ports   int
	}{{"wan", 1 << 10, 7}, {"200gbit/2us", 1 << 30, 1}} {
		q := must(chosen("relay", x.network, x.bytes, nil))(t)
		if got := q.Info().Ports; got != x.ports || q.Info().Name() != "relay:16" {
			t.Errorf("%s, %d bytes: %s of %d ports, want %d", x.network, x.bytes, q.Info().Name(), got, x.ports)
		}
	}
	refused := errors.New("no more")
	few := func(most int) func(rounds, ports int) error {
		return func(rounds, ports int) error {
			if rounds > most || ports > 1 {
				return refused
			}
			return nil
		}
	}
	if q := must(chosen("relay", "wan", 1<<20, few(40)))(t); q.Info().Rounds() > 40 || q.Info().Pieces >= 16 || q.Info().Pieces < 2 {
		t.Errorf("%d rounds for %d pieces, at most 40", q.Info().Rounds(), q.Info().Pieces)
	}
	if _, err := chosen("relay", "wan", 1<<20, few(1)); !errors.Is(err, refused) || !strings.Contains(err.Error(), "cannot carry the plan relay:1") {
		t.Errorf("one round: %v", err)
	}
	if _, err := chosen("relay:7", "wan", 1, nil); !errors.Is(err, algo.ErrStructure) || !strings.Contains(err.Error(), "there are only relay:16") {
		t.Errorf("pieces that it does not have: %v", err)
	}
	for _, a := range algo.Algorithms() {
		_, err := a.Plans(problem(nil).CarriedBy(nil))
		if a.Name != "relay" && !errors.Is(err, algo.ErrStructure) {
			t.Errorf("%s of traffic: %v", a.Name, err)
		}
	}
	square := shaped(t, "2^8", matrices.Spec{Family: "cauchy"}, 4, 4, false, 1)
	if _, err := algo.Choose("relay", square, sim.Model{}); !errors.Is(err, algo.ErrStructure) || !strings.Contains(err.Error(), "relay is for several codewords") {
		t.Errorf("relay of a matrix: %v", err)
	}
}
