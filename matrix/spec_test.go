package matrix

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/field"
)

func TestParseSpec(t *testing.T) {
	for s, want := range map[string]Spec{
		"dft":                         {Family: "dft"},
		"vandermonde":                 {Family: "vandermonde"},
		"cauchy":                      {Family: "cauchy"},
		"random:0":                    {Family: "random", Argument: "0"},
		"random:18446744073709551615": {Family: "random", Argument: "18446744073709551615"},
		"file:A.csv":                  {Family: "file", Argument: "A.csv"},
		"file:C:\\A.csv":              {Family: "file", Argument: "C:\\A.csv"},
	} {
		if got := must(ParseSpec(s))(t); got != want {
			t.Errorf("%s: %+v, want %+v", s, got, want)
		}
	}
	for s, want := range map[string]string{
		"":                            `matrix: unknown matrix "": want one of cauchy, dft, vandermonde, random:SEED, file:A.csv`,
		"DFT":                         `matrix: unknown matrix "DFT": want one of cauchy, dft, vandermonde, random:SEED, file:A.csv`,
		"fft:8":                       `matrix: unknown matrix "fft": want one of cauchy, dft, vandermonde, random:SEED, file:A.csv`,
		"dft:8":                       `matrix: dft takes no argument, got "8": want "dft"`,
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
	f := parseField(t, "2^8")
	const k = 5
	csv := writeFile(t, "A.csv", "1,0,0,0,0\n0,1,0,0,0\n0,0,1,0,0\n0,0,0,1,0\n0,0,0,0,2\n")
	points := writeFile(t, "points", "# five\n5 6 7 8 9\n")
	diagonal := DenseOf(Identity(f, k))
	diagonal.Set(4, 4, field.Code(2))
	read := must(ReadPoints(f, strings.NewReader("5,6,7,8,9"), ""))(t)

	for _, c := range []struct {
		name string
		spec Spec
		want Matrix
		id   string
	}{
		{"cauchy", Spec{Family: "cauchy"}, must(Cauchy(f, k))(t), "cauchy"},
		{"dft", Spec{Family: "dft"}, must(DFT(f, k))(t), "dft"},
		{"random", Spec{Family: "random", Argument: "7"}, must(Random(f, k, k, 7))(t), "random:7"},
		{"default points", Spec{Family: "vandermonde"}, Vandermonde(must(PointsCoset(f, k))(t)), "vandermonde(coset)"},
		{"coset", Spec{Family: "vandermonde", Points: "coset"}, Vandermonde(must(PointsCoset(f, k))(t)), "vandermonde(coset)"},
		{"powers", Spec{Family: "vandermonde", Points: "powers"}, Vandermonde(must(PointsPowers(f, k))(t)), "vandermonde(powers)"},
		{"points file", Spec{Family: "vandermonde", Points: points}, Vandermonde(must(PointsCodes(f, 5, k))(t)), "vandermonde(" + read.ID() + ")"},
		{"file", Spec{Family: "file", Argument: csv}, diagonal, diagonal.ID()},
		{"inverse", Spec{Family: "cauchy", Inverse: true}, must(Inverse(must(Cauchy(f, k))(t)))(t), "inverse(cauchy)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := must(c.spec.Build(f, k))(t)
			if !Equal(got, c.want) {
				t.Fatal("another matrix")
			}
			if got.ID() != c.id {
				t.Errorf("ID %q, want %q", got.ID(), c.id)
			}
		})
	}
}

func TestBuildErrors(t *testing.T) {
	f := parseField(t, "2^8")
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
		{"no family", Spec{}, 2, `matrix: unknown matrix "": want one of cauchy, dft, vandermonde, random:SEED, file:A.csv`},
		{"no K", Spec{Family: "cauchy"}, 0, "matrix: K = 0: want 1 to 2147483647"},
		{"argument", Spec{Family: "cauchy", Argument: "x"}, 2, `matrix: cauchy takes no argument, got "x": want "cauchy"`},
		{"no argument", Spec{Family: "file"}, 2, `matrix: file needs an argument: want "file:A.csv"`},
		{"seed", Spec{Family: "random", Argument: "x"}, 2, `matrix: random: the seed "x" is not a decimal number below 2^64`},
		{"points", Spec{Family: "dft", Points: "coset"}, 5, `matrix: dft takes no points, got "coset": leave them out`},
		{"too many points", Spec{Family: "vandermonde"}, 256, "matrix: coset points over 2^8: K = 256 needs as many nonzero elements: want K <= 255, or a field such as 2^16"},
		{"points file of another length", Spec{Family: "vandermonde", Points: points}, 4, "matrix: " + points + " has 5 points, and K = 4: want one for each processor"},
		{"wide file", Spec{Family: "file", Argument: csv}, 2, "matrix: " + csv + " is 2×3, and K = 2 processors need 2×2"},
		{"file longer than K", Spec{Family: "file", Argument: csv}, 1, "matrix: " + csv + " is 2×3, and K = 1 processors need 1×1"},
		{"value in the file", Spec{Family: "file", Argument: bad}, 2, "matrix: " + bad + " line 2: column 2: 300 is outside the field 2^8: want 0 to 255"},
		{"singular", Spec{Family: "file", Argument: singular, Inverse: true}, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.spec.Build(f, c.k)
			if c.want == "" {
				if !errors.Is(err, ErrSingular) || !strings.HasSuffix(err.Error(), ": matrix is singular: rank 1 of 2") {
					t.Errorf("error %v, want ErrSingular", err)
				}
				return
			}
			wantError(t, err, c.want)
		})
	}
	for _, spec := range []Spec{{Family: "file", Argument: "no such file"}, {Family: "vandermonde", Points: "no such file"}} {
		if _, err := spec.Build(f, 2); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "matrix: ") {
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
