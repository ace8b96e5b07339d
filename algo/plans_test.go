package algo_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"volley/algo"
	"volley/field"
	_ "volley/field/curves"
	"volley/field/fieldtest"
	"volley/internal/verifyall"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/matrix/matrixtest"
	"volley/plan"
	"volley/sim"
	"volley/verify"
)

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func lookup(t testing.TB, name string) algo.Algorithm { return must(algo.Lookup(name))(t) }

func problem(t testing.TB, a matrix.Matrix, ports int, order algo.Order) *algo.Problem {
	t.Helper()
	return must(algo.NewProblem(a, ports, order))(t)
}

// shaped returns a problem of sources and sinks, with the matrix of a Spec; nil where there is none.
func shaped(t testing.TB, fieldName string, s matrices.Spec, k, r int, separate bool, ports int) *algo.Problem {
	t.Helper()
	m, err := s.Build(fieldtest.Parse(t, fieldName), k, r)
	if err != nil {
		return nil
	}
	p := &algo.Problem{Matrix: m, Separate: separate, Ports: ports}
	if err := p.Prepare(); err != nil {
		t.Fatal(err)
	}
	return p
}

// A tested counts the plans that were checked, by algorithm.
type tested struct {
	sync.Mutex
	plans map[string]int
}

// all checks every plan of some algorithms for a problem.
func (x *tested) all(t testing.TB, p *algo.Problem, algorithms []algo.Algorithm) {
	t.Helper()
	for _, a := range algorithms {
		list, err := a.Plans(p)
		if err != nil && (!errors.Is(err, algo.ErrStructure) || !a.Structured && p.Square()) {
			t.Fatal(err)
		}
		for i, q := range list {
			checkPlan(t, p, a, q)
			if i > 0 { // none is worse than another in both
				if x, y := sim.Count(list[i-1]), sim.Count(q); p.Limits.Memory == 0 && (x.C1 >= y.C1 || x.PacketC2() <= y.PacketC2()) {
					t.Errorf("%s, K=%d p=%d: %d/%v before %d/%v", a.Name, p.Matrix.Rows(), p.Ports, x.C1, x.PacketC2(), y.C1, y.PacketC2())
				}
			}
		}
		x.Lock()
		x.plans[a.Name] += len(list)
		x.Unlock()
	}
}

// each fails where no plan of an algorithm was checked.
func (x *tested) each(t testing.TB, algorithms []algo.Algorithm) {
	t.Helper()
	for _, a := range algorithms {
		if x.plans[a.Name] == 0 {
			t.Errorf("no plan of %s was checked: %v", a.Name, x.plans)
		}
	}
	t.Log(x.plans)
}

