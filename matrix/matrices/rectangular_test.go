package matrices

import (
	"testing"

	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/pointset"
	"volley/matrix"
)

// TestBuildForAgain builds matrices of K rows and R columns, and once more from
// values, as decode does.
func TestBuildForAgain(t *testing.T) {
	list := writeFile(t, "list", "50 51 52")
	csv := writeFile(t, "A.csv", "1,2,3\n4,5,6\n7,8,9\n1,0,0\n0,1,0\n")
	for _, name := range []string{"2^8", "257"} {
		f := fieldtest.Parse(t, name)
		const k, r = 5, 3
		read := pointset.Codes(f, 50, r)
		codes := func(first, n int) matrix.Points { return pointset.Codes(f, first, n) }
		entries := matrix.NewDense(f, k, r)
		for i, v := range []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, 0, 0, 1, 0} {
			entries.Set(i/r, i%r, field.Code(v))
		}
		for _, c := range []struct {
			spec Spec
			want matrix.Matrix
		}{
			{Spec{Family: "cauchy"}, must(matrix.CauchyOn(codes(0, k), codes(k, r)))(t)},
			{Spec{Family: "cauchy", Alpha: list}, must(matrix.CauchyOn(codes(0, k), read))(t)},
			{Spec{Family: "rs:cauchy"}, must(matrix.CauchyOn(codes(0, k), codes(k, r)))(t)},
			{Spec{Family: "rs:vandermonde"}, must(matrix.Lagrange(codes(0, k), codes(k, r)))(t)},
			{Spec{Family: "lagrange", Omega: "codes", Alpha: list}, must(matrix.Lagrange(codes(0, k), read))(t)},
			{Spec{Family: "random", Argument: "7"}, must(matrix.Random(f, k, r, 7))(t)},
			{Spec{Family: "file", Argument: csv}, entries},
			{Spec{Family: "lagrange"}, nil},
			{Spec{Family: "cauchy", Omega: "coset", Alpha: "coset"}, nil},
			{Spec{Family: "lagrange", Omega: "powers", Alpha: "powers"}, nil},
			{Spec{Family: "vandermonde"}, nil},
			{Spec{Family: "vandermonde", Points: list}, nil},
			{Spec{Family: "rs:par1"}, nil},
			{Spec{Family: "rs:par2"}, nil},
			{Spec{Family: "rs:jerasure"}, nil},
		} {
			m := must(c.spec.Build(f, k, r))(t)
			if m.Rows() != k || m.Cols() != r {
				t.Fatalf("%+v is %d×%d", c.spec, m.Rows(), m.Cols())
			}
			if c.want != nil && !equal(m, c.want) {
				t.Errorf("%+v over %s: another matrix", c.spec, name)
			}
			var sets []matrix.PointSet
			for _, set := range matrix.StructureOf(m).Points {
				sets = append(sets, matrix.PointSet{Name: set.Name, Points: must(matrix.NewPoints(f, pointset.Elements(nil, set.Points)))(t)})
			}
			values := Spec{Family: c.spec.Family, Argument: c.spec.Argument}
			again := must(values.BuildFrom(f, k, r, sets, matrix.DenseOf(m)))(t)
			if !equal(again, m) {
				t.Errorf("%+v over %s: another matrix from values", c.spec, name)
			}
			if len(c.spec.Files()) == 0 && c.spec.Omega != "powers" && c.spec.Points != "powers" && again.ID() != m.ID() { // these are cosets of 1
				t.Errorf("from values ID %q, want %q", again.ID(), m.ID())
			}
		}
	}
}

// TestLagrangeInterpolates: with K values of a polynomial of degree below K it gives
// its values at R other points, more than K or fewer.
func TestLagrangeInterpolates(t *testing.T) {
	for _, name := range []string{"2^4", "2^8", "257", "3^4"} {
		f := fieldtest.Parse(t, name)
		for _, shape := range [][2]int{{6, 3}, {3, 6}, {8, 2}, {1, 5}, {5, 1}, {9, 6}} {
			k, r := shape[0], shape[1]
			m := must(Spec{Family: "lagrange"}.Build(f, k, r))(t)
			omega, alpha := matrix.StructureOf(m).Points[0].Points, matrix.StructureOf(m).Points[1].Points
			values := must(matrix.Mul(matrix.Vandermonde(omega, k), m))(t)
			if !equal(values, matrix.Vandermonde(alpha, k)) {
				t.Errorf("lagrange %d×%d over %s", k, r, name)
			}
		}
	}
}

