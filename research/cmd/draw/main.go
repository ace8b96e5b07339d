// Draw makes a picture of a schedule for a paper, from a plan that volley plan --json
// prints or anybody else has written.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"volley/internal/atomicfile"
	"volley/internal/selection"
	"volley/plan"
	"volley/research/draw"
)

const usage = `Draw a schedule from a plan as JSON: as SVG, or by the suffix of FILE as .svg,
.pdf, or .tex for LaTeX.

  volley plan -k 16 --model paper -p 3 --json | draw [-o FILE]
`

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// mostProcessors is how many columns can be told apart.
const mostProcessors = 64

// run draws the plan that it reads and returns the exit code: 2 where that is no plan to draw.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	write, output := draw.SVG, ""
	if len(args) == 2 && args[0] == "-o" {
		output = args[1]
		write = map[string]func(io.Writer, plan.Plan) error{".svg": draw.SVG, ".pdf": draw.PDF, ".tex": draw.TeX}[filepath.Ext(output)]
	}
	if len(args) > 0 && output == "" || write == nil {
		fmt.Fprint(stderr, usage)
		return 2
	}
	p, err := plan.Decode(stdin)
	if err == nil && p.Common.Processors > mostProcessors {
		err = fmt.Errorf("%d processors are too many to draw: want %d at most", p.Common.Processors, mostProcessors)
	}
	var drawing bytes.Buffer
	if err == nil {
		err = write(&drawing, p)
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
