package disktest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"volley/files"
	"volley/internal/disk"
)

var (
	// ErrKilled is what each call of a process that was killed returns.
	ErrKilled = errors.New("the process was killed")

	errEscapes = errors.New("leads out of the directory")
)

// umask is taken off the modes of what a process makes.
const umask = fs.FileMode(0o022)

// A Process is one run of a program. It is a [disk.Disk].
type Process struct {
	// Before is called before each operation, one at a time. An error makes the operation
	// fail with it, without effect; see [Partial] for those that have some. It may kill the
	// process, cut the power and act as the user, and must not use the process else. It is
	// set before the process is used.
	Before func(Call) error

	m    *Machine
	cuts int
	dead bool

	turn  sync.Mutex
	calls int
	files map[*openFile]bool // that are open
}

// A Call is an operation of a process.
type Call struct {
	Op     string // open, create, read, write, copy, sync, truncate, stat, close, mkdir, lstat, readdir, readlink, symlink, link, rename, exchange, remove, chmod, chown, listxattr, setxattr, removexattr, settime, syncdir, syncall, lock, unlock, opendir
	Path   string // whole
	New    string // of link, rename and exchange; of copy what it is of
	N      int    // counts the calls of the process from 0
	Bytes  int    // of a read, write or copy
	Writes bool   // it changes the file system, or makes it last

	alters bool // opens a file that it may write to later
}

func (c Call) String() string {
	if c.New != "" {
		return fmt.Sprintf("%d: %s %s %s", c.N, c.Op, c.Path, c.New)
	}
	return fmt.Sprintf("%d: %s %s", c.N, c.Op, c.Path)
}

// A Partial makes a read, write or copy do so many bytes before it fails, also if the process was
// killed meanwhile. Any other operation fails without effect.
type Partial struct {
	N   int
	Err error
}

func (p *Partial) Error() string { return fmt.Sprintf("after %d bytes: %v", p.N, p.Err) }
func (p *Partial) Unwrap() error { return p.Err }

// Process starts a process.
func (m *Machine) Process() *Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &Process{m: m, cuts: m.cuts, files: map[*openFile]bool{}}
	m.running = append(m.running, p)
	return p
}

// Calls returns the operations of a run, which it tries on a clone.
func (m *Machine) Calls(run func(*Process)) []Call {
	var calls []Call
	p := m.Clone().Process()
	p.Before = func(c Call) error {
		calls = append(calls, c)
		return nil
	}
	run(p)
	return calls
}

// Machine returns the machine that the process runs on.
func (p *Process) Machine() *Machine { return p.m }

// on has Before be a function for one call.
func (p *Process) on(n int, before func(Call) error) {
	p.Before = func(c Call) error {
		if c.N != n {
			return nil
		}
		return before(c)
	}
}

// At calls f before a call.
func (p *Process) At(n int, f func()) { p.on(n, func(Call) error { f(); return nil }) }

// KillAt has the process killed at a call, which then has no effect.
func (p *Process) KillAt(n int) { p.At(n, p.Kill) }

// FailAt makes a call fail.
func (p *Process) FailAt(n int, err error) { p.on(n, func(Call) error { return err }) }

// Killed reports whether the process was killed: nobody has heard what it has returned since.
func (p *Process) Killed() bool {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	return p.dead
}

// Kill ends the process. Each later call of it fails with [ErrKilled], and its locks are free.
func (p *Process) Kill() {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.dead = true
	p.m.running = slices.DeleteFunc(p.m.running, func(x *Process) bool { return x == p })
	for f := range p.files {
		f.x.opened--
	}
	clear(p.files)
	for _, x := range p.m.nodes {
		if x != nil && len(x.locks) > 0 {
			x.locks = slices.DeleteFunc(x.locks, func(l *lock) bool { return l.of == p })
		}
	}
}

