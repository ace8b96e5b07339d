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
	// Hook is called before each operation, one at a time. An error makes the operation
	// fail with it, without effect; see [Partial] for those that have some. It may kill the
	// process, cut the power and act as the user, and must not use the process else. It is
	// set before the process is used.
	Hook func(Call) error

	m    *Machine
	cuts int
	dead bool

	turn  sync.Mutex
	calls int
	files map[*openFile]bool // that are open
}

// A Call is an operation of a process.
type Call struct {
	Op     string // open, create, read, write, sync, truncate, stat, close, mkdir, lstat, readdir, readlink, symlink, link, rename, exchange, remove, chmod, chown, listxattr, setxattr, removexattr, settime, writeback, syncdir, syncall, lock, unlock, opendir
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
	p.Hook = func(c Call) error {
		calls = append(calls, c)
		return nil
	}
	run(p)
	return calls
}

// Machine returns the machine that the process runs on.
func (p *Process) Machine() *Machine { return p.m }

// hookCall has Hook be a function for one call.
func (p *Process) hookCall(n int, hook func(Call) error) {
	p.Hook = func(c Call) error {
		if c.N != n {
			return nil
		}
		return hook(c)
	}
}

// CallAt calls f before a call.
func (p *Process) CallAt(n int, f func()) { p.hookCall(n, func(Call) error { f(); return nil }) }

// KillAt has the process killed at a call, which then has no effect.
func (p *Process) KillAt(n int) { p.CallAt(n, p.Kill) }

// FailAt makes a call fail.
func (p *Process) FailAt(n int, err error) { p.hookCall(n, func(Call) error { return err }) }

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
			x.locks = slices.DeleteFunc(x.locks, func(l *lock) bool { return l.holder == p })
		}
	}
}

