package plot

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// SVG writes the chart as a vector drawing, in which text is text.
func SVG(w io.Writer, c Chart) error {
	f, err := arrange(c)
	if err != nil {
		return err
	}
	canvas := vgsvg.New(f.width, f.height)
	f.draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	_, err = w.Write(finish(b.Bytes(), c.Title))
	return err
}

// finish gives the drawing a title for those who cannot see it, and names the fonts to
// use where the one that it is measured for is missing: Arial is as wide.
func finish(svg []byte, title string) []byte {
	family := fmt.Sprintf("font-family:%s %s;", sans.Typeface, sans.Variant)
	svg = bytes.ReplaceAll(svg, []byte(family), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"))
	head := bytes.Index(svg, []byte("<svg"))
	end := head + bytes.IndexByte(svg[head:], '>') + 1
	return bytes.Join([][]byte{svg[:end], []byte("\n<title>" + html.EscapeString(title) + "</title>"), svg[end:]}, nil)
}

// PNG writes the chart as an image at twice the resolution of a screen of 96 dots
// per inch.
func PNG(w io.Writer, c Chart) error {
	f, err := arrange(c)
	if err != nil {
		return err
	}
	canvas := vgimg.NewWith(vgimg.UseWH(f.width, f.height), vgimg.UseDPI(2*vgimg.DefaultDPI))
	f.draw(draw.New(canvas))
	_, err = vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

// Sizes of a drawing.
const (
	width       = 7.5 * vg.Inch
	height      = 4.4 * vg.Inch
	margin      = 8 * vg.Length(1)
	gap         = 12 * vg.Length(1) // between the plot and its legend
	thumbnail   = 34 * vg.Length(1)
	lineSpacing = 1.3
)

var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

// style returns the style of a text.
func style(size vg.Length, bold bool) text.Style {
	f := font.From(sans, size)
	if bold {
		f.Weight = 3 // of golang.org/x/image/font
	}
	return text.Style{Color: ink, Font: f, Handler: plot.DefaultTextHandler}
}

// A figure is a chart whose parts have their places.
type figure struct {
	chart         Chart
	plot          *plot.Plot
	legend        plot.Legend
	legendWidth   vg.Length
	width, height vg.Length
}

func arrange(c Chart) (*figure, error) {
	p := plot.New()
	for i, axis := range []*plot.Axis{&p.X, &p.Y} {
		of := []Axis{c.X, c.Y}[i]
		axis.Label.Text = of.Label
		axis.Label.TextStyle.Font = font.From(sans, 10)
		axis.Label.TextStyle.Color = ink
		axis.Label.Padding = 4
		axis.Tick.Label.Font = font.From(sans, 9)
		axis.Tick.Label.Color = ink
		axis.Tick.Length = 5
		axis.Padding = 0
		axis.Tick.Marker = ticker(of)
		if of.Log {
			axis.Scale = plot.LogScale{}
		}
	}
	grid := plotter.NewGrid()
	grid.Horizontal = draw.LineStyle{Color: faint, Width: 0.5}
	grid.Vertical = grid.Horizontal
	p.Add(grid)

	f := &figure{chart: c, plot: p, legend: plot.NewLegend(), width: width, height: height}
	f.legend.TextStyle = style(9, false)
	f.legend.Top, f.legend.Left = true, true
	f.legend.ThumbnailWidth = thumbnail
	f.legend.Padding = 4
	f.legend.YPosition = draw.PosCenter
	empty := true
	var lines []*line
	for i, s := range c.Series {
		l := newLine(s, i, c.X, c.Y)
		if len(l.points) == 0 {
			continue
		}
		empty = false
		lines = append(lines, l)
		f.legend.Add(s.Name, l)
	}
	if empty {
		return nil, ErrEmpty
	}
	for _, l := range lines {
		p.Add(l)
	}
	widen(&p.X, c.X, false)
	widen(&p.Y, c.Y, true)
	if len(c.Marks) > 0 {
		p.Add(marks(c.Marks))
	}
	r := f.legend.Rectangle(draw.NewCanvas(nil, 0, 0))
	// Where the font is missing another one may be wider.
	f.legendWidth = thumbnail + (r.Size().X-thumbnail)*1.18
	// Where there are many series the drawing is higher.
	f.height = max(f.height, r.Size().Y+f.headHeight()+2*margin)
	return f, nil
}

// widen keeps the data off the ends of an axis, and an axis of one value from having
// no length. Only the y axis needs room at both ends.
func widen(a *plot.Axis, of Axis, room bool) {
	switch {
	case of.Log && a.Min == a.Max:
		a.Min, a.Max = a.Min/2, a.Max*2
	case of.Log && room:
		by := math.Pow(a.Max/a.Min, 0.04)
		a.Min, a.Max = a.Min/by, a.Max*by
	case a.Min == a.Max:
		a.Min, a.Max = a.Min-1, a.Max+1
	case room:
		by := (a.Max - a.Min) * 0.04
		a.Min, a.Max = a.Min-by, a.Max+by
	}
}

// headHeight is that of the titles.
func (f *figure) headHeight() vg.Length {
	h := vg.Length(0)
	if f.chart.Title != "" {
		h += 13 * lineSpacing
	}
	if f.chart.Subtitle != "" {
		h += 9 * lineSpacing * vg.Length(len(f.plot.TextHandler.Lines(f.chart.Subtitle)))
	}
	return h + 6
}

func (f *figure) draw(c draw.Canvas) {
	c.SetColor(paper)
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, margin, -margin, margin, -margin)
	y := c.Max.Y
	put := func(s text.Style, line string) {
		s.YAlign = draw.YTop
		c.FillText(s, vg.Point{X: c.Min.X, Y: y}, line)
		y -= s.Font.Size * lineSpacing
	}
	if f.chart.Title != "" {
		put(style(13, true), f.chart.Title)
	}
	if f.chart.Subtitle != "" {
		for _, line := range f.plot.TextHandler.Lines(f.chart.Subtitle) {
			put(style(9, false), line)
		}
	}
	c.Max.Y -= f.headHeight()
	f.plot.BackgroundColor = nil
	f.plot.Draw(draw.Crop(c, 0, -(f.legendWidth + gap), 0, 0))
	f.legend.Draw(draw.Crop(c, c.Size().X-f.legendWidth, 0, 0, 0))
}
