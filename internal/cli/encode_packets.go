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
	"os"
	"path/filepath"
	"strings"

	"volley/field"
	"volley/internal/codeddir"
	"volley/matrix"
)

// toEncode are the packets of an encode.
type toEncode interface {
	packets
	count() int        // K
	symbols() int64    // of the longest packet
	sources() []string // the files that the packets come from
	targets() []string // the names of the coded files

	// finish writes what is left to write and describes all files in m.
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
		return openText(f, args[0], o.sinks)
	}
	names, err := expand(args, o.k)
	if err != nil {
		return nil, usage(err)
	}
	p := &filePackets{field: f}
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
	p.sinks = cmp.Or(o.sinks, len(p.inputs))
	return p, nil
}

// expand replaces directories by their files and a {rank} pattern by k names.
func expand(args []string, k int) ([]string, error) {
	const rank = "{rank}"
	if len(args) == 1 && strings.Contains(args[0], rank) {
		if k < 1 {
			return nil, fmt.Errorf("pattern %s: say how many processors there are with -k", args[0])
		}
		names := make([]string, k)
		for i := range names {
			names[i] = strings.ReplaceAll(args[0], rank, fmt.Sprint(i))
		}
		return names, nil
	}
	return expandDirectories(args)
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

// filePackets are a file in and a file out for each processor.
type filePackets struct {
	field   field.Field
	packing *field.Packing // nil: the files hold symbols already
	sinks   int
	inputs  []*inputFile
	outputs []*codeddir.File
}

// packetFile is a file that is to stay as long as it was.
type packetFile struct {
	*os.File
	bytes int64
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
	f, err := os.Open(name)
	return packetFile{f, info.Size()}, err
}

// ReadAt returns a *shrunkError where the file has become shorter.
func (f packetFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(p, offset)
	if end := offset + int64(n); n < len(p) && end < f.bytes && err == io.EOF {
		err = &shrunkError{f.Name(), f.bytes, end}
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

func (p *filePackets) count() int { return len(p.inputs) }

func (p *filePackets) symbols() int64 {
	most := int64(0)
	for _, in := range p.inputs {
		most = max(most, in.symbols)
	}
	return most
}

func (p *filePackets) size(k int) int64 { return p.inputs[k].symbols * int64(p.field.SymbolBytes()) }

func (p *filePackets) reader(k int) io.ReaderAt {
	in := p.inputs[k]
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

// A shrunkError says that a file became shorter while it was read.
type shrunkError struct {
	name    string
	was, is int64 // bytes
}

func (e *shrunkError) Error() string {
	return fmt.Sprintf("packet %s: %d bytes at first and then %d: it changed while it was read", e.name, e.was, e.is)
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
	for k, name := range p.targets() {
		f, err := dir.Create(name)
		if err != nil {
			return nil, err
		}
		p.outputs = append(p.outputs, f)
		writers[k] = f
	}
	return writers, nil
}

func (p *filePackets) finish(_ *codeddir.Dir, m *codeddir.Manifest) error {
	if p.packing != nil {
		m.BitsPerSymbol = p.packing.Bits()
	}
	names := p.targets()
	for k, in := range p.inputs {
		if in.read != in.bytes {
			return &shrunkError{in.Name(), in.bytes, in.read}
		}
		m.Inputs = append(m.Inputs, codeddir.Entry{
			Name: in.Name(), Processor: k, Bytes: in.bytes, SHA256: hex.EncodeToString(in.digest.Sum(nil)),
		})
	}
	for s, out := range p.outputs {
		size, sum := out.Sum()
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
	sinks int
	coded []text
}

func openText(f field.Field, name string, sinks int) (toEncode, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, usage(err)
	}
	rows, err := matrix.FromCSV(f, bytes.NewReader(data), name)
	if err != nil {
		return nil, usage(err)
	}
	sum := sha256.Sum256(data)
	return &textPackets{name: name, input: rows, bytes: int64(len(data)), sum: hex.EncodeToString(sum[:]), sinks: cmp.Or(sinks, rows.Rows())}, nil
}

func (p *textPackets) count() int               { return p.input.Rows() }
func (p *textPackets) symbols() int64           { return int64(p.input.Cols()) }
func (p *textPackets) size(k int) int64         { return int64(len(p.input.Row(k))) }
func (p *textPackets) reader(k int) io.ReaderAt { return bytes.NewReader(p.input.Row(k)) }
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
