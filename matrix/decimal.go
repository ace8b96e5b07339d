package matrix

import (
	"fmt"
	"math"
	"strconv"

	"volley/field"
)

// A decimalParser reads symbol codes in decimal: digits only.
type decimalParser struct {
	f    field.Field
	last uint64 // q-1, or the largest uint64 where q-1 is larger
}

func newDecimalParser(f field.Field) decimalParser {
	p := decimalParser{f, math.MaxUint64}
	if units := unitCount(f); units.IsUint64() {
		p.last = units.Uint64()
	}
	return p
}

// maxDigits is more than any element has (78), and short enough to convert at
// once.
const maxDigits = 100

func (p decimalParser) parse(s string) (field.Element, error) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return field.Element{}, fmt.Errorf("%s is not a decimal number", quote(s))
		}
	}
	if len(s) > maxDigits {
		return field.Element{}, fmt.Errorf("%s is outside the field %s: no element has over %d digits", quote(s), p.f.Name(), maxDigits)
	}
	if v, err := strconv.ParseUint(s, 10, 64); err == nil && v <= p.last {
		return field.Code(v), nil
	}
	return field.ParseElement(p.f, s)
}

// quote returns s in quotes, shortened where it is long.
func quote(s string) string {
	const most = 40
	if len(s) <= most {
		return strconv.Quote(s)
	}
	return strconv.Quote(s[:most]) + "…"
}

// appendDecimal appends the symbol code of e to b.
func appendDecimal(b []byte, e field.Element) []byte {
	if e[1]|e[2]|e[3] == 0 {
		return strconv.AppendUint(b, e[0], 10)
	}
	return e.Int().Append(b, 10)
}
