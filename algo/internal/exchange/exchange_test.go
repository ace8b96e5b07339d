package exchange

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"volley/algo/schedule"
	_ "volley/field/curves"
	"volley/field/fieldtest"
	"volley/internal/verifyall"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/plan"
	"volley/sim"
	"volley/verify"
)

// A maker returns plans for sources and sinks.
type maker func(t schedule.Task) ([]plan.Plan, error)

// exchangePlans are those of matrices whose structure nobody looks for.
func exchangePlans(t schedule.Task) ([]plan.Plan, error) { return ExchangePlans(t, nil) }

// single makes a list of one plan.
func single(q plan.Plan, err error) ([]plan.Plan, error) {
	if err != nil {
		return nil, err
	}
	return []plan.Plan{q}, nil
}

// helpersOf makes those of so many segments.
func helpersOf(segments int) maker {
	return func(t schedule.Task) ([]plan.Plan, error) {
		return single(HelpersWith(t, [][]int{{segments}}))
	}
}

// randomTask asks for a random matrix.
func randomTask(t testing.TB, fieldName string, k, r int, separate bool, ports int) schedule.Task {
	t.Helper()
	a, err := matrix.Random(fieldtest.Parse(t, fieldName), k, r, uint64(1000*k+r))
	if err != nil {
		t.Fatal(err)
	}
	return task(a, separate, ports)
}

func task(a matrix.Matrix, separate bool, ports int) schedule.Task {
	p := schedule.Task{Matrix: a, Separate: separate, Ports: ports}
	p.Ports = max(1, min(ports, p.Processors()-1))
	return p
}

// checkSinks verifies plans, and compares what is counted by classes with that of all processors.
func checkSinks(t testing.TB, p schedule.Task, makePlans maker) []plan.Plan {
	t.Helper()
	plans, err := makePlans(p)
	if err != nil && !errors.Is(err, schedule.ErrStructure) {
		t.Fatal(err)
	}
	for _, q := range plans {
		what := fmt.Sprintf("%s, K=%d R=%d separate=%t p=%d, %s", q.Info().Algorithm, p.Matrix.Rows(), p.Matrix.Cols(), p.Separate, p.Ports, q.Info().Parameters)
		check := func(q plan.Plan) error { return verify.Check(t.Context(), q, p.Matrix) }
		if p.Processors() > 300 {
			check = func(q plan.Plan) error { return plan.Validate(t.Context(), q) }
		}
		if err := check(q); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got, want := fmt.Sprintf("%+v", sim.Count(q)), fmt.Sprintf("%+v", sim.Count(allApart{q})); got != want {
			t.Errorf("%s: by classes %s, of all %s", what, got, want)
		}
		if got, want := plan.MemorySlots(q), plan.MemorySlots(allApart{q}); got != want {
			t.Errorf("%s: %d slots by classes, %d of all", what, got, want)
		}
	}
	return plans
}

// allApart is a plan with a class for each processor.
type allApart struct{ plan.Plan }

func (p allApart) Classes() []plan.Class {
	return (&schedule.Programs{Common: p.Info()}).Classes()
}

// everySinks calls check for all K, R and p up to the limits and both kinds of sinks.
func everySinks(most, ports int, check func(k, r int, separate bool, ports int)) {
	for k := 1; k <= most; k++ {
		for r := 1; r <= most; r++ {
			for _, separate := range []bool{false, true} {
				for p := 1; p <= ports; p++ {
					check(k, r, separate, p)
				}
			}
		}
	}
}

// TestSinksTransfer checks what plans of all kinds compute, for a sample of K and R up to 24, and for all small ones, square
// too. The tag verifyall has more.
func TestSinksTransfer(t *testing.T) {
	for _, c := range []struct {
		name string
		part int // of so many problems one
		make maker
		want int // plans, at least
	}{
		{"sinks", 4, Plans, 300}, {"exchange", 40, exchangePlans, 300}, {"helpers", 20, helpersOf(1), 50}, {"helpers:3", 20, helpersOf(3), 50}, {"split", 1, SplitPlans, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rng, plans := rand.New(rand.NewPCG(3, 4)), 0
			everySinks(24, 3, func(k, r int, separate bool, ports int) {
				if c.name == "split" && (k != r || separate) {
					return
				}
				if keep := c.part * (1 + 7*min(ports-1, 1)); rng.IntN(verifyall.Pick(keep, 1)) == 0 || k+r < 9 {
					plans += len(checkSinks(t, randomTask(t, []string{"257", "2^8"}[(k+r)%2], k, r, separate, ports), c.make))
				}
			})
			if plans < c.want {
				t.Errorf("%d plans, want more", plans)
			}
		})
	}
	for k := 1; k <= verifyall.Pick(12, 24); k++ {
		for _, n := range []int{4 * k, 3*k + 1} {
			checkSinks(t, randomTask(t, "257", k, n, false, 1+(k+n)%3), Plans)
			checkSinks(t, randomTask(t, "257", n, k, false, 1+(k+n)%3), Plans)
		}
	}
	for _, separate := range []bool{false, true} {
		for _, shape := range [][2]int{{1000, 30}, {30, 1000}} {
			for _, q := range checkSinks(t, randomTask(t, "2^16", shape[0], shape[1], separate, 2), Plans) {
				if n := len(q.Classes()); n > 500 {
					t.Errorf("%s: %d classes", q.Info().Parameters, n)
				}
			}
		}
	}
}

