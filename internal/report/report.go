// Package report prints tables: as aligned text, CSV and JSON, all from one definition of the columns.
package report

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// A Column is a column of a table of rows of type R.
type Column[R any] struct {
	Name string // the key in CSV and JSON
	Head string // heading of the text form; empty means Name
	Unit string // second heading of the text form; may be empty

	// Value returns the cell; nil is an empty one.
	Value func(R) any

	// Text formats the cell for the text form; nil means as fmt.Sprint does.
	Text func(any) string

	// Join, unless empty, puts the cell and unit of the text form behind those of the column before, after this string
	// and without a heading. A narrow table is easier to read; programs want a value to a column.
	Join string
}

// text returns the cell in the text form.
func (c Column[R]) text(r R) string {
	v := c.Value(r)
	switch {
	case v == nil:
		return ""
	case c.Text != nil:
		return c.Text(v)
	}
	return fmt.Sprint(v)
}

func (c Column[R]) head() string { return cmp.Or(c.Head, c.Name) }

// Text writes the rows as an aligned table under a line of headings and, where a column has one, a line of units.
func Text[R any](w io.Writer, columns []Column[R], rows []R) error {
	var heads []string
	units := false
	for _, c := range columns {
		units = units || c.Unit != ""
		if c.Join == "" {
			heads = append(heads, c.head())
		}
	}
	line := func(cell func(Column[R]) string) (cells []string) {
		for _, c := range columns {
			text := cell(c)
			if c.Join == "" {
				cells = append(cells, text)
			} else if text != "" {
				cells[len(cells)-1] += c.Join + text
			}
		}
		return cells
	}
	lines := [][]string{heads}
	if units {
		lines = append(lines, line(func(c Column[R]) string { return c.Unit }))
	}
	for _, r := range rows {
		lines = append(lines, line(func(c Column[R]) string { return c.text(r) }))
	}
	return align(w, lines)
}

// align writes lines of cells so that cells of one place begin below each other. A line of one cell stands for itself.
func align(w io.Writer, lines [][]string) error {
	var table, trimmed bytes.Buffer
	tw := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for _, cells := range lines {
		if len(cells) > 1 {
			cells = append(cells, "") // so that the last one is a cell, too
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	tw.Flush()
	for line := range bytes.Lines(table.Bytes()) {
		trimmed.Write(bytes.TrimRight(line, " \n"))
		trimmed.WriteByte('\n')
	}
	_, err := w.Write(trimmed.Bytes())
	return err
}

// Paragraphs writes each row as a paragraph: the first cell, and under it a line for each other that is not empty,
// without units. It is for cells too long for a table.
func Paragraphs[R any](w io.Writer, columns []Column[R], rows []R) error {
	var lines [][]string
	for i, r := range rows {
		if i > 0 {
			lines = append(lines, nil)
		}
		lines = append(lines, []string{columns[0].text(r)})
		for _, c := range columns[1:] {
			if text := c.text(r); text != "" {
				lines = append(lines, []string{"  " + c.head(), text})
			}
		}
	}
	return align(w, lines)
}

// writeCSV writes a line of names and a line for each row.
func writeCSV[R any](w io.Writer, columns []Column[R], rows []R) error {
	cw := csv.NewWriter(w)
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = c.Name
	}
	if err := cw.Write(cells); err != nil {
		return err
	}
	for _, r := range rows {
		for i, c := range columns {
			cells[i] = ""
			if v := c.Value(r); v != nil {
				cells[i] = fmt.Sprint(v)
			}
		}
		if err := cw.Write(cells); err != nil {
			return err
		}
	}
	cw.Flush()
	return cw.Error()
}

// writeJSON writes {"rows": [...]}, an object for each row, empty cells left out.
func writeJSON[R any](w io.Writer, columns []Column[R], rows []R) error {
	table := struct {
		Rows []map[string]any `json:"rows"`
	}{[]map[string]any{}}
	for _, r := range rows {
		object := map[string]any{}
		for _, c := range columns {
			if v := c.Value(r); v != nil {
				object[c.Name] = v
			}
		}
		table.Rows = append(table.Rows, object)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(table)
}

// Formats are the names that [Write] takes.
var Formats = []string{"text", "csv", "json"}

// Write writes the rows in the named format. It returns an error that lists the formats for another name.
func Write[R any](w io.Writer, format string, columns []Column[R], rows []R) error {
	switch format {
	case "text":
		return Text(w, columns, rows)
	case "csv":
		return writeCSV(w, columns, rows)
	case "json":
		return writeJSON(w, columns, rows)
	}
	return fmt.Errorf("format %q: want one of %s", format, strings.Join(Formats, ", "))
}

// Seconds writes a time in seconds in three digits, with its unit. Seconds and [Number] are for [Column].Text of float64s.
func Seconds(v any) string {
	seconds := v.(float64)
	if 0 < seconds && seconds < 1e-6 {
		return fmt.Sprintf("%.3gns", 1e9*seconds)
	}
	d := time.Duration(seconds * float64(time.Second))
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// Number writes a number in three digits, and a whole one in as many as it has.
func Number(v any) string {
	switch x := v.(float64); {
	case x == math.Trunc(x) && math.Abs(x) < 1<<53:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case 100 <= x && x < 1e6:
		return fmt.Sprintf("%.0f", x)
	default:
		return fmt.Sprintf("%.3g", x)
	}
}
