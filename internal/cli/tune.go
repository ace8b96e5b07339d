package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"volley"
	"volley/field"
	"volley/internal/printable"
	"volley/internal/selection"
	"volley/report"
	"volley/transport"
	"volley/transport/local"
	"volley/tune"
)

type tuneOptions struct {
	fields       string
	comm         string
	party        *party
	k, ports     int
	time         time.Duration
	output       string
	json, dryRun bool
}

// tunedFields are those measured by default: of each way to do arithmetic the
// usual ones.
const tunedFields = "2^8,2^16,257,babybear,koalabear,goldilocks,bls12-381,bn254"

// mostTuneMemory is as much as all processors may take to measure.
const mostTuneMemory = 4 << 30

const tuneHelp = `Measure this machine: the β, τ and γ by which later runs choose a schedule.

β is the time to start a message, τ that to send a byte, and γ that of a
multiply-add on a byte. The processors run in this process and talk over
in-process channels. The result is stored where later runs look for it. Let the
machine be idle. More: volley help measuring`

func newTune() *cobra.Command {
	o := &tuneOptions{}
	cmd := &cobra.Command{
		Use:   "tune [flags]",
		Short: "Measure this machine: β, τ and γ for later runs",
		Long:  tuneHelp,
		Example: `  volley tune --dry-run --time 500ms
  volley tune --dry-run --time 200ms --field 2^8,goldilocks -k 4 -p 3 --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runTune(cmd, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.fields, "field", tunedFields, "`FIELDS` whose arithmetic is measured, with commas (default: eight usual ones)")
	f.Lookup("field").DefValue = ""
	f.StringVar(&o.comm, "comm", comms[0].name, commUsage())
	f.IntVarP(&o.k, "processors", "k", 2, "`K`, the number of processors")
	f.IntVarP(&o.ports, "ports", "p", 1, "`P`, the messages a processor sends, and receives, at a time")
	f.DurationVar(&o.time, "time", tune.DefaultTime, "`TIME` to measure, about")
	f.StringVarP(&o.output, "output", "o", "", "`FILE` for the result (default: where later runs look)")
	f.BoolVar(&o.json, "json", false, "print what the file holds")
	f.BoolVar(&o.dryRun, "dry-run", false, "measure and print, and write nothing")
	return cmd
}

func runTune(cmd *cobra.Command, o *tuneOptions) error {
	fields, err := o.parseFields()
	if err != nil {
		return err
	}
	if o.party, err = join(cmd.Context(), o.comm, volley.DefaultTimeout); err != nil {
		return err
	}
	if o.party.job() {
		if cmd.Flags().Changed("processors") && o.k != o.party.Size() {
			return usagef("-k %d in a job of %s: leave it out", o.k, printable.Count(o.party.Size(), "process"))
		}
		o.k = o.party.Size()
	}
	switch {
	case o.k < 2:
		return usagef("%d processors: say how many with -k, 2 or more", o.k)
	case o.ports < 1:
		return usagef("%d ports: want 1 or more", o.ports)
	case o.time <= 0:
		return usagef("--time %v: want more than 0", o.time)
	}
	if each := tune.Memory(min(o.ports, o.k-1)); each > mostTuneMemory/int64(o.k) {
		return usagef("%d processors with %s would take %s each to measure: want %s at most together: fewer of them with -k, or of ports with -p",
			o.k, printable.Count(min(o.ports, o.k-1), "port"), humanize.IBytes(uint64(each)), humanize.IBytes(mostTuneMemory))
	}
	path, remark, err := o.place()
	if err != nil {
		return err
	}
	slog.Info("measuring", "processors", o.k, "time", o.time)
	r, err := o.measure(cmd.Context(), fields)
	if err != nil {
		return err
	}
	if err := cmd.Context().Err(); err != nil {
		return context.Cause(cmd.Context())
	}
	if o.party.Rank() > 0 {
		return nil
	}
	if path != "" {
		if err := r.Save(path); err != nil {
			return fmt.Errorf("cannot store the result: %w", err)
		}
		slog.Info("stored", "file", path)
	}
	if o.json {
		return writeJSON(cmd.OutOrStdout(), r)
	}
	return printTune(cmd.OutOrStdout(), r, remark)
}

// parseFields returns the fields asked for, each once.
func (o *tuneOptions) parseFields() ([]field.Field, error) {
	var fields []field.Field
	for _, name := range selection.Names(o.fields) {
		f, err := field.Parse(name)
		if err != nil {
			return nil, usagef("--field: %w", err)
		}
		if !slices.ContainsFunc(fields, func(other field.Field) bool { return other.Name() == f.Name() }) {
			fields = append(fields, f)
		}
	}
	return fields, nil
}

// place returns the file to store the result in, if any, and what to say of it.
func (o *tuneOptions) place() (path, remark string, err error) {
	if o.dryRun {
		return "", "nothing stored: a dry run", nil
	}
	usual, err := tune.Path()
	if path = o.output; path == "" {
		path = usual
	}
	switch {
	case path == "" && err != nil:
		return "", "", usagef("no place to store the result: %w: say where with -o FILE", err)
	case path == "":
		return "", "nothing stored: " + tune.Variable + " is off", nil
	}
	if err := tune.Check(path); err != nil {
		return "", "", usage(err)
	}
	remark = "stored in " + printable.Text(path) + ":\n"
	if path != usual {
		remark += fmt.Sprintf("runs with %s=%s ", tune.Variable, printable.Text(path))
	} else {
		remark += "later runs "
	}
	return path, remark + "take β, τ and γ from there, unless --beta, --tau or --gamma is given", nil
}

// measure returns what this process has measured: that of processor 0 counts.
func (o *tuneOptions) measure(ctx context.Context, fields []field.Field) (first *tune.Result, err error) {
	options := []tune.Option{tune.WithTime(o.time), tune.WithPorts(o.ports), tune.WithName(o.comm)}
	if o.party.job() {
		return tune.Measure(ctx, o.party.Transport, fields, options...)
	}
	err = local.Run(ctx, o.k, func(ctx context.Context, t transport.Transport) error {
		r, err := tune.Measure(ctx, t, fields, options...)
		if t.Rank() == 0 {
			first = r
		}
		return err
	})
	return first, err
}

func printTune(w io.Writer, r *tune.Result, remark string) error {
	rate := ""
	if r.TauSecondsPerByte > 0 {
		rate = fmt.Sprintf(", %.3g GB/s", 1e-9/r.TauSecondsPerByte)
	}
	if _, err := printable.Fprintf(w, `machine    %s, %s, %s
transport  %s, %s, p = %d
β          %s to start a message
τ          %s for each byte%s
residual   %.1f %% relative RMS, R² = %.4f

`, r.Host, r.CPU, printable.Count(r.CPUs, "CPU"),
		r.Transport, printable.Count(r.Ranks, "processor"), r.Ports,
		report.Seconds(r.BetaSeconds), report.Seconds(r.TauSecondsPerByte), rate,
		100*r.Residual, r.RSquared); err != nil {
		return err
	}
	err := report.Text(w, []report.Column[tune.Point]{
		{Name: "message", Value: func(p tune.Point) any { return humanize.IBytes(uint64(p.Bytes)) }},
		{Name: "round", Value: func(p tune.Point) any { return p.Seconds }, Text: report.Seconds},
		{Name: "model", Value: func(p tune.Point) any { return r.Model(p.Bytes) }, Text: report.Seconds},
		{Name: "off", Value: func(p tune.Point) any {
			if p.Seconds == 0 {
				return nil
			}
			return fmt.Sprintf("%+.1f %%", 100*(r.Model(p.Bytes)/p.Seconds-1))
		}},
	}, r.Points)
	if err != nil {
		return err
	}
	if _, err := printable.Fprintf(w, "\n"); err != nil {
		return err
	}
	err = report.Text(w, []report.Column[tune.Coding]{
		{Name: "field", Value: func(c tune.Coding) any { return c.Field }},
		{Name: "γ", Unit: "per symbol", Text: report.Seconds, Value: func(c tune.Coding) any { return c.Cached * float64(c.SymbolBytes) }},
		{Name: "in cache", Unit: "per byte", Text: report.Seconds, Value: func(c tune.Coding) any { return c.Cached }},
		{Name: "in memory", Unit: "per byte", Text: report.Seconds, Value: func(c tune.Coding) any { return c.Uncached }},
		{Name: "spread", Value: func(c tune.Coding) any { return fmt.Sprintf("%.1f %%", 100*c.Spread) }},
	}, r.Coding)
	if err != nil {
		return err
	}
	_, err = printable.Fprintf(w, "\n%s\n", printable.Lines(remark))
	return err
}