// TestExchangeRadices checks exchanges of all kinds of radices, there and back.
func TestExchangeRadices(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for k := 3; k <= verifyall.Pick(20, 40); k++ {
		radices := func() (list []int) {
			for product := 1; product < k; {
				list = append(list, 2+rng.IntN(min(k-1, 12)))
				product *= list[len(list)-1]
			}
			return list
		}
		p := randomTask(t, "goldilocks", k, []int{k, 1 + rng.IntN(k)}[k%2], false, 1+rng.IntN(4))
		checkSinks(t, p, func(p schedule.Task) ([]plan.Plan, error) {
			return single(ExchangeWith(p, nil, [][]int{radices(), radices()}))
		})
	}
}

// A costs is what plans for a problem cost, in rounds and packets.
type costs struct {
	k, r     int
	separate bool
	ports    int
	want     string
}

// checkCosts compares counted costs with known ones.
func checkCosts(t *testing.T, makePlans maker, rows []costs) {
	t.Helper()
	for _, c := range rows {
		plans, err := makePlans(randomTask(t, "2^16", c.k, c.r, c.separate, c.ports))
		if err != nil {
			t.Fatal(err)
		}
		if got := inPackets(plans); got != c.want {
			t.Errorf("K=%d R=%d separate=%t p=%d: %s, want %s", c.k, c.r, c.separate, c.ports, got, c.want)
		}
	}
}

// inPackets lists the costs of plans.
func inPackets(plans []plan.Plan) string {
	var list []string
	for _, q := range plans {
		c := sim.Count(q)
		list = append(list, fmt.Sprintf("%d/%.4g", c.C1, c.PacketC2()))
	}
	return strings.Join(list, " ")
}

// atMost reports whether a plan takes no more rounds and packets.
func atMost(plans []plan.Plan, c1 int, c2 float64) bool {
	return slices.ContainsFunc(plans, func(q plan.Plan) bool {
		c := sim.Count(q)
		return c.C1 <= c1 && c.PacketC2() <= c2
	})
}

// TestExchangeCost compares counted costs with the formulas: with those for sinks and
// sources that are the same, and with known ones for others.
func TestExchangeCost(t *testing.T) {
	for ports := 1; ports <= 3; ports++ {
		for digits := 1; digits <= 3; digits++ {
			m := power(ports+1, digits)
			plans, err := exchangePlans(randomTask(t, "2^16", m, m, false, ports))
			if err != nil {
				t.Fatal(err)
			}
			direct := 2 * ((m - 1 + min(ports, m-1) - 1) / min(ports, m-1))
			first, last := fmt.Sprintf("%d/%.4g", 2*digits, 2*float64(digits)/float64(ports+1)), fmt.Sprintf("%d/%.4g", direct, float64(direct)/float64(m))
			if got := strings.Fields(inPackets(plans)); got[0] != first || got[len(got)-1] != last {
				t.Errorf("K=%d p=%d: %v, want %s to %s", m, ports, got, first, last)
			}
		}
	}
	checkCosts(t, exchangePlans, []costs{
		{64, 64, false, 1, "12/6 13/5.625 14/5.25 16/4.875 18/4.5 22/4.219 23/4 28/3.5 72/3.234 77/2.734 126/1.969"},
		{100, 10, false, 1, "14/5 16/4.52 18/4.26 20/4.03 22/3.8 36/3.6 107/3.25 110/2.89 198/1.98"},
		{64, 1, false, 1, "12/1.969"},
		{1, 64, false, 1, "12/1.969"},
		{12, 4, true, 1, "9/3.333 11/3.083 16/2.5 23/1.917"},
	})
}

// TestHelpersCost compares counted costs with the formulas: (S+1)·⌈(N-1)/p⌉ rounds, (K-1)/(K-R)·(1+1/S) packets at p = 1 of
// sinks among the sources.
func TestHelpersCost(t *testing.T) {
	checkCosts(t, helpersOf(8), []costs{{100, 10, false, 1, "891/1.238"}, {100, 10, false, 99, "9/0.0125"}})
	checkCosts(t, helpersOf(32), []costs{{100, 10, false, 1, "3267/1.134"}})
	checkCosts(t, helpersOf(2), []costs{{24, 3, false, 1, "69/1.643"}, {24, 3, true, 1, "78/1.625"}})
	checkCosts(t, helpersOf(4), []costs{{24, 3, true, 5, "30/0.3125"}})
}

