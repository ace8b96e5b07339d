package volley

import (
	"context"
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

// given returns a plan of an algorithm as a file of it would hold it.
func given(t *testing.T, a matrix.Matrix, opts ...Option) *plan.Materialized {
	t.Helper()
	e, err := NewEncoder(t.Context(), a, opts...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Plan(t.Context(), nil, 1000)
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
	f := fieldtest.Parse(t, "257")
	a, err := matrix.Random(f, 3, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	other, err := matrix.Random(f, 3, 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	swapped := given(t, a) // processors 0 and 1 get each other's coded packet
	swapped.Columns[0], swapped.Columns[1] = swapped.Columns[1], swapped.Columns[0]
	columns := matrix.NewDense(f, 3, 3)
	for i := range 3 {
		for j, from := range []int{1, 0, 2} {
			columns.Set(i, j, a.At(i, from))
		}
	}
	broken := given(t, a)
	broken.Programs[1].Rounds[0].Sends[0].Port = 1
	for name, x := range map[string]struct {
		p    plan.Plan
		a    matrix.Matrix
		want string
	}{
		"another matrix":    {given(t, other), a, "it computes another matrix than " + a.ID() + ": processor 0, slot 3: coefficient of x0 in y0 is "},
		"another field":     {given(t, a), matrix.NewDense(fieldtest.Parse(t, "2^8"), 3, 3), "over 257"},
		"another shape":     {given(t, a), matrix.NewDense(f, 4, 4), "3 rows"},
		"a rule is broken":  {broken, a, "processor 1 round 0 port 1"},
		"another processor": {swapped, columns, "processor 0 gets the coded packets [1], want [0]"},
	} {
		_, err := NewEncoder(t.Context(), x.a, WithPlan(x.p))
		if !errors.As(err, new(*PlanError)) || !IsInputError(err) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
	if !errors.As(checkedBy(t.Context(), given(t, other), a), new(*verify.MismatchError)) || !errors.As(checkedBy(t.Context(), broken, a), new(*plan.ValidationError)) {
		t.Error("the error does not wrap its reason")
	}
	e, err := NewEncoder(t.Context(), columns, WithPlan(swapped), WithOrder(algo.AnyOrder))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := e.Estimate(t.Context(), nil, 1); err != nil || r.Order != "relabelled" || !slices.Equal(r.Columns, []int{1, 0, 2}) {
		t.Errorf("in any order: %+v, %v", r, err)
	}
}

func checkedBy(ctx context.Context, p plan.Plan, a matrix.Matrix) error {
	_, err := NewEncoder(ctx, a, WithPlan(p))
	return err
}

// notes is a plan that is no key of a map.
type notes struct {
	plan.Plan
	list []string
}

// TestWithPlanOnce prepares a given plan once, for packets of any length and whatever the plan's
// type is.
func TestWithPlanOnce(t *testing.T) {
	a, err := matrix.Random(fieldtest.Parse(t, "2^8"), 4, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEncoder(t.Context(), a, WithPlan(notes{given(t, a), []string{"mine"}}))
	if err != nil {
		t.Fatal(err)
	}
	chosen := map[*chosenPlan]bool{}
	for size := range 3 {
		packets := make([]Packet, 4)
		for k := range packets {
			packets[k] = Packet{Data: make([]byte, size), Result: new([]byte)}
		}
		c := bindAndRun(t, e, packets)
		if chosen[c] = true; len(chosen) != 1 || len(c.executables) != 1 {
			t.Errorf("%d choices: want one, with one executable", len(chosen))
		}
	}
}
