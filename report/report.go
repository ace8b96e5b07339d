// Package report prints tables: as aligned text, as CSV and as JSON, all from
// one definition of the columns.
package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A Column is a column of a table of rows of type R.
type Column[R any] struct {
	Name string // the heading, and the key in CSV and JSON
	Unit string // second heading of the text form; may be empty

	// Value returns the cell; nil is an empty one.
	Value func(R) any

	// Text formats the cell for the text form; nil means as fmt.Sprint does.
	Text func(any) string
}

// Text writes the rows as an aligned table under a line of names and, where a
// column has one, a line of units.
func Text[R any](w io.Writer, columns []Column[R], rows []R) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(cell func(Column[R]) string) {
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = cell(c)
		}
		fmt.Fprintln(tw, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	line(func(c Column[R]) string { return c.Name })
	units := false
	for _, c := range columns {
		units = units || c.Unit != ""
	}
	if units {
		line(func(c Column[R]) string { return c.Unit })
	}
	for _, r := range rows {
		line(func(c Column[R]) string {
			v := c.Value(r)
			switch {
			case v == nil:
				return ""
			case c.Text != nil:
				return c.Text(v)
			}
			return fmt.Sprint(v)
		})
	}
	return tw.Flush()
}

// CSV writes a line of names and a line for each row.
func CSV[R any](w io.Writer, columns []Column[R], rows []R) error {
	cw := csv.NewWriter(w)
	record := make([]string, len(columns))
	for i, c := range columns {
		record[i] = c.Name
	}
	if err := cw.Write(record); err != nil {
		return err
	}
	for _, r := range rows {
		for i, c := range columns {
			record[i] = ""
			if v := c.Value(r); v != nil {
				record[i] = fmt.Sprint(v)
			}
		}
		if err := cw.Write(record); err != nil {
			return err
		}
	}
	cw.Flush()
	return cw.Error()
}

// JSON writes {"rows": [...]}, an object for each row, empty cells left out.
func JSON[R any](w io.Writer, columns []Column[R], rows []R) error {
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

// Write writes the rows in the named format. It returns an error that lists the
// formats for another name.
func Write[R any](w io.Writer, format string, columns []Column[R], rows []R) error {
	switch format {
	case "text":
		return Text(w, columns, rows)
	case "csv":
		return CSV(w, columns, rows)
	case "json":
		return JSON(w, columns, rows)
	}
	return fmt.Errorf("format %q: want one of %s", format, strings.Join(Formats, ", "))
}
