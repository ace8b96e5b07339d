package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"volley"
	"volley/field"
	"volley/internal/codeddir"
	"volley/matrix"
)

type encodeOptions struct {
	choice
	runOptions
	csv     bool
	symbols bool
}

const encodeHelp = `Encode the packets of K processors, one input file each, into a coded file each.

Each PACKET is a file, or a directory, which stands for the regular files in it
in name order, names with a leading dot left out. With -k a single name with
{rank} in it, such as 'ckpt.{rank}', stands for K files. Shorter packets are
padded with zeros for coding.

With --sinks R only R processors get a coded file: the first ones or, with
--separate, R more that have no PACKET.

DIR gets a file for each processor that obtains one, coded.00 to coded.15 for 16, and
manifest.json, which says what they are, and a copy of that. A run that fails or
is killed leaves DIR as it was, or with the whole new result. Two runs cannot
write DIR at once. Only who can read every PACKET can read these files. With --csv
the one input is a text file of symbols in decimal, a row for each processor, and the
output is coded.csv.

The processors run in this process or, with --comm mpi, one in each process that mpirun
starts. Then each process names its own packets: by {rank}, which may be in the name of a
directory with one packet in it, or by files or a directory that only it sees. Files
that all processes see may be named by all as well.`

func newEncode() *cobra.Command {
	o := &encodeOptions{}
	cmd := &cobra.Command{
		Use:   "encode [flags] -o DIR PACKET...",
		Short: "Encode files: one in and one out for each processor",
		Long:  encodeHelp,
		Example: `  volley encode -o coded examples/packets
  volley encode --field 2^16 --matrix random:1 -p 2 -o coded2 -k 8 'examples/packets/node-0{rank}.ckpt'`,
		RunE: func(cmd *cobra.Command, args []string) error { return runEncode(cmd, o, args) },
	}
	o.addMatrix(cmd)
	o.AddProcessors(cmd.Flags())
	o.addPlan(cmd)
	o.addRun(cmd, "directory for the coded files; made if need be", "replace the result that DIR holds")
	f := cmd.Flags()
	f.Lookup("processors").Usage = "number of processors (default: of packets)"
	f.BoolVar(&o.csv, "csv", false, "read and write symbols as text, a row for each processor")
	f.BoolVar(&o.symbols, "symbols", false, "the bytes of the files are symbols already; do not pack them")
	return cmd
}

