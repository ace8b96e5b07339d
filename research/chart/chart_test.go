package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"volley/field"
	"volley/internal/draw"
	"volley/matrix"
)

// A text is one of an SVG, and where it begins; y goes down.
type text struct {
	text              string
	x, y, width, size float64
}

// read returns the texts of a picture, by its SVG, which it reads strictly, and how many areas and lines are drawn.
func read(t *testing.T, p *draw.Picture) (texts []string, places []text, strokes []string) {
	t.Helper()
	var svg bytes.Buffer
	if err := p.Write(&svg, "svg"); err != nil {
		t.Fatal(err)
	}
	if s := svg.String(); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
		t.Error("a coordinate is no number")
	}
	d := xml.NewDecoder(&svg)
	var at *text
	for {
		token, err := d.Token()
		if err == io.EOF {
			return texts, places, strokes
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			attr := map[string]string{}
			for _, a := range token.Attr {
				attr[a.Name.Local] = a.Value
			}
			number := func(name string) float64 { x, _ := strconv.ParseFloat(attr[name], 64); return x / 0.75 } // of points
			switch token.Name.Local {
			case "text":
				_, size, _ := strings.Cut(attr["style"], "font-size:")
				n, err := strconv.ParseFloat(strings.TrimSuffix(strings.SplitN(size, ";", 2)[0], "px"), 64)
				if err != nil {
					t.Errorf("a text of style %q", attr["style"])
				}
				at = &text{x: number("x"), y: p.Height + number("y"), width: number("textLength"), size: n / 0.75}
			case "path":
				if strings.Contains(attr["style"], "fill:none") {
					strokes = append(strokes, attr["d"]+" "+attr["style"])
				}
			}
		case xml.CharData:
			s := strings.TrimSpace(string(token))
			if s != "" {
				texts = append(texts, s)
			}
			if at != nil && s != "" {
				at.text = s
				places, at = append(places, *at), nil
			}
		}
	}
}

// checkPlaces checks that texts stay apart, and inside.
func checkPlaces(t *testing.T, name string, p *draw.Picture) {
	t.Helper()
	_, places, _ := read(t, p)
	for i, a := range places {
		if a.x < 0 || a.x+a.width > p.Width || a.y-0.8*a.size < 0 || a.y+0.2*a.size > p.Height {
			t.Errorf("%s: %q is cut off at %v, %v of %v × %v", name, a.text, a.x, a.y, p.Width, p.Height)
		}
		if slices.ContainsFunc(places[:i], func(b text) bool {
			return a.x < b.x+b.width && b.x < a.x+a.width && a.y-0.8*a.size < b.y+0.2*b.size && b.y-0.8*b.size < a.y+0.2*a.size
		}) {
			t.Errorf("%s: %q covers another text", name, a.text)
		}
	}
}

// chart has a series for each style, one with a gap and one that an axis cannot show.
func chart(n int) Chart {
	c := Chart{
		Title: "A <title> & more", Subtitle: "β = 20 µs\nτ = 0.8 ns",
		X: Axis{Label: "processors, K", Log: true, Binary: true},
		Y: Axis{Label: "time", Log: true, Format: func(v float64) string { return fmt.Sprintf("%g s", v) }},
	}
	for i := range n {
		s := Series{Name: fmt.Sprintf("series <%d>", i), Colour: i, Dashes: i, Reference: i == 3, Scattered: i == 4}
		for k := range 40 {
			s.Points = append(s.Points, Point{X: float64(k + 1), Y: float64((i + 1) * k)})
		}
		s.Points[10].Y, s.Points[20].Y = math.NaN(), math.Inf(1)
		c.Series = append(c.Series, s)
	}
	c.Series = append(c.Series, Series{Name: "nothing", Points: []Point{{0, 1}, {1, 0}, {math.NaN(), 1}}})
	return c
}

