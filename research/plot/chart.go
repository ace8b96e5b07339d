// Package plot draws charts of costs, such as a paper could print, as SVG and PNG.
//
// Series differ in colour, dashes and markers, so that they can be told apart without
// colour: the colours are those of Okabe and Ito, made for eyes of all kinds.
package plot

import "errors"

// A Chart is what to draw.
type Chart struct {
	Title    string
	Subtitle string // one line for each line of it
	X, Y     Axis
	Series   []Series // the first ones of the legend first
	Marks    []Mark
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
	Points    []Point // in order; NaN is a gap
	Reference bool    // a bound to compare the others with: thin and black
	Scattered bool    // no line
	Colour    int     // which of the colours, from 0
	Dashes    int     // which of the dashes, from 0; 0 is a line without
}

// A Point is a point in the units of the axes.
type Point struct{ X, Y float64 }

// A Mark points out a place on the x axis: a dotted line down from a ring, with a
// label.
type Mark struct {
	Point
	Label string
}

// ErrEmpty is the error of a chart without a point.
var ErrEmpty = errors.New("plot: no point to draw")
