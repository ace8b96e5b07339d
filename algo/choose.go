package algo

import (
	"fmt"
	"time"

	"volley/matrix"
	"volley/plan"
	"volley/sim"
)

// Auto is the name that stands for the cheapest algorithm.
const Auto = "auto"

// A Candidate is an algorithm that could compute a matrix, and what it would
// cost.
type Candidate struct {
	Algorithm Algorithm
	Plan      plan.Plan
	Cost      sim.Cost
	Time      time.Duration // in the model
}

// Candidates returns every registered algorithm with its cost for the matrix
// and the ports, in registry order. The errors are those of
// [Algorithm.Compile].
func Candidates(m matrix.Matrix, ports int, model sim.Model) ([]Candidate, error) {
	var list []Candidate
	for _, a := range registry {
		p, err := a.Compile(m, ports)
		if err != nil {
			return nil, err
		}
		cost := sim.Count(p)
		list = append(list, Candidate{a, p, cost, model.Time(cost)})
	}
	return list, nil
}

// Choose returns the plan of the named algorithm, or for [Auto] the one of least
// model time; ties go to the one named first in the registry. All processors
// choose alike. It returns an error for an unknown name and those of
// [Algorithm.Compile].
func Choose(name string, m matrix.Matrix, ports int, model sim.Model) (plan.Plan, error) {
	if name != Auto {
		a, err := Lookup(name)
		if err != nil {
			return nil, err
		}
		return a.Compile(m, ports)
	}
	list, err := Candidates(m, ports, model)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("algo: nothing registered")
	}
	best := list[0]
	for _, c := range list[1:] {
		if c.Time < best.Time {
			best = c
		}
	}
	return best.Plan, nil
}
