package matrix

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"volley/field"
	"volley/internal/poll"
	"volley/internal/printable"
)

// A Layer is a K×K matrix that is block-diagonal but for the order of its rows and columns: a partition of the indexes
// into groups of equal size, and one small matrix per group. A group is the indexes that differ only in certain digits
// of a mixed-radix number; nothing is stored per index.
//
// The matrices with structure are products of layers (see [Factor]), first layer
// leftmost: the row vector x goes through them in order.
type Layer struct {
	Name string // what it does, such as "draw"
	Partition

	f     field.Field
	entry func(group, i, j int) field.Element

	// prepare makes what entry takes long to make for a group; nil: nothing.
	prepare func(p *poll.Poller, group int)

	// sharedWeight is a weight: groups that differ in digits of lower weights only have one matrix.
	sharedWeight int
}

// Field returns the field of the entries.
func (l Layer) Field() field.Field { return l.f }

// At returns entry (i, j) of the matrix of a group, named as [Partition.Group] does, between its labels at i and j.
func (l Layer) At(group, i, j int) field.Element { return l.entry(group, i, j) }

// Ready makes what [Layer.At] would make when it is first asked for an entry of a group, such as an inverse or a product.
// Unlike it, Ready returns the cause of the context when that ends. The next who asks then makes it.
func (l Layer) Ready(ctx context.Context, group int) (err error) {
	if l.prepare == nil {
		return nil
	}
	defer poll.Catch(&err)
	l.prepare(poll.New(ctx), group)
	return nil
}

func (l Layer) ready(p *poll.Poller, group int) {
	if l.prepare != nil {
		l.prepare(p, group)
	}
}

// First returns the first group that has the matrix of a group, as far as it is known: all in between have it, too.
func (l Layer) First(group int) int { return group - group%l.sharedWeight }

// A Partition splits the labels 0 … K-1 into groups of equal size of those that differ only in the partition's digits.
type Partition struct {
	K      int
	digits []digit // ascending weights; the first label of a group has zeros there
}

// A digit of k is k / weight mod radix.
type digit struct{ weight, radix int }

// Size returns the number of labels of a group.
func (p Partition) Size() int {
	n := 1
	for _, d := range p.digits {
		n *= d.radix
	}
	return n
}

// Group returns the name of the group of label k: its first label.
func (p Partition) Group(k int) int {
	for _, d := range p.digits {
		k -= k / d.weight % d.radix * d.weight
	}
	return k
}

// Index returns at which index of its group label k is.
func (p Partition) Index(k int) int {
	i, n := 0, 1
	for _, d := range p.digits {
		i += k / d.weight % d.radix * n
		n *= d.radix
	}
	return i
}

// Label returns the label at index i of a group.
func (p Partition) Label(group, i int) int {
	for _, d := range p.digits {
		group += i % d.radix * d.weight
		i /= d.radix
	}
	return group
}

// join returns the partition whose groups are the connected components of both, whose digits are of one radix system.
func (p Partition) join(q Partition) Partition {
	digits := slices.Clone(p.digits)
	for _, d := range q.digits {
		if !slices.Contains(digits, d) {
			digits = append(digits, d)
		}
	}
	slices.SortFunc(digits, func(a, b digit) int { return a.weight - b.weight })
	return Partition{p.K, digits}
}

// transposedLayers returns the transpose of a product of layers.
func transposedLayers(layers []Layer) []Layer {
	list := make([]Layer, len(layers))
	for t, l := range layers {
		entry := l.entry
		l.Name = toggle(l.Name, "transposed ")
		l.entry = func(group, i, j int) field.Element { return entry(group, j, i) }
		list[len(list)-1-t] = l
	}
	return list
}

// invertedLayers returns the inverse of a product of layers whose matrices are invertible. A group's inverse is computed when
// first asked for, and kept; asking panics where there is none.
func invertedLayers(layers []Layer) []Layer {
	list := make([]Layer, len(layers))
	for t, l := range layers {
		list[len(list)-1-t] = l.inverted()
	}
	return list
}

func (l Layer) inverted() Layer {
	n, f := l.Size(), l.f
	forward, original := l.entry, l
	inverse := perLabel(l.K, func(p *poll.Poller, group int) []field.Element {
		original.ready(p, group)
		a := make([]field.Element, 0, n*n)
		for i := range n * n {
			p.Steps(1)
			a = append(a, forward(group, i/n, i%n))
		}
		if n == 2 { // as of a butterfly
			if det := f.Sub(f.Mul(a[0], a[3]), f.Mul(a[1], a[2])); !det.IsZero() {
				c := f.Inv(det)
				minus := f.Sub(field.Element{}, c)
				return []field.Element{f.Mul(c, a[3]), f.Mul(minus, a[1]), f.Mul(minus, a[2]), f.Mul(c, a[0])}
			}
		}
		inv, err := denseFunc(p, f, n, n, func(i, j int) field.Element { return a[i*n+j] }).inverse(p)
		if err != nil {
			panic(fmt.Sprintf("matrix: layer %s, group of %d: %v", l.Name, group, err))
		}
		for i := range a {
			p.Steps(1)
			a[i] = inv.At(i/n, i%n)
		}
		return a
	})
	l.Name = toggle(l.Name, "inverse ")
	first := l.First
	l.entry = func(group, i, j int) field.Element { return inverse(nil, first(group))[i*n+j] }
	l.prepare = func(p *poll.Poller, group int) { inverse(p, first(group)) }
	return l
}

