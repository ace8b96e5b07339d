package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
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

// table writes the results into a document, between the marks, with charts beside it.
func table(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%w: table: %d arguments: want a file of results and a document", errUsage, len(args))
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
	document, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	if files[args[1]], err = fill(document, tables(cells, filepath.Base(name))); err != nil {
		return fmt.Errorf("%s: %w", args[1], err)
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
	columns      []heading
	sparse       bool // the main table has every other power of 4, the chart all
}

// memoryTitle is of the part in which no link is scarce: it has no network and no way raw.
const memoryTitle = "Shared memory"

// A heading is a column of the main table of a part.
type heading struct {
	name string
	cell func(p part, c Cell) string
}

// What distinguishes the measurements of a part.
var (
	processors = heading{"K", func(_ part, c Cell) string { return fmt.Sprint(c.K) }}
	network    = heading{"network", func(_ part, c Cell) string { return c.Network }}
	cores      = heading{"cores", func(_ part, c Cell) string { return temperature(c) }}
)

// parts returns the measurements on links and those in memory, in order. It leaves out
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
	taken := func(head, name string) heading {
		return text(head, func(c Cell) string { w, _ := c.way(name); return span(w.Seconds) })
	}
	packet := text("packet", func(c Cell) string { return bench.Size(int64(c.Size)) })
	peer := []heading{taken("Volley", bare), text("best peer", func(c Cell) string { w, _ := c.best(peers...); return w.Name }), ratio("**ratio**", over(peers...))}
	links := part{title: "Links", chart: ".svg", columns: slices.Concat([]heading{processors, network, packet,
		text("plan", func(c Cell) string {
			w, _ := c.way(bare)
			name, _, _ := strings.Cut(w.Plan, " ")
			return name
		}),
	}, peer, []heading{
		ratio("to uncoded", over(uncoded...)),
		ratio("to raw", over(raw)),
		ratio("to the bound", func(c Cell) float64 { w, _ := c.way(bare); return w.Seconds / c.Bound }),
	})}
	memory := part{title: memoryTitle, chart: "-memory.svg", sparse: true, columns: slices.Concat([]heading{processors, packet}, peer, []heading{
		ratio("to copies", over(copiesOwn, copiesSlice)),
		taken("Volley in a window", boundWindow),
		ratio("to the window", func(c Cell) float64 { return c.ratio(boundWindow, windowOwn, windowSlice) }),
	})}
	var list []part
	for _, p := range []part{links, memory} {
		for _, c := range cells {
			if (c.Bound > 0) == (p.title == links.title) {
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
	machines := distinct(cells, func(c Cell) string { return fmt.Sprintf("%s; %s; %s", c.Date, c.Machine, c.MPI) })
	fmt.Fprintf(&b, "\nMeasured on:\n\n* %s\n", strings.Join(machines, "\n* "))
	for _, p := range parts(cells) {
		fmt.Fprintf(&b, "\n### %s\n\n![%s](%s%s)\n", p.title, chartOf(p).Title, chart, p.chart)
		b.WriteString("\nTime over that of others, least to greatest over all packets and matrices:\n\n")
		p.ranges(&b)
		one := p.cells[0]
		fmt.Fprintf(&b, "\n%s, %s:\n\n", title(one), temperature(one))
		p.cells = slices.DeleteFunc(p.cells, func(c Cell) bool {
			return title(c) != title(one) || c.Pause != one.Pause || p.sparse && bits.TrailingZeros(uint(c.Size))%4 != 2
		})
		// The ranges name the network of each K, where it has one.
		if len(distinct(p.cells, series)) == len(distinct(p.cells, func(c Cell) int { return c.K })) {
			p.columns = slices.DeleteFunc(p.columns, func(h heading) bool { return h.name == network.name })
		}
		p.heads(&b, p.columns)
		for _, c := range p.cells {
			p.row(&b, c, p.columns)
		}
	}
	b.WriteString("\n")
	return b.String()
}

// ranges writes what the ratios of each network are, least and greatest, over all matrices.
func (p part) ranges(b *strings.Builder) {
	span := func(name string, of func(Cell) float64) heading {
		return heading{name, func(p part, one Cell) string {
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
	columns := []heading{processors, network, cores,
		span("**to the best peer**", func(c Cell) float64 { return c.ratio(bare, peers...) }),
		span("to uncoded", func(c Cell) float64 { return c.ratio(bare, uncoded...) }),
		span("to raw", func(c Cell) float64 { return c.ratio(bare, raw) }),
	}
	if p.title == memoryTitle {
		columns = []heading{columns[0], columns[2], columns[3], columns[4]}
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

func (p part) heads(b *strings.Builder, columns []heading) {
	var heads []string
	for _, h := range columns {
		heads = append(heads, h.name)
	}
	line(b, heads)
	b.WriteString(strings.Repeat("|---", len(heads)) + "|\n")
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

// chartOf draws the ratio to the best peer that codes against the size of packets, for the
// first matrix and warm cores where there are such.
func chartOf(p part) draw.Chart {
	chart := draw.Chart{
		Title: p.title + ": time over the best peer's", Subtitle: strings.ToLower(title(p.cells[0])[:1]) + title(p.cells[0])[1:],
		X: draw.Axis{Label: "packet", Log: true, Binary: true, Format: func(x float64) string { return bench.Size(int64(x)) }},
		Y: draw.Axis{Label: "Volley / best peer; below 1 Volley is faster", Log: true, Binary: true},
	}
	one := draw.Series{Name: "as fast as the best peer", Reference: true}
	for i, name := range distinct(p.cells, series) {
		now := draw.Series{Name: name, Colour: i}
		for _, c := range p.cells {
			if series(c) != name || title(c) != title(p.cells[0]) || c.Pause != p.cells[0].Pause {
				continue
			}
			one.Points = append(one.Points, draw.Point{X: float64(c.Size), Y: 1})
			if x := c.ratio(bare, peers...); x > 0 {
				now.Points = append(now.Points, draw.Point{X: float64(c.Size), Y: x})
			}
		}
		chart.Series = append(chart.Series, now)
	}
	slices.SortFunc(one.Points, func(a, b draw.Point) int { return cmp.Compare(a.X, b.X) })
	chart.Series = append(chart.Series, one)
	return chart
}

// series names a line of a chart.
func series(c Cell) string { return fmt.Sprintf("K = %d, %s", c.K, c.Network) }
