package algo

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"volley/algo/schedule"
	"volley/internal/poll"
	"volley/plan"
	"volley/sim"
)

// Auto is the name that stands for the cheapest algorithm.
const Auto = "auto"

// A Candidate is a plan that could solve a problem, and what it would cost.
type Candidate struct {
	Plan   plan.Plan
	Cost   sim.Cost
	Memory int           // packets that a processor holds, if it forgets none
	Time   time.Duration // in the model
	Broken string        // the limit that it breaks; empty: none
}

// A Rejection is an algorithm that has no plan for a problem, and why.
type Rejection struct {
	Algorithm string
	Reason    error
}

// Candidates returns the plans of every algorithm of [Planned] that can solve the problem, in registry order, with their
// costs, those that break a limit included; and the algorithms whose condition the matrix does not meet, and why. Where
// the planner chooses the ports, plans are left out that another one beats in rounds, messages, packets and
// multiply-adds. Where the problem's context ends they are not all.
func Candidates(p *Problem, model sim.Model) ([]Candidate, []Rejection) {
	return CandidatesAmong(Planned(), p, model)
}

// CandidatesAmong is [Candidates] for a part of the registry; of one algorithm it is a rejection whatever the reason.
func CandidatesAmong(algorithms []Algorithm, p *Problem, model sim.Model) (list []Candidate, rejected []Rejection) {
	var ended error // which the caller can ask the problem for
	defer poll.Catch(&ended)
	p = p.forModel(model)
	counts, steps := p.portsToTry(), poll.New(p.Context)
	beaten := func(c sim.Cost) bool { // by a plan before it, whatever is still to be counted
		steps.Steps(1 + len(list))
		return p.Ports == 0 && slices.ContainsFunc(list, func(d Candidate) bool { return d.Broken == "" && beats(d.Cost, c) })
	}
	for _, a := range algorithms {
		for i, ports := range counts {
			plans, err := a.Plans(p.withPorts(ports))
			if p.Ended() != nil {
				return list, rejected
			}
			if err != nil && i == 0 && (len(algorithms) == 1 || errors.As(err, new(schedule.Unmet))) {
				rejected = append(rejected, Rejection{a.Name, err})
			}
			for _, q := range plans {
				if beaten(leastCost(q)) {
					continue
				}
				if cost, complete := model.CountUntil(poll.WithContext(p.Context, q), beaten); complete {
					list = append(list, p.candidate(q, cost, model))
				}
			}
		}
	}
	if p.Ports == 0 {
		list = unbeaten(list)
	}
	return list, rejected
}

// unbeaten returns the candidates that no other one beats in all that counts on a network; of equal ones the first.
func unbeaten(list []Candidate) []Candidate {
	beats := func(a, b Candidate) bool { return beats(a.Cost, b.Cost) && (a.Broken == "" || b.Broken != "") }
	var best []Candidate
	for i, c := range list {
		if !slices.ContainsFunc(list[:i], func(d Candidate) bool { return beats(d, c) }) &&
			!slices.ContainsFunc(list[i+1:], func(d Candidate) bool { return beats(d, c) && !beats(c, d) }) {
			best = append(best, c)
		}
	}
	return best
}

// leastCost returns what is known of the cost of a plan before it is counted.
func leastCost(q plan.Plan) sim.Cost {
	if c, known := schedule.Least(q); known {
		return c
	}
	return sim.Cost{C1: q.Info().Rounds()}
}

// beats reports whether a is no more than b in all that counts on a network.
func beats(a, b sim.Cost) bool {
	return a.C1 <= b.C1 && a.Messages() <= b.Messages() && a.PacketC3() <= b.PacketC3() && a.NodePackets() <= b.NodePackets()
}

// cutsPackets is [Candidate].Broken of a plan that cuts packets that are to stay whole.
const cutsPackets = "cuts packets"

// Evaluate returns the costs of a plan for the problem.
func (p *Problem) Evaluate(q plan.Plan, model sim.Model) Candidate {
	derived := *p
	derived.Context = nil
	return derived.candidate(q, model.Count(q), model)
}

func (p *Problem) candidate(q plan.Plan, cost sim.Cost, model sim.Model) Candidate {
	c := Candidate{Plan: q, Cost: cost, Time: model.Time(cost)}
	pieces := c.Cost.Pieces
	c.Memory = (c.Cost.Slots + pieces - 1) / pieces
	l := p.Limits
	uncarried := p.carry(q)
	switch limit := p.MostRounds(); {
	case uncarried != nil:
		c.Broken = uncarried.Error()
	case limit >= 0 && c.Cost.C1 > limit:
		c.Broken = fmt.Sprintf("%d rounds, at most %d", c.Cost.C1, limit)
	case l.Memory > 0 && c.Memory > l.Memory:
		c.Broken = fmt.Sprintf("%d packets held, at most %d", c.Memory, l.Memory)
	case p.cuts(q):
		c.Broken = cutsPackets
	case l.Compute > 0 && c.Cost.PacketC3() > l.Compute:
		c.Broken = fmt.Sprintf("%d multiply-adds, at most %d", c.Cost.PacketC3(), l.Compute)
	}
	return c
}

