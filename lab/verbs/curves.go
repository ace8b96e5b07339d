package verbs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"volley/internal/comparison"
	"volley/internal/report"
	"volley/lab/crossings"
	"volley/lab/draw"
)

// chart returns what --plot says.
func (j *costJob) chart(rows []comparison.CostRow) draw.Chart {
	var c draw.Chart
	switch {
	case j.sweeps():
		c = j.sizeChart(rows[0])
	case j.trades():
		c = j.tradeChart(rows[0])
	default:
		c = draw.Cost(&j.Comparison, rows, j.plot)
	}
	c.Subtitle = draw.Subtitle(&j.Comparison, !j.sweeps())
	if j.AllPlans {
		c.Subtitle += fmt.Sprintf(", K = %d", j.Processors[0])
	}
	return c
}

// sizeChart draws the times of all plans against the size of a packet, and marks
// where another plan becomes the cheapest.
func (j *costJob) sizeChart(r comparison.CostRow) draw.Chart {
	c := draw.Chart{
		Title: "Time against the size of a packet",
		X:     draw.Axis{Label: "size of a packet", Log: true, Binary: true, Format: inBytes},
		Y:     draw.Axis{Label: "time", Log: true, Format: func(v float64) string { return report.Seconds(v) }},
	}
	sizes := crossings.Sizes(j.firstSize, j.last)
	colour, previous := -1, ""
	names := make([]string, len(r.Plans))
	for i, p := range r.Plans {
		if p.Algorithm != previous {
			colour, previous = colour+1, p.Algorithm
		}
		names[i] = fmt.Sprintf("%s %s", p.Algorithm, p)
		s := draw.Series{Name: names[i], Colour: colour, Dashes: i}
		for _, size := range sizes {
			s.Points = append(s.Points, draw.Point{X: size, Y: crossings.Seconds(&j.Comparison, p, size)})
		}
		c.Series = append(c.Series, s)
	}
	for _, x := range crossings.Find(&j.Comparison, r.Plans, sizes) {
		name := fmt.Sprintf("from %s: %s", inBytes(x.Bytes), names[x.Plan])
		c.Series = append(c.Series, draw.Series{Name: name, Colour: 6, Scattered: true, Points: []draw.Point{{X: x.Bytes, Y: x.Seconds}}})
	}
	return c
}

// tradeChart draws the least time of an algorithm's plans that hold no more packets,
// or do no more multiply-adds, than a limit allows.
func (j *costJob) tradeChart(r comparison.CostRow) draw.Chart {
	c := draw.Chart{
		Title: "Time against the packets that a processor may hold",
		X:     draw.Axis{Label: "packets held", Log: true},
		Y:     draw.Axis{Label: "time", Log: true, Format: func(v float64) string { return report.Seconds(v) }},
	}
	takes := func(p comparison.PlanCost) int { return p.Memory }
	if j.plot == "compute" {
		c.Title = "Time against the multiply-adds that a processor may do"
		c.X.Label = "multiply-adds per symbol"
		takes = func(p comparison.PlanCost) int { return p.Cost.PacketC3() }
	}
	largest := 0
	byAlgorithm := map[string][]comparison.PlanCost{}
	var names []string
	for _, p := range r.Plans {
		if byAlgorithm[p.Algorithm] == nil {
			names = append(names, p.Algorithm)
		}
		byAlgorithm[p.Algorithm] = append(byAlgorithm[p.Algorithm], p)
		largest = max(largest, takes(p))
	}
	for i, name := range names {
		plans := byAlgorithm[name]
		slices.SortStableFunc(plans, func(a, b comparison.PlanCost) int { return cmp.Compare(takes(a), takes(b)) })
		s := draw.Series{Name: name, Colour: i, Dashes: i}
		least := math.Inf(1)
		for _, p := range plans {
			seconds := j.Model.Time(p.Cost).Seconds()
			if seconds >= least {
				continue
			}
			if len(s.Points) > 0 { // a step down
				s.Points = append(s.Points, draw.Point{X: float64(takes(p)), Y: least})
			}
			least = seconds
			s.Points = append(s.Points, draw.Point{X: float64(takes(p)), Y: least})
		}
		s.Points = append(s.Points, draw.Point{X: float64(largest), Y: least})
		c.Series = append(c.Series, s)
	}
	return c
}

// inBytes writes a size such as 64 KiB.
func inBytes(size float64) string {
	return strings.Replace(humanize.IBytes(uint64(math.Round(size))), ".0 ", " ", 1)
}
