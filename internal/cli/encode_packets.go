package cli

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"volley/executor"
	"volley/field"
	"volley/internal/codeddir"
	"volley/internal/disk"
	"volley/matrix"
)

// toEncode are the packets of an encode.
type toEncode interface {
	packets
	count() int        // K
	symbols() int64    // of the longest packet here
	perm() fs.FileMode // what the files of all packets here allow
	sources() []string // the files that the packets here come from
	targets() []string // the names of the coded files, of all processors

	// finish writes what is left to write and describes the files here in m.
	finish(dir *codeddir.Dir, m *codeddir.Manifest) error
}

// open returns the packets that the arguments name.
func (o *encodeOptions) open(f field.Field, args []string) (toEncode, error) {
	if len(args) == 0 {
		return nil, usagef("no packets: name one input file for each processor")
	}
	if o.csv {
		if len(args) > 1 {
			return nil, usagef("--csv reads one file, got %d", len(args))
		}
		if o.party.Size() > 1 {
			return nil, usagef("--csv: one process reads and writes all packets: leave --comm %s out", o.comm)
		}
		return openText(f, args[0], o.Sinks)
	}
	names, here, err := o.here(args)
	if err != nil {
		return nil, err
	}
	p := &filePackets{field: f, span: here}
	if !o.symbols {
		packing := field.PackingOf(f)
		p.packing = &packing
	}
	for _, name := range names {
		if err := p.open(name); err != nil {
			p.close()
			return nil, usage(err)
		}
	}
	return p, nil
}

// A span is which packets, and which coded packets, are those of the processors that
// live in this process.
type span struct {
	k, sinks   int // all there are
	first, end int // packets here
	to, toEnd  int // coded packets here
}

// span returns that of this process, for k packets.
func (o *encodeOptions) span(k int) (span, error) {
	s := span{k: k, sinks: cmp.Or(o.Sinks, k)}
	processors, firstSink := max(k, s.sinks), 0
	if o.Separate {
		processors, firstSink = k+s.sinks, k
	}
	ranks := o.party.Size()
	switch {
	case k < 1:
		return s, usagef("%d packets: want 1 or more", k)
	case ranks > processors:
		return s, usagef("%s for %s: start no more of them", processes(ranks), count(processors, "processor"))
	case o.perRank > 0 && ranks*o.perRank != processors:
		return s, usagef("--per-rank %d: %s for %s", o.perRank, processes(ranks), count(processors, "processor"))
	}
	first, end := executor.Hosted(processors, o.party.Rank(), ranks)
	s.first, s.end = min(first, k), min(end, k)
	s.to, s.toEnd = min(max(first-firstSink, 0), s.sinks), min(max(end-firstSink, 0), s.sinks)
	return s, nil
}

func processes(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}

// here returns the files of the packets here. One argument with {rank} in it stands for as
// many as there are; in a job, for those here, and it may name a directory for each.
// Else they are the files named, or those of them that are here where all are named.
func (o *encodeOptions) here(args []string) ([]string, span, error) {
	pattern := len(args) == 1 && strings.Contains(args[0], rankWord)
	k := o.Processors
	if o.party.job() && k == 0 {
		if k = o.party.Size() * max(1, o.perRank); o.Separate {
			k -= o.Sinks
		}
	}
	var names []string
	var err error
	if !pattern {
		if names, err = expandDirectories(args); err != nil {
			return nil, span{}, usage(err)
		}
		if !o.party.job() {
			k = len(names)
		}
	} else if k == 0 {
		return nil, span{}, usagef("pattern %s: say how many processors there are with -k", args[0])
	}
	s, err := o.span(k)
	if err != nil {
		return nil, s, err
	}
	if pattern {
		for i := s.first; i < s.end; i++ {
			names = append(names, strings.ReplaceAll(args[0], rankWord, fmt.Sprint(i)))
		}
		if o.party.job() {
			names, err = expandDirectories(names)
		}
	}
	switch own := s.end - s.first; {
	case err != nil:
		return nil, s, usage(err)
	case len(names) == own:
		return names, s, nil
	case len(names) == k && !pattern:
		return names[s.first:s.end], s, nil
	default:
		return nil, s, usagef("%s named: want %d for the processors of this process, or all %d", count(len(names), "packet"), own, k)
	}
}

// expandDirectories replaces directories by their files.
func expandDirectories(args []string) ([]string, error) {
	var names []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			names = append(names, arg)
			continue
		}
		entries, err := os.ReadDir(arg) // in name order
		if err != nil {
			return nil, err
		}
		before := len(names)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") {
				continue
			}
			path := filepath.Join(arg, e.Name())
			info, err := os.Stat(path) // follows links
			if err != nil {
				return nil, err
			}
			if info.Mode().IsRegular() {
				names = append(names, path)
			}
		}
		if len(names) == before {
			return nil, fmt.Errorf("directory %s: no packets: want regular files in it, with names that do not begin with a dot", arg)
		}
	}
	return names, nil
}

