// Draw makes a picture of a schedule from a plan that anybody has written, as volley plan -o does of its own, or of a
// matrix.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"volley/field"
	"volley/internal/atomicfile"
	"volley/internal/draw"
	"volley/internal/selection"
	"volley/matrix"
	"volley/plan"
	"volley/research/chart"
)

const usage = `Draw the schedule of a plan, or a matrix, from its JSON: as SVG, or by the suffix
of FILE as .svg, .png, .pdf, or .tex for LaTeX.

  draw [-o FILE] < plan.json
  volley matrix --matrix lch -k 60 --json | draw -o zeros.pdf

The picture of a matrix has its entries, or shades of up to 256 x 256 entries.
`

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run draws what it reads and returns the exit code: 2 where that is no plan, and no matrix, to draw.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	format, output := "svg", ""
	if len(args) == 2 && args[0] == "-o" {
		output = args[1]
		format = strings.TrimPrefix(filepath.Ext(output), ".")
	}
	if len(args) > 0 && output == "" || !slices.Contains(draw.Formats, format) {
		fmt.Fprint(stderr, usage)
		return 2
	}
	text, err := io.ReadAll(stdin)
	var picture *draw.Picture
	if err == nil {
		picture, err = pictureOf(text)
	}
	var drawing bytes.Buffer
	if err == nil {
		err = picture.Write(&drawing, format)
	}
	if err != nil {
		fmt.Fprintln(stderr, "draw:", selection.Message(err))
		return 2
	}
	if output != "" {
		err = atomicfile.Write(output, drawing.Bytes())
	} else {
		_, err = stdout.Write(drawing.Bytes())
	}
	if err != nil {
		fmt.Fprintln(stderr, "draw:", err)
		return 1
	}
	return 0
}

// pictureOf draws a matrix, as volley matrix prints it, or else a plan.
func pictureOf(text []byte) (*draw.Picture, error) {
	var m struct {
		Field, Matrix, Order string
		Inverse              bool
		Entries              [][]string
	}
	if err := json.Unmarshal(text, &m); err != nil || m.Entries == nil {
		p, err := plan.Decode(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		return draw.Schedule(p)
	}
	f, err := field.Parse(m.Field)
	if err != nil {
		return nil, err
	}
	var csv strings.Builder
	for _, row := range m.Entries {
		fmt.Fprintln(&csv, strings.Join(row, ","))
	}
	a, err := matrix.FromCSV(f, strings.NewReader(csv.String()), m.Matrix)
	if err != nil {
		return nil, err
	}
	title := m.Matrix
	if m.Inverse {
		title = "inverse of " + title
	}
	if m.Order != "natural" {
		title += ", order " + m.Order
	}
	return chart.Matrix(a, fmt.Sprintf("%s: %d × %d, field %s", title, a.Rows(), a.Cols(), f.Name()))
}
