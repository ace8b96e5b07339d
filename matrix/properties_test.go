package matrix

import (
	"testing"

	"volley/field"
)

// TestPointsOf rebuilds matrices from their points.
func TestPointsOf(t *testing.T) {
	f, err := field.Parse("257")
	if err != nil {
		t.Fatal(err)
	}
	cauchy, err := Cauchy(f, 9)
	if err != nil {
		t.Fatal(err)
	}
	sets := PointSetsOf(cauchy)
	if len(sets) != 2 || sets[0].Name != "x" || sets[1].Name != "y" {
		t.Fatalf("points of a Cauchy matrix: %v, want x and y", sets)
	}
	again, err := CauchyOn(sets[0].Points, sets[1].Points)
	if err != nil {
		t.Fatal(err)
	}
	if !Equal(cauchy, again) {
		t.Error("the Cauchy matrix on these points is another one")
	}

	points, err := CosetPoints(f, 12)
	if err != nil {
		t.Fatal(err)
	}
	v := Vandermonde(points)
	sets = PointSetsOf(v)
	if len(sets) != 1 || sets[0].Name != "alpha" || !Equal(v, Vandermonde(sets[0].Points)) {
		t.Errorf("points of a Vandermonde matrix: %v", sets)
	}

	inverse, err := Inverse(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []Matrix{inverse, DenseOf(v), Identity(f, 3)} {
		if sets := PointSetsOf(m); sets != nil {
			t.Errorf("points of %s: %v, want none", m.ID(), sets)
		}
	}
}
