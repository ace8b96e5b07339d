package plot

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

var (
	ink   = color.RGBA{0x1a, 0x1a, 0x1a, 0xff}
	faint = color.RGBA{0xe2, 0xe2, 0xe2, 0xff}
	paper = color.White
)

// colours are those of M. Okabe and K. Ito, "Color Universal Design", without black,
// which is for references, and yellow, which is too pale for lines.
var colours = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, // blue
	{0xd5, 0x5e, 0x00, 0xff}, // vermilion
	{0x00, 0x9e, 0x73, 0xff}, // bluish green
	{0xcc, 0x79, 0xa7, 0xff}, // reddish purple
	{0xe6, 0x9f, 0x00, 0xff}, // orange
	{0x56, 0xb4, 0xe9, 0xff}, // sky blue
	{0x77, 0x77, 0x77, 0xff}, // grey
}

// dashes are those of lines but the first.
var dashes = [][]vg.Length{
	{7, 3},
	{2, 2},
	{9, 2, 2, 2},
	{4, 2},
	{9, 2, 2, 2, 2, 2},
}

var shapes = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.SquareGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{},
	draw.TriangleGlyph{}, draw.CrossGlyph{}, draw.RingGlyph{}, draw.PlusGlyph{},
}

// A line is a series as it is drawn.
type line struct {
	points    []Point // finite, and positive where the axis is logarithmic; NaN is a gap
	style     draw.LineStyle
	glyph     draw.GlyphStyle
	scattered bool
	order     int // among all series
}

// newLine leaves out what its axes cannot show; it has no points where that is all.
func newLine(s Series, order int, x, y Axis) *line {
	l := &line{scattered: s.Scattered, order: order}
	shows := func(v float64, a Axis) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) && (v > 0 || !a.Log) }
	for _, p := range s.Points {
		switch {
		case shows(p.X, x) && shows(p.Y, y):
			l.points = append(l.points, p)
		case len(l.points) > 0 && !math.IsNaN(l.points[len(l.points)-1].Y):
			l.points = append(l.points, Point{math.NaN(), math.NaN()})
		}
	}
	c := colours[s.Colour%len(colours)]
	l.style = draw.LineStyle{Color: c, Width: 1.4}
	if s.Dashes > 0 {
		l.style.Dashes = dashes[(s.Dashes-1)%len(dashes)]
	}
	l.glyph = draw.GlyphStyle{Color: c, Radius: 2.7, Shape: shapes[order%len(shapes)]}
	if s.Reference {
		l.style.Color, l.style.Width = ink, 0.9
		l.glyph = draw.GlyphStyle{Color: ink, Radius: 2.5}
		if s.Scattered {
			l.glyph.Shape = draw.PlusGlyph{}
		}
	}
	return l
}

// DataRange returns the range of the points.
func (l *line) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin, ymin, xmax, ymax = math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, p := range l.points {
		if !math.IsNaN(p.X) {
			xmin, xmax, ymin, ymax = min(xmin, p.X), max(xmax, p.X), min(ymin, p.Y), max(ymax, p.Y)
		}
	}
	return xmin, xmax, ymin, ymax
}

// Lines with more points than this have markers in this many places.
const (
	allMarked = 20
	someMarks = 8
)

// Plot draws the line and its markers.
func (l *line) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var pieces [][]vg.Point
	var all []vg.Point
	open := false
	for _, q := range l.points {
		if math.IsNaN(q.X) {
			open = false
			continue
		}
		at := vg.Point{X: x(q.X), Y: y(q.Y)}
		if !open {
			pieces = append(pieces, nil)
			open = true
		}
		pieces[len(pieces)-1] = append(pieces[len(pieces)-1], at)
		all = append(all, at)
	}
	if !l.scattered {
		for _, piece := range pieces {
			if len(piece) > 1 {
				c.StrokeLines(l.style, c.ClipLinesXY(piece)...)
			}
		}
	}
	every := c.Size().X / someMarks
	next := c.Min.X
	if len(all) > allMarked && !l.scattered {
		// Lines that lie on each other have their markers in different places.
		next += every * vg.Length(math.Mod(0.5+float64(l.order)*0.381966, 1))
	} else {
		every = 0
	}
	for _, at := range all {
		if every == 0 || at.X >= next {
			c.DrawGlyph(l.glyph, at)
			for every > 0 && next <= at.X {
				next += every
			}
		}
	}
}

// Thumbnail draws the line and a marker for the legend.
func (l *line) Thumbnail(c *draw.Canvas) {
	at := c.Center()
	if !l.scattered {
		c.StrokeLine2(l.style, c.Min.X, at.Y, c.Max.X, at.Y)
	}
	c.DrawGlyphNoClip(l.glyph, at)
}

// marks draws marks with their labels at the foot, in rows so that they do not touch.
type marks []Mark

func (list marks) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	label := style(8, false)
	line := draw.LineStyle{Color: ink, Width: 0.6, Dashes: []vg.Length{1, 2}}
	ring := draw.GlyphStyle{Color: ink, Radius: 4, Shape: draw.RingGlyph{}}
	var rows []vg.Length // where each row of labels ends
	for _, m := range list {
		at := vg.Point{X: x(m.X), Y: y(m.Y)}
		if !c.Contains(at) {
			continue
		}
		c.StrokeLine2(line, at.X, c.Min.Y, at.X, at.Y)
		c.DrawGlyph(ring, at)
		size := label.Rectangle(m.Label).Size().X
		left := at.X + 2
		if left+size > c.Max.X {
			left = at.X - 2 - size
		}
		row := 0
		for row < len(rows) && left < rows[row]+4 {
			row++
		}
		if row == len(rows) {
			rows = append(rows, 0)
		}
		rows[row] = left + size
		c.FillText(label, vg.Point{X: left, Y: c.Min.Y + 3 + vg.Length(row)*10}, m.Label)
	}
}
