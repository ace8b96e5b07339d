package coded

import (
	"cmp"
	"crypto/sha256"
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
	"volley/internal/disk"
	"volley/internal/printable"
)

// openInputs opens the packets that the caller names.
func (j *encodeJob) openInputs() error {
	names, err := j.localFiles()
	if err != nil {
		return err
	}
	if !j.e.Symbols {
		j.bits = field.PackingOf(j.e.Field).Bits()
	}
	for _, name := range names {
		f, err := openPacket(name)
		if err != nil {
			return input(err)
		}
		j.symbols = max(j.symbols, symbolsOf(j.e.Field, j.bits, f.bytes))
		j.perm &= disk.Permissions(f.info)
		j.inputs = append(j.inputs, &inputFile{packetFile: f, digest: sha256.New()})
		if symbol := int64(j.e.Field.SymbolBytes()); j.e.Symbols && f.bytes%symbol != 0 {
			return inputf("packet %s: %d bytes: a symbol of %s has %d", name, f.bytes, j.e.Field.Name(), symbol)
		}
	}
	return nil
}

// A span is which packets, and which coded packets, are those of the processors that live at this rank.
type span struct {
	k, sinks           int // all there are
	first, end         int // packets here
	firstSink, endSink int // coded packets here
}

// mostPackets is more than a process can have files open.
const mostPackets = 1 << 20

// setSpan sets which packets of k are those of this rank.
func (j *encodeJob) setSpan(k int) error {
	s := span{k: k, sinks: cmp.Or(j.e.Sinks, k)}
	processors, firstSink := max(k, s.sinks), 0
	if j.e.Separate {
		processors, firstSink = k+s.sinks, k
	}
	switch {
	case k < 1:
		return inputf("%d packets: want 1 or more", k)
	case k > mostPackets || s.sinks > mostPackets:
		return inputf("%d packets and %d coded ones: want at most %d", k, s.sinks, mostPackets)
	}
	if err := j.checkRanks(processors); err != nil {
		return err
	}
	first, end := executor.Hosted(processors, j.t.Rank(), j.t.Size())
	s.first, s.end = min(first, k), min(end, k)
	s.firstSink, s.endSink = min(max(first-firstSink, 0), s.sinks), min(max(end-firstSink, 0), s.sinks)
	j.span = s
	return nil
}

// rankWord stands in the name of a file for the number of a processor, or of a rank.
const rankWord = "{rank}"

// localFiles returns the files of the packets here, and sets which packets these are.
func (j *encodeJob) localFiles() (names []string, err error) {
	e, alone := j.e, j.t.Size() == 1 && !j.Job
	pattern := len(e.Files) == 1 && strings.Contains(e.Files[0], rankWord)
	k := e.Processors
	if !alone && k == 0 {
		if k = j.t.Size(); e.Separate {
			k -= e.Sinks
		}
	}
	switch {
	case len(e.Files) == 0:
		return nil, inputf("no packets: name one input file for each processor")
	case !pattern:
		if names, err = expandDirectories(e.Files); err != nil {
			return nil, input(err)
		}
		if alone {
			k = len(names)
		}
	case k == 0:
		return nil, inputf("pattern %s: the number of processors is not given: say it with -k", e.Files[0])
	}
	if err := j.setSpan(k); err != nil {
		return nil, err
	}
	if pattern {
		names = numbered(e.Files[0], j.first, j.end)
		if !alone {
			names, err = expandDirectories(names)
		}
	}
	for _, name := range names {
		if filepath.Base(name) != manifest.FileName || slices.Contains(e.Files, name) {
			continue
		}
		if _, err := ReadManifest(name); err == nil {
			return nil, inputf("%s: the directory holds coded packets: want that of the initial packets, or name the files", name)
		}
	}
	switch expected, named := j.end-j.first, len(names); {
	case err != nil:
		return nil, input(err)
	case named == expected:
		return names, nil
	case named == k && !pattern:
		return names[j.first:j.end], nil
	default:
		return nil, inputf("%s named: want %d for the processors of this process, or all %d", printable.Count(named, "packet"), expected, k)
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
	digest hash.Hash
	read   int64 // bytes that digest has seen
}

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

// symbolsOf returns how many symbols a file has, each of which holds so many bits; 0: the file has symbols already.
func symbolsOf(f field.Field, bits int, bytes int64) int64 {
	if bits == 0 {
		return bytes / int64(f.SymbolBytes())
	}
	return field.PackingOf(f).Symbols(bytes)
}

// setSource has a packet come from a file of symbols, or of bytes that symbols hold.
func setSource(packet *volley.Packet, f field.Field, bits int, file io.ReaderAt, bytes int64) {
	packet.Source, packet.Size = file, symbolsOf(f, bits, bytes)*int64(f.SymbolBytes())
	if bits != 0 {
		packet.Source = field.NewReaderAt(f, file, bytes)
	}
}

func (j *encodeJob) source(k int, packet *volley.Packet) {
	file := j.inputs[k-j.first]
	setSource(packet, j.e.Field, j.bits, file, file.bytes)
}

func (j *encodeJob) sink(s int, packet *volley.Packet) { packet.Coded = j.outputs[s-j.firstSink] }

func (j *encodeJob) close() {
	for _, file := range j.inputs {
		file.Close()
	}
}
