package algo_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"volley/algo"
	"volley/algo/schedule"
	"volley/field"
	_ "volley/field/curves"
	"volley/field/fieldtest"
	"volley/internal/verifyall"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/plan"
	"volley/sim"
	"volley/verify"
)

// structuredMatrices returns the matrices over f for k that have structure, by
// name; those that do not exist are left out.
func structuredMatrices(t testing.TB, f field.Field, k int) map[string]matrix.Matrix {
	t.Helper()
	list := map[string]matrix.Matrix{}
	add := func(name string, m matrix.Matrix, err error) {
		if err != nil {
			return
		}
		list[name] = m
		inv, err := matrix.Inverse(t.Context(), m)
		if err != nil {
			t.Fatalf("%s over %s, K=%d: %v", name, f.Name(), k, err)
		}
		list["inverse "+name] = inv
	}
	m, err := matrix.DFT(f, k)
	add("dft", m, err)
	m, err = matrix.DFTReversed(f, k, nil)
	add("dft-reversed", m, err)
	if p, err := matrix.CosetPoints(f, k); err == nil {
		add("vandermonde", matrix.Vandermonde(p, 0), nil)
		for first := 1; first <= k; first++ {
			if alpha, err := matrix.ShiftedCosetPoints(f, k, first); err == nil {
				m, err := matrix.Lagrange(p, alpha)
				add("lagrange", m, err)
				break
			}
		}
	}
	m, err = matrix.Cauchy(f, k, k)
	add("cauchy", m, err)
	m, err = matrix.FTI(f, k)
	add("fti", m, err)
	m, err = matrix.ReedSolomonVandermonde(f, k, k)
	add("rs:vandermonde", m, err)
	if m, err := (matrices.Spec{Family: "vandermonde", Points: "powers"}).Build(f, k, k); err == nil { // structure in another arrangement
		add("vandermonde on powers", m, nil)
	}
	m, err = matrix.LCH(f, k, k)
	add("lch", m, err)
	return list
}

// inProcess is the model of one process, in which messages are free.
var inProcess = sim.Model{
	Network: sim.Network{Latency: 1}, Gamma: sim.ProcessGamma, Bytes: 1 << 16, SymbolBytes: 1,
}

// families are the algorithms for families of matrices.
var families = []string{"dft", "draw-and-loose", "lagrange", "folded-lagrange", "cauchy", "additive-fft"}

// checkStructured verifies every plan of every family that takes one of the
// matrices, in both orders, and that the costs counted from classes are those of
// all processors. It returns how many plans there were of each algorithm.
func checkStructured(t *testing.T, f field.Field, k, ports int, plans map[string]int) {
	t.Helper()
	for what, m := range structuredMatrices(t, f, k) {
		for _, order := range []algo.Order{algo.Natural, algo.AnyOrder} {
			if fact := must(matrix.Factor(t.Context(), m, nil))(t); order == algo.AnyOrder && (fact == nil || fact.Natural(k)) {
				continue // the same plans again
			}
			p := problem(t, m, ports, order)
			for _, name := range families {
				list, err := lookup(t, name).Plans(p)
				if err != nil {
					continue
				}
				if ports == 1 { // and that for packets that lie in one process
					list = append(list, must(algo.Choose(name, problem(t, m, 0, order), inProcess))(t))
				}
				for _, q := range list {
					info := q.Info()
					what := fmt.Sprintf("%s over %s, K=%d p=%d, order %v: %s %s", what, f.Name(), k, ports, order, info.Algorithm, info.Parameters)
					if order == algo.Natural {
						for proc := range k {
							if q.Column(proc, 0) != proc {
								t.Fatalf("%s: processor %d has column %d", what, proc, q.Column(proc, 0))
							}
						}
					}
					if err := verify.Check(t.Context(), q, m); err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					if k <= 40 {
						all, err := plan.Materialize(q)
						if err != nil {
							t.Fatalf("%s: %v", what, err)
						}
						if got, want := traffic(q), traffic(all); !reflect.DeepEqual(got, want) {
							t.Fatalf("%s: %+v from classes, %+v from all", what, got, want)
						}
					}
					plans[name]++
				}
			}
		}
	}
}

