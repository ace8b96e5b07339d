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

func TestBuild(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	const k = 5
	csv := writeFile(t, "A.csv", "1,0,0,0,0\n0,1,0,0,0\n0,0,1,0,0\n0,0,0,1,0\n0,0,0,0,2\n")
	points := writeFile(t, "points", "# five\n5 6 7 8 9\n")
	diagonal := matrix.DenseOf(identity(f, k))
	diagonal.Set(4, 4, field.Code(2))
	read := must(ReadPoints(f, strings.NewReader("5,6,7,8,9"), ""))(t)
	far := writeFile(t, "far", "50 51 52 53 54")
	farID := must(ReadPoints(f, strings.NewReader("50 51 52 53 54"), ""))(t).ID()
	codes := func(first int) matrix.Points { return pointset.Codes(f, first, k) }

	for _, c := range []struct {
		name string
		spec Spec
		want matrix.Matrix
		id   string
	}{
		{"cauchy", Spec{Family: "cauchy"}, must(matrix.Cauchy(f, k, k))(t), "cauchy"},
		{"cauchy in any order", Spec{Family: "cauchy", Order: "any"}, must(matrix.Cauchy(f, k, k))(t), "cauchy"},
		{"dft", Spec{Family: "dft"}, must(matrix.DFT(f, k))(t), "dft"},
		{"dft reversed", Spec{Family: "dft", Order: "reversed"}, must(matrix.DFTReversed(f, k, nil))(t), "dft-reversed"},
		{"random", Spec{Family: "random", Argument: "7"}, must(matrix.Random(f, k, k, 7))(t), "random:7"},
		{"fti", Spec{Family: "fti"}, matrix.Transpose(must(matrix.Cauchy(f, k, k))(t)), "fti"},
		{"rs:vandermonde", Spec{Family: "rs:vandermonde"}, must(matrix.Lagrange(codes(0), codes(k)))(t), "rs:vandermonde"},
		{"rs:cauchy", Spec{Family: "rs:cauchy"}, must(matrix.Cauchy(f, k, k))(t), "rs:cauchy"},
		{"rs:par1", Spec{Family: "rs:par1"}, matrix.Transpose(matrix.Vandermonde(codes(1), 0)), "rs:par1"},
		{"rs:par2", Spec{Family: "rs:par2"}, matrix.Transpose(matrix.Vandermonde(must(matrix.NewPoints(f, []field.Element{field.Code(2), field.Code(4), field.Code(16), field.Code(128), field.Code(29)}))(t), 0)), "rs:par2"}, // 1, 2, 4, 7 and 8 are coprime to 255
		{"rs:jerasure", Spec{Family: "rs:jerasure"}, must(matrix.ReedSolomonJerasure(f, k, k))(t), "rs:jerasure"},
		{"cauchy with omega", Spec{Family: "cauchy", Omega: far}, must(matrix.CauchyOn(codes(50), codes(k)))(t), "cauchy(" + farID + ", codes:5)"},
		{"cauchy with both", Spec{Family: "cauchy", Omega: far, Alpha: points}, must(matrix.CauchyOn(codes(50), codes(k)))(t), "cauchy(" + farID + ", " + read.ID() + ")"},
		{"lagrange", Spec{Family: "lagrange"}, must(matrix.Lagrange(must(matrix.CosetPoints(f, k))(t), must(matrix.ShiftedCosetPoints(f, k, 1))(t)))(t), "lagrange(coset, coset+1)"},
		{"lagrange codes", Spec{Family: "lagrange", Omega: "codes", Alpha: "codes"}, must(matrix.Lagrange(codes(0), codes(k)))(t), "lagrange(codes:0, codes:5)"},
		{"lagrange on powers and a file", Spec{Family: "lagrange", Omega: "powers", Alpha: points}, must(matrix.Lagrange(pointset.PowersFrom(f, 0, k), codes(5)))(t), "lagrange(powers, " + read.ID() + ")"},
		{"lagrange to later powers", Spec{Family: "lagrange", Omega: points, Alpha: "powers"}, must(matrix.Lagrange(codes(5), must(matrix.NewPoints(f, []field.Element{field.Code(32), field.Code(64), field.Code(128), field.Code(29), field.Code(58)}))(t)))(t), "lagrange(" + read.ID() + ", powers+5)"},
		{"lch", Spec{Family: "lch"}, must(matrix.LCH(f, k, k))(t), "lch"},
		{"codes", Spec{Family: "vandermonde", Points: "codes"}, matrix.Vandermonde(codes(0), 0), "vandermonde(codes:0)"},
		{"default points", Spec{Family: "vandermonde"}, matrix.Vandermonde(must(matrix.CosetPoints(f, k))(t), 0), "vandermonde(coset)"},
		{"coset", Spec{Family: "vandermonde", Points: "coset"}, matrix.Vandermonde(must(matrix.CosetPoints(f, k))(t), 0), "vandermonde(coset)"},
		{"powers", Spec{Family: "vandermonde", Points: "powers"}, matrix.Vandermonde(pointset.PowersFrom(f, 0, k), 0), "vandermonde(powers)"},
		{"points file", Spec{Family: "vandermonde", Points: points}, matrix.Vandermonde(codes(5), 0), "vandermonde(" + read.ID() + ")"},
		{"file", Spec{Family: "file", Argument: csv}, diagonal, diagonal.ID()},
		{"inverse", Spec{Family: "cauchy", Inverse: true}, must(matrix.Inverse(t.Context(), must(matrix.Cauchy(f, k, k))(t)))(t), "inverse(cauchy)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := must(c.spec.Build(f, k, k))(t)
			if !equal(got, c.want) {
				t.Fatal("another matrix")
			}
			if got.ID() != c.id {
				t.Errorf("ID %q, want %q", got.ID(), c.id)
			}

			// Once more from values, as decode does.
			plain := c.spec
			plain.Inverse = false
			built := must(plain.Build(f, k, k))(t)
			var sets []matrix.PointSet
			for _, set := range matrix.StructureOf(built).Points {
				sets = append(sets, matrix.PointSet{Name: set.Name, Points: must(matrix.NewPoints(f, pointset.Elements(nil, set.Points)))(t)})
			}
			values := Spec{Family: c.spec.Family, Argument: c.spec.Argument, Order: c.spec.Order, Inverse: c.spec.Inverse}
			again := must(values.BuildFrom(f, k, k, sets, matrix.DenseOf(built)))(t)
			if !equal(again, c.want) {
				t.Error("another matrix from values")
			}
			if len(c.spec.Files()) == 0 && again.ID() != c.id {
				t.Errorf("from values ID %q, want %q", again.ID(), c.id)
			}
		})
	}
}

