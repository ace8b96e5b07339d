package conditional

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"volley/algo"
	"volley/algo/algotest"
	"volley/algo/schedule"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
	"volley/verify"
)

// allTreeShapes returns the shapes for so many processors whether or not they pay.
func allTreeShapes(size, ports int) []treeShape {
	var list []treeShape
	for cosets := 2; cosets <= size/3; cosets++ {
		if size%cosets > 0 {
			continue
		}
		z := size / cosets
		for h := 2; h <= z; h++ {
			for m := (z + h - 1) / h; m < z && m*(h-1) < z; m++ {
				if n := (z + m + h - 2) / (m + h - 1); n*m <= z {
					list = append(list, treeShape{size: size, ports: ports, cosets: cosets, m: m, h: h, n: n})
				}
			}
		}
	}
	return list
}

// treeLiftPlan returns the plan of a shape for a matrix, and nil where it is singular.
func treeLiftPlan(shape treeShape, a matrix.Matrix) plan.Plan {
	for system := range shape.systems {
		s := &treeLift{system.treeShape, newTreeCoding(system, a, nil)}
		if _, ok := s.coding.singular(new(algo.Problem)); !ok {
			return schedule.Compile(plan.Info{Algorithm: "tree-lift", Field: a.Field(), Processors: a.Rows(), Ports: shape.ports}, schedule.Whole(s, a.Rows(), a.At))
		}
	}
	return nil
}

// TestTreeLift compares plans of a seeded sample of shapes with the matrix.
func TestTreeLift(t *testing.T) {
	for _, name := range []string{"2^8", "257", "goldilocks", "2^4"} {
		for _, k := range []int{12, 24, 35, 48, 60, 72, 96} {
			t.Run(fmt.Sprintf("K=%d over %s", k, name), func(t *testing.T) {
				t.Parallel()
				f := fieldtest.Parse(t, name)
				rng := rand.New(rand.NewPCG(uint64(k), 2))
				for ports := 1; ports <= 4; ports++ {
					shapes := allTreeShapes(k, ports)
					checked, random := 0, 0
					for _, n := range rng.Perm(len(shapes)) {
						a := algotest.Random(t, f, k, uint64(n))
						if name == "2^8" {
							a = algotest.Cauchy(t, f, k)
						}
						p := treeLiftPlan(shapes[n], a)
						if random++; random == 40 {
							break
						}
						if p == nil {
							continue
						}
						if err := verify.Check(t.Context(), p, a); err != nil {
							t.Fatalf("p=%d, %v: %v", ports, shapes[n], err)
						}
						checkLiftedClasses(t, p)
						if checked++; checked == 4 {
							break
						}
					}
					if checked == 0 {
						t.Errorf("p=%d: no plan of %d shapes was checked", ports, len(shapes))
					}
				}
			})
		}
	}
}

// TestTreeLiftCost compares counted costs with the formulas, for all shapes of up to 100
// processors and of some more.
func TestTreeLiftCost(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	up := func(a, b int) int { return (a + b - 1) / b }
	for k := 6; k <= 132; k++ {
		if k > 100 && k%16 > 0 {
			continue
		}
		for ports := 1; ports <= 4; ports++ {
			for _, s := range allTreeShapes(k, ports) {
				s.stride = s.m
				p := schedule.Compile(plan.Info{Field: f, Processors: k, Ports: ports}, schedule.Whole(&treeLift{s, nil}, k, nil))
				got := sim.Count(p)
				least := sim.Cost{
					C1: schedule.Clog(s.m, ports) + schedule.Clog(s.h, ports) + schedule.Clog(s.cosets, ports) + schedule.Clog(s.n, ports),
					C2: up(s.m-1, ports) + up(s.h-1, ports) + up(s.n*(s.cosets-1), ports),
				}
				if got.C1 != least.C1 || got.C2 != s.cost().C2 || got.C2 < least.C2 || ports == 1 && got.C2 > least.C2 {
					t.Fatalf("K=%d p=%d, %v: counted %d/%d, formula %v, at least %v", k, ports, s, got.C1, got.C2, s.cost(), least)
				}
			}
		}
	}
}

// TestTreeShapes compares the front of the shapes that are tried with that of all there
// are.
func TestTreeShapes(t *testing.T) {
	ofCost := func(s treeShape) sim.Cost { return s.cost() }
	for k := 4; k <= 200; k++ {
		for ports := 1; ports <= 3; ports++ {
			var pay []treeShape
			for _, s := range allTreeShapes(k, ports) {
				if c := s.cost(); c.C2 < universalC2(k, ports, c.C1) {
					pay = append(pay, s)
				}
			}
			list := treeShapes(k, ports, -1)
			for i, s := range list {
				c := s.cost()
				if c.C2 >= universalC2(k, ports, c.C1) || s.m*s.h < s.cells() || s.n*(s.m+s.h-1) < s.cells() || s.n*s.m > s.cells() {
					t.Fatalf("K=%d p=%d: %v of %v is no shape that pays", k, ports, s, c)
				}
				if i > 0 && list[i-1].cost().C2 > c.C2 {
					t.Fatalf("K=%d p=%d: %v before %v", k, ports, list[i-1].cost(), c)
				}
			}
			var got, want []pair
			for _, s := range sim.Front(list, ofCost) {
				got = append(got, pairOf(s.cost()))
			}
			for _, s := range sim.Front(pay, ofCost) {
				want = append(want, pairOf(s.cost()))
			}
			if !slices.Equal(got, want) {
				t.Errorf("K=%d p=%d: %v, want %v", k, ports, got, want)
			}
			if len(want) > 0 { // as many rounds as allowed
				for _, s := range treeShapes(k, ports, want[0].C1) {
					if s.cost().C1 > want[0].C1 {
						t.Fatalf("K=%d p=%d: %v, and %d rounds are allowed", k, ports, s.cost(), want[0].C1)
					}
				}
			}
		}
	}
}

