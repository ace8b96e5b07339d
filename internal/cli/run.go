package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"volley"
	"volley/executor"
	"volley/internal/codeddir"
	"volley/internal/disk"
	"volley/internal/printable"
	"volley/internal/selection"
	"volley/trace"
	"volley/transport"
)

// runOptions is the flags of every verb that runs a plan.
type runOptions struct {
	joining
	perRank int
	output  string
	check   string
	json    bool
	force   bool
	dryRun  bool

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
	defer flagGroup(cmd, "Run")()
	o.joining.add(f, "processor")
	if len(comms) > 1 {
		f.Var(selection.AtLeast{Value: &o.perRank, Least: 1, Unset: 0}, "per-rank", "processors in each process of --comm mpi (default: 1)")
	}
	f.StringVar(&o.check, "check", "full", "check of the result: full or off")
	f.StringVar(&o.trace, "trace", "", "file for a trace of what is done when, which Perfetto shows")
}

// options returns the library's options for the flags, all of which it checks.
func (o *runOptions) options(ctx context.Context) (_ []volley.Option, err error) {
	if err := o.join(ctx); err != nil {
		return nil, err
	}
	switch {
	case o.perRank > 0 && !o.party.job():
		return nil, usagef("--per-rank %d: all processors are in this process with --comm %s: leave it out", o.perRank, o.comm)
	case o.output == "" && !o.dryRun:
		return nil, usagef("no output directory: say where with -o DIR")
	case o.check != "full" && o.check != "off":
		return nil, usagef("--check %q: want full or off", o.check)
	}
	memory, err := o.memoryBytes()
	if err != nil {
		return nil, err
	}
	if o.trace != "" {
		o.recorder = trace.New()
	}
	return []volley.Option{
		volley.WithMemory(memory), volley.WithTimeout(o.timeout), volley.WithCheck(o.check == "full"), volley.WithTrace(o.recorder),
	}, nil
}

// keep returns an error when one of the source files is to be replaced.
func (o *runOptions) keep(sources, replaced []string) error {
	var read []os.FileInfo
	for _, name := range sources {
		if info, err := os.Stat(name); err == nil {
			read = append(read, info)
		}
	}
	for _, path := range replaced {
		there, err := os.Stat(path)
		if err == nil && slices.ContainsFunc(read, func(info os.FileInfo) bool { return os.SameFile(info, there) }) {
			return usagef("%s is an input, and %s would lose it: choose another directory", path, o.output)
		}
	}
	return nil
}

// packets are the initial packets of a run, one for each source, and the files that its
// results go to.
type packets interface {
	size(k int) int64 // of packet k as symbols, in bytes
	reader(k int) io.ReaderAt

	// create makes the files in dir and returns where the results go, by sink.
	create(dir *codeddir.Dir) ([]io.WriterAt, error)

	close()
}

// place returns the output directory of a verb, for all processes of the run. Check is
// what was checked of it, and is again when nobody else can change it any more.
func (o *runOptions) place(ctx context.Context, verb string, check func() error) (codeddir.Place, error) {
	at := codeddir.Place{Path: o.output, Check: check}
	runs, err := volley.Exchange(ctx, o.party.Transport, []byte(codeddir.NewRun()), o.timeout)
	if err != nil {
		return at, err
	}
	at.Holder = disk.HolderOf(verb, string(runs[0]))
	at.Holder.Rank = o.party.Rank()
	if o.party.Size() > 1 {
		at.Together = func(work func() error) error { return o.together(ctx, work) }
	}
	return at, nil
}

// outputError says that the output directory cannot be written, unless that shows already.
func outputError(err error) error {
	switch {
	case errors.Is(err, codeddir.ErrExists), errors.Is(err, codeddir.ErrFileExists):
		return usagef("%w; choose another directory, or --force to replace it", err)
	case errors.As(err, new(usageError)), errors.As(err, new(*transport.AbortError)), errors.As(err, new(*disk.BusyError)):
		return err
	}
	return usagef("output directory: %w", err)
}

// produce runs the encoder on packets of at most that many symbols, with results in a
// directory, which is as it was when that fails. Finish then writes what is left to
// write, and returns what commits it all. The trace goes to its file.
func (o *runOptions) produce(ctx context.Context, stderr io.Writer, what string, e *volley.Encoder, p packets, symbols int64, dir *codeddir.Dir,
	finish func(*volley.Report) (commit func() error, err error)) (*volley.Report, error) {
	defer dir.Discard()
	if dir.Finished {
		slog.Info("finished what an interrupted run had committed", "directory", dir.Path)
	}
	if len(dir.Removed) > 0 {
		slog.Info("removed what interrupted runs had left", "directory", dir.Path, "files", dir.Removed)
	}
	outputs, err := p.create(dir)
	if err != nil {
		return nil, outputError(err)
	}
	a := e.Problem().Matrix
	slog.Info(what, "processors", e.Problem().Processors(), "field", a.Field().Name(), "matrix", a.ID())
	report, err := o.run(ctx, stderr, e, p, outputs, int64(a.Cols())*symbols*int64(a.Field().SymbolBytes()))
	if err != nil {
		return nil, err
	}
	commit, err := finish(report)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = o.together(ctx, o.writeTrace) // before the result, which is not there where this fails
	}
	if err == nil {
		err = commit()
	}
	if err != nil {
		return nil, err
	}
	return report, nil
}

