package group

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"volley/internal/disk"
)

// metaName is the directory of a node in which everything of Volley's lies.
const metaName = ".volley"

// Types of an [Entry].
const (
	typeFile    = "file"
	typeDir     = "dir"
	typeSymlink = "symlink"
	typeLink    = "link" // another name of a file of the node: its target
)

// An Entry is a file, directory or symbolic link of a node.
type Entry struct {
	Path        Name   `json:"path"` // relative, by slashes; the node's directory itself is "."
	Type        string `json:"type"`
	Mode        uint32 `json:"mode"`               // permission bits, with setuid 04000, setgid 02000 and sticky 01000
	Seconds     int64  `json:"mtime"`              // of the last change, since 1970
	Nanoseconds int64  `json:"mtime_ns,omitempty"` // beyond these seconds
	Target      Name   `json:"target,omitempty"`

	Owner      *owner     `json:"owner,omitempty"`      // nil: not known
	Attributes attributes `json:"attributes,omitempty"` // extended ones
	Sparse     bool       `json:"sparse,omitempty"`     // a file that has holes

	// Of files:
	Size   int64 `json:"size,omitempty"`   // bytes
	Offset int64 `json:"offset,omitempty"` // in the node's data
	Room   int64 `json:"room,omitempty"`   // bytes behind it that are left to it: it has grown before

	// Of entries of a listing:
	touch touch
	file  disk.FileID // zero for what is no file, or has one name only
}

func (e *Entry) time() time.Time { return time.Unix(e.Seconds, e.Nanoseconds) }

func (e *Entry) sameTime(o *Entry) bool {
	return e.Seconds == o.Seconds && e.Nanoseconds == o.Nanoseconds
}

type attributes map[Name][]byte

// MarshalJSON writes names that are not UTF-8 as [Name] does, which encoding/json does not do for strings.
func (a attributes) MarshalJSON() ([]byte, error) {
	texts := map[string][]byte{}
	for name, value := range a {
		text, err := name.MarshalText()
		if err != nil {
			return nil, err
		}
		texts[string(text)] = value
	}
	return json.Marshal(texts)
}

type owner struct {
	UID int64 `json:"uid"`
	GID int64 `json:"gid"`
}

// sameMeta reports whether two entries have one mode, owner and attributes, as far as these are known.
func (e *Entry) sameMeta(o *Entry) bool {
	if e.Mode != o.Mode {
		return false
	}
	if e.Owner == nil || o.Owner == nil {
		return true
	}
	return *e.Owner == *o.Owner && maps.EqualFunc(e.Attributes, o.Attributes, bytes.Equal)
}

// A Name is bytes. In JSON it is a string where they are UTF-8 without "base64:" in front, else "base64:" and code.
type Name string

const coded = "base64:"

func (n Name) MarshalText() ([]byte, error) {
	if utf8.ValidString(string(n)) && !strings.HasPrefix(string(n), coded) {
		return []byte(n), nil
	}
	return []byte(coded + base64.StdEncoding.EncodeToString([]byte(n))), nil
}

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

// specialModes are the bits of [Entry.Mode] beyond the permissions, by those of fs.FileMode.
var specialModes = map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000}

func unixMode(m fs.FileMode) uint32 {
	bits := uint32(m.Perm())
	for special, bit := range specialModes {
		if m&special != 0 {
			bits |= bit
		}
	}
	return bits
}

func fileMode(bits uint32) fs.FileMode {
	m := fs.FileMode(bits & 0o777)
	for special, bit := range specialModes {
		if bits&bit != 0 {
			m |= special
		}
	}
	return m
}

func joinPath(dir string, p Name) string { return filepath.Join(dir, filepath.FromSlash(string(p))) }

// A listing is what lies below a node's directory but for .volley.
type listing struct {
	entries []*Entry // in the order of their paths
	bad     map[Name]error
	without excludes // what is left out
}

// A touch tells whether a file was written to since: every write, and every change of its mode or
// name, gives it another ctime, and a copy is another inode.
type touch struct {
	inode   uint64
	changed int64 // nanoseconds since 1970
}

func touchOf(info fs.FileInfo) touch {
	return touch{disk.Inode(info), disk.Changed(info).UnixNano()}
}