// minds reports whether memory or the work of coding matter. Else no baseline beats the universal algorithm, which has the
// fewest rounds and no more packets.
func (p *Problem) minds(model sim.Model) bool {
	free := p.Ports == 0 && model.Network.Gap == 0
	return model.Gamma > 0 && !free || p.Limits.Memory > 0 || p.Limits.Compute > 0
}

// A LimitError says that every plan there is breaks a limit, and which limits would do: each of them alone is the least
// of any plan that keeps the others, and -1 where no plan does.
type LimitError struct {
	Limits       Limits
	WholePackets bool // packets, which every plan cuts
	RoundsOver   int
	Memory       int
	Compute      int
}

func (e *LimitError) Error() string {
	if e.WholePackets {
		return "algo: no plan keeps packets whole: let them be cut, or take another algorithm"
	}
	s := "algo: no plan keeps the limits"
	join := ": want "
	add := func(limit, least int, quantity string) {
		if least > limit {
			s += fmt.Sprintf("%s%d or more %s", join, least, quantity)
			join = ", or "
		}
	}
	if excess := e.Limits.Rounds.Excess(); excess >= 0 {
		add(excess, e.RoundsOver, "rounds over the fewest")
	}
	if e.Limits.Memory > 0 {
		add(e.Limits.Memory, e.Memory, "packets of memory")
	}
	if e.Limits.Compute > 0 {
		add(e.Limits.Compute, e.Compute, "multiply-adds per symbol")
	}
	return s
}

// limitError finds the limits that would do.
func (p *Problem) limitError(list []Candidate) *LimitError {
	e := &LimitError{Limits: p.Limits, WholePackets: true, RoundsOver: -1, Memory: -1, Compute: -1}
	fewest := p.fewest()
	limit := p.MostRounds()
	for _, c := range list {
		if p.cuts(c.Plan) {
			continue
		}
		e.WholePackets = false
		compute := c.Cost.PacketC3()
		excess := c.Cost.C1 - fewest
		rounds := limit < 0 || c.Cost.C1 <= limit
		memory := p.Limits.Memory == 0 || c.Memory <= p.Limits.Memory
		coding := p.Limits.Compute == 0 || compute <= p.Limits.Compute
		if memory && coding {
			e.RoundsOver = least(e.RoundsOver, excess)
		}
		if rounds && coding {
			e.Memory = least(e.Memory, c.Memory)
		}
		if rounds && memory {
			e.Compute = least(e.Compute, compute)
		}
	}
	return e
}

func least(a, b int) int {
	if a < 0 {
		return b
	}
	return min(a, b)
}

// Choose returns, of the plans of the named algorithm, or for [Auto] of all, the one of least model time that keeps the
// limits; ties go to fewer multiply-adds, then to less memory, then to more ports and the one named first in the
// registry. All processors choose alike. It returns an error for an unknown name, that of [Algorithm.Plans], a
// *[LimitError] where no plan keeps the limits, and one that wraps that of [Problem].Carry where no plan is carried.
func Choose(name string, p *Problem, model sim.Model) (plan.Plan, error) {
	if name == Auto {
		return ChooseAmong(Planned(), p, model)
	}
	a, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	return ChooseAmong([]Algorithm{a}, p, model)
}

// ChooseAmong is [Choose] for a part of the registry, in its order: one algorithm, or the universal one and others.
func ChooseAmong(algorithms []Algorithm, p *Problem, model sim.Model) (chosen plan.Plan, err error) {
	defer poll.Catch(&err)
	p = p.forModel(model)
	if p.inMemory && len(algorithms) > 1 && p.Limits == (Limits{}) {
		p.WholePackets = true // pieces are as much arithmetic, in more and shorter parts
	}
	c := &chooser{problem: p, model: model, known: math.MaxInt64}
	p.hopeless = c.hopeless
	if len(algorithms) > 1 && !p.minds(model) && !p.sparse() {
		algorithms = slices.DeleteFunc(slices.Clone(algorithms), func(a Algorithm) bool { return a.Baseline })
	}
	reason := c.list(algorithms)
	c.count()
	switch {
	case c.least.Plan != nil:
		return c.least.Plan, nil
	case len(c.broken) > 0:
		return nil, p.limitError(c.broken)
	}
	return nil, reason
}

