package group

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"volley/group/internal/content"
	"volley/group/internal/judge"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
	"volley/internal/disk/disktest"
)

// A model is what a group has been promised: what lay at the nodes whenever a generation was
// made.
type model struct {
	*world
	t             *rapid.T
	all           []string                      // directories that are nodes, were or may be
	attempts      map[int64][]map[string]string // trees when a generation was being made, by directory
	store.Current                               // in force for certain: a verb has said so, or a node has committed it
	complete      store.Current                 // at all nodes, and committed nowhere: it counts as long as all have it
	rot           map[string]bool               // contents that nobody wrote
	copies        map[string][]string           // of directories, from before
	resizing      *resizingCase
	each          bool              // a rank for each node resizes
	before        map[string]string // trees as the user has left them, by directory
	busy          *busyFile         // nil: nobody writes while a verb runs
	report        *ProtectReport    // of the last run
	steps         []string
	twice         bool // two runs at once
	spoilt        bool // something has rotted since protect has last read all
}

// TestModel lets users and runs do what they do, in any order, and interrupts the runs. What
// R allows is never lost, what is refused changes nothing, and what has succeeded is so.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{t: t, attempts: map[int64][]map[string]string{}, rot: map[string]bool{}, copies: map[string][]string{}}
		k := rapid.IntRange(2, 4).Draw(t, "K")
		r := rapid.IntRange(1, k-1).Draw(t, "R")
		m.world = newWorld(k, r).ordered()
		if rapid.IntRange(0, 3).Draw(t, "big") > 0 {
			for _, dir := range m.dirs {
				m.WriteFile(dir+"/big", []byte("a few bytes"), 0o600)
			}
		}
		m.all = slices.Clone(m.dirs)
		if rapid.IntRange(0, 4).Draw(t, "meta") == 0 {
			m.common.Meta = "/meta"
		}
		m.ranks = rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "ranks")
		if rapid.IntRange(0, 9).Draw(t, "protect first") > 0 {
			m.verb("protect", nil)
		}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			for range rapid.IntRange(0, 2).Draw(t, "actions") {
				m.act()
			}
			verb := rapid.SampledFrom(modelVerbs).Draw(t, "verb")
			m.verb(verb, m.interruption(verb))
			m.safe()
		}
		m.end()
	})
}

// modelVerbs are those that are drawn, each as often as it is here.
var modelVerbs = []string{"protect", "protect", "protect", "protect", "recover", "recover", "recover", "recover", "verify", "verify", "resize", "unprotect", "recover to"}

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("K=%d, R=%d, %d ranks\n%s\n%s", len(m.dirs), m.r, m.ranks, strings.Join(m.steps, "\n"), fmt.Sprintf(format, args...))
}

func (m *model) step(format string, args ...any) {
	m.steps = append(m.steps, fmt.Sprintf(format, args...))
}

// files returns those in a directory, in order.
func (m *model) files(dir string) []string {
	var list []string
	for name, line := range lines(m.Tree(dir, tree.MetaName)) {
		if strings.HasPrefix(line, "-") && !staged(name) {
			list = append(list, dir+"/"+name)
		}
	}
	slices.Sort(list)
	return list
}