// scan lists a directory. Strictly, it returns an error that names what cannot be read, or is
// neither file, directory nor symbolic link; else the listing has what cannot be read. What is excluded it leaves out.
func scan(dir disk.Dir, strictly bool, without excludes) (*listing, error) {
	l := &listing{bad: map[Name]error{}, without: without}
	if err := l.add(dir, ".", strictly); err != nil {
		return nil, err
	}
	slices.SortFunc(l.entries, func(a, b *Entry) int { return strings.Compare(string(a.Path), string(b.Path)) })
	first := map[disk.FileID]Name{}
	for _, e := range l.entries {
		switch {
		case e.file == (disk.FileID{}):
		case first[e.file] == "":
			first[e.file] = e.Path
		default:
			e.Type, e.Target = typeLink, first[e.file]
		}
	}
	return l, nil
}

func (l *listing) linked(a, b Name) bool {
	x, y := l.find(a), l.find(b)
	return x != nil && y != nil && x.file != (disk.FileID{}) && x.file == y.file
}

// mostPath bounds the bytes of a path, as PATH_MAX does: nested directories take memory by the square of their number.
const mostPath = 4096

func (l *listing) add(dir disk.Dir, name string, strictly bool) error {
	unless := func(err error) error {
		if strictly || errors.Is(err, fs.ErrNotExist) && name == "." {
			return err
		}
		if !errors.Is(err, fs.ErrNotExist) { // else it has gone meanwhile
			l.bad[Name(name)] = err
		}
		return nil
	}
	if len(name) > mostPath {
		return unless(inputf("%s: the path has more than %d bytes below the node: move it up", filepath.Join(dir.Path(), path.Dir(name)), mostPath))
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return unless(err)
	}
	e, err := entryOf(dir, name, info)
	if err != nil && (strictly || !errors.Is(err, errSpecial)) {
		return unless(err)
	}
	e.touch, e.file = touchOf(info), disk.Linked(info)
	l.entries = append(l.entries, e)
	if e.Type != typeDir {
		return nil
	}
	below, err := dir.ReadDir(name)
	if err != nil {
		return unless(err)
	}
	for _, d := range below {
		switch {
		case name == "." && d.Name() == metaName && d.IsDir():
			continue
		case name == "." && d.Name() == metaName:
			return fmt.Errorf("%s: it is not a directory, and the name is Volley's own: move it away", filepath.Join(dir.Path(), metaName))
		case l.without.match(path.Join(name, d.Name()), d.IsDir()):
			continue
		}
		if err := l.add(dir, path.Join(name, d.Name()), strictly); err != nil {
			return err
		}
	}
	return nil
}

// find returns the entry of a path, or nil.
func (l *listing) find(p Name) *Entry {
	i, ok := slices.BinarySearchFunc(l.entries, p, func(e *Entry, p Name) int { return strings.Compare(string(e.Path), string(p)) })
	if !ok {
		return nil
	}
	return l.entries[i]
}

func entryOf(dir disk.Dir, name string, info fs.FileInfo) (*Entry, error) {
	at := info.ModTime()
	e := &Entry{Path: Name(name), Mode: unixMode(info.Mode()), Seconds: at.Unix(), Nanoseconds: int64(at.Nanosecond())}
	if uid, gid, ok := disk.Owner(info); ok {
		e.Owner = &owner{uid, gid}
	}
	if info.Mode().IsRegular() || info.IsDir() {
		list, err := dir.Attributes(name)
		if err != nil {
			return e, err
		}
		for attribute, value := range list {
			if strings.HasPrefix(attribute, "system.") && !strings.HasPrefix(attribute, "system.posix_acl_") {
				continue // made up by the file system
			}
			if e.Attributes == nil {
				e.Attributes = attributes{}
			}
			e.Attributes[Name(attribute)] = []byte(value)
		}
	}
	switch {
	case info.Mode().IsRegular():
		e.Type, e.Size, e.Sparse = typeFile, info.Size(), disk.Sparse(info)
	case info.IsDir():
		e.Type = typeDir
	case info.Mode()&fs.ModeSymlink != 0:
		e.Type = typeSymlink
		target, err := dir.Readlink(name)
		if err != nil {
			return e, err
		}
		e.Target = Name(target)
	default:
		e.Type = disk.Kind(info.Mode())
		return e, fmt.Errorf("%s is a %s: %w; move it away", filepath.Join(dir.Path(), name), e.Type, errSpecial)
	}
	return e, nil
}

