package matrices

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/fuzzlimit"
	"volley/internal/pointset"
	"volley/matrix"
)

const allFamilies = "cauchy, fti, rs:vandermonde, rs:cauchy, rs:par1, rs:par2, rs:jerasure, lagrange, vandermonde, dft, lch, random:SEED, file:A.csv"

func TestParseSpec(t *testing.T) {
	for s, want := range map[string]Spec{
		"dft":                         {Family: "dft"},
		"vandermonde":                 {Family: "vandermonde"},
		"cauchy":                      {Family: "cauchy"},
		"rs:jerasure":                 {Family: "rs:jerasure"},
		"random:0":                    {Family: "random", Argument: "0"},
		"random:18446744073709551615": {Family: "random", Argument: "18446744073709551615"},
		"file:A.csv":                  {Family: "file", Argument: "A.csv"},
		"file:C:\\A.csv":              {Family: "file", Argument: "C:\\A.csv"},
	} {
		if got := must(ParseSpec(s))(t); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", s, got, want)
		}
	}
	for s, want := range map[string]string{
		"":                            `matrix: unknown matrix "": want one of ` + allFamilies,
		"DFT":                         `matrix: unknown matrix "DFT": want one of ` + allFamilies,
		"fft:8":                       `matrix: unknown matrix "fft": want one of ` + allFamilies,
		"dft:8":                       `matrix: dft takes no argument, got "8": want "dft"`,
		"rs":                          `matrix: unknown matrix "rs": want one of ` + allFamilies,
		"rs:leopard":                  `matrix: unknown matrix "rs": want one of ` + allFamilies,
		"rs:cauchy:2":                 `matrix: unknown matrix "rs": want one of ` + allFamilies,
		"dft:":                        `matrix: nothing after the colon of "dft:": want "dft"`,
		"random":                      `matrix: random needs an argument: want "random:SEED"`,
		"random:":                     `matrix: nothing after the colon of "random:": want "random:SEED"`,
		"random:-1":                   `matrix: random: the seed "-1" is not a decimal number below 2^64`,
		"random:seed":                 `matrix: random: the seed "seed" is not a decimal number below 2^64`,
		"random:18446744073709551616": `matrix: random: the seed "18446744073709551616" is not a decimal number below 2^64`,
		"file":                        `matrix: file needs an argument: want "file:A.csv"`,
	} {
		_, err := ParseSpec(s)
		wantError(t, err, want)
	}
}

