package comparison

import (
	"math"

	"volley/field"
)

// A Crossing is where another plan becomes the cheapest: from a size of packets on.
type Crossing struct {
	Plan    int     `json:"plan"` // its index
	Bytes   float64 `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// Seconds returns the time that the plan takes on packets of so many bytes.
func (c *Comparison) Seconds(p Plan, bytes float64) float64 {
	m := c.Model
	m.Bytes = field.PackingOf(c.Field).Symbols(int64(math.Round(bytes))) * int64(m.SymbolBytes)
	return m.Time(p.Cost).Seconds()
}

// Sizes returns sizes of packets, evenly spread over a logarithmic axis.
func Sizes(from, to int64) []float64 {
	const steps = 96
	sizes := make([]float64, steps+1)
	for i := range sizes {
		sizes[i] = float64(from) * math.Pow(float64(to)/float64(from), float64(i)/steps)
	}
	return sizes
}

// Crossings returns the sizes at which another plan becomes the cheapest, to a byte or 0.05 %.
func (c *Comparison) Crossings(plans []Plan, sizes []float64) []Crossing {
	var list []Crossing
	var search func(a, b float64)
	search = func(a, b float64) {
		switch {
		case c.Cheapest(plans, a) == c.Cheapest(plans, b):
		case b-a <= 1 || b/a < 1.0005:
			best := c.Cheapest(plans, b)
			list = append(list, Crossing{best, b, c.Seconds(plans[best], b)})
		default:
			middle := math.Sqrt(a * b)
			search(a, middle)
			search(middle, b)
		}
	}
	for i := range len(sizes) - 1 {
		search(sizes[i], sizes[i+1])
	}
	return list
}

// Cheapest returns the index of the first of the plans that take the least time on packets of so many bytes.
func (c *Comparison) Cheapest(plans []Plan, bytes float64) int {
	best := 0
	for i, p := range plans {
		if c.Seconds(p, bytes) < c.Seconds(plans[best], bytes) {
			best = i
		}
	}
	return best
}
