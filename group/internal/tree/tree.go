// Package tree knows what lies below a node's directory: it lists files, directories and links with their metadata,
// leaves out what patterns exclude, gives files their places in the node's data, and gives metadata back.
package tree

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"volley/files"
	"volley/internal/disk"
)

// MetaName is the directory of a node in which everything of Volley's lies.
const MetaName = ".volley"

// Types of an [Entry].
const (
	TypeFile    = "file"
	TypeDir     = "dir"
	TypeSymlink = "symlink"
	TypeLink    = "link" // another name of a file of the node: its target
)

// An Entry is a file, directory or symbolic link of a node.
type Entry struct {
	Path        Name   `json:"path"` // relative, by slashes; the node's directory itself is "."
	Type        string `json:"type"`
	Mode        uint32 `json:"mode"`               // permission bits, with setuid 04000, setgid 02000 and sticky 01000
	Sparse      bool   `json:"sparse,omitempty"`   // a file that has holes
	Torn        bool   `json:"torn,omitempty"`     // a program wrote to it each time it was read: it may be old and new content
	Grown       bool   `json:"-"`                  // in a listing: since it was read, so its touch is that of more than what was protected
	Seconds     int64  `json:"mtime"`              // of the last change, since 1970
	Nanoseconds int64  `json:"mtime_ns,omitempty"` // beyond these seconds
	Target      Name   `json:"target,omitempty"`

	Owner      *Owner     `json:"owner,omitempty"`      // nil: not known
	Attributes Attributes `json:"attributes,omitempty"` // extended ones

	// Of files:
	Size   int64 `json:"size,omitempty"`   // bytes
	Offset int64 `json:"offset,omitempty"` // in the node's data
	Room   int64 `json:"room,omitempty"`   // bytes behind it that are left to it: it has grown before

	Inode uint64 `json:"inode,omitempty"` // of a file; 0: it is not known

	// Changed is when a file, or what is known of it, last changed, in nanoseconds since 1970: a time that nobody can set.
	// 0: it is not known, or the file may change once more without another one.
	Changed int64 `json:"ctime,omitempty"`

	// Source is the name by which a file's bytes are read where its own name has gone, or is that of something else
	// now; "": its own.
	Source Name `json:"-"`

	// Of entries of a listing:
	Touch  Touch       `json:"-"`
	Volume disk.FileID `json:"-"` // that it lies on
	file   disk.FileID // of a directory, or a file that has several names; else zero
}

func (e *Entry) Time() time.Time { return time.Unix(e.Seconds, e.Nanoseconds) }

// Special reports whether it is neither file, directory nor link.
func (e *Entry) Special() bool {
	return e.Type != TypeFile && e.Type != TypeDir && e.Type != TypeSymlink && e.Type != TypeLink
}

// SameTime reports whether two entries may have one time. A disk or an archive may keep whole seconds: where either time
// has no more, seconds are compared.
func (e *Entry) SameTime(o *Entry) bool {
	return e.Seconds == o.Seconds && (e.Nanoseconds == o.Nanoseconds || e.Nanoseconds == 0 || o.Nanoseconds == 0)
}

// Untouched reports whether an entry of a listing is the file of a record, which nobody has written to since, nor given
// another name, mode or time. If such a file has other content, it has rotted.
func (e *Entry) Untouched(recorded *Entry) bool {
	return recorded.Changed != 0 && e.Touch == Touch{recorded.Inode, recorded.Changed}
}

// Unchanged reports whether a file holds what was protected, as far as anybody can tell without reading it.
func (e *Entry) Unchanged(recorded *Entry) bool {
	return e.Type == TypeFile && recorded.Type == TypeFile && e.Size == recorded.Size && e.SameTime(recorded) && e.Untouched(recorded)
}

// TakeMeta takes over the metadata of what it is now. A file that has become longer than what was read of it keeps its
// time: what is there is not what was protected.
func (e *Entry) TakeMeta(current *Entry) {
	e.Mode, e.Owner, e.Attributes, e.Inode, e.Touch = current.Mode, current.Owner, current.Attributes, current.Inode, current.Touch
	if e.Type == TypeSymlink {
		e.Target = current.Target
	}
	if e.Grown = e.Size != current.Size; !e.Grown {
		e.Seconds, e.Nanoseconds = current.Seconds, current.Nanoseconds
	}
	if e.Size == 0 {
		e.Offset, e.Room, e.Sparse = 0, 0, false
	}
}

