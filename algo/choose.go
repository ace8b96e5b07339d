package algo

import (
	"errors"
	"time"

	"volley/plan"
	"volley/sim"
)

// Auto is the name that stands for the cheapest algorithm.
const Auto = "auto"

// A Candidate is a plan that could solve a problem, and what it would cost.
type Candidate struct {
	Plan plan.Plan
	Cost sim.Cost
	Time time.Duration // in the model
}

// Candidates returns the plans of every registered algorithm that the matrix has
// the structure for, in registry order, with their costs. The errors are those of
// [Algorithm.Plans].
func Candidates(p *Problem, model sim.Model) ([]Candidate, error) {
	return candidates(registry, p, model)
}

func candidates(algorithms []Algorithm, p *Problem, model sim.Model) ([]Candidate, error) {
	var list []Candidate
	for _, a := range algorithms {
		plans, err := a.Plans(p)
		if err != nil && len(algorithms) > 1 && errors.Is(err, ErrStructure) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, q := range plans {
			cost := sim.Count(q)
			list = append(list, Candidate{q, cost, model.Time(cost)})
		}
	}
	return list, nil
}

// Choose returns, of the plans of the named algorithm, or for [Auto] of all, the
// one of least model time; ties go to the one named first in the registry. All
// processors choose alike. It returns an error for an unknown name and those of
// [Algorithm.Plans].
func Choose(name string, p *Problem, model sim.Model) (plan.Plan, error) {
	algorithms := registry
	if name != Auto {
		a, err := Lookup(name)
		if err != nil {
			return nil, err
		}
		algorithms = []Algorithm{a}
	}
	list, err := candidates(algorithms, p, model)
	if err != nil {
		return nil, err
	}
	best := list[0]
	for _, c := range list[1:] {
		if c.Time < best.Time {
			best = c
		}
	}
	return best.Plan, nil
}