// filePackets are a file in and a file out for each processor here.
type filePackets struct {
	span
	field   field.Field
	packing *field.Packing // nil: the files hold symbols already
	inputs  []*inputFile
	outputs []*codeddir.File
}

// packetFile is a file that is to stay as long as it was.
type packetFile struct {
	*os.File
	bytes int64
	info  fs.FileInfo // when it was opened
}

// openPacket opens a regular file.
func openPacket(name string) (packetFile, error) {
	info, err := os.Stat(name)
	if err != nil {
		return packetFile{}, err
	}
	if !info.Mode().IsRegular() { // not opened: a pipe would wait for its writer
		return packetFile{}, fmt.Errorf("packet %s: not a regular file", name)
	}
	f, info, err := disk.OpenInput(name)
	if err != nil {
		return packetFile{}, err
	}
	if info.Size() == 0 {
		if n, _ := f.Read(make([]byte, 1)); n > 0 { // as of files in /proc
			f.Close()
			return packetFile{}, fmt.Errorf("packet %s: its length is said to be 0 and it has data: make a copy of it and name that", name)
		}
	}
	return packetFile{f, info.Size(), info}, nil
}

// unchanged returns a *changedError unless the file is as it was when it was opened, and
// has its name still. A program may write to it without that: what was read is what counts.
func (f packetFile) unchanged() error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(f.Name())
	switch {
	case err != nil:
		return &changedError{f.Name(), fmt.Sprintf("its name is gone: %s", reason(err))}
	case !os.SameFile(named, now):
		return &changedError{f.Name(), "another file has its name"}
	case now.Size() != f.bytes:
		return &changedError{f.Name(), fmt.Sprintf("%d bytes at first and then %d", f.bytes, now.Size())}
	case !now.ModTime().Equal(f.info.ModTime()), !disk.Changed(now).Equal(disk.Changed(f.info)):
		return &changedError{f.Name(), fmt.Sprintf("changed at %s", disk.Changed(now).Format(time.TimeOnly))}
	}
	return nil
}

// ReadAt returns a *changedError where the file has become shorter.
func (f packetFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(p, offset)
	if end := offset + int64(n); n < len(p) && end < f.bytes && err == io.EOF {
		err = shrunk(f, end)
	}
	return n, err
}

// inputFile is an input that is read front to back, once.
type inputFile struct {
	packetFile
	symbols int64
	digest  hash.Hash
	read    int64 // bytes that digest has seen
}

func (p *filePackets) open(name string) error {
	f, err := openPacket(name)
	if err != nil {
		return err
	}
	in := &inputFile{packetFile: f, digest: sha256.New()}
	p.inputs = append(p.inputs, in)
	symbol := int64(p.field.SymbolBytes())
	switch {
	case p.packing != nil:
		in.symbols = p.packing.Symbols(in.bytes)
	case in.bytes%symbol != 0:
		return fmt.Errorf("packet %s: %d bytes: a symbol of %s has %d", name, in.bytes, p.field.Name(), symbol)
	default:
		in.symbols = in.bytes / symbol
	}
	return nil
}

func (p *filePackets) count() int { return p.k }

func (p *filePackets) symbols() int64 {
	most := int64(0)
	for _, in := range p.inputs {
		most = max(most, in.symbols)
	}
	return most
}

func (p *filePackets) perm() fs.FileMode {
	all := fs.ModePerm
	for _, in := range p.inputs {
		all &= disk.Permissions(in.info)
	}
	return all
}

func (p *filePackets) size(k int) int64 {
	return p.inputs[k-p.first].symbols * int64(p.field.SymbolBytes())
}

func (p *filePackets) reader(k int) io.ReaderAt {
	in := p.inputs[k-p.first]
	if p.packing == nil {
		return in
	}
	return field.NewReaderAt(p.field, in, in.bytes)
}

// ReadAt reads and digests what has not been read yet.
func (in *inputFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := in.packetFile.ReadAt(p, offset)
	if end := offset + int64(n); offset <= in.read && in.read < end {
		in.digest.Write(p[in.read-offset : n])
		in.read = end
	}
	return n, err
}

// A changedError says that a file changed while it was read.
type changedError struct {
	name string
	how  string
}

func (e *changedError) Error() string {
	return fmt.Sprintf("packet %s: %s: it changed while it was read; let nothing write to it until the run has ended", e.name, e.how)
}

func shrunk(f packetFile, now int64) error {
	return &changedError{f.Name(), fmt.Sprintf("%d bytes at first and then %d", f.bytes, now)}
}

func (p *filePackets) sources() []string {
	var names []string
	for _, in := range p.inputs {
		names = append(names, in.Name())
	}
	return names
}

