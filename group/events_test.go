package group

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"pgregory.net/rapid"

	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
	"volley/internal/disk/disktest"
)

// An action is what somebody, or something, does to a node.
type action struct {
	name string
	do   func(m *model, x scenery)
}

// A scenery is what an action may need.
type scenery struct {
	n    int // node
	dir  string
	file string // of it; "": it has none
	text []byte // of the file
	rng  *rand.Rand
}

// of returns some index of the file's bytes.
func (x scenery) some() int64 { return int64(x.rng.IntN(len(x.text))) }

// new returns random bytes of some length.
func (x scenery) new() []byte {
	return random(x.rng, []int{0, 10, 100, 1000, 5000, 5000, 5000, 70_000}[x.rng.IntN(8)])
}

// work is what users do to files, decay what disks do, and loss, mishap and absence what happens to nodes.
var (
	work = []action{
		{"write", func(m *model, x scenery) {
			dir := fmt.Sprintf("%s/d%d", x.dir, x.rng.IntN(4))
			m.MkdirAll(dir, 0o755)
			m.WriteFile(fmt.Sprintf("%s/new%d", dir, x.rng.IntN(1000)), x.new(), 0o644)
		}},
		{"rewrite", onFile(func(m *model, x scenery) { m.WriteFile(x.file, x.new(), m.mode(x.file)) })},
		{"overwrite", onData(func(m *model, x scenery) { m.Overwrite(x.file, x.some(), random(x.rng, 1), false) })},
		{"append", onFile(func(m *model, x scenery) { m.AppendFile(x.file, random(x.rng, 1+x.rng.IntN(5000))) })},
		{"empty", onFile(func(m *model, x scenery) { m.WriteFile(x.file, nil, 0o644) })},
		{"delete", onFile(func(m *model, x scenery) { m.Remove(x.file) })},
		{"replace", onFile(func(m *model, x scenery) { m.Remove(x.file); m.WriteFile(x.file, x.new(), 0o644) })}, // as editors do
		{"rename", onFile(func(m *model, x scenery) {
			m.Rename(x.file, fmt.Sprintf("%s/renamed%d", path.Dir(x.file), x.rng.IntN(1000)))
		})},
		{"move its directory", onFile(func(m *model, x scenery) {
			to := fmt.Sprintf("%s/moved%d", x.dir, x.rng.IntN(1000))
			if from := path.Dir(x.file); from != x.dir && !m.Exists(to) {
				m.Rename(from, to)
			}
		})},
	}
	oddWork = []action{
		{"mkdir", func(m *model, x scenery) { m.MkdirAll(fmt.Sprintf("%s/dir%d/in", x.dir, x.rng.IntN(3)), 0o700) }},
		{"chmod", onFile(func(m *model, x scenery) { m.Chmod(x.file, 0o600) })},
		{"set back", onData(func(m *model, x scenery) { m.setBack(x.file, x.some(), random(x.rng, 1)) })},
		{"mapped", onData(func(m *model, x scenery) { m.WriteMapped(x.file, x.some(), random(x.rng, 1)) })},
		{"rename over another", onFile(func(m *model, x scenery) { m.Rename(x.file, x.dir+"/renamed") })},
		{"clock back", func(m *model, _ scenery) { m.Wait(-time.Hour) }},
	}
	mishap = []action{
		{"somebody deletes", everyFile(func(m *model, x scenery) { m.Remove(x.file) })},
		{"somebody encrypts", everyFile(func(m *model, x scenery) { m.WriteFile(x.file, random(x.rng, len(x.text)), 0o644) })},
		{"somebody encrypts, and renames", everyFile(func(m *model, x scenery) {
			m.WriteFile(x.file, random(x.rng, len(x.text)), 0o644)
			m.Rename(x.file, x.file+".locked")
		})},
		{"somebody removes a directory of", func(m *model, x scenery) {
			var dirs []string
			for name, line := range lines(m.tree(x.n)) {
				if line[0] == 'd' && name != "." {
					dirs = append(dirs, name)
				}
			}
			if slices.Sort(dirs); len(dirs) > 0 {
				m.RemoveAll(x.dir + "/" + dirs[x.rng.IntN(len(dirs))])
			}
		}},
	}
	decay = []action{
		{"rot", onData(func(m *model, x scenery) { m.rot(x) })},
		{"lose", onFile(func(m *model, x scenery) { m.Lose(x.file) })},
		{"rot of parity", func(m *model, x scenery) {
			for _, name := range m.meta(x.n) {
				if path.Base(name) == store.ParityFile {
					name = m.own(x.n) + "/" + name
					text, _ := m.ReadFile(name)
					offset := x.rng.IntN(len(text))
					m.Overwrite(name, int64(offset), []byte{text[offset] ^ 1}, true)
					m.hurts(x.dir, !m.Exists(path.Dir(name)+"/"+store.ChangesFile)) // else it may have been written anew beside it
				}
			}
		}},
	}
	loss = []action{{"lose and replace", func(m *model, x scenery) {
		m.RemoveAll(x.dir)
		m.MkdirAll(x.dir, 0o755)
		m.lost[x.dir] = true
		m.hurts(x.dir, true)
	}}}
	oddLoss = []action{
		{"remove all of", func(m *model, x scenery) { m.RemoveAll(x.dir); m.metaLost(x) }},
		{"empty", func(m *model, x scenery) { m.RemoveAll(x.dir); m.MkdirAll(x.dir, 0o700); m.metaLost(x) }},
		{"remove what lies in", func(m *model, x scenery) {
			for name := range lines(m.Tree(x.dir, tree.MetaName)) {
				if name != "." && !strings.Contains(name, "/") {
					m.RemoveAll(x.dir + "/" + name)
				}
			}
		}},
		{"remove .volley of", func(m *model, x scenery) {
			if m.Exists(m.own(x.n)) {
				m.RemoveAll(m.own(x.n))
				m.hurts(x.dir, true)
			}
		}},
		{"copy", func(m *model, x scenery) {
			to := fmt.Sprintf("/copy%d.%s", len(m.copies[x.dir]), x.dir[1:])
			m.CopyTree(x.dir, to)
			m.copies[x.dir] = append(m.copies[x.dir], to)
		}},
		{"roll back", func(m *model, x scenery) {
			if list := m.copies[x.dir]; list != nil {
				m.RemoveAll(x.dir)
				m.CopyTree(list[len(list)-1], x.dir)
				m.hurts(x.dir, false)
			}
		}},
		{"damage .volley of", func(m *model, x scenery) {
			list := m.meta(x.n)
			if len(list) == 0 {
				return
			}
			name := m.own(x.n) + "/" + list[x.rng.IntN(len(list))]
			text, err := m.ReadFile(name)
			if err != nil { // a directory
				return
			}
			if len(text) > 0 && x.rng.IntN(3) > 0 {
				offset := x.rng.IntN(len(text))
				m.Overwrite(name, int64(offset), []byte{text[offset] ^ 1}, true)
			} else {
				m.Remove(name)
			}
			m.damaged = true
			m.hurts(x.dir, false)
			m.note("  %s", name)
		}},
	}
	absence = []action{{"cannot reach", func(m *model, x scenery) {
		m.away, m.common.Absent = x.dir, make([]string, len(m.dirs))
		m.common.Absent[x.n] = "no route to host"
	}}}
	anyAction = slices.Concat(work, oddWork, decay[:1], oddLoss, oddLoss[:1], oddLoss[len(oddLoss)-1:])
)

