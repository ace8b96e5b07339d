package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"volley/field"
	"volley/internal/codeddir"
	"volley/internal/disk"
	"volley/internal/printable"
	"volley/matrix"
)

// filesAtHand is a file at hand, and one to write, for each processor.
type filesAtHand struct {
	*storedCode
	names   []string     // of the files to write
	inputs  []packetFile // those that have survived; no file where the input is lost
	numbers []int        // by processor: what coded returns
	files   []packetFile // coded files to decode from; no file where the input has survived
	outputs []*codeddir.File
	opened  []packetFile
	unfit   []string // survivors that are left out, and why
}

// openFiles finds out which inputs and coded files are there and opens a
// sufficient set of them.
func (c *storedCode) openFiles(ctx context.Context, stderr io.Writer, survivors, names []string) (_ toDecode, err error) {
	k := c.manifest.Processors
	h := &filesAtHand{storedCode: c, names: names, inputs: make([]packetFile, k), numbers: make([]int, k), files: make([]packetFile, k)}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	if err := h.match(ctx, survivors); err != nil {
		return nil, err
	}
	var lost []int
	for p, in := range h.inputs {
		h.numbers[p] = -1
		if in.File == nil {
			lost = append(lost, p)
		}
	}
	coded := h.stat()
	chosen, err := h.pick(ctx, coded, lost)
	if err != nil {
		return nil, err
	}
	for i, p := range lost {
		h.numbers[p], h.files[p] = chosen[i], coded.files[chosen[i]]
	}
	for _, text := range h.unfit {
		printable.Fprintf(stderr, "volley: survivor %s is left out: it is no input of %s\n", text, c.file(codeddir.ManifestName))
	}
	for j, reason := range coded.out {
		if reason != "" {
			printable.Fprintf(stderr, "volley: %s is left out: %s\n", c.file(c.manifest.Files[j].Name), reason)
		}
	}
	return h, nil
}

// open opens a file until h is closed.
func (h *filesAtHand) open(name string) (packetFile, error) {
	f, err := openPacket(name)
	if err == nil {
		h.opened = append(h.opened, f)
	}
	return f, err
}

// match finds out which inputs the survivors are, and leaves out those that are none.
func (h *filesAtHand) match(ctx context.Context, survivors []string) error {
	var files []packetFile
	for _, name := range survivors {
		f, err := h.open(name)
		if err != nil {
			h.unfit = append(h.unfit, fmt.Sprintf("%s (%s)", name, reason(err)))
			continue
		}
		files = append(files, f)
	}
	sums, errs := digests(ctx, files)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	type content struct {
		bytes int64
		sum   string
	}
	processors := map[content][]int{} // more than one where inputs are equal
	for p, in := range h.manifest.Inputs {
		is := content{in.Bytes, in.SHA256}
		processors[is] = append(processors[is], p)
	}
	for i, f := range files {
		which := processors[content{f.bytes, sums[i]}]
		switch {
		case errs[i] != nil:
			h.unfit = append(h.unfit, fmt.Sprintf("%s (%s)", f.Name(), reason(errs[i])))
		case len(which) == 0:
			h.unfit = append(h.unfit, fmt.Sprintf("%s (%d bytes of SHA-256 %.12s…%s)", f.Name(), f.bytes, sums[i], h.namesake(f)))
		}
		for _, p := range which {
			h.inputs[p] = f
		}
	}
	if len(survivors) > 0 && len(h.unfit) == len(survivors) {
		return usagef("cannot use any survivor: none is an input of %s: %s. Leave them out", h.file(codeddir.ManifestName), list(h.unfit))
	}
	return nil
}

// namesake tells of an input that has the name of the file.
func (h *filesAtHand) namesake(f packetFile) string {
	for _, in := range h.manifest.Inputs {
		if filepath.Base(in.Name) == filepath.Base(f.Name()) {
			return fmt.Sprintf("; %s had %d of %.12s…", in.Name, in.Bytes, in.SHA256)
		}
	}
	return ""
}

// codedFiles is the coded files of a directory.
type codedFiles struct {
	files   []packetFile // those that were opened
	out     []string     // why a file is left out; empty where it is not
	checked []bool       // whether its SHA-256 is known to be right
}

