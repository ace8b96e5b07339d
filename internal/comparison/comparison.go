// Package comparison counts what algorithms cost, to compare them: for many K, numbers of ports and limits of rounds,
// with the lower bounds.
package comparison

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"volley/algo"
	"volley/field"
	"volley/internal/selection"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/plan"
	"volley/sim"
)

// A Comparison is what is to be compared.
type Comparison struct {
	// Selection has the matrix's shape and order, and the limits. Algorithms that it names may cut packets.
	Selection *selection.Selection

	Field      field.Field
	Spec       matrices.Spec
	HasMatrix  bool // the matrix; else it is any, and Spec does not count
	Processors []int
	Settings   []PortSetting
	Algorithms []algo.Algorithm
	Model      sim.Model

	Planner  string // unless empty: find out what the planner takes, with this for algorithm
	AllPlans bool   // keep all plans of a row, not only the cheapest ones

	unsuited error // why the last algorithm that does not exist at some K does not
}

// Prepare sets what follows from the selection: the field, the matrix, the algorithms of a
// list of names, and the model for packets of so many bytes. The error is a
// *selection.Error.
func (c *Comparison) Prepare(names string, bytes int64) (err error) {
	if c.Field, err = c.Selection.ParseField(); err != nil {
		return err
	}
	if c.Spec, err = c.Selection.Spec(); err != nil {
		return err
	}
	if c.Algorithms, err = Algorithms(names, c.HasMatrix); err != nil {
		return err
	}
	c.Model, err = c.Selection.Model(c.Field, field.PackingOf(c.Field).Symbols(bytes))
	for i := range c.Settings {
		if !c.Model.Paper() {
			c.Settings[i].Ports = 0 // the planner chooses
		}
	}
	return err
}

// MostDrawn is up to how many processors the page shows every message, and pictures are drawn, 3^4: their columns can be
// told apart.
const MostDrawn = 81

// A PortSetting is what rows differ in besides K.
type PortSetting struct {
	Ports  int
	Excess int // most rounds over the fewest; -1: any number
}

// Settings returns those of lists of ports and of rounds over the fewest, such as 1,2,4..8, or a *selection.Error.
func Settings(ports, excess string) ([]PortSetting, error) {
	p, err := selection.ParseNumbers(ports, 0, selection.LargestK)
	if err != nil {
		return nil, selection.Markf("ports", "-p %q: %w", ports, err)
	}
	overs := []int{-1}
	if excess != "" {
		if overs, err = selection.ParseNumbers(excess, 0, selection.LargestK); err != nil {
			return nil, selection.Markf("rounds-over", "--rounds-over %q: %w", excess, err)
		}
	}
	var list []PortSetting
	for _, p := range p {
		if _, err := algo.Ports(1, p); err != nil {
			return nil, selection.Mark("ports", err)
		}
		for _, excess := range overs {
			list = append(list, PortSetting{p, excess})
		}
	}
	return list, nil
}

// Algorithms returns those of a list of names or, of "", all, for any matrix if none is given, or a *selection.Error.
func Algorithms(names string, hasMatrix bool) ([]algo.Algorithm, error) {
	if names == "" {
		return slices.DeleteFunc(algo.Parts(), func(a algo.Algorithm) bool { return a.Structured && !hasMatrix }), nil
	}
	var list []algo.Algorithm
	for _, name := range selection.AlgorithmNames(names) {
		if name == algo.Auto {
			return nil, selection.Markf("algorithm", "--algorithm auto: the table shows what auto chooses from: leave it out, or name one")
		}
		algorithm, err := algo.Lookup(name)
		if err != nil {
			return nil, selection.Mark("algorithm", err)
		}
		if !hasMatrix && algorithm.Structured {
			return nil, selection.Markf("algorithm", "--algorithm %s, which is for %s: without --matrix there are universal algorithms only: say which matrix", name, algorithm.Problem)
		}
		list = append(list, algorithm)
	}
	return list, nil
}

// A CostRow is the costs for one K in one setting.
type CostRow struct {
	PortSetting
	K, Used int                 // ports that are used
	Square  bool                // whether every processor is source and sink
	C1      int                 // lower bound: for the matrix, or without one of schedules for every matrix
	C2      float64             // likewise, for plans that keep packets whole where those of the row do
	Cut     any                 // that of C2 where packets are cut, a float64; nil where A has zeros off the diagonal
	fewest  int                 // that of C2 in C1 rounds; 0: no higher one is known
	Costs   map[string]PlanCost // by algorithm, the cheapest plan of each; of those that exist
	Plans   []PlanCost          // all, if these are kept
	Front   []PlanCost          // those that no other one beats in both C1 and C2, the fewest rounds first
	Chosen  *PlanCost           // what the planner takes; nil if it was not asked, or has none
}