// onFile is an action on a file, where there is one, and onData on one that has data.
func onFile(do func(m *model, x scenery)) func(m *model, x scenery) {
	return func(m *model, x scenery) {
		if x.file != "" {
			do(m, x)
		}
	}
}

func onData(do func(m *model, x scenery)) func(m *model, x scenery) {
	return func(m *model, x scenery) {
		if len(x.text) > 0 {
			do(m, x)
		}
	}
}

// everyFile is an action on files of a node, as many as chance will have it.
func everyFile(do func(m *model, x scenery)) func(m *model, x scenery) {
	return func(m *model, x scenery) {
		share := x.rng.Float64()
		for _, x.file = range m.files(x.dir) {
			if x.rng.Float64() < share {
				x.text, _ = m.ReadFile(x.file)
				do(m, x)
			}
		}
	}
}

// files returns those in a directory, in order.
func (m *model) files(dir string) (list []string) {
	for name, line := range lines(m.Tree(dir, tree.MetaName)) {
		if strings.HasPrefix(line, "-") && !staged(name) {
			list = append(list, dir+"/"+name)
		}
	}
	slices.Sort(list)
	return list
}

// act does something to a node.
func (m *model) act(list []action) {
	a := pick(m, "action", list...)
	rng := m.random("which")
	n := rng.IntN(len(m.dirs))
	x := scenery{n: n, dir: m.dirs[n], rng: rng}
	if !m.Exists(x.dir) {
		m.MkdirAll(x.dir, 0o755)
	}
	if files := m.files(x.dir); len(files) > 0 {
		x.file = files[rng.IntN(len(files))]
		x.text, _ = m.ReadFile(x.file)
	}
	m.note("%s %s %s", a.name, x.dir, x.file)
	m.Wait(time.Duration(1+rng.IntN(600_000)) * time.Millisecond)
	a.do(m, x)
}

