package coded

import (
	"context"
	"encoding/hex"
	"io/fs"
	"slices"

	"volley"
	"volley/coded/manifest"
	"volley/field"
	"volley/files"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/transport"
)

// An Encoding says what [Encode] does. All ranks give the same, except for Files and the directory.
type Encoding struct {
	Options

	Field  field.Field
	Matrix matrices.Spec // of the packets' rows, and a column for each processor that gets a coded file

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
// [*ChangedError], a [*files.BusyError] or [*files.SharedError] where the output directory has another user, those of
// volley.Encoder.Run and of the file system. The report is that of all ranks.
func Encode(ctx context.Context, t transport.Transport, e Encoding) (*volley.Report, error) {
	j := &encodeJob{run: newRun(ctx, t, e.Options, "encode"), e: e, perm: fs.ModePerm}
	report, err := j.encode()
	return report, j.fail(err)
}

// An encodeJob is an Encode at this rank: a file in and a file out for each processor here.
type encodeJob struct {
	run
	span
	e       Encoding
	plain   matrix.Matrix // before the inverse is taken; what the manifest describes
	encoder *volley.Encoder
	inputs  []*inputFile
	outputs []*newFile

	bits    int         // of the files, that a symbol holds; 0: the files hold symbols already
	symbols int64       // of the longest packet here
	perm    fs.FileMode // what the files of all packets here allow
}

func (j *encodeJob) encode() (*volley.Report, error) {
	defer j.close()
	symbols, err := exchangeWork(&j.run, func() (int64, error) {
		err := j.prepare()
		return j.symbols, err
	})
	if err != nil {
		return nil, err
	}
	if j.DryRun {
		return j.encoder.Estimate(j.ctx, j.t, slices.Max(symbols))
	}
	dir, err := j.open(nil, j.checkOutput)
	if err != nil {
		return nil, err
	}
	defer dir.Discard()
	if err := j.create(dir); err != nil {
		return nil, outputError(err)
	}
	report, err := j.run.encode(j.encoder, j, j.symbols)
	if err != nil {
		return nil, err
	}
	m := j.manifest(report)
	if err := j.addFiles(m); err != nil {
		return nil, err
	}
	return report, j.commit(dir, m, j.perm)
}

// prepare checks what the caller gives, as far as that can be done alone.
func (j *encodeJob) prepare() (err error) {
	switch {
	case j.e.Field == nil:
		return inputf("no field: give that of the symbols")
	case j.e.Sinks < 0:
		return inputf("%d sinks: want 1 or more, or 0 for all processors", j.e.Sinks)
	}
	if err := j.openInputs(); err != nil {
		return err
	}
	if j.e.Processors != 0 && j.e.Processors != j.k {
		return inputf("%d packets for %d processors: want as many", j.k, j.e.Processors)
	}
	if err := j.look(j.checkOutput); err != nil {
		return err
	}
	// The file of a matrix is read only once: it may be a pipe, and may change.
	plain := j.e.Matrix
	plain.Inverse = false
	if j.plain, err = plain.Build(j.e.Field, j.k, j.sinks); err != nil {
		return input(err)
	}
	a := j.plain
	if j.e.Matrix.Inverse {
		if a, err = matrix.Inverse(j.ctx, j.plain); err != nil {
			return j.input(err)
		}
	}
	options, err := j.options(j.e.Field, j.symbols)
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
	sources := j.e.Matrix.Files()
	for _, file := range j.inputs {
		sources = append(sources, file.Name())
	}
	return j.check(sources, nil)
}

// create makes the coded files here, whose names have the same number at all ranks.
func (j *encodeJob) create(dir *directory) error {
	numbers, err := exchangeWork(&j.run, dir.next)
	if err != nil {
		return err
	}
	for s := j.firstSink; s < j.endSink; s++ {
		f, err := dir.Create(manifest.CodedName(s, j.sinks, slices.Max(numbers)))
		if err != nil {
			return err
		}
		j.outputs = append(j.outputs, f)
	}
	return nil
}

// addFiles puts the files of all ranks into a manifest, after a look at those that were read here.
func (j *encodeJob) addFiles(m *manifest.Manifest) error {
	type entries struct{ Inputs, Files []manifest.CodedFile }
	gathered, err := exchangeWork(&j.run, func() (mine entries, err error) {
		for i, file := range j.inputs {
			if file.read != file.bytes {
				return mine, shrunk(file.Name(), file.bytes, file.read)
			}
			if err := file.unchanged(); err != nil {
				return mine, err
			}
			mine.Inputs = append(mine.Inputs, manifest.CodedFile{
				Name: files.Name(file.Name()), Processor: j.first + i, Bytes: file.bytes, SHA256: hex.EncodeToString(file.digest.Sum(nil)),
			})
		}
		for i, output := range j.outputs {
			size, sum := output.Sum()
			mine.Files = append(mine.Files, manifest.CodedFile{Name: files.Name(output.name), Processor: j.firstSink + i, Bytes: size, SHA256: sum})
		}
		return mine, nil
	})
	if err != nil {
		return err
	}
	for _, f := range gathered {
		m.Inputs, m.Files = append(m.Inputs, f.Inputs...), append(m.Files, f.Files...)
	}
	_, err = m.Validate() // what others have said
	return err
}

// manifest returns the manifest but for its files.
func (j *encodeJob) manifest(r *volley.Report) *manifest.Manifest {
	m := &manifest.Manifest{
		Field: r.Field, Processors: r.K, Sinks: r.Sinks,
		SymbolBytes: j.e.Field.SymbolBytes(), SymbolsPerPacket: r.SymbolsPerPacket, BitsPerSymbol: j.bits,
		Matrix: manifest.MatrixSpec{Family: files.Name(j.e.Matrix.Family), Order: j.e.Matrix.OrderOf(r.K), Inverse: j.e.Matrix.Inverse, Columns: r.Columns},
	}
	if j.e.Matrix.Argument != "" {
		m.Matrix.Family += files.Name(":" + j.e.Matrix.Argument)
	}
	for _, set := range matrix.StructureOf(j.plain).Points {
		m.Matrix.Points = append(m.Matrix.Points, manifest.PointList{Name: set.Name, Values: field.Decimals(set.Points.Len(), set.Points.At)})
	}
	if j.e.Matrix.Listed() {
		for i := range j.plain.Rows() {
			m.Matrix.Entries = append(m.Matrix.Entries, field.Decimals(j.plain.Cols(), func(c int) field.Element { return j.plain.At(i, c) }))
		}
	}
	return m
}
