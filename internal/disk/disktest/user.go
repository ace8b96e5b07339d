package disktest

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The helpers below act as the user's own programs do: no hook sees them, and what they do
// lasts at once, with all that it needs to be there. They follow symbolic links as programs
// do. Those that return no error panic where they cannot do what they are told.

// user does a change of what has a path, and makes it last.
func (m *Machine) user(op, name string, follow bool, change func(d *inode, last string, x *inode) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, last, x, err := m.walk(name, follow)
	if err == nil {
		err = change(d, last, x)
	}
	if err != nil {
		panic(pathError("user's "+op, clean(name), err))
	}
	m.lasts(d, last)
}

// lasts makes a name last, what it leads to, and all above it.
func (m *Machine) lasts(d *inode, name string) {
	if x := m.child(d, name); x != nil {
		x.sync()
	}
	for {
		key := m.key(d, name)
		for _, g := range m.groups() {
			if slices.Contains(g.ends, end{d.number, key}) {
				m.settled(g)
			}
		}
		d.lastNames = d.lastNames.withEntry(key, d.names[key])
		d.sync()
		if d.number == rootNumber {
			return
		}
		d, name = m.nodes[d.parent], d.name
	}
}

// existing is for changes of what must be there.
func existing(change func(x *inode)) func(*inode, string, *inode) error {
	return func(_ *inode, _ string, x *inode) error {
		if x == nil {
			return syscall.ENOENT
		}
		change(x)
		return nil
	}
}

// file returns the regular file to write, and makes it if need be.
func (m *Machine) file(d *inode, last string, x *inode, mode fs.FileMode) (*inode, error) {
	switch {
	case x == nil:
		x = m.node(d.volume, mode&special)
		m.put(d, last, x)
	case !x.current.mode.IsRegular():
		return nil, syscall.EISDIR
	}
	return x, nil
}

// WriteFile writes a file; of one that is there it keeps the inode, and sets the mode.
func (m *Machine) WriteFile(name string, data []byte, mode fs.FileMode) {
	m.user("write", name, true, func(d *inode, last string, x *inode) error {
		x, err := m.file(d, last, x, mode)
		if err != nil {
			return err
		}
		m.truncate(x, 0)
		m.write(x, 0, data)
		x.current.mode = mode & special
		return nil
	})
}

// AppendFile writes at the end of a file, which it makes if need be.
func (m *Machine) AppendFile(name string, data []byte) {
	m.user("append", name, true, func(d *inode, last string, x *inode) error {
		x, err := m.file(d, last, x, 0o644)
		if err == nil {
			m.write(x, int64(len(x.current.data)), data)
		}
		return err
	})
}

// Overwrite writes into a file. If it rots, the file keeps all its times: no program has written to it.
func (m *Machine) Overwrite(name string, offset int64, data []byte, rots bool) {
	m.overwrite(name, offset, data, func(*inode) bool { return rots })
}

// Cut has a file lose what is behind its first bytes, as a check of a file system may: it keeps all its times.
func (m *Machine) Cut(name string, size int64) {
	m.user("cut", name, true, existing(func(x *inode) {
		mtime, ctime := x.current.mtime, x.current.ctime
		m.truncate(x, size)
		x.current.mtime, x.current.ctime = mtime, ctime
	}))
}

// WriteMapped writes to a mapping of a file. The first write since the file was written back moves its times, and none
// does where nothing is written back.
func (m *Machine) WriteMapped(name string, offset int64, data []byte) {
	m.overwrite(name, offset, data, func(x *inode) bool {
		silent := x.mapped || m.volumes[x.volume].InMemory
		x.mapped = true
		return silent
	})
}

func (m *Machine) overwrite(name string, offset int64, data []byte, keepsTimes func(x *inode) bool) {
	m.user("overwrite", name, true, func(_ *inode, _ string, x *inode) error {
		switch {
		case x == nil:
			return syscall.ENOENT
		case !x.current.mode.IsRegular():
			return syscall.EISDIR
		}
		mtime, ctime := x.current.mtime, x.current.ctime
		m.write(x, offset, data)
		if keepsTimes(x) {
			x.current.mtime, x.current.ctime = mtime, ctime
		}
		return nil
	})
}