func (m *model) mode(file string) (mode fs.FileMode) {
	info, err := m.Lstat(file)
	m.check(err)
	return info.Mode()
}

// metaLost notes that a directory is removed, with its .volley where that lay in it.
func (m *model) metaLost(x scenery) {
	if m.common.Meta == "" {
		m.hurts(x.dir, true)
	}
}

// rot changes a byte of a file that nobody writes. Where a file was touched since it was protected, or never was, nobody can
// tell that from what users write.
func (m *model) rot(x scenery) {
	before, offset := m.hash(x.file), x.some()
	m.Overwrite(x.file, offset, []byte{x.text[offset] ^ 1}, true)
	m.damaged = true
	info, err := m.Lstat(x.file)
	m.check(err)
	good := cmp.Or(m.rotten[before], before)
	for p := m.promises[noStep]; p != nil; p = p.next {
		for _, trees := range p.trees {
			if strings.Contains(trees[x.dir], good) && !disk.Changed(info).After(p.made) {
				m.rotten[m.hash(x.file)] = good
			}
		}
	}
}

// hash is that of a file in listings.
func (m *model) hash(file string) string {
	return hashOf(lines(m.Tree(file))["."])
}

// harm takes from nodes of snapshots what they have, or has it rot.
func (m *model) harm(event string) {
	n := rapid.IntRange(0, len(m.dirs)-1).Draw(m.t, "node")
	steps := m.steps()
	step := int64(0)
	if len(steps) > 0 {
		step = pick(m, "step", steps...)
	}
	dir := m.dirsOf(step)[n]
	m.note("%s %s", event, dir)
	if event == "rot" {
		m.rotSnapshot(step, dir)
		return
	}
	m.ended = true
	lost := pick(m, "loses", "root", "what lies in the root", "snapshot", ".volley")
	m.note("  %s", lost)
	for _, other := range steps {
		if other == step || strings.HasSuffix(lost, "root") {
			m.hurts(m.dirsOf(other)[n], true)
		}
	}
	switch lost {
	case "root":
		m.RemoveAll(m.dirs[n])
	case "what lies in the root":
		m.RemoveAll(m.dirs[n])
		m.MkdirAll(m.dirs[n], 0o755)
	case "snapshot":
		m.RemoveAll(dir)
	case ".volley":
		m.RemoveAll(dir + "/" + tree.MetaName)
	}
}

// rotSnapshot has a file of a snapshot rot, or one of Volley's.
func (m *model) rotSnapshot(step int64, dir string) {
	var files []string
	for name, line := range lines(m.Tree(dir)) {
		if strings.HasPrefix(line, "-") && !strings.HasSuffix(name, store.LockFile) {
			files = append(files, name)
		}
	}
	if slices.Sort(files); len(files) == 0 {
		return
	}
	name := pick(m, "file", files...)
	if text, _ := m.ReadFile(dir + "/" + name); len(text) > 0 {
		offset := m.random("offset").IntN(len(text))
		m.Overwrite(dir+"/"+name, int64(offset), []byte{text[offset] ^ 1}, true)
		m.note("  %s", name)
		if strings.HasPrefix(name, tree.MetaName) {
			m.hurts(dir, true)
		}
	}
}

// An accident is what happens while a verb runs.
type accident struct {
	name string
	set  func(p *disktest.Process)
}