// writeFile makes a file of the given text in a new directory.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBuild has the IDs of what is built, which are of the matrix and its points, and builds it once more from values, as
// decode does. TestFamilyFormulas has the entries of families.
func TestBuild(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	points, csv := writeFile(t, "points", "# five\n50 51 52 53 54\n"), writeFile(t, "A.csv", "1,2,3\n4,5,6\n7,8,9\n1,0,0\n0,1,0\n")
	id := must(matrix.NewPoints(f, pointset.Elements(nil, pointset.Codes(f, 50, 5))))(t).ID()
	for _, c := range []struct {
		spec Spec
		r    int
		id   string
	}{
		{Spec{Family: "cauchy"}, 5, "cauchy"},
		{Spec{Family: "cauchy", Order: "any"}, 3, "cauchy"},
		{Spec{Family: "cauchy", Omega: points}, 5, "cauchy(" + id + ", codes:5)"},
		{Spec{Family: "cauchy", Alpha: points}, 5, "cauchy(codes:0, " + id + ")"},
		{Spec{Family: "cauchy", Omega: "coset", Alpha: "coset"}, 3, "cauchy(coset:1, coset:1+5)"},
		{Spec{Family: "dft"}, 5, "dft"},
		{Spec{Family: "dft", Order: "reversed"}, 5, "dft-reversed"},
		{Spec{Family: "random", Argument: "7"}, 3, "random:7"},
		{Spec{Family: "fti"}, 5, "fti"},
		{Spec{Family: "rs:vandermonde"}, 3, "rs:vandermonde"},
		{Spec{Family: "rs:cauchy"}, 3, "rs:cauchy"},
		{Spec{Family: "rs:par1"}, 3, "rs:par1"},
		{Spec{Family: "rs:par2"}, 3, "rs:par2"},
		{Spec{Family: "rs:jerasure"}, 3, "rs:jerasure"},
		{Spec{Family: "lagrange"}, 5, "lagrange(coset, coset+1)"},
		{Spec{Family: "lagrange", Omega: "codes", Alpha: "codes"}, 5, "lagrange(codes:0, codes:5)"},
		{Spec{Family: "lagrange", Omega: "powers", Alpha: points}, 5, "lagrange(powers, " + id + ")"},
		{Spec{Family: "lagrange", Omega: points, Alpha: "powers"}, 5, "lagrange(" + id + ", powers+5)"},
		{Spec{Family: "lch"}, 3, "lch"},
		{Spec{Family: "vandermonde"}, 3, "vandermonde(coset)"},
		{Spec{Family: "vandermonde", Points: "codes"}, 5, "vandermonde(codes:0)"},
		{Spec{Family: "vandermonde", Points: "powers"}, 5, "vandermonde(powers)"},
		{Spec{Family: "vandermonde", Points: points}, 5, "vandermonde(" + id + ")"},
		{Spec{Family: "file", Argument: csv}, 3, must(FromCSV(f, strings.NewReader("1,2,3\n4,5,6\n7,8,9\n1,0,0\n0,1,0\n"), ""))(t).ID()},
		{Spec{Family: "cauchy", Inverse: true}, 5, "inverse(cauchy)"},
	} {
		m := must(c.spec.Build(f, 5, c.r))(t)
		if m.ID() != c.id || m.Rows() != 5 || m.Cols() != c.r {
			t.Errorf("%+v, R = %d: %s of %d×%d, want %s", c.spec, c.r, m.ID(), m.Rows(), m.Cols(), c.id)
		}
		values := Spec{Family: c.spec.Family, Argument: c.spec.Argument, Order: c.spec.Order, Inverse: c.spec.Inverse}
		plain := c.spec
		plain.Inverse = false
		built := must(plain.Build(f, 5, c.r))(t)
		var sets []matrix.PointSet
		for _, set := range matrix.StructureOf(built).Points {
			sets = append(sets, matrix.PointSet{Name: set.Name, Points: must(matrix.NewPoints(f, pointset.Elements(nil, set.Points)))(t)})
		}
		again := must(values.BuildFrom(f, 5, c.r, sets, matrix.DenseOf(built)))(t)
		if !equal(again, m) || len(c.spec.Files()) == 0 && again.ID() != c.id {
			t.Errorf("%+v, R = %d: from values another matrix, or ID %q, want %q", c.spec, c.r, again.ID(), c.id)
		}
	}
	if m := must(Spec{Family: "cauchy", Omega: points}.Build(f, 5, 3))(t); !equal(m, must(matrix.CauchyOn(pointset.Codes(f, 50, 5), pointset.Codes(f, 5, 3)))(t)) {
		t.Error("points of a file are others")
	}
}

