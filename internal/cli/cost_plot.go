package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"volley/algo"
	"volley/draw/plot"
	"volley/field"
	"volley/internal/selection"
	"volley/sim"
)

// plots are the values of --plot.
var plots = []string{"c1", "c2", "ratio", "time", "size", "memory", "compute"}

// draw draws a chart.
func (j *costJob) draw(w io.Writer, rows []costRow) error {
	var c plot.Chart
	switch {
	case j.sweeps():
		c = j.sizeChart(rows[0])
	case j.trades():
		c = j.tradeChart(rows[0])
	default:
		c = j.chart(rows)
	}
	c.Subtitle = j.subtitle()
	write := plot.SVG
	if j.format == "png" {
		write = plot.PNG
	}
	err := write(w, c)
	if errors.Is(err, plot.ErrEmpty) {
		return usagef("--plot %s: every value there is is 0, which has no place on its axis: want a larger K, or β or τ", j.plot)
	}
	return err
}

// subtitle says what the chart is for.
func (j *costJob) subtitle() string {
	a := "any matrix"
	if j.given {
		a = "matrix " + j.Matrix
		if j.Inverse {
			a += ", inverse"
		}
	}
	parts := []string{fmt.Sprintf("%s over %s", a, j.field.Name())}
	if list := strings.Split(j.portList, ","); len(list) > 1 {
		parts = append(parts, "p = "+strings.Join(list, ", "))
	} else {
		parts = append(parts, "p = "+j.portList)
	}
	if j.overList != "" {
		parts = append(parts, "rounds over the fewest ≤ "+j.overList)
	}
	parts = append(parts, "β = "+inUnits(j.model.Beta.Seconds()), "τ = "+inUnits(j.model.Tau))
	if j.model.Gamma > 0 {
		parts = append(parts, "γ = "+inUnits(j.model.Gamma))
	}
	if j.sweeps() || j.trades() {
		parts = append(parts, fmt.Sprintf("K = %d", j.ks[0]))
	}
	if !j.sweeps() {
		parts = append(parts, "packets of "+inBytes(float64(j.bytes)))
	}
	s := strings.Join(parts, ", ")
	if j.noise != nil {
		s += "\n" + j.describe(j.noise)
	}
	return s
}

// A bound is a series to compare with.
type bound struct {
	name      string
	scattered bool
	value     func(costRow) float64 // NaN: unknown
}

// chart draws a cost against K.
func (j *costJob) chart(rows []costRow) plot.Chart {
	k := plot.Axis{Label: "processors, K", Log: true, Binary: true}
	c := plot.Chart{X: k}
	value := func(c costed, _ costRow) float64 { return c.cost.PacketC2() }
	every := "lower bound"
	if j.given {
		every = "lower bound, every matrix"
	}
	bounds := []bound{{name: every, value: func(r costRow) float64 { return float64(r.c2) }}}
	switch j.plot {
	case "c1":
		c.Title = "Rounds against processors"
		c.Y = plot.Axis{Label: "C1, rounds", Log: true}
		value = func(c costed, _ costRow) float64 { return float64(c.cost.C1) }
		bounds[0].value = func(r costRow) float64 { return float64(r.c1) }
	case "c2":
		c.Title = "Packets against processors"
		c.Y = plot.Axis{Label: "C2, packets", Log: true}
		bounds = append(bounds, bound{name: "lower bound in the fewest rounds", scattered: true, value: func(r costRow) float64 {
			if b, ok := algo.BoundMinCut(r.k, r.used); ok && r.square {
				return float64(b)
			}
			return math.NaN()
		}})
	case "ratio":
		c.Title = "Packets over their lower bound"
		c.Y = plot.Axis{Label: "C2 / lower bound of C2"}
		value = func(c costed, r costRow) float64 { return c.cost.PacketC2() / float64(r.c2) }
		bounds[0].value = func(r costRow) float64 { return float64(r.c2) / float64(r.c2) }
	case "time":
		c.Title = "Time against processors"
		c.Y = plot.Axis{Label: "time", Log: true, Format: inUnits}
		value = func(c costed, _ costRow) float64 { return j.model.Time(c.cost).Seconds() }
		bounds[0].value = func(r costRow) float64 { return j.model.Time(sim.Cost{C1: r.c1, C2: r.c2}).Seconds() }
	}
	add := func(s plot.Series, at setting, value func(costRow) float64) {
		if name := at.name(j.settings); name != "" {
			s.Name += ", " + name
		}
		for _, r := range rows {
			if r.setting == at {
				s.Points = append(s.Points, plot.Point{X: float64(r.k), Y: value(r)})
			}
		}
		c.Series = append(c.Series, s)
	}
	of := func(a algo.Algorithm, value func(costed, costRow) float64) func(costRow) float64 {
		return func(r costRow) float64 {
			if c, ok := r.costs[a.Name]; ok {
				return value(c, r)
			}
			return math.NaN()
		}
	}
	for i, a := range j.algorithms {
		for s, at := range j.settings {
			dashes := i
			if len(j.settings) > 1 {
				dashes = s
			}
			if j.noise == nil {
				add(plot.Series{Name: a.Name, Colour: i, Dashes: dashes}, at, of(a, value))
				continue
			}
			for q, share := range []float64{0.5, 0.95} {
				name := a.Name + ", " + []string{"median", "95 %"}[q]
				add(plot.Series{Name: name, Colour: i, Dashes: 2 * q}, at, of(a, func(c costed, _ costRow) float64 {
					return c.times.Quantile(share).Seconds()
				}))
			}
		}
	}
	for _, b := range bounds {
		for s, at := range j.settings {
			if j.plot == "ratio" && s > 0 {
				break // it is the same for all
			}
			series := plot.Series{Name: b.name, Reference: true, Scattered: b.scattered, Dashes: s}
			if j.plot == "ratio" && len(j.settings) > 1 {
				at = j.settings[0]
			}
			add(series, at, b.value)
		}
	}
	if j.plot == "ratio" {
		if last := &c.Series[len(c.Series)-1]; len(j.settings) > 1 {
			last.Name = every
		}
		c.Y.Log = spread(c.Series) > 8
	}
	return c
}

