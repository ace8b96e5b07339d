package plot

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"unicode"

	xfont "golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
	"gonum.org/v1/plot/vg/vgtex"
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

// PDF writes the chart as a page of its size, with its fonts. Text can be searched where it is ASCII, and not bold.
func PDF(w io.Writer, c Chart) error {
	f, err := arrange(c)
	if err != nil {
		return err
	}
	return WritePDF(w, f.width, f.height, f.draw)
}

// WritePDF writes what paint draws as a page of that size.
func WritePDF(w io.Writer, width, height vg.Length, paint func(draw.Canvas)) error {
	canvas := vgpdf.New(width, height)
	paint(draw.New(pdfCanvas{canvas}))
	_, err := canvas.WriteTo(w)
	return err
}

// A pdfCanvas draws text that vgpdf cannot write.
type pdfCanvas struct{ *vgpdf.Canvas }

// FillString draws the outlines of text that is bold or not ASCII, such as β: vgpdf does not find a bold font, and writes
// a code page without β.
func (c pdfCanvas) FillString(f font.Face, at vg.Point, text string) {
	if f.Font.Weight != xfont.WeightBold && !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
		c.Canvas.FillString(f, at, text)
		return
	}
	var glyphs sfnt.Buffer
	var path vg.Path
	unit := f.Font.Size / vg.Length(f.Face.UnitsPerEm())
	em := fixed.Int26_6(f.Face.UnitsPerEm()) // lengths are in units of the font
	for _, r := range text {
		glyph, _ := f.Face.GlyphIndex(&glyphs, r) // or 0, which shows that there is none
		segments, _ := f.Face.LoadGlyph(&glyphs, glyph, em, nil)
		point := func(p fixed.Point26_6) vg.Point {
			return vg.Point{X: at.X + vg.Length(p.X)*unit, Y: at.Y - vg.Length(p.Y)*unit}
		}
		for _, s := range segments {
			switch s.Op {
			case sfnt.SegmentOpMoveTo:
				path.Move(point(s.Args[0]))
			case sfnt.SegmentOpLineTo:
				path.Line(point(s.Args[0]))
			case sfnt.SegmentOpQuadTo:
				path.QuadTo(point(s.Args[0]), point(s.Args[1]))
			case sfnt.SegmentOpCubeTo:
				path.CubeTo(point(s.Args[0]), point(s.Args[1]), point(s.Args[2]))
			}
		}
		advance, _ := f.Face.GlyphAdvance(&glyphs, glyph, em, xfont.HintingNone)
		at.X += vg.Length(advance) * unit
	}
	c.Fill(path)
}

// TeX writes the chart as a pgfpicture, for \input in a document of LaTeX that loads package pgf. Its text is in the
// document's font.
func TeX(w io.Writer, c Chart) error {
	f, err := arrange(c)
	if err != nil {
		return err
	}
	return WriteTeX(w, f.width, f.height, f.draw)
}

// WriteTeX writes what paint draws as a pgfpicture of that size.
func WriteTeX(w io.Writer, width, height vg.Length, paint func(draw.Canvas)) error {
	canvas := vgtex.New(width, height)
	paint(draw.New(texCanvas{canvas}))
	_, err := canvas.WriteTo(w)
	return err
}

// A texCanvas escapes text, which vgtex does not.
type texCanvas struct{ *vgtex.Canvas }

var texEscapes = strings.NewReplacer(`\`, `\textbackslash{}`, `~`, `\textasciitilde{}`, `^`, `\textasciicircum{}`,
	`{`, `\{`, `}`, `\}`, `$`, `\$`, `&`, `\&`, `%`, `\%`, `#`, `\#`, `_`, `\_`, `<`, `\ensuremath{<}`, `>`, `\ensuremath{>}`,
	`β`, `\ensuremath{\beta}`, `γ`, `\ensuremath{\gamma}`, `τ`, `\ensuremath{\tau}`, `µ`, `\ensuremath{\mu}`,
	`≤`, `\ensuremath{\le}`, `·`, `\ensuremath{\cdot}`)

// FillString puts the middle of the text where that of what is read is: vgtex goes by the width of what is written.
func (c texCanvas) FillString(f font.Face, at vg.Point, text string) {
	escaped := texEscapes.Replace(text)
	at.X += (f.Width(text) - f.Width(escaped)) / 2
	c.Canvas.FillString(f, at, escaped)
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
		f.Weight = xfont.WeightBold
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