func TestBuildErrors(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	const families = "cauchy, rs:vandermonde, rs:cauchy, rs:par1, rs:par2, rs:jerasure, lagrange, vandermonde, lch, random:SEED, file:A.csv"
	csv, points := writeFile(t, "A.csv", "1,0,7\n0,1,7\n"), writeFile(t, "points", "9 8 7 6 5")
	coset := Spec{Family: "cauchy", Omega: "coset", Alpha: "coset"}
	for _, c := range []struct {
		spec Spec
		k, r int
		want string
	}{
		{Spec{}, 2, 2, `unknown matrix "": want one of ` + allFamilies},
		{Spec{Family: "cauchy"}, 0, 3, "K = 0: want 1 to 2147483647"},
		{Spec{Family: "cauchy"}, 3, 0, "R = 0: want 1 to 2147483647"},
		{Spec{Family: "cauchy", Argument: "x"}, 2, 2, `cauchy takes no argument, got "x": want "cauchy"`},
		{Spec{Family: "file"}, 2, 2, `file needs an argument: want "file:A.csv"`},
		{Spec{Family: "random", Argument: "x"}, 2, 2, `random: the seed "x" is not a decimal number below 2^64`},
		{Spec{Family: "dft", Points: "coset"}, 5, 5, `dft takes no points, got "coset": leave that out, or take one of vandermonde`},
		{Spec{Family: "vandermonde", Omega: "codes"}, 5, 5, `vandermonde takes no omega, got "codes": leave that out, or take one of cauchy, lagrange`},
		{Spec{Family: "lch", Alpha: "codes"}, 5, 5, `lch takes no alpha, got "codes": leave that out, or take one of cauchy, lagrange`},
		{Spec{Family: "cauchy", Order: "reversed"}, 5, 5, `cauchy takes no order, got "reversed": leave that out, or take one of dft`},
		{Spec{Family: "dft", Order: "up"}, 5, 5, `order "up": want one of natural, reversed, any`},
		{Spec{Family: "dft"}, 15, 5, "dft is square only, and there are K = 15 sources and R = 5 sinks: want as many sinks as sources, or one of " + families},
		{Spec{Family: "fti"}, 4, 8, "fti is square only, and there are K = 4 sources and R = 8 sinks: want as many sinks as sources, or one of " + families},
		{Spec{Family: "cauchy", Inverse: true}, 4, 8, "cauchy of K = 4 sources and R = 8 sinks has no inverse: want as many sinks as sources, or the matrix itself"},
		{Spec{Family: "cauchy"}, 200, 57, "cauchy over 2^8: K + R = 257 needs 257 elements and there are 256: want K + R <= 256, or a field such as 2^16"},
		{Spec{Family: "cauchy"}, 1<<31 - 1, 1<<31 - 2, "cauchy over 2^8: K + R = 4294967293 needs 4294967293 elements and there are 256: want K + R <= 256"},
		{Spec{Family: "fti"}, 129, 129, "fti over 2^8: K + R = 258 needs 258 elements and there are 256: want K + R <= 256, or a field such as 2^16"},
		{Spec{Family: "rs:vandermonde"}, 255, 2, "rs:vandermonde over 2^8: K + R = 257 needs 257 elements and there are 256: want K + R <= 256, or a field such as 2^16"},
		{Spec{Family: "rs:jerasure"}, 255, 3, "rs:jerasure over 2^8: K + R = 258 needs 257 elements and there are 256: want K + R <= 257, or a field such as 2^16"},
		{Spec{Family: "rs:par1"}, 256, 3, "rs:par1 over 2^8: K = 256 needs 257 elements and there are 256: want K <= 255, or a field such as 2^16"},
		{Spec{Family: "rs:par2"}, 129, 3, "rs:par2 over 2^8: K = 129 needs 129 numbers that are coprime to 255: want K <= 128, or a larger field"},
		{coset, 200, 56, "coset points over 2^8: K + R = 256 needs 256 nonzero elements and there are 255: want K + R <= 255, or a field such as 2^16"},
		{Spec{Family: "lagrange", Omega: "codes", Alpha: "codes"}, 200, 57, "codes points over 2^8: K + R = 257 needs 257 elements and there are 256: want K + R <= 256, or a field such as 2^16"},
		{Spec{Family: "lagrange"}, 300, 5, "coset points over 2^8: K = 300 needs 300 nonzero elements and there are 255: want K <= 255, or a field such as 2^16"},
		{Spec{Family: "lagrange"}, 5, 300, "coset points over 2^8: R = 300 needs 300 nonzero elements and there are 255: want R <= 255, or a field such as 2^16"},
		{Spec{Family: "vandermonde", Points: "powers"}, 5, 256, "powers points over 2^8: R = 256 needs 256 nonzero elements and there are 255: want R <= 255, or a field such as 2^16"},
		{Spec{Family: "lch"}, 512, 5, "lch over 2^8: K = 512 needs 512 elements and there are 256: want K <= 256, or a field such as 2^16"},
		{Spec{Family: "lch"}, 5, 300, "lch over 2^8: R = 300 needs 300 elements and there are 256: want R <= 256, or a field such as 2^16"},
		{Spec{Family: "cauchy", Omega: points}, 5, 5, "cauchy: the points x_4 and y_0 are both 5: want distinct points: change omega, which gives x, or alpha, which gives y"},
		{Spec{Family: "cauchy", Omega: points}, 4, 5, points + " has 5 points, and K = 4: want one for each source"},
		{Spec{Family: "lagrange", Alpha: points}, 5, 4, points + " has 5 points, and R = 4: want one for each sink"},
		{Spec{Family: "vandermonde", Points: points}, 4, 4, points + " has 5 points, and K = 4: want one for each processor"},
		{Spec{Family: "file", Argument: csv}, 2, 2, csv + " is 2×3, and K = 2 processors need 2×2: want a file of that shape, or R = 3 sinks"},
		{Spec{Family: "file", Argument: csv}, 3, 2, csv + " is 2×3, and K = 3 sources and R = 2 sinks need 3×2: want a file of that shape, or K = 2 sources and R = 3 sinks"},
		{Spec{Family: "file", Argument: csv}, 2, 1, csv + " is 2×3, and K = 2 sources and R = 1 sinks need 2×1: want a file of that shape, or R = 3 sinks"},
	} {
		t.Run(fmt.Sprintf("%+v, %d×%d", c.spec, c.k, c.r), func(t *testing.T) {
			_, err := c.spec.Build(f, c.k, c.r)
			wantError(t, err, "matrix: "+c.want)
		})
	}
	singular := Spec{Family: "file", Argument: writeFile(t, "singular.csv", "1,2\n2,4\n"), Inverse: true}
	if _, err := singular.Build(f, 2, 2); !errors.Is(err, matrix.ErrSingular) || !strings.HasSuffix(err.Error(), ": matrix is singular: rank 1 of 2") {
		t.Errorf("error %v, want ErrSingular", err)
	}
	for _, spec := range []Spec{
		{Family: "file", Argument: "no such file"}, {Family: "vandermonde", Points: "no such file"},
		{Family: "lagrange", Omega: "no such file"}, {Family: "cauchy", Alpha: "no such file"},
	} {
		if _, err := spec.Build(f, 2, 2); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "matrix: ") {
			t.Errorf("error %v, want one that the file does not exist", err)
		}
	}
}

