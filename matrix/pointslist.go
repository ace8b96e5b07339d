package matrix

import (
	"fmt"

	"volley/field"
)

// NewPoints returns the given points, stored. It is an error where one is no
// element of the field, or where two are equal.
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
	p := &filePoints{f: f, points: append([]field.Element(nil), points...)}
	p.id = p.hash()
	return p, nil
}