func TestChart(t *testing.T) {
	for _, n := range []int{1, 6, 40} {
		p, err := chart(n).Picture()
		if err != nil {
			t.Fatal(err)
		}
		list, _, _ := read(t, p)
		want := []string{"A <title> & more", "β = 20 µs", "τ = 0.8 ns", "processors, K", "time", "2", "32", "10 s"}
		for i := range n {
			want = append(want, fmt.Sprintf("series <%d>", i))
		}
		for _, text := range want {
			if !slices.Contains(list, text) {
				t.Errorf("no text %q in %q", text, list)
			}
		}
		if slices.Contains(list, "nothing") {
			t.Error("a series without points is in the legend")
		}
		checkPlaces(t, fmt.Sprint(n, " series"), p)
	}
	empty := Chart{Y: Axis{Log: true}, Series: []Series{{Name: "a", Points: []Point{{1, 0}}}}}
	if _, err := empty.Picture(); !errors.Is(err, ErrEmpty) {
		t.Errorf("a chart of nothing: %v", err)
	}
}

// TestAxes draws what is hard for an axis: one value, values of 0, tiny and huge ranges.
func TestAxes(t *testing.T) {
	for _, points := range [][]Point{
		{{1, 1}}, {{5, 5}, {5, 5}}, {{1e-9, 1e9}, {1e9, 1e-9}}, {{3, 1}, {4, 1}}, {{48, 1.2}, {64, 1.3}}, {{1, 1e-100}, {2, 1e100}},
		{{1000000, 1}, {1000001, 1}},
	} {
		for _, log := range []bool{true, false} {
			for _, binary := range []bool{true, false} {
				c := Chart{X: Axis{Log: log, Binary: binary}, Y: Axis{Log: log}, Series: []Series{{Name: "a", Points: points}}}
				p, err := c.Picture()
				if err != nil {
					t.Errorf("%v: %v", points, err)
					continue
				}
				if list, _, _ := read(t, p); len(list) < 4 || len(list) > 2+2*20 {
					t.Errorf("%v, log %v, binary %v: %q", points, log, binary, list)
				}
			}
		}
	}
}

func TestMatrix(t *testing.T) {
	f, err := field.Parse("257")
	if err != nil {
		t.Fatal(err)
	}
	of := func(rows, cols int) matrix.Matrix {
		t.Helper()
		a, err := matrix.Random(f, rows, cols, 1)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	small := of(8, 5)
	p, err := Matrix(small, "small")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"small"} // of SVG
	for i := range 8 {
		for j := range 5 {
			want = append(want, small.At(i, j).String())
		}
	}
	for j := range 5 {
		want = append(want, fmt.Sprint("y", j))
	}
	for i := range 8 {
		want = append(want, fmt.Sprint("x", i))
	}
	if got, _, _ := read(t, p); !slices.Equal(got, append(want, "small")) {
		t.Errorf("%q, want %q", got, want)
	}
	checkPlaces(t, "small", p)
	if p, err = Matrix(small, "file:a\x01<b>"); err != nil {
		t.Fatal(err)
	}
	read(t, p)
	large := of(256, 200)
	if p, err = Matrix(large, "large"); err != nil {
		t.Fatal(err)
	}
	checkPlaces(t, "large", p)
	_, _, strokes := read(t, p)
	got, filled := 0, 0
	for _, x := range strokes {
		if strings.Contains(x, "stroke-width:2.25") { // the height of a cell, in points
			got += strings.Count(x, "M")
		}
	}
	for i := range 256 {
		for j := range 200 {
			if !large.At(i, j).IsZero() {
				filled++
			}
		}
	}
	if got != filled || filled == 256*200 {
		t.Errorf("%d cells, want %d", got, filled)
	}
	if _, err := Matrix(of(257, 3), ""); err == nil || !strings.Contains(err.Error(), "at most 256 × 256") {
		t.Errorf("257 rows: %v", err)
	}
}