// TestSlowerLinks checks what plans for links of different rates compute, with one slow link and with random ones, and what
// they cost. With all messages of a pass at once that is 1+2/S times the bound, but for slices that are not parts of a
// number; at p = 1 with one link of half the rate or less, too.
func TestSlowerLinks(t *testing.T) {
	const batches = 3
	rng := rand.New(rand.NewPCG(5, 6))
	for k := 3; k <= verifyall.Pick(14, 40); k++ {
		for n, rate := range []float64{1e-6, 0.3, 0.5, 0.55, 0.6, 0.8, 0.95, 0} {
			rates, slower := slices.Repeat([]float64{1}, k), []string(nil)
			rates[rng.IntN(k)] = rate
			for proc := range rates {
				if rate == 0 { // any
					rates[proc] = float64(1+rng.IntN(20)) / 20
				}
				slower = append(slower, fmt.Sprintf("%d:%v", proc, rates[proc]))
			}
			model := sim.Model{Network: sim.Network{Gap: 1, Slower: strings.Join(slower, ",")}}
			for _, ports := range []int{1, k - 1} {
				p := randomTask(t, []string{"257", "2^8", "goldilocks"}[(k+n)%3], k, k, false, ports)
				p.Rates = rates
				q := checkSinks(t, p, helpersOf(batches))[0]
				bound, got := (1+2.0/batches)*schedule.BoundByRates(rates), model.Count(q).NodePackets()
				if limit := 1.1 * bound; got*(1+2.0/batches) < bound || ports > 1 && got > limit {
					t.Errorf("rates %v, p = %d: %s takes %v packets, want at most %v", rates, ports, q.Info().Parameters, got, limit)
				}
				if rate > 0 && rate <= 0.5 && math.Abs(got-bound) > 1e-9 {
					t.Errorf("one link of rate %v, p = %d: %s takes %v packets, want %v", rate, ports, q.Info().Parameters, got, bound)
				}
			}
		}
	}
	p := randomTask(t, "257", 8, 8, false, 7)
	for _, rates := range [][]float64{nil, slices.Repeat([]float64{0.5}, 8)} {
		if p.Rates = rates; len(checkSinks(t, p, HelpersPlans)) > 0 {
			t.Errorf("rates %v: a plan, where exchange does better", rates)
		}
	}
}

// TestSplitCost compares counted costs with those of a simulation that shares no code with this one, in which slices move as
// linear forms, and at p = 1 with C1 = h + clog(K), C2 = h + Psi(K/2^h).
func TestSplitCost(t *testing.T) {
	for _, c := range []costs{
		{8, 8, false, 1, "4/3 6/2.75 7/2.5"},
		{16, 16, false, 1, "5/5 6/4 7/3.75 8/3.5 11/3.375 12/3.125 15/2.75"},
		{64, 64, false, 1, "7/11 8/8 9/7 10/6 14/5 18/4.625 21/4.25 32/3.875 42/3.594 63/2.938"},
		{16, 16, false, 3, "3/1.5"},
		{64, 64, false, 7, "3/1.25"},
	} {
		plans, err := SplitPlans(randomTask(t, "2^16", c.k, c.k, false, c.ports))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Fields(inPackets(plans))
		for _, want := range strings.Fields(c.want) {
			if !slices.Contains(got, want) {
				t.Errorf("K=%d p=%d: %v, want %s, too", c.k, c.ports, got, want)
			}
		}
	}
	for digits := 2; digits <= 8; digits++ {
		k := 1 << digits
		plans, err := SplitPlans(randomTask(t, "2^16", k, k, false, 1))
		if err != nil {
			t.Fatal(err)
		}
		for h := 1; h < digits; h++ {
			psi := 0
			for round := 1; round <= digits-h; round++ {
				psi += 1 << min(round-1, digits-h-round)
			}
			if !atMost(plans, h+digits, float64(h+psi)) {
				t.Errorf("K=%d, groups of %d: no plan of %d rounds and %d packets: %s", k, 1<<h, h+digits, h+psi, inPackets(plans))
			}
		}
	}
}