// act does what a user, or a disk, does to a node.
func (m *model) act() {
	t := m.t
	n := rapid.IntRange(0, len(m.dirs)-1).Draw(t, "node")
	dir := m.dirs[n]
	what := rapid.SampledFrom([]string{
		"write", "rewrite", "rot", "append", "empty", "delete", "rename", "mkdir", "chmod", "set back", "mapped", "clock back",
		"remove all", "remove all", "remove files", "remove .volley", "empty directory", "roll back", "copy", "damage .volley", "damage .volley",
	}).Draw(t, "action")
	if !m.Exists(dir) {
		m.MkdirAll(dir, 0o755)
	}
	files := m.files(dir)
	file := ""
	if len(files) > 0 {
		file = files[rapid.IntRange(0, len(files)-1).Draw(t, "file")]
	}
	seed := rapid.Uint64().Draw(t, "content")
	text := random(rand.New(rand.NewPCG(seed, 0)), []int{10, 100, 1000, 70_000}[seed%17%4])
	m.step("%s %s %s", what, dir, file)
	m.Wait(1e6)
	m.spoilt = m.spoilt || what == "rot" || what == "damage .volley"
	switch what {
	case "write":
		m.WriteFile(fmt.Sprintf("%s/new%d", dir, seed%3), text, 0o644)
	case "clock back":
		m.Wait(-time.Hour)
	case "mkdir":
		m.MkdirAll(fmt.Sprintf("%s/dir%d/in", dir, seed%3), 0o700)
	case "remove all":
		m.RemoveAll(dir)
	case "remove files":
		for name := range lines(m.Tree(dir, tree.MetaName)) {
			if name != "." && !strings.Contains(name, "/") {
				m.RemoveAll(dir + "/" + name)
			}
		}
	case "remove .volley":
		if m.Exists(m.own(n)) {
			m.RemoveAll(m.own(n))
		}
	case "empty directory":
		m.RemoveAll(dir)
		m.MkdirAll(dir, 0o700)
	case "copy":
		to := fmt.Sprintf("/copy%d.%s", len(m.copies[dir]), dir[1:])
		m.CopyTree(dir, to)
		m.copies[dir] = append(m.copies[dir], to)
	case "roll back":
		if list := m.copies[dir]; list != nil {
			m.RemoveAll(dir)
			m.CopyTree(list[len(list)-1], dir)
		}
	case "damage .volley":
		if list := m.meta(n); len(list) > 0 {
			name := m.own(n) + "/" + list[int(seed%uint64(len(list)))]
			if is, err := m.ReadFile(name); err == nil && len(is) > 0 && seed%3 > 0 {
				m.Overwrite(name, int64(seed%uint64(len(is))), []byte{is[seed%uint64(len(is))] ^ 1}, true)
			} else if err == nil {
				m.Remove(name)
			}
			m.step("  %s", name)
		}
	}
	if file == "" {
		return
	}
	is, _ := m.ReadFile(file)
	switch what {
	case "rewrite":
		for i := range is {
			is[i] ^= byte(seed)
		}
		info, _ := m.Lstat(file)
		m.WriteFile(file, is, info.Mode())
	case "rot":
		if len(is) > 0 {
			at := seed % uint64(len(is))
			m.Overwrite(file, int64(at), []byte{is[at] ^ 1}, true)
			is[at] ^= 1
			m.rot[disk.Sum(is)] = true
		}
	case "set back", "mapped":
		if len(is) > 0 {
			at := seed % uint64(len(is))
			if changed := []byte{is[at] ^ byte(seed%255+1)}; what == "mapped" {
				m.WriteMapped(file, int64(at), changed)
			} else {
				m.setBack(file, int64(at), changed)
			}
		}
	case "append":
		m.AppendFile(file, text)
	case "empty":
		m.WriteFile(file, nil, 0o644)
	case "delete":
		m.Remove(file)
	case "rename":
		m.Rename(file, dir+"/renamed")
	case "chmod":
		m.Chmod(file, 0o600)
	}
}

// An accident is what happens while a verb runs.
type accident struct {
	name string
	do   func(p *disktest.Process)
}

// interruption draws an accident, or nil.
func (m *model) interruption(verb string) *accident {
	t := m.t
	what := rapid.SampledFrom([]string{"", "", "", "", "kill", "kill", "cut", "cut some", "EIO", "ENOSPC", "dying", "another run", "writes"}).Draw(t, "accident")
	m.busy = nil
	if what == "" {
		return nil
	}
	n := rapid.IntRange(0, 600).Draw(t, "call")
	if what == "writes" {
		if verb != "protect" && verb != "resize" {
			return nil
		}
		return m.writes(n)
	}
	x := &accident{name: fmt.Sprint(what, " at ", n)}
	seed := rapid.Uint64().Draw(t, "which")
	switch what {
	case "kill":
		x.do = func(p *disktest.Process) { p.KillAt(n) }
	case "cut":
		x.do = func(p *disktest.Process) { p.CallAt(n, func() { m.PowerCut(nil) }) }
	case "cut some":
		rng := rand.New(rand.NewPCG(seed, 0))
		x.do = func(p *disktest.Process) {
			p.CallAt(n, func() { m.PowerCut(func(string) bool { return rng.IntN(2) == 0 }) })
		}
	case "EIO":
		x.do = func(p *disktest.Process) { p.FailAt(n, syscall.EIO) }
	case "ENOSPC":
		x.do = func(p *disktest.Process) {
			p.Hook = func(c disktest.Call) error {
				if c.N == n && c.Grows() {
					return syscall.ENOSPC
				}
				return nil
			}
		}
	case "dying":
		dir := m.dirs[seed%uint64(len(m.dirs))]
		x.name += " " + dir
		x.do = func(p *disktest.Process) { dying(p, n, dir, syscall.EIO) }
	case "another run":
		other := []string{"protect", "recover", "verify"}[seed%3]
		x.name += " " + other
		x.do = func(p *disktest.Process) {
			locked := false
			p.Hook = func(c disktest.Call) error {
				if c.N == n {
					_, _, err := m.run(other, m.Process())
					m.step("  %s meanwhile: %v", other, err)
					m.attempt()
					if locked && err == nil && other != "verify" {
						m.twice = true
					}
				}
				switch c.Op {
				case "lock":
					locked = true // if it succeeds; else nobody uses the others either
				case "unlock":
					locked = false
				}
				return nil
			}
		}
	}
	return x
}

