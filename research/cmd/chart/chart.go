package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"volley/internal/comparison"
	"volley/research/plot"
	"volley/sim"
)

// chart returns what --plot says.
func (j *costJob) chart(rows []comparison.Row) plot.Chart {
	var c plot.Chart
	switch {
	case j.sweeps():
		c = j.sizeChart(rows[0])
	case j.trades():
		c = j.tradeChart(rows[0])
	default:
		c = j.costChart(rows)
	}
	c.Subtitle = j.subtitle()
	return c
}

// subtitle says what the chart is for.
func (j *costJob) subtitle() string {
	a := "any matrix"
	if j.Given {
		a = "matrix " + j.Selection.Matrix
		if j.Selection.Inverse {
			a += ", inverse"
		}
	}
	parts := []string{fmt.Sprintf("%s over %s", a, j.Field.Name())}
	if list := strings.Split(j.ports, ","); !j.Model.Paper() {
		parts = append(parts, j.Model.Network.String())
	} else if len(list) > 1 {
		parts = append(parts, "p = "+strings.Join(list, ", "))
	} else {
		parts = append(parts, "p = "+j.ports)
	}
	if j.over != "" {
		parts = append(parts, "rounds over the fewest ≤ "+j.over)
	}
	if j.Model.Paper() {
		parts = append(parts, "β = "+inUnits(j.Model.Beta.Seconds()), "τ = "+inUnits(float64(j.Model.Tau)))
	}
	if j.Model.Gamma > 0 {
		parts = append(parts, "γ = "+inUnits(float64(j.Model.Gamma)))
	}
	if j.sweeps() || j.trades() {
		parts = append(parts, fmt.Sprintf("K = %d", j.Processors[0]))
	}
	if !j.sweeps() {
		parts = append(parts, "packets of "+inBytes(float64(j.bytes)))
	}
	s := strings.Join(parts, ", ")
	if j.times != nil {
		s += "\n" + j.runs
	}
	return s
}

// A curve is a series of a chart: what it draws of each row, NaN where there is nothing.
type curve struct {
	plot.Series
	value func(comparison.Row) float64
	once  bool // it is the same in all settings
}

// costChart draws a cost against K.
func (j *costJob) costChart(rows []comparison.Row) plot.Chart {
	c := plot.Chart{X: plot.Axis{Label: "processors, K", Log: true, Binary: true}}
	value := func(c comparison.Plan, _ comparison.Row) float64 { return c.Cost.PacketC2() }
	bound := curve{Series: plot.Series{Name: "lower bound", Reference: true}, value: func(r comparison.Row) float64 { return float64(r.C2) }}
	if j.Given {
		bound.Name += ", every matrix"
	}
	var bounds []curve
	switch j.plot {
	case "c1":
		c.Title = "Rounds against processors"
		c.Y = plot.Axis{Label: "C1, rounds", Log: true}
		value = func(c comparison.Plan, _ comparison.Row) float64 { return float64(c.Cost.C1) }
		bound.value = func(r comparison.Row) float64 { return float64(r.C1) }
	case "c2":
		c.Title = "Packets against processors"
		c.Y = plot.Axis{Label: "C2, packets", Log: true}
		bounds = []curve{{
			Series: plot.Series{Name: "lower bound in the fewest rounds", Reference: true, Scattered: true},
			value: func(r comparison.Row) float64 {
				if b, ok := r.MinCut(); ok {
					return float64(b)
				}
				return math.NaN()
			},
		}}
	case "ratio":
		c.Title = "Packets over their lower bound"
		c.Y = plot.Axis{Label: "C2 / lower bound of C2"}
		value = func(c comparison.Plan, r comparison.Row) float64 { return c.Cost.PacketC2() / float64(r.C2) }
		bound.value, bound.once = func(r comparison.Row) float64 { return float64(r.C2) / float64(r.C2) }, true
	case "time":
		c.Title = "Time against processors"
		c.Y = plot.Axis{Label: "time", Log: true, Format: inUnits}
		value = func(c comparison.Plan, _ comparison.Row) float64 { return j.Model.Time(c.Cost).Seconds() }
		bound.value = func(r comparison.Row) float64 { return j.Model.Time(sim.Cost{C1: r.C1, C2: r.C2}).Seconds() }
	}
	for _, group := range append(j.curves(value), []curve{bound}, bounds) {
		for s, at := range j.Settings {
			for _, x := range group {
				if x.once && s > 0 {
					continue
				}
				line := x.Series
				if len(j.Settings) > 1 && (x.Reference || j.times == nil) {
					line.Dashes = s
				}
				if name := settingName(at, j.Settings); name != "" && !x.once {
					line.Name += ", " + name
				}
				for _, r := range rows {
					if r.Setting == at {
						line.Points = append(line.Points, plot.Point{X: float64(r.K), Y: x.value(r)})
					}
				}
				c.Series = append(c.Series, line)
			}
		}
	}
	c.Y.Log = c.Y.Log || spread(c.Series) > 8
	return c
}

