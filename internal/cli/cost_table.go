package cli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"volley/algo"
	"volley/report"
)

// columns returns those of the table of costs.
func (j *costJob) columns() []report.Column[costRow] {
	columns := j.firstColumns()
	columns = append(columns,
		report.Column[costRow]{Name: "bound_C1", Head: "bound", Unit: "C1", Value: func(r costRow) any { return r.c1 }},
		report.Column[costRow]{Name: "bound_C2", Join: "/", Unit: "C2", Value: func(r costRow) any { return r.c2 }},
		report.Column[costRow]{Name: "min_cut", Unit: "C2", Value: func(r costRow) any {
			if b, ok := algo.BoundMinCut(r.k, r.used); ok && r.square {
				return b
			}
			return nil
		}},
	)
	seconds := func(v any) string { return brief(v.(float64)) }
	for _, a := range j.algorithms {
		columns = append(columns,
			report.Column[costRow]{Name: a.Name + "_C1", Head: a.Name, Unit: "C1", Value: ofCost(a, func(c costed) any { return c.cost.C1 })},
			report.Column[costRow]{Name: a.Name + "_C2", Join: "/", Unit: "C2", Value: ofCost(a, func(c costed) any { return inPackets(c, float64(c.cost.C2)) })},
			report.Column[costRow]{
				Name: a.Name + "_seconds", Join: " ", Unit: "time", Text: seconds,
				Value: ofCost(a, func(c costed) any { return j.model.Time(c.cost).Seconds() }),
			})
		if j.noise != nil {
			columns = append(columns,
				report.Column[costRow]{
					Name: a.Name + "_median_seconds", Join: " ", Unit: "median", Text: seconds,
					Value: ofCost(a, func(c costed) any { return c.times.Quantile(0.5).Seconds() }),
				},
				report.Column[costRow]{
					Name: a.Name + "_p95_seconds", Join: " ", Unit: "95%", Text: seconds,
					Value: ofCost(a, func(c costed) any { return c.times.Quantile(0.95).Seconds() }),
				})
		}
	}
	if j.given {
		columns = append(columns, report.Column[costRow]{Name: "front", Unit: "C1/C2", Value: func(r costRow) any { return r.front }})
	}
	return columns
}

// firstColumns say what a row is for.
func (j *costJob) firstColumns() []report.Column[costRow] {
	columns := []report.Column[costRow]{
		{Name: "K", Value: func(r costRow) any { return r.k }},
		{Name: "p", Value: func(r costRow) any { return r.used }},
	}
	if j.overList != "" {
		columns = append(columns, report.Column[costRow]{Name: "rounds_over", Head: "over", Value: func(r costRow) any { return r.over }})
	}
	return columns
}

// ofCost returns a cell of the algorithm's cost, which is empty where it has none.
func ofCost(a algo.Algorithm, value func(costed) any) func(costRow) any {
	return func(r costRow) any {
		if c, ok := r.costs[a.Name]; ok {
			return value(c)
		}
		return nil
	}
}

// inPackets returns a number of elements of a plan in packets: a whole number where
// packets are not cut.
func inPackets(c costed, elements float64) any {
	if p := elements / float64(max(1, c.cost.Pieces)); p != math.Trunc(p) || p > 1<<53 {
		return p
	} else {
		return int64(p)
	}
}

// loadRow is one algorithm in a row.
type loadRow struct {
	costRow
	costed
}

