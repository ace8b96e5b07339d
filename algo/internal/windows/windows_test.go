package windows

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"volley/algo/schedule"
	"volley/field"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrixtest"
	"volley/plan"
	"volley/sim"
	"volley/verify"
)

// plansOf returns the plans for a matrix; none of them is hopeless.
func plansOf(a matrix.Matrix, ports, over int) ([]plan.Plan, error) {
	task := schedule.Task{Matrix: a, Ports: max(1, min(ports, a.Rows()-1))}
	return Plans(task, over, func(sim.Cost) bool { return false })
}

// checkWindows verifies a plan, and that its costs counted from classes are those of all
// processors and of the formula.
func checkWindows(t *testing.T, q plan.Plan, a matrix.Matrix) {
	t.Helper()
	info := q.Info()
	what := fmt.Sprintf("K=%d p=%d over %s, %s", info.Processors, info.Ports, info.Field.Name(), info.Parameters)
	if err := verify.Check(t.Context(), q, a); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for proc := range info.Processors {
		if q.Column(proc, 0) != proc || q.Row(proc, 0) != proc {
			t.Fatalf("%s: processor %d has row %d and column %d", what, proc, q.Row(proc, 0), q.Column(proc, 0))
		}
	}
	var w shape
	if _, err := fmt.Sscanf(info.Parameters, "B=%d m=%d c=%d", &w.extra, &w.m, &w.c); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	got, want := sim.Count(q), w.cost(info.Ports)
	if least, known := schedule.Least(q); !known || !slices.Equal(least.Nodes, got.Nodes) {
		t.Errorf("%s: counted %v, known was %v", what, got.Nodes, least.Nodes)
	}
	if got.C1 != want.C1 || got.C2 != want.C2 {
		t.Errorf("%s: counted %d/%d, formula %d/%d", what, got.C1, got.C2, want.C1, want.C2)
	}
	if c2 := universalC2(info.Processors, info.Ports, got.C1-schedule.Clog(info.Processors, info.Ports)); got.C2 >= c2 {
		t.Errorf("%s: C2 = %d, universal has %d", what, got.C2, c2)
	}
	if info.Processors > 128 {
		return
	}
	all, err := plan.Materialize(q)
	if err != nil {
		t.Fatal(err)
	}
	each := sim.Count(all)
	if got.C1 != each.C1 || got.C2 != each.C2 || got.C3 < each.C3 {
		t.Errorf("%s: %+v from classes, %+v from all", what, got, each)
	}
}

// TestWindows checks all plans for Cauchy matrices, for which the processors stay as they
// are, up to K = 60, and samples of larger ones.
func TestWindows(t *testing.T) {
	for ports := 1; ports <= 4; ports++ {
		t.Run(fmt.Sprint("p=", ports), func(t *testing.T) {
			t.Parallel()
			for k := ports + 1; k <= 60; k++ {
				a := matrixtest.Cauchy(t, fieldtest.Parse(t, "2^8"), k)
				checked := map[string]bool{}
				for _, over := range []int{0, 1, 2, 3, 4, -1} {
					plans, err := plansOf(a, ports, over)
					if got, want := len(plans), len(front(k, ports, over)); got != want || (err == nil) != (want > 0) {
						t.Fatalf("K=%d p=%d: %d plans and %v, want %d", k, ports, got, err, want)
					}
					for i, q := range plans {
						parameters := q.Info().Parameters
						if c := sim.Count(q); i > 0 && sim.Count(plans[i-1]).C2 <= c.C2 || over >= 0 && c.C1 > schedule.Clog(k, ports)+over || strings.Contains(parameters, "relabelled") {
							t.Errorf("K=%d p=%d: plan %d of %d has %d/%d, %s", k, ports, i, len(plans), c.C1, c.C2, parameters)
						}
						if !checked[parameters] {
							checked[parameters] = true
							checkWindows(t, q, a)
						}
					}
				}
			}
			for _, c := range []struct {
				field string
				k     int
			}{{"2^8", 64}, {"2^8", 75}, {"2^8", 100}, {"2^8", 127}, {"1009", 110}, {"1009", 144}, {"2^16", 195}, {"2^16", 600}} {
				if c.k > 300 && ports%3 != 1 {
					continue
				}
				a := matrixtest.Cauchy(t, fieldtest.Parse(t, c.field), c.k)
				plans, err := plansOf(a, ports, -1)
				if err == nil {
					checkWindows(t, plans[c.k%len(plans)], a)
				}
			}
		})
	}
}

