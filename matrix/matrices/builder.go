package matrices

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"volley/field"
	"volley/internal/pointset"
	"volley/internal/printable"
	"volley/matrix"
)

// A builder builds the matrix of a Spec.
type builder struct {
	Spec
	f field.Field
	k int // rows: sources
	r int // columns: sinks

	explicit bool // sets and entries, instead of words and files
	sets     []matrix.PointSet
	entries  matrix.Matrix
}

// pointWords lists the words for point sets. After "coset" there may be a colon and a radix, as in [pointset.UpTo].
var pointWords = []string{"coset", "powers", "codes"}

// isPointWord reports whether a name is a word for points, and of no file.
func isPointWord(name string) bool {
	word, _, err := cutRadix(name)
	return err == nil && slices.Contains(pointWords, word) && (word == "coset" || word == name)
}

// cutRadix takes the radices off a word such as "reversed:6".
func cutRadix(text string) (word string, r pointset.Radices, err error) {
	word, radix, found := strings.Cut(text, ":")
	if !found {
		return word, nil, nil
	}
	limit, err := strconv.Atoi(radix)
	if err == nil && limit < 2 {
		err = strconv.ErrRange
	}
	return word, pointset.UpTo(limit), err
}

// points returns the given set or, if none, what name stands for: one of [pointWords], by meaning, or a file.
func (b *builder) points(set, name string, meaning func(word string) (matrix.Points, error)) (matrix.Points, error) {
	if b.explicit {
		return b.set(set, meaning)
	}
	if isPointWord(name) {
		return meaning(name)
	}
	r, err := b.OpenFile(name)
	if err != nil {
		return nil, fmt.Errorf(`matrix: points are "%s" or a file: %w`, strings.Join(pointWords, `", "`), err)
	}
	defer r.Close()
	p, err := ReadPoints(b.f, r, name)
	if err != nil {
		return nil, err
	}
	if n, want := b.size(set); p.Len() != n {
		return nil, fmt.Errorf("matrix: %s has %s, and %s", name, printable.Count(p.Len(), "point"), want)
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

// set returns the given point set of that name, or the word's where the points are the same: its structure is known.
func (b *builder) set(name string, meaning func(word string) (matrix.Points, error)) (matrix.Points, error) {
	i := slices.IndexFunc(b.sets, func(s matrix.PointSet) bool { return s.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("matrix: %s without its points %s", b.Family, name)
	}
	p := b.sets[i].Points
	if p.Field().Name() != b.f.Name() {
		return nil, fmt.Errorf("matrix: points %s over %s, and a matrix over %s: want one field", name, p.Field().Name(), b.f.Name())
	}
	if n, want := b.size(name); p.Len() != n {
		return nil, fmt.Errorf("matrix: %s in %s, and %s", printable.Count(p.Len(), "point"), name, want)
	}
	for _, word := range pointWords {
		if known, err := meaning(word); err == nil && slices.Equal(pointset.Elements(nil, known), pointset.Elements(nil, p)) {
			return known, nil
		}
	}
	return p, nil
}

// letter returns the name of a number of points for people: number, but "K" for a square matrix.
func (b *builder) letter(number string) string {
	if b.k == b.r {
		return "K"
	}
	return number
}

// firstPoints returns what a word means for the first n points, on cosets of z elements. Number names n, "K" or "R".
func (b *builder) firstPoints(word, number string, n, z int) (matrix.Points, error) {
	word, r := b.radices(word)
	err := pointset.CheckElements(word+" points", b.f, b.letter(number), int64(n), 0, word != "codes")
	switch {
	case err != nil:
		return nil, err
	case word == "codes":
		return pointset.Codes(b.f, 0, n), nil
	case word == "powers":
		return pointset.PowersFrom(b.f, 0, n), nil
	}
	return pointset.CosetsFrom(b.f, n, z, 0, r), nil
}

// nextPoints returns what a word means for the R points after the first K. On cosets, where there are too few and the
// points may be among the first, they are on those from number 1 on; apart says that they may not.
func (b *builder) nextPoints(word string, z int, apart bool) (matrix.Points, error) {
	word, r := b.radices(word)
	err := pointset.CheckElements(word+" points", b.f, "K + R", int64(b.k)+int64(b.r), 0, word != "codes")
	first := b.k / z
	if word == "coset" && err != nil && !apart {
		first, err = 1, pointset.CheckElements("coset points", b.f, b.letter("R"), int64(b.r), 0, true)
	}
	switch {
	case err != nil:
		return nil, err
	case word == "codes":
		return pointset.Codes(b.f, b.k, b.r), nil
	case word == "powers":
		return pointset.PowersFrom(b.f, b.k, b.r), nil
	}
	return pointset.CosetsFrom(b.f, b.r, z, first, r), nil // from 1 on, of all q-1 points, in another order
}

// pair returns the points omega and alpha, as given or by the usual word; apart says that they may not share points.
func (b *builder) pair(omega, alpha, usual string, apart bool) (matrix.Points, matrix.Points, error) {
	z := pointset.CosetSize(b.f, b.k, b.r)
	x, err := b.points(omega, cmp.Or(b.Omega, usual), func(word string) (matrix.Points, error) {
		return b.firstPoints(word, "K", b.k, z)
	})
	if err != nil {
		return nil, nil, err
	}
	y, err := b.points(alpha, cmp.Or(b.Alpha, usual), func(word string) (matrix.Points, error) {
		return b.nextPoints(word, z, apart)
	})
	return x, y, err
}
