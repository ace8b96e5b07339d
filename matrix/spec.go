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
	Doc      string   // what they are for, and the condition on K and R
	Field    string   // the field to take where none is named; empty where any is as good
	Takes    []string // which of points, omega, alpha, base and order a [Spec] may have
	Square   bool     // for K×K only, not K×R

	build func(b *builder) (Matrix, error)
}

// families is in the order of the command line's help.
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
		build:   func(b *builder) (Matrix, error) { return FTI(b.f, b.k) },
	},
	{
		Name:    "rs:vandermonde",
		Formula: "A[i][j] = Φ_i(K+j), Φ_i = 1 at i and 0 at the other codes below K",
		Doc:     "parity of klauspost/reedsolomon by default; MDS; K+R <= q",
		build:   func(b *builder) (Matrix, error) { return reedSolomonVandermonde(b.f, b.k, b.r) },
	},
	{
		Name:    "rs:cauchy",
		Formula: "A[i][j] = 1/(i - (K+j)), of symbol codes",
		Doc:     "parity of klauspost/reedsolomon WithCauchyMatrix and of ISA-L's gf_gen_cauchy1_matrix; MDS; K+R <= q",
		build: func(b *builder) (Matrix, error) {
			m, err := cauchyOnCodes("cauchy", b.f, b.k, b.r)
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
		build:   func(b *builder) (Matrix, error) { return reedSolomonPAR1(b.f, b.k, b.r) },
	},
	{
		Name:    "rs:jerasure",
		Formula: "A[i][j] = (K-i)(K+j)/(K(K+j-i)), in the last column (K-i)/K, of symbol codes; 1 where R = 1",
		Doc:     "parity of Jerasure's reed_sol_van and of klauspost/reedsolomon WithJerasureMatrix; MDS; K+R-1 <= q",
		build:   func(b *builder) (Matrix, error) { return reedSolomonJerasure(b.f, b.k, b.r) },
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
		Doc:     "values of the polynomial whose coefficients are the initial packets; R <= q-1 unless the points are codes or from a file",
		Takes:   []string{"points"},
		build: func(b *builder) (Matrix, error) {
			p, err := b.points("alpha", cmp.Or(b.Points, "coset"), map[string]func() (Points, error){
				"coset":  func() (Points, error) { return b.cosets("R", b.r, cosetSize(b.f, b.r)) },
				"powers": func() (Points, error) { return b.powers("R", b.r) },
				"codes":  func() (Points, error) { return b.codes("R", b.r) },
			})
			if err != nil {
				return nil, err
			}
			return vandermonde{p, b.k}, nil
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
		Doc:     "parity of systematic Gabidulin codes, MRD; K+R <= the degree of the field over F_base",
		Takes:   []string{"base"},
		build:   func(b *builder) (Matrix, error) { return newGabidulin(b.f, b.Base, b.k, b.r) },
	},
	{
		Name:    "dft",
		Formula: "A[i][j] = ω^(ij), ω = g^((q-1)/K)",
		Doc:     "discrete Fourier transform; R = K divides q-1; order reversed has the columns in digit-reversed order",
		Takes:   []string{"order"},
		Square:  true,
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
		Doc:     "additive Fourier transform; q = 2^w, K <= q, R <= q",
		build:   func(b *builder) (Matrix, error) { return newLCH(b.f, b.k, b.r) },
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
			return Random(b.f, b.k, b.r, seed)
		},
	},
	{
		Name:     "file",
		Argument: "A.csv",
		Formula:  "A[i][j] = value j of row i",
		Doc:      "K rows of R decimal values, with commas between them; lines that begin with # are comments",
		build:    func(b *builder) (Matrix, error) { return b.stored() },
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

// rectangular lists the families that are not square only.
func rectangular() string {
	var names []string
	for _, f := range families {
		if !f.Square {
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

// A Spec names a matrix independently of its field and of K and R, the numbers of
// its rows and columns: the packets there are, and those wanted.
//
// Point sets are words or files of [ReadPoints]; an empty one is the default.
// The words, and what they are for the K points of omega; alpha has the R points
// that come next, and a vandermonde or moore matrix R as if these were omega's:
//
//	coset    [PointsCoset], and for moore [PointsMoore]: the default, except for cauchy
//	powers   g^0 … g^(K-1); alpha g^K … g^(K+R-1), an error where K+R > q-1
//	codes    symbol codes 0 … K-1, not for moore; alpha K … K+R-1: the default for cauchy
//
// The points of omega and alpha on cosets are on cosets of one size, Z = gcd(K, R,
// q-1), each in the order of PointsCoset: omega has the cosets 0 … K/Z-1 and alpha
// the next R/Z. So all rows, and every [Block] of them in multiples of Z, have the
// structure that the columns have. Where these do not fit, K+R > q-1, alpha has the
// cosets 1 … R/Z: that is a lagrange matrix still, but no cauchy matrix.
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
func (s Spec) Build(f field.Field, k int) (Matrix, error) { return s.BuildFor(f, k, k) }

// BuildFor is Build for k sources and r sinks: it returns a k×r matrix. It is an
// error where k and r differ for an inverse, or for a family that is square only.
func (s Spec) BuildFor(f field.Field, k, r int) (Matrix, error) {
	return s.build(&builder{Spec: s, f: f, k: k, r: r})
}

// BuildWith is Build from values in place of names, as a manifest has them: it
// returns the matrix with the point sets that [PointsOf] gave, for a family that
// takes points, and with the given entries, for the family "file". It reads no
// file, and what the Points, Omega and Alpha of s are does not matter.
//
// It is the matrix that was built; its ID may be another where the points came from
// a file or are called so by two words.
func (s Spec) BuildWith(f field.Field, k int, sets []PointSet, entries Matrix) (Matrix, error) {
	return s.BuildWithFor(f, k, k, sets, entries)
}

// BuildWithFor is BuildWith for k sources and r sinks, as BuildFor is Build.
func (s Spec) BuildWithFor(f field.Field, k, r int, sets []PointSet, entries Matrix) (Matrix, error) {
	s.Points, s.Omega, s.Alpha = "", "", ""
	return s.build(&builder{Spec: s, f: f, k: k, r: r, given: true, sets: sets, entries: entries})
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
	if err := checkSize("R", b.r); err != nil {
		return nil, err
	}
	if b.k != b.r && family.Square {
		return nil, fmt.Errorf("matrix: %s is square only, and there are K = %d sources and R = %d sinks: want as many, without --sinks, or one of %s",
			family.Name, b.k, b.r, rectangular())
	}
	if b.k != b.r && s.Inverse {
		return nil, fmt.Errorf("matrix: %s of K = %d sources and R = %d sinks has no inverse: want as many, without --sinks, or the matrix itself",
			family, b.k, b.r)
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
	k int // rows: sources
	r int // columns: sinks

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
	if n, want := b.size(set); p.Len() != n {
		return nil, fmt.Errorf("matrix: %s has %s, and %s", name, count(p.Len(), "point"), want)
	}
	return p, nil
}

// size returns how many points a set of that name has, and that for people.
func (b *builder) size(set string) (n int, want string) {
	switch {
	case b.k == b.r:
		return b.k, fmt.Sprintf("K = %d: want one for each processor", b.k)
	case set == "omega" || set == "x":
		return b.k, fmt.Sprintf("K = %d: want one for each source", b.k)
	}
	return b.r, fmt.Sprintf("R = %d: want one for each sink", b.r)
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
	if n, want := b.size(name); p.Len() != n {
		return nil, fmt.Errorf("matrix: %s in %s, and %s", count(p.Len(), "point"), name, want)
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

// letter returns the name of a number of points for people: what, but "K" for a
// square matrix.
func (b *builder) letter(what string) string {
	if b.k == b.r {
		return "K"
	}
	return what
}

// codes returns the first n symbol codes; what names n, "K" or "R".
func (b *builder) codes(what string, n int) (Points, error) {
	if err := checkCodes(b.Family, b.f, b.letter(what), n, 0); err != nil {
		return nil, err
	}
	return codePoints{b.f, 0, n}, nil
}

// powers returns g^0 … g^(n-1).
func (b *builder) powers(what string, n int) (Points, error) {
	if err := checkUnits("powers", b.f, b.letter(what), n); err != nil {
		return nil, err
	}
	return newPowerPoints(b.f, 0, n), nil
}

// cosets returns the n points of the first cosets of z elements.
func (b *builder) cosets(what string, n, z int) (Points, error) {
	if err := checkUnits("coset", b.f, b.letter(what), n); err != nil {
		return nil, err
	}
	return newCosetPoints(b.f, n, z, 0), nil
}

// pair returns the points omega and alpha, which as given sets have those names;
// usual is the word where nothing is said.
func (b *builder) pair(omega, alpha, usual string) (Points, Points, error) {
	z := cosetSize(b.f, gcd(b.k, b.r))
	x, err := b.points(omega, cmp.Or(b.Omega, usual), map[string]func() (Points, error){
		"coset":  func() (Points, error) { return b.cosets("K", b.k, z) },
		"powers": func() (Points, error) { return b.powers("K", b.k) },
		"codes":  func() (Points, error) { return b.codes("K", b.k) },
	})
	if err != nil {
		return nil, nil, err
	}
	y, err := b.points(alpha, cmp.Or(b.Alpha, usual), map[string]func() (Points, error){
		"coset":  func() (Points, error) { return b.nextCosets(z) },
		"powers": b.nextPowers,
		"codes":  b.nextCodes,
	})
	return x, y, err
}

// nextCodes returns the symbol codes K … K+R-1.
func (b *builder) nextCodes() (Points, error) {
	if err := checkBoth(b.Family, b.f, b.k, b.r, 0); err != nil {
		return nil, err
	}
	return codePoints{b.f, b.k, b.r}, nil
}

// nextPowers returns g^K … g^(K+R-1).
func (b *builder) nextPowers() (Points, error) {
	if err := b.checkNext("powers"); err != nil {
		return nil, err
	}
	return newPowerPoints(b.f, b.k, b.r), nil
}

// checkNext returns an error when f has fewer than K + R nonzero elements.
func (b *builder) checkNext(word string) error {
	units := unitCount(b.f)
	need := int64(b.k) + int64(b.r)
	if units.Cmp(big.NewInt(need)) >= 0 {
		return nil
	}
	points, want := fmt.Sprintf("alpha after the K = %d points of omega", b.k), fmt.Sprintf("K <= %v", new(big.Int).Rsh(units, 1))
	if b.k != b.r {
		points, want = fmt.Sprintf("R = %d of alpha after the K = %d points of omega", b.r, b.k), fmt.Sprintf("K + R <= %v", units)
	}
	return fmt.Errorf("matrix: %s points over %s: %s needs %d nonzero elements and there are %v: want %s%s",
		word, b.f.Name(), points, need, units, want, largerField(uint64(need)+1))
}

// nextCosets returns the cosets of z elements from number K/z on or, where there are
// too few, from number 1 on.
func (b *builder) nextCosets(z int) (Points, error) {
	if err := checkUnits("coset", b.f, b.letter("R"), b.r); err != nil {
		return nil, err
	}
	err := b.checkNext("coset")
	switch {
	case err == nil:
		return newCosetPoints(b.f, b.r, z, b.k/z), nil
	case b.Family == "cauchy":
		return nil, err // which wants other points than omega's
	}
	return newCosetPoints(b.f, b.r, z, 1), nil // of all q-1 points, another order
}

func buildCauchy(b *builder) (Matrix, error) {
	if err := checkBoth("cauchy", b.f, b.k, b.r, 0); err != nil { // whatever they are
		return nil, err
	}
	x, y, err := b.pair("x", "y", "codes")
	if err != nil {
		return nil, err
	}
	if x.ID() == "codes:0" && y.ID() == fmt.Sprintf("codes:%d", b.k) {
		return cauchyOnCodes("cauchy", b.f, b.k, b.r)
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
		"coset":  func() (Points, error) { return pointsMoore(b.f, b.Base, b.letter("R"), b.r) },
		"powers": func() (Points, error) { return b.powers("R", b.r) },
	})
	if err != nil {
		return nil, err
	}
	return newMoore(p, b.Base, b.k)
}

// stored returns the matrix of a file, or the given one.
func (b *builder) stored() (Matrix, error) {
	if !b.given {
		return b.read(b.Argument)
	}
	if b.entries == nil {
		return nil, fmt.Errorf("matrix: %s:%s without its entries", b.Family, b.Argument)
	}
	if !sameField(b.entries.Field(), b.f) || b.entries.Rows() != b.k || b.entries.Cols() != b.r {
		return nil, fmt.Errorf("matrix: entries of a %d×%d matrix over %s, and %s over %s",
			b.entries.Rows(), b.entries.Cols(), b.entries.Field().Name(), b.need(), b.f.Name())
	}
	return b.entries, nil
}

// need says what shape is needed, for people.
func (b *builder) need() string {
	if b.k == b.r {
		return fmt.Sprintf("K = %d processors need %d×%d", b.k, b.k, b.k)
	}
	return fmt.Sprintf("K = %d sources and R = %d sinks need %d×%d", b.k, b.r, b.k, b.r)
}

// read reads the matrix in the file of that name.
func (b *builder) read(name string) (Matrix, error) {
	r, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("matrix: %w", err)
	}
	defer r.Close()
	d, rows, err := readCSV(b.f, r, name, b.k)
	if err != nil {
		return nil, err
	}
	if rows != b.k || d.cols != b.r {
		want := ""
		switch {
		case rows == b.k:
			want = fmt.Sprintf(": want a file of that shape, or R = %d sinks", d.cols)
		case b.k != b.r:
			want = fmt.Sprintf(": want a file of that shape, or K = %d sources and R = %d sinks", rows, d.cols)
		}
		return nil, fmt.Errorf("matrix: %s is %d×%d, and %s%s", name, rows, d.cols, b.need(), want)
	}
	return d, nil
}
