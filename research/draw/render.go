package draw

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The colours of Okabe and Ito, which colour-blind people can tell apart. Lines
// are in all but yellow; with more ports than colours they are dashed.
var portColours = []string{"#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"}

var trailColours = map[kind]string{spread: "#F0E442", gather: "#56B4E9"}

// render writes the layout as SVG, from what lies lowest to what lies on top.
func render(w io.Writer, l *layout) error {
	var c canvas
	c.f(`<svg xmlns="http://www.w3.org/2000/svg" width="%v" height="%v" viewBox="0 0 %v %v" font-family="sans-serif" role="img">`, l.width, l.height, l.width, l.height)
	c.f(`<title>%v</title>`, l.summary)
	c.f(`<rect width="%v" height="%v" fill="#FFFFFF"/>`, l.width, l.height)
	c.text(l.title)
	for _, b := range l.bands {
		c.band(b)
	}
	for _, x := range l.lives {
		c.f(`<line x1="%v" y1="%v" x2="%v" y2="%v" stroke="#BBBBBB"/>`, x.x, x.top, x.x, x.bottom)
	}
	for _, t := range l.trails {
		c.trail(t.kind, t.line, t.wide)
	}
	for _, focus := range []bool{false, true} {
		for _, a := range l.arrows {
			if a.message.focus() == focus {
				c.arrow(a)
			}
		}
	}
	for _, x := range l.lives {
		c.life(x)
	}
	c.texts(l.labels)
	c.texts(l.sides)
	for _, s := range l.legend {
		c.sample(s)
	}
	c.texts(l.notes)
	c.f(`</svg>`)
	_, err := w.Write(c.Bytes())
	return err
}

// canvas collects lines of SVG.
type canvas struct{ bytes.Buffer }

// f writes a line. Numbers are rounded to tenths and strings escaped; markup
// belongs in the format.
func (c *canvas) f(format string, args ...any) {
	for i, a := range args {
		switch a := a.(type) {
		case float64:
			args[i] = number(a)
		case string:
			args[i] = escape(a)
		}
	}
	fmt.Fprintf(c, format, args...)
	c.WriteByte('\n')
}

func number(x float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0")
}

func escape(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s)) // a Builder returns no errors
	return b.String()
}

func (c *canvas) band(b band) {
	fill := "#FFFFFF"
	if b.shaded {
		fill = "#F2F2F2"
	}
	c.f(`<rect class="round" x="%v" y="%v" width="%v" height="%v" fill="%v"/>`, b.x, b.y, b.width, b.height, fill)
	c.texts(b.texts)
}

func (c *canvas) life(l life) {
	for _, y := range []float64{l.top, l.bottom} {
		c.f(`<circle cx="%v" cy="%v" r="%v" fill="#FFFFFF" stroke="#333333"/>`, l.x, y, radius)
	}
	c.texts(l.texts)
}

func (c *canvas) trail(k kind, s segment, wide bool) {
	width := 5
	if wide {
		width = 9
	}
	c.f(`<line class="%v" x1="%v" y1="%v" x2="%v" y2="%v" stroke="%v" stroke-width="%v" stroke-opacity="0.75" stroke-linecap="round"/>`,
		string(k), s.from.x, s.from.y, s.to.x, s.to.y, trailColours[k], width)
}

func (c *canvas) arrow(a arrow) {
	width, opacity := 1.0, 0.5
	if a.message.focus() {
		width, opacity = 2, 1
	}
	m := a.message
	c.f(`<g class="message" data-round="%v" data-port="%v" data-from="%v" data-to="%v" opacity="%v">`, m.round, m.port, m.src, m.dst, opacity)
	c.f(`<title>%v</title>`, m.full())
	for i, s := range a.pieces {
		if i == len(a.pieces)-1 {
			s = c.head(s, m.port, width)
		}
		c.stroke(s, m.port, width)
	}
	c.f(`</g>`)
}

func (c *canvas) stroke(s segment, port int, width float64) {
	c.WriteString("<line")
	if n := port / len(portColours); n > 0 {
		c.attribute("stroke-dasharray", fmt.Sprintf("%d 3", 2+3*n))
	}
	c.f(` x1="%v" y1="%v" x2="%v" y2="%v" stroke="%v" stroke-width="%v"/>`,
		s.from.x, s.from.y, s.to.x, s.to.y, colour(port), width)
}

// head draws the head of an arrow and returns what remains of its line.
func (c *canvas) head(s segment, port int, width float64) segment {
	long, half := 5+2*width, 1.5+1.2*width
	base := s.shorter(long)
	left, right := segment{base.to, s.to}.shift(half).from, segment{base.to, s.to}.shift(-half).from
	c.f(`<path d="M%v %vL%v %vL%v %vZ" fill="%v"/>`, s.to.x, s.to.y, left.x, left.y, right.x, right.y, colour(port))
	return base
}

func colour(port int) string { return portColours[port%len(portColours)] }

func (c *canvas) texts(list []text) {
	for _, t := range list {
		c.text(t)
	}
}

func (c *canvas) text(t text) {
	if t.text == "" {
		return
	}
	c.WriteString("<text")
	c.attribute("text-anchor", t.anchor)
	c.attribute("fill", t.colour)
	if t.bold {
		c.attribute("font-weight", "bold")
	}
	if t.halo {
		c.WriteString(` class="label" stroke="#FFFFFF" stroke-width="3" stroke-linejoin="round" paint-order="stroke"`)
	}
	c.f(` x="%v" y="%v" font-size="%v">%v</text>`, t.at.x, t.at.y, t.size, t.text)
}

// attribute writes an attribute unless it has its default.
func (c *canvas) attribute(name, value string) {
	if value != "" {
		fmt.Fprintf(c, ` %s="%s"`, name, escape(value))
	}
}

func (c *canvas) sample(s sample) {
	if s.kind != "" {
		c.trail(s.kind, s.line, true)
	} else {
		c.stroke(c.head(s.line, s.port, 1.5), s.port, 1.5)
	}
	c.text(s.text)
}
