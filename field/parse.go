package field

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// maxPrime is what primes without a name are below.
const maxPrime = 1 << 31

// A Kind is a form of name that [Parse] reads.
type Kind struct {
	Pattern string `json:"name"` // with p a prime, w an exponent
	Example string `json:"example"`
	Doc     string `json:"title"`
}

// Kinds returns the forms of names that [Parse] reads.
func Kinds() []Kind {
	kinds := []Kind{
		{"2^w", "2^8", "bytes and other binary symbols, w = 1 … 16; 2^8 by 0x11d, 2^16 by 0x1100b"},
		{"p", "257", "integers modulo a prime p < 2^31"},
		{"2^w:polynomial", "2^8:0x11b", "by an irreducible polynomial, as the code Σ c_i·2^i, hexadecimal or decimal"},
		{"q", "256", "a power of 2 written out: 256 is 2^8"},
	}
	for _, l := range large {
		kinds = append(kinds, Kind{l.name, l.name, l.doc})
	}
	return kinds
}

// Parse returns the field with the given name, in one of the forms of [Kinds].
// Without a polynomial, 2^w is defined by the primitive polynomial with the
// smallest code, except 2^16 by 0x1100b. The canonical name of a field omits
// that polynomial; that of a prime with a name, however written, is the name.
// The error says what is wrong with the name and what would be
// right.
//
// Fields are kept, so that parsing a name again is cheap.
func Parse(name string) (Field, error) {
	s, err := parse(name)
	if err != nil {
		return nil, fmt.Errorf("field %s: %w", quote(name), err)
	}
	return s.field(), nil
}

// A spec says which field a name means.
type spec struct {
	large string // a name, the rest zero; or:
	p     uint64
	m     int
	poly  uint64 // where p is 2
}

// parse reads a name. It takes no time to speak of, whatever the name.
func parse(name string) (spec, error) {
	if s, err := parseLarge(name); err != errNotLarge {
		return s, err
	}
	order, poly, hasPoly := strings.Cut(name, ":")
	base, exponent, hasExponent := strings.Cut(order, "^")
	b, err := parseUint(base, 10)
	if err != nil {
		return spec{}, errSyntax()
	}
	e := uint64(1)
	if hasExponent {
		if e, err = parseUint(exponent, 10); err != nil {
			return spec{}, errSyntax()
		}
	}
	s, err := specOf(b, e, order)
	if err != nil || !hasPoly {
		return s, err
	}
	digits, radix := poly, 10
	if hex, ok := strings.CutPrefix(strings.ToLower(poly), "0x"); ok {
		digits, radix = hex, 16
	}
	if s.poly, err = parseUint(digits, radix); err != nil {
		return spec{}, fmt.Errorf("%s is no polynomial; want a code Σ c_i·2^i such as 0x11b or 283", quote(poly))
	}
	return s, s.checkPolynomial(poly)
}

func errSyntax() error {
	return errors.New("not a field; " + wanted())
}

// wanted says for an error which names there are.
func wanted() string {
	return "want a prime below 2^31, a power of 2 from 2^2 to 2^16, one with a polynomial such as 2^8:0x11b, or a name: " + largeNames()
}

// parseUint reads an unsigned number without sign or separators. It returns the
// largest uint64 where the number is larger still.
func parseUint(s string, radix int) (uint64, error) {
	n, err := strconv.ParseUint(s, radix, 64)
	if errors.Is(err, strconv.ErrRange) {
		err = nil
	}
	return n, err
}

// specOf returns the spec of base^exponent, text being how the name writes it.
func specOf(base, exponent uint64, text string) (spec, error) {
	text = shorten(text)
	if exponent == 0 {
		return spec{}, errors.New("the exponent is 0; want 1 or more")
	}
	if base < 2 {
		return spec{}, fmt.Errorf("no field has %s elements; the smallest is 2", text)
	}
	tooLarge := fmt.Errorf("q = %s is too large; %s", text, wanted())
	if base >= maxPrime {
		return spec{}, tooLarge
	}
	fs := factor(base)
	if len(fs) > 1 {
		return spec{}, fmt.Errorf("%d = %s is no prime power", base, product(fs))
	}
	p, m := fs[0].p, fs[0].m
	if exponent > maxDegree {
		return spec{}, tooLarge
	}
	if exponent > 1 && m > 1 {
		return spec{}, fmt.Errorf("the base %d = %s is no prime; write %s", base, power(p, m), power(p, m*int(exponent)))
	}
	m *= int(exponent)
	if p == 2 && m > maxDegree {
		return spec{}, tooLarge
	}
	if p != 2 && m > 1 {
		return spec{}, fmt.Errorf("q = %s is a power of an odd prime; %s", text, wanted())
	}
	s := spec{p: p, m: m}
	if p == 2 {
		s.poly = defaultPolynomials[m]
	}
	return s, nil
}

// checkPolynomial checks that s.poly, which the name writes as text, defines a
// field.
func (s spec) checkPolynomial(text string) error {
	if s.m == 1 {
		return fmt.Errorf("a prime field has no polynomial; write %d", s.p)
	}
	lead := uint64(1) << s.m
	if s.poly < lead || s.poly >= 2*lead {
		return fmt.Errorf("%s is no polynomial of degree %d; want a code from %#x to %#x", shorten(text), s.m, lead, 2*lead-1)
	}
	if g, ok := (ring{s.m, s.poly}).divisor(); ok {
		return fmt.Errorf("the polynomial %#x is reducible: %#x divides it; want an irreducible one such as %#x", s.poly, g, defaultPolynomials[s.m])
	}
	return nil
}

// maxCached bounds the memory of the cache: a field has up to about 1.5 MB of
// tables.
const maxCached = 64

var cache = struct {
	sync.Mutex
	fields map[spec]Field
}{fields: map[spec]Field{}}

// field returns the field, from the cache if it is there.
func (s spec) field() Field {
	cache.Lock()
	defer cache.Unlock()
	f, ok := cache.fields[s]
	if ok {
		return f
	}
	f = s.build()
	if len(cache.fields) >= maxCached {
		clear(cache.fields)
	}
	cache.fields[s] = f
	return f
}

func (s spec) build() Field {
	if s.large != "" {
		return buildLarge(s.large)
	}
	if s.p != 2 {
		return newPrime(s.p)
	}
	name := power(2, s.m)
	if s.poly != defaultPolynomials[s.m] {
		name = fmt.Sprintf("%s:%#x", name, s.poly)
	}
	return newBinary(name, ring{s.m, s.poly})
}

// shorten cuts text from a name to what fits into a message.
func shorten(s string) string {
	if len(s) > 40 {
		return s[:37] + "..."
	}
	return s
}

func quote(s string) string { return strconv.Quote(shorten(s)) }
