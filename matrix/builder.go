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
// usual is the word where nothing is said, and apart says that they may not share points.
func (b *builder) pair(omega, alpha, usual string, apart bool) (Points, Points, error) {
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
		"coset":  func() (Points, error) { return b.nextCosets(z, apart) },
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
// too few and the points may be omega's, from number 1 on.
func (b *builder) nextCosets(z int, apart bool) (Points, error) {
	if err := checkUnits("coset", b.f, b.letter("R"), b.r); err != nil {
		return nil, err
	}
	err := b.checkNext("coset")
	switch {
	case err == nil:
		return newCosetPoints(b.f, b.r, z, b.k/z), nil
	case apart:
		return nil, err
	}
	return newCosetPoints(b.f, b.r, z, 1), nil // of all q-1 points, another order
}
