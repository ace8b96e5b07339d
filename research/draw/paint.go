package draw

import (
	"image/color"
	"io"
	"math"
	"strconv"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"volley/plan"
)

// unit is a unit of SVG: 96 are an inch.
const unit = vg.Inch / 96

// paintTo writes a drawing of the schedule of p by a canvas of a format.
func paintTo(w io.Writer, p plan.Plan, write func(w io.Writer, width, height vg.Length, paint func(vgdraw.Canvas)) error) error {
	s, err := collect(p)
	if err != nil {
		return err
	}
	l := arrange(s)
	return write(w, vg.Length(l.width)*unit, vg.Length(l.height)*unit, func(c vgdraw.Canvas) { (&painter{c, l.height}).paint(l) })
}

// A painter paints a layout as render writes it.
type painter struct {
	vgdraw.Canvas
	height float64 // y goes up from there
}

func (c *painter) paint(l *layout) {
	c.box(0, 0, l.width, l.height, "#FFFFFF")
	c.texts(l.title)
	for _, b := range l.bands {
		if b.shaded {
			c.box(b.x, b.y, b.width, b.height, "#F2F2F2")
		}
		c.texts(b.texts...)
	}
	for _, x := range l.lives {
		c.line(segment{point{x.x, x.top}, point{x.x, x.bottom}}, "#BBBBBB", 1, 1)
	}
	for _, t := range l.trails {
		c.trail(t.kind, t.line, t.wide)
	}
	for _, focus := range []bool{false, true} {
		for _, a := range l.arrows {
			if a.message.focus() != focus {
				continue
			}
			width, opacity := 1.0, 0.5
			if focus {
				width, opacity = 2, 1
			}
			for i, s := range a.pieces {
				c.arrow(s, a.message.port, width, opacity, i == len(a.pieces)-1)
			}
		}
	}
	for _, x := range l.lives {
		for _, y := range []float64{x.top, x.bottom} {
			var circle vg.Path
			middle := c.at(point{x.x, y})
			circle.Move(vg.Point{X: middle.X + radius*unit, Y: middle.Y})
			circle.Arc(middle, radius*unit, 0, 2*math.Pi)
			circle.Close()
			c.SetColor(shade("#FFFFFF", 1))
			c.Fill(circle)
			c.SetColor(shade("#333333", 1))
			c.SetLineWidth(unit)
			c.SetLineDash(nil, 0)
			c.Stroke(circle)
		}
		c.texts(x.texts...)
	}
	c.texts(l.labels...)
	c.texts(l.sides...)
	for _, s := range l.legend {
		if s.kind != "" {
			c.trail(s.kind, s.line, true)
		} else {
			c.arrow(s.line, s.port, 1.5, 1, true)
		}
		c.texts(s.text)
	}
	c.texts(l.notes...)
}

// shade returns a colour such as #F0E442, as it is on white; none is black. Neither format takes opacity as SVG does.
func shade(name string, opacity float64) color.Color {
	rgb := uint64(0)
	if name != "" {
		rgb, _ = strconv.ParseUint(name[1:], 16, 32) // the names are ours
	}
	on := func(part uint64) uint8 { return uint8(255 - float64(255-part&0xFF)*opacity) }
	return color.NRGBA{on(rgb >> 16), on(rgb >> 8), on(rgb), 255}
}

func (c *painter) at(p point) vg.Point {
	return vg.Point{X: vg.Length(p.x) * unit, Y: vg.Length(c.height-p.y) * unit}
}

// polygon returns the path through points.
func (c *painter) polygon(points ...point) (path vg.Path) {
	path.Move(c.at(points[0]))
	for _, p := range points[1:] {
		path.Line(c.at(p))
	}
	return path
}

func (c *painter) box(x, y, width, height float64, fill string) {
	c.SetColor(shade(fill, 1))
	c.Fill(c.polygon(point{x, y}, point{x + width, y}, point{x + width, y + height}, point{x, y + height}, point{x, y}))
}

func (c *painter) line(s segment, stroke string, width, opacity float64, dashes ...vg.Length) {
	c.SetColor(shade(stroke, opacity))
	c.SetLineWidth(vg.Length(width) * unit)
	c.SetLineDash(dashes, 0)
	c.Stroke(c.polygon(s.from, s.to))
}

func (c *painter) trail(k kind, s segment, wide bool) {
	width := 5.0
	if wide {
		width = 9
	}
	c.line(s, trailColours[k], width, 0.75)
}

func (c *painter) arrow(s segment, port int, width, opacity float64, head bool) {
	if head {
		base := s.shorter(5 + 2*width)
		half := 1.5 + 1.2*width
		c.SetColor(shade(colour(port), opacity))
		c.Fill(c.polygon(s.to, segment{base.to, s.to}.shift(half).from, segment{base.to, s.to}.shift(-half).from, s.to))
		s = base
	}
	var dashes []vg.Length
	if n := port / len(portColours); n > 0 {
		dashes = []vg.Length{vg.Length(2+3*n) * unit, 3 * unit}
	}
	c.line(s, colour(port), width, opacity, dashes...)
}

// texts writes lines. A label that lies on others has a white box, as it has a halo in SVG.
func (c *painter) texts(list ...text) {
	for _, t := range list {
		if t.text == "" {
			continue
		}
		f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Length(t.size) * unit}
		if t.bold {
			f.Weight = xfont.WeightBold
		}
		face := font.DefaultCache.Lookup(f, f.Size)
		width := float64(face.Width(t.text) / unit)
		switch t.anchor {
		case "middle":
			t.at.x -= width / 2
		case "end":
			t.at.x -= width
		}
		if t.halo {
			c.box(t.at.x-1, t.at.y-0.8*t.size, width+2, t.size, "#FFFFFF")
		}
		c.SetColor(shade(t.colour, 1))
		c.FillString(face, c.at(t.at), t.text)
	}
}
