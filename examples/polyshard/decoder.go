package main

import (
	"errors"
	"slices"

	"volley/field"
)

// ErrWrong is returned where more values are wrong than the code can correct.
var ErrWrong = errors.New("too many wrong values")

// A polynomial has coefficient i at z^i, and no zeros at the end.
type polynomial []field.Element

func (p polynomial) at(f field.Field, z field.Element) (sum field.Element) {
	for _, c := range slices.Backward(p) {
		sum = f.Add(f.Mul(sum, z), c)
	}
	return sum
}

func (p polynomial) trim() polynomial {
	for len(p) > 0 && p[len(p)-1].IsZero() {
		p = p[:len(p)-1]
	}
	return p
}

// divide returns quotient and remainder of p by the divisor, which is not zero.
func (p polynomial) divide(f field.Field, divisor polynomial) (quotient, remainder polynomial) {
	n := len(divisor)
	remainder = slices.Clone(p)
	quotient = make(polynomial, max(0, len(p)-n+1))
	inverse := f.Inv(divisor[n-1])
	for i := len(p) - n; i >= 0; i-- {
		quotient[i] = f.Mul(remainder[i+n-1], inverse)
		for j, c := range divisor {
			remainder[i+j] = f.Sub(remainder[i+j], f.Mul(quotient[i], c))
		}
	}
	return quotient.trim(), remainder.trim()
}

// minus returns p - a·b.
func (p polynomial) minus(f field.Field, a, b polynomial) polynomial {
	result := make(polynomial, max(len(p), len(a)+len(b)))
	copy(result, p)
	for i, x := range a {
		for j, y := range b {
			result[i+j] = f.Sub(result[i+j], f.Mul(x, y))
		}
	}
	return result.trim()
}

// A Decoder finds a polynomial from its values at N points, some of which are wrong: S. Gao,
// "A New Algorithm for Decoding Reed-Solomon Codes", 2003.
type Decoder struct {
	f         field.Field
	points    []field.Element
	vanishing polynomial   // Π (z - point)
	basis     []polynomial // is 1 at its point, and 0 at all others
}

// NewDecoder returns a decoder for distinct points.
func NewDecoder(f field.Field, points []field.Element) *Decoder {
	d := &Decoder{f: f, points: points, vanishing: polynomial{field.One}}
	var zero polynomial
	for _, x := range points {
		d.vanishing = zero.minus(f, d.vanishing, polynomial{x, f.Sub(field.Element{}, field.One)})
	}
	for _, x := range points {
		b, _ := d.vanishing.divide(f, polynomial{f.Sub(field.Element{}, x), field.One})
		scale := f.Inv(b.at(f, x))
		for i := range b {
			b[i] = f.Mul(b[i], scale)
		}
		d.basis = append(d.basis, b)
	}
	return d
}

// Corrects returns how many wrong values Decode finds: (N-terms)/2.
func (d *Decoder) Corrects(terms int) int { return (len(d.points) - terms) / 2 }

// Decode returns the polynomial of so many terms that has all values but at most
// Corrects(terms), and the places of the others. It returns ErrWrong where there is none.
func (d *Decoder) Decode(values []field.Element, terms int) (p polynomial, wrong []int, err error) {
	f := d.f
	through := make(polynomial, len(values))
	for i, y := range values {
		for j, c := range d.basis[i] {
			through[j] = f.Add(through[j], f.Mul(y, c))
		}
	}
	// Euclid's algorithm, stopped halfway: all remainders are factor·through modulo
	// vanishing, and the factor that is found vanishes where values are wrong.
	r0, r1 := d.vanishing, through.trim()
	f0, f1 := polynomial(nil), polynomial{field.One}
	for 2*(len(r1)-1) >= len(values)+terms {
		quotient, remainder := r0.divide(f, r1)
		r0, r1 = r1, remainder
		f0, f1 = f1, f0.minus(f, quotient, f1)
	}
	p, rest := r1.divide(f, f1)
	if len(rest) > 0 || len(p) > terms {
		return nil, nil, ErrWrong
	}
	for i, x := range d.points {
		if p.at(f, x) != values[i] {
			wrong = append(wrong, i)
		}
	}
	return p, wrong, nil
}
