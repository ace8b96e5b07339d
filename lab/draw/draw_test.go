package draw

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"volley/algo"
	"volley/algo/algotest"
	"volley/field"
	"volley/matrix"
	"volley/plan"
)

// bytesOf returns what Write writes, and checks that it writes the same again.
func bytesOf(t testing.TB, p *Picture, format string) []byte {
	t.Helper()
	var a, b bytes.Buffer
	if err := errors.Join(p.Write(&a, format), p.Write(&b, format)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Errorf("%s: the same picture has other bytes", format)
	}
	return a.Bytes()
}

// read returns the texts of an SVG, read strictly, and how many triangles it has.
func read(t *testing.T, p *Picture) (texts []string, triangles int) {
	t.Helper()
	svg := bytesOf(t, p, "svg")
	if s := string(svg); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
		t.Error("a coordinate is no number")
	}
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return texts, triangles
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
			if token.Name.Local == "path" && !strings.Contains(attr["style"], "fill:none") && strings.Count(attr["d"], "L") == 2 {
				triangles++
			}
		case xml.CharData:
			if text := strings.TrimSpace(string(token)); text != "" {
				texts = append(texts, text)
			}
		}
	}
}

func schedulePicture(t testing.TB, p plan.Plan) *Picture {
	t.Helper()
	picture := must(Schedule(p))(t)
	return picture
}

// TestSchedules checks that every message has an arrow, and that labels stay apart and inside.
func TestSchedules(t *testing.T) {
	for _, a := range algo.Algorithms() {
		if a.Structured {
			continue
		}
		for _, c := range []struct{ k, ports int }{{1, 1}, {2, 1}, {3, 2}, {4, 1}, {7, 9}, {9, 2}, {16, 1}, {16, 3}, {30, 1}, {64, 1}} {
			p := algotest.Compile(t, a.Name, "2^8", "cauchy", c.k, c.ports)
			name := fmt.Sprintf("%s, K=%d, p=%d", a.Name, c.k, c.ports)
			picture := schedulePicture(t, p)
			want := 0
			for k := range c.k {
				for _, r := range p.Schedule(k).Rounds {
					want += len(r.Sends)
				}
			}
			if ports := p.Info().Ports; ports > 1 {
				want += ports // in the legend
			}
			texts, triangles := read(t, picture)
			if triangles != want {
				t.Errorf("%s: %d arrows, want %d", name, triangles, want)
			}
			for round := range p.Info().Rounds() {
				if !slices.Contains(texts, fmt.Sprint("round ", round)) {
					t.Errorf("%s: no round %d", name, round)
				}
			}
			checkPlaces(t, name, picture)
		}
	}
}

func checkPlaces(t *testing.T, name string, p *Picture) {
	t.Helper()
	var taken []box
	for _, s := range p.shapes {
		for _, path := range s.paths {
			for _, at := range path {
				if at.x < 0 || at.x > p.width || at.y < 0 || at.y > p.height {
					t.Errorf("%s: %v leaves the picture of %v × %v", name, at, p.width, p.height)
				}
			}
		}
		if s.text == "" {
			continue
		}
		b := covers(s.paths[0][0].x, s.paths[0][0].y, start, s.size, s.text)
		b.right = b.left + s.wide()
		if b.right > p.width {
			t.Errorf("%s: %q is cut off", name, s.text)
		}
		if slices.ContainsFunc(taken, b.overlaps) {
			t.Errorf("%s: %q covers another text", name, s.text)
		}
		taken = append(taken, b)
	}
}

