package schedules

import (
	"math"
	"strings"

	"volley/algo"
	"volley/internal/comparison"
	"volley/internal/report"
)

// columns returns those of the table of costs.
func (j *costJob) columns() []report.Column[comparison.Row] {
	columns := []report.Column[comparison.Row]{
		{Name: "K", Value: func(r comparison.Row) any { return r.K }},
		{Name: "p", Value: func(r comparison.Row) any {
			if r.Used == 0 {
				return nil // the planner chooses
			}
			return r.Used
		}},
	}
	if j.overList != "" {
		columns = append(columns, report.Column[comparison.Row]{Name: "rounds_over", Head: "over", Value: func(r comparison.Row) any { return r.Over }})
	}
	columns = append(columns,
		report.Column[comparison.Row]{Name: "bound_C1", Head: "bound", Unit: "C1", Value: func(r comparison.Row) any { return r.C1 }},
		report.Column[comparison.Row]{Name: "bound_C2", Join: "/", Unit: "C2", Value: func(r comparison.Row) any { return r.C2 }},
		report.Column[comparison.Row]{Name: "min_cut", Unit: "C2", Value: func(r comparison.Row) any {
			if b, ok := r.MinCut(); ok {
				return b
			}
			return nil
		}},
		report.Column[comparison.Row]{Name: "bound_cut", Head: "cut", Unit: "C2", Text: report.Number, Value: func(r comparison.Row) any { return r.Cut }},
	)
	cells := []struct {
		name, join, unit string
		text             func(any) string
		value            func(comparison.Plan) any
	}{
		{"C1", "", "C1", nil, func(c comparison.Plan) any { return c.Cost.C1 }},
		{"C2", "/", "C2", nil, func(c comparison.Plan) any { return inPackets(c, float64(c.Cost.C2)) }},
		{"seconds", " ", "time", report.Seconds, func(c comparison.Plan) any { return j.Model.Time(c.Cost).Seconds() }},
	}
	for _, a := range j.Algorithms {
		for i, x := range cells {
			c := report.Column[comparison.Row]{Name: a.Name + "_" + x.name, Join: x.join, Unit: x.unit, Text: x.text, Value: ofCost(a, x.value)}
			if i == 0 {
				c.Head = a.Name
			}
			columns = append(columns, c)
		}
	}
	if j.Given {
		columns = append(columns, report.Column[comparison.Row]{Name: "front", Unit: "C1/C2", Value: func(r comparison.Row) any { return front(r) }})
	}
	return columns
}

// front lists C1/C2 of the plans that no other one beats.
func front(r comparison.Row) string {
	var list []string
	for _, p := range r.Front {
		list = append(list, p.String())
	}
	return strings.Join(list, " ")
}

// ofCost returns a cell of the algorithm's cost, which is empty where it has none.
func ofCost(a algo.Algorithm, value func(comparison.Plan) any) func(comparison.Row) any {
	return func(r comparison.Row) any {
		if c, ok := r.Costs[a.Name]; ok {
			return value(c)
		}
		return nil
	}
}

// inPackets returns a number of elements of a plan in packets: a whole number where
// packets are not cut.
func inPackets(c comparison.Plan, elements float64) any {
	if p := elements / float64(max(1, c.Cost.Pieces)); p != math.Trunc(p) || p > 1<<53 {
		return p
	} else {
		return int64(p)
	}
}
