package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"volley/bench"
	"volley/lab/draw"
)

// Marks in a document between which the tables stand.
const (
	beginMark = "<!-- measured: begin -->\n"
	endMark   = "<!-- measured: end -->\n"
)

// table writes the results into a document, between the marks, with charts beside it, and
// some of them into a second document.
func table(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("%w: table: %d arguments: want a file of results, a document and one for a summary", errUsage, len(args))
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	cells, err := readCells(data)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	name := strings.TrimSuffix(args[1], filepath.Ext(args[1]))
	files := map[string][]byte{}
	for _, part := range parts(cells) {
		var drawing bytes.Buffer
		picture, err := chartOf(part).Picture()
		if err == nil {
			err = picture.Write(&drawing, "svg")
		}
		if err != nil {
			return err
		}
		files[name+part.chart] = drawing.Bytes()
	}
	for i, text := range []string{tables(cells, filepath.Base(name)), summary(cells)} {
		document, err := os.ReadFile(args[1+i])
		if err != nil {
			return err
		}
		if files[args[1+i]], err = fill(document, text); err != nil {
			return fmt.Errorf("%s: %w", args[1+i], err)
		}
	}
	for name, content := range files {
		err = errors.Join(err, os.WriteFile(name, content, 0o666))
	}
	return err
}

// fill returns the document with the text between the marks.
func fill(document []byte, text string) ([]byte, error) {
	before, rest, ok := bytes.Cut(document, []byte(beginMark))
	_, after, ok2 := bytes.Cut(rest, []byte(endMark))
	if !ok || !ok2 {
		return nil, fmt.Errorf("no lines %q and %q", strings.TrimSpace(beginMark), strings.TrimSpace(endMark))
	}
	return slices.Concat(before, []byte(beginMark), []byte(text), []byte(endMark), after), nil
}

// A part is what was measured where one thing is scarce.
type part struct {
	title, chart string
	cells        []Cell
	before       map[string]Cell // by setting: of the version before
	columns      []heading
}

// A heading is a column of the main table of a part.
type heading struct {
	name string
	cell func(p part, c Cell) string
}

// parts returns the measurements on links and those on fast fabrics, in order. It leaves out
// a part without cells.
func parts(cells []Cell) []part {
	text := func(name string, of func(Cell) string) heading {
		return heading{name, func(_ part, c Cell) string { return of(c) }}
	}
	ratio := func(name string, of func(Cell) float64) heading {
		return text(name, func(c Cell) string { return times(of(c)) })
	}
	over := func(others ...string) func(Cell) float64 {
		return func(c Cell) float64 { return c.ratio(bare, others...) }
	}
	fastest := func(name string, names ...string) heading {
		return text(name, func(c Cell) string {
			w, ok := c.best(names...)
			if !ok {
				return ""
			}
			return span(w.Seconds) + " " + strings.TrimSuffix(w.Name, "-uncoded")
		})
	}
	first := []heading{
		text("K", func(c Cell) string { return fmt.Sprint(c.K) }),
		text("network", func(c Cell) string { return c.Network }),
		text("cores", temperature),
		text("packet", func(c Cell) string { return bench.Size(int64(c.Size)) }),
		text("plan", func(c Cell) string {
			w, _ := c.way(bare)
			if c.Version != "" {
				w.Plan += " (before)"
			}
			return w.Plan
		}),
		text("Volley", func(c Cell) string { w, _ := c.way(bare); return span(w.Seconds) }),
		fastest("best peer", peers...),
		ratio("**ratio**", over(peers...)),
		{"before", func(p part, c Cell) string { return times(over(peers...)(p.before[c.setting()])) }},
		fastest("uncoded", uncoded...),
		ratio("ratio", over(uncoded...)),
	}
	coding := text("coding", func(c Cell) string { w, _ := c.way(codingAlone); return span(w.Seconds) })
	links := part{title: "Links", chart: ".svg", columns: append(slices.Clone(first), coding,
		ratio("to raw", over(raw)),
		text("bound", func(c Cell) string { return span(c.Bound) }),
		ratio("ratio", func(c Cell) float64 { w, _ := c.way(bare); return w.Seconds / c.Bound }),
	)}
	fabric := part{title: "Shared memory and loopback", chart: "-memory.svg", columns: append(slices.Clone(first), coding,
		text("over isend2", func(c Cell) string {
			w, _ := c.way(bare)
			other, _ := c.way(isend2)
			return span(max(0, w.Seconds-other.Seconds))
		}),
		ratio("to uncoded + coding", Cell.overCoding),
	)}
	if slices.ContainsFunc(cells, func(c Cell) bool { _, ok := c.best(windows...); return ok }) {
		fabric.columns = append(fabric.columns, fastest("one window", windows...), ratio("ratio", over(windows...)))
	}
	var list []part
	for _, p := range []part{links, fabric} {
		p.before = map[string]Cell{}
		for _, c := range cells {
			switch {
			case (c.Bound > 0) != (p.title == links.title):
			case c.Version == "":
				p.cells = append(p.cells, c)
			default:
				p.before[c.setting()] = c
			}
		}
		// An older version stands for the present one where that was not measured.
		for _, c := range cells {
			if _, old := p.before[c.setting()]; old && c.Version != "" && !slices.ContainsFunc(p.cells, func(now Cell) bool { return now.setting() == c.setting() }) {
				p.cells = append(p.cells, c)
			}
		}
		slices.SortStableFunc(p.cells, func(a, b Cell) int {
			return cmp.Or(cmp.Compare(a.K, b.K), cmp.Compare(b.Network, a.Network), cmp.Compare(a.Pause, b.Pause), cmp.Compare(a.Size, b.Size))
		})
		if len(p.cells) > 0 {
			list = append(list, p)
		}
	}
	return list
}