// TestPartial draws a plan with an empty round, where processor 1 has nothing at first, processor 0 has nothing in the
// end, and the name needs escaping.
func TestPartial(t *testing.T) {
	f := must(field.Parse("2^8"))(t)
	p := &plan.Materialized{
		Common: plan.Info{
			Algorithm: `<a> & "b"`, Field: f, Processors: 3, Ports: 1, Rows: 2, Columns: 2,
			Phases: []plan.Phase{{Name: "wait", Rounds: 1}, {Name: "send", Rounds: 1}},
		},
		Programs: []*plan.Program{
			{Proc: 0, Inputs: 1, Rounds: []plan.Round{{}, {Sends: []plan.Send{{Dst: 1, Slots: []plan.Slot{0}}}}}},
			{Proc: 1, Rounds: []plan.Round{{}, {Recvs: []plan.Recv{{Src: 0, Count: 1}}}}, Outputs: []plan.Slot{0}},
			{Proc: 2, Inputs: 1, Rounds: []plan.Round{{}, {}}, Outputs: []plan.Slot{0}},
		},
		Rows:    [][]int{{1}, {}, {0}},
		Columns: [][]int{{}, {0}, {1}},
	}
	if err := plan.Validate(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	texts, triangles := read(t, schedulePicture(t, p))
	count := map[string]int{}
	for _, text := range texts {
		count[text]++
	}
	for text, n := range map[string]int{
		`<a> & "b": K = 3, p = 1, field 2^8, 2 rounds`: 2, // the title, twice
		"x0": 1, "x1": 2, // above the processors, and x1 on the arrow
		"y0": 1, "y1": 1, "wait": 1, "send": 1,
	} {
		if count[text] != n {
			t.Errorf("%q appears %d times, want %d", text, count[text], n)
		}
	}
	if triangles != 1 {
		t.Errorf("%d arrows", triangles)
	}
	if _, err := Schedule(broken{p}); !errors.Is(err, errBroken) {
		t.Errorf("a plan without programs: %v", err)
	}
}

type broken struct{ *plan.Materialized }

var errBroken = errors.New("broken")

func (broken) Program(int) (*plan.Program, error) { return nil, errBroken }

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestLabel(t *testing.T) {
	raw := func(rows ...int) (list []plan.Content) {
		for _, r := range rows {
			list = append(list, plan.Content{Rows: []int{r}, Raw: true})
		}
		return list
	}
	part := func(column int, rows ...int) plan.Content {
		return plan.Content{Rows: rows, Columns: []int{column}}
	}
	whole := func(column int) plan.Content {
		return plan.Content{Rows: []int{0, 1}, Columns: []int{column}, Complete: true}
	}
	for _, c := range []struct {
		content []plan.Content
		lines   int
		width   float64
		want    string
	}{
		{raw(3), 2, 88, "x3"},
		{raw(3, 2), 2, 88, "x2 x3"},
		{raw(0, 7, 6, 5), 2, 88, "x0 x5..x7"},
		{raw(0, 2, 4, 6, 8, 10, 12, 14), 1, 60, "x0 x2 x4 +5"},
		{[]plan.Content{whole(4), whole(5), whole(6), part(7, 0, 1)}, 2, 80, "y4..y6 y7(x0,x1)"},
		{[]plan.Content{part(4, 0), part(6, 0), part(7, 0), part(8, 0)}, 2, 40, "y4(x0)|+3"},
		{[]plan.Content{part(4, 0, 2, 4, 6, 8, 10)}, 2, 80, "y4(x0,x2,x4,x6,|x8,x10)"},
		{[]plan.Content{part(4, 0, 2, 4, 6, 8, 10)}, 1, 80, "y4(x0,x2,x4…)"},
		{[]plan.Content{{}}, 2, 88, "0"},
		{nil, 2, 88, ""},
	} {
		if got := strings.Join(label(c.content, c.lines, c.width), "|"); got != c.want {
			t.Errorf("%v in %d lines of %v: got %q, want %q", c.content, c.lines, c.width, got, c.want)
		}
	}
}

// TestFormats has the size of an image, texts for LaTeX, and a full disk. TestFigureFiles has the bytes of formats.
func TestFormats(t *testing.T) {
	p := schedulePicture(t, algotest.Compile(t, "universal:2,4", "2^8", "cauchy", 8, 1))
	img := must(png.Decode(bytes.NewReader(bytesOf(t, p, "png"))))(t)
	if size := img.Bounds().Size(); math.Abs(float64(size.X)-2*p.width) > 1 || math.Abs(float64(size.Y)-2*p.height) > 1 {
		t.Errorf("an image of %v, want twice %v × %v", size, p.width, p.height)
	}
	picture := string(bytesOf(t, p, "tex"))
	for _, text := range []string{"y2(x0,x3,x4,x7)", "{k \\ensuremath{\\to} k+4}", `field 2\textasciicircum{}8, 3 rounds`} {
		if !strings.Contains(picture, text) {
			t.Errorf("no %s in the picture for LaTeX", text)
		}
	}
	for _, format := range Formats {
		if err := p.Write(broken{}, format); !errors.Is(err, errBroken) {
			t.Errorf("%s on a full disk: %v", format, err)
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
		p := must(chart(n).Picture())(t)
		list, _ := read(t, p)
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

func TestMatrix(t *testing.T) {
	f := must(field.Parse("257"))(t)
	of := func(rows, cols int) matrix.Matrix {
		t.Helper()
		return must(matrix.Random(f, rows, cols, 1))(t)
	}
	small := of(8, 5)
	p := must(Matrix(small, "small"))(t)
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
	if got, _ := read(t, p); !slices.Equal(got, append(want, "small")) {
		t.Errorf("%q, want %q", got, want)
	}
	checkPlaces(t, "small", p)
	read(t, must(Matrix(small, "file:a\x01<b>"))(t))
	checkPlaces(t, "large", must(Matrix(of(256, 200), "large"))(t))
	if _, err := Matrix(of(257, 3), ""); err == nil || !strings.Contains(err.Error(), "at most 256 × 256") {
		t.Errorf("257 rows: %v", err)
	}
}

// must returns a value that comes without an error, or ends the test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
