// Package crossings compares the plans for one K over the sizes of packets: which one is the cheapest from where on.
package crossings

import (
	"math"

	"volley/field"
	"volley/internal/comparison"
)

// A Crossing is where another plan becomes the cheapest: from a size of packets on.
type Crossing struct {
	Plan    int     `json:"plan"` // its index
	Bytes   float64 `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// Seconds returns the time that the plan takes on packets of so many bytes.
func Seconds(c *comparison.Comparison, p comparison.PlanCost, bytes float64) float64 {
	m := c.Model
	m.Bytes = field.PackingOf(c.Field).Symbols(int64(math.Round(bytes))) * int64(m.SymbolBytes)
	return m.Time(p.Cost).Seconds()
}

// Sizes returns sizes of packets, evenly spread over a logarithmic axis.
func Sizes(smallest, largest int64) []float64 {
	const steps = 96
	sizes := make([]float64, steps+1)
	for i := range sizes {
		sizes[i] = float64(smallest) * math.Pow(float64(largest)/float64(smallest), float64(i)/steps)
	}
	return sizes
}

// Find returns the sizes at which another plan becomes the cheapest, to a byte or 0.05 %.
func Find(c *comparison.Comparison, plans []comparison.PlanCost, sizes []float64) []Crossing {
	var list []Crossing
	var search func(a, b float64)
	search = func(a, b float64) {
		switch {
		case cheapest(c, plans, a) == cheapest(c, plans, b):
		case b-a <= 1 || b/a < 1.0005:
			best := cheapest(c, plans, b)
			list = append(list, Crossing{best, b, Seconds(c, plans[best], b)})
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

// cheapest returns the index of the first of the plans that take the least time on packets of so many bytes.
func cheapest(c *comparison.Comparison, plans []comparison.PlanCost, bytes float64) int {
	best := 0
	for i, p := range plans {
		if Seconds(c, p, bytes) < Seconds(c, plans[best], bytes) {
			best = i
		}
	}
	return best
}
