package matrix

import (
	"crypto/sha256"
	"fmt"

	"volley/field"
)

// NewPoints returns a copy of the given points. It returns an error where a point is no
// element of the field, or where two points are equal.
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
	p := &listedPoints{f: f, points: append([]field.Element(nil), points...)}
	p.id = p.hash()
	return p, nil
}

// listedPoints are points that are stored.
type listedPoints struct {
	f      field.Field
	points []field.Element
	id     string
}

func (p *listedPoints) Field() field.Field { return p.f }
func (p *listedPoints) Len() int           { return len(p.points) }
func (p *listedPoints) ID() string         { return p.id }

func (p *listedPoints) At(k int) field.Element {
	checkPoint(k, len(p.points))
	return p.points[k]
}

// hash returns "points:" and the SHA-256, in hexadecimal, of the points.
func (p *listedPoints) hash() string {
	h := sha256.New()
	symbol := make([]byte, p.f.SymbolBytes())
	for _, e := range p.points {
		field.PutSymbol(p.f, symbol, e)
		h.Write(symbol)
	}
	return fmt.Sprintf("points:%x", h.Sum(nil))
}
