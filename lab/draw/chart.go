package draw

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
)

// A Chart is what to draw of numbers. Series differ in colour, dashes and markers, so that they can be told apart
// without colour.
type Chart struct {
	Title    string
	Subtitle string // one line for each line of it
	X, Y     Axis
	Series   []Series // the first ones of the legend first
}

// An Axis is one axis of a chart.
type Axis struct {
	Label  string               // with its unit
	Log    bool                 // values of 0 and less are left out
	Binary bool                 // of a log axis: ticks are powers of two, not of ten
	Format func(float64) string // of a tick; nil is a plain number
}

// A Series is a line of a chart, or points that no line joins.
type Series struct {
	Name      string
	Points    []Point // in order; NaN is left out
	Reference bool    // a bound to compare the others with: thin and black
	Scattered bool    // no line
	Colour    int     // which of the colours, from 0
	Dashes    int     // which of the dashes, from 0; 0 is a line without
}

// A Point is a point in the units of the axes.
type Point struct{ X, Y float64 }

// ErrEmpty is the error of a chart without a point.
var ErrEmpty = errors.New("no point to draw")

const (
	chartWidth  = 720.0
	chartHeight = 420.0
	thumbnail   = 46.0
	mostTicks   = 9  // with labels
	mostMarked  = 20 // points of a line which all have a marker
)

// colours are those of Okabe and Ito without yellow, which is too pale for lines.
var (
	colours = []uint32{0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7, 0xE69F00, 0x56B4E9, 0x777777}
	dashes  = [][]float64{nil, {9, 4}, {3, 3}, {12, 3, 3, 3}, {5, 3}, {12, 3, 3, 3, 3, 3}}
)

// A scale is an axis with its place.
type scale struct {
	Axis
	low, high  float64 // values, of a log axis their logarithms to base 2
	start, end float64 // where they are
}

func newScale(a Axis) *scale { return &scale{Axis: a, low: math.Inf(1), high: math.Inf(-1)} }

// value returns a value as low and high are.
func (s *scale) value(v float64) float64 {
	if s.Log {
		return math.Log2(v)
	}
	return v
}

func (s *scale) shows(v float64) bool { return !math.IsNaN(s.value(v)) && !math.IsInf(s.value(v), 0) }

func (s *scale) position(v float64) float64 {
	return s.start + (s.value(v)-s.low)/(s.high-s.low)*(s.end-s.start)
}

// widen keeps the data off the ends of an axis by a share of it, and an axis of one value from having no length.
func (s *scale) widen(share float64) {
	pad := share * (s.high - s.low)
	if s.low == s.high {
		pad = 1
	}
	s.low, s.high = s.low-pad, s.high+pad
}

// A tick is at a value of an axis; a minor one has no label.
type tick struct {
	value float64
	label string
}

func (s *scale) ticks() (list []tick) {
	low, high := s.low, s.high
	if s.Log {
		low, high = math.Exp2(low), math.Exp2(high)
	}
	add := func(v float64, labelled bool) {
		if slack := 1e-9 * (high - low); v < low-slack || v > high+slack {
			return
		}
		label := ""
		if labelled && s.Format != nil {
			label = s.Format(v)
		} else if labelled {
			label = humanize.Commaf(math.Round(v*1e9) / 1e9)
		}
		list = append(list, tick{v, label})
	}
	decades := math.Log10(high / low)
	switch {
	case !s.Log || high < 4*low: // multiples of 1, 2 or 5 times a power of ten
		step := math.Pow(10, math.Floor(math.Log10((high-low)/mostTicks)))
		for i := 0; (high-low)/step > mostTicks; i++ {
			step *= []float64{2, 2.5, 2}[i%3]
		}
		for i := math.Floor(low / step); i <= math.Ceil(high/step); i++ {
			add(i*step, true)
		}
	case s.Binary:
		stride := math.Ceil((s.high - s.low) / mostTicks)
		for e := math.Floor(s.low); e <= math.Ceil(s.high); e++ {
			add(math.Exp2(e), math.Mod(e, stride) == 0)
		}
	default:
		stride := math.Ceil(decades / mostTicks)
		for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
			add(math.Pow(10, e), math.Mod(e, stride) == 0)
			for m := 2.0; m < 10 && stride == 1; m++ {
				add(m*math.Pow(10, e), decades <= 1 || decades <= 3 && (m == 2 || m == 5))
			}
		}
	}
	return list
}

