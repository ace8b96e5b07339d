// Package draw makes pictures for papers and talks: of schedules, of costs and of matrices.
//
// A picture is a list of shapes with their places in units of CSS, of which 96 are an inch; y goes down.
// Each format is written from that list.
package draw

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"io"
	"math"
	"strings"
	"time"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"volley/internal/printable"
)

// Formats are the formats of [Picture.Write]. Tex is a tikzpicture, for \input in a document that loads package tikz.
var Formats = []string{"svg", "png", "pdf", "tex"}

// A Picture is a drawing whose parts have their places.
type Picture struct {
	title         string
	notes         []string // for who reads the file and cannot see them
	width, height float64
	shapes        []shape
}

type point struct{ x, y float64 }

// A shape is a text, circles, lines, or areas.
type shape struct {
	paths  [][]point // the text begins at the first point of all, and the circles are around first points
	colour uint32    // 0xRRGGBB
	width  float64   // of lines; an area has none
	dashes []float64
	radius float64
	text   string
	size   float64 // of the font
	anchor float64 // of the text: where in it its place is kept in another font
	math   bool    // the text is a formula
}

const (
	sans      = "Liberation Sans"
	margin    = 16.0
	fontTitle = 16.0
	fontText  = 12.0
	fontLabel = 10.0
	ink       = 0x1A1A1A
	white     = 0xFFFFFF
)

var liberation, _ = opentype.Parse(liberationsansregular.TTF)

func face(size float64) font.Face {
	return font.Face{Font: font.Font{Typeface: sans, Size: vg.Length(size) * unit}, Face: liberation}
}

// unit is a unit of a picture.
const unit = vg.Inch / 96

// width returns the width of a text.
func width(text string, size float64) float64 {
	f := face(size)
	return float64(f.Width(text) / unit)
}

func (p *Picture) line(colour uint32, width float64, points ...point) {
	p.shapes = append(p.shapes, shape{paths: [][]point{points}, colour: colour, width: width})
}

func (p *Picture) fill(colour uint32, points ...point) {
	p.shapes = append(p.shapes, shape{paths: [][]point{points}, colour: colour})
}

// A box is a rectangle, such as a text covers.
type box struct{ left, top, right, bottom float64 }

func (b box) corners() []point {
	return []point{{b.left, b.top}, {b.right, b.top}, {b.right, b.bottom}, {b.left, b.bottom}}
}

func (b box) overlaps(o box) bool {
	return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
}

// Where the point of a text is in it.
const (
	start  = 0.0
	middle = 0.5
	end    = 1.0
)

// covers returns what a text covers whose baseline is at y.
func covers(x, y, anchor, size float64, text string) box {
	w := width(text, size)
	return box{x - anchor*w, y - 0.8*size, x + (1-anchor)*w, y + 0.2*size}
}

func (p *Picture) text(x, y, anchor, size float64, colour uint32, text string) {
	if text = printable.Text(text); text != "" {
		place := point{covers(x, y, anchor, size, text).left, y}
		p.shapes = append(p.shapes, shape{paths: [][]point{{place}}, colour: colour, size: size, anchor: anchor, text: text})
	}
}

// lines writes lines of text below each other, broken where they are too wide, and returns where the next one comes.
func (p *Picture) lines(x, y, width float64, lines ...string) float64 {
	for _, line := range lines {
		for _, part := range wrap(strings.SplitAfter(line, " "), width, fontText) {
			p.text(x, y, start, fontText, ink, part)
			y += 16
		}
	}
	return y
}

