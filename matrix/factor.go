package matrix

import (
	"fmt"
	"slices"
	"strings"

	"volley/field"
)

// A Factorisation writes a K×K matrix as a product of layers, up to the order of
// its rows and columns. The layers work on labels 0 … K-1: processor k begins as
// In.Label(k), with x_k, and column k of x·A lies in the end at the label
// Out.Label(k).
type Factorisation struct {
	Name      string  // of the family, such as "draw-and-loose"
	Structure string  // what was found, for people
	Layers    []Layer // of the identity none

	// Half is, for a product of the inverse of one transform and another, how
	// many layers the inverse has; the product of layers on both sides of it is
	// called folded. Otherwise it is 0.
	Half int

	In, Out Labels
}

// Natural reports whether column k of x·A lies in the end where processor k began:
// nothing has to move.
func (f *Factorisation) Natural(processors int) bool {
	if f.In.label == nil && f.Out.label == nil {
		return true
	}
	for k := range processors {
		if f.In.Label(k) != f.Out.Label(k) {
			return false
		}
	}
	return true
}

// Labels is a bijection between processors and labels; the zero value is the
// identity.
type Labels struct{ label, processor func(int) int }

// Label returns the label of processor k.
func (l Labels) Label(k int) int {
	if l.label == nil {
		return k
	}
	return l.label(k)
}

// Processor returns the processor with a label.
func (l Labels) Processor(label int) int {
	if l.processor == nil {
		return label
	}
	return l.processor(label)
}

// Factor returns the factorisation of a square matrix into layers of small
// matrices that follows from how the matrix was made, and nil where none is known
// or its points have no structure. It searches points for structure, in about as many
// field operations as there are points.
//
// The sources are the paper, sections "Computing a DFT Matrix", "Generalization"
// and "Computing Lagrange Matrices"; Lin, Chung and Han for [LCH]; Cauchy, Moore
// and points on other fibres than cosets go beyond the paper.
func Factor(m Matrix) *Factorisation {
	switch m := m.(type) {
	case named:
		return Factor(m.Matrix)
	case inverted:
		return Factor(m.of).inverted()
	case transpose:
		return Factor(m.m).transposed()
	case *permuted:
		return m.factor()
	case *dft:
		return m.factor()
	case *reversedDFT:
		fact := m.dft.factor()
		fact.In, fact.Out = Labels{}, Labels{}
		if m.rows { // the transpose of what reversed columns give, as a DFT matrix is symmetric
			return fact.transposed()
		}
		return fact
	case vandermonde:
		return factorVandermonde(m.points)
	case *lagrange:
		w := findTower(m.Field(), [][]field.Element{elements(m.omega), elements(m.alpha)}, false)
		return factorLagrange("lagrange", w)
	case cauchy:
		return factorCauchy(m)
	case *lch:
		return m.factor()
	case *moore:
		if p, ok := m.points.(*moorePoints); ok && (p.z > 1 || p.n == 1) {
			return &Factorisation{Name: "moore", Structure: p.structure(), Layers: p.layers()}
		}
	case *gabidulin:
		if m.omega.z == 1 && m.omega.n > 1 {
			return nil
		}
		inverse := Inverted(m.omega.layers())
		return &Factorisation{
			Name: "gabidulin", Structure: m.omega.structure(),
			Layers: append(inverse, m.alpha.layers()...), Half: len(inverse),
		}
	}
	return nil
}

// inverted returns the factorisation of the inverse.
func (f *Factorisation) inverted() *Factorisation {
	return f.backwards(Inverted)
}

// transposed returns the factorisation of the transpose.
func (f *Factorisation) transposed() *Factorisation {
	return f.backwards(Transposed)
}

func (f *Factorisation) backwards(layers func([]Layer) []Layer) *Factorisation {
	if f == nil {
		return nil
	}
	g := *f
	g.Layers = layers(f.Layers)
	g.In, g.Out = f.Out, f.In
	if f.Half > 0 {
		g.Half = len(f.Layers) - f.Half
	}
	return &g
}

