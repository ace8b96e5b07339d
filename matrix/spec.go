package matrix

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"volley/field"
)

// A Family is a row of the table of matrices that can be named.
type Family struct {
	Name     string // as in "random:SEED"
	Argument string // what follows the colon; empty where nothing may
	Formula  string // the entries
	Doc      string // what they are for, and the condition on K

	points bool // whether Spec.Points says something
	build  func(s Spec, f field.Field, k int) (Matrix, error)
}

// families is in the order of the command line's help.
var families = []Family{
	{
		Name:    "cauchy",
		Formula: "A[i][j] = 1/(i - (K+j)), of symbol codes",
		Doc:     "any K of the 2K initial and coded packets determine the others; 2K <= q",
		build:   func(_ Spec, f field.Field, k int) (Matrix, error) { return Cauchy(f, k) },
	},
	{
		Name:    "dft",
		Formula: "A[i][j] = ω^(ij), ω = g^((q-1)/K)",
		Doc:     "discrete Fourier transform; K divides q-1",
		build:   func(_ Spec, f field.Field, k int) (Matrix, error) { return DFT(f, k) },
	},
	{
		Name:    "vandermonde",
		Formula: "A[i][j] = α_j^i, on points α_j",
		Doc:     "values of the polynomial whose coefficients are the initial packets; K <= q-1 unless the points are from a file",
		points:  true,
		build: func(s Spec, f field.Field, k int) (Matrix, error) {
			p, err := buildPoints(s.Points, f, k)
			if err != nil {
				return nil, err
			}
			return Vandermonde(p), nil
		},
	},
	{
		Name:     "random",
		Argument: "SEED",
		Formula:  "A[i][j] uniform in F_q, a function of SEED, i and j",
		Doc:      "may be singular; SEED is a decimal number below 2^64",
		build: func(s Spec, f field.Field, k int) (Matrix, error) {
			seed, err := parseSeed(s.Argument)
			if err != nil {
				return nil, err
			}
			return Random(f, k, k, seed)
		},
	},
	{
		Name:     "file",
		Argument: "A.csv",
		Formula:  "A[i][j] = value j of row i",
		Doc:      "K rows of K decimal values, with commas between them; lines that begin with # are comments",
		build: func(s Spec, f field.Field, k int) (Matrix, error) {
			return readSquare(f, s.Argument, k)
		},
	},
}

// Families returns the table of matrices that [ParseSpec] knows.
func Families() []Family { return slices.Clone(families) }

// findFamily returns the family of that name.
func findFamily(name string) (Family, error) {
	var names []string
	for _, f := range families {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.String())
	}
	return Family{}, fmt.Errorf("matrix: unknown matrix %s: want one of %s", quote(name), strings.Join(names, ", "))
}

// String returns the form that [ParseSpec] reads, such as "random:SEED".
func (f Family) String() string {
	if f.Argument == "" {
		return f.Name
	}
	return f.Name + ":" + f.Argument
}

// checkArgument returns an error when an argument is missing or too much.
func (f Family) checkArgument(argument string) error {
	switch {
	case f.Argument == "" && argument != "":
		return fmt.Errorf("matrix: %s takes no argument, got %s: want %q", f.Name, quote(argument), f)
	case f.Argument != "" && argument == "":
		return fmt.Errorf("matrix: %s needs an argument: want %q", f.Name, f)
	}
	return nil
}

// A Spec names a square matrix independently of field and K.
type Spec struct {
	Family   string // the name of one of [Families]
	Argument string // the family's argument
	Points   string // "coset", "powers" or a file; empty is "coset". For vandermonde only
	Inverse  bool   // the inverse of that matrix
}

// ParseSpec reads a family's name and, after a colon, its argument, such as
// "dft" or "random:7". It opens no file.
func ParseSpec(s string) (Spec, error) {
	name, argument, colon := strings.Cut(s, ":")
	f, err := findFamily(name)
	if err != nil {
		return Spec{}, err
	}
	if colon && argument == "" {
		return Spec{}, fmt.Errorf("matrix: nothing after the colon of %q: want %q", s, f)
	}
	if err := f.checkArgument(argument); err != nil {
		return Spec{}, err
	}
	if f.Name == "random" {
		if _, err := parseSeed(argument); err != nil {
			return Spec{}, err
		}
	}
	return Spec{Family: name, Argument: argument}, nil
}

// Build returns the k×k matrix over f that s names. It reads the files that s
// names; the matrix is on demand unless it comes from a file or is an inverse
// ([Inverse]).
func (s Spec) Build(f field.Field, k int) (Matrix, error) {
	family, err := findFamily(s.Family)
	if err != nil {
		return nil, err
	}
	if err := family.checkArgument(s.Argument); err != nil {
		return nil, err
	}
	if s.Points != "" && !family.points {
		return nil, fmt.Errorf("matrix: %s takes no points, got %s: leave them out", s.Family, quote(s.Points))
	}
	if err := checkSize("K", k); err != nil {
		return nil, err
	}
	m, err := family.build(s, f, k)
	if err != nil {
		return nil, err
	}
	if s.Inverse {
		return Inverse(m)
	}
	return m, nil
}

func parseSeed(s string) (uint64, error) {
	seed, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("matrix: random: the seed %s is not a decimal number below 2^64", quote(s))
	}
	return seed, nil
}

// buildPoints returns the k points over f that Spec.Points names.
func buildPoints(name string, f field.Field, k int) (Points, error) {
	switch name {
	case "", "coset":
		return PointsCoset(f, k)
	case "powers":
		return PointsPowers(f, k)
	}
	r, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf(`matrix: points are "coset", "powers" or a file: %w`, err)
	}
	defer r.Close()
	p, err := ReadPoints(f, r, name)
	if err != nil {
		return nil, err
	}
	if p.Len() != k {
		return nil, fmt.Errorf("matrix: %s has %s, and K = %d: want one for each processor", name, count(p.Len(), "point"), k)
	}
	return p, nil
}

// readSquare reads the k×k matrix in the file of that name.
func readSquare(f field.Field, name string, k int) (Matrix, error) {
	r, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("matrix: %w", err)
	}
	defer r.Close()
	d, rows, err := readCSV(f, r, name, k)
	if err != nil {
		return nil, err
	}
	if rows != k || d.cols != k {
		return nil, fmt.Errorf("matrix: %s is %d×%d, and K = %d processors need %d×%d", name, rows, d.cols, k, k, k)
	}
	return d, nil
}