// ByPath returns entries by their paths.
func ByPath(list []*Entry) map[Name]*Entry {
	entries := map[Name]*Entry{}
	for _, e := range list {
		entries[e.Path] = e
	}
	return entries
}

// A Stamp tells contents of files from each other without reading them.
type Stamp struct{ size, seconds, nanoseconds int64 }

func (e *Entry) Stamp() Stamp { return Stamp{e.Size, e.Seconds, e.Nanoseconds} }

type Attributes map[Name][]byte

// MarshalJSON writes names that are not UTF-8 as [Name] does, which encoding/json does not do for strings.
func (a Attributes) MarshalJSON() ([]byte, error) {
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

type Owner struct {
	UID int64 `json:"uid"`
	GID int64 `json:"gid"`
}

// SameMeta reports whether two entries have one mode, owner and attributes, as far as these are known.
func (e *Entry) SameMeta(o *Entry) bool {
	if e.Mode != o.Mode {
		return false
	}
	if e.Owner == nil || o.Owner == nil {
		return true
	}
	return *e.Owner == *o.Owner && maps.EqualFunc(e.Attributes, o.Attributes, bytes.Equal)
}

// A Name is the bytes of a path, or of an attribute's name.
type Name = files.Name

// specialModes are the bits of [Entry.Mode] beyond the permissions, by those of fs.FileMode.
var specialModes = map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000}

func UnixMode(m fs.FileMode) uint32 {
	bits := uint32(m.Perm())
	for special, bit := range specialModes {
		if m&special != 0 {
			bits |= bit
		}
	}
	return bits
}

func FileMode(bits uint32) fs.FileMode {
	m := fs.FileMode(bits & 0o777)
	for special, bit := range specialModes {
		if bits&bit != 0 {
			m |= special
		}
	}
	return m
}

// WholePath is the name of a directory by its whole path.
func WholePath(dir string) Name {
	if path, err := filepath.Abs(dir); err == nil {
		dir = path
	}
	return Name(dir)
}

func JoinPath(dir string, p Name) string { return filepath.Join(dir, filepath.FromSlash(string(p))) }

// A Listing is what lies below a node's directory but for .volley.
type Listing struct {
	Entries []*Entry // in the order of their paths
	Bad     map[Name]error
	Rules   Rules
	Special []string // what a strict listing leaves out: neither file, directory nor symbolic link, or not to be listed; and why
	Mounts  []Name   // directories in which another file system begins

	root    disk.FileID
	earlier []*Entry // that it takes over where nobody has touched the files since
}

// Rules say what a listing leaves out.
type Rules struct {
	Exclude       Excludes
	OneFileSystem bool // what other file systems have, that are mounted below
}

// A Touch tells whether a file was written to since: every write, and every change of its mode, time or
// name, gives it another ctime, and a copy is another inode.
type Touch struct {
	inode   uint64
	changed int64 // nanoseconds since 1970
}

func TouchOf(info fs.FileInfo) Touch {
	return Touch{disk.Inode(info), disk.Changed(info).UnixNano()}
}

// SameFile reports whether two are of one file.
func (t Touch) SameFile(o Touch) bool { return t.inode == o.inode }

// After reports whether a file has changed since a time.
func (t Touch) After(start time.Time) bool { return t.changed > start.UnixNano() }

// Record notes in an entry of a listing when the file last changed.
func (e *Entry) Record() { e.Changed = e.Touch.changed }

// ReadAs returns the name by which a file's bytes are read.
func (e *Entry) ReadAs() Name { return cmp.Or(e.Source, e.Path) }

// Seen returns an entry of a file that a stat has told of.
func Seen(p Name, info fs.FileInfo) *Entry {
	modified := info.ModTime()
	return &Entry{Path: p, Type: TypeFile, Size: info.Size(), Seconds: modified.Unix(), Nanoseconds: int64(modified.Nanosecond()), Touch: TouchOf(info)}
}

// FileOf returns the path of the file that an entry of a record is, or is another name of; "": it is no file.
func (e *Entry) FileOf() Name {
	switch e.Type {
	case TypeFile:
		return e.Path
	case TypeLink:
		return e.Target
	}
	return ""
}