// Picture draws the chart. The error is [ErrEmpty].
func (c Chart) Picture() (*Picture, error) {
	x, y := newScale(c.X), newScale(c.Y)
	var list []Series
	names := 0.0
	for _, s := range c.Series {
		s.Points = slices.DeleteFunc(slices.Clone(s.Points), func(q Point) bool { return !x.shows(q.X) || !y.shows(q.Y) })
		for _, q := range s.Points {
			u, v := x.value(q.X), y.value(q.Y)
			x.low, x.high, y.low, y.high = min(x.low, u), max(x.high, u), min(y.low, v), max(y.high, v)
		}
		if len(s.Points) > 0 {
			list, names = append(list, s), max(names, width(s.Name, fontText))
		}
	}
	if len(list) == 0 {
		return nil, ErrEmpty
	}
	x.widen(0)
	y.widen(0.04)
	p := &Picture{title: c.Title, width: chartWidth}
	p.text(margin, margin+fontTitle-2, start, fontTitle, ink, c.Title)
	top := p.lines(margin, margin+fontTitle+fontText+6, chartWidth-2*margin, strings.Split(c.Subtitle, "\n")...) - fontText + 6
	legend := chartWidth - margin - thumbnail - names - 8
	p.height = max(chartHeight, top+fontText+20*float64(len(list))+margin)
	labels := 0.0
	for _, t := range y.ticks() {
		labels = max(labels, width(t.label, fontText))
	}
	x.start, x.end = margin+labels+10, legend-24
	y.start, y.end = p.height-margin-2*fontText-16, top+fontText+12
	p.text(margin, top+fontText-2, start, fontText, ink, c.Y.Label)
	p.text((x.start+x.end)/2, p.height-margin, middle, fontText, ink, c.X.Label)
	for _, t := range x.ticks() {
		position := x.position(t.value)
		p.tick(t, point{position, y.end}, point{position, y.start}, point{position, y.start + 5})
		p.text(position, y.start+8+fontText, middle, fontText, ink, t.label)
	}
	for _, t := range y.ticks() {
		position := y.position(t.value)
		p.tick(t, point{x.end, position}, point{x.start, position}, point{x.start - 5, position})
		p.text(x.start-9, position+4, end, fontText, ink, t.label)
	}
	p.line(ink, 0.7, point{x.start, y.end}, point{x.start, y.start}, point{x.end, y.start})
	for i, s := range list {
		var points []point
		for _, q := range s.Points {
			points = append(points, point{x.position(q.X), y.position(q.Y)})
		}
		row := top + fontText + 20*float64(i)
		p.text(legend+thumbnail+8, row+4, start, fontText, ink, s.Name)
		p.series(s, points, []point{{legend, row}, {legend + thumbnail, row}})
		// Lines that lie on each other have their markers in different places.
		stride := 1
		if len(points) > mostMarked && !s.Scattered {
			stride = len(points) / 8
		}
		for n, q := range append(points, point{legend + thumbnail/2, row}) {
			if n%stride == i%stride || n == len(points) {
				p.marker(s, i, q)
			}
		}
	}
	return p, nil
}

// tick draws a tick from an axis outwards, and for those with labels a line of the grid across.
func (p *Picture) tick(t tick, across, axis, outwards point) {
	if t.label != "" {
		p.line(0xE2E2E2, 0.7, across, axis)
	}
	p.line(ink, 0.7, axis, outwards)
}

// series draws the lines of a series.
func (p *Picture) series(s Series, pieces ...[]point) {
	if s.Scattered {
		return
	}
	line := shape{colour: colours[s.Colour%len(colours)], width: 1.9, paths: pieces}
	if s.Dashes > 0 {
		line.dashes = dashes[1+(s.Dashes-1)%(len(dashes)-1)]
	}
	if s.Reference {
		line.colour, line.width = ink, 1.2
	}
	p.shapes = append(p.shapes, line)
}

// marker draws a marker of a series: a polygon, and a cross for points of a reference, which has no others.
func (p *Picture) marker(s Series, order int, centre point) {
	if s.Reference {
		if s.Scattered {
			p.line(ink, 1.2, point{centre.x - 3, centre.y}, point{centre.x + 3, centre.y})
			p.line(ink, 1.2, point{centre.x, centre.y - 3}, point{centre.x, centre.y + 3})
		}
		return
	}
	var corners []point
	turn := []float64{0, 0.5}[order/4%2]
	sides := []int{24, 4, 3, 5}[order%4]
	for i := range sides {
		sin, cos := math.Sincos(2*math.Pi*(float64(i)+turn)/float64(sides) + math.Pi/2)
		corners = append(corners, point{centre.x + 3.8*cos, centre.y - 3.8*sin})
	}
	p.fill(colours[s.Colour%len(colours)], corners...)
}
