package draw

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/algo"
	"volley/algo/algotest"
	"volley/field"
	"volley/plan"
	_ "volley/research"
)

var update = flag.Bool("update", false, "write the golden files and docs/schedule.svg")

func svg(t testing.TB, p plan.Plan) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := SVG(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestGolden also keeps the picture of the README up to date.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		file, algorithm string
		k, ports        int
	}{
		{"testdata/universal-4-1.svg", "universal", 4, 1},
		{"testdata/central-5-2.svg", "central", 5, 2},
		{"../../docs/schedule.svg", "universal", 8, 1},
	} {
		got := svg(t, algotest.Compile(t, c.algorithm, "2^8", "cauchy", c.k, c.ports))
		if *update {
			if err := os.MkdirAll(filepath.Dir(c.file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(c.file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is out of date: look at the new drawing and run go test ./draw -update", c.file)
		}
	}
}

// An element is what the tests read of an SVG element.
type element struct {
	name string
	attr map[string]string
	text string
}

// parse reads the whole drawing, strictly.
func parse(t *testing.T, data []byte) []element {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(data))
	var list []element
	for {
		token, err := d.Token()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attr: map[string]string{}}
			for _, a := range token.Attr {
				if _, twice := e.attr[a.Name.Local]; twice {
					t.Fatalf("<%s>: attribute %s twice", e.name, a.Name.Local)
				}
				e.attr[a.Name.Local] = a.Value
			}
			list = append(list, e)
		case xml.CharData:
			if len(list) > 0 {
				list[len(list)-1].text += strings.TrimSpace(string(token))
			}
		}
	}
}

func TestEveryMessageOnce(t *testing.T) {
	for _, a := range algo.Algorithms() {
		if a.Structured {
			continue
		}
		for _, k := range []int{1, 2, 3, 4, 7, 9, 16, 30} {
			for _, ports := range []int{1, 2, 3, 9} {
				t.Run(fmt.Sprintf("%s/K=%d/p=%d", a.Name, k, ports), func(t *testing.T) {
					p := algotest.Compile(t, a.Name, "2^8", "cauchy", k, ports)
					data := svg(t, p)
					if !bytes.Equal(data, svg(t, p)) {
						t.Error("two drawings of one plan differ")
					}
					checkMessages(t, p, parse(t, data))
				})
			}
		}
	}
}

