package matrix

import (
	"fmt"
	"math/big"

	"volley/field"
)

var gabidulinFamily = Family{
	Name:    "gabidulin",
	Formula: "A = Moore(ω)⁻¹·Moore(α), ω and α independent over F_base",
	Doc:     "parity of systematic Gabidulin codes, MRD; K+R <= the degree of the field over F_base",
	Takes:   []string{"base"},
	build:   func(b *builder) (Matrix, error) { return Gabidulin(b.f, b.Base, b.k, b.r) },
}

// Gabidulin returns the k×r parity part of a systematic Gabidulin code over
// F_(q^m), stored: row vectors of values of a linearised polynomial at k points
// become its values at r others, all k+r of them independent over F_q:
//
//	A = Moore(ω)⁻¹·Moore(α)
//
// The base q is as in [Moore]. With Z = gcd(k, r, m), the points ω are those of
// [MoorePoints] but for this Z, and α the same times g^(k/Z). It is an error where
// k+r > m.
func Gabidulin(f field.Field, base uint64, k, r int) (Matrix, error) {
	t, err := newFrobenius(f, base)
	if err != nil {
		return nil, err
	}
	if err := checkShape(k, r); err != nil {
		return nil, err
	}
	if int64(k)+int64(r) > int64(t.m) {
		needs, want := together(k, r, big.NewInt(int64(t.m)))
		return nil, fmt.Errorf("matrix: gabidulin over %s: %s %d points independent over F_%d, and the field has degree %d over it: want %s%s",
			f.Name(), needs, k+r, t.q, t.m, want, t.higherDegree(k+r))
	}
	z := gcd(gcd(k, r), t.m)
	inv, err := Inverse(t.moore(t.points(k, z, 0), k))
	if err != nil {
		return nil, err
	}
	product, err := Mul(inv, t.moore(t.points(r, z, k/z), k))
	if err != nil {
		return nil, err
	}
	return &gabidulin{product, t.q}, nil
}

type gabidulin struct {
	*Dense // small: K + R <= m
	q      uint64
}

func (m *gabidulin) ID() string   { return fmt.Sprintf("gabidulin(%d)", m.q) }
func (m *gabidulin) base() uint64 { return m.q }
