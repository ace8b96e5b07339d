package algo_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"volley/algo"
	"volley/algo/schedule"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/matrix/matrixtest"
	"volley/plan"
	"volley/sim"
)

// count counts the cost of the algorithm's schedule for K processors and p ports, which no bound is above.
func count(t testing.TB, name string, k, ports int) sim.Cost {
	t.Helper()
	p := must(lookup(t, name).Compile(matrixtest.Random(t, fieldtest.Parse(t, "2^8"), k, 0), ports))(t)
	c := sim.Count(p)
	checkBounds(t, fmt.Sprintf("%s, K=%d p=%d", name, k, ports), k, clampPorts(k, ports), c)
	return c
}

// checkCosts compares counted costs with a formula, for all K and p up to some.
func checkCosts(t *testing.T, name string, mostK, mostPorts int, formula func(k, p int) (c1, c2 int)) {
	t.Helper()
	for ports := 1; ports <= mostPorts; ports++ {
		for k := 1; k <= mostK; k++ {
			c1, c2 := formula(k, clampPorts(k, ports))
			if got := count(t, name, k, ports); got.C1 != c1 || got.C2 != c2 {
				t.Fatalf("%s, K=%d p=%d: counted %d/%d, formula %d/%d", name, k, ports, got.C1, got.C2, c1, c2)
			}
		}
	}
}

