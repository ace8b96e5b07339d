package group

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode/utf8"
)

// metaName is the directory of a node in which everything of Volley's lies.
const metaName = ".volley"

// Types of an [Entry].
const (
	typeFile    = "file"
	typeDir     = "dir"
	typeSymlink = "symlink"
)

// An Entry is a file, directory or symbolic link of a node.
type Entry struct {
	Path   Name   `json:"path"` // relative, by slashes; the node's directory itself is "."
	Type   string `json:"type"`
	Mode   uint32 `json:"mode"`  // permission bits, with setuid 04000, setgid 02000 and sticky 01000
	MTime  int64  `json:"mtime"` // nanoseconds since 1970
	Target Name   `json:"target,omitempty"`

	// Of files:
	Size   int64  `json:"size,omitempty"`   // bytes
	Offset int64  `json:"offset,omitempty"` // in the node's data
	SHA256 string `json:"sha256,omitempty"`
}

// A Name is bytes. In JSON it is a string where these are UTF-8 and do not begin with
// "base64:", and else "base64:" and their code.
type Name string

const coded = "base64:"

// MarshalText implements encoding.TextMarshaler.
func (n Name) MarshalText() ([]byte, error) {
	if utf8.ValidString(string(n)) && !strings.HasPrefix(string(n), coded) {
		return []byte(n), nil
	}
	return []byte(coded + base64.StdEncoding.EncodeToString([]byte(n))), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *Name) UnmarshalText(text []byte) error {
	rest, ok := strings.CutPrefix(string(text), coded)
	if !ok {
		*n = Name(text)
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(rest)
	*n = Name(raw)
	return err
}

// unixMode returns the mode as [Entry] has it.
func unixMode(m fs.FileMode) uint32 {
	bits := uint32(m.Perm())
	for _, b := range []struct {
		of  fs.FileMode
		bit uint32
	}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}} {
		if m&b.of != 0 {
			bits |= b.bit
		}
	}
	return bits
}

// fileMode is the reverse of unixMode.
func fileMode(bits uint32) fs.FileMode {
	m := fs.FileMode(bits & 0o777)
	if bits&0o4000 != 0 {
		m |= fs.ModeSetuid
	}
	if bits&0o2000 != 0 {
		m |= fs.ModeSetgid
	}
	if bits&0o1000 != 0 {
		m |= fs.ModeSticky
	}
	return m
}

// scan lists what lies below a directory but for .volley, in order of paths. Strictly, it
// returns an error that names what is neither file, directory nor symbolic link.
func scan(dir string, strictly bool) ([]Entry, error) {
	var list []Entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if rel == metaName {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return fmt.Errorf("%s: want a directory, which is Volley's own", path)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		e, err := entryOf(path, rel, info)
		list = append(list, e)
		if errors.Is(err, errSpecial) && !strictly {
			return nil
		}
		return err
	})
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return list, err
}

func entryOf(path, rel string, info fs.FileInfo) (Entry, error) {
	e := Entry{Path: Name(filepath.ToSlash(rel)), Mode: unixMode(info.Mode()), MTime: info.ModTime().UnixNano()}
	switch {
	case info.Mode().IsRegular():
		e.Type, e.Size = typeFile, info.Size()
	case info.IsDir():
		e.Type = typeDir
	case info.Mode()&fs.ModeSymlink != 0:
		e.Type = typeSymlink
		target, err := os.Readlink(path)
		if err != nil {
			return e, err
		}
		e.Target = Name(target)
	default:
		e.Type = kindOf(info.Mode())
		return e, fmt.Errorf("%s is a %s: %w; move it away", path, e.Type, errSpecial)
	}
	return e, nil
}

var errSpecial = errors.New("only files, directories and symbolic links can be protected")

