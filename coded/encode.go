package coded

import (
	"cmp"
	"context"
	"io/fs"
	"slices"

	"volley"
	"volley/field"
	"volley/matrix"
	"volley/transport"
)

// An Encoding says what [Encode] does. All ranks give the same, except for Files and the directory.
type Encoding struct {
	Options

	Field  field.Field
	Matrix matrix.Spec // of the packets' rows, and a column for each processor that gets a coded file

	// Files are the files of the packets. A directory stands for the regular files in it in name order, names with a
	// leading dot left out. Where there are several ranks they are those of this rank's processors, or all K of them. A
	// single name with {rank} in it stands for a file of each processor, whose number goes in.
	Files []string

	Processors int  // K; 0: as many as packets, or one for each rank
	Sinks      int  // R, how many processors get a coded file; 0: all
	Separate   bool // the sinks are processors of their own, after the others
	Symbols    bool // the bytes of the packets are symbols already; else they are packed
}

// Encode encodes packets into coded files with a manifest. Every rank of t calls it. The errors are an [*InputError], a
// [*ChangedError], those of volley.Encoder.Run and of the file system. The report is that of all ranks.
func Encode(ctx context.Context, t transport.Transport, e Encoding) (*volley.Report, error) {
	j := &encodeJob{run: newRun(ctx, t, e.Options, "encode"), e: e}
	report, err := j.do()
	return report, j.fail(err)
}

type encodeJob struct {
	run
	e       Encoding
	plain   matrix.Matrix // before the inverse is taken; what the manifest describes
	encoder *volley.Encoder
	packets *filePackets
}

func (j *encodeJob) do() (*volley.Report, error) {
	err := j.together(j.prepare)
	if j.packets != nil {
		defer j.packets.close()
	}
	if err != nil {
		return nil, err
	}
	if j.DryRun {
		symbols, err := exchange(&j.run, j.packets.symbols())
		if err != nil {
			return nil, err
		}
		return j.encoder.EstimateOn(j.t, slices.Max(symbols))
	}
	at, err := j.place(j.checkOutput)
	if err != nil {
		return nil, err
	}
	dir, err := create(at, manifests, ErrExists, j.Replace)
	if err != nil {
		return nil, outputError(err)
	}
	defer dir.Discard()
	j.found(dir)
	if err := j.packets.create(dir); err != nil {
		return nil, outputError(err)
	}
	report, err := j.run.encode(j.encoder, j.packets, j.packets.symbols())
	if err != nil {
		return nil, err
	}
	m := j.manifest(report)
	if err := j.packets.finish(m); err != nil {
		return nil, err
	}
	perm, err := j.gather(m)
	if err != nil {
		return nil, err
	}
	return report, j.commit(func() error { return dir.Commit(m, perm) })
}

// prepare checks what the caller gives, as far as that can be done alone.
func (j *encodeJob) prepare() (err error) {
	switch {
	case j.e.Field == nil:
		return option("Field", "no field: give that of the symbols")
	case j.e.Sinks < 0:
		return option("Sinks", "%d sinks: want 1 or more, or 0 for all processors", j.e.Sinks)
	}
	if j.packets, err = j.open(); err != nil {
		return err
	}
	k := j.packets.k
	if j.e.Processors != 0 && j.e.Processors != k {
		return option("Processors", "%d packets for %d processors", k, j.e.Processors)
	}
	if err := j.checkOutput(); err != nil {
		return err
	}
	// The file of a matrix is read only once: it may be a pipe, and may change.
	plain := j.e.Matrix
	plain.Inverse = false
	if j.plain, err = plain.Build(j.e.Field, k, cmp.Or(j.e.Sinks, k)); err != nil {
		return input(err)
	}
	a := j.plain
	if j.e.Matrix.Inverse {
		if a, err = matrix.Inverse(j.plain); err != nil {
			return input(err)
		}
	}
	options, err := j.options(j.e.Field, j.packets.symbols())
	if err != nil {
		return err
	}
	if j.e.Separate {
		options = append(options, volley.WithSeparateSinks())
	}
	if j.encoder, err = j.newEncoder(a, options...); err != nil {
		return err
	}
	return input(j.encoder.Carried(j.t))
}

func (j *encodeJob) checkOutput() error {
	return j.check(append(j.packets.sources(), j.e.Matrix.Files()...), j.packets.targets(), true)
}

// gather puts the files of all ranks into a manifest that has those of this one. It returns
// the permissions that all inputs of all ranks have: every coded file tells of each of them.
func (j *encodeJob) gather(m *Manifest) (perm fs.FileMode, err error) {
	type files struct {
		Inputs, Files []Entry
		Perm          fs.FileMode
	}
	all, err := exchange(&j.run, files{m.Inputs, m.Files, j.packets.perm()})
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
func (j *encodeJob) manifest(r *volley.Report) *Manifest {
	m := &Manifest{
		Format: Format, Version: Version,
		Field: r.Field, Processors: r.K, Sinks: r.Sinks,
		SymbolBytes: j.e.Field.SymbolBytes(), SymbolsPerPacket: r.SymbolsPerPacket,
		Matrix: Matrix{Family: j.e.Matrix.Family, Order: j.e.Matrix.OrderOf(r.K), Inverse: j.e.Matrix.Inverse, Columns: r.Columns},
	}
	if j.e.Matrix.Argument != "" {
		m.Matrix.Family += ":" + j.e.Matrix.Argument
	}
	for _, set := range matrix.PointSetsOf(j.plain) {
		m.Matrix.Points = append(m.Matrix.Points, PointSet{Name: set.Name, Values: field.Decimals(set.Points.Len(), set.Points.At)})
	}
	if j.e.Matrix.Listed() {
		for i := range j.plain.Rows() {
			m.Matrix.Entries = append(m.Matrix.Entries, field.Decimals(j.plain.Cols(), func(c int) field.Element { return j.plain.At(i, c) }))
		}
	}
	return m
}
