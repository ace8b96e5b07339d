package matrix

import (
	"cmp"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"

	"volley/field"
)

// A Family is a row of the table of matrices that can be named.
type Family struct {
	Name     string   // as in "random:SEED"
	Argument string   // what follows the colon; empty where nothing may
	Formula  string   // the entries
	Doc      string   // what they are for, and the condition on K
	Field    string   // the field to take where none is named; empty where any is as good
	Takes    []string // which of points, omega, alpha, base and order a [Spec] may have

	build func(b *builder) (Matrix, error)
}

// families is in the order of the command line's help.
var families = []Family{
	{
		Name:    "cauchy",
		Formula: "A[i][j] = 1/(x_i - y_j); x_i = i and y_j = K+j, of symbol codes",
		Doc:     "MDS; 2K <= q; omega gives other x, alpha other y",
		Takes:   []string{"omega", "alpha"},
		build:   buildCauchy,
	},
	{
		Name:    "fti",
		Formula: "A[i][j] = 1/(j - (K+i)), of symbol codes; over 2^w 1/(j ⊕ (K+i))",
		Doc:     "level 3 checkpoints of FTI; MDS; 2K <= q",
		Field:   "2^16",
		build:   func(b *builder) (Matrix, error) { return FTI(b.f, b.k) },
	},
	{
		Name:    "rs:vandermonde",
		Formula: "A[i][j] = Φ_i(K+j), Φ_i = 1 at i and 0 at the other codes below K",
		Doc:     "parity of klauspost/reedsolomon by default; MDS; 2K <= q",
		build:   func(b *builder) (Matrix, error) { return ReedSolomonVandermonde(b.f, b.k) },
	},
	{
		Name:    "rs:cauchy",
		Formula: "A[i][j] = 1/(i - (K+j)), of symbol codes",
		Doc:     "parity of klauspost/reedsolomon WithCauchyMatrix and of ISA-L's gf_gen_cauchy1_matrix; MDS; 2K <= q",
		build: func(b *builder) (Matrix, error) {
			m, err := Cauchy(b.f, b.k)
			if err != nil {
				return nil, err
			}
			return named{m, "rs:cauchy"}, nil
		},
	},
	{
		Name:    "rs:par1",
		Formula: "A[i][j] = (i+1)^j, of symbol codes",
		Doc:     "parity of klauspost/reedsolomon WithPAR1Matrix; over 2^w MDS for K < 4 only; K <= q-1",
		build:   func(b *builder) (Matrix, error) { return ReedSolomonPAR1(b.f, b.k) },
	},
	{
		Name:    "rs:jerasure",
		Formula: "A[i][j] = (K-i)(K+j)/(K(K+j-i)), in the last column (K-i)/K, of symbol codes",
		Doc:     "parity of Jerasure's reed_sol_van and of klauspost/reedsolomon WithJerasureMatrix; MDS; 2K-1 <= q",
		build:   func(b *builder) (Matrix, error) { return ReedSolomonJerasure(b.f, b.k) },
	},
	{
		Name:    "lagrange",
		Formula: "A[i][j] = Φ_i(α_j), Φ_i = 1 at ω_i and 0 at the other points of omega",
		Doc:     "from a polynomial's values on omega to its values on alpha; MDS where these have no point in common",
		Takes:   []string{"omega", "alpha"},
		build:   buildLagrange,
	},
	{
		Name:    "vandermonde",
		Formula: "A[i][j] = α_j^i, on points α_j",
		Doc:     "values of the polynomial whose coefficients are the initial packets; K <= q-1 unless the points are codes or from a file",
		Takes:   []string{"points"},
		build: func(b *builder) (Matrix, error) {
			p, err := b.points("alpha", cmp.Or(b.Points, "coset"), map[string]func() (Points, error){
				"coset":  func() (Points, error) { return PointsCoset(b.f, b.k) },
				"powers": func() (Points, error) { return PointsPowers(b.f, b.k) },
				"codes":  func() (Points, error) { return b.codes(0) },
			})
			if err != nil {
				return nil, err
			}
			return Vandermonde(p), nil
		},
	},
	{
		Name:    "moore",
		Formula: "A[i][j] = α_j^(base^i), on points α_j",
		Doc:     "Gabidulin codes: values of a linearised polynomial; invertible where the points are independent over F_base",
		Takes:   []string{"points", "base"},
		build:   buildMoore,
	},
	{
		Name:    "gabidulin",
		Formula: "A = Moore(ω)⁻¹·Moore(α), ω and α independent over F_base",
		Doc:     "parity of systematic Gabidulin codes, MRD; 2K <= the degree of the field over F_base",
		Takes:   []string{"base"},
		build:   func(b *builder) (Matrix, error) { return Gabidulin(b.f, b.Base, b.k) },
	},
	{
		Name:    "dft",
		Formula: "A[i][j] = ω^(ij), ω = g^((q-1)/K)",
		Doc:     "discrete Fourier transform; K divides q-1; order reversed has the columns in digit-reversed order",
		Takes:   []string{"order"},
		build: func(b *builder) (Matrix, error) {
			if b.Order == "reversed" {
				return DFTReversed(b.f, b.k)
			}
			return DFT(b.f, b.k)
		},
	},
	{
		Name:    "lch",
		Formula: "A[i][j] = X_i(j), X_i of degree i in the basis of Lin, Chung and Han",
		Doc:     "additive Fourier transform; q = 2^w, K <= q",
		build:   func(b *builder) (Matrix, error) { return LCH(b.f, b.k) },
	},
	{
		Name:     "random",
		Argument: "SEED",
		Formula:  "A[i][j] uniform in F_q, a function of SEED, i and j",
		Doc:      "may be singular; SEED is a decimal number below 2^64",
		build: func(b *builder) (Matrix, error) {
			seed, err := parseSeed(b.Argument)
			if err != nil {
				return nil, err
			}
			return Random(b.f, b.k, b.k, seed)
		},
	},
	{
		Name:     "file",
		Argument: "A.csv",
		Formula:  "A[i][j] = value j of row i",
		Doc:      "K rows of K decimal values, with commas between them; lines that begin with # are comments",
		build:    func(b *builder) (Matrix, error) { return b.square() },
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

// taking lists the families that take an option.
func taking(option string) string {
	var names []string
	for _, f := range families {
		if slices.Contains(f.Takes, option) {
			names = append(names, f.Name)
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
//
// Point sets are words or files of [ReadPoints]; an empty one is the default.
// The words, and what they are for the point set of a vandermonde or moore matrix
// or for omega; alpha has the same number of points, those that come next:
//
//	coset    [PointsCoset], and for moore [PointsMoore]: the default, except for cauchy
//	powers   g^0 … g^(K-1); alpha g^K … g^(2K-1), an error where 2K > q-1
//	codes    symbol codes 0 … K-1, not for moore; alpha K … 2K-1: the default for cauchy
//
// Of K = M·Z points on cosets, Z = gcd(K, q-1), omega has the cosets 0 … M-1 and
// alpha the cosets M … 2M-1. Where these do not fit, 2K > q-1, alpha has the cosets
// 1 … M: that is a lagrange matrix still, but no cauchy matrix.
type Spec struct {
	Family   string // the name of one of [Families]
	Argument string // the family's argument
	Points   string // the points of a vandermonde or moore matrix
	Omega    string // the points of a lagrange matrix that have values; the x of a cauchy matrix
	Alpha    string // the points of a lagrange matrix that get values; the y of a cauchy matrix
	Base     uint64 // the base of a moore or gabidulin matrix; 0 is the characteristic
	Order    string // the order of columns: "reversed", for dft only, or "natural" or "any", which build the same as ""
	Inverse  bool   // the inverse of that matrix
}

// orders lists what Spec.Order may be. That "any" lets the columns come in an
// order that is cheaper is for others to make use of.
var orders = []string{"natural", "reversed", "any"}

// ParseSpec reads a family's name and, after a colon, its argument, such as
// "dft" or "random:7". It opens no file.
func ParseSpec(s string) (Spec, error) {
	name, argument, colon := s, "", false
	if _, err := findFamily(s); err != nil { // the colon of "rs:cauchy" is part of the name
		name, argument, colon = strings.Cut(s, ":")
	}
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

// DefaultField returns the name of the field to take where none is named: that
// of the family, or the given one.
func (s Spec) DefaultField(usual string) string {
	if f, err := findFamily(s.Family); err == nil && f.Field != "" {
		return f.Field
	}
	return usual
}

// Files returns the names of the files that Build reads.
func (s Spec) Files() []string {
	var names []string
	if s.Family == "file" {
		names = append(names, s.Argument)
	}
	for _, set := range []string{s.Points, s.Omega, s.Alpha} {
		if set != "" && !slices.Contains(pointWords, set) {
			names = append(names, set)
		}
	}
	return names
}

// Build returns the k×k matrix over f that s names. It reads the files that s
// names; the matrix is on demand unless it comes from a file or is an inverse
// ([Inverse]).
func (s Spec) Build(f field.Field, k int) (Matrix, error) {
	return s.build(&builder{Spec: s, f: f, k: k})
}

// BuildWith is Build from values in place of names, as a manifest has them: it
// returns the matrix with the point sets that [PointsOf] gave, for a family that
// takes points, and with the given entries, for the family "file". It reads no
// file, and what the Points, Omega and Alpha of s are does not matter.
//
// It is the matrix that was built; its ID is another where the points came from a
// file.
func (s Spec) BuildWith(f field.Field, k int, sets []PointSet, entries Matrix) (Matrix, error) {
	s.Points, s.Omega, s.Alpha = "", "", ""
	return s.build(&builder{Spec: s, f: f, k: k, given: true, sets: sets, entries: entries})
}

func (s Spec) build(b *builder) (Matrix, error) {
	family, err := findFamily(s.Family)
	if err != nil {
		return nil, err
	}
	if err := family.checkArgument(s.Argument); err != nil {
		return nil, err
	}
	if err := s.check(family); err != nil {
		return nil, err
	}
	if err := checkSize("K", b.k); err != nil {
		return nil, err
	}
	m, err := family.build(b)
	if err != nil {
		return nil, err
	}
	if s.Inverse {
		return Inverse(m)
	}
	return m, nil
}

// check returns an error when s has an option that the family does not take.
func (s Spec) check(family Family) error {
	base, order := "", s.Order
	if s.Base != 0 {
		base = fmt.Sprint(s.Base)
	}
	if order != "" && !slices.Contains(orders, order) {
		return fmt.Errorf("matrix: order %s: want one of %s", quote(order), strings.Join(orders, ", "))
	}
	if order != "reversed" {
		order = "" // what every family has
	}
	for _, option := range []struct{ name, value string }{
		{"points", s.Points}, {"omega", s.Omega}, {"alpha", s.Alpha}, {"base", base}, {"order", order},
	} {
		if option.value != "" && !slices.Contains(family.Takes, option.name) {
			return fmt.Errorf("matrix: %s takes no %s, got %s: leave that out, or take one of %s",
				family.Name, option.name, quote(option.value), taking(option.name))
		}
	}
	return nil
}

func parseSeed(s string) (uint64, error) {
	seed, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("matrix: random: the seed %s is not a decimal number below 2^64", quote(s))
	}
	return seed, nil
}

// A builder builds the matrix of a Spec.
type builder struct {
	Spec
	f field.Field
	k int

	given   bool // sets and entries, instead of words and files
	sets    []PointSet
	entries Matrix
}

// pointWords lists the words for point sets.
var pointWords = []string{"coset", "powers", "codes"}

// points returns the given set of points or, where none are given, those that name
// stands for: a word, or a file.
func (b *builder) points(set, name string, words map[string]func() (Points, error)) (Points, error) {
	if b.given {
		return b.set(set, words)
	}
	if word := words[name]; word != nil {
		return word()
	}
	var known []string
	for _, w := range pointWords {
		if words[w] != nil {
			known = append(known, strconv.Quote(w))
		}
	}
	want := strings.Join(known, ", ")
	if slices.Contains(pointWords, name) {
		return nil, fmt.Errorf("matrix: %s has no points %q: want %s or a file", b.Family, name, want)
	}
	r, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("matrix: points are %s or a file: %w", want, err)
	}
	defer r.Close()
	p, err := ReadPoints(b.f, r, name)
	if err != nil {
		return nil, err
	}
	if p.Len() != b.k {
		return nil, fmt.Errorf("matrix: %s has %s, and K = %d: want one for each processor", name, count(p.Len(), "point"), b.k)
	}
	return p, nil
}

// set returns the given point set of that name: where a word has the same points,
// those of the word, whose structure is known.
func (b *builder) set(name string, words map[string]func() (Points, error)) (Points, error) {
	i := slices.IndexFunc(b.sets, func(s PointSet) bool { return s.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("matrix: %s without its points %s", b.Family, name)
	}
	p := b.sets[i].Points
	if !sameField(p.Field(), b.f) {
		return nil, fmt.Errorf("matrix: points %s over %s, and a matrix over %s: want one field", name, p.Field().Name(), b.f.Name())
	}
	if p.Len() != b.k {
		return nil, fmt.Errorf("matrix: %s in %s, and K = %d: want one for each processor", count(p.Len(), "point"), name, b.k)
	}
	for _, w := range pointWords {
		if word := words[w]; word != nil {
			if known, err := word(); err == nil && slices.Equal(elements(known), elements(p)) {
				return known, nil
			}
		}
	}
	return p, nil
}

// codes returns the k symbol codes from first on.
func (b *builder) codes(first int) (Points, error) {
	if err := checkCodes(b.Family, b.f, b.k, 1+first/b.k, 0); err != nil {
		return nil, err
	}
	return codePoints{b.f, first, b.k}, nil
}

// pair returns the points omega and alpha, which as given sets have those names;
// usual is the word where nothing is said.
func (b *builder) pair(omega, alpha, usual string) (Points, Points, error) {
	x, err := b.points(omega, cmp.Or(b.Omega, usual), map[string]func() (Points, error){
		"coset":  func() (Points, error) { return PointsCoset(b.f, b.k) },
		"powers": func() (Points, error) { return PointsPowers(b.f, b.k) },
		"codes":  func() (Points, error) { return b.codes(0) },
	})
	if err != nil {
		return nil, nil, err
	}
	y, err := b.points(alpha, cmp.Or(b.Alpha, usual), map[string]func() (Points, error){
		"coset":  b.nextCosets,
		"powers": b.nextPowers,
		"codes":  func() (Points, error) { return b.codes(b.k) },
	})
	return x, y, err
}

// nextPowers returns g^K … g^(2K-1).
func (b *builder) nextPowers() (Points, error) {
	if err := b.checkNext("powers"); err != nil {
		return nil, err
	}
	p, err := PointsPowers(b.f, 2*b.k)
	if err != nil {
		return nil, err
	}
	return tail{p, b.k}, nil
}

// checkNext returns an error when f has fewer than 2K nonzero elements.
func (b *builder) checkNext(word string) error {
	units := unitCount(b.f)
	if need := 2 * int64(b.k); units.Cmp(big.NewInt(need)) < 0 {
		return fmt.Errorf("matrix: %s points over %s: alpha after the K = %d points of omega needs %d nonzero elements and there are %v: want K <= %v%s",
			word, b.f.Name(), b.k, need, units, new(big.Int).Rsh(units, 1), largerField(uint64(need)+1))
	}
	return nil
}

// nextCosets returns the cosets M … 2M-1 or, where there are fewer, 1 … M.
func (b *builder) nextCosets() (Points, error) {
	if err := checkUnits("coset", b.f, b.k); err != nil {
		return nil, err
	}
	units, k := unitCount(b.f), big.NewInt(int64(b.k))
	m := int(k.Int64() / new(big.Int).GCD(nil, nil, units, k).Int64())
	err := b.checkNext("coset")
	switch {
	case err == nil:
		return PointsCosetShifted(b.f, b.k, m)
	case b.Family == "cauchy":
		return nil, err // which wants other points than omega's
	}
	return newCosetPoints(b.f, b.k, b.k/m, 1), nil // where K = q-1, the points of omega in another order
}

// A tail is points from number first on.
type tail struct {
	Points
	first int
}

func (t tail) Len() int   { return t.Points.Len() - t.first }
func (t tail) ID() string { return fmt.Sprintf("%s+%d", t.Points.ID(), t.first) }

func (t tail) At(k int) field.Element {
	checkPoint(k, t.Len())
	return t.Points.At(t.first + k)
}

func buildCauchy(b *builder) (Matrix, error) {
	if err := checkCodes("cauchy", b.f, b.k, 2, 0); err != nil { // whatever they are
		return nil, err
	}
	x, y, err := b.pair("x", "y", "codes")
	if err != nil {
		return nil, err
	}
	if x.ID() == "codes:0" && y.ID() == fmt.Sprintf("codes:%d", b.k) {
		return Cauchy(b.f, b.k)
	}
	m, err := CauchyOn(x, y)
	if err != nil {
		return nil, fmt.Errorf("%w: change omega, which gives x, or alpha, which gives y", err)
	}
	return m, nil
}

func buildLagrange(b *builder) (Matrix, error) {
	omega, alpha, err := b.pair("omega", "alpha", "coset")
	if err != nil {
		return nil, err
	}
	return Lagrange(omega, alpha)
}

func buildMoore(b *builder) (Matrix, error) {
	p, err := b.points("alpha", cmp.Or(b.Points, "coset"), map[string]func() (Points, error){
		"coset":  func() (Points, error) { return PointsMoore(b.f, b.Base, b.k) },
		"powers": func() (Points, error) { return PointsPowers(b.f, b.k) },
	})
	if err != nil {
		return nil, err
	}
	return Moore(p, b.Base)
}

// square returns the k×k matrix of a file, or the given one.
func (b *builder) square() (Matrix, error) {
	if !b.given {
		return readSquare(b.f, b.Argument, b.k)
	}
	if b.entries == nil {
		return nil, fmt.Errorf("matrix: %s:%s without its entries", b.Family, b.Argument)
	}
	if !sameField(b.entries.Field(), b.f) || b.entries.Rows() != b.k || b.entries.Cols() != b.k {
		return nil, fmt.Errorf("matrix: entries of a %d×%d matrix over %s, and K = %d processors need %d×%d over %s",
			b.entries.Rows(), b.entries.Cols(), b.entries.Field().Name(), b.k, b.k, b.k, b.f.Name())
	}
	return b.entries, nil
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