// Still reports whether a file is the one that a listing has, of the same length and time.
func (e *Entry) Still(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && disk.Inode(info) == e.Touch.inode && info.Size() == e.Size && info.ModTime().Equal(e.Time())
}

// Scan lists a directory. Strictly, it returns an error that names what cannot be read, and leaves out what is neither
// file, directory nor symbolic link, and directories that the user may not list; else the listing has both. What the rules
// leave out, or goes meanwhile, it leaves out.
func Scan(dir disk.Dir, strictly bool, rules Rules) (*Listing, error) {
	return (&Listing{Rules: rules}).scan(dir, strictly)
}

// Again lists the directory once more, not strictly. Files that nobody has touched since have the same entries.
func (l *Listing) Again(dir disk.Dir) (*Listing, error) {
	return (&Listing{Rules: l.Rules, earlier: l.Entries}).scan(dir, false)
}

func (l *Listing) scan(dir disk.Dir, strictly bool) (*Listing, error) {
	l.Bad = map[Name]error{}
	if err := l.add(dir, ".", func() (fs.FileInfo, error) { return dir.Lstat(".") }, strictly); err != nil {
		return nil, err
	}
	l.earlier = nil
	slices.SortFunc(l.Entries, func(a, b *Entry) int { return strings.Compare(string(a.Path), string(b.Path)) })
	first := map[disk.FileID]Name{}
	for _, e := range l.Entries {
		switch {
		case e.file == (disk.FileID{}), e.Type == TypeDir:
		case first[e.file] == "":
			first[e.file] = e.Path
		default:
			e.Type, e.Target, e.Inode = TypeLink, first[e.file], 0
		}
	}
	return l, nil
}

// LeftOut reports whether a path lies on another file system, which is left out.
func (l *Listing) LeftOut(p Name) bool {
	return l.Rules.OneFileSystem && slices.ContainsFunc(l.Mounts, func(m Name) bool { return strings.HasPrefix(string(p), string(m)+"/") })
}

func (l *Listing) Linked(a, b Name) bool {
	x, y := l.Find(a), l.Find(b)
	return x != nil && y != nil && x.file != (disk.FileID{}) && x.file == y.file
}

// mostPath bounds the bytes of a path, as PATH_MAX does: nested directories take memory by the square of their number.
const mostPath = 4096

var ErrLong = fmt.Errorf("the path has more than %d bytes below the node", mostPath)

func (l *Listing) add(dir disk.Dir, name string, stat func() (fs.FileInfo, error), strictly bool) error {
	unless := func(err error) error {
		switch missing := errors.Is(err, fs.ErrNotExist); {
		case missing && name != ".": // meanwhile
			return nil
		case missing || strictly:
			return err
		}
		l.Bad[Name(name)] = err
		return nil
	}
	if len(name) > mostPath {
		return unless(fmt.Errorf("%s: %w: move it up", filepath.Join(dir.Path(), path.Dir(name)), ErrLong))
	}
	info, err := stat()
	if err != nil {
		return unless(err)
	}
	single := disk.Linked(info) == disk.FileID{}
	if e := Find(l.earlier, Name(name)); e != nil && e.Type == TypeFile && e.file == (disk.FileID{}) && single && e.Still(info) && e.Touch == TouchOf(info) {
		l.Entries = append(l.Entries, e)
		return nil
	}
	e, err := EntryOf(dir, name, info)
	switch special := errors.Is(err, ErrSpecial); {
	case special && strictly:
		l.Special = append(l.Special, fmt.Sprintf("%s is a %s", filepath.Join(dir.Path(), name), e.Type))
		return nil
	case err != nil && !special:
		return unless(err)
	}
	e.Touch, e.file, e.Volume = TouchOf(info), disk.Linked(info), disk.Identity(info).Volume()
	l.Entries = append(l.Entries, e)
	if e.Type != TypeDir {
		return nil
	}
	e.file = disk.Identity(info)
	if name == "." {
		l.root = e.file
	}
	if !e.file.SharesFileSystem(l.root) {
		l.Mounts = append(l.Mounts, e.Path)
		if l.Rules.OneFileSystem {
			return nil
		}
	}
	below, err := dir.ReadDir(name)
	if strictly && name != "." && errors.Is(err, fs.ErrPermission) {
		l.Entries, l.Bad[Name(name)] = l.Entries[:len(l.Entries)-1], err
		l.Special = append(l.Special, fmt.Sprintf("%s cannot be listed: %s", filepath.Join(dir.Path(), name), disk.Reason(err)))
		return nil
	}
	if err != nil {
		return unless(err)
	}
	for _, d := range below {
		child := path.Join(name, d.Name())
		switch {
		case name == "." && d.Name() == MetaName && d.IsDir():
			continue
		case name == "." && d.Name() == MetaName:
			return fmt.Errorf("%s: it is not a directory, and the name is Volley's own: move it away", filepath.Join(dir.Path(), MetaName))
		case l.Rules.Exclude.Match(child, d.IsDir()):
			continue
		}
		if err := l.add(dir, child, d.Info, strictly); err != nil {
			return err
		}
	}
	return nil
}