var errSpecial = errors.New("only files, directories and symbolic links can be protected")

// allocate sets the places of the files of a node and returns where its data ends. Files that had a place in an earlier
// record keep it, by [placed], so that they need not be coded again, unless they would end after most. A file that has
// outgrown its place pushes the files behind it away; where these have more bytes than it had, it moves itself. Files
// without a place take the first gap that holds them. Where gaps and room come to more than half of the files' bytes,
// the last files are laid anew, and all behind the first gap if that is not enough.
func allocate(list, earlier []*Entry, most int64) int64 {
	var total int64
	type file struct {
		*Entry
		was int64 // bytes
	}
	var kept, others []file
	was := placed(list, earlier)
	for i, e := range list {
		if e.Offset, e.Room = 0, 0; e.Type != typeFile || e.Size == 0 {
			continue
		}
		total += e.Size
		if was[i] == nil {
			others = append(others, file{e, 0})
			continue
		}
		e.Offset, e.Room = was[i].Offset, room(e, was[i])
		kept = append(kept, file{e, was[i].Size})
	}
	slices.SortStableFunc(kept, func(a, b file) int { return cmp.Compare(a.Offset, b.Offset) })
	if last := slices.IndexFunc(kept, func(e file) bool { return e.Offset+e.Size > most }); last >= 0 {
		kept, others = kept[:last], slices.Concat(kept[last:], others)
	}
	type gap struct{ at, n int64 }
	var gaps []gap
	var end, free int64 // free is behind the room of the last file
	for len(kept) > 0 {
		e, behind := kept[0], kept[1:]
		n, pushed := 0, int64(0)
		outgrown := func() bool { return n < len(behind) && behind[n].Offset < e.Offset+e.Size }
		if outgrown() {
			for ; n < len(behind) && behind[n].Offset < e.Offset+e.Size+e.Room && pushed+behind[n].Size <= e.was; n++ {
				pushed += behind[n].Size
			}
		}
		if outgrown() {
			others, kept = append(others, e), behind
			continue
		}
		others, kept = append(others, behind[:n]...), behind[n:]
		if e.Offset > free {
			gaps = append(gaps, gap{free, e.Offset - free})
		}
		if end = e.Offset + e.Size; len(kept) > 0 {
			e.Room = min(e.Room, kept[0].Offset-end)
		}
		free = end + e.Room
	}
	first := 0 // of the gaps that are not used up
	for _, e := range others {
		for first < len(gaps) && gaps[first].n == 0 {
			first++
		}
		i, last := first, min(len(gaps), first+mostGaps)
		for i < last && gaps[i].n < e.Size+e.Room {
			i++
		}
		if i < last {
			e.Offset = gaps[i].at
			gaps[i].at, gaps[i].n = gaps[i].at+e.Size+e.Room, gaps[i].n-e.Size-e.Room
			continue
		}
		e.Offset = free
		end = e.Offset + e.Size
		free = end + e.Room
	}
	switch {
	case most == 0 || len(earlier) == 0 || 2*end <= 3*total:
		return end
	case most == mostChunk:
		return allocate(list, earlier, total)
	}
	return allocate(list, earlier, 0)
}

// mostGaps bounds the gaps that are tried for a file: placing many files takes no time by the square of their number.
const mostGaps = 100

