package matrices

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"volley/field"
	"volley/internal/pointset"
	"volley/matrix"
)

// A Family is a row of the table of matrices that can be named.
type Family struct {
	Name     string   `json:"name"`     // as in "random:SEED"
	Argument string   `json:"argument"` // what follows the colon; empty where nothing may
	Formula  string   `json:"formula"`  // the entries
	Doc      string   `json:"doc"`      // what they are for, and the condition on K and R
	Field    string   `json:"-"`        // the field to take where none is named; empty where any is as good
	Takes    []string `json:"-"`        // which of points, omega, alpha and order a [Spec] may have
	Square   bool     `json:"-"`        // for K×K only, not K×R

	build  func(b *builder) (matrix.Matrix, error)
	check  func(argument string) error // of its form; nil where any will do
	listed bool                        // the argument is a file that lists the entries
}

// families is the table, in the order of the command line's help.
var families = []Family{
	{
		Name:    "cauchy",
		Formula: "A[i][j] = 1/(x_i - y_j); x_i = i and y_j = K+j, of symbol codes",
		Doc:     "MDS; K+R <= q; omega gives other x, alpha other y",
		Takes:   []string{"omega", "alpha"},
		build:   buildCauchy,
	},
	{
		Name:    "fti",
		Formula: "A[i][j] = 1/(j - (K+i)), of symbol codes; over 2^w 1/(j ⊕ (K+i))",
		Doc:     "level 3 checkpoints of FTI; MDS; R = K, 2K <= q",
		Field:   "2^16",
		Square:  true,
		build:   func(b *builder) (matrix.Matrix, error) { return matrix.FTI(b.f, b.k) },
	},
	{
		Name:    "rs:vandermonde",
		Formula: "A[i][j] = Φ_i(K+j), Φ_i = 1 at i and 0 at the other codes below K",
		Doc:     "parity of klauspost/reedsolomon by default; MDS; K+R <= q",
		build:   shaped(matrix.ReedSolomonVandermonde),
	},
	{
		Name:    "rs:cauchy",
		Formula: "A[i][j] = 1/(i - (K+j)), of symbol codes",
		Doc:     "parity of klauspost/reedsolomon WithCauchyMatrix and of ISA-L's gf_gen_cauchy1_matrix; MDS; K+R <= q",
		build:   shaped(matrix.ReedSolomonCauchy),
	},
	{
		Name:    "rs:par1",
		Formula: "A[i][j] = (i+1)^j, of symbol codes",
		Doc:     "parity of klauspost/reedsolomon WithPAR1Matrix; over 2^w MDS for K < 4 only; K <= q-1",
		build:   shaped(matrix.ReedSolomonPAR1),
	},
	{
		Name:    "rs:par2",
		Formula: "A[i][j] = g^(n_i·j), n_i the numbers from 1 on that have no divisor with q-1 in common",
		Doc:     "parity of PAR2, recovery block j having exponent j; not MDS; K <= φ(q-1)",
		Field:   "2^16:0x1100b",
		build:   shaped(matrix.ReedSolomonPAR2),
	},
	{
		Name:    "rs:jerasure",
		Formula: "A[i][j] = (K-i)(K+j)/(K(K+j-i)), in the last column (K-i)/K, of symbol codes; 1 where R = 1",
		Doc:     "parity of Jerasure's reed_sol_van and of klauspost/reedsolomon WithJerasureMatrix; MDS; K+R-1 <= q",
		build:   shaped(matrix.ReedSolomonJerasure),
	},
	{
		Name:    "lagrange",
		Formula: "A[i][j] = Φ_i(α_j), Φ_i = 1 at ω_i and 0 at the other points of omega",
		Doc:     "from a polynomial's values on omega to its values on alpha; MDS where these have no point in common",
		Takes:   []string{"omega", "alpha"},
		build: func(b *builder) (matrix.Matrix, error) {
			omega, alpha, err := b.pair("omega", "alpha", "coset", false)
			if err != nil {
				return nil, err
			}
			return matrix.Lagrange(omega, alpha)
		},
	},
	{
		Name:    "vandermonde",
		Formula: "A[i][j] = α_j^i, on points α_j",
		Doc:     "values of the polynomial whose coefficients are the initial packets; R <= q-1 unless the points are codes or from a file",
		Takes:   []string{"points"},
		build: func(b *builder) (matrix.Matrix, error) {
			p, err := b.points("alpha", cmp.Or(b.Points, "coset"), func(word string) (matrix.Points, error) {
				return b.firstPoints(word, "R", b.r, pointset.CosetSize(b.f, b.r))
			})
			if err != nil {
				return nil, err
			}
			return matrix.Vandermonde(p, b.k), nil
		},
	},
	{
		Name:    "dft",
		Formula: "A[i][j] = ω^(ij), ω = g^((q-1)/K)",
		Doc:     "discrete Fourier transform; R = K divides q-1; order reversed has the columns in digit-reversed order",
		Takes:   []string{"order"},
		Square:  true,
		build: func(b *builder) (matrix.Matrix, error) {
			if order, r := b.radices(b.Order); order == "reversed" {
				return matrix.DFTReversed(b.f, b.k, r)
			}
			return matrix.DFT(b.f, b.k)
		},
	},
	{
		Name:    "lch",
		Formula: "A[i][j] = X_i(j), X_i of degree i; with K = M·2^h, M odd, X_(l+2^h·w) = X_l·s^w, s the polynomial that is 0 at the codes below 2^h",
		Doc:     "additive Fourier transform; for K = 2^h X_i is the basis of Lin, Chung and Han; q = 2^w, K <= q, R <= q",
		build:   shaped(matrix.LCH),
	},
	{
		Name:     "random",
		Argument: "SEED",
		Formula:  "A[i][j] uniform in F_q, a function of SEED, i and j",
		Doc:      "may be singular; SEED is a decimal number below 2^64",
		check: func(argument string) error {
			_, err := parseSeed(argument)
			return err
		},
		build: func(b *builder) (matrix.Matrix, error) {
			seed, err := parseSeed(b.Argument)
			if err != nil {
				return nil, err
			}
			return matrix.Random(b.f, b.k, b.r, seed)
		},
	},
	{
		Name:     "file",
		Argument: "A.csv",
		Formula:  "A[i][j] = value j of row i",
		Doc:      "K rows of R decimal values, with commas between them; lines that begin with # are comments; a DFT, Vandermonde or Cauchy matrix is planned as one",
		listed:   true,
		build:    (*builder).stored,
	},
}