// TestWindowsRandom checks plans for random matrices: where pivots are zero, with the
// processors in another order.
func TestWindowsRandom(t *testing.T) {
	for _, name := range []string{"257", "2^8", "31"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			relabelled, none := 0, 0
			for k := 7; k <= 60; k++ {
				for ports := 1; ports <= 4 && len(front(k, ports, 2)) > 0; ports++ {
					a := matrixtest.Random(t, fieldtest.Parse(t, name), k, uint64(100*k+ports))
					plans, err := plansOf(a, ports, 2)
					if err != nil {
						if !errors.Is(err, schedule.ErrStructure) || !strings.Contains(err.Error(), "is zero") {
							t.Fatalf("K=%d p=%d: %v", k, ports, err)
						}
						none++
					}
					for _, q := range plans {
						if info := q.Info(); strings.HasSuffix(info.Parameters, " relabelled") {
							relabelled++
							if len(info.Notes) == 0 {
								t.Errorf("%s: no note", info.Parameters)
							}
						}
						checkWindows(t, q, a)
					}
				}
			}
			if relabelled == 0 || name != "31" && none > 0 {
				t.Errorf("%d relabelled, none for %d: want plans for all, some of them relabelled", relabelled, none)
			}
		})
	}
}

// TestWindowsAnyZeros checks that zeros elsewhere than in the pivots do no harm.
func TestWindowsAnyZeros(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, k := range []int{7, 18, 23, 31} {
		table := front(k, 1, 1)
		s := newStep(table[0], 1)
		if s.extra != 1 {
			t.Fatalf("K=%d: %v", k, s)
		}
		a := matrix.NewDense(f, k, k)
		for j := range k { // the only entries that divide
			a.Set(s.wrap(j+s.stride-s.m), j, field.Code(uint64(1+j)))
		}
		plans, err := plansOf(a, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		checkWindows(t, plans[0], a)
	}
}

// TestWindowsRefusals checks that every refusal says why.
func TestWindowsRefusals(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	sparse := matrix.NewDense(f, 48, 48)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 48 * 5 {
		sparse.Set(rng.IntN(48), rng.IntN(48), field.Code(uint64(1+rng.IntN(255))))
	}
	identity := func(k int) matrix.Matrix {
		a := matrix.NewDense(f, k, k)
		for i := range k {
			a.Set(i, i, field.One)
		}
		return a
	}
	ones := matrix.DenseFunc(f, 64, 64, func(_, _ int) field.Element { return field.One })
	for _, c := range []struct {
		a           matrix.Matrix
		ports, over int
		want        string
	}{
		{matrix.NewDense(f, 7, 7), 1, -1, "windows for K = 7, p = 1: pivot 1 of processor 4 is zero; in other orders of the processors, another one"},
		{matrix.NewDense(f, 64, 64), 1, -1, "is zero; in other orders"},
		{identity(64), 1, -1, "is zero; in other orders"},
		{ones, 1, 2, "is zero; in other orders"},
		{sparse, 4, 0, "is zero"},
		{identity(600), 2, -1, "is zero"},
		{matrixtest.Cauchy(t, f, 24), 1, 0, "universal has as few packets"},
		{matrixtest.Cauchy(t, f, 5), 1, -1, "universal has as few packets"},
		{matrixtest.Cauchy(t, f, 1), 1, -1, "universal has as few packets"},
		{matrix.NewDense(f, 24, 20), 1, -1, "sources and 20 sinks"},
	} {
		plans, err := plansOf(c.a, c.ports, c.over)
		if !errors.Is(err, schedule.ErrStructure) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("K=%d p=%d: %d plans, %v, want an ErrStructure with %q", c.a.Rows(), c.ports, len(plans), err, c.want)
		}
	}
}