// usable returns the files that are not left out.
func (c *codedFiles) usable() []int {
	return slices.DeleteFunc(numbers(len(c.out)), func(j int) bool { return c.out[j] != "" })
}

// stat leaves out the coded files that are not there, or have another length.
func (h *filesAtHand) stat() *codedFiles {
	n := h.manifest.CodedPackets()
	c := &codedFiles{make([]packetFile, n), make([]string, n), make([]bool, n)}
	for j, f := range h.manifest.Files {
		info, err := os.Stat(h.file(f.Name))
		switch {
		case err != nil:
			c.out[j] = reason(err)
		case !info.Mode().IsRegular():
			c.out[j] = "not a regular file"
		case info.Size() != f.Bytes:
			c.out[j] = fmt.Sprintf("damaged: %d bytes, not %d", info.Size(), f.Bytes)
		}
	}
	return c
}

// check opens coded files and leaves out those that are damaged. It returns
// whether there are such, or the cause of ctx.
func (h *filesAtHand) check(ctx context.Context, c *codedFiles, numbers []int) (damaged bool, err error) {
	var which []int
	var files []packetFile
	for _, j := range numbers {
		if c.checked[j] {
			continue
		}
		f, err := h.open(h.file(h.manifest.Files[j].Name))
		if err != nil {
			c.out[j], damaged = reason(err), true
			continue
		}
		c.files[j] = f
		which, files = append(which, j), append(files, f)
	}
	sums, errs := digests(ctx, files)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	for i, j := range which {
		switch {
		case errs[i] != nil:
			c.out[j] = reason(errs[i])
		case sums[i] != h.manifest.Files[j].SHA256:
			c.out[j] = reason(errDamaged)
		default:
			c.checked[j] = true
			continue
		}
		damaged = true
	}
	return damaged, nil
}

// pick returns as many coded files as inputs are lost, ascending, from which with
// the other inputs these can be told.
func (h *filesAtHand) pick(ctx context.Context, c *codedFiles, lost []int) ([]int, error) {
	k := h.manifest.Processors
	if all := c.usable(); h.manifest.CodedPackets() == k && len(lost) == k && len(all) == k {
		if damaged, err := h.check(ctx, c, all); err != nil {
			return nil, err
		} else if !damaged {
			// The inverse is cheaper than the rank where the matrix has structure.
			if _, err := h.code.inverted(); err == nil {
				return all, nil
			} else if !errors.Is(err, matrix.ErrSingular) {
				return nil, usage(err)
			}
		}
	}
	if len(lost) == 0 {
		return nil, nil
	}
	a, err := h.code.matrix()
	if err != nil {
		return nil, usage(err)
	}
	for {
		chosen := independent(a, lost, c.usable())
		damaged, err := h.check(ctx, c, chosen)
		switch {
		case err != nil:
			return nil, err
		case damaged: // choose again without
		case len(chosen) < len(lost):
			return nil, h.tooFew(c, lost, len(chosen))
		default:
			return chosen, nil
		}
	}
}

// tooFew says that the coded files have only that rank in the lost inputs.
func (h *filesAtHand) tooFew(c *codedFiles, lost []int, rank int) error {
	m := h.manifest
	more := len(lost) - rank
	want := fmt.Sprintf("%d more inputs or coded files are", more)
	if more == 1 {
		want = "1 more input or coded file is"
	}
	var unknown, out []string
	for _, p := range lost {
		unknown = append(unknown, m.Inputs[p].Name)
	}
	for j, f := range m.Files {
		if c.out[j] != "" {
			out = append(out, fmt.Sprintf("%s (%s)", f.Name, c.out[j]))
		}
	}
	text := fmt.Sprintf("cannot decode %s: %s needed. Unknown inputs: %s", h.path, want, list(unknown))
	if len(out) > 0 {
		text += ". Coded files left out: " + list(out)
	}
	if len(h.unfit) > 0 {
		text += ". Survivors left out, as no input: " + list(h.unfit)
	}
	if there := len(c.usable()); there > rank {
		text += fmt.Sprintf(". For these inputs the other coded files tell no more than %d of them would, by the matrix %s", rank, m.Matrix.Family)
	}
	return usagef("%s", text)
}

