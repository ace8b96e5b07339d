package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"volley"
	"volley/field"
	"volley/internal/codeddir"
	"volley/internal/disk"
	"volley/internal/printable"
)

type decodeOptions struct {
	choice // of which only the flags of a plan are used
	runOptions
}

const decodeHelp = `Decode the inputs of an encode from its coded files, or from some of these and
the inputs that have survived.

DIR is what volley encode -o DIR has made; its manifest.json says how. Each
SURVIVOR is an input, whatever its name is now: its length and SHA-256 tell which.
A directory stands for the regular files in it, names with a leading dot left out.

For each input that is lost, it takes a coded file. With a cauchy matrix any will
do; with others some sets do not. Survivors are preferred to coded files, and
coded files that are missing or damaged are left out.

DIR2 gets all inputs, survivors too, by the last part of the names they had; by
input.<k>, in as many digits as K-1 has, where two of these are equal or one cannot
be a file of DIR2. Each is compared with its SHA-256 in the manifest before any of them gets
its name. Only who can read every file they come from can read them. What encode
--csv has coded becomes a text file again, without comments.`

func newDecode() *cobra.Command {
	o := &decodeOptions{}
	cmd := &cobra.Command{
		Use:   "decode [flags] DIR [SURVIVOR...] -o DIR2",
		Short: "Decode the inputs from coded files and surviving inputs",
		Long:  decodeHelp,
		Example: `  volley decode coded -o back
  volley decode coded examples/packets/node-00.ckpt -o back2`,
		RunE: func(cmd *cobra.Command, args []string) error { return runDecode(cmd, o, args) },
	}
	o.addPlan(cmd)
	o.addRun(cmd, "directory for the inputs; made if need be", "replace files in DIR2 that have the names of inputs")
	return cmd
}

