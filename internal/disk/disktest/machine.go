package disktest

import (
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Machine is a file system in memory, and the processes that use it. Its paths are
// absolute and have slashes; the working directory is "/". Its methods may be called at
// the same time.
//
// What a power cut leaves is what strict POSIX promises:
//   - a file has the data, mode and times of its last Sync. One never synced is empty;
//   - a directory has the names, mode and times of its last SyncDir;
//   - a symbolic link has its time if SyncAll has made it last;
//   - a rename is kept or lost as a whole. SyncDir of the directory of the new name makes
//     it last; that of the old one alone does not, unless the old name is in use again.
type Machine struct {
	mu      sync.Mutex
	nodes   []*inode // by number; nil where there is none any more
	volumes []volume
	denials []denial
	clock   time.Time
	moves   []move
	running []*Process
	cuts    int // of power

	// The user and group of all processes. The user of a new machine is root, whoever runs the test.
	uid, gid int
}

const rootNumber = 2

// What a new file or directory has for a mode where its own was not made last.
const (
	lostFile = fs.FileMode(0o644)
	lostDir  = fs.ModeDir | 0o755
)

// An inode is a file, directory or symbolic link.
type inode struct {
	number  int
	volume  int // the file system
	serial  int // its number there
	current stored
	last    stored // what is made last
	dirty   bool   // current and last may differ
	frozen  int    // so many bytes of current.data are shared
	links   int
	opened  int    // so often
	mapped  bool   // a program has written to a mapping of it since it was written back
	target  string // of a symbolic link

	// Of a directory: the names in it. They are never written to, as they are shared.
	names     names
	lastNames names
	parent    int    // the directory it lies in, or lay in
	name      string // its name there

	locks []*lock
}

// stored is what Sync makes last.
type stored struct {
	mode         fs.FileMode
	uid, gid     int
	attributes   map[string]string // never written to: it is shared
	mtime, ctime time.Time
	data         []byte
	blocks       string // a byte for each block of data: 1 where it takes room
}

// names are those of a directory, by what [Machine.key] makes of them.
type names map[string]entry

// An entry is a name, and the number of what has it.
type entry struct {
	name   string
	number int
}

// An end is a name in a directory.
type end struct {
	dir int
	key string
}

// A move is a rename that was not made last, of a name that was.
type move struct {
	source, target end
	number         int // of what was moved
}

// NewMachine returns a machine with an empty root directory.
func NewMachine() *Machine {
	m := &Machine{nodes: make([]*inode, rootNumber), clock: time.Unix(1_600_000_000, 0)}
	root := m.format(Mount{})
	root.parent = root.number
	return m
}

// Clone returns a copy of the file system, with what was made last of it, without
// processes and locks.
func (m *Machine) Clone() *Machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &Machine{
		nodes:   make([]*inode, len(m.nodes)),
		volumes: slices.Clone(m.volumes),
		denials: slices.Clone(m.denials),
		clock:   m.clock,
		moves:   slices.Clone(m.moves),
		uid:     m.uid,
		gid:     m.gid,
	}
	nodes := make([]inode, len(m.nodes))
	for i, x := range m.nodes {
		if x == nil {
			continue
		}
		x.frozen = len(x.current.data)
		nodes[i] = *x
		nodes[i].current.data = slices.Clip(x.current.data)
		nodes[i].locks, nodes[i].opened = nil, 0
		c.nodes[i] = &nodes[i]
	}
	return c
}

// Now returns the time of the machine, which each change moves on a little.
func (m *Machine) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock
}

// Wait moves the time of the machine on, or back.
func (m *Machine) Wait(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock = m.clock.Add(d)
}

// SyncAll makes everything last.
func (m *Machine) SyncAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for v := range m.volumes {
		m.syncVolume(v)
	}
}

// syncVolume makes everything of a file system last.
func (m *Machine) syncVolume(v int) {
	for _, x := range m.nodes {
		if x != nil && x.volume == v {
			x.sync()
			x.lastNames, x.mapped = x.names, false
		}
	}
	m.moves = slices.DeleteFunc(m.moves, func(x move) bool { return m.nodes[x.target.dir].volume == v })
}