// writeLoad prints what processors have to do, a line for each algorithm.
func (j *costJob) writeLoad(w io.Writer, rows []costRow) error {
	var list []loadRow
	for _, r := range rows {
		for _, a := range j.algorithms {
			if c, ok := r.costs[a.Name]; ok {
				list = append(list, loadRow{r, c})
			}
		}
	}
	var columns []report.Column[loadRow]
	for _, c := range j.firstColumns() {
		columns = append(columns, report.Column[loadRow]{Name: c.Name, Head: c.Head, Value: func(r loadRow) any { return c.Value(r.costRow) }})
	}
	short := func(v any) string {
		if f, ok := v.(float64); ok {
			return strconv.FormatFloat(f, 'g', 4, 64)
		}
		return fmt.Sprint(v)
	}
	add := func(name, head, join, unit string, value func(loadRow) any) {
		columns = append(columns, report.Column[loadRow]{Name: name, Head: head, Join: join, Unit: unit, Value: value, Text: short})
	}
	add("algorithm", "", "", "", func(r loadRow) any { return r.algorithm })
	add("C1", "", "", "", func(r loadRow) any { return r.cost.C1 })
	add("C2", "", "/", "C2", func(r loadRow) any { return inPackets(r.costed, float64(r.cost.C2)) })
	columns[len(columns)-2].Head, columns[len(columns)-2].Unit = "cost", "C1"
	add("sent_most", "sent", "", "most", func(r loadRow) any { return inPackets(r.costed, float64(r.load.Sent.Most)) })
	add("sent_mean", "", " ", "mean", func(r loadRow) any { return inPackets(r.costed, r.load.Sent.Mean) })
	add("received_most", "received", "", "most", func(r loadRow) any { return inPackets(r.costed, float64(r.load.Received.Most)) })
	add("received_mean", "", " ", "mean", func(r loadRow) any { return inPackets(r.costed, r.load.Received.Mean) })
	add("traffic", "", "", "all", func(r loadRow) any { return inPackets(r.costed, r.load.Sent.Total) })
	add("messages", "", "", "all", func(r loadRow) any { return inPackets(costed{}, r.load.Messages.Total) })
	add("memory", "", "", "most", func(r loadRow) any { return inPackets(r.costed, float64(r.load.Memory.Most)) })
	add("memory_forgetting", "forgetting", "", "most", func(r loadRow) any {
		if r.work == nil {
			return nil
		}
		return inPackets(r.costed, float64(r.work.Live.Most))
	})
	add("multiply_adds", "multiply-adds", "", "most", func(r loadRow) any {
		switch {
		case r.cost.C3 >= 0:
			return inPackets(r.costed, float64(r.cost.C3))
		case r.work == nil:
			return nil
		}
		return inPackets(r.costed, float64(r.work.MultiplyAdds.Most))
	})
	return report.Write(w, j.format, columns, list)
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
	means     map[setting]mean
}

// writeMeans prints the means: a line for each algorithm, a column for each number of
// ports; where there are several limits of rounds, a column for each of these.
func (j *costJob) writeMeans(w io.Writer, rows []costRow) error {
	overs := slices.ContainsFunc(j.settings, func(s setting) bool { return s.over != j.settings[0].over })
	column := func(s setting) setting {
		if overs {
			return setting{0, s.over}
		}
		return s
	}
	n := 0 // K that have a bound
	var list []meanRow
	var columns []setting
	var names []string
	for _, a := range j.algorithms {
		names = append(names, a.Name)
	}
	if len(names) > 1 {
		names = append(names, leastOfAll)
	}
	for _, name := range names {
		for _, at := range j.settings {
			if !slices.Contains(columns, column(at)) {
				columns = append(columns, column(at))
			}
			m, bounded := mean{}, 0
			for _, r := range rows {
				if r.setting != at || r.c2 <= 0 {
					continue
				}
				bounded++
				if packets, ok := r.packetsBy(name); ok {
					m = mean{m.sum + packets/float64(r.c2), m.n + 1}
				}
			}
			n = max(n, bounded)
			if last := len(list) - 1; last < 0 || list[last].algorithm != name || overs && list[last].ports != at.ports {
				list = append(list, meanRow{name, at.ports, map[setting]mean{}})
			}
			list[len(list)-1].means[column(at)] = m
		}
	}
	if n == 0 && j.mean {
		return usagef("--mean: the lower bound is 0 packets at every K there is: want a K above 1")
	}
	if j.format == "text" {
		if _, err := fmt.Fprintf(w, "mean C2 / lower bound over %d K\n", n); err != nil {
			return err
		}
	}
	return report.Write(w, j.format, meanColumns(columns, list, overs, n), list)
}

// leastOfAll stands for the algorithm with the fewest packets at each K.
const leastOfAll = "least of these"

// packetsBy returns C2 of an algorithm, or the least of all.
func (r costRow) packetsBy(name string) (packets float64, ok bool) {
	if name != leastOfAll {
		c, ok := r.costs[name]
		return c.cost.PacketC2(), ok
	}
	for _, c := range r.costs {
		if !ok || c.cost.PacketC2() < packets {
			packets, ok = c.cost.PacketC2(), true
		}
	}
	return packets, ok
}

// meanColumns returns the columns of the means over n values of K.
func meanColumns(settings []setting, list []meanRow, overs bool, n int) []report.Column[meanRow] {
	columns := []report.Column[meanRow]{{Name: "algorithm", Value: func(r meanRow) any { return r.algorithm }}}
	if overs && slices.ContainsFunc(list, func(r meanRow) bool { return r.ports != list[0].ports }) {
		columns = append(columns, report.Column[meanRow]{Name: "p", Value: func(r meanRow) any { return r.ports }})
	}
	for _, s := range settings {
		name, head := "ratio", "ratio"
		switch {
		case overs:
			name, head = fmt.Sprintf("ratio_over%d", s.over), fmt.Sprintf("over=%d", s.over)
		case len(settings) > 1:
			name, head = fmt.Sprintf("ratio_p%d", s.ports), fmt.Sprintf("p=%d", s.ports)
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
