package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"volley"
	"volley/field"
	"volley/internal/codeddir"
	"volley/matrix"
	"volley/sim"
	"volley/transport"
	"volley/transport/local"
)

type encodeOptions struct {
	selection
	output  string
	comm    string
	csv     bool
	symbols bool
	memory  string
	timeout time.Duration
	check   string
	json    bool
	force   bool
	dryRun  bool
}

const encodeHelp = `Encode the packets of K processors, one input file each, into K coded files.

Each PACKET is a file, or a directory, which stands for the regular files in it
in name order, names with a leading dot left out. With -k a single name with
{rank} in it, such as 'ckpt.{rank}', stands for K files. Shorter packets are
padded with zeros for coding.

DIR gets coded.0 to coded.<K-1> and manifest.json, written last: a directory with
a manifest is whole. With --csv the one input is a text file of symbols in
decimal, a row for each processor, and the output is coded.csv.

The processors run in this process and talk over in-process channels.`

func newEncode() *cobra.Command {
	o := &encodeOptions{}
	cmd := &cobra.Command{
		Use:   "encode [flags] -o DIR PACKET...",
		Short: "Encode files: one in and one out for each processor",
		Long:  encodeHelp,
		Example: `  volley encode -o coded examples/packets
  volley encode --field 2^16 --matrix random:1 -p 2 -o coded -k 8 'ckpt.{rank}'`,
		RunE: func(cmd *cobra.Command, args []string) error { return runEncode(cmd, o, args) },
	}
	o.addMatrix(cmd)
	o.addPlan(cmd)
	f := cmd.Flags()
	f.Lookup("processors").Usage = "number of processors (default: of packets)"
	f.StringVarP(&o.output, "output", "o", "", "directory for the coded files; made if need be")
	f.StringVar(&o.comm, "comm", "local", "how processors talk: local, in this process")
	f.BoolVar(&o.csv, "csv", false, "read and write symbols as text, a row for each processor")
	f.BoolVar(&o.symbols, "symbols", false, "the bytes of the files are symbols already; do not pack them")
	f.StringVar(&o.memory, "memory", "64MiB", "packet memory of each processor")
	f.DurationVar(&o.timeout, "timeout", volley.DefaultTimeout, "give up when no message comes for this long; 0: never")
	f.StringVar(&o.check, "check", "full", "check of the result: full or off")
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	f.BoolVar(&o.force, "force", false, "replace the result that DIR holds")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be done, and write nothing")
	return cmd
}

func runEncode(cmd *cobra.Command, o *encodeOptions, args []string) error {
	job, err := o.prepare(cmd, args)
	if err != nil {
		return err
	}
	defer job.close()
	if o.dryRun {
		return job.estimate(cmd.OutOrStdout())
	}
	report, err := job.run(cmd.Context(), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	return o.print(cmd.OutOrStdout(), report, fmt.Sprintf("coded packets in %s", o.output))
}

// encodeJob is an encode whose arguments are all right.
type encodeJob struct {
	options *encodeOptions
	spec    matrix.Spec
	plain   matrix.Matrix // before --inverse; what the manifest describes
	matrix  matrix.Matrix
	model   sim.Model
	encoder *volley.Encoder
	packets packets
}

func (o *encodeOptions) prepare(cmd *cobra.Command, args []string) (_ *encodeJob, err error) {
	job := &encodeJob{options: o}
	switch {
	case o.output == "" && !o.dryRun:
		return nil, usagef("no output directory: say where with -o DIR")
	case o.comm != "local":
		return nil, usagef("--comm %q: want local", o.comm)
	case o.check != "full" && o.check != "off":
		return nil, usagef("--check %q: want full or off", o.check)
	case o.csv && o.symbols:
		return nil, usagef("--csv and --symbols: a text file holds symbols anyway; leave --symbols out")
	}
	memory, err := humanize.ParseBytes(o.memory)
	if err != nil || memory == 0 || memory > 1<<62 {
		return nil, usagef("--memory %q: want a size such as 64MiB", o.memory)
	}
	f, err := field.Parse(o.field)
	if err != nil {
		return nil, usage(err)
	}
	if job.packets, err = o.open(f, args); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			job.close()
		}
	}()
	if cmd.Flags().Changed("processors") && o.k != job.packets.count() {
		return nil, usagef("%d packets for %d processors: -k has to be the number of packets", job.packets.count(), o.k)
	}
	o.k = job.packets.count()
	if job.spec, err = o.spec(cmd); err != nil {
		return nil, err
	}
	if err := o.checkOutput(job); err != nil {
		return nil, err
	}
	if err := job.build(f); err != nil {
		return nil, usage(err)
	}
	if job.model, err = o.model(f, job.packets.symbols()); err != nil {
		return nil, err
	}
	job.encoder, err = volley.Compile(job.matrix, append(o.selection.options(job.model),
		volley.WithMemory(int64(memory)), volley.WithTimeout(o.timeout), volley.WithCheck(o.check == "full"))...)
	if err != nil {
		return nil, usage(err)
	}
	return job, nil
}