// name says what is special about one of several settings.
func (s setting) name(all []setting) string {
	var parts []string
	if slices.ContainsFunc(all, func(o setting) bool { return o.ports != s.ports }) {
		parts = append(parts, fmt.Sprintf("p = %d", s.ports))
	}
	if slices.ContainsFunc(all, func(o setting) bool { return o.over != s.over }) {
		parts = append(parts, fmt.Sprintf("over = %d", s.over))
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

// A sizeRange is sizes of packets in bytes.
type sizeRange struct{ from, to int64 }

// usualSizes are those of --plot size unless --size says others.
const usualSizes = "1KiB..64MiB"

func parseSizes(s string, given bool) (sizeRange, error) {
	if !given {
		s = usualSizes
	}
	first, last, _ := strings.Cut(s, "..")
	from, errA := selection.ParseSize(first)
	to, errB := selection.ParseSize(last)
	if errA != nil || errB != nil || from < 1 || to <= from || to > 1<<50 {
		return sizeRange{}, usagef("--size %q: with --plot size want a range such as %s, up to 1PiB", s, usualSizes)
	}
	return sizeRange{from, to}, nil
}

// sizeChart draws the times of all plans against the size of a packet, and marks
// where another plan becomes the cheapest.
func (j *costJob) sizeChart(r costRow) plot.Chart {
	c := plot.Chart{
		Title: "Time against the size of a packet",
		X:     plot.Axis{Label: "size of a packet", Log: true, Binary: true, Format: inBytes},
		Y:     plot.Axis{Label: "time", Log: true, Format: inUnits},
	}
	packing := field.PackingOf(j.field)
	at := func(cost sim.Cost, size float64) float64 {
		m := j.model
		m.Symbols = packing.Symbols(int64(math.Round(size)))
		return m.Time(cost).Seconds()
	}
	const steps = 96
	sizes := make([]float64, steps+1)
	for i := range sizes {
		sizes[i] = float64(j.sizes.from) * math.Pow(float64(j.sizes.to)/float64(j.sizes.from), float64(i)/steps)
	}
	colour, before := -1, ""
	names := make([]string, len(r.plans))
	for i, p := range r.plans {
		if p.algorithm != before {
			colour, before = colour+1, p.algorithm
		}
		names[i] = fmt.Sprintf("%s %s", p.algorithm, p)
		s := plot.Series{Name: names[i], Colour: colour, Dashes: i}
		for _, size := range sizes {
			s.Points = append(s.Points, plot.Point{X: size, Y: at(p.cost, size)})
		}
		c.Series = append(c.Series, s)
	}
	cheapest := func(size float64) int {
		best := 0
		for i, p := range r.plans {
			if at(p.cost, size) < at(r.plans[best].cost, size) {
				best = i
			}
		}
		return best
	}
	var search func(a, b float64)
	search = func(a, b float64) {
		switch {
		case cheapest(a) == cheapest(b):
		case b-a <= 1 || b/a < 1.0005:
			best := cheapest(b)
			c.Marks = append(c.Marks, plot.Mark{
				Point: plot.Point{X: b, Y: at(r.plans[best].cost, b)}, Label: fmt.Sprintf("from %s: %s", inBytes(b), names[best]),
			})
		default:
			middle := math.Sqrt(a * b)
			search(a, middle)
			search(middle, b)
		}
	}
	for i := range steps {
		search(sizes[i], sizes[i+1])
	}
	return c
}

// tradeChart draws the least time of an algorithm's plans that hold no more packets,
// or do no more multiply-adds, than a limit allows.
func (j *costJob) tradeChart(r costRow) plot.Chart {
	c := plot.Chart{
		Title: "Time against the packets that a processor may hold",
		X:     plot.Axis{Label: "packets held", Log: true},
		Y:     plot.Axis{Label: "time", Log: true, Format: inUnits},
	}
	takes := func(p costed) int { return p.memory }
	if j.plot == "compute" {
		c.Title = "Time against the multiply-adds that a processor may do"
		c.X.Label = "multiply-adds per symbol"
		takes = func(p costed) int { return p.cost.PacketC3() }
	}
	most := 0
	by := map[string][]costed{}
	var names []string
	for _, p := range r.plans {
		if by[p.algorithm] == nil {
			names = append(names, p.algorithm)
		}
		by[p.algorithm] = append(by[p.algorithm], p)
		most = max(most, takes(p))
	}
	for i, name := range names {
		plans := by[name]
		slices.SortStableFunc(plans, func(a, b costed) int { return cmp.Compare(takes(a), takes(b)) })
		s := plot.Series{Name: name, Colour: i, Dashes: i}
		least := math.Inf(1)
		for _, p := range plans {
			seconds := j.model.Time(p.cost).Seconds()
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