// TestStructuredTransferMatrix takes every K up to 40 over two fields, and a seeded
// sample of what verify-all checks whole.
func TestStructuredTransferMatrix(t *testing.T) {
	var mu sync.Mutex
	plans := map[string]int{}
	check := func(t *testing.T, f field.Field, k, ports int) {
		count := map[string]int{}
		checkStructured(t, f, k, max(1, min(ports, k-1)), count)
		mu.Lock()
		defer mu.Unlock()
		for name, n := range count {
			plans[name] += n
		}
	}
	t.Run("fields", func(t *testing.T) {
		for _, name := range []string{"2^8", "257"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for k := 1; k <= verifyall.Pick(16, 40); k++ {
					for ports := 1; ports <= max(1, min(4, k-1)); ports++ {
						check(t, fieldtest.Parse(t, name), k, ports)
					}
				}
			})
		}
		t.Run("sample", func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(3, 3))
			for _, name := range []string{"2^4", "2^16", "97", "163", "3^4", "goldilocks", "bls12-381"} {
				f := fieldtest.Parse(t, name)
				for range 6 {
					check(t, f, 1+rng.IntN(40), 1+rng.IntN(4))
				}
			}
			for _, c := range []struct {
				field string
				k     int
			}{{"257", 64}, {"97", 96}, {"2^16", 16}, {"2^8", 64}, {"163", 54}} {
				check(t, fieldtest.Parse(t, c.field), c.k, 1)
				check(t, fieldtest.Parse(t, c.field), c.k, 3)
			}
		})
	})
	for _, name := range families {
		if plans[name] == 0 {
			t.Errorf("no plan of %s was checked", name)
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
		f := fieldtest.Parse(t, "2^8")
		m := must(matrices.Spec{Family: c.matrix}.Build(f, c.k, c.k))(t)
		q := must(algo.Choose(algo.Auto, problem(t, m, 0, algo.Natural), inProcess))(t)
		if got := sim.Count(q).C3; got != c.c3 {
			t.Errorf("%s, K=%d: %s %s, C3 = %d, want %d", c.matrix, c.k, q.Info().Algorithm, q.Info().Parameters, got, c.c3)
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

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
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
		{"257", 128, [3]string{"7/22 8/16 9/14 10/12", "5/11 6/10 7/8", "4/7 5/6"}},
		{"7681", 256, [3]string{"8/30 9/24 10/18 11/16 12/14", "6/16 7/13 8/9", "4/10 5/8 6/6"}},
		{"163", 81, [3]string{"7/17 8/16 9/13 12/12", "4/8 5/7 6/6", "4/6 5/5"}},
	} {
		f := fieldtest.Parse(t, c.field)
		omega := must(matrix.CosetPoints(f, c.k))(t)
		first := c.k // as many cosets further as there are at most
		for first > 1 {
			if _, err := matrix.ShiftedCosetPoints(f, c.k, first); err == nil {
				break
			}
			first--
		}
		m := must(matrix.Lagrange(omega, must(matrix.ShiftedCosetPoints(f, c.k, first))(t)))(t)
		for i, want := range c.want {
			p := problem(t, m, i+1, algo.Natural)
			plans := append(must(lookup(t, "universal").Plans(p))(t), must(lookup(t, "folded-lagrange").Plans(p))(t)...)
			if got := front(schedule.Undominated(t.Context(), plans)); got != want {
				t.Errorf("K=%d p=%d: %s, want %s", c.k, i+1, got, want)
			}
		}
	}
}

// TestStructuredCosts compares counted costs with the closed formulas.
func TestStructuredCosts(t *testing.T) {
	psi := func(n, ports int) (int, int) {
		c := count(t, fieldtest.Parse(t, "2^8"), "universal", n, ports)
		return c.C1, c.C2
	}
	has := func(m matrix.Matrix, algorithm string, ports, c1, c2 int) {
		t.Helper()
		plans, err := lookup(t, algorithm).Plans(problem(t, m, ports, algo.Natural))
		if err != nil {
			t.Errorf("%s: %v", m.ID(), err)
			return
		}
		if !slices.ContainsFunc(plans, func(p plan.Plan) bool {
			c := sim.Count(p)
			return c.C1 <= c1 && c.C2 <= c2
		}) {
			t.Errorf("%s over %s, K=%d p=%d: %s has %s, want %d/%d", m.ID(), m.Field().Name(), m.Rows(), ports, algorithm, front(plans), c1, c2)
		}
	}
	q257, q97, q163 := fieldtest.Parse(t, "257"), fieldtest.Parse(t, "97"), fieldtest.Parse(t, "163")
	// A DFT of K = (p+1)^H takes H/H, inverse too, and one more in natural order.
	for _, c := range []struct{ k, ports, h int }{{256, 1, 8}, {256, 3, 4}, {256, 15, 2}, {64, 1, 6}, {64, 3, 3}, {16, 1, 4}, {4, 1, 2}} {
		if c.k > verifyall.Pick(64, 256) {
			continue
		}
		m := must(matrix.DFTReversed(q257, c.k, nil))(t)
		has(m, "dft", c.ports, c.h, c.h)
		has(must(matrix.Inverse(t.Context(), m))(t), "dft", c.ports, c.h, c.h)
		natural := must(matrix.DFT(q257, c.k))(t)
		has(natural, "dft", c.ports, c.h+1, c.h+1)
		has(must(matrix.Inverse(t.Context(), natural))(t), "dft", c.ports, c.h+1, c.h+1)
	}
	has(must(matrix.DFTReversed(q163, 81, nil))(t), "dft", 2, 4, 4)
	// Mixed radices.
	for _, c := range []struct{ k, ports, c1, c2 int }{{48, 1, 6, 6}, {48, 2, 4, 4}, {96, 1, 7, 7}} {
		has(must(matrix.DFTReversed(q97, c.k, nil))(t), "dft", c.ports, c.c1, c.c2)
	}
	q61 := fieldtest.Parse(t, "61")
	for _, c := range []struct{ ports, c1, c2 int }{{1, 7, 7}, {2, 5, 5}, {4, 3, 3}} {
		has(must(matrix.DFTReversed(q61, 60, nil))(t), "dft", c.ports, c.c1, c.c2)
	}
	b8 := fieldtest.Parse(t, "2^8")
	for _, c := range []struct{ k, ports, c1, c2 int }{{15, 1, 5, 5}, {15, 2, 3, 3}, {51, 2, 4, 5}} {
		has(must(matrix.DFTReversed(b8, c.k, nil))(t), "dft", c.ports, c.c1, c.c2)
	}
	for h, want := range []int{4: 3, 5: 4, 6: 4, 7: 5, 8: 6} { // K = 2^H, p = 2
		if want > 0 {
			has(must(matrix.DFTReversed(q257, 1<<h, nil))(t), "dft", 2, want, want)
		}
	}
	// Vandermonde: clog(M)+H, Psi(M)+H. K = 48 over 97 has M = 1.
	has(matrix.Vandermonde(must(matrix.CosetPoints(q97, 48))(t), 0), "draw-and-loose", 1, 6, 6)
	for _, m := range []int{3, 5, 6, 7, 12} {
		for h := 1; h <= 3; h++ {
			k := m << h
			points := must(matrix.CosetPoints(q257, k))(t)
			for z := k; z%2 == 0; z /= 2 { // m may be even
				h = max(h, bitsOf(k))
			}
			c1, c2 := psi(k>>bitsOf(k), 1)
			has(matrix.Vandermonde(points, 0), "draw-and-loose", 1, c1+bitsOf(k), c2+bitsOf(k))
			has(must(matrix.Inverse(t.Context(), matrix.Vandermonde(points, 0)))(t), "draw-and-loose", 1, c1+bitsOf(k), c2+bitsOf(k))
		}
	}
	// Plain Lagrange: twice that.
	for _, k := range []int{8, 24, 40, 64} {
		m := must(matrix.Lagrange(must(matrix.CosetPoints(q257, k))(t), must(matrix.ShiftedCosetPoints(q257, k, k>>bitsOf(k)))(t)))(t)
		c1, c2 := psi(k>>bitsOf(k), 1)
		has(m, "lagrange", 1, 2*(c1+bitsOf(k)), 2*(c2+bitsOf(k)))
	}
	// Additive FFT and what is built on it.
	for _, k := range []int{8, 12, 20, 24, 64} {
		h := bitsOf(k)
		c1, c2 := psi(k>>h, 1)
		m := must(matrix.LCH(b8, k, k))(t)
		has(m, "additive-fft", 1, h+c1, h+c2)
		has(must(matrix.Inverse(t.Context(), m))(t), "additive-fft", 1, h+c1, h+c2)
	}
	has(must(matrix.LCH(b8, 64, 64))(t), "additive-fft", 3, 3, 3)
	cauchy := must(matrix.Cauchy(b8, 64, 64))(t)
	for _, c := range [][2]int{{7, 12}, {8, 10}} {
		has(cauchy, "cauchy", 1, c[0], c[1])
	}
}

// bitsOf returns the exponent of 2 in k.
func bitsOf(k int) int {
	h := 0
	for ; k%2 == 0; k /= 2 {
		h++
	}
	return h
}

// TestPermutedDFT checks all plans of a DFT matrix with its columns in some other order, of
// its transpose and of its inverse.
func TestPermutedDFT(t *testing.T) {
	f := fieldtest.Parse(t, "goldilocks")
	rng := rand.New(rand.NewPCG(5, 6))
	for _, k := range []int{4, 6, 8, 12, 16} {
		for range 5 {
			m := must(matrix.Columns(must(matrix.DFT(f, k))(t), rng.Perm(k)))(t)
			for _, m := range []matrix.Matrix{m, matrix.Transpose(m), must(matrix.Inverse(t.Context(), m))(t), must(matrix.Columns(m, rng.Perm(k)))(t)} {
				for _, ports := range []int{1, 2} {
					p := must(algo.NewProblem(m, ports, algo.Natural))(t)
					list, _ := algo.Candidates(p, sim.Model{})
					for _, c := range list {
						if c.Cost.Pieces > 1 {
							continue // whose matrix is one of pieces
						}
						if err := verify.Check(t.Context(), c.Plan, m); err != nil {
							t.Errorf("K=%d p=%d, %s: %s %s: %v", k, ports, m.ID(), c.Plan.Info().Algorithm, c.Plan.Info().Parameters, err)
						}
					}
				}
			}
		}
	}
}

// TestStructuredClasses compares what is counted from classes of processors with what all
// of them do, for plans that permute results and that do not.
func TestStructuredClasses(t *testing.T) {
	f := fieldtest.Parse(t, "goldilocks")
	for _, k := range []int{8, 10, 12, 32, 48} {
		m := must(matrix.DFT(f, k))(t)
		for _, m := range []matrix.Matrix{m, must(matrix.Columns(m, rand.New(rand.NewPCG(1, uint64(k))).Perm(k)))(t), must(matrix.DFTReversed(f, k, nil))(t)} {
			p := must(algo.NewProblem(m, 1, algo.Natural))(t)
			list, _ := algo.Candidates(p, sim.Model{})
			for _, c := range list {
				all := must(plan.Materialize(c.Plan))(t)
				if got, want := sim.Count(c.Plan), sim.Count(all); !reflect.DeepEqual(got.Rounds, want.Rounds) {
					t.Errorf("K=%d, %s %s: %+v from classes, %+v from all", k, c.Plan.Info().Algorithm, c.Plan.Info().Parameters, got.Rounds, want.Rounds)
				}
			}
		}
	}
}