// A busyFile is one that a program writes to while a verb runs.
type busyFile struct {
	dir, name string
	start     string   // the tree of the directory, before
	versions  [][]byte // that it had
}

// writes draws how a program writes to a file: at a call and some that follow, or each time when the file is read.
func (m *model) writes(n int) *accident {
	t := m.t
	dir := rapid.SampledFrom(m.dirs).Draw(t, "busy directory")
	files := m.files(dir)
	if len(files) == 0 {
		return nil
	}
	b := &busyFile{dir: dir, name: rapid.SampledFrom(files).Draw(t, "busy file"), start: m.Tree(dir, tree.MetaName)}
	whenRead := rapid.Bool().Draw(t, "when it is read")
	changes := rapid.SliceOfN(rapid.SampledFrom([]string{"overwrite", "overwrite", "mapped", "mapped", "append", "shorten", "replace", "remove"}), 1, 4).Draw(t, "changes")
	gap := rapid.IntRange(1, 60).Draw(t, "gap")
	is, _ := m.ReadFile(b.name)
	b.versions, m.busy = [][]byte{is}, b
	return &accident{name: fmt.Sprintf("writes %q to %s at %d, %d apart, when it is read %v", changes, b.name, n, gap, whenRead), do: func(p *disktest.Process) {
		left := changes
		p.Hook = func(c disktest.Call) error {
			if at := c.N >= n && (c.N-n)%gap == 0; whenRead {
				at = c.Op == "read" && c.Path == b.name && c.N >= n/10
				if !at {
					return nil
				}
			} else if !at {
				return nil
			}
			if len(left) > 0 && m.Exists(b.name) {
				m.write(b, left[0])
				left = left[1:]
			}
			return nil
		}
	}}
}

// write changes a busy file once.
func (m *model) write(b *busyFile, what string) {
	is, _ := m.ReadFile(b.name)
	some := byte(len(b.versions))
	m.Wait(1e6)
	switch what {
	case "overwrite":
		if len(is) > 0 {
			m.Overwrite(b.name, int64(len(is)-1), []byte{is[len(is)-1] + some}, false)
			m.Overwrite(b.name, 0, []byte{is[0] + some}, false)
		}
	case "mapped":
		if len(is) > 0 {
			m.WriteMapped(b.name, int64(len(is)/2), []byte{is[len(is)/2] + some})
		}
	case "append":
		m.AppendFile(b.name, []byte{some, some})
	case "shorten":
		m.WriteFile(b.name, is[:len(is)/2], 0o644)
	case "replace":
		m.WriteFile("/another", append([]byte{some}, is...), 0o600)
		m.Rename("/another", b.name)
	case "remove":
		m.Remove(b.name)
	}
	if now, err := m.ReadFile(b.name); err == nil {
		b.versions = append(b.versions, now)
	}
	m.step("  %s", what)
	m.before = m.treesOf(m.all)
}

// holds reports whether the file may have been protected so.
func (b *busyFile) holds(is []byte, torn bool) bool {
	long := slices.ContainsFunc(b.versions, func(v []byte) bool { return len(v) == len(is) })
	if !torn {
		return long && slices.ContainsFunc(b.versions, func(v []byte) bool { return bytes.HasPrefix(v, is) })
	}
	for i, c := range is { // where it has become shorter zeros are read
		long = long && slices.ContainsFunc(b.versions, func(v []byte) bool { return i < len(v) && v[i] == c || i >= len(v) && c == 0 })
	}
	return long
}