func checkMessages(t *testing.T, p plan.Plan, list []element) {
	t.Helper()
	type message [4]string
	want, got := map[message]int{}, map[message]int{}
	for k := range p.Info().Processors {
		for round, r := range p.Schedule(k).Rounds {
			for _, s := range r.Sends {
				want[message{fmt.Sprint(round), fmt.Sprint(s.Port), fmt.Sprint(k), fmt.Sprint(s.Dst)}]++
			}
		}
	}
	rounds := 0
	for _, e := range list {
		switch e.attr["class"] {
		case "message":
			got[message{e.attr["data-round"], e.attr["data-port"], e.attr["data-from"], e.attr["data-to"]}]++
		case "round":
			rounds++
		}
	}
	for m, n := range got {
		if n != want[m] {
			t.Errorf("round %s, port %s: %s → %s drawn %d times, want %d", m[0], m[1], m[2], m[3], n, want[m])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d messages drawn, want %d", len(got), len(want))
	}
	if rounds != p.Info().Rounds() {
		t.Errorf("%d rounds drawn, want %d", rounds, p.Info().Rounds())
	}
}

func TestLabels(t *testing.T) {
	var labels, titles []string
	for _, e := range parse(t, svg(t, algotest.Compile(t, "universal", "2^8", "cauchy", 4, 1))) {
		if e.attr["class"] == "label" {
			labels = append(labels, e.text)
		}
		if e.name == "title" {
			titles = append(titles, e.text)
		}
	}
	// Processor k sends x_k one place on, and then what it has for k+2.
	want := []string{"x0", "x1", "x2", "x3", "y2(x0,x3)", "y3(x0,x1)", "y0(x1,x2)", "y1(x2,x3)"}
	if !slices.Equal(labels, want) {
		t.Errorf("labels %q, want %q", labels, want)
	}
	for _, s := range []string{
		"Schedule of universal (m=2 n=2): K = 4, p = 1, field 2^8, 2 rounds",
		"round 0: 2 → 3 on port 0: x2",
		"round 1: 3 → 1 on port 0: y1(x2,x3)",
	} {
		if !slices.Contains(titles, s) {
			t.Errorf("no title %q in %q", s, titles)
		}
	}
}

// TestTrees has both trees of a universal plan at K-1 messages: x0 reaches
// every other processor once, and every other processor's packet goes into y0.
func TestTrees(t *testing.T) {
	for _, c := range []struct{ k, ports int }{{4, 1}, {8, 1}, {9, 2}, {16, 1}, {64, 3}} {
		s, err := collect(algotest.Compile(t, "universal", "2^8", "cauchy", c.k, c.ports))
		if err != nil {
			t.Fatal(err)
		}
		spreads, gathers := 0, 0
		for _, list := range s.rounds {
			for _, m := range list {
				if m.spreads {
					spreads++
				}
				if m.gathers {
					gathers++
				}
			}
		}
		if spreads != c.k-1 || gathers != c.k-1 {
			t.Errorf("K=%d p=%d: trees of %d and %d messages, want %d", c.k, c.ports, spreads, gathers, c.k-1)
		}
	}
}

// TestPlaces checks that texts stay apart and inside, and that up to
// manyProcessors every arrow has its label.
func TestPlaces(t *testing.T) {
	for _, a := range algo.Algorithms() {
		if a.Structured {
			continue
		}
		for _, c := range []struct{ k, ports int }{{1, 1}, {2, 1}, {4, 1}, {9, 2}, {11, 1}, {16, 1}, {16, 3}, {30, 1}, {64, 1}} {
			s, err := collect(algotest.Compile(t, a.Name, "2^8", "cauchy", c.k, c.ports))
			if err != nil {
				t.Fatal(err)
			}
			l := arrange(s)
			name := fmt.Sprintf("%s, K=%d, p=%d", a.Name, c.k, c.ports)
			checkPlaces(t, name, l)
			tagged := map[*message]bool{}
			for _, tags := range newFrame(s).tags {
				for _, tag := range tags {
					tagged[tag.message] = true
				}
			}
			if c.k <= manyProcessors && len(tagged) != len(l.arrows) {
				t.Errorf("%s: %d arrows, %d with a label", name, len(l.arrows), len(tagged))
			}
		}
	}
}

func checkPlaces(t *testing.T, name string, l *layout) {
	t.Helper()
	texts := slices.Concat(l.labels, l.sides)
	for i, a := range texts {
		if b := a.box(); b.left < 0 || b.right > l.width {
			t.Errorf("%s: %q is cut off", name, a.text)
		}
		for _, b := range texts[:i] {
			if a.box().overlaps(b.box()) {
				t.Errorf("%s: %q covers %q", name, a.text, b.text)
			}
		}
	}
	for _, a := range l.arrows {
		for _, s := range a.pieces {
			for _, p := range []point{s.from, s.to} {
				if p.x < 0 || p.x > l.width || p.y < 0 || p.y > l.height {
					t.Errorf("%s: %s leaves the drawing", name, a.message.full())
				}
			}
		}
	}
}

// partial is a plan with an empty round, where processor 1 has nothing at
// first, processor 0 has nothing in the end, and the name needs escaping.
func partial(t *testing.T) *plan.Materialized {
	f, err := field.Parse("2^8")
	if err != nil {
		t.Fatal(err)
	}
	return &plan.Materialized{
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
}

func TestPartial(t *testing.T) {
	p := partial(t)
	if err := plan.Validate(p); err != nil {
		t.Fatal(err)
	}
	list := parse(t, svg(t, p))
	checkMessages(t, p, list)
	texts := map[string]int{}
	for _, e := range list {
		if e.name == "text" {
			texts[e.text]++
		}
	}
	for text, n := range map[string]int{
		`<a> & "b": K = 3, p = 1, field 2^8, 2 rounds`: 1,
		"x0": 1, "x1": 2, // above the processors, and x1 on the arrow
		"y0": 1, "y1": 1,
		"wait": 1, "send": 1,
	} {
		if texts[text] != n {
			t.Errorf("%q appears %d times, want %d", text, texts[text], n)
		}
	}
}

type broken struct{ *plan.Materialized }

var errBroken = errors.New("broken")

func (broken) Program(int) (*plan.Program, error) { return nil, errBroken }

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errBroken }

func TestErrors(t *testing.T) {
	p := partial(t)
	if err := SVG(io.Discard, broken{p}); !errors.Is(err, errBroken) {
		t.Errorf("plan without programs: got %v", err)
	}
	if err := SVG(fullDisk{}, p); !errors.Is(err, errBroken) {
		t.Errorf("full disk: got %v", err)
	}
}

func TestShorten(t *testing.T) {
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
		return plan.Content{Rows: []int{0, 1}, Columns: []int{column}, Whole: true}
	}
	for _, c := range []struct {
		content []plan.Content
		lines   int
		width   float64
		want    string
	}{
		{raw(3), 2, 9, "x3"},
		{raw(3, 2), 2, 9, "x2 x3"},
		{raw(0, 7, 6, 5), 2, 9, "x0 x5..x7"},
		{raw(0, 2, 4, 6, 8, 10, 12, 14), 1, 7, "x0 x2 x4 +5"},
		{[]plan.Content{whole(4), whole(5), whole(6), part(7, 0, 1)}, 2, 9, "y4..y6 y7(x0,x1)"},
		{[]plan.Content{part(4, 0), part(6, 0), part(7, 0), part(8, 0)}, 2, 5, "y4(x0)|+3"},
		{[]plan.Content{part(4, 0, 2, 4, 6, 8, 10)}, 2, 9, "y4(x0,x2,x4,x6,|x8,x10)"},
		{[]plan.Content{part(4, 0, 2, 4, 6, 8, 10)}, 1, 9, "y4(x0,x2,x4,x6…)"},
		{[]plan.Content{{}}, 2, 9, "0"},
	} {
		got := strings.Join(shorten(c.content, c.lines, c.width), "|")
		if got != c.want {
			t.Errorf("%v in %d lines of %v: got %q, want %q", c.content, c.lines, c.width, got, c.want)
		}
	}
}

// TestPainted checks that a page and a picture for LaTeX have the size and the texts of the drawing.
func TestPainted(t *testing.T) {
	p := algotest.Compile(t, "universal", "2^8", "cauchy", 8, 1)
	s, err := collect(p)
	if err != nil {
		t.Fatal(err)
	}
	l := arrange(s)
	var page, picture bytes.Buffer
	if err := errors.Join(PDF(&page, p), TeX(&picture, p)); err != nil {
		t.Fatal(err)
	}
	if size := fmt.Sprintf("/MediaBox [0 0 %.2f %.2f]", 0.75*l.width, 0.75*l.height); !bytes.HasPrefix(page.Bytes(), []byte("%PDF-")) || !strings.Contains(page.String(), size) {
		t.Errorf("no page of %s", size)
	}
	for _, x := range l.labels {
		if !strings.Contains(picture.String(), `\selectfont `+x.text+"}") {
			t.Errorf("no label %q", x.text)
		}
	}
	if len(l.labels) == 0 || strings.Count(picture.String(), `\pgfusepath{fill}`) < len(l.arrows) {
		t.Error("no arrows")
	}
}