// perLabel keeps what compute returns for each label below k, which is asked for once, or again where a context ended it.
func perLabel[T any](k int, compute func(p *poll.Poller, label int) T) func(p *poll.Poller, label int) T {
	var kept poll.Once[[]poll.Once[T]]
	return func(p *poll.Poller, label int) T {
		l := &kept.Get(func() []poll.Once[T] { return make([]poll.Once[T], k) })[label]
		return l.Get(func() T { return compute(p, label) })
	}
}

// toggle puts the prefix before the name, or takes it away.
func toggle(name, prefix string) string {
	if rest, ok := strings.CutPrefix(name, prefix); ok {
		return rest
	}
	return prefix + name
}

// scaleRows multiplies layers by the diagonal of d(k) from the left, in the first; scaleColumns from the right. Labels
// with the same quotient by sharedWeight have the same d.
func scaleRows(layers []Layer, sharedWeight int, d func(k int) field.Element) {
	l := &layers[0]
	f, entry, part, diagonal := l.f, l.entry, l.Partition, perLabel(l.K/sharedWeight, func(_ *poll.Poller, i int) field.Element { return d(i * sharedWeight) })
	l.entry = func(group, i, j int) field.Element {
		return f.Mul(diagonal(nil, part.Label(group, i)/sharedWeight), entry(group, i, j))
	}
	l.sharedWeight = min(l.sharedWeight, sharedWeight)
}

func scaleColumns(layers []Layer, sharedWeight int, d func(k int) field.Element) {
	l := &layers[len(layers)-1]
	f, entry, part, diagonal := l.f, l.entry, l.Partition, perLabel(l.K/sharedWeight, func(_ *poll.Poller, i int) field.Element { return d(i * sharedWeight) })
	l.entry = func(group, i, j int) field.Element {
		return f.Mul(entry(group, i, j), diagonal(nil, part.Label(group, j)/sharedWeight))
	}
	l.sharedWeight = min(l.sharedWeight, sharedWeight)
}

// Span returns the partition of what [Fuse] makes of the layers. It multiplies no matrices.
func Span(layers []Layer) Partition {
	p := layers[0].Partition
	for _, l := range layers[1:] {
		p = p.join(l.Partition)
	}
	return p
}

// Fuse returns the product of one or more layers as a single layer: its groups are the connected components of theirs.
// A group's matrix is multiplied when first asked for, and kept.
func Fuse(layers []Layer) Layer {
	last := len(layers) - 1
	if last == 0 {
		return layers[0]
	}
	part := Span(layers)
	f, n := layers[0].f, part.Size()
	// row calls yield with the entries that a layer has in row i of a group, and with their columns j.
	row := func(p *poll.Poller, l Layer, group, i int, yield func(j int, e field.Element)) {
		layerGroup, a := l.Group(part.Label(group, i)), l.Index(part.Label(group, i))
		l.ready(p, layerGroup)
		for b := range l.Size() {
			p.Steps(1)
			yield(part.Index(l.Label(layerGroup, b)), l.entry(layerGroup, a, b))
		}
	}
	products := perLabel(part.K, func(p *poll.Poller, group int) *Dense {
		d := NewDense(f, n, n)
		for i := range n {
			row(p, layers[last], group, i, func(j int, e field.Element) { d.put(i, j, e) })
		}
		for _, l := range slices.Backward(layers[:last]) {
			next := NewDense(f, n, n)
			var coefs []field.Element
			var rows [][]byte
			for i := range n {
				coefs, rows = coefs[:0], rows[:0]
				row(p, l, group, i, func(j int, e field.Element) { coefs, rows = append(coefs, e), append(rows, d.Row(j)) })
				f.Combine(next.Row(i), coefs, rows)
			}
			d = next
		}
		return d
	})
	fused := Layer{Name: layers[0].Name, Partition: part, f: f, sharedWeight: layers[0].sharedWeight}
	for _, l := range layers[1:] {
		fused.sharedWeight = min(fused.sharedWeight, l.sharedWeight)
		if l.Name != fused.Name {
			fused.Name = "fused"
		}
	}
	fused.entry = func(group, i, j int) field.Element { return products(nil, fused.First(group)).At(i, j) }
	fused.prepare = func(p *poll.Poller, group int) { products(p, fused.First(group)) }
	return fused
}

// String describes the partition, such as "4 groups of 2: {0 4} {1 5} …".
func (p Partition) String() string {
	const limit = 4 // groups shown, and labels
	n, shown := p.Size(), 0
	s := fmt.Sprintf("%s of %d:", printable.Count(p.K/n, "group"), n)
	for k := 0; k < p.K && shown < limit; k++ {
		if p.Group(k) == k {
			var labels []int
			for i := range min(n, limit) {
				labels = append(labels, p.Label(k, i))
			}
			s += " {" + strings.Trim(fmt.Sprint(labels), "[]")
			if n > limit {
				s += " …"
			}
			s += "}"
			shown++
		}
	}
	if p.K/n > shown {
		s += " …"
	}
	return s
}
