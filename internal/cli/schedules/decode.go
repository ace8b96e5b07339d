package schedules

import (
	"fmt"

	"github.com/spf13/cobra"

	"volley/coded"
	"volley/internal/cli/ranks"
	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/printable"
)

type decodeOptions struct {
	selectionFlags // of which only the flags of a plan are used
	runOptions
}

func NewDecode(s *session.Session) *cobra.Command {
	o := &decodeOptions{runOptions: runOptions{Joining: ranks.Joining{Session: s}}}
	cmd := &cobra.Command{
		Use:   "decode [flags] DIR [SURVIVOR...] -o DIR2",
		Short: "Decode the inputs from coded files and surviving inputs",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.Spread(cmd, args, func() error { return runDecode(cmd, o, args) })
		},
	}
	session.ForOperators(cmd)
	o.addPlan(cmd)
	o.addRun(cmd, "`DIR` for the inputs; made if need be", "replace files in DIR2 that have the names of inputs")
	return cmd
}

func runDecode(cmd *cobra.Command, o *decodeOptions, args []string) error {
	options, err := o.prepare(cmd, &o.selectionFlags)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return exit.Usagef("no directory of coded files: name what volley encode -o has made")
	}
	d, err := coded.Decode(cmd.Context(), o.Party.Transport, coded.Decoding{Options: options, Coded: args[0], Survivors: args[1:]})
	if err != nil {
		return o.advise(err)
	}
	return o.print(cmd.OutOrStdout(), d.Report, fmt.Sprintf("%s in %s", decodedFrom(d), o.output))
}

// decodedFrom says which inputs there are, and what those that were lost come from.
func decodedFrom(d *coded.Decoded) string {
	switch lost := len(d.From); {
	case lost == 0:
		return fmt.Sprintf("%s, which all survive,", printable.Count(d.Inputs, "input"))
	case lost == d.Inputs:
		return printable.Count(lost, "input")
	default:
		return fmt.Sprintf("%s, of which %d lost and decoded from %s,", printable.Count(d.Inputs, "input"), lost, printable.List(d.From))
	}
}
