package exchange

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
	"volley/internal/verifyall"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
	"volley/verify"
)

// A sinksFamily is a family for sources and sinks, and its name.
type sinksFamily struct {
	name  string
	plans func(t schedule.Task) ([]plan.Plan, error)
}

// sinksFamilies are those that take every matrix.
var sinksFamilies = []sinksFamily{{"sinks", Plans}, {"exchange", exchangePlans}}

func sinksProblem(t testing.TB, a matrix.Matrix, separate bool, ports int) schedule.Task {
	t.Helper()
	task := schedule.Task{Matrix: a, Separate: separate, Ports: ports}
	task.Ports = max(1, min(ports, task.Processors()-1))
	return task
}

func randomMatrix(t testing.TB, f field.Field, k, r int) matrix.Matrix {
	t.Helper()
	a, err := matrix.Random(f, k, r, uint64(1000*k+r))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// describe names a plan of a problem in messages.
func describe(p schedule.Task, q plan.Plan) string {
	return fmt.Sprintf("%s, K=%d R=%d separate=%t p=%d, %s", q.Info().Algorithm, p.Matrix.Rows(), p.Matrix.Cols(), p.Separate, p.Ports, q.Info().Parameters)
}

// checkSinks verifies every plan of a family and the sizes of its classes.
func checkSinks(t *testing.T, family sinksFamily, p schedule.Task) int {
	t.Helper()
	plans, err := family.plans(p)
	if err != nil && !errors.Is(err, schedule.ErrStructure) {
		t.Fatal(err)
	}
	for _, q := range plans {
		if err := verify.Check(t.Context(), q, p.Matrix); err != nil {
			t.Errorf("%s: %v", describe(p, q), err)
			continue
		}
		checkSinkClasses(t, p, q)
	}
	return len(plans)
}

// checkSinkClasses compares the cost that is counted by classes with that of all
// processors.
func checkSinkClasses(t *testing.T, p schedule.Task, q plan.Plan) {
	t.Helper()
	if got, want := fmt.Sprintf("%+v", sim.Count(q)), fmt.Sprintf("%+v", sim.Count(allApart{q})); got != want {
		t.Errorf("%s: by classes %s, of all %s", describe(p, q), got, want)
	}
	if got, want := plan.MemorySlots(q), plan.MemorySlots(allApart{q}); got != want {
		t.Errorf("%s: %d slots by classes, %d of all", describe(p, q), got, want)
	}
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
					if k != r || separate {
						check(k, r, separate, p)
					}
				}
			}
		}
	}
}

// TestSinksTransfer checks the plans for a sample of K and R up to 24, most at p = 1, and for
// all small ones. "make verify-all" checks all.
func TestSinksTransfer(t *testing.T) {
	fields := []field.Field{fieldtest.Parse(t, "257"), fieldtest.Parse(t, "2^8")}
	for _, family := range sinksFamilies {
		t.Run(family.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(3, 4))
			part := map[string]int{"sinks": 4, "exchange": 40}[family.name]
			n := 0
			everySinks(24, 3, func(k, r int, separate bool, ports int) {
				if keep := part * (1 + 7*min(ports-1, 1)); rng.IntN(keep) == 0 || k+r < 9 {
					n += checkSinks(t, family, sinksProblem(t, randomMatrix(t, fields[(k+r)%2], k, r), separate, ports))
				}
			})
			t.Logf("%d plans", n)
		})
	}
}

// TestSinksManyProcessors checks K sources among N = 4K and N = 3K+1 sinks, and the
// transposed problems.
func TestSinksManyProcessors(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	for k := 1; k <= verifyall.Pick(12, 24); k++ {
		for _, n := range []int{4 * k, 3*k + 1} {
			ports := 1 + (k+n)%3
			for _, shape := range [][2]int{{k, n}, {n, k}} {
				p := sinksProblem(t, randomMatrix(t, f, shape[0], shape[1]), false, ports)
				checkSinks(t, sinksFamilies[0], p)
			}
			for ports := 1; ports <= 3; ports++ {
				checkSinksCost(t, k, n, false, ports)
				checkSinksCost(t, n, k, false, ports)
			}
		}
	}
}

