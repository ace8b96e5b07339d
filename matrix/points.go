package matrix

import (
	"fmt"
	"math/big"
	"slices"

	"volley/field"
	"volley/internal/pointset"
)

// Points is a sequence of distinct field elements, safe for concurrent use: where polynomial codes evaluate.
type Points interface {
	// Field returns the field of the points.
	Field() field.Field

	// Len returns the number of points.
	Len() int

	// At returns point k; the same one at every call. It panics when k is outside [0, Len()).
	At(k int) field.Element

	// ID names the points: two sequences over the same field with equal lengths and IDs are equal.
	ID() string
}

// CosetPoints returns n points on cosets of a multiplicative subgroup, on demand. With Z = gcd(n, q-1) and n = M·Z, the
// points of one coset are next to each other, in the order that a butterfly without reordering leaves them in:
//
//	point j + Z·i = g^i·β^rev(j), β = g^((q-1)/Z), 0 <= i < M, 0 <= j < Z
//
// where rev reverses digits over the ascending prime radices r_0 <= r_1 <= … <= r_(H-1)
// of Z: j = j_0 + j_1·r_0 + j_2·r_0·r_1 + … has
//
//	rev(j) = j_(H-1) + r_(H-1)·j_(H-2) + r_(H-1)·r_(H-2)·j_(H-3) + …
//
// It is an error where M > (q-1)/Z, that is n > q-1: there are no more cosets.
func CosetPoints(f field.Field, n int) (Points, error) { return ShiftedCosetPoints(f, n, 0) }

// ShiftedCosetPoints returns the points of [CosetPoints] times g^first: n points on the M cosets from number first on.
// It is an error where the field has fewer than first+M cosets of Z points, or n > q-1.
func ShiftedCosetPoints(f field.Field, n, first int) (Points, error) {
	if err := pointset.CheckSize("points", n); err != nil {
		return nil, err
	}
	if err := pointset.CheckElements("coset points", f, "K", int64(n), 0, true); err != nil {
		return nil, err
	}
	z := pointset.CosetSize(f, n)
	cosets := pointset.UnitCount(f)
	cosets.Quo(cosets, big.NewInt(int64(z)))
	m := n / z
	if first < 0 || cosets.Cmp(big.NewInt(int64(first)+int64(m))) < 0 {
		return nil, fmt.Errorf("matrix: coset points over %s: no cosets %d to %d of %d elements: the field has %v", f.Name(), first, first+m-1, z, cosets)
	}
	return pointset.CosetsFrom(f, n, z, first, nil), nil
}

// NewPoints returns a copy of the given points, or an error where one is no element of the field or there twice.
func NewPoints(f field.Field, points []field.Element) (Points, error) {
	if err := pointset.CheckSize("points", len(points)); err != nil {
		return nil, err
	}
	seen := make(map[field.Element]int, len(points))
	for k, e := range points {
		if !field.Contains(f, e) {
			return nil, fmt.Errorf("matrix: point %d = %v is outside the field %s", k, e, f.Name())
		}
		if first, ok := seen[e]; ok {
			return nil, fmt.Errorf("matrix: the points %d and %d are both %v: want distinct points", first, k, e)
		}
		seen[e] = k
	}
	return pointset.Listed(f, slices.Clone(points)), nil
}