// factor returns the stages of a DFT, in natural order of the inputs, top digit
// first: label l obtains the value at ω^rev(l).
func (m *dft) factor() *Factorisation {
	forward, backward := m.radices, slices.Clone(m.radices)
	slices.Reverse(backward)
	degree := []int{1}
	for _, r := range forward {
		degree = append(degree, degree[len(degree)-1]*r)
	}
	w := cosetTower(m.f, m.k, forward, nil)
	w.value = func(t, label int) field.Element {
		e := uint64(reverseDigits(label, forward)) * uint64(degree[t])
		return m.powers.at(int(e % uint64(m.k)))
	}
	fact := &Factorisation{
		Name: "dft", Structure: fmt.Sprintf("radices %s", product(forward)), Layers: w.layers(),
		Out: Labels{
			func(k int) int { return reverseDigits(k, backward) },
			func(l int) int { return reverseDigits(l, forward) },
		},
	}
	for t := range fact.Layers {
		fact.Layers[t].Name = "stage"
	}
	if m.scale != field.One && len(fact.Layers) > 0 {
		scaleRows(fact.Layers, func(int) field.Element { return m.scale })
	}
	return fact
}

// product writes numbers as a product.
func product(list []int) string {
	s := make([]string, len(list))
	for i, n := range list {
		s[i] = fmt.Sprint(n)
	}
	return strings.Join(s, "·")
}

// factor returns the layers of the additive FFT; its basis differs from that of
// the tower by a diagonal.
func (m *lch) factor() *Factorisation {
	if !m.tower.structured() {
		return nil
	}
	fact := &Factorisation{Name: "additive-fft", Structure: m.tower.String(), Layers: m.tower.layers()}
	if len(fact.Layers) > 0 {
		scaleRows(fact.Layers, m.scale)
	}
	return fact
}

// structure says what the points are, for people.
func (p *moorePoints) structure() string {
	return fmt.Sprintf("%s the subfield of %d^%d elements, by a tower of degrees %s", count(p.n/p.z, "multiple")+" of", p.q, p.z, product(p.radices))
}

// factorVandermonde finds the cosets that the points are made of, and arranges
// them.
func factorVandermonde(points Points) *Factorisation {
	const name = "draw-and-loose"
	if p, ok := points.(*cosetPoints); ok {
		w := cosetTower(p.Field(), p.n, p.radices, p.At)
		if !w.structured() {
			return nil
		}
		return &Factorisation{Name: name, Structure: w.String(), Layers: w.layers()}
	}
	w := findTower(points.Field(), [][]field.Element{elements(points)}, true)[0]
	if !w.structured() {
		return nil
	}
	return &Factorisation{Name: name, Structure: w.String(), Layers: w.layers(), Out: w.labels()}
}

// labels returns the labels of the points.
func (w *arranged) labels() Labels {
	if w.natural() {
		return Labels{}
	}
	return Labels{func(k int) int { return w.label[k] }, func(l int) int { return w.point[l] }}
}

// factorLagrange returns the factorisation from values at the points of w[0] to
// values at those of w[1], through the coefficients.
func factorLagrange(name string, w []*arranged) *Factorisation {
	if !w[0].structured() {
		return nil
	}
	inverse := Inverted(w[0].layers())
	return &Factorisation{
		Name: name, Structure: "both point sets " + w[0].String(),
		Layers: append(inverse, w[1].layers()...), Half: len(inverse),
		In: w[0].labels(), Out: w[1].labels(),
	}
}

// factorCauchy returns diagonal, Lagrange, diagonal:
//
//	1/(x_i - y_j) = -P'(x_i) · Φ_i(y_j) · 1/P(y_j), P(z) = Π (z - x_k)
func factorCauchy(m cauchy) *Factorisation {
	if m.Rows() != m.Cols() {
		return nil
	}
	w := findTower(m.Field(), [][]field.Element{elements(m.x), elements(m.y)}, false)
	fact := factorLagrange("cauchy", w)
	if fact == nil || len(fact.Layers) == 0 { // a single processor's is not worth a layer
		return nil
	}
	f := m.Field()
	scaleRows(fact.Layers, func(label int) field.Element {
		return f.Sub(field.Element{}, w[0].derivative(label))
	})
	scaleColumns(fact.Layers, func(label int) field.Element {
		return f.Inv(w[0].vanishing(w[1].value(0, label)))
	})
	return fact
}
