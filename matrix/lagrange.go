package matrix

import (
	"fmt"

	"volley/field"
	"volley/internal/pointset"
	"volley/internal/poll"
)

// Lagrange returns the K×R matrix that takes a polynomial's values at K points, of
// a degree below K, to its values at R others, on demand:
//
//	A[i][j] = Φ_i(α_j), Φ_i(z) = Π_(l≠i) (z - ω_l)/(ω_i - ω_l)
//
// The two sets may have points in common. It is the matrix of Lagrange coded computing and, where the sets are
// disjoint, the parity part of a systematic Reed–Solomon code. It is an error where the fields differ.
//
// A row and a column first asked for cost O(K) field operations each, or as much
// as the structure of the points leaves of them; the entries after that a few.
func Lagrange(omega, alpha Points) (Matrix, error) {
	f := omega.Field()
	if !sameField(f, alpha.Field()) {
		return nil, fmt.Errorf("matrix: lagrange: points ω over %s and α over %s: want one field", f.Name(), alpha.Field().Name())
	}
	return newLagrange(omega, alpha), nil
}

// newLagrange is Lagrange for points over one field.
func newLagrange(omega, alpha Points) *lagrange {
	return &lagrange{shape: shape{omega.Field(), omega.Len(), alpha.Len()}, omega: omega, alpha: alpha,
		weights: make([]poll.Once[field.Element], omega.Len()), values: make([]poll.Once[field.Element], alpha.Len())}
}

type lagrange struct {
	shape
	omega, alpha Points
	tower        poll.Once[*arranged]       // of ω, the largest
	weights      []poll.Once[field.Element] // 1/P'(ω_i), P(z) = Π_l (z - ω_l)
	values       []poll.Once[field.Element] // P(α_j)
}

func (m *lagrange) ID() string { return "lagrange(" + m.omega.ID() + ", " + m.alpha.ID() + ")" }

func (m *lagrange) At(i, j int) field.Element {
	m.check(i, j)
	f := m.f
	w, a := m.omega.At(i), m.alpha.At(j)
	if w == a {
		return field.One
	}
	p := m.vanishing(j)
	if p.IsZero() {
		return p
	}
	return f.Mul(p, f.Mul(m.weight(i), f.Inv(f.Sub(a, w))))
}

func (m *lagrange) Structure() Structure {
	sets := []PointSet{{"omega", m.omega}, {"alpha", m.alpha}}
	return Structure{
		Points: sets, fixed: ofModule(m, sets...), superregular: func() bool { return disjoint(m.omega, m.alpha) },
		ready: m.ready, inverse: func() Matrix { return newLagrange(m.alpha, m.omega) }, split: m.split, factor: m.factor,
		columns: func(first, n int) Matrix { return newLagrange(m.omega, pointset.Part(m.alpha, first, n)) },
	}
}

// vanishing returns P(α_j).
func (m *lagrange) vanishing(j int) field.Element {
	return m.values[j].Get(func() field.Element { return m.arranged(nil).vanishing(m.alpha.At(j)) })
}

// weight returns 1/P'(ω_i).
func (m *lagrange) weight(i int) field.Element {
	return m.weights[i].Get(func() field.Element {
		t := m.arranged(nil)
		return m.Field().Inv(t.derivative(t.label[i]))
	})
}

// arranged returns the points ω by their structure.
func (m *lagrange) arranged(p *poll.Poller) *arranged {
	return m.tower.Get(func() *arranged {
		return findTower(p, m.Field(), [][]field.Element{pointset.Elements(p, m.omega)}, false, nil)[0]
	})
}

func (m *lagrange) ready(p *poll.Poller) { m.arranged(p) }

// factor finds the structure that both sets of points have.
func (m *lagrange) factor(p *poll.Poller, r pointset.Radices) *Factorisation {
	return factorLagrange("lagrange", arrangeBoth(p, m.omega, m.alpha, r))
}

// arrangeBoth finds the tower of largest degree that both sets of points have.
func arrangeBoth(p *poll.Poller, omega, alpha Points, r pointset.Radices) []*arranged {
	if omega.Len() > mostSearched {
		return nil
	}
	return findTower(p, omega.Field(), [][]field.Element{pointset.Elements(p, omega), pointset.Elements(p, alpha)}, false, r)
}

// factorLagrange returns the factorisation from values at w[0]'s points, through coefficients, to values at w[1]'s.
func factorLagrange(name string, w []*arranged) *Factorisation {
	if len(w) == 0 || !w[0].structured() {
		return nil
	}
	inverse := invertedLayers(w[0].layers())
	return &Factorisation{
		Name: name, Structure: "both point sets " + w[0].String(),
		Layers: append(inverse, w[1].layers()...), Half: len(inverse),
		Input: w[0].labels(), Output: w[1].labels(), radices: w[0].radices(),
	}
}
