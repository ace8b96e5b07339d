package matrix

import (
	"context"

	"volley/field"
	"volley/internal/pointset"
	"volley/internal/poll"
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

	Input, Output Labels

	radices []int // of the digits of labels that layers work on, the least first
}

// Degree returns the product of the radices of labels: K over how many cosets, or other fibres, the points are on.
func (f *Factorisation) Degree() int {
	degree := 1
	for _, r := range f.radices {
		degree *= r
	}
	return degree
}

// Natural reports whether column k of x·A lies in the end where processor k began:
// nothing has to move.
func (f *Factorisation) Natural(processors int) bool {
	if f.Input.label == nil && f.Output.label == nil {
		return true
	}
	for k := range processors {
		if f.Input.Label(k) != f.Output.Label(k) {
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

// Factor returns a factorisation of a square matrix into layers of small matrices. The
// factorisation follows from how the matrix was made. Factor returns nil where it knows
// none: m is not square, its family has none, or its points have no structure. It
// searches points for structure, in about as many field operations as there are points.
// Radices says which layers are to be neighbours: it returns the primes whose product is z, the least digit first. Nil is
// the order of the matrix itself, such as that of its points.
//
// The sources are the paper, sections "Computing a DFT Matrix", "Generalization"
// and "Computing Lagrange Matrices"; Lin, Chung and Han for [LCH]; Cauchy and points
// on other fibres than cosets go beyond the paper.
//
// The error is the cause of the context, where that ends; nil is none.
func Factor(ctx context.Context, m Matrix, radices func(z int) []int) (fact *Factorisation, err error) {
	defer poll.Catch(&err)
	return factor(poll.New(ctx), m, radices), nil
}

func factor(p *poll.Poller, m Matrix, r pointset.Radices) *Factorisation {
	p.Steps(1)
	if s := StructureOf(m); s.factor != nil && m.Rows() == m.Cols() {
		return s.factor(p, r)
	}
	return nil
}

// Transposed returns the factorisation of the transpose.
func (f *Factorisation) Transposed() *Factorisation { return f.backwards(transposedLayers) }

// between returns the factorisation of the product of three matrices: the diagonal
// matrix of leftFactor(label), that of f, and the diagonal one of rightFactor(label), where nil is
// all ones. It returns nil where f is nil or has no layers: a single processor is not
// worth one.
func (f *Factorisation) between(leftFactor, rightFactor func(label int) field.Element) *Factorisation {
	if f == nil || len(f.Layers) == 0 {
		return nil
	}
	if leftFactor != nil {
		scaleRows(f.Layers, 1, leftFactor)
	}
	if rightFactor != nil {
		scaleColumns(f.Layers, 1, rightFactor)
	}
	return f
}

// backwards returns the factorisation of the inverse, by [invertedLayers], or of the transpose, by [transposedLayers].
func (f *Factorisation) backwards(layers func([]Layer) []Layer) *Factorisation {
	if f == nil {
		return nil
	}
	g := *f
	g.Layers = layers(f.Layers)
	g.Input, g.Output = f.Output, f.Input
	return &g
}

// Work returns how many multiply-adds of a packet the layers take for each row.
func (f *Factorisation) Work() (n int) {
	for _, l := range f.Layers {
		n += l.Size()
	}
	return n
}

// Times returns x·A: a packet for each column, from x, which has one for each row, all of one length. It takes the
// multiply-adds of the layers. Where the context ends the error is its cause.
func (f *Factorisation) Times(ctx context.Context, x [][]byte) (y [][]byte, err error) {
	defer poll.Catch(&err)
	return f.times(poll.New(ctx), x), nil
}

func (f *Factorisation) times(p *poll.Poller, x [][]byte) [][]byte {
	packets := make([][]byte, len(x)) // by label
	for k, packet := range x {
		packets[f.Input.Label(k)] = packet
	}
	bytes := len(x[0])
	blocks := func() [][]byte {
		memory, list := make([]byte, len(x)*bytes), make([][]byte, len(x))
		for k := range list {
			list[k] = memory[k*bytes:][:bytes]
		}
		return list
	}
	next, spare := blocks(), blocks()
	for _, l := range f.Layers {
		n := l.Size()
		sources, coefs := make([][]byte, n), make([]field.Element, n)
		for group := range x {
			if p.Steps(1); l.Group(group) != group {
				continue
			}
			l.ready(p, group)
			for i := range n {
				sources[i] = packets[l.Label(group, i)]
			}
			for j := range n {
				p.Steps(n)
				for i := range n {
					coefs[i] = l.At(group, i, j)
				}
				l.f.Combine(next[l.Label(group, j)], coefs, sources)
			}
		}
		packets, next, spare = next, spare, next
	}
	y := make([][]byte, len(x))
	for k := range y {
		y[k] = packets[f.Output.Label(k)]
	}
	return y
}
