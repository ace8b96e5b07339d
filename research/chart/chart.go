// Package chart draws costs against anything, and matrices, as pictures for papers and talks.
package chart

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"volley/internal/draw"
)

// Where the point of a text is in it.
const (
	start  = 0.0
	middle = 0.5
	end    = 1.0
)

func xy(x, y float64) draw.Point { return draw.Point{X: x, Y: y} }

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
	low, high float64 // values, of a log axis their logarithms to base 2
	from, to  float64 // where they are
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

func (s *scale) at(v float64) float64 {
	return s.from + (s.value(v)-s.low)/(s.high-s.low)*(s.to-s.from)
}

// widen keeps the data off the ends of an axis by a share of it, and an axis of one value from having no length.
func (s *scale) widen(share float64) {
	by := share * (s.high - s.low)
	if s.low == s.high {
		by = 1
	}
	s.low, s.high = s.low-by, s.high+by
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
		every := math.Ceil((s.high - s.low) / mostTicks)
		for e := math.Floor(s.low); e <= math.Ceil(s.high); e++ {
			add(math.Exp2(e), math.Mod(e, every) == 0)
		}
	default:
		every := math.Ceil(decades / mostTicks)
		for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
			add(math.Pow(10, e), math.Mod(e, every) == 0)
			for m := 2.0; m < 10 && every == 1; m++ {
				add(m*math.Pow(10, e), decades <= 1 || decades <= 3 && (m == 2 || m == 5))
			}
		}
	}
	return list
}

// Picture draws the chart. The error is [ErrEmpty].
func (c Chart) Picture() (*draw.Picture, error) {
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
			list, names = append(list, s), max(names, draw.Width(s.Name, draw.FontText))
		}
	}
	if len(list) == 0 {
		return nil, ErrEmpty
	}
	x.widen(0)
	y.widen(0.04)
	p := &draw.Picture{Title: c.Title, Width: chartWidth}
	p.Text(draw.Margin, draw.Margin+draw.FontTitle-2, start, draw.FontTitle, draw.Ink, c.Title)
	top := p.Lines(draw.Margin, draw.Margin+draw.FontTitle+draw.FontText+6, chartWidth-2*draw.Margin, strings.Split(c.Subtitle, "\n")...) - draw.FontText + 6
	legend := chartWidth - draw.Margin - thumbnail - names - 8
	p.Height = max(chartHeight, top+draw.FontText+20*float64(len(list))+draw.Margin)
	labels := 0.0
	for _, t := range y.ticks() {
		labels = max(labels, draw.Width(t.label, draw.FontText))
	}
	x.from, x.to = draw.Margin+labels+10, legend-24
	y.from, y.to = p.Height-draw.Margin-2*draw.FontText-16, top+draw.FontText+12
	p.Text(draw.Margin, top+draw.FontText-2, start, draw.FontText, draw.Ink, c.Y.Label)
	p.Text((x.from+x.to)/2, p.Height-draw.Margin, middle, draw.FontText, draw.Ink, c.X.Label)
	for _, t := range x.ticks() {
		at := x.at(t.value)
		tickOn(p, t, xy(at, y.to), xy(at, y.from), xy(at, y.from+5))
		p.Text(at, y.from+8+draw.FontText, middle, draw.FontText, draw.Ink, t.label)
	}
	for _, t := range y.ticks() {
		at := y.at(t.value)
		tickOn(p, t, xy(x.to, at), xy(x.from, at), xy(x.from-5, at))
		p.Text(x.from-9, at+4, end, draw.FontText, draw.Ink, t.label)
	}
	p.Line(draw.Ink, 0.7, xy(x.from, y.to), xy(x.from, y.from), xy(x.to, y.from))
	for i, s := range list {
		var all []draw.Point
		for _, q := range s.Points {
			all = append(all, xy(x.at(q.X), y.at(q.Y)))
		}
		at := top + draw.FontText + 20*float64(i)
		p.Text(legend+thumbnail+8, at+4, start, draw.FontText, draw.Ink, s.Name)
		s.draw(p, all, []draw.Point{xy(legend, at), xy(legend+thumbnail, at)})
		// Lines that lie on each other have their markers in different places.
		every := 1
		if len(all) > mostMarked && !s.Scattered {
			every = len(all) / 8
		}
		for n, q := range append(all, xy(legend+thumbnail/2, at)) {
			if n%every == i%every || n == len(all) {
				s.mark(p, i, q)
			}
		}
	}
	return p, nil
}

// tickOn draws a tick from an axis outwards, and for those with labels a line of the grid across.
func tickOn(p *draw.Picture, t tick, across, axis, outwards draw.Point) {
	if t.label != "" {
		p.Line(0xE2E2E2, 0.7, across, axis)
	}
	p.Line(draw.Ink, 0.7, axis, outwards)
}

// draw draws the lines of a series.
func (s Series) draw(p *draw.Picture, pieces ...[]draw.Point) {
	if s.Scattered {
		return
	}
	colour, width, dashed := colours[s.Colour%len(colours)], 1.9, dashes[0]
	if s.Dashes > 0 {
		dashed = dashes[1+(s.Dashes-1)%(len(dashes)-1)]
	}
	if s.Reference {
		colour, width = draw.Ink, 1.2
	}
	p.Stroke(colour, width, dashed, pieces...)
}

// mark draws a marker of a series: a polygon, and a cross for points of a reference, which has no others.
func (s Series) mark(p *draw.Picture, order int, at draw.Point) {
	if s.Reference {
		if s.Scattered {
			p.Line(draw.Ink, 1.2, xy(at.X-3, at.Y), xy(at.X+3, at.Y))
			p.Line(draw.Ink, 1.2, xy(at.X, at.Y-3), xy(at.X, at.Y+3))
		}
		return
	}
	var corners []draw.Point
	turn := []float64{0, 0.5}[order/4%2]
	sides := []int{24, 4, 3, 5}[order%4]
	for i := range sides {
		sin, cos := math.Sincos(2*math.Pi*(float64(i)+turn)/float64(sides) + math.Pi/2)
		corners = append(corners, xy(at.X+3.8*cos, at.Y-3.8*sin))
	}
	p.Fill(colours[s.Colour%len(colours)], corners...)
}