// accident draws what happens while a verb runs, or nil.
func (m *model) accident(verb string) *accident {
	m.meanwhile = nil
	name := pick(m, "accident", "", "", "", "", "kill", "kill", "cut", "cut some", "EIO", "ENOSPC", "full", "dying", "EACCES", "another run", "writer")
	n, rng := rapid.IntRange(0, 700).Draw(m.t, "call"), m.random("how")
	dir := m.dirs[rng.IntN(len(m.dirs))]
	set := map[string]func(p *disktest.Process){
		"kill": func(p *disktest.Process) { p.KillAt(n) },
		"cut":  func(p *disktest.Process) { p.CallAt(n, func() { m.PowerCut(nil) }) },
		"cut some": func(p *disktest.Process) {
			p.CallAt(n, func() { m.PowerCut(func(string) bool { return rng.IntN(2) == 0 }) })
		},
		"EIO": func(p *disktest.Process) { p.FailAt(n, syscall.EIO) },
		"ENOSPC": func(p *disktest.Process) {
			p.Hook = func(c disktest.Call) error {
				if c.N == n && c.Grows() {
					return syscall.ENOSPC
				}
				return nil
			}
		},
		"full":   func(p *disktest.Process) { p.CallAt(n, func() { p.Deny(dir, syscall.ENOSPC, disktest.Growing...) }) },
		"dying":  func(p *disktest.Process) { dying(p, n, dir, syscall.EIO) },
		"EACCES": func(p *disktest.Process) { p.Deny(m.within(dir, rng), syscall.EACCES) },
	}[name]
	switch {
	case name == "another run" && !m.roots:
		return m.anotherRun(n, []string{"protect", "recover", "verify"}[rng.IntN(3)])
	case name == "writer" && !m.roots && verb != "unprotect" && verb != "recover to":
		return m.writer(n)
	case set == nil:
		return nil
	}
	return &accident{fmt.Sprintf("%s at %d, %s", name, n, dir), set}
}

// within is a directory of a node, or what lies in it.
func (m *model) within(dir string, rng *rand.Rand) string {
	if steps := m.steps(); len(steps) > 0 && rng.IntN(5) > 0 {
		dir += "/" + session.StepName(steps[rng.IntN(len(steps))])
		return dir + []string{"", "", "/" + tree.MetaName, "/rank0", "/sub"}[rng.IntN(5)]
	}
	return dir
}

// anotherRun has another verb run at a call.
func (m *model) anotherRun(n int, verb string) *accident {
	return &accident{fmt.Sprintf("another run at %d: %s", n, verb), func(p *disktest.Process) {
		locked := false
		p.Hook = func(c disktest.Call) error {
			if c.N == n {
				x := m.run(verb, m.Process(), noStep)
				m.note("  %s meanwhile: %v", verb, x.err)
				m.attempt(noStep)
				m.both = m.both || locked && x.err == nil && verb != "verify"
			}
			switch c.Op {
			case "lock":
				locked = true // if it succeeds; else nobody uses the others either
			case "unlock":
				locked = false
			}
			return nil
		}
	}}
}

// A busyFile is one that a program writes to while a verb runs.
type busyFile struct {
	dir, name string
	start     string   // the listing of the directory, before
	versions  [][]byte // that it had
	hidden    bool     // the last change has moved no time, or removed it
}

// writer draws how a program writes to a file: at a call and some that follow, or each time when the file is read.
func (m *model) writer(n int) *accident {
	dir := pick(m, "busy directory", m.dirs...)
	files := m.files(dir)
	if len(files) == 0 {
		return nil
	}
	b := &busyFile{dir: dir, name: pick(m, "busy file", files...), start: m.Tree(dir, tree.MetaName)}
	whenRead := pick(m, "when it is read", true, false)
	changes := rapid.SliceOfN(rapid.SampledFrom([]string{"overwrite", "overwrite", "mapped", "mapped", "append", "shorten", "replace", "remove"}), 1, 4).Draw(m.t, "changes")
	gap := rapid.IntRange(1, 60).Draw(m.t, "gap")
	text, _ := m.ReadFile(b.name)
	b.versions, m.meanwhile = [][]byte{text}, b
	return &accident{fmt.Sprintf("writer: %q to %s at %d, %d apart, when it is read %v", changes, b.name, n, gap, whenRead), func(p *disktest.Process) {
		left := changes
		p.Hook = func(c disktest.Call) error {
			now := c.N >= n && (c.N-n)%gap == 0
			if whenRead {
				now = c.Op == "read" && c.Path == b.name && c.N >= n/10
			}
			if now && len(left) > 0 && m.Exists(b.name) {
				m.write(b, left[0])
				left = left[1:]
			}
			return nil
		}
	}}
}