// checkPlan compares the transfer matrix of a plan with that of the problem, what it costs by classes with what all
// processors do, and its costs with all lower bounds.
func checkPlan(t testing.TB, p *algo.Problem, a algo.Algorithm, q plan.Plan) {
	t.Helper()
	info, k, r := q.Info(), p.Matrix.Rows(), p.Matrix.Cols()
	what := fmt.Sprintf("%s %s, %s over %s, K=%d R=%d separate=%t p=%d, order %v",
		a.Name, info.Parameters, p.Matrix.ID(), info.Field.Name(), k, r, p.Separate, p.Ports, p.Order)
	if err := p.CheckProcessors(q); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := verify.Check(t.Context(), q, p.Matrix); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	cost, sent := sim.Count(q), 0
	for _, c := range q.Classes() {
		for _, round := range q.Schedule(c.Representative).Rounds {
			for _, x := range round.Sends {
				sent += c.Count * len(x.Slots)
			}
		}
	}
	least := k + r - 2
	if p.Separate {
		least++
	}
	if cut, ok := p.BoundCut(sim.Model{}); ok && (float64(sent)/float64(info.PieceCount()) < float64(least) || cost.PacketC2() < cut) {
		t.Errorf("%s: %d elements move, C2 = %v: the bounds are %d packets and %v", what, sent, cost.PacketC2(), least, cut)
	}
	if b := p.Bound(p.Ports, info.PieceCount()); cost.C1 < b.C1 || cost.C2 < b.C2 {
		t.Errorf("%s: %d/%d is below the bound %v", what, cost.C1, cost.C2, b)
	}
	if _, pruned := q.(*plan.Materialized); !a.Structured && !pruned {
		checkBounds(t, what, k, p.Ports, cost)
	}
	if info.Processors > 48 {
		return
	}
	m := must(plan.Materialize(q))(t) // has a class for every processor
	each := sim.Count(m)
	cost.C3, each.C3 = 0, 0 // from schedules, where no coefficient is zero, and from programs
	if !reflect.DeepEqual(cost, each) || plan.MemorySlots(q) != plan.MemorySlots(m) {
		t.Fatalf("%s: %+v and %d slots from classes, %+v and %d from all", what, cost, plan.MemorySlots(q), each, plan.MemorySlots(m))
	}
	exact := p.Matrix.ID() == "cauchy" && (!a.Structured || a.Name == "split" || a.Name == "sinks")
	for proc, prog := range m.Programs {
		if may, has := q.Schedule(proc).Terms, prog.Terms(); may < has || exact && may != has {
			t.Fatalf("%s, processor %d: %d multiply-adds, the schedule says %d", what, proc, has, may)
		}
	}
}

// checkBounds compares the cost of a plan of whole packets, of an algorithm for every matrix, with the bounds for those.
func checkBounds(t testing.TB, what string, k, ports int, c sim.Cost) {
	t.Helper()
	if c.C1 < algo.BoundC1(k, ports) || c.C2 < algo.BoundC2(k, ports) {
		t.Errorf("%s: %d/%d is below a bound", what, c.C1, c.C2)
	}
	if b := algo.UniversalBound(plan.Info{Processors: k, Rows: k, Columns: k, Ports: ports}, c.C1); c.C2 < b.C2 {
		t.Errorf("%s: C2 = %d is below the bound %d in %d rounds", what, c.C2, b.C2, c.C1)
	}
}

// forAnyMatrix returns the algorithms that take every matrix.
func forAnyMatrix() []algo.Algorithm {
	return slices.DeleteFunc(algo.Algorithms(), func(a algo.Algorithm) bool { return a.Structured })
}

// families returns the algorithms for families of matrices.
func families() []algo.Algorithm {
	names := []string{"dft", "draw-and-loose", "lagrange", "folded-lagrange", "cauchy", "additive-fft"}
	return slices.DeleteFunc(algo.Parts(), func(a algo.Algorithm) bool { return !slices.Contains(names, a.Name) })
}

func clampPorts(k, ports int) int { return max(1, min(ports, k-1)) }

// TestTransferMatrix checks every algorithm that takes any matrix for every K up to 40, and a seeded sample of larger ones;
// with the tag verifyall up to 130, and windows.
func TestTransferMatrix(t *testing.T) {
	x := tested{plans: map[string]int{}}
	algorithms := append(forAnyMatrix(), lookup(t, "windows"))[:verifyall.Pick(3, 4)]
	t.Run("fields", func(t *testing.T) {
		for _, name := range []string{"2^8", "257", "97"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				check := func(k, ports int) {
					p := problem(t, matrixtest.Random(t, fieldtest.Parse(t, name), k, uint64(k)), ports, algo.Natural)
					x.all(t, p, algorithms)
				}
				rng := rand.New(rand.NewPCG(1, 2))
				for k := 1; k <= verifyall.Pick(40, 130); k++ {
					for ports := 1; ports <= 4; ports++ {
						check(k, ports)
					}
				}
				for range 4 {
					check(41+rng.IntN(30), 1+rng.IntN(4))
				}
				for _, k := range []int{125, 195, 256, 257, 384, 600}[:verifyall.Pick(1, 6)] {
					check(k, 2)
				}
			})
		}
	})
	x.each(t, algorithms)
}

