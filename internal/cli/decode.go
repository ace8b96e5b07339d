package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"volley/coded"
	"volley/internal/printable"
)

type decodeOptions struct {
	choice // of which only the flags of a plan are used
	runOptions
}

const decodeHelp = `Decode lost inputs from coded files and the inputs that have survived.

DIR is what volley encode -o DIR has made. Each SURVIVOR is an input, whatever
its name is now. For each input that is lost, decode takes a coded file. With a
cauchy matrix any will do; with others some sets do not. Survivors are
preferred to coded files, and coded files that are missing or damaged are left
out. DIR2 gets all inputs, each compared with its SHA-256. More: volley help
files`

func newDecode() *cobra.Command {
	o := &decodeOptions{}
	cmd := &cobra.Command{
		Use:   "decode [flags] DIR [SURVIVOR...] -o DIR2",
		Short: "Decode the inputs from coded files and surviving inputs",
		Long:  decodeHelp,
		Example: `  volley decode encoded -o back
  volley decode encoded examples/packets/node-00.ckpt -o back2`,
		RunE: func(cmd *cobra.Command, args []string) error { return runDecode(cmd, o, args) },
	}
	forOperators(cmd)
	o.addPlan(cmd)
	o.addRun(cmd, "`DIR` for the inputs; made if need be", "replace files in DIR2 that have the names of inputs")
	return cmd
}

func runDecode(cmd *cobra.Command, o *decodeOptions, args []string) error {
	options, err := o.prepare(cmd, &o.choice)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return usagef("no directory of coded files: name what volley encode -o has made")
	}
	d, err := coded.Decode(cmd.Context(), o.party.Transport, coded.Decoding{Options: options, Coded: args[0], Survivors: args[1:]})
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
