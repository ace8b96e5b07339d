package matrix

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"

	"volley/field"
)

// Points is a sequence of distinct field elements, safe for concurrent use: where polynomial codes evaluate.
type Points interface {
	// Field returns the field of the points.
	Field() field.Field

	// Len returns the number of points.
	Len() int

	// At returns point k; the same one at every call. It panics when k is outside [0, Len()).
	At(k int) field.Element

	// ID names the points: two sequences over the same field with equal lengths and IDs are equal.
	ID() string
}

func checkPoint(k, n int) {
	if uint(k) >= uint(n) {
		panic(fmt.Sprintf("matrix: point %d of %d", k, n))
	}
}

// A sequence is n points from number first on of one that goes on. Its parts are sequences.
type sequence struct {
	f        field.Field
	first, n int
	id       func(first, n int) string
	at       func(k int) field.Element
}

func (p *sequence) Field() field.Field { return p.f }
func (p *sequence) Len() int           { return p.n }
func (p *sequence) ID() string         { return p.id(p.first, p.n) }

func (p *sequence) At(k int) field.Element {
	checkPoint(k, p.n)
	return p.at(p.first + k)
}

// codes returns the points with the codes first … first+n-1, which are elements of the field.
func codes(f field.Field, first, n int) *sequence {
	return &sequence{f, first, n, func(first, _ int) string { return fmt.Sprintf("codes:%d", first) },
		func(k int) field.Element { return field.Code(uint64(uint(k))) }}
}

// part returns n points from number first on.
func part(p Points, first, n int) Points {
	if p, ok := p.(*sequence); ok {
		return &sequence{p.f, p.first + first, n, p.id, p.at}
	}
	if n == p.Len() {
		return p
	}
	return &sequence{p.Field(), first, n, wholeID(p.ID(), p.Len()), p.At}
}

// wholeID returns the IDs of parts of all points that have the given one.
func wholeID(id string, all int) func(first, n int) string {
	return func(first, n int) string {
		if n == all {
			return id
		}
		return fmt.Sprintf("%s[%d:%d of %d]", id, first, first+n, all)
	}
}

// newPowerPoints returns g^first … g^(first+n-1).
func newPowerPoints(f field.Field, first, n int) *sequence {
	return &sequence{f, first, n, func(first, _ int) string { return shifted("powers", first) }, newPowers(f, f.Generator(), first+n).at}
}

// checkElements returns an error when f has fewer than n + more (nonzero) elements for name; what names n, as "K + R".
func checkElements(name string, f field.Field, what string, n, more int64, nonzero bool) error {
	there, of, larger := f.Order(), "elements", n+more
	if nonzero {
		there, of, larger = unitCount(f), "nonzero elements", n+more+1
	}
	most := new(big.Int).Sub(there, big.NewInt(more))
	if most.Cmp(big.NewInt(n)) >= 0 {
		return nil
	}
	return fmt.Errorf("matrix: %s over %s: %s = %d needs %d %s and there are %v: want %s <= %v%s",
		name, f.Name(), what, n, n+more, of, there, what, most, largerField(uint64(larger)))
}

// checkBoth is checkElements for the K + R + more elements of a matrix.
func checkBoth(name string, f field.Field, k, r int, more int64) error {
	if err := checkShape(k, r); err != nil {
		return err
	}
	return checkElements(name, f, "K + R", int64(k)+int64(r), more, false)
}

// largerField continues the advice of an error with a field of at least n elements, where there is one to name.
func largerField(n uint64) string {
	for _, f := range []struct {
		order uint64
		name  string
	}{{1 << 8, "2^8"}, {1 << 16, "2^16"}, {1<<31 - 1, "2147483647"}} {
		if n <= f.order {
			return ", or a field such as " + f.name
		}
	}
	return ""
}

// shifted is the ID of points, of that name from 0 on, from number first on.
func shifted(name string, first int) string {
	if first == 0 {
		return name
	}
	return fmt.Sprintf("%s+%d", name, first)
}