// A chooser chooses a plan for a problem: it lists plans, counts what they cost, those first that promise most, and
// leaves out those that promise too little.
type chooser struct {
	problem *Problem
	model   sim.Model
	options []*option
	looked  int           // options when one was counted last, while they are listed
	known   time.Duration // that a plan is known to take then
	least   counted       // of the counted ones the one of least time
	broken  []Candidate
}

// An option is a plan, with what it costs at least.
type option struct {
	plan.Plan
	least sim.Cost
	floor time.Duration // the time of that
	order int
	cost  *sim.Cost // once it is counted
}

// counted is a plan that keeps the limits.
type counted struct {
	Candidate
	order int // of the option
}

func byFloor(a, b *option) int { return cmp.Compare(a.floor, b.floor) }

// list lists the plans that the transport carries. Reason is why there is no plan, if there is none.
func (c *chooser) list(algorithms []Algorithm) (reason error) {
	var reasons []error
	var uncarried error // why the first plan that is not carried is not
	for _, ports := range c.problem.portsToTry() {
		p := c.problem.withPorts(ports)
		reasons = nil // are the same for all
		for _, a := range algorithms {
			plans, err := a.Plans(p)
			if err != nil {
				reasons = append(reasons, err)
			}
			for _, q := range plans {
				poll.Must(p.Ended())
				if err := p.carry(q); err != nil {
					uncarried = cmp.Or(uncarried, fmt.Errorf("algo: the transport cannot carry the plan %s: %w", q.Info().Name(), err))
					continue
				}
				if p.cuts(q) {
					c.broken = append(c.broken, Candidate{Plan: q, Broken: cutsPackets})
					continue
				}
				c.options = append(c.options, c.option(q))
			}
			poll.Must(p.Ended())
		}
	}
	return cmp.Or(uncarried, errors.Join(reasons...))
}

// hopeless reports, for a search that takes long, whether a plan of such a cost takes longer than one that is listed. The
// one that promises most so far is counted for it.
func (c *chooser) hopeless(cost sim.Cost) bool {
	if c.looked < len(c.options) {
		c.looked = len(c.options)
		o := slices.MinFunc(c.options, byFloor)
		if o.cost == nil {
			cost := c.model.Count(poll.WithContext(c.problem.Context, o.Plan))
			o.cost = &cost
		}
		if d := c.problem.candidate(o.Plan, *o.cost, c.model); d.Broken == "" {
			c.known = min(c.known, d.Time)
		}
	}
	return c.model.Time(cost) >= c.known
}

// option returns what is known of a plan before it is counted.
func (c *chooser) option(q plan.Plan) *option {
	p := c.problem
	o := &option{q, leastCost(q), math.MaxInt64, len(c.options), nil}
	_, known := schedule.Least(q)
	if !known && p.Matrix != nil && !p.Square() {
		sample := []int{0, p.Matrix.Rows() / 2} // sources, and a sink
		if p.Separate {
			sample = append(sample, p.Matrix.Rows())
		}
		o.least, known = sim.AtLeast(poll.WithContext(p.Context, q), sample...), true
	}
	if known {
		o.floor = c.model.Time(o.least)
	}
	return o
}

// count counts plans to the end, those that promise most first, but those that turn out to be no better than the best.
func (c *chooser) count() {
	slices.SortStableFunc(c.options, byFloor)
	for _, o := range c.options {
		if c.noBetter(o.least) {
			continue
		}
		if o.cost == nil {
			cost, complete := c.model.CountUntil(poll.WithContext(c.problem.Context, o.Plan), c.noBetter)
			if !complete {
				continue
			}
			o.cost = &cost
		}
		d := counted{c.problem.candidate(o.Plan, *o.cost, c.model), o.order}
		if d.Broken != "" {
			c.broken = append(c.broken, d.Candidate)
			continue
		}
		if c.least.Plan == nil || byTime(d, c.least) < 0 {
			c.least = d
		}
	}
}

// noBetter reports whether a plan of such a cost, or more, is no better than the best that is counted.
func (c *chooser) noBetter(cost sim.Cost) bool {
	return c.least.Plan != nil && cmp.Or(cmp.Compare(c.model.Time(cost), c.least.Time),
		cmp.Compare(cost.PacketC3(), c.least.Cost.PacketC3())) > 0
}

func byTime(a, b counted) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Cost.PacketC3(), b.Cost.PacketC3()), cmp.Compare(a.Memory, b.Memory), a.order-b.order)
}
