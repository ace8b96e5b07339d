package matrix

import (
	"math/big"
	"slices"

	"volley/field"
	"volley/internal/pointset"
	"volley/internal/poll"
)

// arranged is a tower found in points: labels name the processors' points.
type arranged struct {
	tower
	label []int // of point k
	point []int // with that label
}

// mostSearched is how many points are searched for structure; of more it is known only where they say it themselves.
const mostSearched = 1 << 17

// findTower looks for the composition of folds of largest degree of which every one of the point sets, all equally
// long, is a union of full fibres, and arranges each of them. Only monomials count where the order of the coefficients
// matters; else subspaces are tried as well. Of a subgroup, or a subspace, the largest is found; of mixed towers
// perhaps not. Sets whose fibres are made of the same processors get the same labels. The folds have the radices in
// their order where a tower of that degree has them so.
//
// It takes O(n) field operations for each fold that succeeds.
func findTower(p *poll.Poller, f field.Field, sets [][]field.Element, onlyMonomials bool, r pointset.Radices) []*arranged {
	best := climb(p, f, sets, true, nil)
	monomials := true
	if !onlyMonomials {
		if general := climb(p, f, sets, false, nil); general[0].z() > best[0].z() {
			best, monomials = general, false
		}
	}
	if r != nil {
		z := best[0].z()
		if first := r(z); !slices.Equal(first, best[0].radices()) {
			if byRadices := climb(p, f, sets, monomials, first); byRadices[0].z() == z {
				best = byRadices
			}
		}
	}
	list := make([]*arranged, len(sets))
	for s, c := range best {
		list[s] = c.arrange(p)
	}
	return list
}

// A climbed set has been taken up through folds.
type climbed struct {
	tower
	values   [][]field.Element // by level, then node; level 0 are the points
	children [][][]int         // of a node of level t+1: nodes of level t, ascending
}

// top returns the values of the highest level.
func (c *climbed) top() []field.Element { return c.values[len(c.values)-1] }

// climb folds all sets together for as long as a fold fits all of them: the fold of the next of the radices if it does,
// else of the smallest prime.
func climb(p *poll.Poller, f field.Field, sets [][]field.Element, onlyMonomials bool, radices []int) []*climbed {
	list := make([]*climbed, len(sets))
	for s, set := range sets {
		list[s] = &climbed{tower: tower{f: f, n: len(set)}, values: [][]field.Element{set}}
	}
	for t := 0; climbOnce(p, f, list, onlyMonomials, radices[min(t, len(radices)):]); t++ {
	}
	return list
}

func climbOnce(p *poll.Poller, f field.Field, sets []*climbed, onlyMonomials bool, radices []int) bool {
	var tops [][]field.Element
	for _, c := range sets {
		tops = append(tops, c.top())
	}
	n := len(tops[0])
	primes := slices.Compact(pointset.PrimeFactors(n))
	if len(radices) > 0 && n%radices[0] == 0 {
		primes = append(radices[:1:1], primes...)
	}
	for _, r := range primes {
		for fold := range foldsOf(p, f, r, tops, onlyMonomials) {
			if foldAll(p, sets, fold) {
				return true
			}
		}
	}
	return false
}

// foldAll takes every set up by p, or none.
func foldAll(steps *poll.Poller, sets []*climbed, p fold) bool {
	values, children := make([][]field.Element, len(sets)), make([][][]int, len(sets))
	for s, c := range sets {
		var ok bool
		if values[s], children[s], ok = p.fibres(steps, c.top()); !ok {
			return false
		}
	}
	for s, c := range sets {
		c.folds = append(c.folds, p)
		c.values = append(c.values, values[s])
		c.children = append(c.children, children[s])
	}
	return true
}

// fibres groups the points by their image, in order of first appearance. It returns false unless every fibre is full.
func (p fold) fibres(steps *poll.Poller, points []field.Element) (images []field.Element, fibres [][]int, ok bool) {
	node := make(map[field.Element]int, len(points)/p.radix)
	for k, z := range points {
		steps.Steps(1)
		v := p.apply(z)
		index, seen := node[v]
		if !seen {
			if len(images) == len(points)/p.radix {
				return nil, nil, false
			}
			index = len(images)
			node[v] = index
			images = append(images, v)
			fibres = append(fibres, make([]int, 0, p.radix))
		}
		fibres[index] = append(fibres[index], k)
	}
	return images, fibres, true
}

