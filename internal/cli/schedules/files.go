package schedules

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"volley"
	"volley/coded"
	"volley/field"
	"volley/internal/cli/ranks"
	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/launch"
	"volley/internal/printable"
	"volley/internal/report"
	"volley/internal/selection"
)

// runOptions is the flags of every verb that runs a plan.
type runOptions struct {
	ranks.Joining
	output  string
	check   string
	json    bool
	force   bool
	dryRun  bool
	assumed string // the network that no flag names
}

// addRun adds the flags, with what --output and --force are for.
func (o *runOptions) addRun(cmd *cobra.Command, output, force string) {
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", output)
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	f.BoolVar(&o.force, "force", false, force)
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be done, and write nothing")
	o.Joining.Add(f, "processor")
	o.check = "full"
	f.Var(selection.Word(&o.check, "full", "off"), "check", "check of the result: full or off")
	o.AddElsewhere(cmd)
}

// prepare checks the flags and joins the others. It returns what package coded is to know.
func (o *runOptions) prepare(cmd *cobra.Command, plan *selection.Selection) (c coded.Options, err error) {
	if err := o.Join(cmd.Context()); err != nil {
		return c, err
	}
	if o.output == "" && !o.dryRun {
		return c, exit.Usagef("no output directory: say where with -o DIR")
	}
	plan.Process = !o.Party.Job()
	return coded.Options{
		Dir: o.output, Replace: o.force, DryRun: o.dryRun, Job: o.Party.Job(), Timeout: o.Timeout,
		Encoder: func(f field.Field, symbols int64) ([]volley.Option, error) {
			model, err := plan.Model(f, symbols)
			o.assumed = plan.Assumed
			return append(plan.Options(model), volley.WithMemory(o.Memory), volley.WithCheck(o.check == "full")), err
		},
		Log: o.Session.Log, Progress: o.Progress(),
		Warn: func(text string) { o.Session.Say(slog.LevelWarn, launch.Saying{Text: text}) },
	}, nil
}

// advise says by which flag an error can be mended.
func advise(err error) error {
	if errors.Is(err, coded.ErrExists) || errors.Is(err, coded.ErrFileExists) {
		return exit.Usagef("%w; choose another directory, or --force to replace it", err)
	}
	return err
}

// print prints the report, as JSON if asked, else with a closing remark.
func (o *runOptions) print(w io.Writer, r *volley.Report, remark string) error {
	if o.Party.Rank() > 0 {
		return nil
	}
	if o.assumed != "" {
		r.Notes = append(r.Notes, o.assumed)
	}
	if o.json {
		return session.WriteJSON(w, r)
	}
	check := "not checked"
	if r.Verified {
		check = "verified by random linear combinations"
	}
	traffic, overhead := "", "" // which a dry run has not counted
	if o.dryRun {
		remark = "nothing written: a dry run; the time is the model's"
	} else {
		traffic = fmt.Sprintf("traffic    %s sent by the busiest processor, and %s of control\n",
			humanize.IBytes(uint64(r.BytesSentMax)), humanize.IBytes(uint64(r.ControlBytes)))
		overhead = fmt.Sprintf(": encode %.3f, compile %.3f, agreement %.3f, check %.3f", r.BareSeconds(), r.CompileSeconds, r.AgreeSeconds, r.CheckSeconds)
	}
	notes := ""
	for _, note := range r.Notes {
		notes += "           " + printable.Text(note) + "\n"
	}
	order := r.Order
	packetCount := printable.Count(r.K, "packet")
	if r.Sinks > 0 {
		packetCount = fmt.Sprintf("%s for %s on %s,", packetCount, printable.Count(r.Sinks, "sink"), printable.Count(r.Processors, "processor"))
	}
	amount := packetsOf(r)
	if len(r.Columns) > 0 {
		const limit = 16
		order += ": coded packets of columns " + strings.Trim(fmt.Sprint(r.Columns[:min(limit, r.K)]), "[]")
		if r.K > limit {
			order += " …"
		}
	}
	return printable.Fprintf(w, `%s of %s over %s, matrix %s
algorithm  %s, p = %d
%sorder      %s
C1         %s
C2         %s
C3         %s per symbol
%sresult     %s
time       %.3f s%s
%s
`, packetCount, humanize.IBytes(uint64(r.PacketBytes)), r.Field, r.Matrix,
		strings.TrimSpace(r.Algorithm+" "+r.Parameters), r.Ports,
		printable.Lines(notes), order,
		printable.Count(r.C1, "round"), amount,
		printable.Count(r.C3, "multiply-add"),
		printable.Lines(traffic), check, r.Seconds, overhead, remark)
}