func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// place sets the offsets of the files of a node and returns where its data ends. Files that
// earlier had a place keep it where they fit, so that they need not be coded again;
// unless that would leave more than half of it empty, or afresh is set.
func place(list, earlier []Entry, afresh bool) int64 {
	var total int64
	var files []*Entry
	old := map[Name]int64{}
	for _, e := range earlier {
		if e.Type == typeFile && e.Size > 0 {
			old[e.Path] = e.Offset
		}
	}
	var kept, others []*Entry
	for i := range list {
		e := &list[i]
		if e.Type != typeFile {
			continue
		}
		files = append(files, e)
		total += e.Size
		if at, ok := old[e.Path]; ok && e.Size > 0 && !afresh {
			e.Offset = at
			kept = append(kept, e)
		} else {
			others = append(others, e)
		}
	}
	slices.SortFunc(kept, func(a, b *Entry) int { return cmp.Compare(a.Offset, b.Offset) })
	var end int64
	for i, e := range kept {
		if i+1 < len(kept) && e.Offset+e.Size > kept[i+1].Offset {
			others = append(others, e)
			continue
		}
		end = max(end, e.Offset+e.Size)
	}
	for _, e := range others {
		e.Offset = 0
		if e.Size > 0 {
			e.Offset = end
		}
		end += e.Size
	}
	if end > 2*total {
		end = 0
		for _, e := range files {
			e.Offset = 0
			if e.Size > 0 {
				e.Offset = end
			}
			end += e.Size
		}
	}
	return end
}

// data is the data of a node: its files one after the other, with zeros between and after
// them. It reads for one goroutine at a time.
type data struct {
	dir string
	extents
	lenient bool // what cannot be read is zeros
	open    map[int]*os.File
	order   []int // of open, the oldest first
}

func newData(dir string, list []Entry, lenient bool) *data {
	return &data{dir: dir, extents: extentsOf(list), lenient: lenient, open: map[int]*os.File{}}
}

// extents are files that are not empty, by where they lie in a node's data.
type extents []Entry

func extentsOf(list []Entry) extents {
	var x extents
	for _, e := range list {
		if e.Type == typeFile && e.Size > 0 {
			x = append(x, e)
		}
	}
	slices.SortStableFunc(x, func(a, b Entry) int { return cmp.Compare(a.Offset, b.Offset) })
	return x
}

// from returns the first one that ends after offset.
func (x extents) from(offset int64) int {
	return sort.Search(len(x), func(i int) bool { return x[i].Offset+x[i].Size > offset })
}

// any reports whether one of them has some of the n bytes from offset on.
func (x extents) any(offset, n int64) bool {
	first := x.from(offset)
	return first < len(x) && x[first].Offset < offset+n
}

// overlapping calls f for those that have some of the n bytes from offset on.
func (x extents) overlapping(offset, n int64, f func(i int, e *Entry, from, to int64) error) error {
	for i := x.from(offset); i < len(x) && x[i].Offset < offset+n; i++ {
		e := &x[i]
		if err := f(i, e, max(offset, e.Offset), min(offset+n, e.Offset+e.Size)); err != nil {
			return err
		}
	}
	return nil
}

// mostOpen is how many files of a node are open at a time.
const mostOpen = 32

func (d *data) file(i int) (*os.File, error) {
	if f := d.open[i]; f != nil {
		return f, nil
	}
	f, err := os.Open(join(d.dir, d.extents[i].Path))
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s: no regular file", f.Name())
	}
	if len(d.order) == mostOpen {
		d.open[d.order[0]].Close()
		delete(d.open, d.order[0])
		d.order = d.order[1:]
	}
	d.open[i] = f
	d.order = append(d.order, i)
	return f, nil
}

// ReadAt reads the data at any offset; there is no end to it.
func (d *data) ReadAt(p []byte, offset int64) (int, error) {
	clear(p)
	err := d.overlapping(offset, int64(len(p)), func(i int, e *Entry, from, to int64) error {
		part := p[from-offset : to-offset]
		f, err := d.file(i)
		n := 0
		if err == nil {
			n, err = f.ReadAt(part, from-e.Offset)
		}
		switch {
		case n == len(part):
			return nil
		case d.lenient:
			clear(part[n:])
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%s has become shorter than %d bytes meanwhile: leave the files alone while they are protected, and run again", f.Name(), e.Size)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (d *data) close() {
	for _, f := range d.open {
		f.Close()
	}
	d.open, d.order = map[int]*os.File{}, nil
}

// join returns the path of an entry.
func join(dir string, name Name) string { return filepath.Join(dir, filepath.FromSlash(string(name))) }

// setTimes gives what e is its mode and time.
func setTimes(path string, e *Entry) error {
	if e.Type == typeSymlink {
		return setLinkTime(path, e.MTime)
	}
	if err := os.Chmod(path, fileMode(e.Mode)); err != nil {
		return err
	}
	t := time.Unix(0, e.MTime)
	return os.Chtimes(path, t, t)
}
