package disktest

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"volley/internal/disk"
)

var (
	errNegative = errors.New("negative offset")
	errAppend   = errors.New("invalid use of WriteAt on a file opened to append")
)

// An openFile is a file, or a directory to read, that a process has open.
type openFile struct {
	p      *Process
	x      *inode
	path   string
	name   string // the last part of the name that it was opened by
	flag   int
	offset int64
	closed bool
}

const access = os.O_RDONLY | os.O_WRONLY | os.O_RDWR

func (d *dir) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
	fullPath := d.fullPath(name)
	m := d.p.m
	call := Call{Op: "open", Path: fullPath, alters: flag&(os.O_WRONLY|os.O_RDWR) != 0}
	m.mu.Lock()
	if _, _, x, err := d.find(name); err == nil {
		call.Writes = x != nil && flag&os.O_TRUNC != 0
		if x == nil && flag&os.O_CREATE != 0 {
			call.Op, call.Writes = "create", true
		}
	}
	m.mu.Unlock()
	f := &openFile{p: d.p, path: fullPath, name: path.Base(filepath.ToSlash(name)), flag: flag}
	err := d.p.perform(call, func(int) error {
		parent, last, x, err := d.find(name)
		switch {
		case err != nil:
			return err
		case x == nil && (flag&os.O_CREATE == 0 || parent.links == 0):
			return syscall.ENOENT
		case x != nil && flag&os.O_EXCL != 0:
			return syscall.EEXIST
		case x != nil && !x.current.mode.IsRegular():
			return disk.NotRegular(x.current.mode)
		case x == nil || flag&(os.O_WRONLY|os.O_RDWR|os.O_TRUNC) != 0:
			if err := m.writable(parent); err != nil {
				return err
			}
		}
		switch {
		case x == nil:
			x = m.node(parent.volume, perm&special&^umask)
			m.put(parent, last, x)
		case flag&os.O_TRUNC != 0:
			m.truncate(x, 0)
		}
		f.x = x
		f.x.opened++
		d.p.files[f] = true
		return nil
	})
	if err != nil {
		return nil, pathError("open", fullPath, err)
	}
	return f, nil
}

func (f *openFile) Name() string { return f.path }

// perform does an operation on an open file.
func (f *openFile) perform(op, name string, bytes int, writes bool, work func(limit int) error) error {
	err := f.p.perform(Call{Op: op, Path: f.path, Bytes: bytes, Writes: writes}, func(limit int) error {
		if f.closed {
			return fs.ErrClosed
		}
		return work(limit)
	})
	if err == io.EOF {
		return err
	}
	return pathError(name, f.path, err)
}

// read reads at a place.
func (f *openFile) read(b []byte, offset int64, limit int) (int, error) {
	switch {
	case len(b) == 0:
		return 0, nil
	case f.flag&access == os.O_WRONLY:
		return 0, syscall.EBADF
	case f.x.current.mode.IsDir():
		return 0, syscall.EISDIR
	case offset >= int64(len(f.x.current.data)):
		return 0, io.EOF
	}
	if limit >= 0 {
		b = b[:min(limit, len(b))]
	}
	return copy(b, f.x.current.data[offset:]), nil
}

func (f *openFile) Read(b []byte) (n int, err error) {
	err = f.perform("read", "read", len(b), false, func(limit int) error {
		n, err = f.read(b, f.offset, limit)
		f.offset += int64(n)
		return err
	})
	return n, err
}

func (f *openFile) ReadAt(b []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, pathError("readat", f.path, errNegative)
	}
	err = f.perform("read", "read", len(b), false, func(limit int) error {
		n, err = f.read(b, offset, limit)
		if err == nil && n < len(b) && limit < 0 {
			err = io.EOF
		}
		return err
	})
	return n, err
}

// write writes at a place.
func (f *openFile) write(b []byte, offset int64, limit int) (int, error) {
	if f.flag&access == os.O_RDONLY {
		return 0, syscall.EBADF
	}
	if err := f.p.m.writable(f.x); err != nil {
		return 0, err
	}
	if limit >= 0 {
		b = b[:min(limit, len(b))]
	}
	n := int(f.p.m.fits(f.x, offset, int64(len(b))))
	f.p.m.write(f.x, offset, b[:n])
	if n < len(b) {
		f.p.m.touched(f.x)
		return n, syscall.ENOSPC
	}
	return n, nil
}