// liftFront lists C1/C2 of plans.
func liftFront(plans []plan.Plan) string {
	var list []string
	for _, p := range plans {
		c := sim.Count(p)
		list = append(list, fmt.Sprintf("%d/%d", c.C1, c.C2))
	}
	return strings.Join(list, " ")
}

// TestTreeLiftPlans checks which plans there are for a problem.
func TestTreeLiftPlans(t *testing.T) {
	for _, c := range []struct {
		field       string
		k           int
		ports, over int
		want        string
	}{
		{"2^8", 60, 1, -1, "8/13 9/12"}, // universal has 6/14
		{"2^8", 96, 1, -1, "9/16"},      // 7/18
		{"2^8", 112, 1, 2, "9/17"},      // 7/20
		{"2^16", 200, 1, -1, "10/25 11/24"},
		{"2^16", 200, 1, 2, "10/25"},
		{"2^16", 300, 1, -1, "11/30 12/29"}, // 9/33
		{"2^16", 480, 1, 3, "12/37"},        // 9/44
		{"2^16", 600, 1, 4, "12/45 13/43 14/42"},
	} {
		t.Run(fmt.Sprintf("K=%d over %s", c.k, c.field), func(t *testing.T) {
			t.Parallel()
			a := algotest.Cauchy(t, fieldtest.Parse(t, c.field), c.k)
			plans := liftPlans(t, TreeLift, a, c.ports, c.over)
			if got := liftFront(plans); got != c.want {
				t.Errorf("K=%d: %s, want %s", c.k, got, c.want)
			}
			for _, p := range plans {
				if c.k <= 200 {
					if err := verify.Check(t.Context(), p, a); err != nil {
						t.Error(err)
					}
				} else {
					checkLiftedRandom(t, p, a, 4)
				}
			}
		})
	}
}

// TestTreeLiftRelabelled checks plans for matrices that are singular in natural order,
// and that they do not depend on chance.
func TestTreeLiftRelabelled(t *testing.T) {
	f := fieldtest.Parse(t, "2^4")
	relabelled := 0
	for seed := range uint64(20) {
		a := algotest.Random(t, f, 112, seed)
		problem, err := algo.NewProblem(a, 1, algo.Natural)
		if err != nil {
			t.Fatal(err)
		}
		plans, err := TreeLift(problem)
		if err != nil {
			continue
		}
		for n, p := range plans {
			again := liftPlans(t, TreeLift, a, 1, -1)[n]
			if p.Info().Parameters != again.Info().Parameters {
				t.Errorf("seed %d: %s, then %s", seed, p.Info().Parameters, again.Info().Parameters)
			}
			if !strings.HasSuffix(p.Info().Parameters, "relabelled") {
				continue
			}
			if relabelled++; relabelled > 3 {
				return
			}
			if err := verify.Check(t.Context(), p, a); err != nil {
				t.Errorf("seed %d, %s: %v", seed, p.Info().Parameters, err)
			}
		}
	}
	if relabelled == 0 {
		t.Error("no plan was relabelled")
	}
}

// TestTreeLiftRefusals checks that every refusal says why.
func TestTreeLiftRefusals(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, c := range []struct {
		a    matrix.Matrix
		over int
		want string
	}{
		{algotest.Cauchy(t, f, 113), -1, "for no K = R·Z"},
		{algotest.Cauchy(t, f, 112), 1, "for no K = R·Z are there parameters within the limits"},
		{matrix.NewDense(f, 112, 112), -1, "the equations of processor 0 depend on one another for R=2 m=8 h=7 n=4 stride=14"},
		{identity(f, 112), -1, "the equations of processor 0 depend on one another"},
		{algotest.Random(t, fieldtest.Parse(t, "2"), 112, 1), -1, "depend on one another"},
		{identity(f, 20000), -1, "more than 16384 processors"},
		{matrix.NewDense(f, 112, 100), -1, "112 sources and 100 sinks"},
	} {
		p := &algo.Problem{Matrix: c.a, Ports: 1, Limits: algo.Limits{Rounds: algo.FewestPlus(c.over)}}
		if err := p.Prepare(); err != nil {
			t.Fatal(err)
		}
		_, err := TreeLift(p)
		if !errors.Is(err, schedule.ErrStructure) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("K=%d: %v, want an ErrStructure with %q", c.a.Rows(), err, c.want)
		}
	}
}

// TestTreeLiftOnDemand makes one program, for which it solves n systems of all K.
func TestTreeLiftOnDemand(t *testing.T) {
	f := fieldtest.Parse(t, "2^16")
	const k = 600
	asked := 0
	a := askedMatrix{algotest.Cauchy(t, f, k), &asked}
	for system := range (treeShape{size: k, ports: 1, cosets: 4, m: 17, h: 9, n: 6}).systems {
		s := &treeLift{system.treeShape, newTreeCoding(system, a, nil)}
		p := schedule.Compile(plan.Info{Algorithm: "tree-lift", Field: f, Processors: k, Ports: 1}, schedule.Whole(s, k, a.At))
		if _, err := p.Program(123); err != nil {
			t.Fatal(err)
		}
		on := 0
		for _, list := range system.on {
			on += len(list) + s.cosets - 1
		}
		if most := s.n*s.cosets*on + s.h*s.m; asked > most {
			t.Errorf("looks at %d entries, at most %d", asked, most)
		}
		break
	}
	if asked == 0 {
		t.Error("no system was tried")
	}
}
