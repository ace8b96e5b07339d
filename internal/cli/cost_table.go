package cli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"volley/algo"
	"volley/internal/comparison"
	"volley/internal/printable"
	"volley/report"
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

// A mean is that of C2 over its lower bound, of the K that have both.
type mean struct {
	sum float64
	n   int
}

// meanRow is the means of an algorithm: for all settings, or, where these differ in
// both, for those of one number of ports.
type meanRow struct {
	algorithm string
	ports     int
	means     map[comparison.Setting]mean
}

// writeMeans prints the means: a line for each algorithm, a column for each number of
// ports; where there are several limits of rounds, a column for each of these.
func (j *costJob) writeMeans(w io.Writer, rows []comparison.Row) error {
	overs := slices.ContainsFunc(j.Settings, func(s comparison.Setting) bool { return s.Over != j.Settings[0].Over })
	column := func(s comparison.Setting) comparison.Setting {
		if overs {
			return comparison.Setting{Over: s.Over}
		}
		return s
	}
	n := 0 // K that have a bound
	var list []meanRow
	var columns []comparison.Setting
	var names []string
	for _, a := range j.Algorithms {
		names = append(names, a.Name)
	}
	if len(names) > 1 {
		names = append(names, leastOfAll)
	}
	for _, name := range names {
		for _, at := range j.Settings {
			if !slices.Contains(columns, column(at)) {
				columns = append(columns, column(at))
			}
			m, bounded := mean{}, 0
			for _, r := range rows {
				if r.Setting != at || r.C2 <= 0 {
					continue
				}
				bounded++
				if packets, ok := packetsBy(r, name); ok {
					m = mean{m.sum + packets/float64(r.C2), m.n + 1}
				}
			}
			n = max(n, bounded)
			if last := len(list) - 1; last < 0 || list[last].algorithm != name || overs && list[last].ports != at.Ports {
				list = append(list, meanRow{name, at.Ports, map[comparison.Setting]mean{}})
			}
			list[len(list)-1].means[column(at)] = m
		}
	}
	if n == 0 && j.mean {
		return usagef("--mean: the lower bound is 0 packets at every K there is: want a K above 1")
	}
	if j.format == "text" {
		if _, err := printable.Fprintf(w, "mean C2 / lower bound over %d K\n", n); err != nil {
			return err
		}
	}
	return report.Write(w, j.format, meanColumns(columns, list, overs, n), list)
}

// leastOfAll stands for the algorithm with the fewest packets at each K.
const leastOfAll = "least of these"

// packetsBy returns C2 of an algorithm in a row, or the least of all.
func packetsBy(r comparison.Row, name string) (packets float64, ok bool) {
	if name != leastOfAll {
		c, ok := r.Costs[name]
		return c.Cost.PacketC2(), ok
	}
	for _, c := range r.Costs {
		if !ok || c.Cost.PacketC2() < packets {
			packets, ok = c.Cost.PacketC2(), true
		}
	}
	return packets, ok
}

// meanColumns returns the columns of the means over n values of K.
func meanColumns(settings []comparison.Setting, list []meanRow, overs bool, n int) []report.Column[meanRow] {
	columns := []report.Column[meanRow]{{Name: "algorithm", Value: func(r meanRow) any { return r.algorithm }}}
	if overs && slices.ContainsFunc(list, func(r meanRow) bool { return r.ports != list[0].ports }) {
		columns = append(columns, report.Column[meanRow]{Name: "p", Value: func(r meanRow) any { return r.ports }})
	}
	for _, s := range settings {
		name, head := "ratio", "ratio"
		switch {
		case overs:
			name, head = fmt.Sprintf("ratio_over%d", s.Over), fmt.Sprintf("over=%d", s.Over)
		case len(settings) > 1:
			name, head = fmt.Sprintf("ratio_p%d", s.Ports), fmt.Sprintf("p=%d", s.Ports)
		}
		columns = append(columns, report.Column[meanRow]{
			Name: name, Head: head, Text: func(v any) string { return fmt.Sprintf("%.3f", v) },
			Value: func(r meanRow) any {
				if m := r.means[s]; m.n > 0 {
					return m.sum / float64(m.n)
				}
				return nil
			},
		})
		if slices.ContainsFunc(list, func(r meanRow) bool { return r.means[s].n < n }) {
			columns = append(columns, report.Column[meanRow]{
				Name: name + "_K", Join: " ", Text: func(v any) string {
					if v == n || v == 0 {
						return ""
					}
					return fmt.Sprintf("(%d K)", v)
				},
				Value: func(r meanRow) any { return r.means[s].n },
			})
		}
	}
	return columns
}