// formulaCosts returns the costs of all numbers of groups, by the formulas.
func formulaCosts(k, r int, separate bool, ports int) []pair {
	if n := max(k, r); separate {
		ports = min(ports, k+r-1)
	} else {
		ports = min(ports, n-1)
	}
	psi := func(size int) pair {
		best := pair{C1: schedule.Clog(size, ports), C2: 1 << 30}
		for m := 1; m <= size; m++ {
			n := (size + m - 1) / m
			if schedule.Clog(m, ports)+schedule.Clog(n, ports) <= best.C1 {
				best.C2 = min(best.C2, (m+ports-2)/ports+(n+ports-2)/ports)
			}
		}
		return best
	}
	many, few := max(k, r), min(k, r)
	var list []pair
	add := func(size, tree int) {
		c, t := psi(size), schedule.Clog(tree, ports)
		list = append(list, pair{C1: c.C1 + t, C2: c.C2 + t})
	}
	for n := 1; n <= many/few; n++ {
		if separate {
			add((many+n-1)/n, n+1)
		} else {
			add((many+n-1)/n, n)
		}
	}
	if separate {
		add(few, (many+few-1)/few+1)
	}
	return list
}

// checkSinksCost checks that of all formulas there is a plan that costs no more.
func checkSinksCost(t *testing.T, k, r int, separate bool, ports int) {
	t.Helper()
	p := sinksProblem(t, randomMatrix(t, fieldtest.Parse(t, "2^8"), k, r), separate, ports)
	if p.Square() {
		return
	}
	plans, err := Plans(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range formulaCosts(k, r, separate, ports) {
		if !slices.ContainsFunc(plans, func(q plan.Plan) bool { return costOf(q).C1 <= want.C1 && costOf(q).C2 <= want.C2 }) {
			t.Errorf("K=%d R=%d separate=%t p=%d: no plan for %d/%d", k, r, separate, ports, want.C1, want.C2)
		}
	}
}

// TestSinksCost compares counted costs with the formulas.
func TestSinksCost(t *testing.T) {
	everySinks(verifyall.Pick(14, 24), 3, func(k, r int, separate bool, ports int) { checkSinksCost(t, k, r, separate, ports) })
	for _, c := range []struct {
		k, r     int
		separate bool
		ports    int
		want     string
	}{
		{25, 5, false, 1, "5/6"},
		{26, 3, true, 1, "5/5"},
		{100, 10, false, 1, "7/9"},
		{10, 4, true, 2, "3/3"},
		{255, 32, false, 1, "8/16 9/14"},
		{5, 25, false, 1, "5/6"},
		{5, 25, false, 2, "3/3"},
		{1, 1, true, 1, "1/1"},
		{1, 9, false, 1, "4/4"},
		{240, 16, true, 1, "8/10"},
		{600, 20, true, 2, "6/8 7/7"},
		{10000, 100, true, 1, "14/26 15/25"},
	} {
		p := sinksProblem(t, randomMatrix(t, fieldtest.Parse(t, "2^16"), c.k, c.r), c.separate, c.ports)
		plans, err := Plans(p)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, q := range plans {
			got = append(got, fmt.Sprintf("%d/%d", costOf(q).C1, costOf(q).C2))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("K=%d R=%d separate=%t p=%d: %v, want %s", c.k, c.r, c.separate, c.ports, got, c.want)
		}
	}
}

// TestSinksLarge checks the rules of the model, and classes, for a thousand processors.
func TestSinksLarge(t *testing.T) {
	for _, shape := range [][2]int{{1000, 30}, {30, 1000}} {
		for _, separate := range []bool{false, true} {
			p := sinksProblem(t, randomMatrix(t, fieldtest.Parse(t, "2^16"), shape[0], shape[1]), separate, 2)
			plans, err := Plans(p)
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range plans {
				if err := plan.Validate(t.Context(), q); err != nil {
					t.Errorf("%s: %v", describe(p, q), err)
				}
				checkSinkClasses(t, p, q)
				if n := len(q.Classes()); n > 500 {
					t.Errorf("%s: %d classes", describe(p, q), n)
				}
			}
		}
	}
}

// TestSinksSquare checks that processors that are both are left to other algorithms.
func TestSinksSquare(t *testing.T) {
	p := sinksProblem(t, randomMatrix(t, fieldtest.Parse(t, "257"), 8, 8), false, 1)
	for _, family := range []sinksFamily{{"sinks", Plans}, {"sinks-structured", StructuredPlans}} {
		if _, err := family.plans(p); !errors.Is(err, schedule.ErrStructure) {
			t.Errorf("%s: %v", family.name, err)
		}
	}
}

// inPackets returns the cost of a plan in rounds and in packets.
func inPackets(q plan.Plan) (c1 int, c2 float64) {
	c := sim.Count(q)
	return c.C1, float64(c.C2) / float64(c.Pieces)
}

// inPacketsAll lists the costs of plans.
func inPacketsAll(plans []plan.Plan) string {
	s := ""
	for i, q := range plans {
		if i > 0 {
			s += " "
		}
		c1, c2 := inPackets(q)
		s += fmt.Sprintf("%d/%.4g", c1, c2)
	}
	return s
}