// protectedAs returns what was protected where a program was writing: what comes back when the directory is lost.
func (m *model) protectedAs(g int64, after map[string]string) map[string]string {
	b, trees := m.busy, maps.Clone(after)
	n := slices.Index(m.dirs, b.dir)
	was, is := lines(b.start), lines(after[b.dir])
	v, err := m.verifyBy(m.Process())
	if err != nil {
		m.fail("verify: %v", err)
	}
	for _, x := range v.Nodes {
		for _, f := range x.Findings {
			if f.Kind != Changed && f.Kind != New && f.Kind != Moved && f.Kind != Metadata && (x.Dir != b.dir || is[string(f.Path)] != "") {
				m.fail("verify: %+v", x)
			}
		}
	}
	if n < 0 { // it has left
		return trees
	}
	c := m.clone()
	c.lose(len(m.steps), n)
	r, err := c.recoverBy(c.Process(), RecoverOptions{})
	if err != nil || r.Unrecovered != nil || r.Generation != g {
		m.fail("lost %s: %+v, %v", b.dir, r, err)
	}
	trees[b.dir] = c.tree(n)
	back := lines(trees[b.dir])
	names := maps.Clone(was)
	maps.Copy(names, is)
	maps.Copy(names, back)
	for name := range names {
		whole := b.dir + "/" + name
		switch {
		case back[name] == was[name] || back[name] == is[name]:
		case back[name] == "" && slices.Contains(m.report.Vanished, whole):
		case strings.HasPrefix(back[name], "d") && strings.HasPrefix(is[name], "d"): // its time is one that it had meanwhile
		case was[name] == is[name] || !strings.HasPrefix(back[name], "-"):
			m.fail("%s: %q came back, and it was %q and is %q", whole, back[name], was[name], is[name])
		default:
			if text, _ := c.ReadFile(whole); !b.holds(text, m.report.Torn != nil) {
				m.fail("%s: %d bytes came back that it never had, torn %q", whole, len(text), m.report.Torn)
			}
		}
	}
	return trees
}

// run runs a verb. It reports which generation it found or made, and whether that is in force
// for certain.
func (m *model) run(verb string, p *disktest.Process) (g int64, done bool, err error) {
	switch verb {
	case "protect":
		m.attempt()
		r, err := m.protectBy(p, ProtectOptions{Full: m.spoilt})
		if err != nil {
			return 0, false, err
		}
		m.report = r
		return r.Generation, true, nil
	case "recover":
		r, err := m.recoverBy(p, RecoverOptions{})
		if err != nil {
			return 0, false, err
		}
		return r.Generation, r.Unrecovered == nil && r.Kept == nil && !slices.ContainsFunc(r.Nodes, func(n NodeReport) bool { return n.Status == Failing }), nil
	case "resize":
		m.attempt()
		r, err := m.resizing.run(m.world, p, m.each, ResizeOptions{})
		if err != nil {
			return 0, false, err
		}
		m.resizing.is, m.report = r.Dirs, r.ProtectReport
		return r.Generation, true, nil
	case "recover to":
		r, err := m.recoverBy(p, RecoverOptions{OutDir: out})
		if err != nil {
			return 0, false, err
		}
		return r.Generation, r.Incomplete() == nil, nil
	case "unprotect":
		r, err := m.unprotectBy(p, UnprotectOptions{})
		if err != nil {
			return 0, false, err
		}
		return r.Generation, r.Protected, nil
	}
	r, err := m.verifyBy(p)
	if err != nil {
		return 0, false, err
	}
	return r.Generation, r.Intact, nil
}

// attempt notes what the next generations are of.
func (m *model) attempt() {
	here, _ := m.look(m.dirs)
	any, _ := m.look(m.all)
	newest := judge.NewestOf(here, 0)
	for n := range m.dirs { // where Meta is, also of nodes whose directories are missing
		for _, name := range m.meta(n) {
			if _, g, ok := store.NameOf(name); ok {
				newest = max(newest, g)
			}
		}
	}
	for g := newest + 1; g <= judge.NewestOf(any, 0)+2; g++ {
		m.attempts[g] = append(m.attempts[g], m.treesOf(m.all))
	}
}

// staged reports whether a name is what a recovery has left that did not end, on another file system than .volley is on.
func staged(name string) bool {
	return strings.HasPrefix(name, tree.MetaName+"-") || strings.Contains(name, "/"+tree.MetaName+"-")
}

// treesOf lists what is the user's in directories.
func (m *model) treesOf(dirs []string) map[string]string {
	list := map[string]string{}
	for _, dir := range dirs {
		var text strings.Builder
		for line := range strings.Lines(m.Tree(dir, tree.MetaName)) {
			if !staged(line) {
				text.WriteString(line)
			}
		}
		list[dir] = text.String()
	}
	return list
}

