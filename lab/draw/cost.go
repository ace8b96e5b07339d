package draw

import (
	"fmt"
	"math"
	"slices"

	"volley/internal/comparison"
	"volley/internal/report"
	"volley/sim"
)

// Costs are what [Cost] draws.
var Costs = []string{"c2", "c1", "ratio", "time"}

// A curve is a series of a chart: what it draws of each row, 0 where there is nothing.
type curve struct {
	Series
	value func(comparison.CostRow) float64
}

// Cost draws one of [Costs] of the rows of a comparison against K: a curve for each algorithm, and lower bounds.
func Cost(c *comparison.Comparison, rows []comparison.CostRow, measure string) Chart {
	x := Axis{Label: "processors, K", Log: true, Binary: true}
	chart := Chart{Title: "Packets against processors", X: x, Y: Axis{Label: "C2, packets", Log: true}, Subtitle: Subtitle(c, true)}
	value := func(p comparison.PlanCost, r comparison.CostRow) float64 { return p.Cost.PacketC2() }
	bounds := []curve{{Series: Series{Name: "lower bound", Reference: true}, value: func(r comparison.CostRow) float64 { return r.C2 }}}
	switch measure {
	case "c1":
		chart.Title, chart.Y.Label = "Rounds against processors", "C1, rounds"
		value = func(p comparison.PlanCost, _ comparison.CostRow) float64 { return float64(p.Cost.C1) }
		bounds[0].value = func(r comparison.CostRow) float64 { return float64(r.C1) }
	case "c2":
		fewest := Series{Name: "lower bound in the fewest rounds", Reference: true, Scattered: true}
		bounds = append(bounds, curve{Series: fewest, value: func(r comparison.CostRow) float64 {
			b, _ := r.Fewest() // or 0, which no log axis shows
			return float64(b)
		}})
	case "ratio":
		chart.Title, chart.Y = "Packets over their lower bound", Axis{Label: "C2 / lower bound of C2", Log: true}
		value = func(p comparison.PlanCost, r comparison.CostRow) float64 { return p.Cost.PacketC2() / r.C2 }
		bounds[0].value = func(r comparison.CostRow) float64 { return r.C2 / r.C2 }
	case "time":
		chart.Title, chart.Y = "Time against processors", Axis{Label: "time", Log: true, Format: func(v float64) string { return report.Seconds(v) }}
		value = func(p comparison.PlanCost, _ comparison.CostRow) float64 { return c.Model.Time(p.Cost).Seconds() }
		bounds[0].value = func(r comparison.CostRow) float64 { return c.Model.Time(sim.Cost{C1: r.C1, C2: int(r.C2)}).Seconds() }
	}
	var curves []curve
	for i, a := range c.Algorithms {
		curves = append(curves, curve{Series: Series{Name: a.Name, Colour: i, Dashes: i}, value: func(r comparison.CostRow) float64 {
			if p, ok := r.Costs[a.Name]; ok {
				return value(p, r)
			}
			return math.NaN()
		}})
	}
	for _, x := range append(curves, bounds...) {
		for i, setting := range c.Settings {
			line := x.Series
			if len(c.Settings) > 1 {
				line.Dashes = i
			}
			line.Name += settingName(setting, c.Settings)
			for _, r := range rows {
				if r.PortSetting == setting {
					line.Points = append(line.Points, Point{float64(r.K), x.value(r)})
				}
			}
			chart.Series = append(chart.Series, line)
		}
	}
	return chart
}

// settingName says what is special about one of several settings.
func settingName(s comparison.PortSetting, settings []comparison.PortSetting) (name string) {
	if slices.ContainsFunc(settings, func(o comparison.PortSetting) bool { return o.Ports != s.Ports }) {
		name += fmt.Sprintf(", p = %d", s.Ports)
	}
	if slices.ContainsFunc(settings, func(o comparison.PortSetting) bool { return o.Excess != s.Excess }) {
		name += fmt.Sprintf(", over = %d", s.Excess)
	}
	return name
}

// Subtitle says what is compared, and for packets of which size unless the chart has several.
func Subtitle(c *comparison.Comparison, sized bool) string {
	text := "any matrix over " + c.Field.Name()
	if c.HasMatrix {
		text = "matrix " + c.Selection.Matrix + " over " + c.Field.Name()
		if c.Selection.Inverse {
			text = "inverse of " + text
		}
	}
	if setting := c.Settings[0]; len(c.Settings) == 1 && setting.Excess >= 0 {
		text += fmt.Sprintf(", rounds over the fewest ≤ %d", setting.Excess)
	}
	if c.Model.Paper() {
		if len(c.Settings) == 1 {
			text += fmt.Sprint(", p = ", c.Settings[0].Ports)
		}
		text += fmt.Sprintf(", β = %v, τ = %v", c.Model.Beta, c.Model.Tau)
	} else {
		text += ", " + c.Model.Network.String()
	}
	if c.Model.Gamma > 0 {
		text += fmt.Sprintf(", γ = %v", c.Model.Gamma)
	}
	if sized {
		text += ", packets of " + c.Selection.Size
	}
	return text
}