// do asks the hook, and does the work with the machine locked: most is how many bytes it
// may read or write, -1 for all.
func (p *Process) do(c Call, work func(most int) error) error {
	asked := p.ask(c)
	m := p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if part, ok := asked.(*Partial); ok {
		if (c.Op == "read" || c.Op == "write" || c.Op == "copy") && p.cuts == m.cuts && part.N > 0 {
			if err := work(part.N); err != nil {
				return err
			}
		}
		return part.Err
	}
	switch {
	case asked != nil:
		return asked
	case p.dead:
		return ErrKilled
	}
	if err := p.denied(c); err != nil {
		return err
	}
	return work(-1)
}

// ask counts a call and calls the hook.
func (p *Process) ask(c Call) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.m.mu.Lock()
	dead := p.dead
	p.m.mu.Unlock()
	if dead {
		return ErrKilled
	}
	c.N = p.calls
	p.calls++
	if p.Before == nil {
		return nil
	}
	return p.Before(c)
}

// Open opens a directory; it follows symbolic links.
func (p *Process) Open(name string) (disk.Dir, error) {
	whole := clean(name)
	d := &dir{p: p}
	err := p.do(Call{Op: "opendir", Path: whole}, func(int) error {
		_, _, x, err := p.m.walk(whole, true)
		switch {
		case err != nil:
			return err
		case x == nil:
			return syscall.ENOENT
		case !x.now.mode.IsDir():
			return syscall.ENOTDIR
		}
		d.x, d.path = x, p.m.pathOf(x.number)
		return nil
	})
	if err != nil {
		return nil, pathError("open", whole, err)
	}
	return d, nil
}

// A dir is a directory that a process has open.
type dir struct {
	p      *Process
	x      *inode
	path   string
	closed bool
}

func (d *dir) Sub(name string) (disk.Dir, error) {
	sub := &dir{p: d.p, path: d.whole(name)}
	err := d.on("open", "opendir", name, func(x *inode) error {
		sub.x = x
		return isDir(x)
	})
	if err != nil {
		return nil, err
	}
	return sub, nil
}

// whole returns the path of a name.
func (d *dir) whole(name string) string { return path.Join(d.path, filepath.ToSlash(name)) }

// find returns the directory that a name lies in, its last part, and what has the name. Where only the last part is too
// long there is a directory, too.
func (d *dir) find(name string) (in *inode, last string, x *inode, err error) {
	name = filepath.ToSlash(name)
	switch {
	case d.closed:
		return nil, "", nil, fs.ErrClosed
	case name == "":
		return nil, "", nil, syscall.ENOENT
	case !filepath.IsLocal(filepath.FromSlash(name)):
		return nil, "", nil, errEscapes
	}
	name = path.Clean(name)
	if name == "." {
		return nil, ".", d.x, nil
	}
	in = d.x
	for {
		part, rest, more := strings.Cut(name, "/")
		err := d.p.m.named(in, part)
		if err == nil {
			x = d.p.m.child(in, part)
		}
		switch {
		case !more:
			return in, part, x, err
		case err != nil:
			return nil, "", nil, err
		}
		if x == nil {
			return nil, "", nil, syscall.ENOENT
		}
		if !x.now.mode.IsDir() {
			return nil, "", nil, syscall.ENOTDIR
		}
		in, name = x, rest
	}
}

// there returns what has a name, and an error if nothing has.
func (d *dir) there(name string) (*inode, error) {
	_, _, x, err := d.find(name)
	if err == nil && x == nil {
		err = syscall.ENOENT
	}
	return x, err
}

// on does an operation, called so by package os and by hooks, on what has a name.
func (d *dir) on(op, call, name string, work func(x *inode) error) error {
	whole := d.whole(name)
	return pathError(op, whole, d.p.do(Call{Op: call, Path: whole, Writes: !reads[call]}, func(int) error {
		x, err := d.there(name)
		if err != nil {
			return err
		}
		return work(x)
	}))
}

// reads are the operations on names that write nothing.
var reads = map[string]bool{"opendir": true, "lstat": true, "readdir": true, "readlink": true, "listxattr": true}

func isDir(x *inode) error {
	if !x.now.mode.IsDir() {
		return syscall.ENOTDIR
	}
	return nil
}