// times writes a ratio; 0 is none.
func times(x float64) string {
	if x == 0 || math.IsInf(x, 0) {
		return ""
	}
	return fmt.Sprintf("%.2f", x)
}

func temperature(c Cell) string {
	if c.Pause == "" {
		return "warm"
	}
	return "paused " + c.Pause
}

// title names a matrix.
func title(c Cell) string { return fmt.Sprintf("Matrix %s over %s", c.Matrix, c.Field) }

// distinct returns what cells say, each once.
func distinct[T comparable](cells []Cell, of func(Cell) T) []T {
	var list []T
	for _, c := range cells {
		if x := of(c); !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}

// tables returns all tables, in Markdown. Charts have this name and the suffix of their part.
func tables(cells []Cell, chart string) string {
	var b strings.Builder
	machines := distinct(cells, func(c Cell) string {
		text := fmt.Sprintf("%s; %s; %s", c.Date, c.Machine, c.MPI)
		if c.Version != "" {
			text += ";\n  column before: " + c.Version
		}
		return text
	})
	fmt.Fprintf(&b, "\nMeasured on:\n\n* %s\n", strings.Join(machines, "\n* "))
	for _, p := range parts(cells) {
		fmt.Fprintf(&b, "\n### %s\n\n![%s](%s%s)\n", p.title, chartOf(p).Title, chart, p.chart)
		b.WriteString("\nTime over that of others, least to greatest over all packets and matrices:\n\n")
		p.ranges(&b)
		for _, name := range distinct(p.cells, title) {
			fmt.Fprintf(&b, "\n#### %s\n\n", name)
			p.write(&b, name, p.columns)
		}
		name := title(p.cells[0])
		fmt.Fprintf(&b, "\n#### Parts of a run: %s\n\n", strings.ToLower(name[:1])+name[1:])
		p.write(&b, name, append(slices.Clone(p.columns[:4]), runColumns()...))
		fmt.Fprintf(&b, "\n#### Each way: %s\n\n", strings.ToLower(name[:1])+name[1:])
		p.write(&b, name, append(slices.Clone(p.columns[:4]), p.wayColumns()...))
	}
	b.WriteString("\n")
	return b.String()
}

// summary returns a table of a few sizes of the first matrix, in Markdown.
func summary(cells []Cell) string {
	var b strings.Builder
	for i, p := range parts(cells) {
		name := title(p.cells[0])
		p.cells = slices.DeleteFunc(p.cells, func(c Cell) bool {
			return c.Size != 4<<10 && c.Size != 64<<10 && c.Size != 1<<20 || c.Bound == 0 && (c.Pause != "" || c.Network == "loopback")
		})
		columns := slices.Concat(p.columns[:2], p.columns[3:4], p.columns[5:11])
		if i == 0 {
			p.heads(&b, columns)
		}
		p.rows(&b, name, columns)
	}
	return b.String()
}

// ranges writes what the ratios of each network are, least and greatest, over all matrices.
func (p part) ranges(b *strings.Builder) {
	span := func(of func(Cell) float64) heading {
		return heading{"", func(p part, one Cell) string {
			var list []float64
			for _, c := range p.cells {
				if x := of(c); x > 0 && series(c) == series(one) && c.Pause == one.Pause {
					list = append(list, x)
				}
			}
			if len(list) == 0 {
				return ""
			}
			return times(slices.Min(list)) + " – " + times(slices.Max(list))
		}}
	}
	columns := []heading{p.columns[0], p.columns[1], p.columns[2],
		span(func(c Cell) float64 { return c.ratio(bare, peers...) }),
		span(func(c Cell) float64 { return p.before[c.setting()].ratio(bare, peers...) }),
		span(func(c Cell) float64 { return c.ratio(bare, uncoded...) }),
		span(func(c Cell) float64 { return c.ratio(bare, raw) }),
	}
	for i, name := range []string{"**to the best peer**", "before", "to uncoded", "to raw"} {
		columns[3+i].name = name
	}
	p.heads(b, columns)
	var done []string
	for _, c := range p.cells {
		if key := series(c) + c.Pause; !slices.Contains(done, key) {
			done = append(done, key)
			p.row(b, c, columns)
		}
	}
}

// write writes a table of the cells of a matrix.
func (p part) write(b *strings.Builder, matrix string, columns []heading) {
	p.heads(b, columns)
	p.rows(b, matrix, columns)
}

func (p part) heads(b *strings.Builder, columns []heading) {
	var heads []string
	for _, h := range columns {
		heads = append(heads, h.name)
	}
	line(b, heads)
	line(b, slices.Repeat([]string{"---"}, len(heads)))
}

func (p part) rows(b *strings.Builder, matrix string, columns []heading) {
	for _, c := range p.cells {
		if title(c) == matrix {
			p.row(b, c, columns)
		}
	}
}

func (p part) row(b *strings.Builder, c Cell, columns []heading) {
	var texts []string
	for _, h := range columns {
		texts = append(texts, h.cell(p, c))
	}
	line(b, texts)
}

func line(b *strings.Builder, cells []string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// runColumns say where the time of a run goes.
func runColumns() []heading {
	of := func(name string, way string, text func(Cell, Way) string) heading {
		return heading{name, func(_ part, c Cell) string {
			w, ok := c.way(way)
			if !ok {
				return ""
			}
			return text(c, w)
		}}
	}
	return []heading{
		of("encode", bare, func(_ Cell, w Way) string { return span(w.Seconds) }),
		of("model", bare, func(_ Cell, w Way) string { return span(w.Model) }),
		of("time / model", bare, func(_ Cell, w Way) string { return times(w.Seconds / w.Model) }),
		of("to best by hand", bare, func(c Cell, _ Way) string {
			var names []string
			for _, w := range c.Ways {
				if strings.HasPrefix(w.Name, bare+"-") && w.Name != asDefault {
					names = append(names, w.Name)
				}
			}
			return times(c.ratio(bare, names...))
		}),
		of("agreement, first run", asDefault, func(_ Cell, w Way) string { return span(w.First) }),
		of("agreement, later", bare, func(_ Cell, w Way) string { return span(w.Later) }),
		of("check", asDefault, func(_ Cell, w Way) string { return span(w.Check) }),
		of("all, later run", asDefault, func(_ Cell, w Way) string { return span(w.Seconds) }),
		of("all / encode", asDefault, func(c Cell, _ Way) string { return times(c.ratio(asDefault, bare)) }),
	}
}

// wayColumns have the time of each way, and what the network dropped.
func (p part) wayColumns() []heading {
	var list []heading
	for _, c := range p.cells {
		for _, w := range c.Ways {
			if w.LeftOut == "" && !slices.ContainsFunc(list, func(h heading) bool { return h.name == w.Name }) {
				list = append(list, heading{w.Name, func(_ part, c Cell) string { return timed(c, w.Name) }})
			}
		}
	}
	return list
}

func timed(c Cell, name string) string {
	w, ok := c.way(name)
	if !ok {
		return ""
	}
	text := span(w.Seconds)
	if w.Dropped >= 0.5 {
		text += fmt.Sprintf(", %.0f dropped", w.Dropped)
	}
	return text
}

// chartOf draws the ratio to the best peer that codes against the size of packets, for the
// first matrix and warm cores where there are such.
func chartOf(p part) draw.Chart {
	chart := draw.Chart{
		Title: p.title + ": time over the best peer's", Subtitle: strings.ToLower(title(p.cells[0])[:1]) + title(p.cells[0])[1:],
		X: draw.Axis{Label: "packet", Log: true, Binary: true, Format: func(x float64) string { return bench.Size(int64(x)) }},
		Y: draw.Axis{Label: "Volley / best peer; below 1 Volley is faster", Log: true, Binary: true},
	}
	one := draw.Series{Name: "as fast as the best peer", Reference: true}
	var then []draw.Series
	for i, name := range distinct(p.cells, series) {
		now := draw.Series{Name: name, Colour: i}
		before := draw.Series{Name: name + ", before", Colour: i, Dashes: 1}
		for _, c := range p.cells {
			if series(c) != name || title(c) != title(p.cells[0]) || c.Pause != p.cells[0].Pause {
				continue
			}
			one.Points = append(one.Points, draw.Point{X: float64(c.Size), Y: 1})
			add := func(s *draw.Series, c Cell) {
				if x := c.ratio(bare, peers...); x > 0 {
					s.Points = append(s.Points, draw.Point{X: float64(c.Size), Y: x})
				}
			}
			add(&now, c)
			add(&before, p.before[c.setting()])
		}
		chart.Series = append(chart.Series, now)
		if len(before.Points) > 0 {
			then = append(then, before)
		}
	}
	slices.SortFunc(one.Points, func(a, b draw.Point) int { return cmp.Compare(a.X, b.X) })
	chart.Series = append(append(chart.Series, then...), one)
	return chart
}

// series names a line of a chart.
func series(c Cell) string { return fmt.Sprintf("K = %d, %s", c.K, c.Network) }