// checkOutput returns an error when the output directory may not be replaced, or
// a file that the run reads would be.
func (o *encodeOptions) checkOutput(job *encodeJob) error {
	if o.output == "" {
		return nil
	}
	err := codeddir.Check(o.output, o.force)
	if errors.Is(err, codeddir.ErrExists) {
		return usagef("%w; choose another directory, or --force to replace it", err)
	}
	if err != nil {
		return usage(err)
	}
	sources := append(job.packets.sources(), job.spec.Points) // a file, unless it is a word
	if job.spec.Family == "file" {
		sources = append(sources, job.spec.Argument)
	}
	var read []os.FileInfo
	for _, name := range sources {
		if info, err := os.Stat(name); err == nil {
			read = append(read, info)
		}
	}
	for _, path := range codeddir.Replaces(o.output, job.packets.targets()) {
		there, err := os.Stat(path)
		if err == nil && slices.ContainsFunc(read, func(info os.FileInfo) bool { return os.SameFile(info, there) }) {
			return usagef("%s is an input, and %s would lose it: choose another directory", path, o.output)
		}
	}
	return nil
}

// build makes the matrices. It reads the file of one only once: it may be a pipe,
// and may change.
func (j *encodeJob) build(f field.Field) (err error) {
	plain := j.spec
	plain.Inverse = false
	if j.plain, err = plain.Build(f, j.packets.count()); err != nil {
		return err
	}
	j.matrix = j.plain
	if j.spec.Inverse {
		j.matrix, err = matrix.Inverse(j.plain)
	}
	return err
}

func (j *encodeJob) close() { j.packets.close() }

// bytes returns the length of a coded packet.
func (j *encodeJob) bytes() int64 { return j.model.Symbols * int64(j.matrix.Field().SymbolBytes()) }

// run encodes into the output directory, which is as it was when it fails.
func (j *encodeJob) run(ctx context.Context, stderr io.Writer) (*volley.Report, error) {
	dir, err := codeddir.Create(j.options.output, j.options.force)
	if err != nil {
		return nil, usagef("output directory: %w", err)
	}
	defer dir.Discard()
	outputs, err := j.packets.create(dir)
	if err != nil {
		return nil, usagef("output directory: %w", err)
	}
	slog.Info("encoding", "processors", j.packets.count(), "field", j.matrix.Field().Name(), "matrix", j.matrix.ID())

	bar := newBar(stderr, int64(j.packets.count())*j.bytes())
	defer bar.stop()
	reports := make([]*volley.Report, j.packets.count())
	err = local.Run(ctx, len(reports), func(ctx context.Context, t transport.Transport) error {
		k := t.Rank()
		out := &progressWriter{outputs[k], bar}
		var err error
		reports[k], err = j.encoder.Run(ctx, t, j.packets.reader(k), j.packets.size(k), out)
		return err
	})
	bar.stop()
	if err != nil {
		return nil, err
	}
	report := volley.Merge(reports)
	manifest := j.manifest(report)
	if err := j.packets.finish(dir, manifest); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := dir.Commit(manifest); err != nil {
		return nil, err
	}
	return report, nil
}

// manifest returns the manifest but for its files.
func (j *encodeJob) manifest(r *volley.Report) *codeddir.Manifest {
	m := &codeddir.Manifest{
		Format: codeddir.Format, Version: codeddir.Version,
		Field: r.Field, Algorithm: r.Algorithm, Processors: r.K, Ports: r.Ports,
		SymbolBytes: j.matrix.Field().SymbolBytes(), SymbolsPerPacket: r.SymbolsPerPacket,
		Matrix: codeddir.Matrix{Family: j.options.matrix, Inverse: j.spec.Inverse},
	}
	for _, set := range matrix.PointsOf(j.plain) {
		m.Matrix.Points = append(m.Matrix.Points, codeddir.PointSet{Name: set.Name, Values: values(set.Points.Len(), set.Points.At)})
	}
	if j.spec.Family == "file" {
		for i := range j.plain.Rows() {
			m.Matrix.Entries = append(m.Matrix.Entries, values(j.plain.Cols(), func(c int) field.Element { return j.plain.At(i, c) }))
		}
	}
	return m
}

// values lists elements in decimal.
func values(n int, at func(int) field.Element) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = at(i).String()
	}
	return list
}

// estimate prints what run would do.
func (j *encodeJob) estimate(w io.Writer) error {
	p, err := j.encoder.Plan(j.model.Symbols)
	if err != nil {
		return err
	}
	r, err := volley.Estimate(p, j.matrix)
	if err != nil {
		return err
	}
	r.PacketBytes, r.SymbolsPerPacket = j.bytes(), j.model.Symbols
	r.Seconds = j.model.Time(sim.Count(p)).Seconds()
	return j.options.print(w, r, "nothing written: a dry run; the time is the model's")
}

// print prints the report, as JSON if asked, else with a closing remark.
func (o *encodeOptions) print(w io.Writer, r *volley.Report, remark string) error {
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
	_, err := fmt.Fprintf(w, `%s of %s over %s, matrix %s
algorithm  %s %s, p = %d
C1         %s, lower bound %d
C2         %s, lower bound %d
C3         %s per symbol
%sresult     %s
time       %.3f s
%s
`, count(r.K, "packet"), humanize.IBytes(uint64(r.PacketBytes)), r.Field, r.Matrix,
		r.Algorithm, r.Parameters, r.Ports,
		count(r.C1, "round"), r.BoundC1, count(r.C2, "packet"), r.BoundC2,
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
		progressbar.OptionSetDescription("encoding"), progressbar.OptionThrottle(100*time.Millisecond),
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