// Write writes the picture. The same picture has the same bytes.
func (p *Picture) Write(w io.Writer, format string) error {
	wide, high := vg.Length(p.width)*unit, vg.Length(p.height)*unit
	switch format {
	case "pdf":
		return p.pdf(w)
	case "tex":
		return p.tikz(w)
	case "png":
		dpi := 192
		if p.width*p.height > 12e6 { // the image takes 16 bytes of memory for each, and is copied once
			dpi = 96
		}
		canvas := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(wide, high), vgimg.UseDPI(dpi))}
		p.paint(canvas)
		_, err := canvas.WriteTo(w)
		return err
	}
	canvas := vgsvg.New(wide, high)
	p.paint(canvas)
	var b bytes.Buffer
	canvas.WriteTo(&b) // a Buffer returns no errors
	// The title is for people who cannot see the picture. Where the font is missing, texts keep their widths.
	var desc string
	if len(p.notes) > 0 {
		desc = "\n<desc>" + html.EscapeString(strings.Join(p.notes, "\n")) + "</desc>"
	}
	text := strings.Replace(b.String(), "xlink\">", "xlink\" role=\"img\">\n<title>"+html.EscapeString(printable.Text(p.title))+"</title>"+desc, 1)
	text = strings.ReplaceAll(text, "font-family:"+sans+";", "font-family:'"+sans+"',Arial,Helvetica,sans-serif;")
	for _, s := range p.painted() {
		if s.text != "" {
			head, after, _ := strings.Cut(text, "<text x")
			if _, err := fmt.Fprintf(w, `%s<text textLength="%.1f" lengthAdjust="spacingAndGlyphs" x`, head, 0.75*width(s.text, s.size)); err != nil {
				return err
			}
			text = after
		}
	}
	_, err := io.WriteString(w, text)
	return err
}

func (p *Picture) paint(c vg.Canvas) {
	convert := func(q point) vg.Point { return vg.Point{X: vg.Length(q.x) * unit, Y: vg.Length(p.height-q.y) * unit} }
	background := shape{paths: [][]point{box{right: p.width, bottom: p.height}.corners()}, colour: white}
	for _, s := range append([]shape{background}, p.painted()...) {
		c.SetColor(color.NRGBA{byte(s.colour >> 16), byte(s.colour >> 8), byte(s.colour), 255})
		if s.text != "" {
			c.FillString(face(s.size), convert(s.paths[0][0]), s.text)
			continue
		}
		var path vg.Path
		for _, points := range s.paths {
			first := convert(points[0])
			path.Move(vg.Point{X: first.X + vg.Length(s.radius)*unit, Y: first.Y})
			if s.radius > 0 {
				path.Arc(first, vg.Length(s.radius)*unit, 0, 2*math.Pi)
			}
			for _, q := range points[1:] {
				path.Line(convert(q))
			}
		}
		if s.width == 0 {
			c.Fill(path)
			continue
		}
		var dashes []vg.Length
		for _, d := range s.dashes {
			dashes = append(dashes, vg.Length(d)*unit)
		}
		c.SetLineWidth(vg.Length(s.width) * unit)
		c.SetLineDash(dashes, 0)
		c.Stroke(path)
	}
}

// pdf writes the picture as a page of its size. It is not by vgpdf, which knows the letters of one code page only,
// embeds the whole font, and needs a place for temporary files.
func (p *Picture) pdf(w io.Writer) error {
	const points = 72.0 / 96
	doc := fpdf.NewCustom(&fpdf.InitType{UnitStr: "pt", Size: fpdf.SizeType{Wd: points * p.width, Ht: points * p.height}})
	doc.SetCreationDate(time.Unix(0, 0).UTC())
	doc.SetModificationDate(time.Unix(0, 0).UTC())
	doc.SetCatalogSort(true)
	doc.SetTitle(p.title, true)
	doc.AddUTF8FontFromBytes(sans, "", liberationsansregular.TTF)
	doc.AddPage()
	for _, s := range p.painted() {
		r, g, b := int(s.colour>>16), int(s.colour>>8&0xFF), int(s.colour&0xFF)
		doc.SetFillColor(r, g, b)
		doc.SetDrawColor(r, g, b)
		doc.SetTextColor(r, g, b)
		doc.SetLineWidth(points * s.width)
		var dashes []float64
		for _, d := range s.dashes {
			dashes = append(dashes, points*d)
		}
		doc.SetDashPattern(dashes, 0)
		style := "D"
		if s.width == 0 {
			style = "F"
		}
		for _, path := range s.paths {
			x, y := points*path[0].x, points*path[0].y
			switch {
			case s.text != "":
				doc.SetFont(sans, "", points*s.size)
				doc.Text(x, y, s.text)
			case s.radius > 0:
				doc.Circle(x, y, points*s.radius, style)
			default:
				doc.MoveTo(x, y)
				for _, q := range path[1:] {
					doc.LineTo(points*q.x, points*q.y)
				}
				doc.DrawPath(style)
			}
		}
	}
	return doc.Output(w)
}
