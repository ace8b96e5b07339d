package group

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"volley/group/internal/content"
	"volley/group/internal/decide"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
	"volley/internal/disk/disktest"
)

// A model is what a group has been promised: what lay at the nodes whenever a generation was
// made.
type model struct {
	*world
	t             *rapid.T
	attempts      map[int64][][]string // trees when a generation was being made
	store.Current                      // in force for certain: a verb has said so
	rot           map[string]bool      // contents that nobody wrote
	copies        []string             // of nodes, from before
	steps         []string
	twice         bool // two runs at once
	spoilt        bool // something has rotted since protect has last read all
}

// TestModel lets users and runs do what they do, in any order, and interrupts the runs. What
// R allows is never lost, what is refused changes nothing, and what has succeeded is so.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{t: t, attempts: map[int64][][]string{}, rot: map[string]bool{}}
		k := rapid.IntRange(2, 4).Draw(t, "K")
		r := rapid.IntRange(1, k-1).Draw(t, "R")
		layout := Striped
		if 2*r <= k && rapid.Bool().Draw(t, "full") {
			layout = Full
		}
		m.world = newWorld(k, r, layout).ordered()
		if rapid.IntRange(0, 3).Draw(t, "big") > 0 {
			for _, dir := range m.dirs {
				m.WriteFile(dir+"/big", []byte("a few bytes"), 0o600)
			}
		}
		m.ranks = rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "ranks")
		if rapid.IntRange(0, 9).Draw(t, "protect first") > 0 {
			m.verb("protect", nil)
		}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			for range rapid.IntRange(0, 2).Draw(t, "actions") {
				m.act()
			}
			m.verb(rapid.SampledFrom([]string{"protect", "protect", "recover", "recover", "verify"}).Draw(t, "verb"), m.interruption())
			m.safe()
		}
		m.end()
	})
}

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("K=%d, R=%d, %s, %d ranks\n%s\n%s", len(m.dirs), m.r, m.layout, m.ranks, strings.Join(m.steps, "\n"), fmt.Sprintf(format, args...))
}

func (m *model) step(format string, args ...any) {
	m.steps = append(m.steps, fmt.Sprintf(format, args...))
}