// packetsOf writes C2 in packets.
func packetsOf(r *volley.Report) string {
	if r.Pieces <= 1 {
		return printable.Count(r.C2, "packet")
	}
	return fmt.Sprintf("%s packets, %s of 1/%d", report.Number(r.C2Packets), printable.Count(r.C2, "piece"), r.Pieces)
}

type encodeOptions struct {
	selection.Selection
	runOptions
	symbols bool
	plan    string // file
}

// Files returns the verbs that run a schedule on files.
func Files(s *session.Invocation) []*cobra.Command {
	return []*cobra.Command{newEncode(s), newDecode(s)}
}

func newEncode(s *session.Invocation) *cobra.Command {
	o := &encodeOptions{runOptions: runOptions{Joining: ranks.Joining{Session: s}}}
	cmd := &cobra.Command{
		Use:   "encode [flags] -o DIR PACKET...",
		Short: "Encode files: one in and one out for each processor",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.Spread(cmd, args, func() error { return runEncode(cmd, o, args) })
		},
	}
	f := cmd.Flags()
	o.AddMatrix(f)
	o.Open = s.OpenInput
	o.AddProcessors(f)
	o.AddPlan(f, selection.NetworkModel)
	o.addRun(cmd, "`DIR` for the coded files; made if need be", "replace the result that DIR holds")
	f.StringVar(&o.plan, "plan", "", "`FILE`, or - for stdin, with a plan of your own, which volley check checks, to run instead of one that Volley chooses")
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
		return advise(err)
	}
	return o.print(cmd.OutOrStdout(), report, fmt.Sprintf("coded packets in %s", o.output))
}

func (o *encodeOptions) encoding(cmd *cobra.Command, args []string) (e coded.Encoding, err error) {
	o.SetDefaults()
	options, err := o.prepare(cmd, &o.Selection)
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

// usePlan makes a run use the plan of --plan, and its field unless there is a --field.
func (o *encodeOptions) usePlan(cmd *cobra.Command, options *coded.Options) error {
	for _, name := range []string{"algorithm", "model", "network", "gamma", "ports", "beta", "tau", "rounds-over", "max-memory", "max-compute", "whole"} {
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
	encoderOptions := options.Encoder
	options.Encoder = func(f field.Field, symbols int64) ([]volley.Option, error) {
		list, err := encoderOptions(f, symbols)
		o.assumed = "" // nothing was chosen
		return append(list, volley.WithPlan(p)), err
	}
	return nil
}

type decodeOptions struct {
	selection.Selection // of which only the flags of a plan are used
	runOptions
}

func newDecode(s *session.Invocation) *cobra.Command {
	o := &decodeOptions{runOptions: runOptions{Joining: ranks.Joining{Session: s}}}
	cmd := &cobra.Command{
		Use:   "decode [flags] DIR [SURVIVOR...] -o DIR2",
		Short: "Decode the inputs from coded files and surviving inputs",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.Spread(cmd, args, func() error { return runDecode(cmd, o, args) })
		},
	}
	o.AddPlan(cmd.Flags(), selection.NetworkModel)
	o.addRun(cmd, "`DIR` for the inputs; made if need be", "replace files in DIR2 that have the names of inputs")
	return cmd
}

func runDecode(cmd *cobra.Command, o *decodeOptions, args []string) error {
	options, err := o.prepare(cmd, &o.Selection)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return exit.Usagef("no directory of coded files: name what volley encode -o has made")
	}
	d, err := coded.Decode(cmd.Context(), o.Party.Transport, coded.Decoding{Options: options, Coded: args[0], Survivors: args[1:]})
	if err != nil {
		return advise(err)
	}
	return o.print(cmd.OutOrStdout(), d.Report, fmt.Sprintf("%s in %s", decodedFrom(d), o.output))
}

// decodedFrom says which inputs there are, and what those that were lost come from.
func decodedFrom(d *coded.Decoded) string {
	switch lost := len(d.Sources); {
	case lost == 0:
		return fmt.Sprintf("%s, which all survive,", printable.Count(d.Inputs, "input"))
	case lost == d.Inputs:
		return printable.Count(lost, "input")
	default:
		return fmt.Sprintf("%s, of which %d lost and decoded from %s,", printable.Count(d.Inputs, "input"), lost, printable.List(d.Sources))
	}
}