// MkdirAll makes a directory and those above it that are missing.
func (m *Machine) MkdirAll(name string, mode fs.FileMode) {
	prefix := "/"
	for part := range strings.SplitSeq(clean(name)[1:], "/") {
		prefix = path.Join(prefix, part)
		m.user("mkdir", prefix, true, func(d *inode, last string, x *inode) error {
			switch {
			case x == nil:
				m.put(d, last, m.node(d.volume, fs.ModeDir|mode&special))
			case !x.current.mode.IsDir():
				return syscall.ENOTDIR
			}
			return nil
		})
	}
}

// Remove removes a file or an empty directory.
func (m *Machine) Remove(name string) {
	m.user("remove", name, false, func(d *inode, last string, _ *inode) error { return m.remove(d, last) })
}

// Lose removes a file as a disk that loses it: its directory keeps its time.
func (m *Machine) Lose(name string) {
	m.user("remove", name, false, func(d *inode, last string, _ *inode) error {
		mtime := d.current.mtime
		err := m.remove(d, last)
		m.setTime(d, mtime)
		return err
	})
}

// RemoveAll removes what is there, with everything in it.
func (m *Machine) RemoveAll(name string) {
	if !m.Exists(name) {
		return
	}
	var removeTree func(d *inode, last string, x *inode) error
	removeTree = func(d *inode, last string, x *inode) error {
		if m.covered(x) {
			return syscall.EBUSY
		}
		for _, key := range x.names.sorted() {
			if err := removeTree(x, x.names[key].name, m.nodes[x.names[key].number]); err != nil {
				return err
			}
		}
		for _, g := range m.groups() { // what was moved out is safe
			if slices.ContainsFunc(g.ends, func(e end) bool { return e.dir == x.number }) {
				m.settled(g)
			}
		}
		x.lastNames = nil
		m.drop(d, last)
		return nil
	}
	m.user("remove", name, false, func(d *inode, last string, x *inode) error {
		if x == nil || x.number == rootNumber {
			return syscall.EINVAL
		}
		return removeTree(d, last, m.entry(d, last))
	})
}

// Rename moves a file or directory, in the place of what has the new name.
func (m *Machine) Rename(old, name string) {
	m.user("rename", old, false, func(source *inode, first string, _ *inode) error {
		target, last, _, err := m.walk(name, false)
		if err == nil {
			err = m.rename(source, first, target, last)
		}
		if err == nil {
			m.lasts(target, last)
		}
		return err
	})
}

// Link gives a file one more name.
func (m *Machine) Link(old, name string) {
	m.user("link", name, false, func(d *inode, last string, present *inode) error {
		_, _, x, err := m.walk(old, false)
		if err != nil {
			return err
		}
		return m.link(x, d, last, present)
	})
}

// Symlink makes a symbolic link.
func (m *Machine) Symlink(target, name string) {
	m.user("symlink", name, false, func(d *inode, last string, x *inode) error {
		if x != nil {
			return syscall.EEXIST
		}
		m.symlink(target, d, last)
		return nil
	})
}

// Chmod sets the mode.
func (m *Machine) Chmod(name string, mode fs.FileMode) {
	m.user("chmod", name, true, existing(func(x *inode) { m.chmod(x, mode) }))
}

// Chown gives a file, directory or symbolic link to a user and a group, and one attribute.
func (m *Machine) Chown(name string, uid, gid int, attribute, value string) {
	m.user("chown", name, false, existing(func(x *inode) {
		x.current.uid, x.current.gid = uid, gid
		if attribute != "" {
			x.current.attributes = map[string]string{attribute: value}
		}
		m.marked(x)
	}))
}

// SetTime sets the time of the last change, of a symbolic link that of the link itself.
func (m *Machine) SetTime(name string, modified time.Time) {
	m.user("settime", name, false, existing(func(x *inode) { m.setTime(x, modified) }))
}