// run runs the encoder: a packet for each source, an output for each sink. The outputs
// get total bytes.
func (o *runOptions) run(ctx context.Context, stderr io.Writer, e *volley.Encoder, p packets, outputs []io.WriterAt, total int64) (*volley.Report, error) {
	bar := newBar(stderr, total)
	defer bar.stop()
	problem := e.Problem()
	n := problem.Processors()
	first, end := executor.Hosted(n, o.party.Rank(), o.party.Size())
	var mine []volley.Packet
	for k := first; k < end; k++ {
		var packet volley.Packet
		if row, ok := problem.Source(k); ok {
			packet.Source, packet.Size = p.reader(row), p.size(row)
		}
		if s, ok := problem.Sink(k); ok {
			packet.Coded = &progressWriter{outputs[s], bar}
		}
		mine = append(mine, packet)
	}
	report, err := e.Run(ctx, o.party.Transport, mine...)
	if err != nil {
		return nil, err
	}
	type account struct {
		Report *volley.Report
		Events []trace.Event
	}
	all, err := volley.ExchangeValues(ctx, o.party.Transport, account{report, o.recorder.Events()}, o.timeout)
	if err != nil {
		return nil, err
	}
	var reports []*volley.Report
	for r, x := range all {
		if x.Report == nil || len(x.Report.Rounds) != len(report.Rounds) {
			return nil, fmt.Errorf("rank %d has no report of this run", r)
		}
		reports = append(reports, x.Report)
		if r != o.party.Rank() {
			o.recorder.Merge(x.Events)
		}
	}
	return volley.Merge(reports), nil
}

// together does work here, such as syncing files, and returns when all processes have done
// theirs, however long that takes.
func (o *runOptions) together(ctx context.Context, work func() error) error {
	return volley.Steady(ctx, o.party.Transport, o.timeout, func(context.Context) error { return work() })
}

// estimate prints what a run on packets of that many symbols would do.
func (o *runOptions) estimate(w io.Writer, e *volley.Encoder, symbols int64) error {
	r, err := e.Estimate(symbols)
	if err != nil {
		return err
	}
	return o.print(w, r, "nothing written: a dry run; the time is the model's")
}

// print prints the report, as JSON if asked, else with a closing remark.
func (o *runOptions) print(w io.Writer, r *volley.Report, remark string) error {
	if o.party.Rank() > 0 {
		return nil
	}
	if o.json {
		return writeJSON(w, r)
	}
	check := "not checked"
	if r.Verified {
		check = "verified by random linear combinations"
	}
	traffic := "" // which a dry run has not counted
	if !o.dryRun {
		traffic = fmt.Sprintf("traffic    %s sent by the busiest processor, and %s of control\n",
			humanize.IBytes(uint64(r.BytesSentMax)), humanize.IBytes(uint64(r.ControlBytes)))
	}
	notes := ""
	for _, note := range r.Notes {
		notes += "           " + printable.Text(note) + "\n"
	}
	order := r.Order
	packetCount := count(r.K, "packet")
	if r.Sinks > 0 {
		packetCount = fmt.Sprintf("%s for %s on %s,", packetCount, count(r.Sinks, "sink"), count(r.Processors, "processor"))
	}
	amount, bound := packetsOf(r)
	if len(r.Columns) > 0 {
		const most = 16
		order += ": coded packets of columns " + strings.Trim(fmt.Sprint(r.Columns[:min(most, r.K)]), "[]")
		if r.K > most {
			order += " …"
		}
	}
	_, err := printable.Fprintf(w, `%s of %s over %s, matrix %s
algorithm  %s %s, p = %d
%sorder      %s
C1         %s, lower bound for all matrices %d
C2         %s, lower bound for all matrices %s
C3         %s per symbol
%sresult     %s
time       %.3f s
%s
`, packetCount, humanize.IBytes(uint64(r.PacketBytes)), r.Field, r.Matrix,
		r.Algorithm, r.Parameters, r.Ports,
		printable.Lines(notes), order,
		count(r.C1, "round"), r.BoundC1, amount, bound,
		count(r.C3, "multiply-add"),
		printable.Lines(traffic), check, r.Seconds, remark)
	return err
}

// packetsOf writes C2 and its bound in packets.
func packetsOf(r *volley.Report) (amount, bound string) {
	if r.Pieces <= 1 {
		return count(r.C2, "packet"), fmt.Sprint(r.BoundC2)
	}
	return fmt.Sprintf("%s packets, %s of 1/%d", decimal(r.C2Packets), count(r.C2, "piece"), r.Pieces),
		decimal(float64(r.BoundC2) / float64(r.Pieces))
}

// bar is a progress bar of all processors together, where stderr is a terminal.
type bar struct {
	*progressbar.ProgressBar
	done atomic.Bool
}

func newBar(stderr io.Writer, total int64) *bar {
	f, ok := stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &bar{ProgressBar: progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(stderr), progressbar.OptionShowBytes(true), progressbar.OptionUseIECUnits(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())}
}

// stop takes the bar away.
func (b *bar) stop() {
	if b != nil && !b.done.Swap(true) {
		b.Clear()
	}
}

// progressWriter tells the bar what is written.
type progressWriter struct {
	io.WriterAt
	bar *bar
}

func (w *progressWriter) WriteAt(p []byte, offset int64) (int, error) {
	n, err := w.WriterAt.WriteAt(p, offset)
	if w.bar != nil {
		w.bar.Add(n)
	}
	return n, err
}