// placed returns for each entry the earlier one whose place it takes, or nil: the one that it was, under any name, or
// another of its length. A wrong guess costs no more than a new place.
func placed(list, earlier []*Entry) []*Entry {
	type key struct {
		path  Name
		size  int64
		s, ns int64
	}
	base := func(e *Entry) Name { return Name(path.Base(string(e.Path))) }
	was, taken, next := make([]*Entry, len(list)), make([]bool, len(earlier)), make([]int, len(earlier))
	for _, of := range []func(*Entry) key{ // the surest first
		func(e *Entry) key { return key{e.Path, e.Size, e.Seconds, e.Nanoseconds} },
		func(e *Entry) key { return key{base(e), e.Size, e.Seconds, e.Nanoseconds} },
		func(e *Entry) key { return key{"", e.Size, e.Seconds, e.Nanoseconds} },
		func(e *Entry) key { return key{path: e.Path} },
		func(e *Entry) key { return key{path: base(e), size: e.Size} },
		func(e *Entry) key { return key{size: e.Size} },
	} {
		left := map[key]int{} // the number behind that of the first with a key, and next that of the one after it
		for i := range slices.Backward(earlier) {
			if e := earlier[i]; !taken[i] && e.Type == typeFile && e.Size > 0 {
				left[of(e)], next[i] = i+1, left[of(e)]
			}
		}
		for i := range list {
			if e := list[i]; was[i] == nil && e.Type == typeFile && e.Size > 0 && len(left) > 0 {
				if n := left[of(e)] - 1; n >= 0 {
					was[i], taken[n], left[of(e)] = earlier[n], true, next[n]
				}
			}
		}
	}
	return was
}

// room returns how many bytes behind a file are kept for it, which was another one before. A file that has never grown
// has none. One that grows by n bytes gets room to do so 16 times, and for a block at least, but no more than an eighth
// of its length.
func room(e, was *Entry) int64 {
	n := int64(0)
	if was.Room > 0 {
		n = was.Size + was.Room - e.Size
	}
	if e.Size > was.Size {
		n = max(n, usualBlock, 16*(e.Size-was.Size))
	}
	return max(0, min(n, e.Size/8))
}

// data is a node's data: its files at their places, with zeros between and after them. One goroutine reads it at a time.
type data struct {
	dir disk.Dir // nil: there is nothing
	extents
	lenient bool           // what cannot be read is zeros
	failing map[Name]error // of these, files that are there, which the disk does not give
	handles handles[int]
	memory  [][]byte // in place of the files of the extents; nil: they are files
}

func newData(dir disk.Dir, list []*Entry, lenient bool) *data {
	return &data{dir: dir, extents: extentsOf(list), lenient: lenient}
}

// extents are files that are not empty, by where they lie in a node's data.
type extents []*Entry

func extentsOf(list []*Entry) extents {
	var x extents
	for _, e := range list {
		if e.Type == typeFile && e.Size > 0 {
			x = append(x, e)
		}
	}
	slices.SortStableFunc(x, func(a, b *Entry) int { return cmp.Compare(a.Offset, b.Offset) })
	return x
}

// from returns the first one that ends after offset.
func (x extents) from(offset int64) int {
	return sort.Search(len(x), func(i int) bool { return x[i].Offset+x[i].Size > offset })
}

// overlapping calls f for those that have some of the n bytes from offset on.
func (x extents) overlapping(offset, n int64, f func(i int, e *Entry, from, to int64) error) error {
	for i := x.from(offset); i < len(x) && x[i].Offset < offset+n; i++ {
		e := x[i]
		if err := f(i, e, max(offset, e.Offset), min(offset+n, e.Offset+e.Size)); err != nil {
			return err
		}
	}
	return nil
}

// handles are files that are open, the last ones used.
type handles[K comparable] struct {
	open  map[K]disk.File
	order []K // the oldest first
}

// mostOpen is how many files of a node are open at a time.
const mostOpen = 32