// TestSinksCost compares counted costs with the formulas, for all numbers of groups, and with known ones.
func TestSinksCost(t *testing.T) {
	check := func(k, r int, separate bool, ports int) {
		p := randomTask(t, "2^8", k, r, separate, ports)
		if p.Square() {
			return
		}
		plans, err := Plans(p)
		if err != nil {
			t.Fatal(err)
		}
		many, few := max(k, r), min(k, r)
		groups := func(size, tree int) {
			step, trees := psi(size, p.Ports), schedule.Clog(tree, p.Ports)
			if c1 := schedule.Clog(size, p.Ports) + trees; !atMost(plans, c1, float64(step+trees)) {
				t.Errorf("K=%d R=%d separate=%t p=%d: no plan for %d/%d", k, r, separate, ports, c1, step+trees)
			}
		}
		apart := 0
		if separate {
			apart = 1
			groups(few, (many+few-1)/few+1)
		}
		for n := 1; n <= many/few; n++ {
			groups((many+n-1)/n, n+apart)
		}
	}
	everySinks(verifyall.Pick(14, 24), 3, check)
	for k := 1; k <= 12; k++ {
		check(k, 4*k, false, 1+k%3)
		check(3*k+1, k, false, 1+k%3)
	}
	checkCosts(t, Plans, []costs{
		{25, 5, false, 1, "5/6"}, {26, 3, true, 1, "5/5"}, {100, 10, false, 1, "7/9"}, {10, 4, true, 2, "3/3"},
		{255, 32, false, 1, "8/16 9/14"}, {5, 25, false, 1, "5/6"}, {5, 25, false, 2, "3/3"}, {1, 1, true, 1, "1/1"}, {1, 9, false, 1, "4/4"},
		{240, 16, true, 1, "8/10"}, {600, 20, true, 2, "6/8 7/7"}, {10000, 100, true, 1, "14/26 15/25"},
	})
}

// psi is the least C2 of the universal step in the fewest rounds.
func psi(size, ports int) int {
	best := size
	for m := 1; m <= size; m++ {
		n := (size + m - 1) / m
		if schedule.Clog(m, ports)+schedule.Clog(n, ports) <= schedule.Clog(size, ports) {
			best = min(best, (m+ports-2)/ports+(n+ports-2)/ports)
		}
	}
	return best
}

// TestRefusals checks what algorithms are not for.
func TestRefusals(t *testing.T) {
	helpers := func(parameters ...[]int) maker {
		return func(t schedule.Task) ([]plan.Plan, error) { return single(HelpersWith(t, parameters)) }
	}
	for _, c := range []struct {
		k, r     int
		separate bool
		make     maker
	}{
		{8, 8, false, Plans}, {8, 8, false, StructuredPlans}, // those are for algorithms where each processor is both
		{8, 8, false, helpers([]int{2})}, {8, 4, false, helpers([]int{2})}, {4, 8, false, helpers([]int{2})}, {4, 4, true, helpers([]int{2})}, {300, 2, false, helpers([]int{2})},
		{8, 2, false, helpers([]int{2, 2})}, {8, 2, false, helpers([]int{2}, []int{2})}, {8, 2, false, helpers([]int{1 << 20})},
		{7, 7, false, SplitPlans},
	} {
		if _, err := c.make(randomTask(t, "2^16", c.k, c.r, c.separate, 1)); !errors.Is(err, schedule.ErrStructure) {
			t.Errorf("K=%d R=%d separate=%t: %v", c.k, c.r, c.separate, err)
		}
	}
}

// TestExchangeLayers checks what exchanges compute, and how many multiply-adds they take,
// where a helper computes by the layers of the matrix.
func TestExchangeLayers(t *testing.T) {
	n := 0
	for _, c := range []struct{ field, matrix string }{
		{"257", "dft"}, {"7681", "dft"}, {"257", "lagrange"}, {"257", "cauchy"}, {"2^8", "lch"}, {"2^8", "cauchy"}, {"257", "vandermonde"},
	} {
		for k := 4; k <= 40; k += verifyall.Pick(2, 1) {
			a, err := matrices.Spec{Family: c.matrix}.Build(fieldtest.Parse(t, c.field), k, k)
			if err != nil {
				continue // no such matrix
			}
			fact, err := matrix.Factor(t.Context(), a, nil)
			if err != nil {
				t.Fatal(err)
			}
			if local(fact) == nil {
				continue
			}
			sizes := 0
			for _, l := range fact.Layers {
				sizes += l.Size()
			}
			p := task(a, false, 1+k%4)
			plans, err := ExchangePlans(p, fact)
			if err != nil {
				t.Fatal(err)
			}
			checkSinks(t, p, func(schedule.Task) ([]plan.Plan, error) { return plans[k%len(plans):][:1], nil })
			if got := sim.Count(plans[0]).PacketC3(); got > sizes {
				t.Errorf("%s, K=%d: %d multiply-adds per symbol, want the sizes of the layers, %d, at most", a.ID(), k, got, sizes)
			}
			n++
		}
	}
	if n < 25 {
		t.Errorf("%d matrices of layers, want more", n)
	}
}
