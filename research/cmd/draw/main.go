// Draw makes a picture of a schedule from a plan that anybody has written, as volley plan -o does of its own.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"volley/internal/atomicfile"
	"volley/internal/draw"
	"volley/internal/selection"
	"volley/plan"
)

const usage = `Draw a schedule from a plan as JSON: as SVG, or by the suffix of FILE as .svg,
.png, .pdf, or .tex for LaTeX.

  draw [-o FILE] < plan.json
`

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run draws the plan that it reads and returns the exit code: 2 where that is no plan to draw.
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
	p, err := plan.Decode(stdin)
	var drawing bytes.Buffer
	if err == nil {
		var picture *draw.Picture
		if picture, err = draw.Schedule(p); err == nil {
			err = picture.Write(&drawing, format)
		}
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