// TestSparseMatrices checks matrices with many zeros, for which a schedule sends
// elements that are zero.
func TestSparseMatrices(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	x := tested{plans: map[string]int{}}
	for _, k := range []int{1, 2, 3, 9, 16, 17} {
		for name, nonzero := range map[string]func(i, j int) bool{
			"zero":     func(i, j int) bool { return false },
			"identity": func(i, j int) bool { return i == j },
			"shift":    func(i, j int) bool { return (i+1)%k == j },
			"lower":    func(i, j int) bool { return i > j },
		} {
			a := matrix.DenseFunc(f, k, k, func(i, j int) (e field.Element) {
				if nonzero(i, j) {
					e = field.Code(uint64(1 + (i+j)*len(name)%7))
				}
				return e
			})
			for _, ports := range []int{1, 3} {
				x.all(t, problem(t, a, ports, algo.Natural), append(forAnyMatrix(), lookup(t, "sparse")))
			}
		}
	}
}

// TestBoundCut checks all plans of all algorithms for small problems of all shapes, with the bound for packets in pieces,
// which it has by hand, too. It is refused where the matrix has a zero off the diagonal.
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
		if got := algo.BoundCut(b.k, b.r, b.separate, b.p); got < b.want-1e-12 || got > b.want+1e-12 {
			t.Errorf("K=%d R=%d separate=%t p=%d: bound %v, want %v", b.k, b.r, b.separate, b.p, got, b.want)
		}
	}
	f := fieldtest.Parse(t, "257")
	for k, want := range map[int]float64{1: 0, 2: 2, 4: 2} {
		p := must(algo.NewProblem(matrixtest.Random(t, f, k, 1), 0, algo.Natural))(t)
		if got, _ := p.BoundCut(sim.Model{Network: sim.Network{Gap: 1, Slower: "0:0.5"}}); got != want {
			t.Errorf("K=%d, a link of half the rate: bound %v, want %v", k, got, want)
		}
	}
	for _, zero := range [][2]int{{0, 0}, {1, 1}, {2, 0}, {0, 1}, {3, 1}} {
		a := matrix.DenseFunc(f, 4, 2, func(i, j int) (e field.Element) {
			if zero != [2]int{i, j} {
				e = field.One
			}
			return e
		})
		for _, separate := range []bool{false, true} {
			p := &algo.Problem{Matrix: a, Separate: separate, Ports: 1}
			if c2, ok := p.BoundCut(sim.Model{}); ok != (zero[0] == zero[1] && !separate) || ok && c2 != 1 {
				t.Errorf("a zero at %v, separate=%t: bound %v %t", zero, separate, c2, ok)
			}
		}
	}
	x := tested{plans: map[string]int{}}
	for n, name := range []string{"random:7", "cauchy", "lagrange", "dft", "vandermonde", "lch", "rs:vandermonde"} {
		for _, k := range []int{1, 2, 4, 7, 9, 3, 8, 16, 24}[:verifyall.Pick(5, 9)] {
			for i, r := range []int{1, 3, k, 2 * k} {
				for _, separate := range []bool{false, true} {
					ports := 1 + 2*((n+i)%2)
					p := shaped(t, []string{"2^8", "257"}[(k+r)%2], must(matrices.ParseSpec(name))(t), k, r, separate, ports)
					if p != nil {
						p.Limits.Memory = 1 << 30 // so that other windows are made, too
						x.all(t, p, algo.Parts())
					}
				}
			}
		}
	}
	x.each(t, slices.DeleteFunc(algo.Parts(), func(a algo.Algorithm) bool { return a.Name == "sparse" }))
}