// files returns those of a node, in order.
func (m *model) files(n int) []string {
	var list []string
	for name, line := range lines(m.tree(n)) {
		if strings.HasPrefix(line, "-") {
			list = append(list, m.dirs[n]+"/"+name)
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
		"write", "rewrite", "rot", "append", "empty", "delete", "rename", "mkdir", "chmod",
		"remove all", "remove all", "remove files", "remove .volley", "empty directory", "roll back", "copy", "damage .volley", "damage .volley",
	}).Draw(t, "action")
	if !m.Exists(dir) {
		m.MkdirAll(dir, 0o755)
	}
	files := m.files(n)
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
		if m.Exists(dir + "/" + tree.MetaName) {
			m.RemoveAll(dir + "/" + tree.MetaName)
		}
	case "empty directory":
		m.RemoveAll(dir)
		m.MkdirAll(dir, 0o700)
	case "copy":
		to := fmt.Sprintf("/copy%d.%d", len(m.copies), n)
		m.CopyTree(dir, to)
		m.copies = append(m.copies, to)
	case "roll back":
		for _, c := range slices.Backward(m.copies) {
			if strings.HasSuffix(c, fmt.Sprint(".", n)) {
				m.RemoveAll(dir)
				m.CopyTree(c, dir)
				break
			}
		}
	case "damage .volley":
		if list := m.meta(n); len(list) > 0 {
			name := dir + "/" + tree.MetaName + "/" + list[int(seed%uint64(len(list)))]
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
func (m *model) interruption() *accident {
	t := m.t
	what := rapid.SampledFrom([]string{"", "", "", "", "kill", "kill", "cut", "cut some", "EIO", "ENOSPC", "dying", "another run"}).Draw(t, "accident")
	if what == "" {
		return nil
	}
	n := rapid.IntRange(0, 600).Draw(t, "call")
	x := &accident{name: fmt.Sprint(what, " at ", n)}
	seed := rapid.Uint64().Draw(t, "which")
	switch what {
	case "kill":
		x.do = func(p *disktest.Process) { p.KillAt(n) }
	case "cut":
		x.do = func(p *disktest.Process) { p.At(n, func() { m.PowerCut(nil) }) }
	case "cut some":
		rng := rand.New(rand.NewPCG(seed, 0))
		x.do = func(p *disktest.Process) {
			p.At(n, func() { m.PowerCut(func(string) bool { return rng.IntN(2) == 0 }) })
		}
	case "EIO":
		x.do = func(p *disktest.Process) { p.FailAt(n, syscall.EIO) }
	case "ENOSPC":
		x.do = func(p *disktest.Process) {
			p.Before = func(c disktest.Call) error {
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
			p.Before = func(c disktest.Call) error {
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
		return r.Generation, true, nil
	case "recover":
		r, err := m.recoverBy(p, RecoverOptions{})
		if err != nil {
			return 0, false, err
		}
		return r.Generation, r.Left == nil && r.Kept == nil && !slices.ContainsFunc(r.Nodes, func(n NodeReport) bool { return n.Status == Failing }), nil
	}
	r, err := m.verifyBy(p)
	if err != nil {
		return 0, false, err
	}
	return r.Generation, r.Whole, nil
}

// attempt notes what the next generations are of.
func (m *model) attempt() {
	newest, _ := m.decided()
	for g := newest.Newest + 1; g <= newest.Newest+2; g++ {
		m.attempts[g] = append(m.attempts[g], m.trees())
	}
}

// look looks at the nodes.
func (m *model) look() ([]*store.State, []*store.Node) {
	p := m.Machine.Process()
	defer p.Kill()
	var states []*store.State
	var nodes []*store.Node
	for n, dir := range m.dirs {
		x := &store.Node{Index: n, Given: dir}
		x.Dir, _ = p.Open(dir)
		states, nodes = append(states, x.Load(nil, len(m.dirs))), append(nodes, x)
	}
	return states, nodes
}

// decided returns the generation in force.
func (m *model) decided() (store.Current, error) {
	states, _ := m.look()
	return decide.Decide(states, "")
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
	before, contents, metaBefore := m.trees(), m.contents(), m.metas()
	healthy := m.healthy()
	wasIn, wasErr := m.decided()
	g, done, err := m.run(verb, p)
	p.Kill()
	m.step("  generation %d, done %v, %v", g, done, err)
	if m.twice {
		m.fail("two runs at once")
	}
	now, nowErr := m.decided()

	// What is the user's stays.
	for n := range m.dirs {
		if slices.Contains(metaBefore[n], store.StageName) && strings.HasPrefix(name, "cut") {
			continue // a recovery that did not end has made nothing last
		}
		if verb != "recover" && (x == nil || !strings.Contains(x.name, "recover")) {
			is := m.tree(n)
			if strings.HasPrefix(before[n], "lstat ") && strings.Count(is, "\n") == 1 {
				continue // an empty directory that was made for it, and was not to stay
			}
			if wrong := diff(fmt.Sprint("node ", n), before[n], is); wrong != nil {
				m.fail("%v", wrong)
			}
			continue
		}
		is := m.contents()[n]
		for c, name := range contents[n] {
			if is[c] == "" && !m.rot[c] {
				m.fail("what was in %s is lost", name)
			}
		}
	}
	refused := err != nil && (IsInputError(err) || isBusy(err))
	switch {
	case refused && x == nil:
		for n := range m.dirs {
			if wrong := diff(fmt.Sprint("refused: node ", n), before[n], m.tree(n)); wrong != nil {
				m.fail("%v", wrong)
			}
			for _, name := range m.metas()[n] {
				if !slices.Contains(metaBefore[n], name) && !strings.HasPrefix(name, store.GenerationName) {
					m.fail("refused: node %d has %s now", n, name)
				}
			}
		}
		if wasErr == nil && (nowErr != nil || wasIn.Root != now.Root) {
			m.fail("refused: generation %d was in force, and is %d, %v", wasIn.Generation, now.Generation, nowErr)
		}
	case err != nil && x == nil:
		m.fail("nothing has gone wrong")
	case err == nil && verb == "protect":
		if nowErr != nil || now.Generation < g {
			m.fail("generation %d was protected, and %d is in force, %v", g, now.Generation, nowErr)
		}
		if x == nil || !strings.Contains(x.name, "another") {
			if wrong := m.tidy(g); wrong != nil {
				m.fail("%v", wrong)
			}
			if wrong := m.whole(); wrong != nil {
				m.fail("%v", wrong)
			}
		}
		m.spoilt = false
		m.attempts = map[int64][][]string{g: {m.trees()}}
		m.Current = now // of another group, where nothing was left of the one before
	}
	if verb == "verify" && err == nil && x == nil && m.Generation > 0 && g == m.Generation {
		whole := !slices.Contains(healthy, false)
		if done && !whole || whole && !done && len(m.attempts[m.Generation]) == 1 { // else it may be of another attempt
			m.fail("verify says whole: %v; healthy are %v", done, healthy)
		}
	}
	if nowErr == nil && now.Generation > 0 && (now.Root != m.Root) {
		if m.Generation > 0 && now.Generation < m.Generation && m.few() {
			m.fail("generation %d is in force after %d", now.Generation, m.Generation)
		}
		if now.Generation > m.Generation || !m.few() { // or of another group, begun when too much of this was lost
			m.Current = now
		}
	}
}

// metas are the names in .volley of all nodes.
func (m *model) metas() [][]string {
	var list [][]string
	for n := range m.dirs {
		list = append(list, m.meta(n))
	}
	return list
}

// contents returns, by node, the files in which each content is, wherever it is.
func (m *model) contents() []map[string]string {
	var list []map[string]string
	for n, dir := range m.dirs {
		of := map[string]string{}
		for _, name := range m.files(n) {
			is, _ := m.ReadFile(name)
			of[disk.Sum(is)] = name
		}
		for name, line := range lines(m.Tree(dir + "/" + tree.MetaName + "/" + store.ReplacedName)) {
			if strings.HasPrefix(line, "-") {
				name = dir + "/" + tree.MetaName + "/" + store.ReplacedName + "/" + name
				is, _ := m.ReadFile(name)
				of[disk.Sum(is)] = name
			}
		}
		list = append(list, of)
	}
	return list
}

// healthy reports which nodes have all that the generation in force for certain asks of them.
func (m *model) healthy() []bool {
	list := make([]bool, len(m.dirs))
	if m.Generation == 0 {
		return list
	}
	states, nodes := m.look()
	for n := range list {
		list[n] = slices.ContainsFunc(m.attempts[m.Generation], func(trees []string) bool { return hasAll(lines(trees[n]), lines(m.tree(n))) }) && m.hasMeta(states[n], nodes[n], m.Current)
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
func (m *model) hasMeta(s *store.State, x *store.Node, c store.Current) bool {
	n := x.Index
	h := s.Of(c)
	if h == nil || !h.Complete || s.Node != n {
		return false
	}
	p := m.Machine.Process()
	defer p.Kill()
	x.Dir, _ = p.Open(x.Given)
	l := x.Held[c.Generation]
	_, text, err := x.Read(l, l.Manifest.RecordFilesAt(n)[0])
	if err != nil {
		return false
	}
	member, err := l.Manifest.DecodeMember(text)
	if err != nil {
		return false
	}
	parity, err := x.OpenParity(c.Generation)
	if err != nil {
		return false
	}
	bad, err := content.CompareParity(m.t.Context(), l.Manifest, parity, member, nil)
	return err == nil && !slices.ContainsFunc(bad, func(rows []int) bool { return len(rows) > 0 })
}

// few reports whether no more nodes are not healthy than are tolerated.
func (m *model) few() bool {
	bad := 0
	for _, ok := range m.healthy() {
		if !ok {
			bad++
		}
	}
	return bad <= m.r
}

// safe checks that everything comes back when all nodes are lost that are not as they were,
// and some more, as many as R allows.
func (m *model) safe() {
	if m.Generation == 0 || !m.few() {
		return
	}
	var bad, good []int
	for n, ok := range m.healthy() {
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
	c.lose(len(m.steps), bad...)
	r, err := c.recoverBy(c.Process(), RecoverOptions{})
	if err != nil || r.Left != nil {
		m.fail("generation %d, lost %v: %+v, %v", m.Generation, bad, r, err)
	}
	var wrong error
	for _, trees := range m.attempts[r.Generation] {
		wrong = nil
		for _, n := range bad {
			wrong = cmp.Or(wrong, diff(fmt.Sprint("node ", n), trees[n], c.tree(n)))
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
	o := ProtectOptions{Force: true, AllowDeleted: true}
	r, err := m.protectBy(m.Process(), o)
	for n := 0; err != nil && n < len(m.dirs); n++ {
		input := new(InputError)
		if !errors.As(err, &input) || input.Way != WayBelieve && n == 0 {
			break
		}
		r, err = m.with(Options{Believe: m.dirs[n]}).protectBy(m.Process(), o)
	}
	if err != nil && strings.Contains(err.Error(), "cannot tell whether generation") { // nobody has a manifest that is right
		for _, dir := range m.dirs {
			m.RemoveAll(dir + "/" + tree.MetaName)
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