func (h *filesAtHand) coded() []int { return h.numbers }

func (h *filesAtHand) perm() fs.FileMode {
	all := fs.ModePerm
	for k := range h.numbers {
		if h.numbers[k] >= 0 {
			all &= disk.Permissions(h.files[k].info)
		} else {
			all &= disk.Permissions(h.inputs[k].info)
		}
	}
	return all
}

func (h *filesAtHand) size(k int) int64 {
	if h.numbers[k] >= 0 {
		return h.manifest.SymbolsPerPacket * int64(h.manifest.SymbolBytes)
	}
	if h.manifest.BitsPerSymbol == 0 {
		return h.inputs[k].bytes
	}
	return field.PackingOf(h.field).Symbols(h.inputs[k].bytes) * int64(h.manifest.SymbolBytes)
}

func (h *filesAtHand) reader(k int) io.ReaderAt {
	switch in := h.inputs[k]; {
	case h.numbers[k] >= 0:
		return h.files[k]
	case h.manifest.BitsPerSymbol == 0:
		return in
	default:
		return field.NewReaderAt(h.field, in, in.bytes)
	}
}

func (h *filesAtHand) describe() string {
	var from []string
	for k, j := range h.numbers {
		if j >= 0 {
			from = append(from, filepath.Base(h.files[k].Name()))
		}
	}
	switch kept := len(h.numbers) - len(from); {
	case len(from) == 0:
		return fmt.Sprintf("%s, which all survive,", count(kept, "input"))
	case kept == 0:
		return count(len(from), "input")
	default:
		return fmt.Sprintf("%s, of which %d lost and decoded from %s,", count(len(h.numbers), "input"), len(from), list(from))
	}
}

func (h *filesAtHand) create(dir *codeddir.Dir) ([]io.WriterAt, error) {
	writers := make([]io.WriterAt, len(h.names))
	for k, name := range h.names {
		f, err := dir.Create(name)
		if err != nil {
			return nil, err
		}
		h.outputs = append(h.outputs, f)
		in := h.manifest.Inputs[k]
		if h.manifest.BitsPerSymbol == 0 {
			writers[k] = cutWriter{f, in.Bytes}
		} else {
			writers[k] = unpackingWriter{field.NewWriterAt(h.field, f, in.Bytes), in.Name}
		}
	}
	return writers, nil
}

// cutWriter takes a packet and writes the first size bytes of it.
type cutWriter struct {
	io.WriterAt
	size int64
}

