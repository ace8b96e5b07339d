package matrix

import (
	"cmp"
	"fmt"
	"math/big"

	"volley/field"
)

var mooreFamily = Family{
	Name:    "moore",
	Formula: "A[i][j] = α_j^(base^i), on points α_j",
	Doc:     "Gabidulin codes: values of a linearised polynomial; invertible where the points are independent over F_base",
	Takes:   []string{"points", "base"},
	build:   buildMoore,
}

func buildMoore(b *builder) (Matrix, error) {
	p, err := b.points("alpha", cmp.Or(b.Points, "coset"), []string{"coset", "powers"}, func(word string) (Points, error) {
		if word == "coset" {
			return MoorePoints(b.f, b.Base, b.letter("R"), b.r)
		}
		return b.firstPoints(word, "R", b.r, 1)
	})
	if err != nil {
		return nil, err
	}
	return Moore(p, b.Base, b.k)
}

// Moore returns the Moore matrix of the given points with that many rows, on demand:
//
//	A[i][j] = a_j^(q^i)
//
// The coded packets are the values of the linearised polynomial Σ x_i·z^(q^i): the
// generator matrix of a Gabidulin code. The base q is a power of the
// characteristic, and F_q a subfield of the points' field; 0 stands for the
// characteristic. A square matrix is invertible exactly when the points are independent
// over F_q.
func Moore(points Points, base uint64, rows int) (Matrix, error) {
	t, err := newFrobenius(points.Field(), base)
	if err != nil {
		return nil, err
	}
	return t.moore(points, rows), nil
}

type moore struct {
	formula
	points Points
	q      uint64
}

func (t frobenius) moore(points Points, rows int) *moore {
	return &moore{formula{shape{t.f, rows, points.Len()}, fmt.Sprintf("moore(%d, %s)", t.q, points.ID()), func(i, j int) field.Element {
		return t.apply(points.At(j), i)
	}}, points, t.q}
}

func (m *moore) pointSets() []PointSet { return []PointSet{{"alpha", m.points}} }
func (m *moore) base() uint64          { return m.q }

// A frobenius is the map z → z^q on F_(q^m).
type frobenius struct {
	f field.Field
	q uint64
	m int
}

func newFrobenius(f field.Field, base uint64) (frobenius, error) {
	if !f.Characteristic().IsUint64() {
		if base != 0 {
			return frobenius{}, fmt.Errorf("matrix: moore over %s: base %d: want the characteristic %v", f.Name(), base, f.Characteristic())
		}
		return frobenius{f, 0, 1}, nil // z^q = z
	}
	p := f.Characteristic().Uint64()
	if base == 0 {
		base = p
	}
	degree, rest := 0, base
	for ; rest%p == 0; rest /= p {
		degree++
	}
	if degree == 0 || rest != 1 || f.Degree()%degree != 0 {
		return frobenius{}, fmt.Errorf("matrix: moore over %s: base %d: want a power %d^d with d dividing %d", f.Name(), base, p, f.Degree())
	}
	return frobenius{f, base, f.Degree() / degree}, nil
}

// apply returns z^(q^i).
func (t frobenius) apply(z field.Element, i int) field.Element {
	for range i % t.m {
		z = field.Exp(t.f, z, t.q)
	}
	return z
}

// MoorePoints returns n points of F_(q^m) that are independent over F_q. With Z = gcd(n, m),
// n = M·Z and prime radices r_0 <= r_1 <= … of Z, R_t = r_0 … r_(t-1),
//
//	point j + Z·i = g^i · Π_t λ_t^(j_t), λ_t = g^((q^m-1)/(q^R_(t+1)-1))
//
// where j_t are the digits of j: λ_t^0 … λ_t^(r_t-1) is a basis of F_(q^R_(t+1))
// over F_(q^R_t). It is an error where n > m, as no more points are independent,
// and for a base that [Moore] refuses; what names n, such as "K".
func MoorePoints(f field.Field, base uint64, what string, n int) (Points, error) {
	if err := checkSize("points", n); err != nil {
		return nil, err
	}
	t, err := newFrobenius(f, base)
	if err != nil {
		return nil, err
	}
	if n > t.m {
		return nil, fmt.Errorf("matrix: moore over %s: %s = %d points independent over F_%d: the field has degree %d over it: want %s <= %d%s", f.Name(), what, n, t.q, t.m, what, t.m, t.higherDegree(n))
	}
	return t.points(n, gcd(n, t.m), 0), nil
}

// higherDegree continues the advice of an error with a field of degree n over F_q,
// where there is one.
func (t frobenius) higherDegree(n int) string {
	p, degree := t.f.Characteristic(), n*t.f.Degree()/t.m
	name := fmt.Sprintf("%v^%d", p, degree)
	if _, err := field.Parse(name); err != nil {
		name = fmt.Sprintf("2^%d", max(8, n))
		if n > 16 {
			return ""
		}
	}
	return ", or a field such as " + name
}

// points returns the points of [MoorePoints] for a Z that divides n and m, times g^first.
func (t frobenius) points(n, z, first int) *sequence {
	radices := primeFactors(z)
	units := unitCount(t.f)
	var basis []field.Element // λ_t
	degree := int64(1)
	for _, r := range radices {
		degree *= int64(r)
		sub := new(big.Int).Exp(new(big.Int).SetUint64(t.q), big.NewInt(degree), nil)
		sub.Sub(sub, big.NewInt(1))
		basis = append(basis, field.ExpInt(t.f, t.f.Generator(), new(big.Int).Quo(units, sub)))
	}
	name := fmt.Sprintf("moore-coset:%d", t.q)
	if z != gcd(n, t.m) { // the one that the name alone stands for
		name += fmt.Sprintf(":%d", z)
	}
	return &sequence{t.f, 0, n, wholeID(shifted(name, first), n), func(k int) field.Element {
		v := field.Exp(t.f, t.f.Generator(), uint64(first+k/z))
		for d, r := range radices {
			v = t.f.Mul(v, field.Exp(t.f, basis[d], uint64(k%r)))
			k /= r
		}
		return v
	}}
}