// Find returns the entry of a path, or nil.
func (l *Listing) Find(p Name) *Entry { return Find(l.Entries, p) }

// Find returns the entry of a path, or nil, of a list in the order of paths.
func Find(list []*Entry, p Name) *Entry {
	if i, found := index(list, p); found {
		return list[i]
	}
	return nil
}

func index(list []*Entry, p Name) (i int, found bool) {
	return slices.BinarySearchFunc(list, p, func(e *Entry, p Name) int { return cmp.Compare(e.Path, p) })
}

// Pairs returns the entries of two lists in the order of their paths: both of a path, or nil where one has none.
func Pairs(first, second []*Entry) iter.Seq2[*Entry, *Entry] {
	return func(yield func(a, b *Entry) bool) {
		for i, j := 0, 0; i < len(first) || j < len(second); {
			var a, b *Entry
			if i < len(first) && (j == len(second) || first[i].Path <= second[j].Path) {
				a = first[i]
				i++
			}
			if j < len(second) && (a == nil || second[j].Path == a.Path) {
				b = second[j]
				j++
			}
			if !yield(a, b) {
				return
			}
		}
	}
}

// Directory returns the path of a directory that has the identity; "": there is none.
func (l *Listing) Directory(id disk.FileID) Name {
	for _, e := range l.Entries {
		if e.Type == TypeDir && e.file == id && id != (disk.FileID{}) {
			return e.Path
		}
	}
	return ""
}

// Hides reports whether nobody can tell what has a path: it, or a directory that it lies in, may not be read, or such a
// directory cannot be.
func (l *Listing) Hides(p Name) bool {
	err := l.Unreadable(p)
	return err != nil && (errors.Is(err, fs.ErrPermission) || l.Bad[p] == nil)
}

// Unreadable returns why an entry, or a directory that it lies in, cannot be read.
func (l *Listing) Unreadable(p Name) error {
	if len(l.Bad) == 0 {
		return nil
	}
	for {
		if err := l.Bad[p]; err != nil {
			return err
		}
		i := strings.LastIndexByte(string(p), '/')
		if i < 0 {
			return l.Bad["."]
		}
		p = p[:i]
	}
}

func EntryOf(dir disk.Dir, name string, info fs.FileInfo) (*Entry, error) {
	modified := info.ModTime()
	e := &Entry{Path: Name(name), Mode: UnixMode(info.Mode()), Seconds: modified.Unix(), Nanoseconds: int64(modified.Nanosecond())}
	if uid, gid, ok := disk.Owner(info); ok {
		e.Owner = &Owner{uid, gid}
	}
	if info.Mode().IsRegular() || info.IsDir() || info.Mode()&fs.ModeSymlink != 0 {
		list, err := dir.Attributes(name)
		if err != nil {
			return e, err
		}
		for attribute, value := range list {
			if strings.HasPrefix(attribute, "system.") && !strings.HasPrefix(attribute, "system.posix_acl_") {
				continue // made up by the file system
			}
			if e.Attributes == nil {
				e.Attributes = Attributes{}
			}
			e.Attributes[Name(attribute)] = []byte(value)
		}
	}
	switch {
	case info.Mode().IsRegular():
		e.Type, e.Size, e.Sparse, e.Inode = TypeFile, info.Size(), disk.Sparse(info), disk.Inode(info)
	case info.IsDir():
		e.Type = TypeDir
	case info.Mode()&fs.ModeSymlink != 0:
		e.Type = TypeSymlink
		target, err := dir.Readlink(name)
		if err != nil {
			return e, err
		}
		e.Target = Name(target)
	default:
		e.Type = disk.Kind(info.Mode())
		return e, fmt.Errorf("%s is a %s: %w; move it away", filepath.Join(dir.Path(), name), e.Type, ErrSpecial)
	}
	return e, nil
}

