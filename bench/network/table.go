package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"volley/bench"
	"volley/draw/plot"
)

// Marks in a document between which the tables stand.
const (
	beginMark = "<!-- measured: begin -->\n"
	endMark   = "<!-- measured: end -->\n"
)

// table writes the results into the document, between the marks, and the chart beside it.
func table(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("table: %d arguments: want a file of results and a document", len(args))
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	rows, err := readRows(data)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	document, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	chart := strings.TrimSuffix(args[1], filepath.Ext(args[1])) + ".svg"
	filled, err := fill(document, tables(rows, filepath.Base(chart)))
	if err != nil {
		return fmt.Errorf("%s: %w", args[1], err)
	}
	var drawing bytes.Buffer
	if err := plot.SVG(&drawing, draw(rows)); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(chart, drawing.Bytes(), 0o666), os.WriteFile(args[1], filled, 0o666))
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

// A group is what was measured in one setting.
type group []Row

// groups returns the groups of a matrix, by K and size.
func groups(rows []Row, matrix string) []group {
	var list []group
	for _, r := range rows {
		if title(r) != matrix {
			continue
		}
		i := slices.IndexFunc(list, func(g group) bool { return g[0].setting() == r.setting() })
		if i < 0 {
			i, list = len(list), append(list, nil)
		}
		list[i] = append(list[i], r)
	}
	slices.SortStableFunc(list, func(a, b group) int {
		return cmp.Or(cmp.Compare(a[0].K, b[0].K), cmp.Compare(a[0].Size, b[0].Size))
	})
	return list
}

// find returns the first row of a peer, or of volley with p ports.
func (g group) find(who string, ports int) (Row, bool) {
	i := slices.IndexFunc(g, func(r Row) bool { return r.Who == who && r.Ports == ports })
	if i < 0 {
		return Row{}, false
	}
	return g[i], true
}

// title names a matrix.
func title(r Row) string { return fmt.Sprintf("Matrix %s over %s", r.Matrix, r.Field) }

// distinct returns what rows say, each once.
func distinct[T comparable](rows []Row, of func(Row) T) []T {
	var list []T
	for _, r := range rows {
		if x := of(r); !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}

// tables returns all tables, in Markdown.
func tables(rows []Row, chart string) string {
	var b strings.Builder
	machines := distinct(rows, func(r Row) string { return fmt.Sprintf("%s; %s; %s", r.Date, r.Machine, r.MPI) })
	fmt.Fprintf(&b, "\nMeasured on:\n\n* %s\n\n![time in packets on the wire against K](%s)\n", strings.Join(machines, "\n* "), chart)
	for _, name := range distinct(rows, title) {
		list := groups(rows, name)
		fmt.Fprintf(&b, "\n### %s\n\n", name)
		line(&b, append([]string{"K", "link", "packet", "plan", "C1", "C2", "volley, p = 1", "agreement"}, peerNames...))
		line(&b, slices.Repeat([]string{"---"}, 8+len(peerNames)))
		for _, g := range list {
			r, ok := g.find(ours, 1)
			if !ok {
				continue
			}
			cells := []string{fmt.Sprint(r.K), r.Link, bench.Size(int64(r.Size)), r.Plan, fmt.Sprint(r.C1), digits(r.C2), cell(r), agreement(r)}
			for _, peer := range peerNames {
				them, _ := g.find(peer, 0)
				text := cell(them)
				if x, ok := r.Faster[peer]; ok {
					text += " **" + digits(x) + "×**"
				}
				cells = append(cells, text)
			}
			line(&b, cells)
		}
		morePorts(&b, list)
	}
	b.WriteString("\n")
	return b.String()
}

// morePorts writes a table of volley by ports, where there was more than one.
func morePorts(b *strings.Builder, list []group) {
	var ports []int
	for _, p := range distinct(slices.Concat(list...), func(r Row) int { return r.Ports }) {
		if p > 0 {
			ports = append(ports, p)
		}
	}
	if len(ports) < 2 {
		return
	}
	slices.Sort(ports)
	heads := []string{"K", "link", "packet"}
	for _, p := range ports {
		heads = append(heads, fmt.Sprintf("C1, C2 at p = %d", p), fmt.Sprintf("p = %d", p))
	}
	b.WriteString("\n")
	line(b, heads)
	line(b, slices.Repeat([]string{"---"}, len(heads)))
	for _, g := range list {
		cells := []string{fmt.Sprint(g[0].K), g[0].Link, bench.Size(int64(g[0].Size))}
		for _, p := range ports {
			if r, ok := g.find(ours, p); ok {
				cells = append(cells, fmt.Sprintf("%d, %s", r.C1, digits(r.C2)), cell(r))
			} else {
				cells = append(cells, "", "")
			}
		}
		line(b, cells)
	}
}

func line(b *strings.Builder, cells []string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// agreement writes how long that took.
func agreement(r Row) string {
	if r.LeftOut != "" || r.Agreement == 0 {
		return ""
	}
	return digits(r.Agreement)
}

// cell writes the time and, in parentheses, what the model says; of what was left out
// that alone.
func cell(r Row) string {
	switch {
	case r.Who == "":
		return ""
	case r.LeftOut != "":
		return fmt.Sprintf("– (%s)", digits(r.Predicted))
	}
	text := fmt.Sprintf("%s (%s)", digits(r.Seconds), digits(r.Predicted))
	if r.Dropped != nil && *r.Dropped >= 0.5 {
		text += fmt.Sprintf(", %.0f dropped", *r.Dropped)
	}
	return text
}

// draw draws times against K for the size that was measured for most of them, in times of
// a packet on the wire, W·τ: so links of different rates have one scale.
func draw(rows []Row) plot.Chart {
	size, most := 0, 0
	for _, n := range slices.Sorted(slices.Values(distinct(rows, func(r Row) int { return r.Size }))) {
		ks := distinct(slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Size != n || r.LeftOut != "" }), func(r Row) int { return r.K })
		if len(ks) >= most {
			size, most = n, len(ks)
		}
	}
	c := plot.Chart{
		Title: "Time against processors", Subtitle: fmt.Sprintf("packets of %s, p = 1; 1 is the time of a packet on the wire", bench.Size(int64(size))),
		X: plot.Axis{Label: "processors, K", Log: true, Binary: true},
		Y: plot.Axis{Label: "time / W·τ", Log: true},
	}
	add := func(list []group, s plot.Series, who string, ports int, value func(Row) float64) {
		for _, g := range list {
			if r, ok := g.find(who, ports); ok && r.Size == size && r.LeftOut == "" {
				s.Points = append(s.Points, plot.Point{X: float64(r.K), Y: value(r) / (float64(size) * r.Tau)})
			}
		}
		if len(s.Points) > 0 {
			c.Series = append(c.Series, s)
		}
	}
	measured := func(r Row) float64 { return r.Seconds }
	names := distinct(rows, title)
	for i, name := range names {
		list := groups(rows, name)
		what := strings.TrimPrefix(name, "Matrix ")
		add(list, plot.Series{Name: "volley, " + what, Colour: i}, ours, 1, measured)
		add(list, plot.Series{Name: "model of it, " + what, Reference: true, Dashes: i}, ours, 1, func(r Row) float64 { return r.Predicted })
	}
	if len(names) > 0 { // to a peer all matrices are the same
		list := groups(rows, names[0])
		for i, peer := range peerNames {
			add(list, plot.Series{Name: peer, Colour: len(names) + i, Dashes: 1 + i}, peer, 0, measured)
		}
	}
	return c
}
