package matrix

import (
	"testing"

	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/pointset"
)

// TestPointsOf rebuilds matrices from their points.
func TestPointsOf(t *testing.T) {
	f, err := field.Parse("257")
	if err != nil {
		t.Fatal(err)
	}
	cauchy, err := Cauchy(f, 9, 9)
	if err != nil {
		t.Fatal(err)
	}
	sets := StructureOf(cauchy).Points
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
	v := Vandermonde(points, 0)
	sets = StructureOf(v).Points
	if len(sets) != 1 || sets[0].Name != "alpha" || !Equal(v, Vandermonde(sets[0].Points, 0)) {
		t.Errorf("points of a Vandermonde matrix: %v", sets)
	}

	inverse, err := Inverse(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []Matrix{inverse, DenseOf(v), Identity(f, 3)} {
		if sets := StructureOf(m).Points; sets != nil {
			t.Errorf("points of %s: %v, want none", m.ID(), sets)
		}
	}
}

// TestSuperregular: what is said to be superregular has no singular part.
func TestSuperregular(t *testing.T) {
	f := fieldtest.Parse(t, "2^4")
	codes := func(first, n int) Points { return pointset.Codes(f, first, n) }
	cauchy := must(Cauchy(f, 4, 4))(t)
	for _, c := range []struct {
		m    Matrix
		want bool
	}{
		{cauchy, true},
		{must(CauchyOn(codes(7, 2), codes(1, 4)))(t), true},
		{must(FTI(f, 3))(t), true},
		{Block(cauchy, 1, 2), true},
		{must(Lagrange(codes(4, 4), codes(1, 3)))(t), true},
		{must(ReedSolomonVandermonde(f, 4, 4))(t), true},
		{must(Lagrange(codes(4, 4), codes(1, 4)))(t), false}, // last and first point
		{must(Lagrange(codes(1, 4), codes(4, 4)))(t), false},
		{must(Lagrange(codes(1, 4), codes(1, 4)))(t), false},
		{must(DFT(f, 5))(t), false},
		{DenseOf(cauchy), false}, // it is, but its entries do not say so
	} {
		if got := StructureOf(c.m).Superregular(); got != c.want {
			t.Errorf("%s: %v, want %v", c.m.ID(), got, c.want)
		}
		if part := singularPart(c.m); c.want && part != "" {
			t.Errorf("%s is singular in %s", c.m.ID(), part)
		}
	}
}
