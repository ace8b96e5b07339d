// Package pointset has the points on which polynomial codes evaluate: what lies behind those of package points.
package pointset

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"volley/field"
	"volley/internal/poll"
)

// Points is that of package matrix.
type Points interface {
	Field() field.Field
	Len() int
	At(k int) field.Element
	ID() string
}

func checkPoint(k, n int) {
	if uint(k) >= uint(n) {
		panic(fmt.Sprintf("matrix: point %d of %d", k, n))
	}
}

// A sequence is n points from number first on of one that goes on. Its parts are sequences.
type Sequence struct {
	f        field.Field
	first, n int
	id       func(first, n int) string
	point    func(k int) field.Element
}

func (p *Sequence) Field() field.Field { return p.f }
func (p *Sequence) Len() int           { return p.n }
func (p *Sequence) ID() string         { return p.id(p.first, p.n) }

func (p *Sequence) At(k int) field.Element {
	checkPoint(k, p.n)
	return p.point(p.first + k)
}

// Codes returns the points with the codes first … first+n-1, which are elements of the field.
func Codes(f field.Field, first, n int) *Sequence {
	return &Sequence{f, first, n, func(first, _ int) string { return fmt.Sprintf("codes:%d", first) },
		func(k int) field.Element { return field.Code(uint64(uint(k))) }}
}

// Negated returns the points times -1.
func (p *Sequence) Negated() *Sequence {
	return &Sequence{p.f, p.first, p.n, func(first, n int) string { return "-" + p.id(first, n) },
		func(k int) field.Element { return p.f.Sub(field.Element{}, p.point(k)) }}
}

// Part returns n points from number first on.
func Part(p Points, first, n int) Points {
	if p, ok := p.(*Sequence); ok {
		return &Sequence{p.f, p.first + first, n, p.id, p.point}
	}
	if n == p.Len() {
		return p
	}
	return &Sequence{p.Field(), first, n, wholeID(p.ID(), p.Len()), p.At}
}

// wholeID returns the IDs of parts of all points that have the given one.
func wholeID(id string, total int) func(first, n int) string {
	return func(first, n int) string {
		if n == total {
			return id
		}
		return fmt.Sprintf("%s[%d:%d of %d]", id, first, first+n, total)
	}
}

// PowersFrom returns g^first … g^(first+n-1).
func PowersFrom(f field.Field, first, n int) *Sequence {
	return &Sequence{f, first, n, func(first, _ int) string { return shifted("powers", first) }, NewPowers(f, f.Generator(), first+n).At}
}

// CheckElements returns an error when f has fewer than n + extra (nonzero) elements for name; label names n, as "K + R".
func CheckElements(name string, f field.Field, label string, n, extra int64, nonzero bool) error {
	available, noun, larger := f.Order(), "elements", n+extra
	if nonzero {
		available, noun, larger = UnitCount(f), "nonzero elements", n+extra+1
	}
	limit := new(big.Int).Sub(available, big.NewInt(extra))
	if limit.Cmp(big.NewInt(n)) >= 0 {
		return nil
	}
	return fmt.Errorf("matrix: %s over %s: %s = %d needs %d %s and there are %v: want %s <= %v%s",
		name, f.Name(), label, n, n+extra, noun, available, label, limit, largerField(uint64(larger)))
}

