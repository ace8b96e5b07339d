package plot_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"volley/research/plot"
)

// chart has a series for each style, one with a gap and one that an axis cannot show.
func chart(n int) plot.Chart {
	c := plot.Chart{
		Title: "A <title> & more", Subtitle: "β = 20 µs\nτ = 0.8 ns",
		X:     plot.Axis{Label: "processors, K", Log: true, Binary: true},
		Y:     plot.Axis{Label: "time", Log: true, Format: func(v float64) string { return fmt.Sprintf("%g s", v) }},
		Marks: []plot.Mark{{Point: plot.Point{X: 4, Y: 3}, Label: "from 4"}, {Point: plot.Point{X: 4.2, Y: 3}, Label: "from 4.2"}},
	}
	for i := range n {
		s := plot.Series{Name: fmt.Sprintf("series <%d>", i), Colour: i, Dashes: i, Reference: i == 3, Scattered: i == 4}
		for k := range 40 {
			s.Points = append(s.Points, plot.Point{X: float64(k + 1), Y: float64((i + 1) * k)})
		}
		s.Points[10].Y, s.Points[20].Y = math.NaN(), math.Inf(1)
		c.Series = append(c.Series, s)
	}
	c.Series = append(c.Series, plot.Series{Name: "nothing", Points: []plot.Point{{0, 1}, {1, 0}, {math.NaN(), 1}}})
	return c
}

// texts returns the texts of a drawing, read strictly.
func texts(t *testing.T, data []byte) []string {
	t.Helper()
	var list []string
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			list = append(list, string(text))
		}
	}
}

func TestSVG(t *testing.T) {
	for _, n := range []int{1, 6, 40} {
		var a, b bytes.Buffer
		if err := plot.SVG(&a, chart(n)); err != nil {
			t.Fatal(err)
		}
		if err := plot.SVG(&b, chart(n)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Error("two drawings of one chart differ")
		}
		list := texts(t, a.Bytes())
		want := []string{"A <title> & more", "β = 20 µs", "τ = 0.8 ns", "processors, K", "time", "2", "32", "10 s", "from 4", "from 4.2"}
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
		if s := a.String(); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
			t.Error("a coordinate is no number")
		}
		if s := a.String(); !strings.Contains(s, "sans-serif") || !strings.Contains(s, "<title>A &lt;title&gt; &amp; more</title>") {
			t.Error("no font to fall back on, or no title")
		}
	}
}

func TestPNG(t *testing.T) {
	var b bytes.Buffer
	if err := plot.PNG(&b, chart(6)); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if size := img.Bounds().Size(); size.X != 1440 || size.Y < 800 { // 7.5 inches at 192 dots
		t.Errorf("%v", size)
	}
	colours := map[any]int{}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			colours[img.At(x, y)]++
		}
	}
	if len(colours) < 20 {
		t.Errorf("%d colours: nothing drawn", len(colours))
	}
}

// TestAxes draws what is hard for an axis: one value, values of 0, tiny and huge ranges.
func TestAxes(t *testing.T) {
	for _, points := range [][]plot.Point{
		{{1, 1}}, {{5, 5}, {5, 5}}, {{1e-9, 1e9}, {1e9, 1e-9}}, {{3, 1}, {4, 1}}, {{48, 1.2}, {64, 1.3}}, {{1, 1e-100}, {2, 1e100}},
		{{1000000, 1}, {1000001, 1}},
	} {
		for _, log := range []bool{true, false} {
			for _, binary := range []bool{true, false} {
				c := plot.Chart{X: plot.Axis{Log: log, Binary: binary}, Y: plot.Axis{Log: log}, Series: []plot.Series{{Name: "a", Points: points}}}
				var b bytes.Buffer
				if err := plot.SVG(&b, c); err != nil {
					t.Errorf("%v: %v", points, err)
				}
				list := texts(t, b.Bytes())
				if len(list) < 4 || len(list) > 2+2*20 {
					t.Errorf("%v, log %v, binary %v: %q", points, log, binary, list)
				}
			}
		}
	}
}

func TestErrors(t *testing.T) {
	empty := plot.Chart{Y: plot.Axis{Log: true}, Series: []plot.Series{{Name: "a", Points: []plot.Point{{1, 0}}}}}
	for name, draw := range map[string]func(io.Writer, plot.Chart) error{"SVG": plot.SVG, "PNG": plot.PNG} {
		if err := draw(io.Discard, empty); !errors.Is(err, plot.ErrEmpty) {
			t.Errorf("%s of nothing: %v", name, err)
		}
		if err := draw(full{}, chart(2)); !errors.Is(err, errFull) {
			t.Errorf("%s on a full disk: %v", name, err)
		}
	}
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestPDF reads the text of a page by a tool of others, where there is one.
func TestPDF(t *testing.T) {
	var page bytes.Buffer
	if err := plot.PDF(&page, chart(3)); err != nil || !bytes.HasPrefix(page.Bytes(), []byte("%PDF-")) || !bytes.HasSuffix(bytes.TrimSpace(page.Bytes()), []byte("%%EOF")) {
		t.Fatalf("%.20q, %v", page.String(), err)
	}
	tool, err := exec.LookPath("pdftotext")
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(tool, "-", "-")
	cmd.Stdin = &page
	text, err := cmd.CombinedOutput()
	for _, want := range []string{"series <2>", "processors, K", "from 4.2"} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%v: no %q in %q", err, want, text)
		}
	}
}

// TestTeX checks that text is escaped, and that its middle stays where it is without escapes.
func TestTeX(t *testing.T) {
	at := func(title string) string {
		t.Helper()
		c := chart(1)
		c.Title = title
		var picture bytes.Buffer
		if err := plot.TeX(&picture, c); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(picture.String()) {
			if strings.Contains(line, "50") && strings.Contains(line, "per") {
				return line
			}
		}
		t.Fatalf("no title in %s", &picture)
		return ""
	}
	text := at(`50_% per {2^8} & \β`)
	if want := `50\_\% per \{2\textasciicircum{}8\} \& \textbackslash{}\ensuremath{\beta}}}`; !strings.Contains(text, want) {
		t.Errorf("%s: want %s", text, want)
	}
	place := func(line string) float64 {
		_, x, _ := strings.Cut(line, `\pgfpoint{`)
		x, _, _ = strings.Cut(x, "pt}")
		at, err := strconv.ParseFloat(x, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return at
	}
	if plain, escaped := place(at("50 per +")), place(at("50 per #")); math.Abs(plain-escaped) > 1 {
		t.Errorf("%v, escaped %v", plain, escaped)
	}
}