// get returns a file that is open, or opens it.
func (h *handles[K]) get(key K, open func() (disk.File, error)) (disk.File, error) {
	if f := h.open[key]; f != nil {
		return f, nil
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	if h.open == nil {
		h.open = map[K]disk.File{}
	}
	if len(h.order) == mostOpen {
		h.open[h.order[0]].Close()
		delete(h.open, h.order[0])
		h.order = h.order[1:]
	}
	h.open[key] = f
	h.order = append(h.order, key)
	return f, nil
}

func (h *handles[K]) close() {
	for _, key := range h.order {
		h.open[key].Close()
	}
	h.open, h.order = nil, nil
}

func (d *data) file(i int) (disk.File, error) {
	return d.handles.get(i, func() (disk.File, error) {
		if d.dir == nil {
			return nil, fs.ErrNotExist
		}
		f, err := d.dir.OpenFile(string(d.extents[i].Path), os.O_RDONLY, 0)
		if err != nil || d.extents[i].touch == (touch{}) { // it comes from no listing
			return f, err
		}
		info, err := f.Stat()
		if err == nil && touchOf(info) != d.extents[i].touch {
			err = changedMeanwhile(f.Name())
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		return f, nil
	})
}

// changedMeanwhile says that a file is not as it was listed: it would get another file's owner and mode.
func changedMeanwhile(path string) error {
	return inputf("%s has changed while it was protected: leave files alone meanwhile, and run again", path)
}

// length returns how long a file is, which may be shorter than its entry says, or, if nobody can tell, the entry's length.
func (d *data) length(i int) int64 {
	if d.memory != nil {
		return d.extents[i].Size
	}
	f, err := d.file(i)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return 0
	}
	if err == nil {
		if info, err := f.Stat(); err == nil {
			return info.Size()
		}
	}
	return d.extents[i].Size
}

// ReadAt reads the data at any offset; there is no end to it.
func (d *data) ReadAt(p []byte, offset int64) (int, error) {
	done := int64(0) // of p; what lies between files is zeros
	err := d.overlapping(offset, int64(len(p)), func(i int, e *Entry, from, to int64) error {
		clear(p[done : from-offset])
		done = to - offset
		part := p[from-offset : to-offset]
		if d.memory != nil {
			copy(part, d.memory[i][from-e.Offset:])
			return nil
		}
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
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, fs.ErrNotExist) {
				if d.failing == nil {
					d.failing = map[Name]error{}
				}
				d.failing[e.Path] = err
			}
			return nil
		case errors.Is(err, io.EOF):
			return inputf("%s has become shorter than %d bytes meanwhile: leave the files alone while they are protected, and run again", f.Name(), e.Size)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	clear(p[done:])
	return len(p), nil
}

func (d *data) close() { d.handles.close() }

// capability is the attribute that lets a program do what else root alone may.
const capability = "security.capability"

// cause returns the innermost error of err, which names no file.
func cause(err error) error {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err
}

// setMeta gives what e is its owner, mode, attributes and time, and returns what of these the process may not set. Without
// its owner a file gets no bits and attributes that let everybody act as the owner.
func setMeta(dir disk.Dir, name string, e *Entry) (unset []string, err error) {
	mode, owned := e.Mode, e.Owner != nil
	if owned {
		info, err := dir.Lstat(name)
		if err != nil {
			return nil, err
		}
		if uid, gid, ok := disk.Owner(info); !ok || uid != e.Owner.UID || gid != e.Owner.GID {
			if err := dir.Chown(name, int(e.Owner.UID), int(e.Owner.GID)); err != nil {
				owned, unset = false, append(unset, fmt.Sprint("owner not restored: ", cause(err)))
			}
		}
	}
	if e.Type == typeSymlink {
		return unset, dir.SetTime(name, e.time())
	}
	there, err := dir.Attributes(name)
	if err != nil {
		return unset, err
	}
	for _, attribute := range []string{"system.posix_acl_access", "system.posix_acl_default"} { // of the directory in which it was made
		if _, ok := there[attribute]; ok && e.Attributes[Name(attribute)] == nil {
			if err := dir.RemoveAttribute(name, attribute); err != nil {
				return unset, err
			}
		}
	}
	for _, attribute := range slices.Sorted(maps.Keys(e.Attributes)) {
		value := string(e.Attributes[attribute])
		if is, ok := there[string(attribute)]; ok && is == value {
			continue
		}
		err := error(syscall.EPERM)
		if attribute != capability || owned {
			err = cause(dir.SetAttribute(name, string(attribute), value))
		}
		if err != nil {
			unset = append(unset, fmt.Sprintf("attribute %s not restored: %v", attribute, err))
		}
	}
	if special := mode & 0o6000; special != 0 && !owned {
		mode &^= special
		unset = append(unset, "setuid and setgid not restored, as the owner is not")
	}
	if err := dir.Chmod(name, fileMode(mode)); err != nil {
		return unset, err
	}
	return unset, dir.SetTime(name, e.time())
}
