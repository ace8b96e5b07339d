package matrix

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"volley/field"
	"volley/internal/poll"
	"volley/internal/printable"
)

// A fold is the polynomial map π(z) = z^r + b·z, r a prime. It takes the r points of a full fibre to one:
//
//	b = 0                            cosets of the r-th roots of unity
//	b = -c^(r-1), characteristic r   cosets of the multiples of c: subspaces
type fold struct {
	f      field.Field
	radix  int
	linear field.Element // b
}

func (p fold) apply(z field.Element) field.Element {
	v := field.Exp(p.f, z, uint64(p.radix))
	if p.linear.IsZero() {
		return v
	}
	return p.f.Add(v, p.f.Mul(p.linear, z))
}

// derivative returns π'(z).
func (p fold) derivative(z field.Element) field.Element {
	r := new(big.Int).Mod(big.NewInt(int64(p.radix)), p.f.Characteristic())
	v := p.f.Mul(field.Code(r.Uint64()), field.Exp(p.f, z, uint64(p.radix-1)))
	return p.f.Add(v, p.linear)
}

func (p fold) String() string {
	if p.linear.IsZero() {
		return fmt.Sprintf("z^%d", p.radix)
	}
	return fmt.Sprintf("z^%d + %v·z", p.radix, p.linear)
}

// A tower arranges K = M·Z points as M full fibres of a composition of folds
// Π = π_(h-1)·…·π_0 of degree Z = r_0 … r_(h-1). A point is named by a label
//
//	j_0 + j_1·r_0 + j_2·r_0·r_1 + … + i·Z
//
// and points whose labels differ in j_t only go to one point under π_t … π_0.
type tower struct {
	f     field.Field
	n     int
	folds []fold

	// value returns π_(t-1)(…π_0(point)…) for the point of a label; it does not depend on the digits j_0 … j_(t-1).
	value func(t, label int) field.Element
}

// degrees returns the degrees of the compositions of the first 0, 1, … folds.
func (w *tower) degrees() []int {
	list := []int{1}
	for t, p := range w.folds {
		list = append(list, list[t]*p.radix)
	}
	return list
}

// z returns Z.
func (w *tower) z() int {
	z := 1
	for _, p := range w.folds {
		z *= p.radix
	}
	return z
}

// radices returns the degrees of the folds, the first first.
func (w *tower) radices() (list []int) {
	for _, p := range w.folds {
		list = append(list, p.radix)
	}
	return list
}

// additive reports whether every fold is that of a subspace.
func (w *tower) additive() bool {
	return !slices.ContainsFunc(w.folds, func(p fold) bool { return p.linear.IsZero() })
}

// structured reports whether there is a fold, or nothing to fold.
func (w *tower) structured() bool { return len(w.folds) > 0 || w.n == 1 }

// layers returns the factorisation of the matrix of the values of a polynomial at
// the points: row k, with digits as a label, is for the coefficient of
//
//	z^j_0 · π_0(z)^j_1 · (π_1·π_0)(z)^j_2 · … · Π(z)^i
//
// and column k is the value at the point with label k. Where the folds are monomials, that is the coefficient of z^k: a
// Vandermonde matrix (paper, section "Generalization"; its stages are those of its section "Computing a DFT Matrix"
// with the powers of the representatives merged in). For other folds: the additive FFT of Lin, Chung and Han (FOCS
// 2014), and the same idea for any tower. Of a fold z^2 + c·z what it folds is divided by c, as there: two points then
// have coefficients v and v+1, which a butterfly makes by one product.
func (w *tower) layers() []Layer {
	var list []Layer
	z := w.z()
	stage := func(name string, t, weight, radix int) {
		if radix < 2 {
			return
		}
		part := Partition{w.n, []digit{{weight, radix}}}
		unit := field.One
		if radix == 2 && t < len(w.folds) && !w.folds[t].linear.IsZero() {
			unit = w.f.Inv(w.folds[t].linear)
		}
		value := perLabel(w.n/weight, func(_ *poll.Poller, i int) field.Element { return w.f.Mul(unit, w.value(t, i*weight)) })
		entry := func(group, i, j int) field.Element {
			if i == 0 {
				return field.One
			}
			return value(nil, part.Label(group, j)/weight)
		}
		if radix > 2 {
			powers := perLabel(w.n/weight, func(_ *poll.Poller, i int) []field.Element {
				list, v := []field.Element{field.One}, value(nil, i)
				for len(list) < radix {
					list = append(list, w.f.Mul(list[len(list)-1], v))
				}
				return list
			})
			entry = func(group, i, j int) field.Element { return powers(nil, part.Label(group, j)/weight)[i] }
		}
		list = append(list, Layer{Name: name, Partition: part, f: w.f, entry: entry, sharedWeight: weight})
	}
	stage("draw", len(w.folds), z, w.n/z)
	for t := len(w.folds) - 1; t >= 0; t-- {
		z /= w.folds[t].radix
		stage("loose", t, z, w.folds[t].radix)
	}
	return list
}

// eval returns Π(z).
func (w *tower) eval(z field.Element) field.Element {
	for _, p := range w.folds {
		z = p.apply(z)
	}
	return z
}

// vanishing returns P(z), P the monic polynomial with the points as its roots.
func (w *tower) vanishing(z field.Element) field.Element {
	v := w.eval(z)
	r := field.One
	for i := 0; i < w.n; i += w.z() {
		r = w.f.Mul(r, w.f.Sub(v, w.value(len(w.folds), i)))
	}
	return r
}

// derivative returns P'(z) at the point with that label.
func (w *tower) derivative(label int) field.Element {
	r := field.One
	for t, p := range w.folds {
		r = w.f.Mul(r, p.derivative(w.value(t, label)))
	}
	z := w.z()
	top := w.value(len(w.folds), label)
	for i := 0; i < w.n; i += z {
		if i/z != label/z {
			r = w.f.Mul(r, w.f.Sub(top, w.value(len(w.folds), i)))
		}
	}
	return r
}

// String says what was found, for people.
func (w *tower) String() string {
	z := w.z()
	if len(w.folds) == 0 {
		return "no structure"
	}
	monomial := true
	var folds []string
	for _, p := range w.folds {
		monomial = monomial && p.linear.IsZero()
		folds = append(folds, p.String())
	}
	cosets := fmt.Sprintf("%d cosets of", w.n/z)
	if w.n == z {
		cosets = "a coset of"
	}
	switch {
	case monomial:
		return fmt.Sprintf("%s the multiplicative subgroup of order %d", cosets, z)
	case w.additive():
		return fmt.Sprintf("%s an additive subgroup of order %d", cosets, z)
	}
	return fmt.Sprintf("%s of a composition of degree %d: %s", printable.Count(w.n/z, "full fibre"), z, strings.Join(folds, ", "))
}

// cosetTower returns the tower of points on cosets in the order of labels, of monomial folds of these prime degrees.
func cosetTower(f field.Field, n int, radices []int, point func(label int) field.Element) *tower {
	w := &tower{f: f, n: n}
	for _, r := range radices {
		w.folds = append(w.folds, fold{f: f, radix: r})
	}
	degree := w.degrees()
	w.value = func(t, label int) field.Element { return field.Exp(f, point(label), uint64(degree[t])) }
	return w
}
