package algo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"volley/internal/poll"
	"volley/plan"
	"volley/sim"
)

// A Trial is how a plan was chosen after runs. As JSON it goes to ranks that have not chosen, see [Trial.Find].
type Trial struct {
	Plan  plan.Plan `json:"-"`
	Name  string    // see [plan.Info.Name]
	Ports int       // of the plan
	Slots int       // as [plan.MemorySlots] counts them
	Over  bool      // later runs change nothing
	Why   string    // empty: by the model alone
}

func trialOf(c Candidate, over bool, why string) Trial {
	info := c.Plan.Info()
	return Trial{c.Plan, info.Name(), info.Ports, c.Cost.Slots, over, why}
}

// Find returns the trial of the same problem at another rank, with its plan: to make one costs little, and to choose it
// takes all plans. It returns an error where the name is of no plan.
func (x Trial) Find(p *Problem) (Trial, error) {
	a, err := Lookup(x.Name)
	if err != nil {
		return x, err
	}
	ports, err := Ports(p.Processors(), x.Ports)
	if err != nil || ports != x.Ports || x.Slots < 1 {
		return x, fmt.Errorf("algo: no plan of %d processors has %d ports and %d slots", p.Processors(), x.Ports, x.Slots)
	}
	plans, err := a.Plans(p.with(ports))
	if err == nil && (len(plans) != 1 || plans[0].Info().Name() != x.Name) {
		err = fmt.Errorf("algo: %d plans have the name %s: want one", len(plans), x.Name)
	}
	if err != nil {
		return x, err
	}
	x.Plan = plans[0]
	return x, nil
}

// MostTried is up to how many plans are tried, the first included.
const MostTried = 3

const (
	refuted   = 1.5 // times the model, or a part of it: the error of the network is more than it says
	farthest  = 4   // times which L, o and G may be off then, unless a plan took more
	steps     = 2   // of each, up and down
	alike     = 1.1 // times as far off, a network explains the runs as well
	worthIt   = 1.1 // times as fast, a plan is worth a try
	mostTries = 256 // processors: the plans of more take long to count
)

// tried is a plan that was run.
type tried struct {
	Candidate
	took time.Duration
}

// ChooseAfter is [Choose] after runs in which the plans that it had chosen took so long, in order: that of no runs, that
// of the first, and so on. Where a plan took more than 1.5 times what the model says, or less than a part of this, the
// model is wrong in a way that one time does not tell. So, as where the error of the network allows it, the plan is
// tried that promises most by any network by which those before take about what they took. At last the fastest stays.
// All processors choose alike.
func ChooseAfter(name string, p *Problem, model sim.Model, took ...time.Duration) (_ Trial, err error) {
	defer poll.Catch(&err)
	algorithms, err := named(name)
	if err != nil {
		return Trial{}, err
	}
	first, err := chooseAmong(algorithms, p, model)
	if err != nil {
		return Trial{}, err
	}
	never := model.Paper() || p.Processors() > mostTries
	if len(took) == 0 {
		return trialOf(first, never, ""), nil
	}
	runs := []tried{{first, took[0]}}
	var list []Candidate
	for {
		next := Candidate{}
		if factor := mayBeOff(model, runs); !never && len(runs) < MostTried && factor > 1 {
			if list == nil {
				if list, err = within(algorithms, p, model); err != nil {
					return Trial{}, err
				}
			}
			next = promising(modelsWithin(model, factor, steps), list, runs)
		}
		switch {
		case next.Plan == nil:
			best := slices.MinFunc(runs, func(a, b tried) int { return cmp.Compare(a.took, b.took) })
			return trialOf(best.Candidate, true, why(runs, kept, best.Candidate)), nil
		case len(runs) == len(took):
			return trialOf(next, false, why(runs, "tried", next)), nil
		}
		runs = append(runs, tried{next, took[len(runs)]})
	}
}

// within returns the plans that keep the limits.
func within(algorithms []Algorithm, p *Problem, model sim.Model) ([]Candidate, error) {
	list, _ := CandidatesAmong(algorithms, p, model)
	return slices.DeleteFunc(list, func(c Candidate) bool { return c.Broken != "" }), p.Ended()
}

// mayBeOff returns by which factor L, o and G of the model may be off, after runs.
func mayBeOff(model sim.Model, runs []tried) float64 {
	factor := 1 + model.Network.Error
	for _, r := range runs {
		if off := math.Exp(distance(r.took, r.Time)); off > refuted {
			factor = max(factor, farthest, off)
		}
	}
	return factor
}

// distance returns how far two times are apart, as the logarithm of their ratio.
func distance(a, b time.Duration) float64 {
	return math.Abs(math.Log(float64(a+1) / float64(b+1))) // ns; none is 0
}

// promising returns the plan, not run yet, that may be faster than the fastest by most, if any is worth it: by a model
// that explains the runs about as well as any, and by which it is the best plan.
func promising(models []sim.Model, list []Candidate, runs []tried) (next Candidate) {
	fastest := time.Duration(math.MaxInt64)
	misfit, least := make([]float64, len(models)), math.Inf(1)
	for _, r := range runs {
		fastest = min(fastest, r.took)
	}
	for i := range models {
		models[i], misfit[i] = fitted(models[i], runs)
		least = min(least, misfit[i])
	}
	most := worthIt
	for i, m := range models {
		if misfit[i] > least+math.Log(alike) {
			continue
		}
		best := slices.MinFunc(list, func(a, b Candidate) int { return cmp.Compare(m.Time(a.Cost), m.Time(b.Cost)) })
		gain := float64(fastest) / float64(m.Time(best.Cost)+1)
		if gain > most && !slices.ContainsFunc(runs, func(r tried) bool { return samePlan(r.Candidate, best) }) {
			most, next = gain, best
		}
	}
	return next
}

// fitted returns the model that is so many times as slow that it explains the runs best, and how far it is off, as the
// logarithm.
func fitted(m sim.Model, runs []tried) (_ sim.Model, misfit float64) {
	slower := 0.0
	for _, r := range runs {
		slower += math.Log(float64(r.took+1)/float64(m.Time(r.Cost)+1)) / float64(len(runs))
	}
	times := math.Exp(slower)
	m.Network = m.Network.Scaled(times, times, times)
	for _, r := range runs {
		misfit = max(misfit, distance(r.took, m.Time(r.Cost)))
	}
	return m, misfit
}

// samePlan reports whether two plans for a problem are one.
func samePlan(a, b Candidate) bool {
	return a.Plan.Info().Name() == b.Plan.Info().Name() && a.Plan.Info().Ports == b.Plan.Info().Ports
}

const kept = "kept"

// why says how a plan was chosen, unless that is by the model alone.
func why(runs []tried, done string, c Candidate) string {
	if len(runs) == 1 && done == kept {
		return ""
	}
	text := fmt.Sprintf("the plan %s is %s:", c.Plan.Info().Name(), done)
	for _, r := range runs {
		text += fmt.Sprintf(" %s took %v, by the model %v;", r.Plan.Info().Name(), rough(r.took), rough(r.Time))
	}
	return text[:len(text)-1]
}

// rough returns a time in three digits.
func rough(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