// CosetPoints returns n points on cosets of a multiplicative subgroup, on demand. With Z = gcd(n, q-1) and n = M·Z, the
// points of one coset are next to each other, in the order that a butterfly without reordering leaves them in:
//
//	point j + Z·i = g^i·β^rev(j), β = g^((q-1)/Z), 0 <= i < M, 0 <= j < Z
//
// where rev reverses digits over the ascending prime radices r_0 <= r_1 <= … <= r_(H-1)
// of Z: j = j_0 + j_1·r_0 + j_2·r_0·r_1 + … has
//
//	rev(j) = j_(H-1) + r_(H-1)·j_(H-2) + r_(H-1)·r_(H-2)·j_(H-3) + …
//
// It is an error where M > (q-1)/Z, that is n > q-1: there are no more cosets.
func CosetPoints(f field.Field, n int) (Points, error) { return ShiftedCosetPoints(f, n, 0) }

// ShiftedCosetPoints returns the points of [CosetPoints] times g^first: n points on the M cosets from number first on.
// It is an error where the field has fewer than first+M cosets of Z points, or n > q-1.
func ShiftedCosetPoints(f field.Field, n, first int) (Points, error) {
	if err := checkSize("points", n); err != nil {
		return nil, err
	}
	if err := checkElements("coset points", f, "K", int64(n), 0, true); err != nil {
		return nil, err
	}
	z := cosetSize(f, n)
	cosets := unitCount(f)
	cosets.Quo(cosets, big.NewInt(int64(z)))
	m := n / z
	if first < 0 || cosets.Cmp(big.NewInt(int64(first)+int64(m))) < 0 {
		return nil, fmt.Errorf("matrix: coset points over %s: no cosets %d to %d of %d elements: the field has %v", f.Name(), first, first+m-1, z, cosets)
	}
	return newCosetPoints(f, n, z, first, nil), nil
}

// cosetSize returns gcd(n, q-1).
func cosetSize(f field.Field, n int) int {
	return int(new(big.Int).GCD(nil, nil, unitCount(f), big.NewInt(int64(n))).Int64())
}

// newCosetPoints returns n points on the cosets of z elements from number first on, cyclically; z divides n and q-1. Rev
// reverses digits over the radices of z, nil the ascending ones.
func newCosetPoints(f field.Field, n, z, first int, r Radices) *cosetPoints {
	units := unitCount(f)
	return &cosetPoints{
		n:       n,
		z:       z,
		first:   first,
		radices: r.of(z),
		base:    field.ExpInt(f, f.Generator(), big.NewInt(int64(first))),
		shifts:  newPowers(f, f.Generator(), n/z),
		coset:   newPowers(f, field.ExpInt(f, f.Generator(), units.Quo(units, big.NewInt(int64(z)))), z),
	}
}

type cosetPoints struct {
	n, z    int
	first   int
	radices []int         // of z
	base    field.Element // g^first
	shifts  powers        // g^i
	coset   powers        // β^j
}

func (p *cosetPoints) Field() field.Field { return p.coset.f }
func (p *cosetPoints) Len() int           { return p.n }

func (p *cosetPoints) ID() string {
	name := "coset"
	if p.z != cosetSize(p.Field(), p.n) { // the one that the name alone stands for
		name = fmt.Sprintf("coset:%d", p.z)
	}
	return shifted(name+unusual(p.radices), p.first)
}

func (p *cosetPoints) At(k int) field.Element {
	checkPoint(k, p.n)
	i, j := k/p.z, k%p.z
	f := p.coset.f
	return f.Mul(p.base, f.Mul(p.shifts.at(i), p.coset.at(reverseDigits(j, p.radices))))
}

