package algo_test

import (
	"fmt"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
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
	"volley/verify"
)

// primeField returns the smallest prime field of more than n elements whose q-1 is a multiple of k, and of none of the
// others.
func primeField(t *testing.T, n, k int, without ...int) field.Field {
	t.Helper()
	for q := k + 1; ; q += k {
		if q > 1<<24 {
			t.Fatalf("no prime q = 1 mod %d up to %d", k, q)
		}
		if q > n && big.NewInt(int64(q)).ProbablyPrime(0) && !slices.ContainsFunc(without, func(m int) bool { return (q-1)%m == 0 }) {
			return fieldtest.Parse(t, strconv.Itoa(q))
		}
	}
}

// built returns the matrix of a Spec for p ports.
func built(t *testing.T, s matrices.Spec, f field.Field, k, ports int) matrix.Matrix {
	t.Helper()
	m, err := s.ForPorts(ports).Build(f, k, k)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// only returns the one plan of an algorithm, once it is right.
func only(t *testing.T, name string, m matrix.Matrix, ports int) plan.Plan {
	t.Helper()
	p := must(algo.NewProblem(m, ports, algo.Natural))(t)
	plans := must(must(algo.Lookup(name))(t).Plans(p))(t)
	if len(plans) != 1 && !slices.Contains([]string{"folded-lagrange", "cauchy"}, name) {
		t.Errorf("%s for %s, K = %d, p = %d: %d plans", name, m.ID(), m.Rows(), ports, len(plans))
	}
	for _, q := range plans {
		if m.Rows() <= verifyall.Pick(256, 1024) {
			if err := verify.Check(t.Context(), q, m); err != nil {
				t.Errorf("%s for %s, K = %d, p = %d: %v", name, m.ID(), m.Rows(), ports, err)
			}
		}
	}
	return plans[0]
}

// inPaper checks that docs/paper.md has some words, however its lines break.
func inPaper(t *testing.T, words string) {
	t.Helper()
	text := strings.Join(strings.Fields(string(must(os.ReadFile("../docs/paper.md"))(t))), " ")
	if !strings.Contains(text, words) {
		t.Errorf("docs/paper.md lacks: %s", words)
	}
}

// TestTheorem2 has C1 = C2 = H for K = (p+1)^H, composite p+1 too, and results in reversed order: of a DFT, its inverse
// and its transpose; and what Theorems 3 and 4 say of M cosets of that many points.
func TestTheorem2(t *testing.T) {
	sizes := 0
	for ports := 1; ports <= 15; ports++ {
		for h, k := 1, ports+1; k <= 1024; h, k = h+1, k*(ports+1) {
			sizes++
			t.Run(fmt.Sprintf("p=%d/K=%d", ports, k), func(t *testing.T) {
				t.Parallel()
				equals := func(name string, m matrix.Matrix, c1, c2 int) {
					t.Helper()
					c := sim.Count(only(t, name, m, ports))
					if c.C1 != c1 || c.C2 != c2 {
						t.Errorf("%s for %s: %d/%d, want %d/%d", name, m.ID(), c.C1, c.C2, c1, c2)
					}
				}
				dft := matrices.Spec{Family: "dft", Order: "reversed"}
				m := built(t, dft, primeField(t, k, k), k, ports)
				equals("dft", m, h, h)
				equals("dft", matrix.Transpose(m), h, h)
				dft.Inverse = true
				equals("dft", built(t, dft, m.Field(), k, ports), h, h)

				most := 3
				if k > 256 {
					most = 1
				}
				for cosets := 1; cosets <= most; cosets++ {
					n := cosets * k
					if cosets == 2 && k%2 == 1 {
						continue // as q is odd, there is a subgroup of 2·k
					}
					var without []int
					for c := 2; c <= cosets; c++ { // no larger subgroup fits n
						if cosets%c == 0 {
							without = append(without, c*k)
						}
					}
					f := primeField(t, 2*n, k, without...)
					c1, c2 := universalCost(cosets, ports)
					vandermonde := matrices.Spec{Family: "vandermonde"}
					equals("draw-and-loose", built(t, vandermonde, f, n, ports), c1+h, c2+h)
					vandermonde.Inverse = true
					equals("draw-and-loose", built(t, vandermonde, f, n, ports), c1+h, c2+h)
					equals("lagrange", built(t, matrices.Spec{Family: "lagrange"}, f, n, ports), 2*c1+2*h, 2*c2+2*h)
				}
			})
		}
	}
	inPaper(t, fmt.Sprintf("for p = 1, …, 15: each of the %d K = (p+1)^H up to 1,024 takes H rounds and H packets", sizes))
}

// TestPaperArithmetic has the multiply-adds of a DFT that sends each packet to p others, who multiply it: p+1 a round.
func TestPaperArithmetic(t *testing.T) {
	for _, c := range []struct{ k, ports, want int }{{64, 1, 12}, {64, 3, 12}, {256, 3, 16}, {256, 15, 32}, {81, 2, 12}} {
		m := built(t, matrices.Spec{Family: "dft", Order: "reversed"}, primeField(t, c.k, c.k), c.k, c.ports)
		if got := sim.Count(only(t, "dft", m, c.ports)).C3; got != c.want {
			t.Errorf("K = %d, p = %d: C3 = %d, want %d", c.k, c.ports, got, c.want)
		}
	}
}

// TestNamedRadices names factorisations of K, in every order.
func TestNamedRadices(t *testing.T) {
	f := fieldtest.Parse(t, "433")
	for _, c := range []struct {
		name string
		spec matrices.Spec
		k    int
		list [][]int
	}{
		{"dft", matrices.Spec{Family: "dft"}, 36, orderedFactorisations(36)},
		{"dft", matrices.Spec{Family: "dft", Order: "reversed", Inverse: true}, 24, orderedFactorisations(24)},
		{"draw-and-loose", matrices.Spec{Family: "vandermonde"}, 36, orderedFactorisations(36)},
		{"lagrange", matrices.Spec{Family: "lagrange"}, 36, [][]int{{6, 6, 6, 6}, {4, 9, 9, 4}, {2, 18, 18, 2}, {3, 2, 6, 6, 6}, {36, 36}}},
		{"folded-lagrange", matrices.Spec{Family: "lagrange"}, 36, [][]int{{6, 6, 6}, {2, 18, 2}, {3, 12, 3}, {2, 3, 6, 3, 2}, {9, 4, 9}}},
		{"cauchy", matrices.Spec{Family: "cauchy", Omega: "coset", Alpha: "coset"}, 36, [][]int{{6, 6, 6}, {3, 12, 3}}},
	} {
		for _, list := range c.list {
			name := c.name
			for i, r := range list {
				name += fmt.Sprintf("%c%d", ":,"[min(i, 1)], r)
			}
			for _, ports := range []int{1, 5} {
				m := built(t, c.spec, f, c.k, ports)
				a, err := algo.Lookup(name)
				if err != nil {
					t.Fatal(err)
				}
				q, err := a.Compile(m, ports)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if err := verify.Check(t.Context(), q, m); err != nil {
					t.Errorf("%s, p = %d: %v", name, ports, err)
				}
				if got := q.Info().Name(); got != name {
					t.Errorf("%s is called %s", name, got)
				}
			}
		}
	}
	for _, name := range []string{"dft:5,7", "dft:6,6,6", "dft:6", "dft:6,6/6,6", "lagrange:6,6"} {
		family := "dft"
		if name == "lagrange:6,6" {
			family = "lagrange"
		}
		if q, err := must(algo.Lookup(name))(t).Compile(built(t, matrices.Spec{Family: family}, f, 36, 1), 1); err == nil {
			t.Errorf("%s: %s", name, q.Info().Parameters)
		}
	}
}

// orderedFactorisations returns the lists of numbers of 2 and more whose product is n.
func orderedFactorisations(n int) (all [][]int) {
	for r := 2; r < n; r++ {
		if n%r == 0 {
			for _, rest := range orderedFactorisations(n / r) {
				all = append(all, append([]int{r}, rest...))
			}
		}
	}
	return append(all, []int{n})
}

// TestNoneBeatsChosen compares what is chosen in the paper's model with every plan of every algorithm: none has C1, C2,
// C3 and memory at most as large, and one of them less.
func TestNoneBeatsChosen(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	names := []string{"random:1 over 2^8", "cauchy over 2^8", "dft, reversed, over the smallest prime field"}
	problems, beaten := make([]int, len(names)), make([]int, len(names))
	defer func() {
		for i, name := range names {
			inPaper(t, fmt.Sprintf("with %s in %d of %d problems", name, beaten[i], problems[i]))
		}
	}()
	for k := 2; k <= 64; k++ {
		for ports := 1; ports <= 4; ports++ {
			list := []matrix.Matrix{matrixtest.Random(t, f, k, 1), must(matrix.Cauchy(f, k, k))(t)}
			list = append(list, built(t, matrices.Spec{Family: "dft", Order: "reversed"}, primeField(t, k, k), k, ports))
			for i, m := range list {
				problems[i]++
				p := must(algo.NewProblem(m, ports, algo.Natural))(t)
				p.WholePackets = true
				model := sim.Model{Beta: 1000, Tau: 1, Bytes: 1 << 10, SymbolBytes: 1}
				chosen := p.Evaluate(must(algo.Choose(algo.Auto, p, model))(t), model)
				p.Limits.Memory = 1 << 30 // so that other windows are made, too
				list, _ := algo.Candidates(p, model)
				for _, c := range list {
					x, y := []int{c.Cost.C1, c.Cost.C2, c.Cost.C3, c.Memory}, []int{chosen.Cost.C1, chosen.Cost.C2, chosen.Cost.C3, chosen.Memory}
					if c.Broken == "" && !slices.Equal(x, y) && !slices.ContainsFunc([]int{0, 1, 2, 3}, func(i int) bool { return x[i] > y[i] }) {
						beaten[i]++
						t.Errorf("%s, K = %d, p = %d: %s has %v, and %s %v", m.ID(), k, ports, chosen.Plan.Info().Name(), y, c.Plan.Info().Name(), x)
					}
				}
			}
		}
	}
}