func (f *openFile) Write(b []byte) (n int, err error) {
	err = f.perform("write", "write", len(b), true, func(limit int) error {
		if f.flag&os.O_APPEND != 0 && f.flag&access != os.O_RDONLY && len(b) > 0 {
			f.offset = int64(len(f.x.current.data))
		}
		n, err = f.write(b, f.offset, limit)
		f.offset += int64(n)
		return err
	})
	return n, err
}

func (f *openFile) WriteAt(b []byte, offset int64) (n int, err error) {
	switch {
	case f.flag&os.O_APPEND != 0:
		return 0, errAppend
	case offset < 0:
		return 0, pathError("writeat", f.path, errNegative)
	}
	err = f.perform("write", "write", len(b), true, func(limit int) error {
		n, err = f.write(b, offset, limit)
		return err
	})
	return n, err
}

// Hole goes by the blocks that take room. Where the call fails, there is none.
func (f *openFile) Hole(offset, n int64) (hole bool) {
	f.perform("seek", "seek", 0, false, func(int) error {
		blocks := f.x.current.blocks
		last := min(offset+n+block-1, int64(len(blocks))*block)
		hole = offset >= last || !strings.Contains(blocks[offset/block:last/block], "\x01")
		return nil
	})
	return hole
}

func (f *openFile) Sync() error {
	return f.perform("sync", "sync", 0, true, func(int) error {
		err := f.p.m.synced(f.x)
		if err == nil {
			f.x.sync()
			f.x.mapped = false
		}
		return err
	})
}

func (f *openFile) Chmod(mode fs.FileMode) error {
	return f.perform("chmod", "chmod", 0, true, func(int) error {
		return f.p.m.change(f.x, func() { f.p.m.chmod(f.x, mode) })
	})
}

func (f *openFile) Truncate(size int64) error {
	return f.perform("truncate", "truncate", 0, true, func(int) error {
		if size < 0 || f.flag&access == os.O_RDONLY {
			return syscall.EINVAL
		}
		return f.p.m.change(f.x, func() { f.p.m.truncate(f.x, size) })
	})
}

func (f *openFile) Stat() (fs.FileInfo, error) {
	var i *info
	err := f.perform("stat", "stat", 0, false, func(int) error {
		i = infoOf(f.name, f.x)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return i, nil
}

// Close is a call of the process where it may write what was put off.
func (f *openFile) Close() error {
	err := error(nil)
	if f.flag&access != os.O_RDONLY {
		err = f.perform("close", "close", 0, false, func(int) error { return nil })
	}
	f.p.m.mu.Lock()
	defer f.p.m.mu.Unlock()
	switch {
	case f.p.dead:
		return pathError("close", f.path, ErrKilled)
	case f.closed:
		return pathError("close", f.path, fs.ErrClosed)
	}
	f.closed = true
	f.x.opened--
	delete(f.p.files, f)
	return err
}

// An info is what stat tells.
type info struct {
	name         string
	device       int
	number       int
	mode         fs.FileMode
	mtime, ctime time.Time
	size         int64
	blocks       int64 // of 512 bytes
	links        int
	uid, gid     int
}

// dirSize is the size that directories have.
const dirSize = 4096

func infoOf(name string, x *inode) *info {
	i := &info{name, x.volume + 1, x.serial, x.current.mode, x.current.mtime, x.current.ctime, int64(len(x.current.data)), x.room() * (block / 512), x.links, x.current.uid, x.current.gid}
	switch {
	case x.current.mode.IsDir():
		i.size, i.blocks = dirSize, dirSize/512
	case x.current.mode&fs.ModeSymlink != 0:
		i.size = int64(len(x.target))
	}
	return i
}

func (i *info) Name() string       { return i.name }
func (i *info) Size() int64        { return i.size }
func (i *info) Mode() fs.FileMode  { return i.mode }
func (i *info) ModTime() time.Time { return i.mtime }
func (i *info) IsDir() bool        { return i.mode.IsDir() }

// Sys returns a *syscall.Stat_t on Linux, and nil elsewhere.
func (i *info) Sys() any { return i.sys() }