// write changes a busy file once.
func (m *model) write(b *busyFile, change string) {
	text, _ := m.ReadFile(b.name)
	some := byte(len(b.versions))
	m.Wait(1e6)
	switch {
	case change == "append":
		m.AppendFile(b.name, []byte{some, some})
	case change == "shorten":
		m.WriteFile(b.name, text[:len(text)/2], 0o644)
	case change == "replace":
		m.WriteFile("/another", append([]byte{some}, text...), 0o600)
		m.Rename("/another", b.name)
	case change == "remove":
		m.Remove(b.name)
	case len(text) == 0:
	case change == "overwrite":
		m.Overwrite(b.name, int64(len(text)-1), []byte{text[len(text)-1] + some}, false)
		m.Overwrite(b.name, 0, []byte{text[0] + some}, false)
	case change == "mapped":
		m.WriteMapped(b.name, int64(len(text)/2), []byte{text[len(text)/2] + some})
	}
	if now, err := m.ReadFile(b.name); err == nil {
		b.versions = append(b.versions, now)
	}
	b.hidden = change == "mapped" || change == "remove"
	m.before.trees = m.treesOf(m.all)
	m.note("  %s", change)
}

// held reports whether the file may have been protected so.
func (b *busyFile) held(text []byte, torn bool) bool {
	long := slices.ContainsFunc(b.versions, func(v []byte) bool { return len(v) == len(text) })
	if !torn {
		return long && slices.ContainsFunc(b.versions, func(v []byte) bool { return bytes.HasPrefix(v, text) })
	}
	for i, c := range text { // where it has become shorter zeros are read
		long = long && slices.ContainsFunc(b.versions, func(v []byte) bool { return i < len(v) && v[i] == c || i >= len(v) && c == 0 })
	}
	return long
}

// protectedAs returns what was protected where a program was writing: what comes back when the directory is lost.
func (m *model) protectedAs(x result) map[string]string {
	b, trees := m.meanwhile, m.treesOf(m.all)
	n := slices.Index(m.dirs, b.dir)
	was, present := lines(b.start), lines(trees[b.dir])
	v, err := m.verifyBy(m.Process())
	m.check(err)
	for _, node := range v.Nodes {
		for _, f := range node.Findings {
			if f.Kind != Changed && f.Kind != New && f.Kind != Moved && f.Kind != Metadata && (node.Dir != b.dir || present[string(f.Path)] != "") {
				m.fail("verify: %+v", node)
			}
		}
	}
	if n < 0 { // it has left
		return trees
	}
	c := m.clone()
	c.lose(len(m.log), n)
	r, err := c.recoverBy(c.Process(), RecoverOptions{})
	if err != nil || r.Unrecovered != nil || r.Generation != x.generation {
		m.fail("lost %s: %+v, %v", b.dir, r, err)
	}
	trees[b.dir] = c.tree(n)
	back := lines(trees[b.dir])
	names := maps.Clone(was)
	maps.Copy(names, present)
	maps.Copy(names, back)
	for name := range names {
		whole := b.dir + "/" + name
		switch {
		case back[name] == was[name] || back[name] == present[name]:
		case back[name] == "" && slices.Contains(x.protect.Vanished, whole):
		case strings.HasPrefix(back[name], "d") && strings.HasPrefix(present[name], "d"): // its time is one that it had meanwhile
		case was[name] == present[name] || !strings.HasPrefix(back[name], "-"):
			m.fail("%s: %q came back, and it was %q and is %q", whole, back[name], was[name], present[name])
		default:
			if text, _ := c.ReadFile(whole); !b.held(text, x.protect.Torn != nil) {
				m.fail("%s: %d bytes came back that it never had, torn %q", whole, len(text), x.protect.Torn)
			}
		}
	}
	return trees
}
