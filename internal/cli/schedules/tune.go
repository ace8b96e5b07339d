package schedules

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"volley/field"
	"volley/internal/cli/ranks"
	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/printable"
	"volley/internal/report"
	"volley/internal/selection"
	"volley/transport"
	"volley/transport/local"
	"volley/tune"
)

type tuneOptions struct {
	fields string
	ranks.Joining
	k            int
	time         time.Duration
	output       string
	json, dryRun bool
}

// tunedFields are those measured by default: of each way to do arithmetic the usual ones.
func tunedFields() string {
	list := []string{"2^8", "2^16", "257"}
	for _, k := range field.Kinds() {
		if k.Pattern == k.Example { // a field with a name
			list = append(list, k.Example)
		}
	}
	return strings.Join(list, ",")
}

// mostTuneMemory is as much as all processors may take to measure.
const mostTuneMemory = 4 << 30

// NewTune returns the verb tune.
func NewTune(s *session.Invocation) *cobra.Command {
	o := &tuneOptions{Joining: ranks.Joining{Session: s}}
	cmd := &cobra.Command{
		Use:     "tune [flags] [HOST:...]",
		Aliases: []string{"check-network"},
		Short:   "Check and measure the network, and γ of fields, for later runs",
		RunE: func(cmd *cobra.Command, args []string) error {
			hosts, err := o.FromFile(cmd, args)
			if err != nil {
				return err
			}
			return o.Spread(cmd, hosts, func() error {
				switch {
				case s.LaunchRank != nil:
				case cmd.Flags().Changed(ranks.GroupFlag):
					return exit.Usagef("--%s: all nodes are directories of this machine: there is no network to measure; a node elsewhere is HOST:DIR", ranks.GroupFlag)
				case len(args) > 0:
					return exit.Usagef("%q is no host: write HOST:, as in volley tune a: b: c:", args[0])
				}
				return runTune(cmd, o)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.fields, "field", tunedFields(), "`FIELDS` whose arithmetic is measured, with commas (default: the usual ones)")
	f.Lookup("field").DefValue = ""
	f.IntVarP(&o.k, "processors", "k", 2, "`K`, the number of processors")
	f.DurationVar(&o.time, "time", tune.DefaultTime, "`TIME` to measure, about")
	f.StringVarP(&o.output, "output", "o", "", "`FILE` for the result (default: where later runs look)")
	f.BoolVar(&o.json, "json", false, "print the result as JSON, as the file holds it")
	f.BoolVar(&o.dryRun, "dry-run", false, "measure and print, and write nothing")
	end := session.FlagGroup(cmd, "Run")
	o.AddComm(f)
	o.AddProgress(f)
	end()
	o.AddElsewhere(cmd)
	o.AddFile(cmd)
	return cmd
}

func runTune(cmd *cobra.Command, o *tuneOptions) error {
	fields, err := o.parseFields()
	if err != nil {
		return err
	}
	o.Probes, o.Rates = true, true
	err = o.Join(cmd.Context())
	if o.Pairs != nil && o.Party.Rank() == 0 && !(o.json && err == nil) {
		if err := o.printPairs(cmd.OutOrStdout()); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if o.Party.Job() {
		if cmd.Flags().Changed("processors") && o.k != o.Party.Size() {
			return exit.Usagef("-k %d in a job of %s: leave it out", o.k, printable.Count(o.Party.Size(), "process"))
		}
		o.k = o.Party.Size()
	}
	switch {
	case o.k < 2:
		return exit.Usagef("%d processors: say how many with -k, 2 or more", o.k)
	case o.time <= 0:
		return exit.Usagef("--time %v: want more than 0", o.time)
	case !o.Party.Job() && o.k > mostTuneMemory/tune.Memory:
		return exit.Usagef("%d processors would take %s each to measure: want %s at most together: fewer of them with -k",
			o.k, humanize.IBytes(tune.Memory), humanize.IBytes(mostTuneMemory))
	}
	path, remark, err := o.storage()
	if err != nil {
		return err
	}
	o.Session.Log.Info("measuring", "processors", o.k, "time", o.time)
	r, err := o.measure(cmd.Context(), fields)
	if err != nil {
		return err
	}
	if err := cmd.Context().Err(); err != nil {
		return context.Cause(cmd.Context())
	}
	lead := o.Party.Rank() == 0
	if !r.Fits() && lead {
		o.Session.Log.Warn("the model is far off what was measured, twice, and so are the times of plans by it: measure again while nothing else runs",
			"residual", fmt.Sprintf("%.0f %%", 100*r.Residual()))
	}
	var failed error
	if path != "" && (lead || o.Pairs != nil) {
		if err := r.Save(path); err != nil {
			failed, remark = fmt.Errorf("cannot store the result: %w: another place is -o FILE", err), "nothing stored"
		} else {
			o.Session.Log.Info("stored", "file", path)
		}
	}
	switch {
	case !lead:
	case o.json:
		err = session.WriteJSON(cmd.OutOrStdout(), tuned{o.Pairs, r})
	default:
		err = printTune(cmd.OutOrStdout(), r, remark)
	}
	return cmp.Or(err, failed)
}

// parseFields returns the fields asked for, each once.
func (o *tuneOptions) parseFields() ([]field.Field, error) {
	var fields []field.Field
	for _, name := range selection.Names(o.fields) {
		f, err := field.Parse(name)
		if err != nil {
			return nil, exit.Usagef("--field: %w", err)
		}
		if !slices.ContainsFunc(fields, func(listed field.Field) bool { return listed.Name() == f.Name() }) {
			fields = append(fields, f)
		}
	}
	return fields, nil
}

// storage returns the file to store the result in, if any, and what to say of it.
func (o *tuneOptions) storage() (path, remark string, err error) {
	if o.dryRun {
		return "", "nothing stored: a dry run", nil
	}
	usual, err := tune.Path()
	if path = o.output; path == "" {
		path = usual
	}
	switch {
	case path == session.Standard:
		return "", "", exit.Usagef("-o -: a result is added to a file: name one, or print the result with --dry-run --json")
	case path == "" && err != nil:
		return "", "", exit.Usagef("no place to store the result: %w: say where with -o FILE", err)
	case path == "":
		return "", "nothing stored: " + tune.Variable + " is off", nil
	}
	_, err = tune.Check(path)
	if err != nil && !errors.Is(err, tune.ErrOld) {
		return "", "", exit.AsUsage(err)
	}
	remark = "stored in " + printable.Text(path)
	if o.Pairs != nil {
		remark += " at each host"
	}
	if err != nil {
		remark += fmt.Sprintf(", in place of a file of a version before %d", tune.Version)
	}
	remark += ":\n"
	if path != usual {
		remark += fmt.Sprintf("runs with %s=%s ", tune.Variable, printable.Text(path))
	} else {
		remark += "later runs "
	}
	return path, remark + "over " + o.Comm + " take the network and γ from there", nil
}

// measure returns what this process has measured: that of processor 0 counts.
func (o *tuneOptions) measure(ctx context.Context, fields []field.Field) (first *tune.Result, err error) {
	platform := o.Measured(o.k)
	s := o.Session
	var progress func(finished, added time.Duration)
	if add := o.Progress(); add != nil && (s.LaunchRank == nil || o.Party.Rank() == 0) { // a launch hears of one rank: all take as long
		progress = func(finished, added time.Duration) { add(int64(finished), int64(added)) }
	}
	if o.Party.Job() {
		return tune.Measure(ctx, o.Party.Transport, platform, fields, o.time, progress)
	}
	err = local.Run(ctx, o.k, func(ctx context.Context, t transport.Transport) error {
		tell := progress
		if t.Rank() > 0 {
			tell = nil
		}
		r, err := tune.Measure(ctx, t, platform, fields, o.time, tell)
		if t.Rank() == 0 {
			first = r
		}
		return err
	})
	return first, err
}

func printTune(stdout io.Writer, r *tune.Result, remark string) error {
	w, n := bufio.NewWriter(stdout), r.Network // the writer keeps its first error
	printable.Fprintf(w, `measured   %v, %s, %s
L          %s for each round
o          %s for each message
`, r.Platform, r.CPU, printable.Count(r.CPUs, "CPU"), report.Seconds(n.Latency.Seconds()), report.Seconds(n.Overhead.Seconds()))
	for i, g := range n.Gaps.Entries() {
		name, suffix := "G", ""
		if i > 0 {
			name = ""
		}
		if n.Gaps[1].Messages > 0 {
			suffix = ", " + printable.Count(int(g.Messages), "message") + " under way"
		}
		printable.Fprintf(w, "%-10s %s for each byte, %.3g GB/s%s\n", name, report.Seconds(float64(g.PerByte)), 1e-9/float64(g.PerByte), suffix)
	}
	printable.Fprintf(w, "residual   %.1f %% relative RMS\n\n", 100*r.Residual())
	report.Text(w, []report.Column[tune.Point]{
		{Name: "messages", Value: func(p tune.Point) any { return p.Messages }},
		{Name: "bytes", Unit: "together", Value: func(p tune.Point) any { return p.Bytes }},
		{Name: "round", Value: func(p tune.Point) any { return p.Seconds }, Text: report.Seconds},
		{Name: "model", Value: func(p tune.Point) any { return r.Model(p) }, Text: report.Seconds},
		{Name: "off", Value: func(p tune.Point) any {
			if p.Seconds == 0 {
				return nil
			}
			return fmt.Sprintf("%+.1f %%", 100*(r.Model(p)/p.Seconds-1))
		}},
	}, r.Points)
	printable.Fprintf(w, "\n")
	report.Text(w, []report.Column[tune.Coding]{
		{Name: "field", Value: func(c tune.Coding) any { return c.Field }},
		{Name: "γ", Unit: "per symbol", Text: report.Seconds, Value: func(c tune.Coding) any { return c.Cached * float64(c.SymbolBytes) }},
		{Name: "in cache", Unit: "per byte", Text: report.Seconds, Value: func(c tune.Coding) any { return c.Cached }},
		{Name: "in memory", Unit: "per byte", Text: report.Seconds, Value: func(c tune.Coding) any { return c.Uncached }},
		{Name: "spread", Value: func(c tune.Coding) any { return fmt.Sprintf("%.1f %%", 100*c.Spread) }},
	}, r.Coding)
	printable.Fprintf(w, "\n%s\n", printable.Lines(remark))
	return w.Flush()
}

type tuned struct {
	Pairs []ranks.Pair `json:"pairs,omitempty"`
	*tune.Result
}

func (o *tuneOptions) printPairs(w io.Writer) error {
	if o.json {
		return session.WriteJSON(w, tuned{Pairs: o.Pairs})
	}
	unlessFailed := func(value func(p ranks.Pair) any) func(ranks.Pair) any {
		return func(p ranks.Pair) any {
			if p.Error != "" {
				return nil
			}
			return value(p)
		}
	}
	err := report.Text(w, []report.Column[ranks.Pair]{
		{Name: "from", Value: func(p ranks.Pair) any { return p.SourceHost }},
		{Name: "to", Value: func(p ranks.Pair) any { return p.TargetHost }},
		{Name: "address", Value: func(p ranks.Pair) any { return p.Address }},
		{Name: "handshake", Text: report.Seconds, Value: unlessFailed(func(p ranks.Pair) any { return p.Handshake })},
		{Name: "delay", Text: report.Seconds, Value: unlessFailed(func(p ranks.Pair) any { return p.Delay })},
		{Name: "rate", Unit: "per second", Value: unlessFailed(func(p ranks.Pair) any { return humanize.Bytes(uint64(p.Rate)) })},
		{Name: "state", Value: func(p ranks.Pair) any {
			if p.Error != "" {
				return "fails"
			}
			return "good"
		}},
	}, o.Pairs)
	if err == nil {
		err = printable.Fprintf(w, "\n")
	}
	return err
}
