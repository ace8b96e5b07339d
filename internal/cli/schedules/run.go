package schedules

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"volley"
	"volley/coded"
	"volley/field"
	"volley/internal/cli/ranks"
	"volley/internal/cli/session"
	"volley/internal/disk"
	"volley/internal/exit"
	"volley/internal/launch"
	"volley/internal/printable"
	"volley/internal/report"
	"volley/internal/selection"
	"volley/trace"
)

// runOptions is the flags of every verb that runs a plan.
type runOptions struct {
	ranks.Joining
	perRank int
	output  string
	check   string
	json    bool
	force   bool
	dryRun  bool
	assumed string // what the model takes that was measured

	trace    string          // file
	recorder *trace.Recorder // nil: none is wanted
}

// addRun adds the flags, with what --output and --force are for.
func (o *runOptions) addRun(cmd *cobra.Command, output, force string) {
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", output)
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	f.BoolVar(&o.force, "force", false, force+", and the file of --trace")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be done, and write nothing")
	end := session.FlagGroup(cmd, "Run")
	o.Joining.Add(f, "processor")
	f.Var(selection.AtLeast{Value: &o.perRank, Least: 1, Unset: 0}, "per-rank", "processors in each process of several (default: 1)")
	f.StringVar(&o.check, "check", "full", "check of the result: full or off")
	f.StringVar(&o.trace, "trace", "", "file for a trace of what is done when, which Perfetto shows")
	end()
	o.AddElsewhere(cmd)
}

// prepare checks the flags and joins the others. It returns what package coded is to know.
func (o *runOptions) prepare(cmd *cobra.Command, plan *selectionFlags) (c coded.Options, err error) {
	if err := o.Join(cmd.Context()); err != nil {
		return c, err
	}
	switch {
	case o.perRank > 0 && !o.Party.Job():
		return c, exit.Usagef("--per-rank %d: all processors are in this process with --comm %s: leave it out", o.perRank, o.Comm)
	case o.output == "" && !o.dryRun:
		return c, exit.Usagef("no output directory: say where with -o DIR")
	case o.check != "full" && o.check != "off":
		return c, exit.Usagef("--check %q: want full or off", o.check)
	}
	memory, err := o.MemoryBytes()
	if err != nil {
		return c, err
	}
	if o.trace != "" {
		o.recorder = trace.New()
	}
	plan.Log = o.Session.Log
	if plan.Lenient = true; o.Party.Job() {
		plan.Place = o.Measured(o.Party.Size())
	} else {
		plan.Place, plan.Process = o.Measured(0), true // as many as there will be packets
	}
	return coded.Options{
		Dir: o.output, Replace: o.force, DryRun: o.dryRun, Job: o.Party.Job(), PerRank: o.perRank, Timeout: o.Timeout, Trace: o.recorder,
		Encoder: func(f field.Field, symbols int64) ([]volley.Option, error) {
			model, err := plan.Model(f, symbols)
			o.assumed = plan.Assumed
			return append(plan.Options(model), volley.WithMemory(memory), volley.WithCheck(o.check == "full")), err
		},
		Guard: o.checkTrace, Finish: o.writeTrace, Log: plan.Log, Progress: o.Progress(),
		Warn: func(text string) { o.Session.Say(slog.LevelWarn, launch.Saying{Text: text}) },
	}, nil
}

// advise says by which flag an error can be mended.
func (o *runOptions) advise(err error) error {
	wrong := new(coded.InputError)
	switch errors.As(err, &wrong); {
	case errors.Is(err, coded.ErrExists), errors.Is(err, coded.ErrFileExists):
		return exit.Usagef("%w; choose another directory, or --force to replace it", err)
	case wrong.Option == "Processors":
		return exit.Usagef("%w: -k has to be the number of packets", err)
	case wrong.Option == "PerRank":
		return exit.Usagef("--per-rank %d: %w", o.perRank, err)
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
	amount, bound := packetsOf(r)
	if len(r.Columns) > 0 {
		const most = 16
		order += ": coded packets of columns " + strings.Trim(fmt.Sprint(r.Columns[:min(most, r.K)]), "[]")
		if r.K > most {
			order += " …"
		}
	}
	return printable.Fprintf(w, `%s of %s over %s, matrix %s
algorithm  %s, p = %d
%sorder      %s
C1         %s, lower bound for all matrices %d
C2         %s, lower bound for all matrices %s
C3         %s per symbol
%sresult     %s
time       %.3f s%s
%s
`, packetCount, humanize.IBytes(uint64(r.PacketBytes)), r.Field, r.Matrix,
		strings.TrimSpace(r.Algorithm+" "+r.Parameters), r.Ports,
		printable.Lines(notes), order,
		printable.Count(r.C1, "round"), r.BoundC1, amount, bound,
		printable.Count(r.C3, "multiply-add"),
		printable.Lines(traffic), check, r.Seconds, overhead, remark)
}

// packetsOf writes C2 and its bound in packets.
func packetsOf(r *volley.Report) (amount, bound string) {
	if r.Pieces <= 1 {
		return printable.Count(r.C2, "packet"), fmt.Sprint(r.BoundC2)
	}
	return fmt.Sprintf("%s packets, %s of 1/%d", report.Number(r.C2Packets), printable.Count(r.C2, "piece"), r.Pieces),
		report.Number(float64(r.BoundC2) / float64(r.Pieces))
}

// checkTrace refuses a trace whose file may not be replaced, is a source, or is one that the output directory gets.
func (o *runOptions) checkTrace(sources []string, gives func(name string) bool) error {
	if o.trace == "" {
		return nil
	}
	if o.dryRun {
		return exit.Usagef("--trace and --dry-run: a dry run does nothing that takes time; leave one of them out")
	}
	if err := session.CheckOutputFile("--trace", o.trace, ""); err != nil {
		return err
	}
	there, err := os.Stat(o.trace)
	switch {
	case err == nil && disk.Among(there, sources):
		return exit.Usagef("--trace %s: it is an input, and would be lost: choose another name", o.trace)
	case err == nil && !o.force:
		return exit.Usagef("--trace %s: it is there already; choose another name, or --force to replace it", o.trace)
	}
	if dir, err := os.Stat(filepath.Dir(o.trace)); err == nil && disk.Among(dir, []string{o.output}) && gives(filepath.Base(o.trace)) {
		return exit.Usagef("--trace %s: the result has a file of that name: choose another", o.trace)
	}
	return nil
}

// writeTrace writes the trace, if one is wanted.
func (o *runOptions) writeTrace() error {
	if o.trace == "" || o.Party.Rank() > 0 {
		return nil
	}
	return session.WriteFile("--trace", o.trace, func(w io.Writer) error {
		_, err := o.recorder.WriteTo(w)
		return err
	})
}
