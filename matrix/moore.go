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
			return pointsMoore(b.f, b.Base, b.letter("R"), b.r)
		}
		return b.firstPoints(word, "R", b.r, 1)
	})
	if err != nil {
		return nil, err
	}
	return newMoore(p, b.Base, b.k)
}

// Moore returns the K×K Moore matrix of the K given points, on demand:
//
//	A[i][j] = a_j^(q^i)
//
// The coded packets are the values of the linearised polynomial Σ x_i·z^(q^i): the
// generator matrix of a Gabidulin code. The base q is a power of the
// characteristic, and F_q a subfield of the points' field; 0 stands for the
// characteristic. The matrix is invertible exactly when the points are independent
// over F_q.
func Moore(points Points, base uint64) (Matrix, error) {
	return newMoore(points, base, points.Len())
}

// newMoore returns the matrix of [Moore] with that many rows.
func newMoore(points Points, base uint64, rows int) (Matrix, error) {
	t, err := newFrobenius(points.Field(), base)
	if err != nil {
		return nil, err
	}
	return &moore{points, rows, t}, nil
}

// A moore has a number of rows, and as many columns as there are points.
type moore struct {
	points Points
	rows   int
	frobenius
}

func (m *moore) Field() field.Field { return m.f }
func (m *moore) Rows() int          { return m.rows }
func (m *moore) Cols() int          { return m.points.Len() }
func (m *moore) ID() string         { return fmt.Sprintf("moore(%d, %s)", m.q, m.points.ID()) }

func (m *moore) At(i, j int) field.Element {
	checkEntry(i, j, m.rows, m.points.Len())
	return m.apply(m.points.At(j), i)
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

// MoorePoints returns n points of F_(q^m) that are independent over F_q, arranged
// so that their Moore matrix is a product of small layers. With Z = gcd(n, m),
// n = M·Z and prime radices r_0 <= r_1 <= … of Z, R_t = r_0 … r_(t-1),
//
//	point j + Z·i = g^i · Π_t λ_t^(j_t), λ_t = g^((q^m-1)/(q^R_(t+1)-1))
//
// where j_t are the digits of j: λ_t^0 … λ_t^(r_t-1) is a basis of F_(q^R_(t+1))
// over F_(q^R_t). It is an error where n > m, as no more points are independent,
// and for a base that [Moore] refuses.
func MoorePoints(f field.Field, base uint64, n int) (Points, error) {
	return pointsMoore(f, base, "K", n)
}

// pointsMoore is MoorePoints; what names n, "K" or "R".
func pointsMoore(f field.Field, base uint64, what string, n int) (Points, error) {
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
	return newMoorePoints(t, n, gcd(n, t.m), 0), nil
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

// moorePoints has M cosets, as it were, from number first on.
type moorePoints struct {
	frobenius
	n, z, first int
	radices     []int
	basis       []field.Element // λ_t
}

// newMoorePoints takes Z that divide both n and m.
func newMoorePoints(t frobenius, n, z, first int) *moorePoints {
	p := &moorePoints{frobenius: t, n: n, z: z, first: first, radices: primeFactors(z)}
	units := unitCount(t.f)
	degree := int64(1)
	for _, r := range p.radices {
		degree *= int64(r)
		sub := new(big.Int).Exp(new(big.Int).SetUint64(t.q), big.NewInt(degree), nil)
		sub.Sub(sub, big.NewInt(1))
		p.basis = append(p.basis, field.ExpInt(t.f, t.f.Generator(), new(big.Int).Quo(units, sub)))
	}
	return p
}

func (p *moorePoints) Field() field.Field { return p.f }
func (p *moorePoints) Len() int           { return p.n }

func (p *moorePoints) ID() string {
	name := fmt.Sprintf("moore-coset:%d", p.q)
	if p.z != gcd(p.n, p.m) { // the one that the name alone stands for
		name += fmt.Sprintf(":%d", p.z)
	}
	return shifted(name, p.first)
}

func (p *moorePoints) At(k int) field.Element {
	checkPoint(k, p.n)
	v := p.representative(k / p.z)
	for t, r := range p.radices {
		v = p.f.Mul(v, field.Exp(p.f, p.basis[t], uint64(k%r)))
		k /= r
	}
	return v
}

// representative returns g^(first+i).
func (p *moorePoints) representative(i int) field.Element {
	return field.Exp(p.f, p.f.Generator(), uint64(p.first+i))
}

// layers returns the factorisation of the Moore matrix of the points: as
// b^(q^i) with b in F_(q^R_(t+1)) depends on i modulo R_(t+1) only, a linearised
// polynomial splits into r_t of them at each level, like an FFT, but without any
// root of unity.
func (p *moorePoints) layers() []Layer {
	var list []Layer
	if m := p.n / p.z; m > 1 {
		part := Partition{p.n, []digit{{p.z, m}}}
		list = append(list, Layer{"draw", part, p.f, func(group, w, i int) field.Element {
			return p.apply(p.representative(i), group+p.z*w)
		}})
	}
	weight := p.z
	for t := len(p.radices) - 1; t >= 0; t-- {
		r := p.radices[t]
		weight /= r
		at := weight // R_t
		list = append(list, Layer{"loose", Partition{p.n, []digit{{at, r}}}, p.f, func(group, rho, s int) field.Element {
			return p.apply(field.Exp(p.f, p.basis[t], uint64(s)), rho*at+group%at)
		}})
	}
	if p.n == p.z && p.n > 1 { // the draw is a diagonal
		scaleRows(list, func(l int) field.Element { return p.apply(p.representative(0), l) })
	}
	return list
}

// structure says what the points are, for people.
func (p *moorePoints) structure() string {
	return fmt.Sprintf("%s the subfield of %d^%d elements, by a tower of degrees %s", count(p.n/p.z, "multiple")+" of", p.q, p.z, product(p.radices))
}

// factor returns the layers of the default points; no others are known to have
// any.
func (m *moore) factor() *Factorisation {
	p, ok := m.points.(*moorePoints)
	if !ok || p.z == 1 && p.n > 1 {
		return nil
	}
	return &Factorisation{Name: "moore", Structure: p.structure(), Layers: p.layers()}
}