// resize draws how the nodes change: by one that is new, or was one of them before, or by one that leaves.
func (m *model) resize() {
	t := m.t
	x := &resizingCase{was: slices.Clone(m.dirs)}
	m.resizing, m.each = x, rapid.Bool().Draw(t, "a rank each")
	if len(m.dirs) > 2 && rapid.Bool().Draw(t, "remove") {
		x.remove = []string{rapid.SampledFrom(m.dirs).Draw(t, "leaves")}
		if rapid.Bool().Draw(t, "by number") {
			x.remove[0] = fmt.Sprint(slices.Index(m.dirs, x.remove[0]))
		}
	} else {
		dir := rapid.SampledFrom(append(slices.DeleteFunc(slices.Clone(m.all), func(dir string) bool { return slices.Contains(m.dirs, dir) }), "/new")).Draw(t, "joins")
		if dir == "/new" {
			dir = fmt.Sprint("/n", len(m.all))
			m.all = append(m.all, dir)
			m.MkdirAll(dir+"/sub", 0o755)
			m.WriteFile(dir+"/sub/"+dir[1:], []byte(dir), 0o600)
		}
		x.add = []string{dir}
	}
	names, p := slices.Concat(x.was, x.add), m.Process()
	defer p.Kill()
	var ids []protection.Identity
	var added []bool
	for _, dir := range names {
		ids, added = append(ids, store.Identify(p, dir)), append(added, slices.Contains(x.add, dir))
	}
	order, err := Resized(names, ids, added, x.remove)
	for n := 0; err == nil && n < len(names)-len(x.remove); n++ {
		x.is = append(x.is, names[order[n]])
	}
	m.step("resize: add %q, remove %q, a rank each %v, to %q", x.add, x.remove, m.each, x.is)
}

// resized finds out which nodes the group has after a resizing, which has ended with an error or not. Others it has none.
func (m *model) resized(err error, held bool) {
	x := m.resizing
	is, wrong := m.decidedBy(x.is)
	was, wrongBefore := m.decidedBy(x.was)
	there, before := wrong == nil && is.Generation > 0 && x.is != nil, wrongBefore == nil && was.Generation > 0
	switch {
	case err == nil && !there:
		m.fail("resized, and generation %d is in force, %v", is.Generation, wrong)
	case held && !there && !before:
		m.fail("neither the group as it was nor as it is to be is protected: %v; %v", wrongBefore, wrong)
	case there && (err == nil || !before || rapid.Bool().Draw(m.t, "go on resized")):
		if m.dirs = x.is; m.committed(is) {
			m.Current = is
		}
	}
	if err == nil {
		gone := m.of(slices.DeleteFunc(slices.Clone(x.was), func(dir string) bool { return slices.Contains(x.is, dir) }))
		if wrong := gone.bare(); wrong != nil {
			m.fail("%v", wrong)
		}
	}
	m.step("  nodes %q", m.dirs)
}

// unprotected checks what has ended a protection, or was to end it: unless all nodes are marked, no node has lost anything.
func (m *model) unprotected(err error, done bool, healthy []bool, another bool) {
	if err == nil {
		if wrong := m.bare(); done && wrong != nil { // else nothing was protected
			m.fail("%v", wrong)
		}
		m.Current = store.Current{}
		return
	}
	states, _ := m.look(m.dirs)
	marked := func(x *store.State) bool { return slices.Contains(x.Leftovers, store.EndingName) }
	holds := func(x *store.State) bool { return len(x.Held) > 0 }
	if !slices.ContainsFunc(states, marked) && !slices.ContainsFunc(states, holds) { // it came to its end
		return
	}
	if !slices.ContainsFunc(states, marked) || slices.ContainsFunc(states, func(x *store.State) bool { return holds(x) && !marked(x) }) {
		if is := m.healthy(); !another && !slices.Equal(is, healthy) {
			m.fail("not all nodes are marked, and healthy are %v, and were %v", is, healthy)
		}
		return
	}
	c := m.clone()
	_, err = c.unprotectBy(c.Process(), UnprotectOptions{})
	if err != nil && !IsInputError(err) {
		m.fail("once more: %v", err)
	}
	if wrong := c.bare(); wrong != nil {
		m.fail("once more: %v, %v", err, wrong)
	}
}

// out is where what was lost comes back, beside the group.
const out = "/out"

// recoveredTo checks what came back beside the group, in which nothing has changed. It may take its place there.
func (m *model) recoveredTo(g int64, done bool, err error, alone bool) {
	if err != nil {
		if IsInputError(err) || rapid.Bool().Draw(m.t, "begin anew") { // else the next one goes on
			m.RemoveAll(out)
		}
		return
	}
	if !done && !alone {
		return
	}
	defer m.RemoveAll(out)
	if !m.few() || g != m.Generation && m.attempts[g] == nil {
		return
	}
	if !done {
		m.fail("not all comes back")
	}
	for n, dir := range m.dirs {
		at := fmt.Sprint(out, "/node.", n)
		if m.Exists(dir) && (len(m.files(dir)) > 0 || len(m.meta(n)) > 0) {
			continue
		}
		if !m.Exists(at) {
			if strings.Count(m.tree(n), "\n") == 1 { // else it has directories
				m.fail("%s is lost, and not in %s", dir, out)
			}
			continue
		}
		if !slices.ContainsFunc(m.attempts[g], func(trees map[string]string) bool { return trees[dir] == m.Tree(at, tree.MetaName) }) {
			m.fail("%v", diff(at, m.attempts[g][0][dir], m.Tree(at, tree.MetaName)))
		}
		if rapid.Bool().Draw(m.t, "take its place") {
			m.RemoveAll(dir)
			m.Rename(at, dir)
			m.step("  %s takes the place of %s", at, dir)
		}
	}
}