// curves are those of each algorithm: of a value or, of simulated runs, of quantiles.
func (j *costJob) curves(value func(comparison.Plan, comparison.Row) float64) [][]curve {
	var list [][]curve
	for i, a := range j.Algorithms {
		of := func(name string, dashes int, value func(comparison.Plan, comparison.Row) float64) curve {
			return curve{Series: plot.Series{Name: a.Name + name, Colour: i, Dashes: dashes}, value: func(r comparison.Row) float64 {
				if c, ok := r.Costs[a.Name]; ok {
					return value(c, r)
				}
				return math.NaN()
			}}
		}
		quantile := func(share float64) func(comparison.Plan, comparison.Row) float64 {
			return func(c comparison.Plan, r comparison.Row) float64 {
				return j.times[simulated{r.Setting, r.K, c.Algorithm}].Quantile(share).Seconds()
			}
		}
		if j.times == nil {
			list = append(list, []curve{of("", i, value)})
		} else {
			list = append(list, []curve{of(", median", 0, quantile(0.5)), of(", 95 %", 2, quantile(0.95))})
		}
	}
	return list
}

// settingName says what is special about one of several settings.
func settingName(s comparison.Setting, all []comparison.Setting) string {
	var parts []string
	if slices.ContainsFunc(all, func(o comparison.Setting) bool { return o.Ports != s.Ports }) {
		parts = append(parts, fmt.Sprintf("p = %d", s.Ports))
	}
	if slices.ContainsFunc(all, func(o comparison.Setting) bool { return o.Over != s.Over }) {
		parts = append(parts, fmt.Sprintf("over = %d", s.Over))
	}
	return strings.Join(parts, ", ")
}

// spread returns the largest value over the smallest one.
func spread(list []plot.Series) float64 {
	low, high := math.Inf(1), 0.0
	for _, s := range list {
		for _, p := range s.Points {
			if p.Y > 0 && !math.IsInf(p.Y, 0) { // neither is NaN
				low, high = min(low, p.Y), max(high, p.Y)
			}
		}
	}
	return high / low
}

// sizeChart draws the times of all plans against the size of a packet, and marks
// where another plan becomes the cheapest.
func (j *costJob) sizeChart(r comparison.Row) plot.Chart {
	c := plot.Chart{
		Title: "Time against the size of a packet",
		X:     plot.Axis{Label: "size of a packet", Log: true, Binary: true, Format: inBytes},
		Y:     plot.Axis{Label: "time", Log: true, Format: inUnits},
	}
	sizes := comparison.Sizes(j.firstSize, j.last)
	colour, before := -1, ""
	names := make([]string, len(r.Plans))
	for i, p := range r.Plans {
		if p.Algorithm != before {
			colour, before = colour+1, p.Algorithm
		}
		names[i] = fmt.Sprintf("%s %s", p.Algorithm, p)
		s := plot.Series{Name: names[i], Colour: colour, Dashes: i}
		for _, size := range sizes {
			s.Points = append(s.Points, plot.Point{X: size, Y: j.Seconds(p, size)})
		}
		c.Series = append(c.Series, s)
	}
	for _, x := range j.Crossings(r.Plans, sizes) {
		c.Marks = append(c.Marks, plot.Mark{
			Point: plot.Point{X: x.Bytes, Y: x.Seconds}, Label: fmt.Sprintf("from %s: %s", inBytes(x.Bytes), names[x.Plan]),
		})
	}
	return c
}

// tradeChart draws the least time of an algorithm's plans that hold no more packets,
// or do no more multiply-adds, than a limit allows.
func (j *costJob) tradeChart(r comparison.Row) plot.Chart {
	c := plot.Chart{
		Title: "Time against the packets that a processor may hold",
		X:     plot.Axis{Label: "packets held", Log: true},
		Y:     plot.Axis{Label: "time", Log: true, Format: inUnits},
	}
	takes := func(p comparison.Plan) int { return p.Memory }
	if j.plot == "compute" {
		c.Title = "Time against the multiply-adds that a processor may do"
		c.X.Label = "multiply-adds per symbol"
		takes = func(p comparison.Plan) int { return p.Cost.PacketC3() }
	}
	most := 0
	by := map[string][]comparison.Plan{}
	var names []string
	for _, p := range r.Plans {
		if by[p.Algorithm] == nil {
			names = append(names, p.Algorithm)
		}
		by[p.Algorithm] = append(by[p.Algorithm], p)
		most = max(most, takes(p))
	}
	for i, name := range names {
		plans := by[name]
		slices.SortStableFunc(plans, func(a, b comparison.Plan) int { return cmp.Compare(takes(a), takes(b)) })
		s := plot.Series{Name: name, Colour: i, Dashes: i}
		least := math.Inf(1)
		for _, p := range plans {
			seconds := j.Model.Time(p.Cost).Seconds()
			if seconds >= least {
				continue
			}
			if len(s.Points) > 0 { // a step down
				s.Points = append(s.Points, plot.Point{X: float64(takes(p)), Y: least})
			}
			least = seconds
			s.Points = append(s.Points, plot.Point{X: float64(takes(p)), Y: least})
		}
		s.Points = append(s.Points, plot.Point{X: float64(most), Y: least})
		c.Series = append(c.Series, s)
	}
	return c
}

// inBytes writes a size such as 64 KiB.
func inBytes(size float64) string {
	return strings.Replace(humanize.IBytes(uint64(math.Round(size))), ".0 ", " ", 1)
}

// inUnits writes a duration in seconds as short as it is exact to four digits.
func inUnits(seconds float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}, {"ns", 1e-9}} {
		if seconds >= u.size*(1-1e-9) || u.name == "ns" {
			return fmt.Sprintf("%.4g %s", seconds/u.size, u.name)
		}
	}
	return ""
}