// foldsOf yields the folds of prime degree r that may have full fibres in all sets: of one, Σ z^j = 0 for 0 < j < r.
func foldsOf(p *poll.Poller, f field.Field, r int, sets [][]field.Element, onlyMonomials bool) func(yield func(fold) bool) {
	return func(yield func(fold) bool) {
		radix := big.NewInt(int64(r))
		cosets := new(big.Int).Mod(pointset.UnitCount(f), radix).Sign() == 0 // there are r-th roots of unity
		for j := uint64(1); j <= 3 && cosets; j++ {
			cosets = j%uint64(r) == 0 || !slices.ContainsFunc(sets, func(s []field.Element) bool { return !powerSum(p, f, s, j).IsZero() })
		}
		if cosets && !yield(fold{f: f, radix: r}) || onlyMonomials {
			return
		}
		if f.Characteristic().Cmp(radix) == 0 {
			subspaces(p, f, r, sets[0], yield)
		}
	}
}

// powerSum returns Σ z^j over the points.
func powerSum(p *poll.Poller, f field.Field, points []field.Element, j uint64) field.Element {
	var s field.Element
	for _, z := range points {
		p.Steps(1)
		s = f.Add(s, field.Exp(f, z, j))
	}
	return s
}

// subspaces yields the folds z^r - c^(r-1)·z, r the characteristic, that may fit.
func subspaces(p *poll.Poller, f field.Field, r int, points []field.Element, yield func(fold) bool) {
	pointSet := setOf(p, points)
	for _, z := range points[1:] {
		c := f.Sub(z, points[0])
		if slices.ContainsFunc(points, func(z field.Element) bool {
			p.Steps(1)
			return !pointSet[f.Add(z, c)]
		}) {
			continue
		}
		b := f.Sub(field.Element{}, field.Exp(f, c, uint64(r-1)))
		if !yield(fold{f: f, radix: r, linear: b}) {
			return
		}
	}
}

func setOf(p *poll.Poller, points []field.Element) map[field.Element]bool {
	pointSet := make(map[field.Element]bool, len(points))
	for _, z := range points {
		p.Steps(1)
		pointSet[z] = true
	}
	return pointSet
}

// arrange labels the points: fibres in order of first appearance.
func (c *climbed) arrange(p *poll.Poller) *arranged {
	h := len(c.folds)
	label := make([]int, len(c.top()))
	for i := range label {
		label[i] = i
	}
	for t := h - 1; t >= 0; t-- {
		below := make([]int, len(c.values[t]))
		for node, kids := range c.children[t] {
			p.Steps(len(kids))
			for d, kid := range kids {
				below[kid] = d + c.folds[t].radix*label[node]
			}
		}
		label = below
	}
	w := &arranged{tower: c.tower, label: label, point: make([]int, len(label))}
	for k, l := range label {
		p.Steps(1)
		w.point[l] = k
	}
	degree := c.degrees()
	values := [][]field.Element{make([]field.Element, len(label))}
	for k, l := range label {
		p.Steps(1)
		values[0][l] = c.values[0][k]
	}
	for t, fold := range c.folds {
		above, below := make([]int, len(c.values[t+1])), make([]field.Element, len(c.values[t+1]))
		for node, kids := range c.children[t] {
			p.Steps(1)
			above[node] = label[kids[0]] / fold.radix
			below[above[node]] = c.values[t+1][node]
		}
		label = above
		values = append(values, below)
	}
	w.value = func(t, label int) field.Element { return values[t][label/degree[t]] }
	return w
}

// labels returns the labels of the points.
func (w *arranged) labels() Labels {
	if slices.IsSorted(w.label) { // each label is that of one point
		return Labels{}
	}
	return Labels{func(k int) int { return w.label[k] }, func(l int) int { return w.point[l] }}
}