// PowerCut kills all processes, and each change that was not made last is lost if lose says
// so for its path; nil loses all. It is asked first for each name that was changed, a rename
// by its new path, then for the content, mode and times of each file and directory that is
// there then. It must not use the machine.
func (m *Machine) PowerCut(lose func(path string) bool) {
	if lose == nil {
		lose = func(string) bool { return true }
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.running {
		p.dead = true
	}
	m.running = nil
	m.cuts++

	lost := map[end]bool{} // what was decided, of names that were moved
	groups := m.groups()
	for _, g := range groups {
		dropped := lose(path.Join(m.pathOf(g.target.dir), m.nodes[g.target.dir].names[g.target.key].name))
		for _, x := range g.ends {
			lost[x] = dropped
		}
	}
	m.moves = nil
	for _, d := range m.nodes {
		if d == nil || maps.Equal(d.names, d.lastNames) {
			continue
		}
		both := names{}
		maps.Copy(both, d.lastNames)
		maps.Copy(both, d.names)
		for _, key := range both.sorted() {
			if d.names[key] == d.lastNames[key] {
				continue
			}
			dropped, ok := lost[end{d.number, key}]
			if !ok {
				dropped = lose(path.Join(m.pathOf(d.number), both[key].name))
			}
			if dropped {
				d.names = d.names.withEntry(key, d.lastNames[key])
			}
		}
	}

	reached := make([]*inode, len(m.nodes))
	var settle func(x *inode, prefix string)
	settle = func(x *inode, prefix string) {
		reached[x.number] = x
		x.locks, x.opened, x.mapped = nil, 0, false
		if x.dirty && lose(prefix) {
			x.current = x.last
		}
		x.sync()
		for _, key := range x.names.sorted() {
			y := m.nodes[x.names[key].number]
			if reached[y.number] != nil {
				if y.current.mode.IsDir() { // never at two places
					x.names = x.names.withEntry(key, entry{})
				} else {
					y.links++
				}
				continue
			}
			y.links, y.parent, y.name = 1, x.number, x.names[key].name
			settle(y, path.Join(prefix, y.name))
		}
		x.lastNames = x.names
	}
	for _, v := range m.volumes {
		settle(m.nodes[v.root], m.pathOf(v.root))
	}
	m.nodes = reached
}

// A group is names whose changes are kept or lost together.
type group struct {
	ends   []end
	target end // of the last rename
}

// groups joins the moves that share names.
func (m *Machine) groups() []*group {
	var groups []*group
	for _, v := range m.moves {
		g := &group{ends: []end{v.source, v.target}, target: v.target}
		groups = slices.DeleteFunc(groups, func(old *group) bool {
			if !slices.Contains(old.ends, v.source) && !slices.Contains(old.ends, v.target) {
				return false
			}
			for _, x := range old.ends {
				if !slices.Contains(g.ends, x) {
					g.ends = append(g.ends, x)
				}
			}
			return true
		})
		groups = append(groups, g)
	}
	return groups
}

// settled makes the names of a group last, and forgets its moves.
func (m *Machine) settled(g *group) {
	for _, x := range g.ends {
		d := m.nodes[x.dir]
		d.lastNames = d.lastNames.withEntry(x.key, d.names[x.key])
	}
	m.moves = slices.DeleteFunc(m.moves, func(v move) bool { return slices.Contains(g.ends, v.target) })
}

// syncDir makes the names in a directory last, and what belongs to it.
func (m *Machine) syncDir(d *inode) {
	last := d.names
	for _, g := range m.groups() {
		ready, foreign := false, false
		for _, x := range g.ends {
			n := m.nodes[x.dir]
			current, recorded := n.names[x.key], n.lastNames[x.key]
			switch {
			case current == recorded:
			case n != d:
				foreign = true
			case current != entry{}:
				ready = true
			}
		}
		if ready || !foreign {
			m.settled(g)
			continue
		}
		for _, x := range g.ends {
			if x.dir == d.number {
				last = last.withEntry(x.key, d.lastNames[x.key])
			}
		}
	}
	d.lastNames = last
	d.sync()
}

// sync makes the content of a file last, or the mode and time of a directory.
func (x *inode) sync() {
	if !x.dirty {
		return
	}
	x.last, x.dirty = x.current, false
	x.last.data, x.frozen = slices.Clip(x.current.data), len(x.current.data)
}

// tick returns the next time.
func (m *Machine) tick() time.Time {
	m.clock = m.clock.Add(1_000_003)
	return m.clock
}

// node makes an inode of a file system, which has no name.
func (m *Machine) node(v int, mode fs.FileMode) *inode {
	instant := m.stamp(v)
	m.volumes[v].serial++
	x := &inode{
		number:  len(m.nodes),
		volume:  v,
		serial:  m.volumes[v].serial,
		current: stored{mode: mode, uid: m.uid, gid: m.gid, mtime: instant, ctime: instant},
		last:    stored{mode: lostFile, mtime: instant, ctime: instant},
		dirty:   true,
	}
	switch {
	case mode.IsDir():
		x.last.mode = lostDir
	case mode&fs.ModeSymlink != 0:
		x.last.mode = mode
	}
	m.nodes = append(m.nodes, x)
	return x
}

// touched sets the times of what was changed.
func (m *Machine) touched(x *inode) {
	instant := m.stamp(x.volume)
	x.current.mtime, x.current.ctime, x.dirty = instant, instant, true
}

// marked sets the time of the last change of what is not data.
func (m *Machine) marked(x *inode) {
	x.current.ctime, x.dirty = m.stamp(x.volume), true
}

// put gives an inode a name, in the place of what has it.
func (m *Machine) put(d *inode, name string, x *inode) {
	d.names = d.names.withEntry(m.key(d, name), entry{name, x.number})
	x.links++
	if x.current.mode.IsDir() {
		x.parent, x.name = d.number, name
	}
	m.touched(d)
}

// drop takes a name away.
func (m *Machine) drop(d *inode, name string) {
	x := m.entry(d, name)
	d.names = d.names.withEntry(m.key(d, name), entry{})
	x.links--
	m.marked(x)
	m.touched(d)
}

// remove removes a name and what has no other one.
func (m *Machine) remove(d *inode, name string) error {
	x := m.entry(d, name)
	switch {
	case x == nil:
		return syscall.ENOENT
	case m.covered(x):
		return syscall.EBUSY
	case len(x.names) > 0:
		return syscall.ENOTEMPTY
	}
	m.drop(d, name)
	return nil
}

// rename moves a name, in the place of what has the new one.
func (m *Machine) rename(source *inode, old string, target *inode, name string) error {
	if source.volume != target.volume {
		return syscall.EXDEV
	}
	x, replaced := m.entry(source, old), m.entry(target, name)
	a, b := end{source.number, m.key(source, old)}, end{target.number, m.key(target, name)}
	switch {
	case x == nil:
		return syscall.ENOENT
	case a == b: // only letters become large or small
		if source.names[a.key].name != name {
			source.names = source.names.withEntry(a.key, entry{name, x.number})
			if x.current.mode.IsDir() {
				x.name = name
			}
			m.marked(x)
			m.touched(source)
		}
		return nil
	case x == replaced:
		return nil
	case name == ".", x.current.mode.IsDir() && m.isInside(target, x):
		return syscall.EINVAL
	}
	if replaced != nil {
		switch {
		case m.isInside(source, replaced):
			return syscall.ENOTEMPTY
		case x.current.mode.IsDir() && !replaced.current.mode.IsDir():
			return syscall.ENOTDIR
		case !x.current.mode.IsDir() && replaced.current.mode.IsDir():
			return syscall.EISDIR
		}
	}
	switch {
	case m.covered(x), replaced != nil && m.covered(replaced):
		return syscall.EBUSY
	case replaced != nil && len(replaced.names) > 0:
		return syscall.ENOTEMPTY
	}
	if replaced != nil {
		name = target.names[b.key].name
		m.drop(target, name)
	}
	if target.links == 0 {
		return syscall.ENOENT
	}
	m.drop(source, old)
	m.put(target, name, x)

	if source.lastNames[a.key] != (entry{}) {
		m.moves = append(m.moves, move{a, b, x.number})
		return nil
	}
	for i, v := range m.moves { // a name that never was made last is no part of it
		if v.target == a && v.number == x.number {
			m.moves[i].target = b
		}
	}
	return nil
}

// exchange swaps two names. A power cut keeps or loses both.
func (m *Machine) exchange(firstDir *inode, first string, secondDir *inode, second string) error {
	x, y := m.entry(firstDir, first), m.entry(secondDir, second)
	switch {
	case x == nil || y == nil:
		return syscall.ENOENT
	case x == y:
		return nil
	case m.covered(x) || m.covered(y):
		return syscall.EBUSY
	case m.volumes[firstDir.volume].NoExchange, m.isInside(secondDir, x), m.isInside(firstDir, y):
		return syscall.ENOTSUP
	}
	a, b := end{firstDir.number, m.key(firstDir, first)}, end{secondDir.number, m.key(secondDir, second)}
	first, second = firstDir.names[a.key].name, secondDir.names[b.key].name
	m.drop(firstDir, first)
	m.drop(secondDir, second)
	m.put(firstDir, first, y)
	m.put(secondDir, second, x)
	m.moves = append(m.moves, move{a, b, x.number}, move{b, a, y.number})
	return nil
}

// isInside says whether a directory is another one or lies in it.
func (m *Machine) isInside(d, outer *inode) bool {
	for ; d != outer; d = m.nodes[d.parent] {
		if d.number == rootNumber {
			return false
		}
	}
	return true
}

// write writes to a file, and fills the gap before it with zeros.
func (m *Machine) write(x *inode, offset int64, data []byte) {
	if len(data) == 0 {
		return
	}
	if gap := offset - int64(len(x.current.data)); gap > 0 {
		x.current.data = append(x.current.data, make([]byte, gap)...)
	}
	if offset < int64(x.frozen) {
		x.current.data, x.frozen = slices.Clone(x.current.data), 0
	}
	n := copy(x.current.data[offset:], data)
	x.current.data = append(x.current.data, data[n:]...)
	x.take(offset, offset+int64(len(data)))
	m.rewritten(x)
}

func (m *Machine) truncate(x *inode, size int64) {
	if n := int64(len(x.current.data)); size > n {
		x.current.data = append(x.current.data, make([]byte, size-n)...)
	} else {
		x.current.data = x.current.data[:size:size]
		x.frozen = min(x.frozen, int(size))
	}
	x.take(0, 0)
	m.rewritten(x)
}

// rewritten notes a change of data, which takes setuid off unless root has made it.
func (m *Machine) rewritten(x *inode) {
	if m.uid != 0 {
		x.current.mode &^= fs.ModeSetuid
	}
	m.touched(x)
}

// special is the bits of a mode that chmod sets.
const special = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

func (m *Machine) chmod(x *inode, mode fs.FileMode) {
	x.current.mode = x.current.mode&^special | mode&special
	m.marked(x)
}

func (m *Machine) setTime(x *inode, modified time.Time) {
	x.current.mtime = m.rounded(x.volume, modified)
	m.marked(x)
}

// entry returns what has a name in a directory, or nil. Child is the root of what is mounted there, if anything is.
func (m *Machine) entry(d *inode, name string) *inode { return m.nodes[d.names[m.key(d, name)].number] }

func (m *Machine) child(d *inode, name string) *inode { return m.mountRoot(m.entry(d, name)) }

// pathOf returns the path of a directory, or what it was.
func (m *Machine) pathOf(number int) string {
	if number == rootNumber {
		return "/"
	}
	d := m.nodes[number]
	return path.Join(m.pathOf(d.parent), d.name)
}

// clean returns a path from the root, with slashes.
func clean(name string) string {
	return path.Clean("/" + filepath.ToSlash(name[len(filepath.VolumeName(name)):]))
}

// walk follows a path and the symbolic links in it, the last one only if told. Where only
// the last part is missing it returns no inode and no error.
func (m *Machine) walk(fullPath string, follow bool) (dir *inode, name string, x *inode, err error) {
	x = m.nodes[rootNumber]
	dir, name = x, "."
	todo := strings.Split(clean(fullPath), "/")
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		if part == "" || part == "." {
			continue
		}
		if !x.current.mode.IsDir() {
			return nil, "", nil, syscall.ENOTDIR
		}
		if part == ".." {
			x = m.nodes[x.parent]
			dir, name = m.nodes[x.parent], x.name
			continue
		}
		if err := m.named(x, part); err != nil {
			return nil, "", nil, err
		}
		dir, name = x, part
		x = m.child(dir, name)
		if x == nil {
			if len(todo) > 0 {
				return nil, "", nil, syscall.ENOENT
			}
			return dir, name, nil, nil
		}
		if x.current.mode&fs.ModeSymlink != 0 && (follow || len(todo) > 0) {
			if links++; links > 40 {
				return nil, "", nil, syscall.ELOOP
			}
			todo = append(strings.Split(x.target, "/"), todo...)
			x = dir
			if todo[0] == "" {
				x = m.nodes[rootNumber]
			}
		}
	}
	return dir, name, x, nil
}

// withEntry returns a copy in which a key has an entry; none takes it out.
func (n names) withEntry(key string, value entry) names {
	if n[key] == value {
		return n
	}
	n = maps.Clone(n)
	if n == nil {
		n = names{}
	}
	if n[key] = value; value == (entry{}) {
		delete(n, key)
	}
	return n
}

// sorted returns the keys in the order of the names.
func (n names) sorted() []string {
	return slices.SortedFunc(maps.Keys(n), func(a, b string) int { return strings.Compare(n[a].name, n[b].name) })
}