// look looks at nodes.
func (w *world) look(dirs []string) ([]*store.State, []*store.Node) {
	p := w.Machine.Process()
	defer p.Kill()
	var states []*store.State
	var nodes []*store.Node
	for n, dir := range dirs {
		x := &store.Node{Index: n, DirName: dir}
		if x.Dir, _ = p.Open(dir); x.Dir != nil && w.common.Meta != "" {
			at, _ := p.Open(w.own(n))
			x.Dir = disk.Mounted(x.Dir, tree.MetaName, at)
		}
		s := x.Load(nil, len(dirs))
		s.Node = s.NumberAmong(len(dirs))
		states, nodes = append(states, s), append(nodes, x)
	}
	return states, nodes
}

// decided returns the generation in force.
func (m *model) decided() (store.Current, error) { return m.decidedBy(m.dirs) }

func (m *model) decidedBy(dirs []string) (store.Current, error) {
	states, _ := m.look(dirs)
	return judge.Decide(states, "")
}

// verb runs a verb, with an accident or without, and checks what it did.
func (m *model) verb(verb string, x *accident) {
	p := m.Process()
	name := ""
	if x != nil {
		x.do(p)
		name = x.name
	}
	m.step("%s %s", verb, name)
	if verb == "resize" {
		m.resize()
	}
	m.before = m.treesOf(m.all)
	contents, metaBefore := m.contents(), m.metas()
	healthy := m.healthy()
	wasIn, wasErr := m.decided()
	held := m.Generation > 0 && wasErr == nil && wasIn.Root == m.Root && m.few()
	g, done, err := m.run(verb, p)
	p.Kill()
	m.step("  generation %d, done %v, %v", g, done, err)
	if m.twice {
		m.fail("two runs at once")
	}
	if verb == "resize" {
		m.resized(err, held)
	}
	now, nowErr := m.decided()

	// What is the user's stays.
	after, inFiles := m.treesOf(m.all), m.contents()
	for _, dir := range m.all {
		if slices.Contains(metaBefore[dir], store.StageName) && strings.HasPrefix(name, "cut") {
			continue // a recovery that did not end has made nothing last
		}
		if verb != "recover" && (x == nil || !strings.Contains(x.name, "recover")) {
			if strings.HasPrefix(m.before[dir], "lstat ") && strings.Count(after[dir], "\n") == 1 {
				continue // an empty directory that was made for it, and was not to stay
			}
			if wrong := diff(dir, m.before[dir], after[dir]); wrong != nil {
				m.fail("%v", wrong)
			}
		}
		is := inFiles[dir]
		for c, name := range contents[dir] {
			if is[c] == "" && !m.rot[c] && m.busy == nil {
				m.fail("what was in %s is lost", name)
			}
		}
	}
	refused, alone := err != nil && (IsInputError(err) || isBusy(err)), x == nil || m.busy != nil
	switch {
	case refused && alone:
		metaAfter := m.metas()
		for _, dir := range m.all {
			if wrong := diff("refused: "+dir, m.before[dir], after[dir]); wrong != nil {
				m.fail("%v", wrong)
			}
			for _, name := range metaAfter[dir] {
				if !slices.Contains(metaBefore[dir], name) && !strings.HasPrefix(name, store.GenerationName) {
					m.fail("refused: %s has %s now", dir, name)
				}
			}
		}
		if wasErr == nil && (nowErr != nil || wasIn.Root != now.Root) {
			m.fail("refused: generation %d was in force, and is %d, %v", wasIn.Generation, now.Generation, nowErr)
		}
	case err != nil && alone:
		m.fail("nothing has gone wrong")
	case err == nil && (verb == "protect" || verb == "resize"):
		if nowErr != nil || now.Generation < g {
			m.fail("generation %d was protected, and %d is in force, %v", g, now.Generation, nowErr)
		}
		if x == nil || !strings.Contains(x.name, "another") {
			if wrong := m.tidy(g); wrong != nil {
				m.fail("%v", wrong)
			}
			if m.busy != nil {
				after = m.protectedAs(g, after)
			} else if wrong := m.whole(); wrong != nil {
				m.fail("%v", wrong)
			}
		}
		m.spoilt = false
		m.attempts = map[int64][]map[string]string{g: {after}}
		m.Current = now // of another group, where nothing was left of the one before
	}
	if verb == "recover to" {
		metaAfter := m.metas()
		for _, dir := range m.all {
			if is := metaAfter[dir]; !slices.Equal(is, metaBefore[dir]) && !strings.HasPrefix(name, "cut") && !strings.HasPrefix(name, "another") {
				m.fail("%s has %q, and had %q", dir, is, metaBefore[dir])
			}
		}
		m.recoveredTo(g, done, err, alone)
	}
	if verb == "unprotect" {
		m.unprotected(err, done, healthy, strings.Contains(name, "another"))
	}
	if verb == "verify" && err == nil && x == nil && m.Generation > 0 && g == m.Generation {
		whole := !slices.Contains(healthy, false)
		if done && !whole || whole && !done && len(m.attempts[m.Generation]) == 1 { // else it may be of another attempt
			m.fail("verify says whole: %v; healthy are %v", done, healthy)
		}
	}
	switch {
	case nowErr == nil && now.Generation > m.Generation && !m.committed(now):
		m.complete = now
	case nowErr == nil:
		m.complete = store.Current{}
	}
	if nowErr == nil && now.Generation > 0 && (now.Root != m.Root) {
		if m.Generation > 0 && now.Generation < m.Generation && m.few() {
			m.fail("generation %d is in force after %d", now.Generation, m.Generation)
		}
		if now.Generation > m.Generation && m.committed(now) || !m.few() { // or of another group, begun when too much of this was lost
			m.Current = now
		}
	}
}