func (p *filePackets) targets() []string {
	names := make([]string, p.sinks)
	for s := range names {
		names[s] = codeddir.CodedName(s, len(names))
	}
	return names
}

func (p *filePackets) create(dir *codeddir.Dir) ([]io.WriterAt, error) {
	writers := make([]io.WriterAt, p.sinks)
	targets := p.targets()
	for s := p.to; s < p.toEnd; s++ {
		f, err := dir.Create(targets[s])
		if err != nil {
			return nil, err
		}
		p.outputs = append(p.outputs, f)
		writers[s] = f
	}
	return writers, nil
}

func (p *filePackets) finish(_ *codeddir.Dir, m *codeddir.Manifest) error {
	if p.packing != nil {
		m.BitsPerSymbol = p.packing.Bits()
	}
	names := p.targets()
	for i, in := range p.inputs {
		if in.read != in.bytes {
			return shrunk(in.packetFile, in.read)
		}
		if err := in.unchanged(); err != nil {
			return err
		}
		m.Inputs = append(m.Inputs, codeddir.Entry{
			Name: in.Name(), Processor: p.first + i, Bytes: in.bytes, SHA256: hex.EncodeToString(in.digest.Sum(nil)),
		})
	}
	for i, out := range p.outputs {
		size, sum := out.Sum()
		s := p.to + i
		m.Files = append(m.Files, codeddir.Entry{
			Name: names[s], Processor: s, Bytes: size, SHA256: sum,
		})
	}
	return nil
}

func (p *filePackets) close() {
	for _, in := range p.inputs {
		in.Close()
	}
}

// textPackets are the rows of a text file of symbols.
type textPackets struct {
	name  string
	input *matrix.Dense // row k is packet k
	bytes int64
	sum   string
	mode  fs.FileMode // of the file
	sinks int
	coded []text
}

// mostPiped is the bytes of text that are taken from what is no file and may never end.
const mostPiped = 64 << 20

func openText(f field.Field, name string, sinks int) (toEncode, error) {
	data, mode, err := disk.ReadInput(name, mostPiped)
	if err != nil {
		return nil, usage(err)
	}
	rows, err := matrix.FromCSV(f, bytes.NewReader(data), name)
	if err != nil {
		return nil, usage(err)
	}
	sum := sha256.Sum256(data)
	return &textPackets{name: name, input: rows, bytes: int64(len(data)), sum: hex.EncodeToString(sum[:]), mode: mode, sinks: cmp.Or(sinks, rows.Rows())}, nil
}

func (p *textPackets) count() int               { return p.input.Rows() }
func (p *textPackets) symbols() int64           { return int64(p.input.Cols()) }
func (p *textPackets) size(k int) int64         { return int64(len(p.input.Row(k))) }
func (p *textPackets) reader(k int) io.ReaderAt { return bytes.NewReader(p.input.Row(k)) }
func (p *textPackets) perm() fs.FileMode        { return p.mode }
func (p *textPackets) sources() []string        { return []string{p.name} }
func (p *textPackets) targets() []string        { return []string{codeddir.TextName} }
func (p *textPackets) close()                   {}

// text is a coded packet in memory.
type text []byte

func (t text) WriteAt(p []byte, offset int64) (int, error) {
	if offset+int64(len(p)) > int64(len(t)) {
		return 0, errors.New("write after the end of a packet")
	}
	return copy(t[offset:], p), nil
}

func (p *textPackets) create(*codeddir.Dir) ([]io.WriterAt, error) {
	writers := make([]io.WriterAt, p.sinks)
	for k := range writers {
		p.coded = append(p.coded, make(text, p.size(0)))
		writers[k] = p.coded[k]
	}
	return writers, nil
}

func (p *textPackets) finish(dir *codeddir.Dir, m *codeddir.Manifest) error {
	size, sum, err := p.write(dir, codeddir.TextName)
	if err != nil {
		return err
	}
	m.Files = []codeddir.Entry{{Name: codeddir.TextName, Processor: -1, Bytes: size, SHA256: sum}}
	m.Inputs = []codeddir.Entry{{Name: p.name, Processor: -1, Bytes: p.bytes, SHA256: p.sum}}
	return nil
}

// write writes the coded packets as text. It returns the length of that and its
// SHA-256, in hexadecimal.
func (p *textPackets) write(dir *codeddir.Dir, name string) (int64, string, error) {
	f := p.input.Field()
	coded := matrix.NewDense(f, p.sinks, p.input.Cols())
	for k, packet := range p.coded {
		for j := range coded.Cols() {
			coded.Set(k, j, field.Symbol(f, packet[j*f.SymbolBytes():]))
		}
	}
	out, err := dir.Create(name)
	if err != nil {
		return 0, "", err
	}
	if err := matrix.WriteCSV(out, coded); err != nil {
		return 0, "", err
	}
	size, sum := out.Sum()
	return size, sum, nil
}