// Fewest returns the lower bound of C2 in the fewest rounds; ok is false where none is known.
func (r CostRow) Fewest() (c2 int, ok bool) { return r.fewest, r.fewest > 0 }

// A PlanCost is a plan of an algorithm and its costs.
type PlanCost struct {
	Algorithm  string
	Parameters string
	Cost       sim.Cost
	Memory     int // packets held, if none is forgotten
}

// String returns "C1/C2".
func (p PlanCost) String() string {
	return fmt.Sprintf("%d/%s", p.Cost.C1, strconv.FormatFloat(p.Cost.PacketC2(), 'g', 6, 64))
}

// planOf keeps a candidate. Where the planner chooses the ports, C2 is what the busiest processor has on its link.
func (c *Comparison) planOf(name string, x algo.Candidate) PlanCost {
	if !c.Model.Paper() {
		x.Cost.C2 = int(math.Ceil(x.Cost.NodeElements()))
	}
	return PlanCost{Algorithm: name, Parameters: x.Plan.Info().Parameters, Cost: x.Cost, Memory: x.Memory}
}

// Rows counts all rows, one setting after the other. It leaves only algorithms in c that exist at some K. The error is
// a *selection.Error where there is nothing to compare, or that of ctx.
func (c *Comparison) Rows(ctx context.Context) ([]CostRow, error) {
	rows := make([][]CostRow, len(c.Settings))
	var missing error // why the matrix does not exist, at the last K where it does not
	exists := map[string]bool{}
	for _, k := range c.Processors {
		var a matrix.Matrix
		built := false
		for s, setting := range c.Settings {
			if s == 0 || len(c.Spec.Files()) == 0 {
				var err error
				if a, err = c.matrix(k, setting.Ports); err != nil {
					missing = err
				}
				built = err == nil
			}
			if !built {
				continue
			}
			row := CostRow{PortSetting: setting, K: k, Costs: map[string]PlanCost{}}
			if err := c.count(ctx, &row, a); err != nil {
				return nil, err
			}
			rows[s] = append(rows[s], row)
			for name := range row.Costs {
				exists[name] = true
			}
		}
	}
	if len(exists) == 0 {
		return nil, c.nothing(missing)
	}
	c.Algorithms = slices.DeleteFunc(c.Algorithms, func(a algo.Algorithm) bool { return !exists[a.Name] })
	return slices.Concat(rows...), nil
}

// nothing says why there is nothing to compare.
func (c *Comparison) nothing(missing error) error {
	switch {
	case missing != nil:
		return missing
	case len(c.Algorithms) == 1 && c.unsuited != nil:
		return selection.Markf("algorithm", "--algorithm %s, which is for %s: %s", c.Algorithms[0].Name, c.Algorithms[0].Problem, selection.Message(c.unsuited))
	case c.unsuited != nil:
		flag := "matrix"
		if c.Selection.Algorithm != "" {
			flag = "algorithm"
		}
		return selection.Markf(flag, "no algorithm for this: %s", selection.Message(c.unsuited))
	}
	return selection.Markf(c.Selection.LimitFlag(), "no plan keeps the limits at any K: allow more with --rounds-over, --max-memory or --max-compute, or leave --whole out")
}

func (c *Comparison) matrix(k, ports int) (matrix.Matrix, error) {
	if c.HasMatrix {
		return c.Selection.BuildFor(c.Spec.ForPorts(ports), c.Field, k)
	}
	a, err := c.example(k)
	return withoutZeros{a}, err
}

// example returns some matrix of the shape.
func (c *Comparison) example(k int) (matrix.Matrix, error) {
	return c.Selection.BuildFor(matrices.Spec{Family: "random", Argument: "0"}, c.Field, k)
}

// withoutZeros is a matrix that stands for any: its zeros are ones.
type withoutZeros struct{ matrix.Matrix }

func (m withoutZeros) At(i, j int) field.Element {
	if x := m.Matrix.At(i, j); !x.IsZero() {
		return x
	}
	return field.One
}

