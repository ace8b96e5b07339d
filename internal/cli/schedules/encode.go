package schedules

import (
	"fmt"

	"github.com/spf13/cobra"

	"volley"
	"volley/coded"
	"volley/field"
	"volley/internal/cli/ranks"
	"volley/internal/cli/session"
	"volley/internal/exit"
)

type encodeOptions struct {
	selectionFlags
	runOptions
	symbols bool
	plan    string // file
}

func NewEncode(s *session.Session) *cobra.Command {
	o := &encodeOptions{runOptions: runOptions{Joining: ranks.Joining{Session: s}}}
	cmd := &cobra.Command{
		Use:   "encode [flags] -o DIR PACKET...",
		Short: "Encode files: one in and one out for each processor",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.Spread(cmd, args, func() error { return runEncode(cmd, o, args) })
		},
	}
	session.ForOperators(cmd)
	o.addMatrix(cmd, s)
	o.AddProcessors(cmd.Flags())
	o.addPlan(cmd)
	o.addRun(cmd, "`DIR` for the coded files; made if need be", "replace the result that DIR holds")
	f := cmd.Flags()
	end := session.FlagGroup(cmd, "Plan")
	f.StringVar(&o.plan, "plan", "", "`FILE`, or - for stdin, with a plan of your own, which volley check checks, to run instead of one that Volley chooses")
	end()
	f.Lookup("processors").Usage = "`K`, the number of processors (default: of packets)"
	f.BoolVar(&o.symbols, "symbols", false, "the bytes of the files are symbols already; do not pack them")
	return cmd
}

func runEncode(cmd *cobra.Command, o *encodeOptions, args []string) error {
	e, err := o.encoding(cmd, args)
	if err != nil {
		return err
	}
	report, err := coded.Encode(cmd.Context(), o.Party.Transport, e)
	if err != nil {
		return o.advise(err)
	}
	return o.print(cmd.OutOrStdout(), report, fmt.Sprintf("coded packets in %s", o.output))
}

func (o *encodeOptions) encoding(cmd *cobra.Command, args []string) (e coded.Encoding, err error) {
	o.SetDefaults()
	options, err := o.prepare(cmd, &o.selectionFlags)
	if err != nil {
		return e, err
	}
	e = coded.Encoding{
		Options: options, Files: args,
		Processors: o.Processors, Sinks: o.Sinks, Separate: o.Separate, Symbols: o.symbols,
	}
	if o.plan != "" {
		if err := o.usePlan(cmd, &e.Options); err != nil {
			return e, err
		}
	}
	if e.Field, err = field.Parse(o.Field); err != nil {
		return e, exit.AsUsage(err)
	}
	e.Matrix, err = o.Spec()
	return e, err
}

// chosenBy are the flags that choose a plan: one that is given leaves no choice.
var chosenBy = []string{"algorithm", "model", "network", "gamma", "ports", "beta", "tau", "rounds-over", "max-memory", "max-compute", "whole"}

// usePlan makes a run use the plan of --plan, and its field unless there is a --field.
func (o *encodeOptions) usePlan(cmd *cobra.Command, options *coded.Options) error {
	for _, name := range chosenBy {
		if cmd.Flags().Changed(name) {
			return exit.Usagef("--plan and --%s: the plan is chosen already; leave one of them out", name)
		}
	}
	p, err := readPlan(o.Session, o.plan)
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("field") {
		o.Field = p.Common.Field.Name()
	}
	others := options.Encoder
	options.Encoder = func(f field.Field, symbols int64) ([]volley.Option, error) {
		list, err := others(f, symbols)
		o.assumed = "" // nothing was chosen
		return append(list, volley.WithPlan(p)), err
	}
	return nil
}