// CheckBoth is checkElements for the K + R + extra elements of a matrix.
func CheckBoth(name string, f field.Field, k, r int, extra int64) error {
	if err := CheckShape(k, r); err != nil {
		return err
	}
	return CheckElements(name, f, "K + R", int64(k)+int64(r), extra, false)
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

// CosetSize returns the greatest common divisor of sizes and q-1.
func CosetSize(f field.Field, sizes ...int) int {
	z := UnitCount(f)
	for _, n := range sizes {
		z.GCD(nil, nil, z, big.NewInt(int64(n)))
	}
	return int(z.Int64())
}

// CosetsFrom returns n points on the cosets of z elements from number first on, cyclically; z divides n and q-1. Rev
// reverses digits over the radices of z, nil the ascending ones.
func CosetsFrom(f field.Field, n, z, first int, r Radices) *Cosets {
	units := UnitCount(f)
	return &Cosets{
		N:       n,
		Z:       z,
		first:   first,
		Radices: r.Factors(z),
		base:    field.ExpInt(f, f.Generator(), big.NewInt(int64(first))),
		shifts:  NewPowers(f, f.Generator(), n/z),
		coset:   NewPowers(f, field.ExpInt(f, f.Generator(), units.Quo(units, big.NewInt(int64(z)))), z),
	}
}

type Cosets struct {
	N, Z    int
	Radices []int // of Z
	first   int
	base    field.Element // g^first
	shifts  Powers        // g^i
	coset   Powers        // β^j
}

func (p *Cosets) Field() field.Field { return p.coset.f }
func (p *Cosets) Len() int           { return p.N }

func (p *Cosets) ID() string {
	name := "coset"
	if p.Z != CosetSize(p.Field(), p.N) { // the one that the name alone stands for
		name = fmt.Sprintf("coset:%d", p.Z)
	}
	return shifted(name+Unusual(p.Radices), p.first)
}

func (p *Cosets) At(k int) field.Element {
	checkPoint(k, p.N)
	i, j := k/p.Z, k%p.Z
	f := p.coset.f
	return f.Mul(p.base, f.Mul(p.shifts.At(i), p.coset.At(ReverseDigits(j, p.Radices))))
}

// ReverseDigits returns the number whose digits over the reversed radices are those of j, the least first.
func ReverseDigits(j int, radices []int) int {
	rev := 0
	for _, r := range radices {
		rev = rev*r + j%r
		j /= r
	}
	return rev
}

// Radices says in which order the primes whose product is z are the radices of a mixed-radix number, the least digit
// first. Only neighbours can be one radix of a schedule. Nil is the ascending order.
type Radices func(z int) []int

// Factors returns the radices of z.
func (r Radices) Factors(z int) []int {
	if r == nil {
		return PrimeFactors(z)
	}
	return r(z)
}

// UpTo returns the radices of which neighbours join to few that are at most limit, such as p+1 for p ports: to the
// largest divisor of z that is as small as that, then to the largest of what is left, and so on. Where neighbours of the
// ascending order join to as few, that is the order.
func UpTo(limit int) Radices {
	return func(z int) []int {
		ascending := PrimeFactors(z)
		var list []int
		count := 0
		for remaining := z; remaining > 1; count++ {
			r := min(limit, remaining)
			for r > 1 && remaining%r > 0 {
				r--
			}
			if r < 2 {
				r = PrimeFactors(remaining)[0]
			}
			list, remaining = append(list, PrimeFactors(r)...), remaining/r
		}
		if count < joined(ascending, limit) {
			return list
		}
		return ascending
	}
}

// joined returns to how few radices of at most limit neighbours join; a larger prime is one by itself.
func joined(primes []int, limit int) int {
	count, r := 0, limit+1
	for _, p := range primes {
		if r *= p; r > limit {
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
				list, z = append(list, PrimeFactors(r)...), z/r
			}
		}
		return append(list, PrimeFactors(z)...)
	}
}

// Unusual names radices in an ID where they do not ascend.
func Unusual(radices []int) string {
	if slices.IsSorted(radices) {
		return ""
	}
	return "(" + Product(radices) + ")"
}

// PrimeFactors returns the primes whose product is n, ascending.
func PrimeFactors(n int) []int {
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

// Listed returns points that are stored. Their ID is "points:" and their SHA-256, in hexadecimal.
func Listed(f field.Field, points []field.Element) *Sequence {
	h := sha256.New()
	symbol := make([]byte, f.SymbolBytes())
	for _, e := range points {
		field.PutSymbol(f, symbol, e)
		h.Write(symbol)
	}
	return &Sequence{f, 0, len(points), wholeID(fmt.Sprintf("points:%x", h.Sum(nil)), len(points)), func(k int) field.Element { return points[k] }}
}

// MaxSize bounds rows, columns and points, so that a row and a column index together fit in 64 bits on every platform.
const MaxSize = math.MaxInt32

// CheckShape returns an error when k is no number of rows, or r no number of columns.
func CheckShape(k, r int) error {
	if err := CheckSize("K", k); err != nil {
		return err
	}
	return CheckSize("R", r)
}

// CheckSize returns an error when n is no number of rows, columns or points. Label names the thing counted.
func CheckSize(label string, n int) error {
	if n < 1 || n > MaxSize {
		return fmt.Errorf("matrix: %s = %d: want 1 to %d", label, n, MaxSize)
	}
	return nil
}

// UnitCount returns q-1, the number of nonzero elements.
func UnitCount(f field.Field) *big.Int {
	return new(big.Int).Sub(f.Order(), big.NewInt(1))
}

// Product writes numbers as a product.
func Product(list []int) string {
	s := make([]string, len(list))
	for i, n := range list {
		s[i] = fmt.Sprint(n)
	}
	return strings.Join(s, "·")
}

// Elements lists the points; each is a step of the poller, or of none.
func Elements(p *poll.Poller, points Points) []field.Element {
	list := make([]field.Element, points.Len())
	for k := range list {
		list[k] = points.At(k)
		p.Steps(1)
	}
	return list
}