func (w cutWriter) WriteAt(p []byte, offset int64) (int, error) {
	if rest := max(0, w.size-offset); rest < int64(len(p)) {
		if _, err := w.WriterAt.WriteAt(p[:rest], min(offset, w.size)); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return w.WriterAt.WriteAt(p, offset)
}

// unpackingWriter takes a packet of packed bytes.
type unpackingWriter struct {
	io.WriterAt
	name string // of the input
}

func (w unpackingWriter) WriteAt(p []byte, offset int64) (int, error) {
	n, err := w.WriterAt.WriteAt(p, offset)
	if overfull := new(field.OverfullError); errors.As(err, &overfull) {
		err = &wrongError{[]string{w.name}, fmt.Sprintf("symbol %d is %v and may have only %d bits", overfull.Symbol, overfull.Value, overfull.Bits)}
	}
	return n, err
}

func (h *filesAtHand) finish(*codeddir.Dir) error {
	var wrong []string
	for k, f := range h.outputs {
		in := h.manifest.Inputs[k]
		if size, sum := f.Sum(); size != in.Bytes || sum != in.SHA256 {
			wrong = append(wrong, in.Name)
		}
	}
	if len(wrong) > 0 {
		for _, f := range h.opened { // after its digest was right
			if err := f.unchanged(); err != nil {
				return err
			}
		}
		return &wrongError{wrong, "the SHA-256 is another"}
	}
	return nil
}

func (h *filesAtHand) close() {
	for _, f := range h.opened {
		f.Close()
	}
}

// textAtHand is the rows of coded.csv.
type textAtHand struct {
	*textPackets
	numbers []int // of the coded packets that the rows are
	stored  *storedCode
	output  string // name of the file to write
	stderr  io.Writer
}

// openText reads coded.csv.
func (c *storedCode) openText(ctx context.Context, stderr io.Writer, survivors []string, output string) (toDecode, error) {
	in, entry := c.manifest.Inputs[0], c.manifest.Files[0]
	h := &filesAtHand{storedCode: c, inputs: make([]packetFile, 1)}
	defer h.close()
	if err := h.match(ctx, survivors); err != nil {
		return nil, err
	}
	if len(survivors) > 0 {
		return nil, usagef("survivor %s is %s, the input of all processors: there is nothing to decode", survivors[0], in.Name)
	}
	path := c.file(entry.Name)
	var data []byte
	var mode fs.FileMode
	f, info, err := disk.OpenInput(path)
	if err == nil {
		mode = disk.Permissions(info)
		data, err = io.ReadAll(io.LimitReader(f, entry.Bytes+1))
		f.Close()
	}
	sum := sha256.Sum256(data)
	if err == nil && hex.EncodeToString(sum[:]) != entry.SHA256 {
		err = errDamaged
	}
	if err != nil {
		return nil, usagef("cannot decode %s: %s, which holds all coded packets: %s", c.path, path, reason(err))
	}
	rows, err := matrix.FromCSV(c.field, bytes.NewReader(data), path)
	if err != nil {
		return nil, usage(err)
	}
	coded, k := c.manifest.CodedPackets(), c.manifest.Processors
	if n := c.manifest.SymbolsPerPacket; rows.Rows() != coded || int64(rows.Cols()) != n {
		return nil, usagef("%s: %d rows of %d symbols: %s has %d coded packets, and %d symbols_per_packet",
			path, rows.Rows(), rows.Cols(), c.file(codeddir.ManifestName), coded, n)
	}
	chosen := numbers(coded)
	if coded != k {
		a, err := c.code.matrix()
		if err != nil {
			return nil, usage(err)
		}
		if chosen = independent(a, numbers(k), chosen); len(chosen) < k {
			return nil, usagef("cannot decode %s: %d coded packets tell no more than %d of %d inputs", c.path, coded, len(chosen), k)
		}
		some := matrix.NewDense(c.field, k, rows.Cols())
		for i, j := range chosen {
			copy(some.Row(i), rows.Row(j))
		}
		rows = some
	}
	return &textAtHand{&textPackets{name: in.Name, input: rows, mode: mode, sinks: k}, chosen, c, output, stderr}, nil
}

func (h *textAtHand) coded() []int     { return h.numbers }
func (h *textAtHand) describe() string { return h.output }

func (h *textAtHand) finish(dir *codeddir.Dir) error {
	_, sum, err := h.write(dir, h.output)
	if err == nil && sum != h.stored.manifest.Inputs[0].SHA256 {
		printable.Fprintf(h.stderr, "volley: %s is not %s byte for byte: spaces, comments and leading zeros are not coded\n", dir.File(h.output), h.name)
	}
	return err
}

// errDamaged says that a file is not what the manifest says.
var errDamaged = errors.New("damaged: another SHA-256")

// reason says in few words why a file cannot be used.
func reason(err error) string {
	path := new(fs.PathError)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "missing"
	case errors.As(err, &path):
		return path.Err.Error()
	default:
		return err.Error()
	}
}

// numbers returns 0 to n-1.
func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// digests returns the SHA-256 of files, in hexadecimal, or why there is none.
func digests(ctx context.Context, files []packetFile) ([]string, []error) {
	sums, errs := make([]string, len(files)), make([]error, len(files))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, f := range files {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			h := sha256.New()
			_, errs[i] = io.CopyBuffer(h, &interruptible{ctx, io.NewSectionReader(f, 0, f.bytes)}, make([]byte, 1<<18))
			sums[i] = hex.EncodeToString(h.Sum(nil))
		})
	}
	wg.Wait()
	return sums, errs
}

// interruptible is a reader that ends with its context.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (r *interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
