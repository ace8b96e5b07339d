package algo_test

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"volley/algo"
	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/verifyall"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/matrix/matrixtest"
	"volley/plan"
	"volley/sim"
)

func lookup(t testing.TB, name string) algo.Algorithm {
	t.Helper()
	a, err := algo.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// count counts the cost of the algorithm's schedule for K processors and p ports.
func count(t testing.TB, f field.Field, name string, k, ports int) sim.Cost {
	t.Helper()
	p, err := lookup(t, name).Compile(matrixtest.Random(t, f, k, 0), ports)
	if err != nil {
		t.Fatal(err)
	}
	return sim.Count(p)
}

func problem(t testing.TB, a matrix.Matrix, ports int, order algo.Order) *algo.Problem {
	t.Helper()
	p, err := algo.NewProblem(a, ports, order)
	if err != nil {
		t.Fatal(err)
	}
	return p
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

// traffic is the cost of a plan but for the work of coding, which is counted from
// schedules where no coefficient is zero, and from programs as it is.
func traffic(p plan.Plan) sim.Cost {
	c := sim.Count(p)
	c.C3 = 0
	return c
}

func clampPorts(k, ports int) int { return max(1, min(ports, k-1)) }

// TestPrepareAndShootCost compares counted costs with the closed formula of the
// paper's theorem, corrected for even L, for all K up to 2048 and p up to 8.
func TestPrepareAndShootCost(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for ports := 1; ports <= 8; ports++ {
		for k := 1; k <= 2048; k++ {
			p := clampPorts(k, ports)
			wantC1, wantC2 := 0, 0
			if k > 1 {
				L := clog(k, p+1) - 1 // the largest with (p+1)^L < K
				half := func(e int) int { return int(math.Pow(float64(p+1), float64(e))) }
				wantC1 = L + 1
				if L%2 == 1 {
					wantC2 = (2*half((L+1)/2) - 2) / p
				} else {
					wantC2 = (half(L/2+1) + half(L/2) - 2) / p
				}
			}
			if got := count(t, f, "prepare-and-shoot", k, ports); got.C1 != wantC1 || got.C2 != wantC2 {
				t.Fatalf("K=%d p=%d: counted %d/%d, formula %d/%d", k, ports, got.C1, got.C2, wantC1, wantC2)
			}
		}
	}
}

// TestPrepareAndShootTable checks (K, p): C1/C2 worked out by hand.
func TestPrepareAndShootTable(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, want := range []struct{ k, p, c1, c2 int }{
		{1, 1, 0, 0}, {2, 1, 1, 1}, {4, 1, 2, 2}, {8, 1, 3, 4}, {16, 1, 4, 6}, {17, 1, 5, 10}, {27, 2, 3, 5},
		{64, 1, 6, 14}, {65, 2, 4, 8}, {65, 1, 7, 22}, {256, 1, 8, 30},
	} {
		if got := count(t, f, "prepare-and-shoot", want.k, want.p); got.C1 != want.c1 || got.C2 != want.c2 {
			t.Errorf("K=%d p=%d: %d/%d, want %d/%d", want.k, want.p, got.C1, got.C2, want.c1, want.c2)
		}
	}
}

// TestUniversalCost checks that the tuned step has the least C2 of all windows
// with the least C1, is never above prepare-and-shoot, and meets known values.
func TestUniversalCost(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for ports := 1; ports <= 8; ports++ {
		for k := 1; k <= 2048; k++ {
			p := clampPorts(k, ports)
			best := math.MaxInt
			for m := 1; m <= k; m++ {
				n := ceilDiv(k, m)
				if clog(m, p+1)+clog(n, p+1) == clog(k, p+1) {
					best = min(best, ceilDiv(m-1, p)+ceilDiv(n-1, p))
				}
			}
			got := count(t, f, "universal", k, ports)
			if got.C1 != clog(k, p+1) || got.C2 != best {
				t.Fatalf("K=%d p=%d: %d/%d, want %d/%d", k, ports, got.C1, got.C2, clog(k, p+1), best)
			}
			if paper := count(t, f, "prepare-and-shoot", k, ports); got.C2 > paper.C2 {
				t.Fatalf("K=%d p=%d: C2 = %d, prepare-and-shoot has %d", k, ports, got.C2, paper.C2)
			}
		}
	}
	for k, want := range map[int]int{5: 3, 10: 5, 17: 7, 24: 8, 48: 12, 100: 19} {
		if got := count(t, f, "universal", k, 1).C2; got != want {
			t.Errorf("K=%d: C2 = %d, want %d", k, got, want)
		}
	}
}

// TestBoundCut checks the bound for packets in pieces: against values worked out by hand, that it
// is refused where the matrix has a zero off the diagonal, and that no plan of any algorithm is
// below it.
func TestBoundCut(t *testing.T) {
	for _, b := range []struct {
		k, r     int
		separate bool
		p        int
		want     float64
	}{
		{1, 1, false, 1, 0}, {2, 2, false, 1, 1}, {4, 4, false, 1, 1.5}, {16, 16, false, 1, 1.875}, {16, 16, false, 15, 0.125},
		{100, 10, false, 1, 1.08}, {100, 1, false, 1, 1}, {1, 4, false, 1, 1}, {10, 100, false, 2, 0.54}, {1, 1, true, 1, 1}, {5, 3, true, 2, 0.5},
	} {
		if got := algo.BoundCut(b.k, b.r, b.separate, b.p); math.Abs(got-b.want) > 1e-12 {
			t.Errorf("K=%d R=%d separate=%t p=%d: bound %v, want %v", b.k, b.r, b.separate, b.p, got, b.want)
		}
	}
	f := fieldtest.Parse(t, "257")
	for _, separate := range []bool{false, true} {
		for _, zero := range [][2]int{{0, 0}, {1, 1}, {2, 0}, {0, 1}, {3, 1}} {
			a := matrix.NewDense(f, 4, 2)
			for i := range 4 {
				for j := range 2 {
					a.Set(i, j, field.One)
				}
			}
			a.Set(zero[0], zero[1], field.Element{})
			p := &algo.Problem{Matrix: a, Separate: separate, Ports: 1}
			if c2, ok := p.BoundCut(); ok != (zero[0] == zero[1] && !separate) || ok && c2 != 1 {
				t.Errorf("a zero at %v, separate=%t: bound %v %t", zero, separate, c2, ok)
			}
		}
	}
	plans := map[string]int{}
	for _, spec := range []string{"random:7", "cauchy", "lagrange", "dft", "vandermonde", "lch", "rs:vandermonde"} {
		for _, name := range []string{"2^8", "257"} {
			for _, k := range []int{1, 2, 4, 7, 9, 3, 8, 16}[:verifyall.Pick(5, 8)] {
				for _, r := range []int{1, 3, k, 2 * k} {
					for _, ports := range []int{1, 3} {
						for _, separate := range []bool{false, true} {
							checkBoundCut(t, name, spec, k, r, separate, ports, plans)
						}
					}
				}
			}
		}
	}
	for _, a := range algo.Algorithms() {
		if plans[a.Name] == 0 && !a.Traffic {
			t.Errorf("no plan of %s was checked: %v", a.Name, plans)
		}
	}
}

func TestBaselineCosts(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for ports := 1; ports <= 4; ports++ {
		for k := 1; k <= 200; k++ {
			p := clampPorts(k, ports)
			rounds, packets := clog(k, p+1), ceilDiv(k-1, p)
			for name, want := range map[string][2]int{
				"bruck-allgather": {rounds, packets},
			} {
				if got := count(t, f, name, k, ports); got.C1 != want[0] || got.C2 != want[1] {
					t.Fatalf("%s, K=%d p=%d: %d/%d, want %d/%d", name, k, ports, got.C1, got.C2, want[0], want[1])
				}
			}
		}
	}
}

// TestClasses compares the costs counted from classes with those counted from
// every processor's schedule.
func TestClasses(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, algorithm := range forAnyMatrix() {
		for k := 1; k <= 70; k++ {
			for _, ports := range []int{1, 2, 3, 5} {
				p, err := algorithm.Compile(matrixtest.Random(t, f, k, 0), ports)
				if err != nil {
					t.Fatal(err)
				}
				m, err := plan.Materialize(p) // has a class for every processor
				if err != nil {
					t.Fatal(err)
				}
				if got, want := traffic(p), traffic(m); !reflect.DeepEqual(got, want) {
					t.Fatalf("%s, K=%d p=%d: %+v from classes, %+v from all", algorithm.Name, k, ports, got, want)
				}
				if got, want := plan.MemorySlots(p), plan.MemorySlots(m); got != want {
					t.Fatalf("%s, K=%d p=%d: %d slots from classes, %d from all", algorithm.Name, k, ports, got, want)
				}
			}
		}
	}
}

// TestBounds checks the lower bounds against values worked out by hand and every
// algorithm's cost against the bounds.
func TestBounds(t *testing.T) {
	for _, b := range []struct{ k, p, c1, c2 int }{
		{1, 1, 0, 0}, {2, 1, 1, 1}, {4, 1, 2, 2}, {7, 1, 3, 3}, {8, 1, 3, 4}, {16, 1, 4, 5}, {24, 1, 5, 7}, {64, 1, 6, 11},
		{27, 2, 3, 4}, {10, 8, 2, 2},
	} {
		if c1, c2 := algo.BoundC1(b.k, b.p), algo.BoundC2(b.k, b.p); c1 != b.c1 || c2 != b.c2 {
			t.Errorf("K=%d p=%d: bounds %d/%d, want %d/%d", b.k, b.p, c1, c2, b.c1, b.c2)
		}
	}
	f := fieldtest.Parse(t, "2^8")
	for _, b := range []struct {
		k, r     int
		separate bool
		p        int
		c1, c2   int
	}{
		{4, 8, false, 1, 3, 2}, {4, 8, true, 1, 4, 1}, {8, 4, true, 1, 4, 1}, {8, 7, false, 1, 3, 2}, {8, 8, true, 2, 2, 1}, {9, 3, true, 2, 3, 1},
		{8, 1, false, 1, 3, 1}, {1, 1, true, 1, 1, 1},
	} {
		q := &algo.Problem{Matrix: must(matrix.Random(f, b.k, b.r, 1))(t), Separate: b.separate, Ports: b.p}
		if c1, c2 := q.Bounds(); c1 != b.c1 || c2 != b.c2 {
			t.Errorf("K=%d R=%d separate=%t p=%d: bounds %d/%d, want %d/%d", b.k, b.r, b.separate, b.p, c1, c2, b.c1, b.c2)
		}
	}
	// The formula that BoundC2 solves by search.
	for p := 1; p <= 8; p++ {
		for k := 2; k <= 2048; k++ {
			if k <= p {
				continue
			}
			x, y := float64(p), float64(k)
			root := 0.5 - 1/x + math.Sqrt(0.25-1/x-1/(x*x)+2*y/(x*x))
			if want := max(1, int(math.Ceil(root-1e-9))); algo.BoundC2(k, p) != want {
				t.Fatalf("K=%d p=%d: bound %d, formula %v", k, p, algo.BoundC2(k, p), root)
			}
		}
	}
	for _, algorithm := range forAnyMatrix() {
		for k := 1; k <= 300; k++ {
			for p := 1; p <= 4; p++ {
				ports := clampPorts(k, p)
				c := count(t, f, algorithm.Name, k, p)
				if c.C1 < algo.BoundC1(k, ports) || c.C2 < algo.BoundC2(k, ports) {
					t.Errorf("%s, K=%d p=%d: %d/%d is below a bound", algorithm.Name, k, p, c.C1, c.C2)
				}
				if cut, ok := algo.BoundMinCut(k, ports); ok && c.C1 == algo.BoundC1(k, ports) && c.C2 < cut {
					t.Errorf("%s, K=%d p=%d: C2 = %d is below the min-cut bound %d", algorithm.Name, k, p, c.C2, cut)
				}
			}
		}
	}
	// Prepare-and-shoot meets the min-cut bound where K is a power of p+1.
	for _, k := range []int{4, 8, 16, 64, 256, 1024} {
		if cut, ok := algo.BoundMinCut(k, 1); !ok || cut != count(t, f, "prepare-and-shoot", k, 1).C2 {
			t.Errorf("K=%d: min-cut bound %d, %v", k, cut, ok)
		}
	}
	if c2, ok := algo.BoundMinCut(1, 1); !ok || c2 != 0 {
		t.Errorf("K=1: bound %d, %v", c2, ok)
	}
	if _, ok := algo.BoundMinCut(6, 1); ok {
		t.Error("K=6, p=1: a min-cut bound, and 6 is no power of 2")
	}
}

func TestCompileErrors(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	a := lookup(t, "universal")
	if _, err := a.Compile(matrix.NewDense(f, 3, 4), 1); err == nil {
		t.Error("a 3×4 matrix was accepted")
	}
	if _, err := a.Compile(matrixtest.Random(t, f, 3, 0), 0); err == nil {
		t.Error("0 ports were accepted")
	}
	if _, err := algo.Lookup("fastest"); err == nil {
		t.Error("an unknown algorithm was found")
	}
	p, err := a.Compile(matrixtest.Random(t, f, 3, 0), 7)
	if err != nil || p.Info().Ports != 2 {
		t.Errorf("7 ports for 3 processors: %v, want them to count as 2", err)
	}
}

// TestChoose compares auto's choice with the least model time over the registry.
func TestChoose(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, k := range []int{1, 2, 5, 17, 40} {
		for _, ports := range []int{1, 3} {
			for _, model := range []sim.Model{
				{Beta: 1000, Tau: 0, Bytes: 1}, {Beta: 0, Tau: 1e-9, Bytes: 1 << 20}, {Beta: 20000, Tau: 1e-9, Bytes: 1000},
			} {
				a := matrixtest.Random(t, f, k, 1)
				p, err := algo.Choose(algo.Auto, problem(t, a, ports, algo.Natural), model)
				if err != nil {
					t.Fatal(err)
				}
				got := model.Time(sim.Count(p))
				for _, other := range forAnyMatrix() {
					q, err := other.Compile(a, ports)
					if err != nil {
						t.Fatal(err)
					}
					if x := model.Time(sim.Count(q)); x < got {
						t.Errorf("K=%d p=%d %+v: auto takes %s (%v), %s has %v", k, ports, model, p.Info().Algorithm, got, other.Name, x)
					}
				}
			}
		}
	}
	for _, name := range []string{"prepare-and-shoot", "bruck-allgather"} {
		p, err := algo.Choose(name, problem(t, matrixtest.Random(t, f, 9, 1), 2, algo.Natural), sim.Model{})
		if err != nil || p.Info().Algorithm != name {
			t.Errorf("%s: chose %v, %v", name, p.Info().Algorithm, err)
		}
	}
	if _, err := algo.Choose("nearest", problem(t, matrixtest.Random(t, f, 9, 1), 2, algo.Natural), sim.Model{}); err == nil {
		t.Error("an unknown algorithm was chosen")
	}
}

// TestOnDemand makes one program and the cost of a plan for a million processors.
func TestOnDemand(t *testing.T) {
	f := fieldtest.Parse(t, "2147483647")
	const k = 1_000_000
	a, err := matrix.Cauchy(f, k, k)
	if err != nil {
		t.Fatal(err)
	}
	for _, ports := range []int{1, 4} {
		p, err := lookup(t, "universal").Compile(a, ports)
		if err != nil {
			t.Fatal(err)
		}
		prog, err := p.Program(12345)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := prog.Schedule().Slots, p.Schedule(12345).Slots; got != want {
			t.Errorf("p=%d: a program of %d slots and a schedule of %d", ports, got, want)
		}
		cost := sim.Count(p)
		if cost.C1 != clog(k, ports+1) {
			t.Errorf("p=%d: C1 = %d, want %d", ports, cost.C1, clog(k, ports+1))
		}
	}
}

// checkBoundCut checks that every plan there is for a matrix moves as much, and has as large a C2,
// as [algo.BoundCut] says, where that holds. It counts plans by algorithm. spec is as for
// [algotest.Compile]; nothing is checked where there is no such matrix.
func checkBoundCut(t testing.TB, fieldName, spec string, k, r int, separate bool, ports int, plans map[string]int) {
	t.Helper()
	s, err := matrices.ParseSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Build(fieldtest.Parse(t, fieldName), k, r)
	if err != nil {
		return
	}
	p := &algo.Problem{Matrix: m, Separate: separate, Ports: ports, Limits: algo.Limits{Memory: 1 << 30}}
	if err := p.Prepare(); err != nil {
		t.Fatal(err)
	}
	bound, ok := p.BoundCut()
	if !ok {
		return
	}
	for _, a := range algo.Algorithms() {
		list, err := a.Plans(p)
		if err != nil && !errors.Is(err, algo.ErrStructure) {
			t.Fatal(err)
		}
		for _, q := range list {
			plans[a.Name]++
			sent := 0
			for _, c := range q.Classes() {
				for _, round := range q.Schedule(c.Representative).Rounds {
					for _, x := range round.Sends {
						sent += c.Count * len(x.Slots)
					}
				}
			}
			cost := sim.Count(q)
			total := k + r - 2
			if separate {
				total++
			}
			if moved := float64(sent) / float64(q.Info().PieceCount()); moved < float64(total) || cost.PacketC2() < bound {
				t.Errorf("%s %s, %s over %s, K=%d R=%d separate=%t p=%d: %v packets move, C2 = %v: the bounds are %d and %v",
					a.Name, q.Info().Parameters, spec, fieldName, k, r, separate, ports, moved, cost.PacketC2(), total, bound)
			}
		}
	}
}
