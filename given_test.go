package volley

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"volley/algo"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/plan"
	"volley/verify"
)

// given returns the plan for a matrix as a file of it would hold it.
func given(t *testing.T, a matrix.Matrix) *plan.Materialized {
	t.Helper()
	p, err := newEncoder(t, a).Plan(t.Context(), nil, 1000)
	if err != nil {
		t.Fatal(err)
	}
	m, err := plan.Materialize(p)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestWithPlanRefused gives plans that do not do.
func TestWithPlanRefused(t *testing.T) {
	a, other := mustBuild(t, "257", "random:1", 3, 3), mustBuild(t, "257", "random:2", 3, 3)
	swapped := given(t, a) // processors 0 and 1 get each other's coded packet
	swapped.Columns[0], swapped.Columns[1] = swapped.Columns[1], swapped.Columns[0]
	view, err := matrix.Columns(a, []int{1, 0, 2})
	if err != nil {
		t.Fatal(err)
	}
	columns := matrix.DenseOf(view)
	broken := given(t, a)
	broken.Programs[1].Rounds[0].Sends[0].Port = 1
	for name, x := range map[string]struct {
		p      plan.Plan
		a      matrix.Matrix
		want   string
		reason any // that the error wraps
	}{
		"another matrix":    {given(t, other), a, "it computes another matrix than " + a.ID() + ": processor 0, slot 3: coefficient of x0 in y0 is ", new(*verify.MismatchError)},
		"another field":     {given(t, a), matrix.NewDense(fieldtest.Parse(t, "2^8"), 3, 3), "over 257", nil},
		"another shape":     {given(t, a), matrix.NewDense(a.Field(), 4, 4), "3 rows", nil},
		"a rule is broken":  {broken, a, "processor 1 round 0 port 1", new(*plan.ValidationError)},
		"another processor": {swapped, columns, "processor 0 gets the coded packets [1], want [0]", nil},
	} {
		_, err := NewEncoder(t.Context(), x.a, WithPlan(x.p))
		if !errors.As(err, new(*PlanError)) || !IsInputError(err) || !strings.Contains(err.Error(), x.want) || x.reason != nil && !errors.As(err, x.reason) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
	r, err := newEncoder(t, columns, WithPlan(swapped), WithOrder(algo.AnyOrder)).Estimate(t.Context(), nil, 1)
	if err != nil || r.Order != "relabelled" || !slices.Equal(r.Columns, []int{1, 0, 2}) {
		t.Errorf("in any order: %+v, %v", r, err)
	}
}

// notes is a plan that is no key of a map.
type notes struct {
	plan.Plan
	list []string
}

// TestPreparedOnce runs packets of some sizes in turns: each size is planned and compiled once, and a plan that is given, of
// any type, once for all.
func TestPreparedOnce(t *testing.T) {
	a := mustBuild(t, "2^8", "random:1", 4, 4)
	for prepared, e := range map[int]*Encoder{mostPlans: newEncoder(t, a), 1: newEncoder(t, a, WithPlan(notes{given(t, a), []string{"mine"}}))} {
		chosen := map[*chosenPlan]bool{}
		for range 3 {
			for size := range mostPlans {
				c := bindAndRun(t, e, 100+size)
				if chosen[c] = true; len(c.executables) != 1 {
					t.Errorf("size %d: %d executables", size, len(c.executables))
				}
			}
		}
		if len(chosen) != prepared {
			t.Errorf("%d plans, want %d", len(chosen), prepared)
		}
	}
}
