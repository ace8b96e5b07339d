package coded

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"volley"
	"volley/coded/manifest"
	"volley/executor"
	"volley/field"
	"volley/files"
	"volley/internal/disk"
	"volley/internal/printable"
)

// open returns the packets that the caller names.
func (j *encodeJob) open() (*filePackets, error) {
	e := j.e
	names, local, err := j.localFiles()
	if err != nil {
		return nil, err
	}
	p := &filePackets{field: e.Field, span: local}
	if !e.Symbols {
		packing := field.PackingOf(e.Field)
		p.packing = &packing
	}
	for _, name := range names {
		if err := p.open(name); err != nil {
			p.close()
			return nil, input(err)
		}
	}
	return p, nil
}

// A span is which packets, and which coded packets, are those of the processors that live at this rank.
type span struct {
	k, sinks           int // all there are
	first, end         int // packets here
	firstSink, endSink int // coded packets here
}

// mostPackets is more than a process can have files open.
const mostPackets = 1 << 20

// span returns that of this rank, for k packets.
func (j *encodeJob) span(k int) (span, error) {
	s := span{k: k, sinks: cmp.Or(j.e.Sinks, k)}
	processors, firstSink := max(k, s.sinks), 0
	if j.e.Separate {
		processors, firstSink = k+s.sinks, k
	}
	switch {
	case k < 1:
		return s, inputf("%d packets: want 1 or more", k)
	case k > mostPackets || s.sinks > mostPackets:
		return s, inputf("%d packets and %d coded ones: want at most %d", k, s.sinks, mostPackets)
	}
	if err := j.checkRanks(processors); err != nil {
		return s, err
	}
	first, end := executor.Hosted(processors, j.t.Rank(), j.t.Size())
	s.first, s.end = min(first, k), min(end, k)
	s.firstSink, s.endSink = min(max(first-firstSink, 0), s.sinks), min(max(end-firstSink, 0), s.sinks)
	return s, nil
}

// rankWord stands in the name of a file for the number of a processor, or of a rank.
const rankWord = "{rank}"

// localFiles returns the files of the packets here, and which packets these are.
func (j *encodeJob) localFiles() ([]string, span, error) {
	e, alone := j.e, j.t.Size() == 1 && !j.Job
	pattern := len(e.Files) == 1 && strings.Contains(e.Files[0], rankWord)
	k := e.Processors
	if !alone && k == 0 {
		if k = j.t.Size() * max(1, j.PerRank); e.Separate {
			k -= e.Sinks
		}
	}
	var names []string
	var err error
	switch {
	case len(e.Files) == 0:
		return nil, span{}, inputf("no packets: name one input file for each processor")
	case !pattern:
		if names, err = expandDirectories(e.Files); err != nil {
			return nil, span{}, input(err)
		}
		if alone {
			k = len(names)
		}
	case k == 0:
		return nil, span{}, option("Processors", "pattern %s: the number of processors is not given", e.Files[0])
	}
	s, err := j.span(k)
	if err != nil {
		return nil, s, err
	}
	if pattern {
		names = numbered(e.Files[0], s.first, s.end)
		if !alone {
			names, err = expandDirectories(names)
		}
	}
	for _, name := range names {
		if filepath.Base(name) != manifest.FileName || slices.Contains(e.Files, name) {
			continue
		}
		if _, err := ReadManifest(name); err == nil {
			return nil, s, inputf("%s: the directory holds coded packets: want that of the initial packets, or name the files", name)
		}
	}
	switch expected, named := s.end-s.first, len(names); {
	case err != nil:
		return nil, s, input(err)
	case named == expected:
		return names, s, nil
	case named == k && !pattern:
		return names[s.first:s.end], s, nil
	default:
		return nil, s, inputf("%s named: want %d for the processors of this process, or all %d", printable.Count(named, "packet"), expected, k)
	}
}