// CopyTree copies a file, or a directory with everything in it, as cp -a does: the copy has
// the modes, owners, attributes, times and hard links, and inodes and ctimes of its own.
func (m *Machine) CopyTree(source, target string) {
	copies := map[int]*inode{}
	var add func(x *inode, d *inode, last string)
	add = func(x *inode, d *inode, last string) {
		y := copies[x.number]
		if y != nil {
			m.put(d, last, y)
			m.marked(y)
			y.sync()
			return
		}
		y = m.node(d.volume, x.current.mode)
		copies[x.number] = y
		x.frozen = len(x.current.data)
		y.current.data, y.frozen, y.target = slices.Clip(x.current.data), len(x.current.data), x.target
		y.current.blocks = x.current.blocks
		y.current.uid, y.current.gid, y.current.attributes = x.current.uid, x.current.gid, x.current.attributes
		m.put(d, last, y)
		for _, key := range x.names.sorted() {
			e := x.names[key]
			add(m.mountRoot(m.nodes[e.number]), y, e.name)
		}
		m.setTime(y, x.current.mtime)
		y.sync()
		y.lastNames = y.names
	}
	m.user("copy", target, false, func(d *inode, last string, present *inode) error {
		_, _, x, err := m.walk(source, false)
		switch {
		case err != nil:
			return err
		case x == nil:
			return syscall.ENOENT
		case present != nil:
			return syscall.EEXIST
		case m.isInside(d, x):
			return syscall.EINVAL
		}
		add(x, d, last)
		return nil
	})
}

// look finds what has a path.
func (m *Machine) look(op, name string, follow bool) (*inode, error) {
	_, _, x, err := m.walk(name, follow)
	if err == nil && x == nil {
		err = syscall.ENOENT
	}
	return x, pathError(op, clean(name), err)
}

// ReadFile returns the content of a file.
func (m *Machine) ReadFile(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x, err := m.look("open", name, true)
	switch {
	case err != nil:
		return nil, err
	case x.current.mode.IsDir():
		return nil, pathError("read", clean(name), syscall.EISDIR)
	}
	return slices.Clone(x.current.data), nil
}

// Lstat tells about a file.
func (m *Machine) Lstat(name string) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x, err := m.look("lstat", name, false)
	if err != nil {
		return nil, err
	}
	return infoOf(path.Base(clean(name)), x), nil
}

// Exists says whether there is something, be it a symbolic link that leads nowhere.
func (m *Machine) Exists(name string) bool {
	_, err := m.Lstat(name)
	return err == nil
}

// Tree lists what is there, a line each: the path below name, mode, time, and size with
// hash or the target. It leaves out all that has a name in skip; with that it leaves out
// the time of name itself, as that changes with what is left out.
func (m *Machine) Tree(name string, skip ...string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	top, err := m.look("lstat", name, false)
	if err != nil {
		return err.Error() + "\n"
	}
	var text strings.Builder
	first := map[*inode]string{}
	var list func(x *inode, prefix string)
	list = func(x *inode, prefix string) {
		fmt.Fprintf(&text, "%s %v", prefix, x.current.mode)
		if x != top || len(skip) == 0 {
			fmt.Fprintf(&text, " %d.%09d", x.current.mtime.Unix(), x.current.mtime.Nanosecond())
		}
		switch {
		case x.current.mode.IsRegular():
			fmt.Fprintf(&text, " %d %x", len(x.current.data), hash(x.current.data))
		case x.current.mode&fs.ModeSymlink != 0:
			fmt.Fprintf(&text, " -> %s", x.target)
		}
		if x.current.uid|x.current.gid != 0 {
			fmt.Fprintf(&text, " of %d:%d", x.current.uid, x.current.gid)
		}
		if len(x.current.attributes) > 0 {
			fmt.Fprintf(&text, " %q", x.current.attributes)
		}
		if first[x] != "" {
			fmt.Fprintf(&text, " = %s", first[x])
		}
		first[x] = prefix
		text.WriteByte('\n')
		for _, key := range x.names.sorted() {
			if e := x.names[key]; !slices.Contains(skip, e.name) {
				list(m.mountRoot(m.nodes[e.number]), path.Join(prefix, e.name))
			}
		}
	}
	list(top, ".")
	return text.String()
}

func hash(data []byte) []byte {
	sum := sha256.Sum256(data)
	return sum[:8]
}
