package group

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"volley/group/internal/tree"
	"volley/internal/disk"
)

// data is a node's data: its files at their places, with zeros between and after them. One goroutine reads it at a time.
type data struct {
	dir disk.Dir // nil: there is nothing
	tree.Extents
	lenient bool                // what cannot be read is zeros
	failing map[tree.Name]error // of these, files that are there, which the disk does not give
	handles handles[int]
	memory  [][]byte // in place of the files of the extents; nil: they are files
}

func newData(dir disk.Dir, list []*tree.Entry, lenient bool) *data {
	return &data{dir: dir, Extents: tree.ExtentsOf(list), lenient: lenient}
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

// drop closes a file.
func (h *handles[K]) drop(key K) {
	if f := h.open[key]; f != nil {
		f.Close()
		delete(h.open, key)
		h.order = slices.DeleteFunc(h.order, func(k K) bool { return k == key })
	}
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
		e := d.Extents[i]
		f, err := d.dir.OpenFile(string(e.ReadAs()), os.O_RDONLY, 0)
		if e.Touch == (tree.Touch{}) { // it comes from no listing
			return f, err
		}
		var info fs.FileInfo
		if err == nil {
			info, err = f.Stat()
		} else if is, gone := d.dir.Lstat(string(e.ReadAs())); gone == nil {
			info = is
		} else if errors.Is(gone, fs.ErrNotExist) || errors.Is(gone, syscall.ENOTDIR) {
			err = errGone
		}
		if info != nil && !tree.TouchOf(info).SameFile(e.Touch) { // it would get another file's owner and mode
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
func (d *data) length(i int) int64 {
	if d.memory != nil {
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
func (d *data) ReadAt(p []byte, offset int64) (int, error) {
	done := int64(0) // of p; what lies between files is zeros
	err := d.Overlapping(offset, int64(len(p)), func(i int, e *tree.Entry, from, to int64) error {
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
					d.failing = map[tree.Name]error{}
				}
				d.failing[e.Path] = err
			}
			return nil
		case errors.Is(err, io.EOF), errors.Is(err, errGone): // which who protects it finds
			clear(part[n:])
			return nil
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

func (d *data) hold(buffers [][]byte) {
	d.memory = slices.DeleteFunc(slices.Clone(buffers), func(b []byte) bool { return len(b) == 0 })
}