func (c *Comparison) problem(ctx context.Context, s PortSetting, a matrix.Matrix) (*algo.Problem, error) {
	o := c.Selection
	p := &algo.Problem{Matrix: a, Separate: o.Separate, Ports: s.Ports, Order: o.PlanOrder(), Limits: o.Limits, WholePackets: o.WholePackets, Context: ctx}
	p.Limits.Rounds = algo.FewestPlus(s.Excess)
	if c.Model.Paper() { // which has ports
		if _, err := algo.Ports(1, s.Ports); err != nil {
			return nil, selection.Mark("ports", err)
		}
	}
	if err := p.Prepare(); err != nil {
		return nil, selection.Mark("ports", err)
	}
	if _, err := c.Model.Network.Rates(p.Processors()); err != nil {
		return nil, selection.Mark("network", err)
	}
	p.WholePackets = p.WholeFor(cmp.Or(o.Algorithm, algo.Auto))
	return p, nil
}

// bound fills in the bounds of a row whose costs are counted.
func (c *Comparison) bound(r *CostRow, p *algo.Problem) {
	k, columns := p.Matrix.Rows(), p.Matrix.Cols()
	universal := func(rounds int) algo.Bound {
		return algo.UniversalBound(plan.Info{Processors: p.Processors(), Rows: k, Columns: columns, Ports: p.MostPorts()}, rounds)
	}
	uncut := p.Ports > 0 && !slices.ContainsFunc(r.Plans, func(x PlanCost) bool { return x.Cost.Pieces > 1 })
	if !c.HasMatrix { // it stands for all of its shape
		b := universal(0)
		r.C2 = algo.BoundCut(k, columns, p.Separate, max(1, p.Ports))
		if r.C1, r.Cut = b.C1, r.C2; uncut {
			if r.C2 = float64(b.C2); p.Square() {
				r.fewest = universal(r.C1).C2
			}
		}
		return
	}
	cut, dense := p.BoundCut(c.Model)
	if r.C2 = cut; dense {
		r.Cut = cut
	}
	b := p.Bound(p.MostPorts(), 1)
	r.C1 = b.C1
	if !uncut {
		return
	}
	r.C2 = float64(b.C2)
	if p.Square() && matrix.StructureOf(p.Matrix).Superregular() {
		r.fewest, _ = algo.BoundMinCut(k, p.Ports)
	}
}

// count counts the costs for the matrix a. Of a family of plans it is that of least model time.
func (c *Comparison) count(ctx context.Context, r *CostRow, a matrix.Matrix) error {
	p, err := c.problem(ctx, r.PortSetting, a)
	if err != nil {
		return err
	}
	r.Used, r.Square = p.Ports, p.Square()
	for _, x := range c.Algorithms {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		plans, rejected := algo.CandidatesAmong([]algo.Algorithm{x}, p, c.Model)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, r := range rejected {
			if !errors.Is(r.Reason, algo.ErrStructure) {
				return selection.Mark("algorithm", r.Reason)
			}
			c.unsuited = r.Reason
		}
		var best algo.Candidate
		for _, candidate := range plans {
			if candidate.Broken != "" {
				continue
			}
			r.Plans = append(r.Plans, c.planOf(x.Name, candidate))
			if best.Plan == nil || candidate.Time < best.Time {
				best = candidate
			}
		}
		if best.Plan == nil {
			continue
		}
		r.Costs[x.Name] = c.planOf(x.Name, best)
	}
	c.bound(r, p)
	r.Front = sim.Front(r.Plans, func(p PlanCost) sim.Cost { return p.Cost })
	if !c.AllPlans {
		r.Plans = nil
	}
	if c.Planner != "" {
		r.Chosen = c.choose(p)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// choose returns what the planner takes for the problem, and nil if it has no plan.
func (c *Comparison) choose(p *algo.Problem) *PlanCost {
	list := slices.DeleteFunc(algo.Planned(), func(a algo.Algorithm) bool { return a.Structured && !c.HasMatrix })
	if c.Planner != algo.Auto {
		var err error
		if list, err = Algorithms(c.Planner, c.HasMatrix); err != nil { // one that needs the matrix
			return nil
		}
	}
	derived := *p
	derived.WholePackets = c.Selection.WholePackets // whatever algorithms to compare are named
	derived.WholePackets = derived.WholeFor(c.Planner)
	q, err := algo.ChooseAmong(list, &derived, c.Model)
	if err != nil {
		return nil
	}
	chosen := c.planOf(q.Info().Algorithm, derived.Evaluate(q, c.Model))
	return &chosen
}