// committed reports whether a node has committed a generation. Else it may go again: no verb has said that it is there.
func (m *model) committed(c store.Current) bool {
	states, _ := m.look(m.dirs)
	return slices.ContainsFunc(states, func(s *store.State) bool { h := s.Holding(c); return h != nil && h.Committed })
}

// metas are the names in .volley of all directories.
func (m *model) metas() map[string][]string {
	list, all := map[string][]string{}, m.of(m.all)
	for n, dir := range m.all {
		list[dir] = all.meta(n)
	}
	return list
}

// contents returns, by directory, the files in which each content is, wherever it is.
func (m *model) contents() map[string]map[string]string {
	list := map[string]map[string]string{}
	all := m.of(m.all)
	for n, dir := range m.all {
		of := map[string]string{}
		for _, name := range m.files(dir) {
			is, _ := m.ReadFile(name)
			of[disk.Sum(is)] = name
		}
		for _, own := range []string{all.own(n), dir + "/" + tree.MetaName} {
			replaced := own + "/" + store.ReplacedName
			for name, line := range lines(m.Tree(replaced)) {
				if strings.HasPrefix(line, "-") {
					name = replaced + "/" + name
					is, _ := m.ReadFile(name)
					of[disk.Sum(is)] = name
				}
			}
		}
		list[dir] = of
	}
	return list
}

// healthy reports which nodes have all that the generation in force for certain asks of them.
func (m *model) healthy() []bool { return m.healthyOf(m.Current) }

func (m *model) healthyOf(c store.Current) []bool {
	list := make([]bool, len(m.dirs))
	if c.Generation == 0 {
		return list
	}
	states, nodes := m.look(m.dirs)
	for n, dir := range m.dirs {
		list[n] = slices.ContainsFunc(m.attempts[c.Generation], func(trees map[string]string) bool {
			was, known := trees[dir] // an attempt before the node joined is of another group
			return known && hasAll(lines(was), lines(m.tree(n)))
		}) && m.hasMeta(states[n], nodes[n], c)
	}
	return list
}

// hasAll reports whether all files, directories and links are there, whatever their modes and times. A file may have
// moved to a name that is not that of another as it was, and has kept its time.
func hasAll(want, is map[string]string) bool {
	fields := func(line string) []string {
		line, _, _ = strings.Cut(line, " = ")
		return strings.Fields(line)
	}
	there := func(a, b []string) bool {
		return len(b) > 0 && a[0][0] == b[0][0] && (a[0][0] == 'd' || slices.Equal(a[2:], b[2:]))
	}
	var gone [][]string
	free := maps.Clone(is)
	for name, line := range want {
		if a := fields(line); there(a, fields(is[name])) {
			delete(free, name)
		} else {
			gone = append(gone, a)
		}
	}
	for _, a := range gone {
		moved := ""
		for name, line := range free {
			if b := fields(line); a[0][0] == '-' && there(a, b) && a[1] == b[1] {
				moved = name
			}
		}
		if moved == "" {
			return false
		}
		delete(free, moved)
	}
	return true
}

