package field

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// An Element is an element of a field F_q, held as its symbol code: an integer
// in [0, q), as four 64-bit limbs, least significant first. The code of
// Σ c_i·X^i in a field of characteristic 2 is Σ c_i·2^i. The zero value is the
// zero of every field, and two elements of one field are equal exactly when
// they are equal under ==.
type Element [4]uint64

// One is the multiplicative identity of every field.
var One = Element{1}

// Code returns the element with symbol code v. It belongs to a field of order q
// only when v < q; [Contains] reports that.
func Code(v uint64) Element { return Element{v} }

// IsZero reports whether e is the zero element.
func (e Element) IsZero() bool { return e == Element{} }

// Int returns the symbol code of e as a new integer.
func (e Element) Int() *big.Int {
	var b [32]byte
	for i, limb := range e {
		binary.BigEndian.PutUint64(b[24-8*i:], limb)
	}
	return new(big.Int).SetBytes(b[:])
}

// String returns the symbol code of e in decimal.
func (e Element) String() string {
	if e[1]|e[2]|e[3] == 0 {
		return strconv.FormatUint(e[0], 10)
	}
	return e.Int().String()
}

// FromInt returns the element with symbol code v. It returns an error when v is
// negative or needs more than 256 bits.
func FromInt(v *big.Int) (Element, error) {
	if v.Sign() < 0 || v.BitLen() > 256 {
		return Element{}, fmt.Errorf("field: %v is not a symbol code: want 0 to 2^256-1", v)
	}
	var b [32]byte
	v.FillBytes(b[:])
	var e Element
	for i := range e {
		e[i] = binary.BigEndian.Uint64(b[24-8*i:])
	}
	return e, nil
}

// A Field is a finite field F_q and its arithmetic on elements and on packets.
//
// A packet is a vector of symbols, each the code of one element, little-endian
// in [Field.SymbolBytes] bytes. Implementations are immutable and safe for
// concurrent use. Operands must belong to the field; what happens otherwise is
// not defined, except that no memory outside the arguments is touched.
type Field interface {
	// Name returns the canonical name of the field, which [Parse] reads. Two
	// fields are the same field, symbol code by symbol code, exactly when their
	// names are equal.
	Name() string

	// Order returns q, the number of elements, as a new integer.
	Order() *big.Int

	// Characteristic returns the prime p, and Degree the m, of q = p^m.
	Characteristic() *big.Int
	Degree() int

	// SymbolBytes returns the bytes of one symbol: the smallest of 1, 2, 4, 8
	// or 32 that holds q-1.
	SymbolBytes() int

	// Generator returns the primitive element with the smallest symbol code
	// (1 when q = 2).
	Generator() Element

	Add(a, b Element) Element // a + b
	Sub(a, b Element) Element // a - b
	Mul(a, b Element) Element // a · b

	// Inv returns 1/a. It panics when a is zero.
	Inv(a Element) Element

	// Combine sets dst = Σ coef[i]·src[i], symbol by symbol; without sources it
	// sets dst to zero. All packets have the length of dst, a multiple of
	// SymbolBytes, and dst overlaps no source. It panics when lengths disagree.
	Combine(dst []byte, coef []Element, src [][]byte)

	// Map makes the linear map with the given rows ready: rows[i][j] multiplies
	// input j in output i. rows is non-empty and rectangular; Map panics when it
	// is not. The map does not keep rows.
	Map(rows [][]Element) Map

	// FirstInvalid returns the index of the first symbol of the packet that is
	// no element, its code being q or more, and -1 when there is none.
	FirstInvalid(packet []byte) int
}

// Contains reports whether e is an element of f: whether its code is below q.
func Contains(f Field, e Element) bool {
	if checker, ok := f.(interface{ contains(Element) bool }); ok { // without an integer for q
		return checker.contains(e)
	}
	return e.Int().Cmp(f.Order()) < 0
}

// mostDigits is more than any element has (78), and few enough to convert at once.
const mostDigits = 100

// ParseElement reads the decimal symbol code of an element of f, which may have spaces around
// it. The error says whether s is no number or too large.
func ParseElement(f Field, s string) (Element, error) {
	s = strings.TrimSpace(s)
	if code, err := strconv.ParseUint(s, 10, 64); err == nil && Contains(f, Code(code)) {
		return Code(code), nil
	}
	switch digits := strings.TrimPrefix(s, "-"); {
	case digits == "" || strings.Trim(digits, "0123456789") != "":
		return Element{}, fmt.Errorf("%s is not a decimal number", quote(s))
	case len(digits) > mostDigits:
		return Element{}, fmt.Errorf("%s is outside the field %s: no element has over %d digits", quote(s), f.Name(), mostDigits)
	}
	v, _ := new(big.Int).SetString(s, 10)
	if v.Sign() < 0 || v.Cmp(f.Order()) >= 0 {
		return Element{}, fmt.Errorf("%s is outside the field %s: want 0 to %v", shorten(v.String()), f.Name(), new(big.Int).Sub(f.Order(), big.NewInt(1)))
	}
	return FromInt(v)
}

// Decimals returns n elements in decimal, as [ParseElement] reads them.
func Decimals(n int, element func(int) Element) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = element(i).String()
	}
	return list
}

// ExpInt returns a^n for n >= 0, by repeated squaring; a^0 is 1, also for a = 0.
func ExpInt(f Field, a Element, n *big.Int) Element {
	r := One
	for i := n.BitLen() - 1; i >= 0; i-- {
		r = f.Mul(r, r)
		if n.Bit(i) == 1 {
			r = f.Mul(r, a)
		}
	}
	return r
}

// Exp returns a^n; a^0 is 1, also for a = 0.
func Exp(f Field, a Element, n uint64) Element {
	r := One
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			r = f.Mul(r, a)
		}
		a = f.Mul(a, a)
	}
	return r
}

// PutSymbol stores e as one symbol in the first f.SymbolBytes() bytes of dst.
func PutSymbol(f Field, dst []byte, e Element) {
	switch n := f.SymbolBytes(); n {
	case 1:
		dst[0] = byte(e[0])
	case 2:
		binary.LittleEndian.PutUint16(dst, uint16(e[0]))
	case 4:
		binary.LittleEndian.PutUint32(dst, uint32(e[0]))
	default:
		for i := range n / 8 {
			binary.LittleEndian.PutUint64(dst[8*i:], e[i])
		}
	}
}

// Symbol returns the element stored in the first f.SymbolBytes() bytes of src.
func Symbol(f Field, src []byte) Element {
	switch n := f.SymbolBytes(); n {
	case 1:
		return Element{uint64(src[0])}
	case 2:
		return Element{uint64(binary.LittleEndian.Uint16(src))}
	case 4:
		return Element{uint64(binary.LittleEndian.Uint32(src))}
	default:
		var e Element
		for i := range n / 8 {
			e[i] = binary.LittleEndian.Uint64(src[8*i:])
		}
		return e
	}
}
