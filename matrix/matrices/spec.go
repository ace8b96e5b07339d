// Package matrices has the matrices that names stand for, on command lines and in manifests, and reads and writes files of
// entries and points.
package matrices

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"volley/field"
	"volley/internal/pointset"
	"volley/matrix"
)

// A Spec names a matrix independently of its field and of K and R, the numbers of
// its rows and columns: the packets there are, and those wanted.
//
// Point sets are words or files of [ReadPoints]; an empty one is the default. The words, and what they are for the K
// points of omega; alpha has the R points that come next, and a vandermonde matrix R as if these were omega's:
//
//	coset    [matrix.CosetPoints]: the default, except for cauchy; coset:R with the radices of [pointset.UpTo](R)
//	powers   g^0 … g^(K-1); alpha g^K … g^(K+R-1), an error where K+R > q-1
//	codes    symbol codes 0 … K-1; alpha K … K+R-1: the default for cauchy
//
// The points of omega and alpha on cosets are on cosets of one size, Z = gcd(K, R, q-1), each in the order of
// CosetPoints: omega has the cosets 0 … K/Z-1 and alpha the next R/Z. So all rows, and every [matrix.Block] of them in
// multiples of Z, have the structure that the columns have. Where these do not fit, K+R > q-1, alpha has the cosets 1 …
// R/Z: that is a lagrange matrix still, but no cauchy matrix.
type Spec struct {
	Family   string // the name of one of [Families]
	Argument string // the family's argument
	Points   string // the points of a vandermonde matrix
	Omega    string // the points of a lagrange matrix that have values; the x of a cauchy matrix
	Alpha    string // the points of a lagrange matrix that get values; the y of a cauchy matrix
	Order    string // the order of columns: "reversed" or "reversed:R", for dft only, or "natural" or "any", which build the same as ""
	Inverse  bool   // the inverse of that matrix

	// Open opens the files that Build reads; nil is [os.Open].
	Open func(name string) (io.ReadCloser, error)

	ports int // see [Spec.ForPorts]
}

// ForPorts returns the Spec for processors with that many ports: "reversed" and "coset" are then "reversed:R" and "coset:R"
// with R = p+1 if they name no R.
func (s Spec) ForPorts(ports int) Spec {
	s.ports = ports
	return s
}

// radices takes the radices off a word such as "reversed:6", or gives it those for the ports.
func (s Spec) radices(text string) (word string, r pointset.Radices) {
	if word, r, _ = cutRadix(text); r == nil && s.ports > 0 {
		r = pointset.UpTo(s.ports + 1)
	}
	return word, r
}

// OrderOf returns the Order of the matrix that is built for k processors, in words that need no [Spec.ForPorts]: "reversed",
// "reversed:R" where that is another matrix, and "" for all others.
func (s Spec) OrderOf(k int) string {
	word, r := s.radices(s.Order)
	switch {
	case word != "reversed":
		return ""
	case slices.IsSorted(r.Factors(k)):
		return word
	case word != s.Order:
		return s.Order
	}
	return fmt.Sprintf("%s:%d", word, s.ports+1)
}

// OpenFile opens a file that the Spec names.
func (s Spec) OpenFile(name string) (io.ReadCloser, error) {
	if s.Open != nil {
		return s.Open(name)
	}
	return os.Open(name)
}

// orders lists what Spec.Order may be. Others make use of "any", which lets columns come in a cheaper order.
var orders = []string{"natural", "reversed", "any"}

// ParseSpec reads a family's name and, after a colon, its argument, such as "dft" or "random:7". It opens no file.
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
	return Spec{Family: name, Argument: argument}, nil
}

// DefaultField returns the name of the field to take where none is named: that of the family, or the given one.
func (s Spec) DefaultField(usual string) string {
	if f, err := findFamily(s.Family); err == nil && f.Field != "" {
		return f.Field
	}
	return usual
}

// Listed reports whether the entries come from a file, and so are known only by listing them.
func (s Spec) Listed() bool {
	f, err := findFamily(s.Family)
	return err == nil && f.listed
}

// Files returns the names of the files that Build reads.
func (s Spec) Files() []string {
	var names []string
	if s.Listed() {
		names = append(names, s.Argument)
	}
	for _, set := range []string{s.Points, s.Omega, s.Alpha} {
		if set != "" && !isPointWord(set) {
			names = append(names, set)
		}
	}
	return names
}

// Build returns the k×r matrix over f that s names, for k sources and r sinks. It reads the files that s names; the
// matrix is on demand unless it comes from a file or is an inverse ([matrix.Inverse]). It is an error where k and r differ for
// an inverse, or for a family that is square only.
func (s Spec) Build(f field.Field, k, r int) (matrix.Matrix, error) {
	return s.build(&builder{Spec: s, f: f, k: k, r: r})
}

// BuildFrom is Build from values in place of names, as a manifest has them: it returns the matrix with the point sets
// of [matrix.StructureOf], for a family that takes points, and with the given entries, for the family "file". It reads
// no file, and what the Points, Omega and Alpha of s are does not matter.
//
// It is the matrix that was built; its ID may be another where the points came from
// a file or are called so by two words.
func (s Spec) BuildFrom(f field.Field, k, r int, sets []matrix.PointSet, entries matrix.Matrix) (matrix.Matrix, error) {
	s.Points, s.Omega, s.Alpha = "", "", ""
	return s.build(&builder{Spec: s, f: f, k: k, r: r, explicit: true, sets: sets, entries: entries})
}

func (s Spec) build(b *builder) (matrix.Matrix, error) {
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
	if err := pointset.CheckShape(b.k, b.r); err != nil {
		return nil, err
	}
	if b.k != b.r && family.Square {
		return nil, fmt.Errorf("matrix: %s is square only, and there are K = %d sources and R = %d sinks: want as many sinks as sources, or one of %s",
			family.Name, b.k, b.r, familiesWith(func(f Family) bool { return !f.Square }))
	}
	if b.k != b.r && s.Inverse {
		return nil, fmt.Errorf("matrix: %s of K = %d sources and R = %d sinks has no inverse: want as many sinks as sources, or the matrix itself",
			family, b.k, b.r)
	}
	m, err := family.build(b)
	if err != nil {
		return nil, err
	}
	if s.Inverse {
		return matrix.Inverse(context.Background(), m)
	}
	return m, nil
}

// check returns an error when s has an option that the family does not take.
func (s Spec) check(family Family) error {
	order, radices, err := cutRadix(s.Order)
	if order != "" && !slices.Contains(orders, order) || radices != nil && order != "reversed" {
		return fmt.Errorf("matrix: order %s: want one of %s", quote(s.Order), strings.Join(orders, ", "))
	}
	if err != nil {
		return fmt.Errorf("matrix: order %s: want reversed:R with R, the largest radix, of 2 or more", quote(s.Order))
	}
	if order != "reversed" {
		order = "" // what every family has
	}
	for _, option := range []struct{ name, value string }{
		{"points", s.Points}, {"omega", s.Omega}, {"alpha", s.Alpha}, {"order", order},
	} {
		if option.value != "" && !slices.Contains(family.Takes, option.name) {
			return fmt.Errorf("matrix: %s takes no %s, got %s: leave that out, or take one of %s",
				family.Name, option.name, quote(option.value), familiesWith(func(f Family) bool { return slices.Contains(f.Takes, option.name) }))
		}
	}
	return nil
}