// numbered puts the numbers from first to end into a name.
func numbered(name string, first, end int) (names []string) {
	for i := first; i < end; i++ {
		names = append(names, strings.ReplaceAll(name, rankWord, fmt.Sprint(i)))
	}
	return names
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
		earlier := len(names)
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
		if len(names) == earlier {
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
	outputs []*newFile
}

// packetFile is a file that is to stay as long as it was.
type packetFile struct {
	*os.File
	bytes int64
	info  fs.FileInfo // when it was opened
}

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

// unchanged returns a *ChangedError unless the file is as it was when opened, under its name: what was read counts.
func (f packetFile) unchanged() error {
	current, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(f.Name())
	switch {
	case err != nil:
		return &ChangedError{f.Name(), fmt.Sprintf("its name is gone: %s", reason(err))}
	case !os.SameFile(named, current):
		return &ChangedError{f.Name(), "another file has its name"}
	case current.Size() != f.bytes:
		return &ChangedError{f.Name(), fmt.Sprintf("%d bytes at first and then %d", f.bytes, current.Size())}
	case !current.ModTime().Equal(f.info.ModTime()), !disk.Changed(current).Equal(disk.Changed(f.info)):
		return &ChangedError{f.Name(), fmt.Sprintf("changed at %s", disk.Changed(current).Format(time.TimeOnly))}
	}
	return nil
}

// ReadAt returns a *ChangedError where the file has become shorter.
func (f packetFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(p, offset)
	if end := offset + int64(n); n < len(p) && end < f.bytes && err == io.EOF {
		err = shrunk(f.Name(), f.bytes, end)
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

// open takes the packet of a file.
func (p *filePackets) open(name string) error {
	f, err := openPacket(name)
	if err != nil {
		return err
	}
	file := &inputFile{packetFile: f, digest: sha256.New()}
	p.inputs = append(p.inputs, file)
	symbol := int64(p.field.SymbolBytes())
	switch {
	case p.packing != nil:
		file.symbols = p.packing.Symbols(file.bytes)
	case file.bytes%symbol != 0:
		return fmt.Errorf("packet %s: %d bytes: a symbol of %s has %d", name, file.bytes, p.field.Name(), symbol)
	default:
		file.symbols = file.bytes / symbol
	}
	return nil
}

func (p *filePackets) symbols() int64 {
	longest := int64(0)
	for _, file := range p.inputs {
		longest = max(longest, file.symbols)
	}
	return longest
}

// perm returns what the files of all packets here allow.
func (p *filePackets) perm() fs.FileMode {
	permissions := fs.ModePerm
	for _, file := range p.inputs {
		permissions &= disk.Permissions(file.info)
	}
	return permissions
}

func (p *filePackets) source(k int, packet *volley.Packet) {
	file := p.inputs[k-p.first]
	packet.Source, packet.Size = file, file.symbols*int64(p.field.SymbolBytes())
	if p.packing != nil {
		packet.Source = field.NewReaderAt(p.field, file, file.bytes)
	}
}

func (p *filePackets) sink(s int, packet *volley.Packet) { packet.Coded = p.outputs[s-p.firstSink] }

// ReadAt reads and digests what has not been read yet.
func (f *inputFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.packetFile.ReadAt(p, offset)
	if end := offset + int64(n); offset <= f.read && f.read < end {
		f.digest.Write(p[f.read-offset : n])
		f.read = end
	}
	return n, err
}

func shrunk(name string, bytes, current int64) error {
	return &ChangedError{name, fmt.Sprintf("%d bytes at first and then %d", bytes, current)}
}

// sources returns the files that the packets here come from.
func (p *filePackets) sources() []string {
	var names []string
	for _, file := range p.inputs {
		names = append(names, file.Name())
	}
	return names
}

func (p *filePackets) create(dir *directory, number int64) error {
	for s := p.firstSink; s < p.endSink; s++ {
		f, err := dir.Create(manifest.CodedName(s, p.sinks, number))
		if err != nil {
			return err
		}
		p.outputs = append(p.outputs, f)
	}
	return nil
}

// finish describes the files here in m.
func (p *filePackets) finish(m *manifest.Manifest) error {
	if p.packing != nil {
		m.BitsPerSymbol = p.packing.Bits()
	}
	for i, file := range p.inputs {
		if file.read != file.bytes {
			return shrunk(file.Name(), file.bytes, file.read)
		}
		if err := file.unchanged(); err != nil {
			return err
		}
		m.Inputs = append(m.Inputs, manifest.Entry{
			Name: files.Name(file.Name()), Processor: p.first + i, Bytes: file.bytes, SHA256: hex.EncodeToString(file.digest.Sum(nil)),
		})
	}
	for i, output := range p.outputs {
		size, sum := output.Sum()
		m.Files = append(m.Files, manifest.Entry{Name: files.Name(output.name), Processor: p.firstSink + i, Bytes: size, SHA256: sum})
	}
	return nil
}

func (p *filePackets) close() {
	for _, file := range p.inputs {
		file.Close()
	}
}
