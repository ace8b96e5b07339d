package matrix

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"volley/field"
)

// NewPoints returns a copy of the given points, or an error where one is no element of the field or there twice.
func NewPoints(f field.Field, points []field.Element) (Points, error) {
	if err := checkSize("points", len(points)); err != nil {
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
	return listed(f, slices.Clone(points)), nil
}

// listed returns points that are stored. Their ID is "points:" and their SHA-256, in hexadecimal.
func listed(f field.Field, points []field.Element) *sequence {
	h := sha256.New()
	symbol := make([]byte, f.SymbolBytes())
	for _, e := range points {
		field.PutSymbol(f, symbol, e)
		h.Write(symbol)
	}
	return &sequence{f, 0, len(points), wholeID(fmt.Sprintf("points:%x", h.Sum(nil)), len(points)), func(k int) field.Element { return points[k] }}
}
