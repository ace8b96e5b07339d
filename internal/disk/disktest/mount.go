package disktest

import (
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A Mount says how a file system is mounted and what it can do. The zero value can do all that those of Linux can.
type Mount struct {
	ReadOnly    bool          // but for the user's helpers
	Granularity time.Duration // of times: they are cut to a multiple of it
	IgnoreCase  bool          // names that differ only in large and small letters are one; each stays as it was given
	NoSymlinks  bool
	NoExchange  bool  // names cannot be swapped
	InMemory    bool  // nothing is written back
	Links       int   // names that a file can have; 0: any number, 1: there are no hard links
	NameBytes   int   // of the longest name; 0: 255
	Bytes       int64 // room for the data of files, which take whole blocks; 0: no limit. The user's helpers need none
}

// block is the bytes that are taken together.
const block = 4096

// A volume is a file system.
type volume struct {
	Mount
	root    int
	cover   int // the directory where it is mounted, unless it is the first
	mounted bool
	serial  int // of the inode made last
}

// format makes a file system, and its root.
func (m *Machine) format(o Mount) *inode {
	m.volumes = append(m.volumes, volume{Mount: o, serial: rootNumber - 1})
	v := len(m.volumes) - 1
	root := m.node(v, lostDir)
	root.links, root.dirty = 1, false
	m.volumes[v].root = root.number
	return root
}

// Mount mounts an empty file system at a directory. What lies in that is hidden.
func (m *Machine) Mount(name string, o Mount) {
	m.user("mount", name, true, func(d *inode, last string, x *inode) error {
		switch {
		case x == nil:
			return syscall.ENOENT
		case !x.current.mode.IsDir():
			return syscall.ENOTDIR
		case x.number == rootNumber:
			return syscall.EBUSY
		}
		root := m.format(o)
		root.parent, root.name = d.number, last
		v := &m.volumes[root.volume]
		v.cover, v.mounted = x.number, true
		return nil
	})
}

// Unmount shows again what is hidden by the file system at a path. [Machine.Remount] brings that back.
func (m *Machine) Unmount(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.volumeAt("unmount", name)
	if v.root == rootNumber || m.covered(m.nodes[v.root]) {
		panic(pathError("user's unmount", clean(name), syscall.EBUSY))
	}
	v.mounted = false
}

// Remount changes how a file system is mounted at a path, or mounts again what was unmounted there last. The path of
// the first file system is "/".
func (m *Machine) Remount(name string, change func(*Mount)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.volumeAt("mount", name)
	v.mounted = v.root != rootNumber
	change(&v.Mount)
}

// Mountpoint returns where the file system is mounted that a path is on.
func (m *Machine) Mountpoint(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name = clean(name); ; name = path.Dir(name) {
		d, _, x, err := m.walk(name, false)
		if x == nil {
			x = d
		}
		if err == nil {
			return m.pathOf(m.volumes[x.volume].root)
		}
	}
}

// volumeAt returns the file system that was mounted at a path last.
func (m *Machine) volumeAt(op, name string) *volume {
	for i := range slices.Backward(m.volumes) {
		if v := &m.volumes[i]; m.pathOf(v.root) == clean(name) {
			return v
		}
	}
	panic(pathError("user's "+op, clean(name), syscall.EINVAL))
}

// mountedAt returns the file system that is mounted at a directory, or nil.
func (m *Machine) mountedAt(x *inode) *volume {
	for i := range m.volumes {
		if v := &m.volumes[i]; v.mounted && v.cover == x.number {
			return v
		}
	}
	return nil
}

func (m *Machine) covered(x *inode) bool { return m.mountedAt(x) != nil }

// mountRoot returns the root of what is mounted at a directory, or what it is given.
func (m *Machine) mountRoot(x *inode) *inode {
	for x != nil && x.current.mode.IsDir() {
		v := m.mountedAt(x)
		if v == nil {
			break
		}
		x = m.nodes[v.root]
	}
	return x
}

// writable returns an error where what has the inode is mounted read-only.
func (m *Machine) writable(x *inode) error {
	if m.volumes[x.volume].ReadOnly {
		return syscall.EROFS
	}
	return nil
}

// synced returns an error where something is to be written that cannot be any more.
func (m *Machine) synced(x *inode) error {
	if x.dirty || !maps.Equal(x.names, x.lastNames) {
		return m.writable(x)
	}
	return nil
}

// named returns an error for a name that is too long for a directory.
func (m *Machine) named(d *inode, name string) error {
	limit := m.volumes[d.volume].NameBytes
	if limit == 0 {
		limit = 255
	}
	if len(name) > limit {
		return syscall.ENAMETOOLONG
	}
	return nil
}

// key returns what is the same for names that are one in a directory.
func (m *Machine) key(d *inode, name string) string {
	if m.volumes[d.volume].IgnoreCase {
		return strings.ToLower(strings.ToUpper(name))
	}
	return name
}

// linkable returns an error where a file cannot have one more name.
func (m *Machine) linkable(x *inode) error {
	switch limit := m.volumes[x.volume].Links; {
	case x.current.mode.IsDir(), limit == 1:
		return syscall.EPERM
	case limit > 0 && x.links >= limit:
		return syscall.EMLINK
	}
	return nil
}

// stamp returns the next time, as a file system keeps it.
func (m *Machine) stamp(v int) time.Time { return m.rounded(v, m.tick()) }

func (m *Machine) rounded(v int, instant time.Time) time.Time {
	if g := m.volumes[v].Granularity; g > 0 {
		instant = instant.Truncate(g)
	}
	return time.Unix(instant.Unix(), int64(instant.Nanosecond()))
}

// fits returns how many bytes at a place of a file there is room for.
func (m *Machine) fits(x *inode, offset, n int64) int64 {
	if m.volumes[x.volume].Bytes == 0 {
		return n
	}
	free := m.free(x.volume)
	for index := offset / block; index*block < offset+n; index++ {
		if index < int64(len(x.current.blocks)) && x.current.blocks[index] != 0 {
			continue
		}
		if free--; free < 0 {
			return max(0, index*block-offset)
		}
	}
	return n
}

// free returns the blocks that nothing takes on a file system with a limit.
func (m *Machine) free(v int) int64 {
	free := m.volumes[v].Bytes / block
	for _, y := range m.nodes {
		if y != nil && y.volume == v && (y.links > 0 || y.opened > 0) {
			free -= y.room()
		}
	}
	return free
}

// room returns the blocks that a file takes.
func (x *inode) room() int64 { return int64(strings.Count(x.current.blocks, "\x01")) }

// take notes that the bytes from offset to end take room, and what is no more of the file does not.
func (x *inode) take(offset, end int64) {
	blocks := make([]byte, (len(x.current.data)+block-1)/block)
	copy(blocks, x.current.blocks)
	for index := offset / block; index*block < end; index++ {
		blocks[index] = 1
	}
	x.current.blocks = string(blocks)
}

// A denial is calls that fail.
type denial struct {
	path    string
	err     error
	hits    func(Call) bool
	process *Process // nil: of all
}

// Deny makes all calls, or those of some ops, fail at a path and at all paths below it, until [Machine.Lift].
func (m *Machine) Deny(name string, err error, ops ...string) { m.deny(nil, name, err, hits(ops)) }

// Deny is [Machine.Deny] for the calls of a process, until it ends.
func (p *Process) Deny(name string, err error, ops ...string) { p.m.deny(p, name, err, hits(ops)) }

func hits(ops []string) func(Call) bool {
	return func(c Call) bool { return len(ops) == 0 || slices.Contains(ops, c.Op) }
}

func (m *Machine) deny(p *Process, name string, err error, hits func(Call) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.denials = append(m.denials, denial{clean(name), err, hits, p})
}

// Lift takes back what is denied at a path.
func (m *Machine) Lift(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.denials = slices.DeleteFunc(m.denials, func(d denial) bool { return d.path == clean(name) })
}

// denied returns the error of a call that is denied.
func (p *Process) denied(c Call) error {
	for _, d := range p.m.denials {
		if (d.process == nil || d.process == p) && d.hits(c) && (isBelow(c.Path, d.path) || c.New != "" && isBelow(c.New, d.path)) {
			return d.err
		}
	}
	return nil
}

// isBelow reports whether a path is another one or lies below it.
func isBelow(name, top string) bool {
	return name == top || strings.HasPrefix(name, strings.TrimSuffix(top, "/")+"/")
}