// TestFamilies: the table is complete, and every row of it is found by name.
func TestFamilies(t *testing.T) {
	all := Families()
	if len(all) == 0 {
		t.Fatal("no families")
	}
	for _, f := range all {
		if f.Name == "" || f.Formula == "" || f.Doc == "" || f.Square != (f.Name == "dft" || f.Name == "fti") {
			t.Errorf("the row of %q has a gap, or is of another shape", f.Name)
		}
		s := f.String()
		if f.Name == "random" {
			s = "random:1"
		}
		if spec := must(ParseSpec(s))(t); spec.Family != f.Name {
			t.Errorf("%s is read as %s", s, spec.Family)
		}
	}
	all[0].Name = "changed"
	if Families()[0].Name == "changed" {
		t.Error("the caller can change the table")
	}
}

func TestBuildFromErrors(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	codes := func(name string, first, n int) matrix.PointSet {
		return matrix.PointSet{Name: name, Points: pointset.Codes(f, first, n)}
	}
	sets := func(list ...matrix.PointSet) []matrix.PointSet { return list }
	other := fieldtest.Parse(t, "257")
	for _, c := range []struct {
		family  string
		r       int
		sets    []matrix.PointSet
		entries matrix.Matrix
		want    string
	}{
		{"vandermonde", 3, sets(codes("omega", 0, 3)), nil, "vandermonde without its points alpha"},
		{"lagrange", 3, sets(codes("omega", 0, 3)), nil, "lagrange without its points alpha"},
		{"vandermonde", 3, sets(codes("alpha", 0, 2)), nil, "2 points in alpha, and K = 3: want one for each processor"},
		{"cauchy", 2, sets(codes("x", 0, 2), codes("y", 9, 2)), nil, "2 points in x, and K = 3: want one for each source"},
		{"cauchy", 2, sets(codes("x", 0, 3), codes("y", 9, 3)), nil, "3 points in y, and R = 2: want one for each sink"},
		{"vandermonde", 3, sets(matrix.PointSet{Name: "alpha", Points: pointset.Codes(other, 0, 3)}), nil, "points alpha over 257, and a matrix over 2^8: want one field"},
		{"cauchy", 3, sets(codes("y", 0, 3), codes("x", 2, 3)), nil, "cauchy: the points x_0 and y_2 are both 2: want distinct points: change omega, which gives x, or alpha, which gives y"},
		{"file", 3, nil, nil, "file:A.csv without its entries"},
		{"file", 3, nil, identity(other, 3), "entries of a 3×3 matrix over 257, and K = 3 processors need 3×3 over 2^8"},
		{"file", 2, nil, identity(f, 3), "entries of a 3×3 matrix over 2^8, and K = 3 sources and R = 2 sinks need 3×2 over 2^8"},
	} {
		spec := Spec{Family: c.family}
		if c.family == "file" {
			spec.Argument = "A.csv"
		}
		_, err := spec.BuildFrom(f, 3, c.r, c.sets, c.entries)
		wantError(t, err, "matrix: "+c.want)
	}
	// The words and files for points do not matter, whatever they are.
	if _, err := (Spec{Family: "rs:par1", Points: "no such file", Omega: "x", Alpha: "y"}).BuildFrom(f, 3, 3, nil, nil); err != nil {
		t.Error(err)
	}
}

