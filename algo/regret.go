package algo

import (
	"math"

	"volley/sim"
)

// modelsWithin returns the models whose L, o and G are up to a factor off, either way, in so many steps.
func modelsWithin(m sim.Model, factor float64, steps int) []sim.Model {
	var factors []float64
	for i := -steps; i <= steps; i++ {
		factors = append(factors, math.Pow(factor, float64(i)/float64(steps)))
	}
	var list []sim.Model
	for _, latency := range factors {
		for _, overhead := range factors {
			for _, gap := range factors {
				other := m
				other.Network = m.Network.Scaled(latency, overhead, gap)
				list = append(list, other)
			}
		}
	}
	return list
}

// regrets returns the most that each plan takes by one of the models, relative to the best of the plans by it.
func regrets(models []sim.Model, plans []sim.Cost) []float64 {
	worst, times := make([]float64, len(plans)), make([]float64, len(plans))
	for _, m := range models {
		best := math.Inf(1)
		for i, c := range plans {
			times[i] = float64(m.Time(c)) + 1 // ns; none takes 0
			best = min(best, times[i])
		}
		for i, t := range times {
			worst[i] = max(worst[i], t/best)
		}
	}
	return worst
}