// structuredMatrices returns the matrices over f for k that have structure, by
// name; those that do not exist are left out.
func structuredMatrices(t testing.TB, f field.Field, k int) map[string]matrix.Matrix {
	t.Helper()
	list := map[string]matrix.Matrix{}
	for name, s := range map[string]matrices.Spec{
		"dft": {Family: "dft"}, "dft-reversed": {Family: "dft", Order: "reversed"}, "cauchy": {Family: "cauchy"}, "fti": {Family: "fti"},
		"vandermonde": {Family: "vandermonde"}, "vandermonde on powers": {Family: "vandermonde", Points: "powers"}, // in another arrangement
		"lagrange": {Family: "lagrange"}, "rs:vandermonde": {Family: "rs:vandermonde"}, "lch": {Family: "lch"},
	} {
		m, err := s.Build(f, k, k)
		if err != nil {
			continue
		}
		list[name] = m
		if name == "dft" {
			perm := rand.New(rand.NewPCG(5, uint64(k))).Perm(k)
			list["permuted dft"] = must(matrix.Columns(m, perm))(t)
			list["transposed dft"] = matrix.Transpose(list["permuted dft"])
		}
	}
	for name, m := range list {
		if !strings.HasPrefix(name, "inverse") {
			list["inverse "+name] = must(matrix.Inverse(t.Context(), m))(t)
		}
	}
	return list
}

// inProcess is the model of one process, in which messages are free.
var inProcess = sim.Model{
	Network: sim.Network{Latency: 1}, Gamma: sim.ProcessGamma, Bytes: 1 << 16, SymbolBytes: 1,
}

// structured checks every plan of every family that takes one of the matrices, in both orders, and that for packets that
// lie in one process.
func (x *tested) structured(t *testing.T, f field.Field, k, ports int) {
	t.Helper()
	for _, m := range structuredMatrices(t, f, k) {
		fact := must(matrix.Factor(t.Context(), m, nil))(t)
		if fact == nil {
			continue
		}
		orders := []algo.Order{algo.Natural, algo.AnyOrder}
		if fact.Natural(k) { // the same plans again
			orders = orders[:1]
		}
		for _, order := range orders {
			x.all(t, problem(t, m, clampPorts(k, ports), order), families())
			if ports == 1 {
				p := problem(t, m, 0, order)
				q := must(algo.Choose("layers", p, inProcess))(t)
				p.Ports = max(1, q.Info().Ports)
				checkPlan(t, p, lookup(t, "layers"), q)
			}
		}
	}
}

// TestStructuredTransferMatrix takes every K up to 16 over two fields, and a seeded sample of larger ones over others; with
// the tag verifyall every K up to 128 over all of them.
func TestStructuredTransferMatrix(t *testing.T) {
	x := tested{plans: map[string]int{}}
	t.Run("fields", func(t *testing.T) {
		names := []string{"2^8", "257", "2^4", "2^16", "97", "163", "goldilocks", "bls12-381"}
		for _, name := range names[:verifyall.Pick(2, 9)] {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for k := 1; k <= verifyall.Pick(16, 128); k++ {
					for ports := 1; ports <= clampPorts(k, 4); ports++ {
						x.structured(t, fieldtest.Parse(t, name), k, ports)
					}
				}
			})
		}
		t.Run("sample", func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(3, 3))
			for _, name := range names[2:] {
				for range 6 {
					x.structured(t, fieldtest.Parse(t, name), 1+rng.IntN(40), 1+rng.IntN(4))
				}
			}
			for _, c := range []struct {
				field string
				k     int
			}{{"257", 64}, {"97", 96}, {"2^16", 16}, {"2^8", 64}, {"163", 54}, {"goldilocks", 10}, {"goldilocks", 12}, {"goldilocks", 48}, {"257", 256}}[:verifyall.Pick(8, 9)] {
				x.structured(t, fieldtest.Parse(t, c.field), c.k, 1)
				x.structured(t, fieldtest.Parse(t, c.field), c.k, 3)
			}
		})
	})
	x.each(t, families())
}
