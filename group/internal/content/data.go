// Package content knows what a node holds: it reads the node's files as one stretch of data, takes digests of the
// parts of files, finds under which names bytes are, and says how all that compares with a record.
package content

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
)

// Data is a node's data: its files at their places, with zeros between and after them. One goroutine reads it at a time.
type Data struct {
	dir disk.Dir // nil: there is nothing
	tree.Extents
	lenient  bool                // unreadable data is read as zeros
	Failing  map[tree.Name]error // if lenient: existing files that the disk fails to read
	Vanished map[tree.Name]bool  // unless lenient: files read as zeros, as they vanished after they were listed
	handles  Handles[int]
	Memory   [][]byte // in place of the files of the extents; nil: they are files
}

func NewData(dir disk.Dir, list []*tree.Entry, lenient bool) *Data {
	return &Data{dir: dir, Extents: tree.ExtentsOf(list), lenient: lenient}
}

// Handles are files that are open, the last ones used.
type Handles[K comparable] struct {
	Open  map[K]disk.File
	Order []K // the oldest first
}

// MostOpen is how many files of a node are open at a time.
const MostOpen = 32

// Get returns a file that is open, or opens it.
func (h *Handles[K]) Get(key K, open func() (disk.File, error)) (disk.File, error) {
	if f := h.Open[key]; f != nil {
		return f, nil
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	if h.Open == nil {
		h.Open = map[K]disk.File{}
	}
	if len(h.Order) == MostOpen {
		h.Open[h.Order[0]].Close()
		delete(h.Open, h.Order[0])
		h.Order = h.Order[1:]
	}
	h.Open[key] = f
	h.Order = append(h.Order, key)
	return f, nil
}

// Drop closes a file.
func (h *Handles[K]) Drop(key K) {
	if f := h.Open[key]; f != nil {
		f.Close()
		delete(h.Open, key)
		h.Order = slices.DeleteFunc(h.Order, func(k K) bool { return k == key })
	}
}

func (h *Handles[K]) Close() {
	for _, key := range h.Order {
		h.Open[key].Close()
	}
	h.Open, h.Order = nil, nil
}

func (d *Data) file(i int) (disk.File, error) {
	return d.handles.Get(i, func() (disk.File, error) {
		if d.dir == nil {
			return nil, fs.ErrNotExist
		}
		e := d.Extents[i]
		f, err := d.dir.OpenFile(string(e.ReadAs()), os.O_RDONLY, 0)
		if e.Touch == (tree.Touch{}) { // it comes from no listing
			return f, err
		}
		var info fs.FileInfo
		if err == nil {
			info, err = f.Stat()
		} else if named, lstatErr := d.dir.Lstat(string(e.ReadAs())); lstatErr == nil {
			info = named
		} else if errors.Is(lstatErr, fs.ErrNotExist) || errors.Is(lstatErr, syscall.ENOTDIR) {
			err = errGone
		}
		if info != nil && !tree.TouchOf(info).SameFile(e.Touch) { // the record would get the owner and mode of another file
			err = errGone
		}
		if err != nil {
			if f != nil {
				f.Close()
			}
			return nil, err
		}
		return f, nil
	})
}

// errGone says that a file has gone since it was listed, or another has its name.
var errGone = errors.New("it has gone meanwhile")

// length returns how long a file is, which may be shorter than its entry says, or, if nobody can tell, the entry's length.
func (d *Data) length(i int) int64 {
	if d.Memory != nil {
		return d.Extents[i].Size
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
	return d.Extents[i].Size
}

// ReadAt reads the data at any offset; there is no end to it.
func (d *Data) ReadAt(p []byte, offset int64) (int, error) {
	filled := int64(0) // of p; what lies between files is zeros
	err := d.Overlapping(offset, int64(len(p)), func(i int, e *tree.Entry, start, limit int64) error {
		clear(p[filled : start-offset])
		filled = limit - offset
		part := p[start-offset : limit-offset]
		if d.Memory != nil {
			copy(part, d.Memory[i][start-e.Offset:])
			return nil
		}
		f, err := d.file(i)
		n := 0
		if err == nil {
			n, err = f.ReadAt(part, start-e.Offset)
		}
		switch {
		case n == len(part):
			return nil
		case d.lenient:
			clear(part[n:])
			if disk.Failed(err) { // else it was another file, or none, by then
				if d.Failing == nil {
					d.Failing = map[tree.Name]error{}
				}
				d.Failing[e.Path] = err
			}
			return nil
		case errors.Is(err, errGone):
			if d.Vanished == nil {
				d.Vanished = map[tree.Name]bool{}
			}
			d.Vanished[e.Path] = true
			clear(part)
			return nil
		case errors.Is(err, io.EOF): // protect finds the shorter file later
			clear(part[n:])
			return nil
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	clear(p[filled:])
	return len(p), nil
}

// Hole reports whether a part of a file lies in a hole of it, and is zeros.
func (d *Data) Hole(g store.FilePart) bool {
	e := d.Extents[g.File]
	if !e.Sparse {
		return false
	}
	f, err := d.file(g.File)
	return err == nil && f.Hole(g.Offset-e.Offset, g.N)
}

func (d *Data) Close() { d.handles.Close() }

func (d *Data) Hold(buffers [][]byte) {
	d.Memory = slices.DeleteFunc(slices.Clone(buffers), func(b []byte) bool { return len(b) == 0 })
}