// TestWindowsOnGroups runs the step on groups of a layer, side by side, also with the
// members of each group in an order of its own.
func TestWindowsOnGroups(t *testing.T) {
	f := fieldtest.Parse(t, "goldilocks")
	for _, c := range []struct{ size, ports, over int }{{7, 1, 0}, {24, 1, 1}, {16, 2, 0}, {48, 4, 0}} {
		step := newStep(front(c.size, c.ports, c.over)[0], c.ports)
		const groups = 3 // interleaved
		var parts [groups]matrix.Matrix
		for g := range parts {
			parts[g] = matrixtest.Random(t, f, c.size, uint64(5+g))
		}
		a := matrix.DenseFunc(f, groups*c.size, groups*c.size, func(i, j int) (e field.Element) {
			if i%groups == j%groups {
				e = parts[i%groups].At(i/groups, j/groups)
			}
			return e
		})
		for _, order := range [][]int{nil, seededOrder(c.size, 1)} { // of the members of each group
			l := schedule.Grouping{Step: step, Uniform: true, Group: func(proc int) schedule.Group {
				member := func(i int) int {
					if order != nil {
						i = order[i]
					}
					return groups*i + proc%groups
				}
				index := 0
				for member(index) != proc {
					index++
				}
				at := func(i, j int) field.Element { return a.At(member(i), member(j)) }
				return schedule.Group{Size: c.size, Index: index, Processor: member, At: at}
			}}
			p := schedule.Compile(plan.Info{Algorithm: "layer", Field: f, Processors: 3 * c.size, Ports: c.ports}, l)
			if err := verify.Check(t.Context(), p, a); err != nil {
				t.Errorf("groups of %d, p=%d, order %v: %v", c.size, c.ports, order, err)
			}
			if got, want := sim.Count(p), step.cost(c.ports); got.C1 != want.C1 || got.C2 != want.C2 {
				t.Errorf("groups of %d, p=%d: %d/%d, want %d/%d", c.size, c.ports, got.C1, got.C2, want.C1, want.C2)
			}
		}
	}
}

// TestWindowsOnDemand makes one program of large plans, for which it looks at some K·B
// entries of A, and a schedule, for which it looks at none.
func TestWindowsOnDemand(t *testing.T) {
	f := fieldtest.Parse(t, "2^16")
	for _, c := range []struct{ k, ports int }{{600, 1}, {2500, 1}, {10000, 1}, {10000, 4}} {
		for _, w := range front(c.k, c.ports, 4) {
			asked := 0
			a := askedMatrix{matrixtest.Cauchy(t, f, c.k), &asked}
			s := newStep(w, c.ports)
			p := schedule.Compile(plan.Info{Algorithm: "windows", Field: f, Processors: c.k, Ports: c.ports}, schedule.OneGroup(s, c.k, a.At))
			sim.Count(p)
			if asked != 0 {
				t.Errorf("K=%d: %v: the schedule took %d entries", c.k, w, asked)
			}
			prog, err := p.Program(17)
			if err != nil {
				t.Fatal(err)
			}
			if asked > c.k*(1+w.extra) {
				t.Errorf("K=%d: %v: %d entries, want %d", c.k, w, asked, c.k*(1+w.extra))
			}
			if got := prog.Terms(); got > c.k+3*(w.m+w.c+w.extra)*(1+w.extra) {
				t.Errorf("K=%d: %v: %d terms", c.k, w, got)
			}
		}
	}
}