func runEncode(cmd *cobra.Command, o *encodeOptions, args []string) error {
	job, err := o.prepare(cmd, args)
	if err != nil {
		return err
	}
	defer job.close()
	if o.dryRun {
		longest, err := volley.ExchangeValues(cmd.Context(), o.party.Transport, job.packets.symbols(), o.timeout)
		if err != nil {
			return err
		}
		return o.estimate(cmd.OutOrStdout(), job.encoder, slices.Max(longest))
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
	encoder *volley.Encoder
	packets toEncode
}

// prepare returns when all processes have what they need.
func (o *encodeOptions) prepare(cmd *cobra.Command, args []string) (job *encodeJob, err error) {
	if o.csv && o.symbols {
		return nil, usagef("--csv and --symbols: a text file holds symbols anyway; leave --symbols out")
	}
	if !o.dryRun {
		if err := o.refuseCopies(cmd); err != nil {
			return nil, err
		}
	}
	options, err := o.runOptions.options(cmd.Context())
	if err != nil {
		return nil, err
	}
	err = o.together(cmd.Context(), func() (err error) {
		job, err = o.assemble(cmd, args, options)
		return err
	})
	if err != nil && job != nil { // another process failed
		job.close()
	}
	return job, err
}

func (o *encodeOptions) assemble(cmd *cobra.Command, args []string, options []volley.Option) (_ *encodeJob, err error) {
	job := &encodeJob{options: o}
	f, err := field.Parse(o.Field)
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
	if cmd.Flags().Changed("processors") && o.Processors != job.packets.count() {
		return nil, usagef("%d packets for %d processors: -k has to be the number of packets", job.packets.count(), o.Processors)
	}
	o.Processors = job.packets.count()
	if job.spec, err = o.Spec(); err != nil {
		return nil, err
	}
	if err := o.checkOutput(job); err != nil {
		return nil, err
	}
	if err := job.build(f); err != nil {
		return nil, usage(err)
	}
	model, err := o.Model(f, job.packets.symbols())
	if err != nil {
		return nil, err
	}
	if job.encoder, err = volley.NewEncoder(job.matrix, append(options, o.choice.Options(model)...)...); err != nil {
		return nil, usage(err)
	}
	return job, nil
}

// checkOutput returns an error when the output directory may not be replaced, or
// a file that the run reads would be.
func (o *encodeOptions) checkOutput(job *encodeJob) error {
	sources := append(job.packets.sources(), job.spec.Files()...)
	if err := o.checkTrace(sources, append(job.packets.targets(), codeddir.ManifestName, codeddir.CopyName)); err != nil {
		return err
	}
	if o.output == "" {
		return nil
	}
	if err := codeddir.Check(o.output, o.force); err != nil {
		return outputError(err)
	}
	return o.keep(sources, codeddir.Replaces(o.output, job.packets.targets()))
}

// build makes the matrices. It reads the file of one only once: it may be a pipe,
// and may change.
func (j *encodeJob) build(f field.Field) (err error) {
	plain := j.spec
	plain.Inverse = false
	if j.plain, err = j.options.BuildFor(plain, f, j.packets.count()); err != nil {
		return err
	}
	j.matrix = j.plain
	if j.spec.Inverse {
		j.matrix, err = matrix.Inverse(j.plain)
	}
	return err
}

func (j *encodeJob) close() { j.packets.close() }

// run encodes into the output directory.
func (j *encodeJob) run(ctx context.Context, stderr io.Writer) (*volley.Report, error) {
	at, err := j.options.place(ctx, "encode", func() error { return j.options.checkOutput(j) })
	if err != nil {
		return nil, err
	}
	dir, err := codeddir.Create(at, j.options.force)
	if err != nil {
		return nil, outputError(err)
	}
	return j.options.produce(ctx, stderr, "encoding", j.encoder, j.packets, j.packets.symbols(), dir, func(r *volley.Report) (func() error, error) {
		manifest := j.manifest(r)
		if err := j.packets.finish(dir, manifest); err != nil {
			return nil, err
		}
		perm, err := j.gather(ctx, manifest)
		if err != nil {
			return nil, err
		}
		return func() error { return dir.Commit(manifest, perm) }, nil
	})
}

// gather puts the files of all processes into a manifest that has those of this one. It returns
// the permissions that all inputs of all processes have: every coded file tells of each of them.
func (j *encodeJob) gather(ctx context.Context, m *codeddir.Manifest) (perm fs.FileMode, err error) {
	type files struct {
		Inputs, Files []codeddir.Entry
		Perm          fs.FileMode
	}
	all, err := volley.ExchangeValues(ctx, j.options.party.Transport, files{m.Inputs, m.Files, j.packets.perm()}, j.options.timeout)
	if err != nil {
		return 0, err
	}
	perm = fs.ModePerm
	m.Inputs, m.Files = nil, nil
	for _, f := range all {
		m.Inputs, m.Files = append(m.Inputs, f.Inputs...), append(m.Files, f.Files...)
		perm &= f.Perm
	}
	return perm, m.Validate() // what others have said
}

// manifest returns the manifest but for its files.
func (j *encodeJob) manifest(r *volley.Report) *codeddir.Manifest {
	m := &codeddir.Manifest{
		Format: codeddir.Format, Version: codeddir.Version,
		Field: r.Field, Algorithm: r.Algorithm, Processors: r.K, Sinks: r.Sinks, Ports: r.Ports,
		SymbolBytes: j.matrix.Field().SymbolBytes(), SymbolsPerPacket: r.SymbolsPerPacket,
		Matrix: codeddir.Matrix{Family: j.options.Matrix, Inverse: j.spec.Inverse, Base: matrix.BaseOf(j.plain)},
	}
	m.Matrix.Columns = r.Columns
	if j.spec.Order == "reversed" {
		m.Matrix.Order = j.spec.Order
	}
	for _, set := range matrix.PointSetsOf(j.plain) {
		m.Matrix.Points = append(m.Matrix.Points, codeddir.PointSet{Name: set.Name, Values: values(set.Points.Len(), set.Points.At)})
	}
	if j.spec.Listed() {
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