func TestBuildForErrors(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	const families = "cauchy, rs:vandermonde, rs:cauchy, rs:par1, rs:par2, rs:jerasure, lagrange, vandermonde, lch, random:SEED, file:A.csv"
	csv := writeFile(t, "A.csv", "1,0,7\n0,1,7\n")
	points := writeFile(t, "points", "9 8 7 6 5")
	for _, c := range []struct {
		name string
		spec Spec
		k, r int
		want string
	}{
		{"no K", Spec{Family: "cauchy"}, 0, 3, "matrix: K = 0: want 1 to 2147483647"},
		{"no R", Spec{Family: "cauchy"}, 3, 0, "matrix: R = 0: want 1 to 2147483647"},
		{"dft", Spec{Family: "dft"}, 15, 5, "matrix: dft is square only, and there are K = 15 sources and R = 5 sinks: want as many sinks as sources, or one of " + families},
		{"fti", Spec{Family: "fti"}, 4, 8, "matrix: fti is square only, and there are K = 4 sources and R = 8 sinks: want as many sinks as sources, or one of " + families},
		{"inverse", Spec{Family: "cauchy", Inverse: true}, 4, 8, "matrix: cauchy of K = 4 sources and R = 8 sinks has no inverse: want as many sinks as sources, or the matrix itself"},
		{"cauchy too large", Spec{Family: "cauchy"}, 200, 57, "matrix: cauchy over 2^8: K + R = 257 needs 257 elements and there are 256: want K + R <= 256, or a field such as 2^16"},
		{"cauchy far too large", Spec{Family: "cauchy"}, 1<<31 - 1, 1<<31 - 2, "matrix: cauchy over 2^8: K + R = 4294967293 needs 4294967293 elements and there are 256: want K + R <= 256"},
		{"rs:vandermonde too large", Spec{Family: "rs:vandermonde"}, 255, 2, "matrix: rs:vandermonde over 2^8: K + R = 257 needs 257 elements and there are 256: want K + R <= 256, or a field such as 2^16"},
		{"rs:cauchy too large", Spec{Family: "rs:cauchy"}, 255, 2, "matrix: cauchy over 2^8: K + R = 257 needs 257 elements and there are 256: want K + R <= 256, or a field such as 2^16"},
		{"rs:jerasure too large", Spec{Family: "rs:jerasure"}, 255, 3, "matrix: rs:jerasure over 2^8: K + R = 258 needs 257 elements and there are 256: want K + R <= 257, or a field such as 2^16"},
		{"rs:par1 too large", Spec{Family: "rs:par1"}, 256, 3, "matrix: rs:par1 over 2^8: K = 256 needs 257 elements and there are 256: want K <= 255, or a field such as 2^16"},
		{"cauchy on cosets", Spec{Family: "cauchy", Omega: "coset", Alpha: "coset"}, 200, 56, "matrix: coset points over 2^8: K + R = 256 needs 256 nonzero elements and there are 255: want K + R <= 255, or a field such as 2^16"},
		{"lagrange on powers", Spec{Family: "lagrange", Omega: "powers", Alpha: "powers"}, 200, 56, "matrix: powers points over 2^8: K + R = 256 needs 256 nonzero elements and there are 255: want K + R <= 255, or a field such as 2^16"},
		{"lagrange on codes", Spec{Family: "lagrange", Omega: "codes", Alpha: "codes"}, 200, 57, "matrix: codes points over 2^8: K + R = 257 needs 257 elements and there are 256: want K + R <= 256, or a field such as 2^16"},
		{"lagrange with more sources", Spec{Family: "lagrange"}, 300, 5, "matrix: coset points over 2^8: K = 300 needs 300 nonzero elements and there are 255: want K <= 255, or a field such as 2^16"},
		{"lagrange with more sinks", Spec{Family: "lagrange"}, 5, 300, "matrix: coset points over 2^8: R = 300 needs 300 nonzero elements and there are 255: want R <= 255, or a field such as 2^16"},
		{"too many points", Spec{Family: "vandermonde"}, 5, 256, "matrix: coset points over 2^8: R = 256 needs 256 nonzero elements and there are 255: want R <= 255, or a field such as 2^16"},
		{"too many powers", Spec{Family: "vandermonde", Points: "powers"}, 5, 256, "matrix: powers points over 2^8: R = 256 needs 256 nonzero elements and there are 255: want R <= 255, or a field such as 2^16"},
		{"too many codes", Spec{Family: "vandermonde", Points: "codes"}, 5, 257, "matrix: codes points over 2^8: R = 257 needs 257 elements and there are 256: want R <= 256, or a field such as 2^16"},
		{"lch with more sources", Spec{Family: "lch"}, 512, 5, "matrix: lch over 2^8: K = 512 needs 512 elements and there are 256: want K <= 256, or a field such as 2^16"},
		{"lch with more sinks", Spec{Family: "lch"}, 5, 300, "matrix: lch over 2^8: R = 300 needs 300 elements and there are 256: want R <= 256, or a field such as 2^16"},
		{"points for sources", Spec{Family: "cauchy", Omega: points}, 4, 5, "matrix: " + points + " has 5 points, and K = 4: want one for each source"},
		{"points for sinks", Spec{Family: "lagrange", Alpha: points}, 5, 4, "matrix: " + points + " has 5 points, and R = 4: want one for each sink"},
		{"points of a vandermonde matrix", Spec{Family: "vandermonde", Points: points}, 5, 4, "matrix: " + points + " has 5 points, and R = 4: want one for each sink"},
		{"another shape", Spec{Family: "file", Argument: csv}, 3, 2, "matrix: " + csv + " is 2×3, and K = 3 sources and R = 2 sinks need 3×2: want a file of that shape, or K = 2 sources and R = 3 sinks"},
		{"wide file", Spec{Family: "file", Argument: csv}, 2, 1, "matrix: " + csv + " is 2×3, and K = 2 sources and R = 1 sinks need 2×1: want a file of that shape, or R = 3 sinks"},
		{"long file", Spec{Family: "file", Argument: csv}, 1, 3, "matrix: " + csv + " is 2×3, and K = 1 sources and R = 3 sinks need 1×3: want a file of that shape, or K = 2 sources and R = 3 sinks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.spec.Build(f, c.k, c.r)
			wantError(t, err, c.want)
		})
	}
	codes := func(name string, first, n int) matrix.PointSet {
		return matrix.PointSet{Name: name, Points: pointset.Codes(f, first, n)}
	}
	for _, c := range []struct {
		name    string
		spec    Spec
		sets    []matrix.PointSet
		entries matrix.Matrix
		want    string
	}{
		{"few x", Spec{Family: "cauchy"}, []matrix.PointSet{codes("x", 0, 2), codes("y", 9, 2)}, nil, "matrix: 2 points in x, and K = 3: want one for each source"},
		{"many y", Spec{Family: "cauchy"}, []matrix.PointSet{codes("x", 0, 3), codes("y", 9, 3)}, nil, "matrix: 3 points in y, and R = 2: want one for each sink"},
		{"entries of another shape", Spec{Family: "file", Argument: "A.csv"}, nil, identity(f, 3), "matrix: entries of a 3×3 matrix over 2^8, and K = 3 sources and R = 2 sinks need 3×2 over 2^8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.spec.BuildFrom(f, 3, 2, c.sets, c.entries)
			wantError(t, err, c.want)
		})
	}
}

// TestSquareFamilies: no other matrix is square only.
func TestSquareFamilies(t *testing.T) {
	for _, family := range Families() {
		if square := family.Name == "dft" || family.Name == "fti"; family.Square != square {
			t.Errorf("%s: square only %v, want %v", family.Name, family.Square, square)
		}
	}
}