// free returns the directory for a new name, and its last part.
func (d *dir) free(name string) (*inode, string, error) {
	in, last, x, err := d.find(name)
	switch {
	case err != nil:
		return nil, "", err
	case x != nil:
		return nil, "", syscall.EEXIST
	case in.links == 0:
		return nil, "", syscall.ENOENT
	}
	return in, last, d.p.m.writable(in)
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func linkError(op, old, name string, err error) error {
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: op, Old: old, New: name, Err: err}
}

func (d *dir) Path() string { return d.path }

func (d *dir) Mkdir(name string, perm fs.FileMode) error {
	whole := d.whole(name)
	return pathError("mkdir", whole, d.p.do(Call{Op: "mkdir", Path: whole, Writes: true}, func(int) error {
		in, last, err := d.free(name)
		if err == nil {
			d.p.m.put(in, last, d.p.m.node(in.volume, fs.ModeDir|perm&special&^umask))
		}
		return err
	}))
}

func (d *dir) Lstat(name string) (fs.FileInfo, error) {
	var i *info
	err := d.on("lstat", "lstat", name, func(x *inode) error {
		i = infoOf(path.Base(filepath.ToSlash(name)), x)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return i, nil
}

func (d *dir) ReadDir(name string) (list []fs.DirEntry, err error) {
	err = d.on("readdir", "readdir", name, func(x *inode) error {
		for _, key := range x.names.sorted() {
			e := x.names[key]
			list = append(list, fs.FileInfoToDirEntry(infoOf(e.name, d.p.m.over(d.p.m.nodes[e.number]))))
		}
		return isDir(x)
	})
	return list, err
}

func (d *dir) Readlink(name string) (target string, err error) {
	err = d.on("readlink", "readlink", name, func(x *inode) error {
		if target = x.target; x.now.mode&fs.ModeSymlink == 0 {
			return syscall.EINVAL
		}
		return nil
	})
	return target, err
}

func (m *Machine) symlink(target string, in *inode, last string) {
	x := m.node(in.volume, fs.ModeSymlink|0o777)
	x.target = target
	m.put(in, last, x)
}

func (d *dir) Symlink(target, name string) error {
	whole := d.whole(name)
	return linkError("symlink", target, whole, d.p.do(Call{Op: "symlink", Path: whole, Writes: true}, func(int) error {
		if target == "" {
			return syscall.ENOENT
		}
		in, last, err := d.free(name)
		switch {
		case err != nil:
			return err
		case d.p.m.volumes[in.volume].NoSymlinks:
			return syscall.EPERM
		}
		d.p.m.symlink(target, in, last)
		return nil
	}))
}

func (d *dir) Link(old, name string) error {
	from, to := d.whole(old), d.whole(name)
	return linkError("link", from, to, d.p.do(Call{Op: "link", Path: from, New: to, Writes: true}, func(int) error {
		_, _, x, err := d.find(old)
		if err != nil {
			return err
		}
		in, last, there, err := d.find(name)
		switch {
		case err != nil && (in == nil || x != nil):
			return err
		case x != nil && there == nil:
			err = d.p.m.writable(in)
		}
		if x != nil && err != nil {
			return err
		}
		return d.p.m.link(x, in, last, there)
	}))
}

// link gives x one more name, unless that is another's already.
func (m *Machine) link(x, in *inode, last string, there *inode) error {
	switch {
	case x == nil:
		return syscall.ENOENT
	case there != nil:
		return syscall.EEXIST
	case in.links == 0:
		return syscall.ENOENT
	case x.volume != in.volume:
		return syscall.EXDEV
	}
	if err := m.linkable(x); err != nil {
		return err
	}
	m.put(in, last, x)
	m.marked(x)
	return nil
}

// Rename replaces no directory, not even an empty one: so does package os.
func (d *dir) Rename(old, name string) error {
	from, to := d.whole(old), d.whole(name)
	return linkError("rename", from, to, d.p.do(Call{Op: "rename", Path: from, New: to, Writes: true}, func(int) error {
		a, first, x, err := d.find(old)
		if err != nil {
			return err
		}
		b, last, there, err := d.find(name)
		switch {
		case err != nil && b == nil:
			return err
		case a == nil || b == nil:
			return syscall.EBUSY
		case x != nil && there != nil && there.now.mode.IsDir():
			return syscall.EEXIST // as os.Root has it
		case a.volume != b.volume:
			return syscall.EXDEV
		}
		if err := d.p.m.writable(a); err != nil {
			return err
		}
		if x != nil && err != nil {
			return err
		}
		return d.p.m.rename(a, first, b, last)
	}))
}

func (d *dir) Exchange(one, other string) error {
	from, to := d.whole(one), d.whole(other)
	return linkError("exchange", from, to, d.p.do(Call{Op: "exchange", Path: from, New: to, Writes: true}, func(int) error {
		a, first, _, err := d.find(one)
		if err != nil && a == nil {
			return err
		}
		b, last, _, err2 := d.find(other)
		switch {
		case err2 != nil && b == nil:
			return err2
		case a == nil || b == nil:
			return syscall.EBUSY
		case a.volume != b.volume:
			return syscall.EXDEV
		}
		if err := cmp.Or(d.p.m.writable(a), err); err != nil {
			return err
		}
		if d.p.m.entry(a, first) != nil && err2 != nil {
			return err2
		}
		return d.p.m.exchange(a, first, b, last)
	}))
}

func (d *dir) Remove(name string) error {
	whole := d.whole(name)
	return pathError("remove", whole, d.p.do(Call{Op: "remove", Path: whole, Writes: true}, func(int) error {
		in, last, _, err := d.find(name)
		switch {
		case err != nil:
			return err
		case in == nil:
			return syscall.EINVAL
		}
		if err := d.p.m.writable(in); err != nil {
			return err
		}
		return d.p.m.remove(in, last)
	}))
}

func (d *dir) Chmod(name string, mode fs.FileMode) error {
	return d.on("chmod", "chmod", name, func(x *inode) error {
		if x.now.mode&fs.ModeSymlink != 0 {
			return syscall.ELOOP
		}
		return d.p.m.change(x, func() { d.p.m.chmod(x, mode) })
	})
}

// change does something to an inode, where it can be written to.
func (m *Machine) change(x *inode, do func()) error {
	err := m.writable(x)
	if err == nil {
		do()
	}
	return err
}

// Chown takes setuid and setgid off a file, as kernels do. Only root gives files to others.
func (d *dir) Chown(name string, uid, gid int) error {
	return d.on("lchown", "chown", name, func(x *inode) error {
		if m := d.p.m; m.uid != 0 && (uid != x.now.uid || gid != m.gid) {
			return syscall.EPERM
		}
		return d.p.m.change(x, func() {
			x.now.uid, x.now.gid = uid, gid
			if x.now.mode.IsRegular() {
				x.now.mode &^= fs.ModeSetuid | fs.ModeSetgid
			}
			d.p.m.marked(x)
		})
	})
}

func (d *dir) Attributes(name string) (list map[string]string, err error) {
	err = d.on("listxattr", "listxattr", name, func(x *inode) error {
		list = maps.Clone(x.now.attributes)
		return nil
	})
	return list, err
}

func (d *dir) SetAttribute(name, attribute, value string) error {
	return d.changeAttribute("setxattr", name, func(list map[string]string) { list[attribute] = value })
}

func (d *dir) RemoveAttribute(name, attribute string) error {
	return d.changeAttribute("removexattr", name, func(list map[string]string) { delete(list, attribute) })
}

func (d *dir) changeAttribute(op, name string, change func(map[string]string)) error {
	return d.on(op, op, name, func(x *inode) error {
		return d.p.m.change(x, func() {
			list := map[string]string{}
			maps.Copy(list, x.now.attributes)
			change(list)
			x.now.attributes = list
			d.p.m.marked(x)
		})
	})
}

func (d *dir) SetTime(name string, at time.Time) error {
	return d.on("utimensat", "settime", name, func(x *inode) error {
		return d.p.m.change(x, func() { d.p.m.setTime(x, at) })
	})
}

func (d *dir) SyncDir(name string) error {
	return d.on("sync", "syncdir", name, func(x *inode) error {
		err := cmp.Or(isDir(x), d.p.m.synced(x))
		if err == nil {
			d.p.m.syncDir(x)
		}
		return err
	})
}

func (d *dir) SyncAll() error {
	return pathError("syncfs", d.whole("."), d.p.do(Call{Op: "syncall", Path: d.whole("."), Writes: true}, func(int) error {
		for _, x := range d.p.m.nodes {
			if x != nil && x.volume == d.x.volume {
				if err := d.p.m.synced(x); err != nil {
					return err
				}
			}
		}
		d.p.m.syncVolume(d.x.volume)
		return nil
	}))
}

func (d *dir) Room(name string) (free, size int64, err error) {
	whole := d.whole(name)
	err = d.p.do(Call{Op: "room", Path: whole}, func(int) error {
		_, _, x, err := d.find(name)
		switch {
		case err != nil:
			return err
		case x == nil:
			return syscall.ENOENT
		case d.p.m.volumes[x.volume].Bytes == 0:
			return errors.ErrUnsupported
		}
		free, size = max(0, d.p.m.free(x.volume))*block, block
		return nil
	})
	if err != nil {
		return 0, 0, pathError("room", whole, err)
	}
	return free, size, nil
}

func (d *dir) Close() error {
	d.p.m.mu.Lock()
	defer d.p.m.mu.Unlock()
	if d.p.dead {
		return ErrKilled
	}
	d.closed = true
	return nil
}

// A lock is held by a process on an inode.
type lock struct {
	of     *Process
	shared bool
}

func (d *dir) Lock(name string, shared bool, holder files.Holder) (unlock func(remove bool), err error) {
	whole := d.whole(name)
	m := d.p.m
	mine := &lock{d.p, shared}
	var in, x *inode
	var last string
	err = d.p.do(Call{Op: "lock", Path: whole, Writes: true}, func(int) error {
		in, last, x, err = d.find(name)
		switch {
		case err != nil:
			return err
		case x != nil && !x.now.mode.IsRegular():
			return disk.NotRegular(x.now.mode)
		case x == nil && in.links == 0:
			return syscall.ENOENT
		}
		readOnly := m.writable(in)
		if readOnly != nil && (x == nil || !shared) {
			return readOnly
		}
		if x == nil {
			x = m.node(in.volume, 0o600)
			m.put(in, last, x)
		}
		if slices.ContainsFunc(x.locks, func(l *lock) bool { return !l.shared || !shared }) {
			busy := &files.BusyError{Path: d.path}
			if json.Unmarshal(x.now.data, &busy.Holder) != nil {
				busy.Holder = files.Holder{}
			}
			return busy
		}
		x.locks = append(x.locks, mine)
		if readOnly != nil {
			return nil
		}
		text, err := json.Marshal(holder)
		m.truncate(x, 0)
		m.write(x, 0, text[:m.fits(x, 0, int64(len(text)))])
		return err
	})
	if busy, ok := err.(*files.BusyError); ok {
		return nil, busy
	}
	if err != nil {
		return nil, pathError("lock", whole, err)
	}
	return func(remove bool) {
		err := d.p.do(Call{Op: "unlock", Path: whole, Writes: !shared || remove}, func(int) error {
			switch {
			case !slices.Contains(x.locks, mine), m.writable(x) != nil:
			case remove && m.entry(in, last) == x && len(x.locks) == 1:
				return m.remove(in, last)
			case !remove && !shared:
				m.truncate(x, 0)
			}
			return nil
		})
		if errors.Is(err, ErrKilled) {
			return // and so is its lock dropped
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		x.locks = slices.DeleteFunc(x.locks, func(l *lock) bool { return l == mine })
	}, nil
}