// reverseDigits returns the number whose digits over the reversed radices are those of j, the least first.
func reverseDigits(j int, radices []int) int {
	rev := 0
	for _, r := range radices {
		rev = rev*r + j%r
		j /= r
	}
	return rev
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// Radices says in which order the primes whose product is z are the radices of a mixed-radix number, the least digit
// first. Only neighbours can be one radix of a schedule. Nil is the ascending order.
type Radices func(z int) []int

func (r Radices) of(z int) []int {
	if r == nil {
		return primeFactors(z)
	}
	return r(z)
}

// UpTo returns the radices of which neighbours join to few that are at most most, such as p+1 for p ports: to the
// largest divisor of z that is as small as that, then to the largest of what is left, and so on. Where neighbours of the
// ascending order join to as few, that is the order.
func UpTo(most int) Radices {
	return func(z int) []int {
		ascending := primeFactors(z)
		var list []int
		count := 0
		for left := z; left > 1; count++ {
			r := min(most, left)
			for r > 1 && left%r > 0 {
				r--
			}
			if r < 2 {
				r = primeFactors(left)[0]
			}
			list, left = append(list, primeFactors(r)...), left/r
		}
		if count < joined(ascending, most) {
			return list
		}
		return ascending
	}
}

// joined returns to how few radices of at most most neighbours join; a larger prime is one by itself.
func joined(primes []int, most int) int {
	count, r := 0, most+1
	for _, p := range primes {
		if r *= p; r > most {
			count, r = count+1, p
		}
	}
	return count
}

// Following returns the radices that the given ones have as products, in their order, and then the ascending rest.
func Following(radices ...int) Radices {
	return func(z int) []int {
		var list []int
		for _, r := range radices {
			if z%r == 0 {
				list, z = append(list, primeFactors(r)...), z/r
			}
		}
		return append(list, primeFactors(z)...)
	}
}

// unusual names radices in an ID where they do not ascend.
func unusual(radices []int) string {
	if slices.IsSorted(radices) {
		return ""
	}
	return "(" + product(radices) + ")"
}

// primeFactors returns the primes whose product is n, ascending.
func primeFactors(n int) []int {
	var primes []int
	for p := 2; p <= n/p; p++ {
		for n%p == 0 {
			primes = append(primes, p)
			n /= p
		}
	}
	if n > 1 {
		primes = append(primes, n)
	}
	return primes
}

// NewPoints returns a copy of the given points, or an error where one is no element of the field or there twice.
func NewPoints(f field.Field, points []field.Element) (Points, error) {
	if err := checkSize("points", len(points)); err != nil {
		return nil, err
	}
	seen := make(map[field.Element]int, len(points))
	for k, e := range points {
		if !field.Contains(f, e) {
			return nil, fmt.Errorf("matrix: point %d = %v is outside the field %s", k, e, f.Name())
		}
		if first, ok := seen[e]; ok {
			return nil, fmt.Errorf("matrix: the points %d and %d are both %v: want distinct points", first, k, e)
		}
		seen[e] = k
	}
	return listed(f, slices.Clone(points)), nil
}

// listed returns points that are stored. Their ID is "points:" and their SHA-256, in hexadecimal.
func listed(f field.Field, points []field.Element) *sequence {
	h := sha256.New()
	symbol := make([]byte, f.SymbolBytes())
	for _, e := range points {
		field.PutSymbol(f, symbol, e)
		h.Write(symbol)
	}
	return &sequence{f, 0, len(points), wholeID(fmt.Sprintf("points:%x", h.Sum(nil)), len(points)), func(k int) field.Element { return points[k] }}
}

// ReadPoints reads points: decimal symbol codes between white space or commas. Lines that begin with '#' are comments.
//
// The error names the file, by the given name, and the line (from 1) and the text at fault; for a point given twice,
// both its places. A line over 16 MiB and more than 2^24 points are an error.
func ReadPoints(f field.Field, r io.Reader, name string) (Points, error) {
	var points []field.Element
	seen := make(map[field.Element]int) // line of each point
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	line := 1
	for ; in.Scan(); line++ {
		texts := strings.FieldsFunc(in.Text(), func(c rune) bool { return strings.ContainsRune(" \t\r,", c) })
		if len(texts) > 0 && texts[0][0] == '#' {
			continue
		}
		for _, text := range texts {
			e, err := field.ParseElement(f, text)
			if err != nil {
				return nil, fmt.Errorf("matrix: %s line %d: %w", name, line, err)
			}
			if first, ok := seen[e]; ok {
				return nil, fmt.Errorf("matrix: %s line %d: the point %v is on line %d already: want distinct points", name, line, e, first)
			}
			if len(points) == maxFilePoints {
				return nil, fmt.Errorf("matrix: %s line %d: more than %d points", name, line, maxFilePoints)
			}
			seen[e] = line
			points = append(points, e)
		}
	}
	if err := in.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("a line of more than %d MiB", maxLine>>20)
		}
		return nil, fmt.Errorf("matrix: %s line %d: %w", name, line, err)
	}
	if len(points) == 0 {
		return nil, fmt.Errorf("matrix: %s has no points: want decimal values", name)
	}
	return listed(f, points), nil
}

// maxLine bounds a line, in bytes.
const maxLine = 16 << 20

// maxFilePoints bounds the memory ReadPoints takes, to a few GiB.
const maxFilePoints = 1 << 24