// clog is the least t with r^t >= n.
func clog(n, r int) int {
	t := 0
	for v := 1; v < n; v *= r {
		t++
	}
	return t
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// prepareAndShootCost is the closed formula of the paper's theorem, corrected for even L.
func prepareAndShootCost(k, p int) (c1, c2 int) {
	if k == 1 {
		return 0, 0
	}
	L := clog(k, p+1) - 1 // the largest with (p+1)^L < K
	power := func(e int) int { return int(math.Pow(float64(p+1), float64(e))) }
	if L%2 == 1 {
		return L + 1, (2*power((L+1)/2) - 2) / p
	}
	return L + 1, (power(L/2+1) + power(L/2) - 2) / p
}

// TestPrepareAndShootCost compares counted costs with the formula for all K up to 2048 and p up to 8.
func TestPrepareAndShootCost(t *testing.T) {
	checkCosts(t, "prepare-and-shoot", 2048, 8, prepareAndShootCost)
}

// TestPrepareAndShootTable checks (K, p): C1/C2 worked out by hand.
func TestPrepareAndShootTable(t *testing.T) {
	for _, want := range []struct{ k, p, c1, c2 int }{
		{1, 1, 0, 0}, {2, 1, 1, 1}, {4, 1, 2, 2}, {8, 1, 3, 4}, {16, 1, 4, 6}, {17, 1, 5, 10}, {27, 2, 3, 5},
		{64, 1, 6, 14}, {65, 2, 4, 8}, {65, 1, 7, 22}, {256, 1, 8, 30},
	} {
		if c1, c2 := prepareAndShootCost(want.k, want.p); c1 != want.c1 || c2 != want.c2 {
			t.Errorf("K=%d p=%d: %d/%d, want %d/%d", want.k, want.p, c1, c2, want.c1, want.c2)
		}
	}
}

// universalCost is C1 and C2 of the universal algorithm: the least C2 in the fewest rounds.
func universalCost(k, p int) (c1, c2 int) {
	c1, c2 = clog(k, p+1), k
	for m := 1; m <= k; m++ {
		if n := ceilDiv(k, m); clog(m, p+1)+clog(n, p+1) == c1 {
			c2 = min(c2, ceilDiv(m-1, p)+ceilDiv(n-1, p))
		}
	}
	return c1, c2
}

// TestUniversalCost checks that the tuned step has the least C2 of all windows
// with the least C1, is never above prepare-and-shoot, and meets known values.
func TestUniversalCost(t *testing.T) {
	checkCosts(t, "universal", 2048, 8, func(k, p int) (int, int) {
		c1, c2 := universalCost(k, p)
		if _, paper := prepareAndShootCost(k, p); c2 > paper {
			t.Fatalf("K=%d p=%d: C2 = %d, prepare-and-shoot has %d", k, p, c2, paper)
		}
		return c1, c2
	})
	for k, want := range map[int]int{5: 3, 10: 5, 17: 7, 24: 8, 48: 12, 100: 19} {
		if _, got := universalCost(k, 1); got != want {
			t.Errorf("K=%d: C2 = %d, want %d", k, got, want)
		}
	}
}

func TestBaselineCosts(t *testing.T) {
	checkCosts(t, "bruck-allgather", 200, 4, func(k, p int) (int, int) { return clog(k, p+1), ceilDiv(k-1, p) })
}

// TestBounds checks the lower bounds of matrices without zeros against values worked out by hand, the formula that BoundC2
// solves by search, and where prepare-and-shoot meets the min-cut bound. The other tests of costs compare plans with them.
func TestBounds(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, b := range []struct {
		k, r     int
		separate bool
		p, c1    int
		pieces   int
		c2       int
	}{
		{1, 1, false, 1, 0, 1, 0}, {2, 2, false, 1, 1, 1, 1}, {7, 7, false, 1, 3, 1, 3}, {64, 64, false, 1, 6, 1, 6}, {64, 64, false, 1, 6, 64, 126},
		{27, 27, false, 2, 3, 1, 3}, {10, 10, false, 8, 2, 10, 3}, {4, 8, false, 1, 3, 8, 10}, {4, 8, true, 1, 4, 12, 12}, {8, 4, true, 1, 4, 1, 4},
		{8, 8, true, 2, 2, 4, 2}, {9, 3, true, 2, 3, 6, 3}, {8, 1, false, 1, 3, 8, 8}, {1, 1, true, 1, 1, 5, 5}, {2, 25, false, 1, 5, 1, 5},
	} {
		q := &algo.Problem{Matrix: must(matrix.Cauchy(f, b.k, b.r))(t), Separate: b.separate, Ports: b.p}
		if got := q.Bound(b.p, b.pieces); got != (algo.Bound{C1: b.c1, C2: b.c2}) {
			t.Errorf("K=%d R=%d separate=%t p=%d, %d pieces: bounds %v, want %d/%d", b.k, b.r, b.separate, b.p, b.pieces, got, b.c1, b.c2)
		}
	}
	for p := 1; p <= 8; p++ {
		for k := p + 1; k <= 2048; k++ {
			x, y := float64(p), float64(k)
			root := 0.5 - 1/x + math.Sqrt(0.25-1/x-1/(x*x)+2*y/(x*x))
			if want := max(1, int(math.Ceil(root-1e-9))); algo.BoundC2(k, p) != want {
				t.Fatalf("K=%d p=%d: bound %d, formula %v", k, p, algo.BoundC2(k, p), root)
			}
		}
	}
	for _, k := range []int{1, 4, 8, 16, 64, 256, 1024} {
		if cut, ok := algo.BoundMinCut(k, 1); !ok || cut != count(t, "prepare-and-shoot", k, 1).C2 {
			t.Errorf("K=%d: min-cut bound %d, %v", k, cut, ok)
		}
	}
	if _, ok := algo.BoundMinCut(6, 1); ok {
		t.Error("K=6, p=1: a min-cut bound, and 6 is no power of 2")
	}
}

// TestUniversalBound checks the bound for schedules that serve every matrix, in any number of rounds and in the fewest,
// against values that were worked out apart; universal is no more than one element above it.
func TestUniversalBound(t *testing.T) {
	for _, b := range []struct{ k, c2, fewest int }{
		{2, 1, 1}, {4, 2, 2}, {7, 4, 4}, {8, 4, 4}, {20, 6, 7}, {24, 7, 8}, {32, 8, 10}, {36, 8, 9}, {48, 10, 11}, {54, 10, 12}, {64, 11, 14},
	} {
		i := plan.Info{Processors: b.k, Rows: b.k, Columns: b.k, Ports: 1}
		rounds := clog(b.k, 2)
		if c2, fewest := algo.UniversalBound(i, 0).C2, algo.UniversalBound(i, rounds).C2; c2 != b.c2 || fewest != b.fewest {
			t.Errorf("K=%d: bounds %d, and %d in %d rounds, want %d and %d", b.k, c2, fewest, rounds, b.c2, b.fewest)
		}
		if c := count(t, "universal", b.k, 1); c.C2 > b.fewest+1 {
			t.Errorf("K=%d: universal takes %d packets in %d rounds, and the bound is %d", b.k, c.C2, c.C1, b.fewest)
		}
	}
}

// front lists C1/C2 of plans.
func front(plans []plan.Plan) string {
	var list []string
	for _, p := range plans {
		c := sim.Count(p)
		list = append(list, fmt.Sprintf("%d/%d", c.C1, c.C2))
	}
	return strings.Join(list, " ")
}

// TestFoldedFront compares the costs of Lagrange matrices between cosets, over all
// ways to fuse layers, down to one, with the table of the theory: every K with M cosets of a
// power of two, or of three, points.
func TestFoldedFront(t *testing.T) {
	for _, c := range []struct {
		field string
		k     int
		want  [3]string // p = 1, 2, 3
	}{
		{"257", 16, [3]string{"4/6", "3/4", "2/2"}},
		{"257", 24, [3]string{"5/8 6/7", "3/5 4/4", "3/3"}},
		{"257", 32, [3]string{"5/10 6/8", "4/5", "3/4"}},
		{"257", 48, [3]string{"6/12 7/10 8/9", "4/6", "3/5 4/4"}},
		{"257", 64, [3]string{"6/14 7/12 8/10", "4/8 6/6", "3/6 4/4"}},
		{"257", 96, [3]string{"7/18 8/14 9/12 10/11", "5/9 6/8 7/7", "4/6 5/5"}},
		{"7681", 256, [3]string{"8/30 9/24 10/18 11/16 12/14", "6/16 7/13 8/9", "4/10 5/8 6/6"}},
		{"163", 81, [3]string{"7/17 8/16 9/13 12/12", "4/8 5/7 6/6", "4/6 5/5"}},
	} {
		for i, want := range c.want {
			p := shaped(t, c.field, matrices.Spec{Family: "lagrange"}, c.k, c.k, false, i+1)
			plans := append(must(lookup(t, "universal").Plans(p))(t), must(lookup(t, "folded-lagrange").Plans(p))(t)...)
			if got := front(schedule.Undominated(t.Context(), plans)); got != want {
				t.Errorf("K=%d p=%d: %s, want %s", c.k, i+1, got, want)
			}
		}
	}
}

// TestStructuredCosts compares counted costs with the closed formulas: of M·(p+1)^H points H rounds and packets, those of
// the universal algorithm for M, and one more for a natural order. The inverse takes as many.
func TestStructuredCosts(t *testing.T) {
	type row struct {
		algorithm    string
		spec         matrices.Spec
		field        string
		k, p, c1, c2 int
	}
	dft, reversed := matrices.Spec{Family: "dft"}, matrices.Spec{Family: "dft", Order: "reversed"}
	rows := []row{ // mixed radices
		{"dft", reversed, "97", 48, 1, 6, 6}, {"dft", reversed, "97", 48, 2, 4, 4}, {"dft", reversed, "97", 96, 1, 7, 7},
		{"dft", reversed, "61", 60, 1, 7, 7}, {"dft", reversed, "61", 60, 2, 5, 5}, {"dft", reversed, "61", 60, 4, 3, 3},
		{"dft", reversed, "2^8", 15, 1, 5, 5}, {"dft", reversed, "2^8", 15, 2, 3, 3}, {"dft", reversed, "2^8", 51, 2, 4, 5},
		{"dft", reversed, "257", 16, 2, 3, 3}, {"dft", reversed, "257", 64, 2, 4, 4}, {"dft", reversed, "257", 256, 2, 6, 6},
		{"dft", dft, "257", 4, 1, 3, 3}, {"dft", dft, "257", 64, 1, 7, 7}, {"dft", dft, "257", 64, 3, 4, 4},
		{"dft", reversed, "5", 4, 1, 2, 2}, // erratum 5: of one coset there is nothing but the DFT
		{"additive-fft", matrices.Spec{Family: "lch"}, "2^8", 64, 3, 3, 3},
		{"lagrange", matrices.Spec{Family: "lagrange"}, "257", 8, 2, 4, 4}, // H = 0: two universal steps
		{"cauchy", matrices.Spec{Family: "cauchy"}, "2^8", 64, 1, 7, 12}, {"cauchy", matrices.Spec{Family: "cauchy"}, "2^8", 64, 1, 8, 10},
	}
	for _, k := range []int{6, 8, 10, 12, 20, 24, 28, 40, 48, 64} {
		m, h := k, 0
		for ; m%2 == 0; h++ {
			m /= 2
		}
		c1, c2 := universalCost(m, 1)
		rows = append(rows, row{"draw-and-loose", matrices.Spec{Family: "vandermonde"}, "257", k, 1, c1 + h, c2 + h},
			row{"lagrange", matrices.Spec{Family: "lagrange"}, "257", k, 1, 2 * (c1 + h), 2 * (c2 + h)},
			row{"additive-fft", matrices.Spec{Family: "lch"}, "2^8", k, 1, c1 + h, c2 + h})
	}
	for _, c := range rows {
		m := must(c.spec.Build(fieldtest.Parse(t, c.field), c.k, c.k))(t)
		for _, m := range []matrix.Matrix{m, must(matrix.Inverse(t.Context(), m))(t)} {
			plans := must(lookup(t, c.algorithm).Plans(problem(t, m, c.p, algo.Natural)))(t)
			if !slices.ContainsFunc(plans, func(q plan.Plan) bool { return sim.Count(q).C1 <= c.c1 && sim.Count(q).C2 <= c.c2 }) {
				t.Errorf("%s over %s, K=%d p=%d: %s has %s, want %d/%d", m.ID(), c.field, c.k, c.p, c.algorithm, front(plans), c.c1, c.c2)
			}
		}
	}
}

// TestInProcess has the planner take layers where they multiply less than a direct product, of two bits each, which
// one kernel does: C3 is 4 for each layer.
func TestInProcess(t *testing.T) {
	for _, c := range []struct {
		matrix string
		k, c3  int
	}{{"cauchy", 8, 8}, {"cauchy", 32, 16}, {"rs:vandermonde", 64, 20}, {"fti", 64, 20}, {"rs:cauchy", 128, 24}, {"lch", 256, 16}, {"cauchy", 96, 22}, {"cauchy", 31, 31}} {
		p := shaped(t, "2^8", matrices.Spec{Family: c.matrix}, c.k, c.k, false, 0)
		q := must(algo.Choose(algo.Auto, p, inProcess))(t)
		if got := sim.Count(q).C3; got != c.c3 {
			t.Errorf("%s, K=%d: %s %s, C3 = %d, want %d", c.matrix, c.k, q.Info().Algorithm, q.Info().Parameters, got, c.c3)
		}
	}
}

// TestOnDemand makes one program and the cost of a plan for a million processors.
func TestOnDemand(t *testing.T) {
	const k = 1_000_000
	a := matrixtest.Cauchy(t, fieldtest.Parse(t, "2147483647"), k)
	for _, ports := range []int{1, 4} {
		p := must(lookup(t, "universal").Compile(a, ports))(t)
		prog := must(p.Program(12345))(t)
		if got, want := prog.Schedule().Slots, p.Schedule(12345).Slots; got != want {
			t.Errorf("p=%d: a program of %d slots and a schedule of %d", ports, got, want)
		}
		if cost := sim.Count(p); cost.C1 != clog(k, ports+1) {
			t.Errorf("p=%d: C1 = %d, want %d", ports, cost.C1, clog(k, ports+1))
		}
	}
}
