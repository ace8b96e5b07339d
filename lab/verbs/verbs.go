// Package verbs makes the command line that of volley-lab: importing it adds verbs, families of algorithms and fields.
package verbs

import (
	"github.com/spf13/cobra"

	_ "volley/field/curves"
	"volley/internal/cli"
	_ "volley/lab/families"
)

const help = `Volley-lab is volley for those who study schedules.

It has all verbs of volley, more families of algorithms and more fields. Verbs
of its own draw plans, matrices and costs, and serve a page for a browser.

Begin with
  volley-lab explore                             schedules in a browser
  volley-lab plan -k 8 --json | volley-lab draw - -o plan.pdf
  volley-lab chart -k 2..256 --plot ratio -o ratio.pdf`

func init() {
	cli.Extend(cli.Lab{Help: help, Verbs: func() []*cobra.Command {
		return []*cobra.Command{newExplore(), newDraw(), newFigure(), newChart()}
	}})
}
