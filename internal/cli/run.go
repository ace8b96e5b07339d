package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	"volley/matrix"
	"volley/sim"
	"volley/transport"
	"volley/transport/local"
)

// runOptions is the flags of every verb that runs a plan.
type runOptions struct {
	output  string
	memory  string
	timeout time.Duration
	check   string
	json    bool
	force   bool
	dryRun  bool
}

// addRun adds the flags, with what --output and --force are for.
func (o *runOptions) addRun(cmd *cobra.Command, output, force string) {
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", output)
	f.StringVar(&o.memory, "memory", "64MiB", "packet memory of each processor")
	f.DurationVar(&o.timeout, "timeout", volley.DefaultTimeout, "give up when no message comes for this long; 0: never")
	f.StringVar(&o.check, "check", "full", "check of the result: full or off")
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	f.BoolVar(&o.force, "force", false, force)
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be done, and write nothing")
}

// options returns the library's options for the flags, all of which it checks.
func (o *runOptions) options() ([]volley.Option, error) {
	switch {
	case o.output == "" && !o.dryRun:
		return nil, usagef("no output directory: say where with -o DIR")
	case o.check != "full" && o.check != "off":
		return nil, usagef("--check %q: want full or off", o.check)
	}
	memory, err := humanize.ParseBytes(o.memory)
	if err != nil || memory == 0 || memory > 1<<62 {
		return nil, usagef("--memory %q: want a size such as 64MiB", o.memory)
	}
	return []volley.Option{
		volley.WithMemory(int64(memory)), volley.WithTimeout(o.timeout), volley.WithCheck(o.check == "full"),
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

// initial is the initial packets of a run.
type initial interface {
	count() int       // K
	size(k int) int64 // of packet k as symbols, in bytes
	reader(k int) io.ReaderAt
}

// runLocal runs the encoder with all its processors in this process: a source for
// each packet, a sink for each output. The outputs get total bytes.
func runLocal(ctx context.Context, stderr io.Writer, e *volley.Encoder, packets initial, outputs []io.WriterAt, total int64) (*volley.Report, error) {
	bar := newBar(stderr, total)
	defer bar.stop()
	problem := e.Problem()
	reports := make([]*volley.Report, problem.Processors())
	err := local.Run(ctx, len(reports), func(ctx context.Context, t transport.Transport) error {
		k := t.Rank()
		var in io.ReaderAt
		var size int64
		if row, ok := problem.Source(k); ok {
			in, size = packets.reader(row), packets.size(row)
		}
		var out io.WriterAt
		if s, ok := problem.Sink(k); ok {
			out = &progressWriter{outputs[s], bar}
		}
		var err error
		reports[k], err = e.Run(ctx, t, in, size, out)
		return err
	})
	if err != nil {
		return nil, err
	}
	return volley.Merge(reports), nil
}

// packetBytes returns the length of a packet of that many symbols.
func packetBytes(a matrix.Matrix, m sim.Model) int64 {
	return m.Symbols * int64(a.Field().SymbolBytes())
}

// estimate prints what a run would do.
func (o *runOptions) estimate(w io.Writer, e *volley.Encoder, a matrix.Matrix, m sim.Model) error {
	p, err := e.Plan(m.Symbols)
	if err != nil {
		return err
	}
	r, err := volley.Estimate(p, a)
	if err != nil {
		return err
	}
	r.PacketBytes, r.SymbolsPerPacket = packetBytes(a, m), m.Symbols
	r.Seconds = m.Time(sim.Count(p)).Seconds()
	return o.print(w, r, "nothing written: a dry run; the time is the model's")
}

// print prints the report, as JSON if asked, else with a closing remark.
func (o *runOptions) print(w io.Writer, r *volley.Report, remark string) error {
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
		notes += "           " + note + "\n"
	}
	order := r.Order
	packetCount := count(r.K, "packet")
	if r.Sinks > 0 {
		packetCount = fmt.Sprintf("%s for %s on %s,", packetCount, count(r.Sinks, "sink"), count(r.Processors, "processor"))
	}
	amount, bound := count(r.C2, "packet"), fmt.Sprint(r.BoundC2)
	if r.Pieces > 1 {
		bound = fmt.Sprintf("%.3g", float64(r.BoundC2)/float64(r.Pieces))
		amount = fmt.Sprintf("%.3g packets, %d pieces of 1/%d", r.C2Packets, r.C2, r.Pieces)
	}
	if len(r.Columns) > 0 {
		const most = 16
		order += ": coded packets of columns " + strings.Trim(fmt.Sprint(r.Columns[:min(most, r.K)]), "[]")
		if r.K > most {
			order += " …"
		}
	}
	_, err := fmt.Fprintf(w, `%s of %s over %s, matrix %s
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
		notes, order,
		count(r.C1, "round"), r.BoundC1, amount, bound,
		count(r.C3, "multiply-add"),
		traffic, check, r.Seconds, remark)
	return err
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
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