// hasMeta reports whether a node has parity and all records of a generation.
func (w *world) hasMeta(s *store.State, x *store.Node, c store.Current) bool {
	n := x.Index
	h := s.Holding(c)
	if h == nil || !h.Complete || s.Node != n {
		return false
	}
	p := w.Machine.Process()
	defer p.Kill()
	x.Dir, _ = p.Open(x.DirName)
	if w.common.Meta != "" {
		at, _ := p.Open(w.own(n))
		x.Dir = disk.Mounted(x.Dir, tree.MetaName, at)
	}
	l := x.Held[c.Generation]
	text, err := x.Read(l, l.Manifest.RecordFilesAt(n)[0])
	if err != nil {
		return false
	}
	record, err := l.Manifest.DecodeRecord(text)
	if err != nil {
		return false
	}
	parity := content.ParityOf(x, l.Manifest)
	defer parity.Close()
	bad, err := content.CompareParity(context.Background(), l.Manifest, parity, record, nil, nil)
	return err == nil && parity.Wrong == nil && !slices.ContainsFunc(bad, func(rows []int) bool { return len(rows) > 0 })
}

// few reports whether no more nodes are not healthy than are tolerated.
func (m *model) few() bool { return m.fewOf(m.Current) }

func (m *model) fewOf(c store.Current) bool {
	bad := 0
	for _, ok := range m.healthyOf(c) {
		if !ok {
			bad++
		}
	}
	return bad <= m.r
}

// safe checks that everything comes back when all nodes are lost that are not as they were,
// and some more, as many as R allows.
func (m *model) safe() {
	if m.Generation == 0 || !m.few() || m.complete.Generation > 0 && !m.fewOf(m.complete) {
		return
	}
	var bad, good []int
	healthy := m.healthy()
	if m.complete.Generation > 0 {
		healthy = m.healthyOf(m.complete)
	}
	for n, ok := range healthy {
		if ok {
			good = append(good, n)
		} else {
			bad = append(bad, n)
		}
	}
	for len(bad) < m.r && len(good) > 0 {
		i := rapid.IntRange(0, len(good)-1).Draw(m.t, "lost too")
		bad, good = append(bad, good[i]), slices.Delete(good, i, i+1)
	}
	c := m.clone()
	for n, ok := range healthy {
		if !ok && m.common.Meta != "" {
			c.RemoveAll(c.own(n))
		}
	}
	c.lose(len(m.steps), bad...)
	r, err := c.recoverBy(c.Process(), RecoverOptions{})
	if err != nil || r.Unrecovered != nil {
		m.fail("generation %d, lost %v: %+v, %v", m.Generation, bad, r, err)
	}
	var wrong error
	for _, trees := range m.attempts[r.Generation] {
		wrong = nil
		for _, n := range bad {
			wrong = cmp.Or(wrong, diff(m.dirs[n], trees[m.dirs[n]], c.tree(n)))
		}
		if wrong == nil {
			break
		}
	}
	if wrong != nil || m.attempts[r.Generation] == nil {
		m.fail("generation %d, then %d, lost %v: %v", m.Generation, r.Generation, bad, wrong)
	}
}

// end protects what there is, whatever has happened: the group is never wedged.
func (m *model) end() {
	for _, dir := range m.dirs {
		if !m.Exists(dir) {
			m.MkdirAll(dir, 0o755)
		}
	}
	o := ProtectOptions{Force: true, Accept: protection.Edits{Deleted: true}}
	r, err := m.protectBy(m.Process(), o)
	if err != nil && m.resizing != nil && strings.Contains(err.Error(), "is of a group of") { // what was to be is not complete any more
		m.dirs = m.resizing.was
		r, err = m.protectBy(m.Process(), o)
	}
	for n := 0; err != nil && n < len(m.dirs); n++ {
		input := new(protection.RefusedError)
		if !errors.As(err, &input) || input.Option != protection.OptionBelieve && n == 0 {
			break
		}
		with := m.common
		with.Believe = m.dirs[n]
		r, err = m.with(with).protectBy(m.Process(), o)
	}
	wedged := func(what string) bool { return err != nil && strings.Contains(err.Error(), what) }
	// Nobody has a manifest that is right, or a node that was rolled back is of an earlier group, or has other nodes.
	if wedged("cannot tell whether generation") || wedged("belongs to another group") || m.resizing != nil && wedged("the group was resized") {
		for n := range m.dirs {
			m.RemoveAll(m.own(n))
		}
		r, err = m.protectBy(m.Process(), o)
	}
	if err != nil {
		m.fail("in the end: %v", err)
	}
	if wrong := cmp.Or(m.whole(), m.tidy(r.Generation)); wrong != nil {
		m.fail("in the end: %v", wrong)
	}
}