var ErrSpecial = errors.New("only files, directories and symbolic links can be protected")

// capability is the attribute that lets a program do what else root alone may.
const capability = "security.capability"

// cause returns the innermost error of err, which names no file.
func cause(err error) error {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err
}

// SetMeta gives what e is its owner, mode, attributes and time, and returns what of these the process may not set. Without
// its owner a file gets no bits and attributes that let everybody act as the owner.
func SetMeta(dir disk.Dir, name string, e *Entry) (unset []string, err error) {
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
	present, err := dir.Attributes(name)
	if err != nil {
		return unset, err
	}
	for _, attribute := range []string{"system.posix_acl_access", "system.posix_acl_default"} { // of the directory in which it was made
		if _, ok := present[attribute]; ok && e.Attributes[Name(attribute)] == nil {
			if err := dir.RemoveAttribute(name, attribute); err != nil {
				return unset, err
			}
		}
	}
	for _, attribute := range slices.Sorted(maps.Keys(e.Attributes)) {
		value := string(e.Attributes[attribute])
		if current, ok := present[string(attribute)]; ok && current == value {
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
	if e.Type == TypeSymlink {
		return unset, dir.SetTime(name, e.Time())
	}
	if special := mode & 0o6000; special != 0 && !owned {
		mode &^= special
		unset = append(unset, "setuid and setgid not restored, as the owner is not")
	}
	for _, set := range []struct {
		label string
		err   error
	}{{"mode", dir.Chmod(name, FileMode(mode))}, {"time", dir.SetTime(name, e.Time())}} {
		if set.err != nil && !refused(set.err) {
			return unset, set.err
		}
		if set.err != nil {
			unset = append(unset, fmt.Sprintf("%s not restored: %v", set.label, cause(set.err)))
		}
	}
	return unset, nil
}

// refused reports whether this process may not set something, or the file system has no such thing.
func refused(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EINVAL)
}

// Validate checks an entry of a record that comes after one with another path.
func (e *Entry) Validate(last Name) error {
	p := string(e.Path)
	switch {
	case p != path.Clean(p) || !filepath.IsLocal(filepath.FromSlash(p)) || strings.Contains(p, "\x00") || p == MetaName || strings.HasPrefix(p, MetaName+"/"):
		return errors.New("want a path below the node's directory")
	case e.Path <= last:
		return errors.New("is there twice, or not in the order of paths")
	case e.Type != TypeFile && e.Type != TypeDir && e.Type != TypeSymlink && e.Type != TypeLink:
		return fmt.Errorf("type %q: want %s, %s, %s or %s", e.Type, TypeFile, TypeDir, TypeSymlink, TypeLink)
	case e.Mode > 0o7777:
		return fmt.Errorf("mode %#o: want permission bits", e.Mode)
	case e.Nanoseconds < 0 || e.Nanoseconds >= int64(time.Second):
		return fmt.Errorf("mtime_ns %d: want 0 to 999999999", e.Nanoseconds)
	case e.Type == TypeSymlink && e.Target == "":
		return errors.New("a symbolic link without target")
	case e.Owner != nil && (e.Owner.UID < 0 || e.Owner.GID < 0 || e.Owner.UID > MostID || e.Owner.GID > MostID):
		return fmt.Errorf("owner %d:%d: want 0 to %d", e.Owner.UID, e.Owner.GID, int64(MostID))
	case e.Type == TypeFile && (min(e.Size, e.Offset, e.Room) < 0 || max(e.Size, e.Offset, e.Room) > mostBytes):
		return errors.New("size, offset or room out of range")
	}
	return nil
}

const (
	mostBytes = 1 << 56   // of files and places, so that sums do not overflow
	MostID    = 1<<32 - 2 // of users and groups: the next one means none
)
