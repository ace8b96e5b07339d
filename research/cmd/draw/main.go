// Draw makes a picture of a schedule for a paper, from a plan that volley plan --format json
// prints or anybody else has written.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"volley/internal/selection"
	"volley/plan"
	"volley/research/draw"
)

const usage = `Draw a schedule as SVG, from a plan as JSON.

  volley plan -k 16 -p 3 --format json | draw > schedule.svg
`

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// mostProcessors is how many columns can be told apart.
const mostProcessors = 64

// run draws the plan that it reads and returns the exit code: 2 where that is no plan to draw.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	p, err := plan.Decode(stdin)
	if err == nil && p.Common.Processors > mostProcessors {
		err = fmt.Errorf("%d processors are too many to draw: want %d at most", p.Common.Processors, mostProcessors)
	}
	var drawing bytes.Buffer
	if err == nil {
		err = draw.SVG(&drawing, p)
	}
	if err != nil {
		fmt.Fprintln(stderr, "draw:", selection.Message(err))
		return 2
	}
	if _, err := stdout.Write(drawing.Bytes()); err != nil {
		fmt.Fprintln(stderr, "draw:", err)
		return 1
	}
	return 0
}