// shaped builds a matrix that depends on the field and the shape alone.
func shaped(build func(f field.Field, k, r int) (matrix.Matrix, error)) func(b *builder) (matrix.Matrix, error) {
	return func(b *builder) (matrix.Matrix, error) { return build(b.f, b.k, b.r) }
}

func buildCauchy(b *builder) (matrix.Matrix, error) {
	if err := pointset.CheckBoth("cauchy", b.f, b.k, b.r, 0); err != nil { // whatever they are
		return nil, err
	}
	x, y, err := b.pair("x", "y", "codes", true)
	if err != nil {
		return nil, err
	}
	if x.ID() == "codes:0" && y.ID() == fmt.Sprintf("codes:%d", b.k) {
		return matrix.Cauchy(b.f, b.k, b.r)
	}
	m, err := matrix.CauchyOn(x, y)
	if err != nil {
		return nil, fmt.Errorf("%w: change omega, which gives x, or alpha, which gives y", err)
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

// Families returns the table of matrices that [ParseSpec] knows.
func Families() []Family { return slices.Clone(families) }

func findFamily(name string) (Family, error) {
	if i := slices.IndexFunc(families, func(f Family) bool { return f.Name == name }); i >= 0 {
		return families[i], nil
	}
	return Family{}, fmt.Errorf("matrix: unknown matrix %s: want one of %s", quote(name), familiesWith(func(Family) bool { return true }))
}

// familiesWith lists the families with a property, for people.
func familiesWith(property func(f Family) bool) string {
	var names []string
	for _, f := range families {
		if property(f) {
			names = append(names, f.String())
		}
	}
	return strings.Join(names, ", ")
}

// String returns the form that [ParseSpec] reads, such as "random:SEED".
func (f Family) String() string {
	if f.Argument == "" {
		return f.Name
	}
	return f.Name + ":" + f.Argument
}

// checkArgument returns an error when an argument is missing, too much or of another form.
func (f Family) checkArgument(argument string) error {
	switch {
	case f.Argument == "" && argument != "":
		return fmt.Errorf("matrix: %s takes no argument, got %s: want %q", f.Name, quote(argument), f)
	case f.Argument != "" && argument == "":
		return fmt.Errorf("matrix: %s needs an argument: want %q", f.Name, f)
	case f.check != nil:
		return f.check(argument)
	}
	return nil
}

// quote returns s in quotes, shortened where it is long.
func quote(s string) string {
	const limit = 40
	if len(s) <= limit {
		return strconv.Quote(s)
	}
	return strconv.Quote(s[:limit]) + "…"
}