// perform asks the hook, and does the work with the machine locked: limit is how many bytes it
// may read or write, -1 for all.
func (p *Process) perform(c Call, work func(limit int) error) error {
	asked := p.ask(c)
	m := p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if part, ok := asked.(*Partial); ok {
		if (c.Op == "read" || c.Op == "write") && p.cuts == m.cuts && part.N > 0 {
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
	if p.Hook == nil {
		return nil
	}
	return p.Hook(c)
}

// Open opens a directory; it follows symbolic links.
func (p *Process) Open(name string) (disk.Dir, error) {
	fullPath := clean(name)
	d := &dir{p: p}
	err := p.perform(Call{Op: "opendir", Path: fullPath}, func(int) error {
		_, _, x, err := p.m.walk(fullPath, true)
		switch {
		case err != nil:
			return err
		case x == nil:
			return syscall.ENOENT
		case !x.current.mode.IsDir():
			return syscall.ENOTDIR
		}
		d.x, d.path = x, p.m.pathOf(x.number)
		return nil
	})
	if err != nil {
		return nil, pathError("open", fullPath, err)
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
	sub := &dir{p: d.p, path: d.fullPath(name)}
	err := d.apply("open", "opendir", name, func(x *inode) error {
		sub.x = x
		return isDir(x)
	})
	if err != nil {
		return nil, err
	}
	return sub, nil
}

// fullPath returns the path of a name.
func (d *dir) fullPath(name string) string { return path.Join(d.path, filepath.ToSlash(name)) }

// find returns the directory that a name lies in, its last part, and what has the name. Where only the last part is too
// long there is a directory, too.
func (d *dir) find(name string) (parent *inode, last string, x *inode, err error) {
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
	parent = d.x
	for {
		part, rest, hasRest := strings.Cut(name, "/")
		err := d.p.m.named(parent, part)
		if err == nil {
			x = d.p.m.child(parent, part)
		}
		switch {
		case !hasRest:
			return parent, part, x, err
		case err != nil:
			return nil, "", nil, err
		}
		if x == nil {
			return nil, "", nil, syscall.ENOENT
		}
		if !x.current.mode.IsDir() {
			return nil, "", nil, syscall.ENOTDIR
		}
		parent, name = x, rest
	}
}

// lookUp returns what has a name, and an error if nothing has.
func (d *dir) lookUp(name string) (*inode, error) {
	_, _, x, err := d.find(name)
	if err == nil && x == nil {
		err = syscall.ENOENT
	}
	return x, err
}

// apply does an operation, called so by package os and by hooks, on what has a name.
func (d *dir) apply(op, call, name string, work func(x *inode) error) error {
	fullPath := d.fullPath(name)
	return pathError(op, fullPath, d.p.perform(Call{Op: call, Path: fullPath, Writes: !reads[call]}, func(int) error {
		x, err := d.lookUp(name)
		if err != nil {
			return err
		}
		return work(x)
	}))
}

// reads are the operations on names that write nothing.
var reads = map[string]bool{"opendir": true, "lstat": true, "readdir": true, "readlink": true, "listxattr": true, "writeback": true}

func isDir(x *inode) error {
	if !x.current.mode.IsDir() {
		return syscall.ENOTDIR
	}
	return nil
}

// free returns the directory for a new name, and its last part.
func (d *dir) free(name string) (*inode, string, error) {
	parent, last, x, err := d.find(name)
	switch {
	case err != nil:
		return nil, "", err
	case x != nil:
		return nil, "", syscall.EEXIST
	case parent.links == 0:
		return nil, "", syscall.ENOENT
	}
	return parent, last, d.p.m.writable(parent)
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
	fullPath := d.fullPath(name)
	return pathError("mkdir", fullPath, d.p.perform(Call{Op: "mkdir", Path: fullPath, Writes: true}, func(int) error {
		parent, last, err := d.free(name)
		if err == nil {
			d.p.m.put(parent, last, d.p.m.node(parent.volume, fs.ModeDir|perm&special&^umask))
		}
		return err
	}))
}

func (d *dir) Lstat(name string) (fs.FileInfo, error) {
	var i *info
	err := d.apply("lstat", "lstat", name, func(x *inode) error {
		i = infoOf(path.Base(filepath.ToSlash(name)), x)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return i, nil
}

func (d *dir) ReadDir(name string) (list []fs.DirEntry, err error) {
	err = d.apply("readdir", "readdir", name, func(x *inode) error {
		for _, key := range x.names.sorted() {
			e := x.names[key]
			list = append(list, fs.FileInfoToDirEntry(infoOf(e.name, d.p.m.mountRoot(d.p.m.nodes[e.number]))))
		}
		return isDir(x)
	})
	return list, err
}

func (d *dir) Readlink(name string) (target string, err error) {
	err = d.apply("readlink", "readlink", name, func(x *inode) error {
		if target = x.target; x.current.mode&fs.ModeSymlink == 0 {
			return syscall.EINVAL
		}
		return nil
	})
	return target, err
}

func (m *Machine) symlink(target string, parent *inode, last string) {
	x := m.node(parent.volume, fs.ModeSymlink|0o777)
	x.target = target
	m.put(parent, last, x)
}

func (d *dir) Symlink(target, name string) error {
	fullPath := d.fullPath(name)
	return linkError("symlink", target, fullPath, d.p.perform(Call{Op: "symlink", Path: fullPath, Writes: true}, func(int) error {
		if target == "" {
			return syscall.ENOENT
		}
		parent, last, err := d.free(name)
		switch {
		case err != nil:
			return err
		case d.p.m.volumes[parent.volume].NoSymlinks:
			return syscall.EPERM
		}
		d.p.m.symlink(target, parent, last)
		return nil
	}))
}

func (d *dir) Link(old, name string) error {
	source, target := d.fullPath(old), d.fullPath(name)
	return linkError("link", source, target, d.p.perform(Call{Op: "link", Path: source, New: target, Writes: true}, func(int) error {
		_, _, x, err := d.find(old)
		if err != nil {
			return err
		}
		parent, last, present, err := d.find(name)
		switch {
		case err != nil && (parent == nil || x != nil):
			return err
		case x != nil && present == nil:
			err = d.p.m.writable(parent)
		}
		if x != nil && err != nil {
			return err
		}
		return d.p.m.link(x, parent, last, present)
	}))
}

// link gives x one more name, unless that is another's already.
func (m *Machine) link(x, parent *inode, last string, present *inode) error {
	switch {
	case x == nil:
		return syscall.ENOENT
	case present != nil:
		return syscall.EEXIST
	case parent.links == 0:
		return syscall.ENOENT
	case x.volume != parent.volume:
		return syscall.EXDEV
	}
	if err := m.linkable(x); err != nil {
		return err
	}
	m.put(parent, last, x)
	m.marked(x)
	return nil
}

// Rename replaces no directory, not even an empty one: so does package os.
func (d *dir) Rename(old, name string) error {
	source, target := d.fullPath(old), d.fullPath(name)
	return linkError("rename", source, target, d.p.perform(Call{Op: "rename", Path: source, New: target, Writes: true}, func(int) error {
		a, first, x, err := d.find(old)
		if err != nil {
			return err
		}
		b, last, replaced, err := d.find(name)
		switch {
		case err != nil && b == nil:
			return err
		case a == nil || b == nil:
			return syscall.EBUSY
		case x != nil && replaced != nil && replaced.current.mode.IsDir():
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

func (d *dir) Exchange(firstName, secondName string) error {
	source, target := d.fullPath(firstName), d.fullPath(secondName)
	return linkError("exchange", source, target, d.p.perform(Call{Op: "exchange", Path: source, New: target, Writes: true}, func(int) error {
		a, first, _, err := d.find(firstName)
		if err != nil && a == nil {
			return err
		}
		b, last, _, err2 := d.find(secondName)
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
	fullPath := d.fullPath(name)
	return pathError("remove", fullPath, d.p.perform(Call{Op: "remove", Path: fullPath, Writes: true}, func(int) error {
		parent, last, _, err := d.find(name)
		switch {
		case err != nil:
			return err
		case parent == nil:
			return syscall.EINVAL
		}
		if err := d.p.m.writable(parent); err != nil {
			return err
		}
		return d.p.m.remove(parent, last)
	}))
}

func (d *dir) Chmod(name string, mode fs.FileMode) error {
	return d.apply("chmod", "chmod", name, func(x *inode) error {
		if x.current.mode&fs.ModeSymlink != 0 {
			return syscall.ELOOP
		}
		return d.p.m.change(x, func() { d.p.m.chmod(x, mode) })
	})
}

// change does something to an inode, where it can be written to.
func (m *Machine) change(x *inode, work func()) error {
	err := m.writable(x)
	if err == nil {
		work()
	}
	return err
}

// Chown takes setuid and setgid off a file, as kernels do. Only root gives files to others.
func (d *dir) Chown(name string, uid, gid int) error {
	return d.apply("lchown", "chown", name, func(x *inode) error {
		if m := d.p.m; m.uid != 0 && (uid != x.current.uid || gid != m.gid) {
			return syscall.EPERM
		}
		return d.p.m.change(x, func() {
			x.current.uid, x.current.gid = uid, gid
			if x.current.mode.IsRegular() {
				x.current.mode &^= fs.ModeSetuid | fs.ModeSetgid
			}
			d.p.m.marked(x)
		})
	})
}

func (d *dir) Attributes(name string) (list map[string]string, err error) {
	err = d.apply("listxattr", "listxattr", name, func(x *inode) error {
		list = maps.Clone(x.current.attributes)
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
	return d.apply(op, op, name, func(x *inode) error {
		return d.p.m.change(x, func() {
			list := map[string]string{}
			maps.Copy(list, x.current.attributes)
			change(list)
			x.current.attributes = list
			d.p.m.marked(x)
		})
	})
}

func (d *dir) SetTime(name string, modified time.Time) error {
	return d.apply("utimensat", "settime", name, func(x *inode) error {
		return d.p.m.change(x, func() { d.p.m.setTime(x, modified) })
	})
}

func (d *dir) WriteBack(name string, wait bool) error {
	return d.apply("writeback", "writeback", name, func(x *inode) error {
		if d.p.m.volumes[x.volume].InMemory {
			return errors.ErrUnsupported
		}
		x.mapped = x.mapped && !wait
		return nil
	})
}

func (d *dir) SyncDir(name string) error {
	return d.apply("sync", "syncdir", name, func(x *inode) error {
		err := cmp.Or(isDir(x), d.p.m.synced(x))
		if err == nil {
			d.p.m.syncDir(x)
		}
		return err
	})
}

func (d *dir) SyncAll() error {
	return pathError("syncfs", d.fullPath("."), d.p.perform(Call{Op: "syncall", Path: d.fullPath("."), Writes: true}, func(int) error {
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
	fullPath := d.fullPath(name)
	err = d.p.perform(Call{Op: "room", Path: fullPath}, func(int) error {
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
		return 0, 0, pathError("room", fullPath, err)
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
	holder *Process
	path   string
	shared bool
}

func (d *dir) Lock(name string, shared bool, holder files.Holder) (unlock func(remove bool), err error) {
	fullPath := d.fullPath(name)
	m := d.p.m
	mine := &lock{d.p, fullPath, shared}
	var parent, x *inode
	var last string
	err = d.p.perform(Call{Op: "lock", Path: fullPath, Writes: true}, func(int) error {
		parent, last, x, err = d.find(name)
		switch {
		case err != nil:
			return err
		case x != nil && !x.current.mode.IsRegular():
			return disk.NotRegular(x.current.mode)
		case x == nil && parent.links == 0:
			return syscall.ENOENT
		}
		readOnly := m.writable(parent)
		if readOnly != nil && (x == nil || !shared) {
			return readOnly
		}
		if x == nil {
			x = m.node(parent.volume, 0o600)
			m.put(parent, last, x)
		}
		if slices.ContainsFunc(x.locks, func(l *lock) bool { return !l.shared || !shared }) {
			busy := &files.BusyError{Path: d.path}
			if json.Unmarshal(x.current.data, &busy.Holder) != nil {
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
		return nil, pathError("lock", fullPath, err)
	}
	return func(remove bool) {
		err := d.p.perform(Call{Op: "unlock", Path: fullPath, Writes: !shared || remove}, func(int) error {
			switch {
			case !slices.Contains(x.locks, mine), m.writable(x) != nil:
			case remove && m.entry(parent, last) == x && len(x.locks) == 1:
				return m.remove(parent, last)
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