func TestSpecFiles(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want []string
	}{
		{Spec{Family: "random", Argument: "7"}, nil},
		{Spec{Family: "lagrange", Omega: "coset", Alpha: "codes"}, nil},
		{Spec{Family: "file", Argument: "A.csv"}, []string{"A.csv"}},
		{Spec{Family: "vandermonde", Points: "p"}, []string{"p"}},
		{Spec{Family: "cauchy", Omega: "x", Alpha: "y"}, []string{"x", "y"}},
	} {
		if got := c.spec.Files(); !slices.Equal(got, c.want) {
			t.Errorf("%+v reads %q, want %q", c.spec, got, c.want)
		}
	}
}

func TestDefaultField(t *testing.T) {
	for family, want := range map[string]string{"fti": "2^16", "cauchy": "2^8", "rs:cauchy": "2^8", "nonsense": "2^8"} {
		if got := (Spec{Family: family}).DefaultField("2^8"); got != want {
			t.Errorf("%s: %s, want %s", family, got, want)
		}
	}
}

// FuzzParseSpec checks that what ParseSpec reads is what it was given, and that building
// it is an error or a matrix over the field.
func FuzzParseSpec(f *testing.F) {
	for _, family := range families {
		f.Add(family.String(), "257", uint8(3), uint8(2), "coset")
	}
	f.Add("random:7", "2^8", uint8(5), uint8(5), "powers")
	f.Add("lagrange", "97", uint8(4), uint8(6), "codes")
	f.Fuzz(func(t *testing.T, text, fieldName string, k, r uint8, points string) {
		defer fuzzlimit.Hold(t, len(text)+len(fieldName))()
		spec, err := ParseSpec(text)
		if err != nil {
			return
		}
		name := spec.Family
		if spec.Argument != "" {
			name += ":" + spec.Argument
		}
		if name != text {
			t.Fatalf("%q was read as %q", text, name)
		}
		over, err := field.Parse(fieldName)
		if err != nil || spec.Listed() || !slices.Contains(append([]string{""}, pointWords...), points) {
			return // of files there is another fuzz test
		}
		if slices.Contains(families[slices.IndexFunc(families, func(f Family) bool { return f.Name == spec.Family })].Takes, "points") {
			spec.Points = points
		}
		m, err := spec.Build(over, int(k%17), int(r%17))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "matrix: ") {
				t.Errorf("%q: the error %q does not say that it is of this package", text, err)
			}
			return
		}
		if m.Rows() != int(k%17) || m.Cols() != int(r%17) {
			t.Fatalf("%q: %d×%d, want %d×%d", text, m.Rows(), m.Cols(), k%17, r%17)
		}
		for i := range m.Rows() {
			for j := range m.Cols() {
				if e := m.At(i, j); !field.Contains(over, e) {
					t.Fatalf("%q: entry (%d, %d) is %v", text, i, j, e)
				}
			}
		}
	})
}