func TestBuildErrors(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	csv := writeFile(t, "A.csv", "1,0,7\n0,1,7\n")
	bad := writeFile(t, "bad.csv", "1,0\n0,300\n")
	points := writeFile(t, "points", "9 8 7 6 5")
	singular := writeFile(t, "singular.csv", "1,2\n2,4\n")
	for _, c := range []struct {
		name string
		spec Spec
		k    int
		want string
	}{
		{"no family", Spec{}, 2, `matrix: unknown matrix "": want one of ` + allFamilies},
		{"no K", Spec{Family: "cauchy"}, 0, "matrix: K = 0: want 1 to 2147483647"},
		{"argument", Spec{Family: "cauchy", Argument: "x"}, 2, `matrix: cauchy takes no argument, got "x": want "cauchy"`},
		{"no argument", Spec{Family: "file"}, 2, `matrix: file needs an argument: want "file:A.csv"`},
		{"seed", Spec{Family: "random", Argument: "x"}, 2, `matrix: random: the seed "x" is not a decimal number below 2^64`},
		{"points", Spec{Family: "dft", Points: "coset"}, 5, `matrix: dft takes no points, got "coset": leave that out, or take one of vandermonde`},
		{"omega", Spec{Family: "vandermonde", Omega: "codes"}, 5, `matrix: vandermonde takes no omega, got "codes": leave that out, or take one of cauchy, lagrange`},
		{"alpha", Spec{Family: "lch", Alpha: "codes"}, 5, `matrix: lch takes no alpha, got "codes": leave that out, or take one of cauchy, lagrange`},
		{"reversed", Spec{Family: "cauchy", Order: "reversed"}, 5, `matrix: cauchy takes no order, got "reversed": leave that out, or take one of dft`},
		{"order", Spec{Family: "dft", Order: "up"}, 5, `matrix: order "up": want one of natural, reversed, any`},
		{"lch too large", Spec{Family: "lch"}, 257, "matrix: lch over 2^8: K = 257 needs 257 elements and there are 256: want K <= 256, or a field such as 2^16"},
		{"cauchy far too large", Spec{Family: "cauchy"}, 300, "matrix: cauchy over 2^8: K + R = 600 needs 600 elements and there are 256: want K + R <= 256, or a field such as 2^16"},
		{"fti too large", Spec{Family: "fti"}, 129, "matrix: fti over 2^8: K + R = 258 needs 258 elements and there are 256: want K + R <= 256, or a field such as 2^16"},
		{"rs:vandermonde too large", Spec{Family: "rs:vandermonde"}, 129, "matrix: rs:vandermonde over 2^8: K + R = 258 needs 258 elements and there are 256: want K + R <= 256, or a field such as 2^16"},
		{"rs:cauchy too large", Spec{Family: "rs:cauchy"}, 129, "matrix: cauchy over 2^8: K + R = 258 needs 258 elements and there are 256: want K + R <= 256, or a field such as 2^16"},
		{"rs:par2 too large", Spec{Family: "rs:par2"}, 129, "matrix: rs:par2 over 2^8: K = 129 needs 129 numbers that are coprime to 255: want K <= 128, or a larger field"},
		{"rs:par1 too large", Spec{Family: "rs:par1"}, 256, "matrix: rs:par1 over 2^8: K = 256 needs 257 elements and there are 256: want K <= 255, or a field such as 2^16"},
		{"rs:jerasure too large", Spec{Family: "rs:jerasure"}, 129, "matrix: rs:jerasure over 2^8: K + R = 258 needs 257 elements and there are 256: want K + R <= 257, or a field such as 2^16"},
		{"lagrange with more", Spec{Family: "lagrange"}, 300, "matrix: coset points over 2^8: K = 300 needs 300 nonzero elements and there are 255: want K <= 255, or a field such as 2^16"},
		{"lagrange on powers", Spec{Family: "lagrange", Omega: "powers", Alpha: "powers"}, 128, "matrix: powers points over 2^8: K + R = 256 needs 256 nonzero elements and there are 255: want K + R <= 255, or a field such as 2^16"},
		{"lagrange on codes", Spec{Family: "lagrange", Omega: "codes", Alpha: "codes"}, 129, "matrix: codes points over 2^8: K + R = 258 needs 258 elements and there are 256: want K + R <= 256, or a field such as 2^16"},
		{"cauchy on cosets", Spec{Family: "cauchy", Omega: "coset", Alpha: "coset"}, 128, "matrix: coset points over 2^8: K + R = 256 needs 256 nonzero elements and there are 255: want K + R <= 255, or a field such as 2^16"},
		{"cauchy's points meet", Spec{Family: "cauchy", Omega: points}, 5, "matrix: cauchy: the points x_4 and y_0 are both 5: want distinct points: change omega, which gives x, or alpha, which gives y"},
		{"too many codes", Spec{Family: "vandermonde", Points: "codes"}, 257, "matrix: codes points over 2^8: K = 257 needs 257 elements and there are 256: want K <= 256, or a field such as 2^16"},
		{"too many points", Spec{Family: "vandermonde"}, 256, "matrix: coset points over 2^8: K = 256 needs 256 nonzero elements and there are 255: want K <= 255, or a field such as 2^16"},
		{"points file of another length", Spec{Family: "vandermonde", Points: points}, 4, "matrix: " + points + " has 5 points, and K = 4: want one for each processor"},
		{"wide file", Spec{Family: "file", Argument: csv}, 2, "matrix: " + csv + " is 2×3, and K = 2 processors need 2×2: want a file of that shape, or R = 3 sinks"},
		{"file longer than K", Spec{Family: "file", Argument: csv}, 1, "matrix: " + csv + " is 2×3, and K = 1 processors need 1×1"},
		{"value in the file", Spec{Family: "file", Argument: bad}, 2, "matrix: " + bad + " line 2: column 2: 300 is outside the field 2^8: want 0 to 255"},
		{"singular", Spec{Family: "file", Argument: singular, Inverse: true}, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.spec.Build(f, c.k, c.k)
			if c.want == "" {
				if !errors.Is(err, matrix.ErrSingular) || !strings.HasSuffix(err.Error(), ": matrix is singular: rank 1 of 2") {
					t.Errorf("error %v, want ErrSingular", err)
				}
				return
			}
			wantError(t, err, c.want)
		})
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
		if f.Name == "" || f.Formula == "" || f.Doc == "" {
			t.Errorf("the row of %q has a gap", f.Name)
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
	codeSet := func(name string, first, n int) matrix.PointSet {
		return matrix.PointSet{Name: name, Points: pointset.Codes(f, first, n)}
	}
	for _, c := range []struct {
		name    string
		spec    Spec
		sets    []matrix.PointSet
		entries matrix.Matrix
		want    string
	}{
		{"no points", Spec{Family: "vandermonde"}, []matrix.PointSet{codeSet("omega", 0, 3)}, nil, "matrix: vandermonde without its points alpha"},
		{"one set", Spec{Family: "lagrange"}, []matrix.PointSet{codeSet("omega", 0, 3)}, nil, "matrix: lagrange without its points alpha"},
		{"few points", Spec{Family: "vandermonde"}, []matrix.PointSet{codeSet("alpha", 0, 2)}, nil, "matrix: 2 points in alpha, and K = 3: want one for each processor"},
		{"another field", Spec{Family: "vandermonde"}, []matrix.PointSet{{Name: "alpha", Points: pointset.Codes(fieldtest.Parse(t, "257"), 0, 3)}}, nil, "matrix: points alpha over 257, and a matrix over 2^8: want one field"},
		{"points meet", Spec{Family: "cauchy"}, []matrix.PointSet{codeSet("y", 0, 3), codeSet("x", 2, 3)}, nil, "matrix: cauchy: the points x_0 and y_2 are both 2: want distinct points: change omega, which gives x, or alpha, which gives y"},
		{"no entries", Spec{Family: "file", Argument: "A.csv"}, nil, nil, "matrix: file:A.csv without its entries"},
		{"entries over another field", Spec{Family: "file", Argument: "A.csv"}, nil, identity(fieldtest.Parse(t, "257"), 3), "matrix: entries of a 3×3 matrix over 257, and K = 3 processors need 3×3 over 2^8"},
		{"few entries", Spec{Family: "file", Argument: "A.csv"}, nil, identity(f, 2), "matrix: entries of a 2×2 matrix over 2^8, and K = 3 processors need 3×3 over 2^8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.spec.BuildFrom(f, 3, 3, c.sets, c.entries)
			wantError(t, err, c.want)
		})
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
	f.Add("lagrange", "3^4", uint8(4), uint8(6), "codes")
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

// TestTooFewPowers says which K would do.
func TestTooFewPowers(t *testing.T) {
	_, err := Spec{Family: "vandermonde", Points: "powers"}.Build(fieldtest.Parse(t, "2^8"), 256, 256)
	wantError(t, err, "matrix: powers points over 2^8: K = 256 needs 256 nonzero elements and there are 255: want K <= 255, or a field such as 2^16")
}

func BenchmarkAt(b *testing.B) {
	for _, c := range []struct {
		field string
		k     int
		specs []string
	}{
		{"2^8", 85, []string{"cauchy", "dft", "vandermonde", "random:1"}},
		{"2147483647", 899_658, []string{"cauchy", "dft", "vandermonde", "random:1"}},
	} {
		for _, spec := range c.specs {
			m := must(must(ParseSpec(spec))(b).Build(fieldtest.Parse(b, c.field), c.k, c.k))(b)
			b.Run(fmt.Sprintf("matrix=%s/field=%s/K=%d", spec, c.field, c.k), func(b *testing.B) {
				i := 0
				for b.Loop() {
					m.At(i, c.k-1-i)
					if i++; i == c.k {
						i = 0
					}
				}
			})
		}
	}
}