func runDecode(cmd *cobra.Command, o *decodeOptions, args []string) error {
	if !o.dryRun {
		if err := o.refuseCopies(cmd); err != nil {
			return err
		}
	}
	job, err := o.prepare(cmd.Context(), cmd.ErrOrStderr(), args)
	if err != nil {
		return err
	}
	defer job.close()
	if o.dryRun {
		return o.estimate(cmd.OutOrStdout(), job.encoder, job.stored.manifest.SymbolsPerPacket)
	}
	report, err := job.run(cmd.Context(), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	return o.print(cmd.OutOrStdout(), report, fmt.Sprintf("%s in %s", job.packets.describe(), o.output))
}

// toDecode are the packets that a decode takes: that of processor k is input k or, where
// that is lost, some coded packet. The results are the inputs.
type toDecode interface {
	packets
	coded() []int      // by processor: the coded packet it has, -1 where it has its input
	describe() string  // what the inputs come from
	perm() fs.FileMode // what the files that the inputs come from all allow

	// finish writes what is left to write. It returns a *wrongError when the
	// inputs are not what they were.
	finish(dir *codeddir.Dir) error
}

// decodeJob is a decode whose arguments are all right.
type decodeJob struct {
	options *decodeOptions
	stored  *storedCode
	packets toDecode
	names   []string // of the files to write
	sources []string // the files that may be read
	encoder *volley.Encoder
}

func (j *decodeJob) close() {
	if j.packets != nil {
		j.packets.close()
	}
	if j.stored != nil {
		j.stored.Close()
	}
}

func (o *decodeOptions) prepare(ctx context.Context, stderr io.Writer, args []string) (_ *decodeJob, err error) {
	options, err := o.runOptions.options(ctx)
	if err != nil {
		return nil, err
	}
	if o.party.job() {
		return nil, usagef("--comm %s: decode reads and writes all files in one process: leave it out", o.comm)
	}
	if len(args) == 0 {
		return nil, usagef("no directory of coded files: name what volley encode -o has made")
	}
	job := &decodeJob{options: o}
	defer func() {
		if err != nil {
			job.close()
		}
	}()
	if job.stored, err = openCode(args[0]); err != nil {
		return nil, usage(err)
	}
	if damage := job.stored.Damage; damage != nil {
		printable.Fprintf(stderr, "volley: %v: its copy %s is used\n", damage, codeddir.CopyName)
	}
	var renamed bool
	if job.names, renamed = outputNames(job.stored.manifest.Inputs); renamed {
		printable.Fprintf(stderr, "volley: the inputs become %s: the names they had would not do for the files of one directory\n", list(job.names))
	}
	survivors, err := expandDirectories(args[1:])
	if err != nil {
		return nil, usage(err)
	}
	job.sources = append(job.stored.sources(), survivors...)
	if err := job.checkOutput(job.sources); err != nil {
		return nil, err
	}
	model, err := o.Model(job.stored.field, job.stored.manifest.SymbolsPerPacket)
	if err != nil {
		return nil, err
	}
	if job.packets, err = job.stored.choose(ctx, stderr, survivors, job.names); err != nil {
		return nil, err
	}
	a, err := job.stored.decoder(job.packets.coded())
	if err != nil {
		return nil, usagef("cannot decode %s: %w", args[0], err)
	}
	if job.encoder, err = volley.NewEncoder(a, append(options, o.choice.Options(model)...)...); err != nil {
		return nil, usage(err)
	}
	return job, nil
}

// checkOutput returns an error when files of the output directory may not be
// replaced, or are among the sources.
func (j *decodeJob) checkOutput(sources []string) error {
	if err := j.options.checkTrace(sources, j.names); err != nil {
		return err
	}
	output := j.options.output
	if output == "" {
		return nil
	}
	if err := codeddir.CheckFiles(output, j.names, j.options.force); err != nil {
		return outputError(err)
	}
	return j.options.keep(sources, codeddir.ReplacesFiles(output, j.names))
}

// run decodes into the output directory.
func (j *decodeJob) run(ctx context.Context, stderr io.Writer) (*volley.Report, error) {
	if there, err := os.Stat(j.options.output); err == nil && isAmong(there, []string{j.stored.path}) {
		j.stored.Close() // or it would wait for itself
	}
	at, err := j.options.place(ctx, "decode", func() error { return j.checkOutput(j.sources) })
	if err != nil {
		return nil, err
	}
	dir, err := codeddir.CreateFiles(at, j.names, j.options.force)
	if err != nil {
		return nil, outputError(err)
	}
	return j.options.produce(ctx, stderr, "decoding", j.encoder, j.packets, j.stored.manifest.SymbolsPerPacket, dir, func(*volley.Report) (func() error, error) {
		return func() error { return dir.CommitFiles(j.packets.perm()) }, j.packets.finish(dir)
	})
}

// storedCode is a directory of coded files whose manifest is all right.
type storedCode struct {
	*codeddir.Result
	path     string
	manifest *codeddir.Manifest
	field    field.Field
	code     *code
}

// openCode reads the manifest of a directory.
func openCode(path string) (*storedCode, error) {
	name := filepath.Join(path, codeddir.ManifestName)
	r, err := codeddir.Open(path, disk.HolderOf("decode", ""))
	if errors.As(err, new(*disk.BusyError)) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: want a directory that volley encode -o has made", err)
	}
	if r.Finished {
		slog.Info("finished what an interrupted run had committed", "directory", path)
	}
	m := r.Manifest
	c := &storedCode{Result: r, path: path, manifest: m}
	err = m.Validate()
	if err == nil {
		err = c.checkField()
	}
	if err == nil && m.Text() {
		err = c.checkText()
	}
	if err == nil {
		c.code, err = codeOf(m.Matrix, c.field, m.Processors, m.CodedPackets())
	}
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// checkField checks what the manifest says of symbols.
func (c *storedCode) checkField() (err error) {
	m := c.manifest
	if c.field, err = field.Parse(m.Field); err != nil {
		return err
	}
	packing := field.PackingOf(c.field)
	switch {
	case m.SymbolBytes != c.field.SymbolBytes():
		return fmt.Errorf("symbol_bytes: %d: a symbol of %s has %d", m.SymbolBytes, m.Field, c.field.SymbolBytes())
	case m.BitsPerSymbol != 0 && (m.Text() || m.BitsPerSymbol != packing.Bits()):
		return fmt.Errorf("bits_per_symbol: %d: want 0, as for symbols, or %d, what a symbol of %s holds", m.BitsPerSymbol, packing.Bits(), m.Field)
	}
	longest := int64(0)
	for k, in := range m.Inputs {
		symbols := in.Bytes / int64(m.SymbolBytes)
		if m.BitsPerSymbol != 0 {
			symbols = packing.Symbols(in.Bytes)
		}
		longest = max(longest, symbols)
		switch {
		case m.Text():
		case m.BitsPerSymbol == 0 && in.Bytes%int64(m.SymbolBytes) != 0:
			return fmt.Errorf("inputs[%d].bytes: %d: a symbol of %s has %d", k, in.Bytes, m.Field, m.SymbolBytes)
		case symbols > m.SymbolsPerPacket:
			return fmt.Errorf("inputs[%d].bytes: %d: more than the %d symbols of a packet hold", k, in.Bytes, m.SymbolsPerPacket)
		}
	}
	if !m.Text() && longest != m.SymbolsPerPacket { // else inputs that all survive would be padded to any length
		return fmt.Errorf("symbols_per_packet: %d: the longest of the inputs has %d", m.SymbolsPerPacket, longest)
	}
	return nil
}

// checkText checks the numbers of packets in a text by its length, before anything is made of them.
func (c *storedCode) checkText() error {
	m, entry := c.manifest, c.manifest.Files[0]
	info, err := os.Stat(c.file(entry.Name))
	switch {
	case err != nil:
		return fmt.Errorf("cannot decode: %s, which holds all coded packets: %s", c.file(entry.Name), reason(err))
	case info.Size() != entry.Bytes:
		return fmt.Errorf("cannot decode: %s, which holds all coded packets: %w: %d bytes, not %d", c.file(entry.Name), errDamaged, info.Size(), entry.Bytes)
	case m.Processors > m.CodedPackets():
		return fmt.Errorf("cannot decode: %d coded packets tell no more than %d of %d inputs", m.CodedPackets(), m.CodedPackets(), m.Processors)
	}
	return nil
}

// file returns the path of a file of the directory.
func (c *storedCode) file(name string) string { return c.File(name) }

// sources returns the paths of the manifest and of all coded files.
func (c *storedCode) sources() []string {
	paths := []string{c.file(codeddir.ManifestName), c.file(codeddir.CopyName)}
	for _, f := range c.manifest.Files {
		paths = append(paths, c.file(f.Name))
	}
	return paths
}

// choose opens the packets to decode from.
func (c *storedCode) choose(ctx context.Context, stderr io.Writer, survivors, names []string) (toDecode, error) {
	if c.manifest.Text() {
		return c.openText(ctx, stderr, survivors, names[0])
	}
	return c.openFiles(ctx, stderr, survivors, names)
}

// outputNames returns names for the inputs: the last parts of those they had or,
// where these will not do, numbers. It reports whether that is so.
func outputNames(inputs []codeddir.Entry) (names []string, renamed bool) {
	seen := map[string]bool{}
	for _, in := range inputs {
		name := filepath.Base(in.Name)
		if seen[name] || !codeddir.ValidName(name) {
			renamed = true
		}
		seen[name] = true
		names = append(names, name)
	}
	if renamed {
		for k := range names {
			names[k] = fmt.Sprintf("input.%0*d", len(fmt.Sprint(len(names)-1)), k)
		}
	}
	return names, renamed
}

// A wrongError says that inputs were decoded wrong.
type wrongError struct {
	names []string
	why   string
}

// ExitCode is exitWrong.
func (e *wrongError) ExitCode() int { return exitWrong }

func (e *wrongError) Error() string {
	return fmt.Sprintf("%s: what is decoded is not what was encoded: %s. The files decoded from are as the manifest has them, so what it says of field, matrix or inputs is wrong",
		list(e.names), e.why)
}
