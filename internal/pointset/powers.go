package pointset

import "volley/field"

// Powers gives base^0 … base^(n-1) by a small table per digit of the exponent.
type Powers struct {
	f      field.Field
	tables [][]field.Element
}

const (
	digitBits = 10
	digitSize = 1 << digitBits
)

func NewPowers(f field.Field, base field.Element, n int) Powers {
	p := Powers{f: f}
	for {
		t := make([]field.Element, min(n, digitSize))
		t[0] = field.One
		for i := 1; i < len(t); i++ {
			t[i] = f.Mul(t[i-1], base)
		}
		p.tables = append(p.tables, t)
		if n <= digitSize {
			return p
		}
		base = f.Mul(t[digitSize-1], base)
		n = (n-1)/digitSize + 1
	}
}

// At returns base^e for 0 <= e < n.
func (p Powers) At(e int) field.Element {
	r := p.tables[0][e%digitSize]
	for _, t := range p.tables[1:] {
		e >>= digitBits
		r = p.f.Mul(r, t[e%digitSize])
	}
	return r
}
